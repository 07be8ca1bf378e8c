"""Wikimedia's classic layout: WIKI/YYYYMMDD/ with dumpstatus.json and WIKI-YYYYMMDD-sha1sums.txt.

Source: https://meta.wikimedia.org/wiki/Data_dumps/Dump_format, https://dumps.wikimedia.org/enwiki/20260301/.
"""

import datetime
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import (
    Dump,
    DumpFile,
    choose_pages_files,
    complete,
    is_index,
    missing_part,
    not_of_dump,
    part_twice,
    read_checksums,
)
from maskmill.storage import files

LAYOUT = "classic"

# The jobs that write all articles, of small wikis as of large ones.
_MULTISTREAM, _PLAIN = "articlesmultistreamdump", "articlesdump"
_DONE = "done"
_WITHOUT_FILES = {"failed", "skipped"}  # states of a job that will have none


def find_dumps(source: str, wiki: str, client: MirrorClient, say: Callable[[str], None]) -> Iterator[Dump] | None:
    """The complete dumps of a wiki, newest first; None where the mirror has no such folder.

    Args:
      source: the mirror.
      wiki: as enwiki.
      client: reads the mirror.
      say: is told why a dump does not count.

    Raises:
      UnusableInputError, RunFailedError: the mirror cannot be read.
    """
    folder = files.join(source, wiki)
    names = client.names(folder)
    if names is None:
        return None
    dates = {date: name.rstrip("/") for name in names if (date := _date_of(name.rstrip("/")))}
    places = [(date, files.join(folder, dates[date])) for date in sorted(dates, reverse=True)]
    return complete(((place, "this dump", _read_dump(place, wiki, date, client)) for date, place in places), say)


def _date_of(name: str) -> str:
    """The ISO date of a dump's folder; empty for another folder, as `latest`."""
    if not re.fullmatch(r"\d{8}", name):
        return ""
    try:
        return datetime.datetime.strptime(name, "%Y%m%d").date().isoformat()
    except ValueError:
        return ""


def _read_dump(place: str, wiki: str, date: str, client: MirrorClient) -> Dump | str:
    """The dump in a folder, or a clause that says why there is no complete one."""
    content = client.read(files.join(place, "dumpstatus.json"))
    if content is None:
        return "it has no dumpstatus.json"
    try:
        jobs = dict(json.loads(content)["jobs"])
    except (ValueError, KeyError, TypeError):
        return "its dumpstatus.json cannot be read"
    job = _job_of(jobs)
    listed = _done_files(jobs.get(job))
    if not listed:
        return f"{job} is not done"
    if outside := [file_name for file_name in listed if file_name != files.base_name(file_name)]:
        return f"dumpstatus.json lists {outside[0]!r}, which is no name of a file in this folder"
    sums = read_checksums(client.read(files.join(place, f"{wiki}-{files.base_name(place)}-sha1sums.txt")) or b"")
    # The list of checksums has the files of all jobs.
    of_job = [file_name for file_name in sums if ("-multistream" in file_name) == (job == _MULTISTREAM)]
    names = choose_pages_files(list(dict.fromkeys([*listed, *of_job])))
    chosen = []
    for file_name in names:
        if other := not_of_dump(file_name, wiki, date):
            return other
        if file_name not in listed:
            return f"{file_name} is in the list of checksums, but dumpstatus.json does not list it"
        entry = listed[file_name] if isinstance(listed[file_name], dict) else {}
        said = {algorithm: str(entry.get(algorithm) or "").lower() for algorithm in ("sha1", "md5")}
        published = sums.get(file_name, ("", ""))[0]
        if said["sha1"] and published and said["sha1"] != published:
            return f"dumpstatus.json and the list of checksums differ about {file_name}"
        found = {a: checksum for a, checksum in (said | {"sha1": said["sha1"] or published}).items() if checksum}
        size = entry.get("size")
        if not found or not isinstance(size, int):
            return f"{file_name} has no checksum or no size yet"
        chosen.append(
            DumpFile.with_sums(
                found,
                name=file_name,
                url=files.join(place, file_name),
                size=size,
                is_index=is_index(file_name),
            )
        )
    if not any(not file.is_index for file in chosen):
        return "it lists no file of pages"
    problem = missing_part(names, planned=True) or part_twice(chosen)
    return problem or Dump(wiki=wiki, date=date, layout=LAYOUT, files=chosen)


def _job_of(jobs: Mapping[str, Any]) -> str:
    """The job whose files are wanted: multistream, unless there will be none.

    The plain files are done days before. A dump that counted with them would be another one, of the same pages, later.
    """
    entry = jobs.get(_MULTISTREAM)
    has_none = not isinstance(entry, dict) or entry.get("status") in _WITHOUT_FILES
    return _PLAIN if has_none and _done_files(jobs.get(_PLAIN)) else _MULTISTREAM


def _done_files(entry: Any) -> Mapping[str, Any]:
    """The files of a job that is done, by the names that dumpstatus.json gives them; {} for another job."""
    listed = entry.get("files") if isinstance(entry, dict) and entry.get("status") == _DONE else None
    return listed if isinstance(listed, dict) else {}
