"""Wikimedia's two layouts.

classic: WIKI/YYYYMMDD/ with dumpstatus.json and WIKI-YYYYMMDD-sha1sums.txt. Source:
https://meta.wikimedia.org/wiki/Data_dumps/Dump_format, https://dumps.wikimedia.org/enwiki/20260301/.

content: other/mediawiki_content_current/WIKI/YYYY-MM-DD/xml/bzip2/ with SHA256SUMS and _SUCCESS. Source:
https://meta.wikimedia.org/wiki/Data_dumps/mediawiki_content_current.
"""

import datetime
import json
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

CLASSIC, CONTENT = "classic", "content"

_FOLDERS = {CLASSIC: "", CONTENT: "other/mediawiki_content_current/"}
_DATES = {CLASSIC: "%Y%m%d", CONTENT: "%Y-%m-%d"}
# The jobs that write all articles, of small wikis as of large ones.
_MULTISTREAM, _PLAIN = "articlesmultistreamdump", "articlesdump"
_DONE = "done"
_WITHOUT_FILES = {"failed", "skipped"}  # states of a job that will have none
_CHECKSUMS, _SUCCESS = "SHA256SUMS", "_SUCCESS"


def find_dumps(
    layout: str, source: str, wiki: str, client: MirrorClient, say: Callable[[str], None]
) -> Iterator[Dump] | None:
    """Return the complete dumps of a wiki, newest first; None where the mirror has no such folder.

    Args:
      layout: CLASSIC or CONTENT.
      source: the mirror.
      wiki: as enwiki.
      client: reads the mirror.
      say: is told why a dump does not count.

    Raises:
      UnusableInputError, RunFailedError: the mirror cannot be read.
    """
    folder = files.join(source, f"{_FOLDERS[layout]}{wiki}")
    names = client.names(folder)
    if names is None:
        return None
    dates = {date: name.rstrip("/") for name in names if (date := _date_of(name.rstrip("/"), _DATES[layout]))}
    below, read = ("", _read_classic) if layout == CLASSIC else ("/xml/bzip2", _read_content)
    places = [(date, files.join(folder, dates[date] + below)) for date in sorted(dates, reverse=True)]
    return complete(((place, "this dump", read(place, wiki, date, client)) for date, place in places), say)


def _date_of(name: str, form: str) -> str:
    """Return the ISO date of a dump's folder; empty for another folder, as `latest`."""
    try:
        date = datetime.datetime.strptime(name, form).date()
    except ValueError:
        return ""
    return date.isoformat() if date.strftime(form) == name else ""


def _read_classic(place: str, wiki: str, date: str, client: MirrorClient) -> Dump | str:
    """Return the dump in a folder, or a clause that says why there is no complete one."""
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
    names = choose_pages_files([*listed, *of_job])
    chosen = []
    for file_name in names:
        if other := not_of_dump(file_name, wiki, date):
            return other
        if file_name not in listed:
            return f"{file_name} is in the list of checksums, but dumpstatus.json does not list it"
        if is_index(file_name):
            continue
        entry = listed[file_name] if isinstance(listed[file_name], dict) else {}
        said = {algorithm: str(entry.get(algorithm) or "").lower() for algorithm in ("sha1", "md5")}
        published = sums.get(file_name, ("", ""))[0]
        if said["sha1"] and published and said["sha1"] != published:
            return f"dumpstatus.json and the list of checksums differ about {file_name}"
        found = {a: checksum for a, checksum in (said | {"sha1": said["sha1"] or published}).items() if checksum}
        size = entry.get("size")
        if not found or not isinstance(size, int):
            return f"{file_name} has no checksum or no size yet"
        chosen.append(DumpFile(name=file_name, url=files.join(place, file_name), size=size, sums=found))
    if not chosen:
        return "it lists no file of pages"
    problem = missing_part(names, planned=True) or part_twice(chosen)
    return problem or Dump(wiki=wiki, date=date, layout=CLASSIC, files=tuple(chosen))


def _job_of(jobs: Mapping[str, Any]) -> str:
    """Return the job whose files are wanted: multistream, unless there will be none.

    The plain files are done days before. A dump that counted with them would be another one, of the same pages, later.
    """
    entry = jobs.get(_MULTISTREAM)
    has_none = not isinstance(entry, dict) or entry.get("status") in _WITHOUT_FILES
    return _PLAIN if has_none and _done_files(jobs.get(_PLAIN)) else _MULTISTREAM


def _done_files(entry: Any) -> Mapping[str, Any]:
    """Return the files of a job that is done, by the names that dumpstatus.json gives them; {} for another job."""
    listed = entry.get("files") if isinstance(entry, dict) and entry.get("status") == _DONE else None
    return listed if isinstance(listed, dict) else {}


def _read_content(place: str, wiki: str, date: str, client: MirrorClient) -> Dump | str:
    """Return the dump in a folder, or a clause that says why there is no complete one."""
    # _SUCCESS is written after all else, so it is read first: what is read after it is complete.
    if client.read(files.join(place, _SUCCESS)) is None:
        return f"{_SUCCESS} is not there yet"
    content = client.read(files.join(place, _CHECKSUMS))
    if content is None:
        return f"{_CHECKSUMS} is not there yet"
    sums = read_checksums(content)
    chosen = []
    # A list that is cut off names fewer parts than the folder has; the index of a folder may be cut off, too.
    for name in choose_pages_files([name for name in {*sums, *(client.names(place) or [])} if ".xml" in name]):
        if other := not_of_dump(name, wiki, date):
            return other
        if name not in sums:
            return f"{name} is not in {_CHECKSUMS}"
        checksum, algorithm = sums[name]
        chosen.append(DumpFile(name=name, url=files.join(place, name), sums={algorithm: checksum}))
    if not chosen:
        return f"{_CHECKSUMS} lists no XML"
    problem = missing_part([file.name for file in chosen]) or part_twice(chosen)
    return problem or Dump(wiki=wiki, date=date, layout=CONTENT, files=tuple(chosen))
