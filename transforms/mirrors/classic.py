"""Wikimedia's classic layout: WIKI/YYYYMMDD/ with dumpstatus.json and WIKI-YYYYMMDD-sha1sums.txt.

Source: https://meta.wikimedia.org/wiki/Data_dumps/Dump_format, https://dumps.wikimedia.org/enwiki/20260301/.
"""

import datetime
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from transforms.inputs.dump_dates import date_in_name
from transforms.mirrors.checksum_files import read_checksums
from transforms.mirrors.client import MirrorClient
from transforms.mirrors.dumps import Dump, DumpFile
from transforms.mirrors.pages_files import choose_pages_files, is_index
from transforms.storage import files

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
    return _complete(folder, wiki, [(date, dates[date]) for date in sorted(dates, reverse=True)], client, say)


def _date_of(name: str) -> str:
    """The ISO date of a dump's folder; empty for another folder, as `latest`."""
    if not re.fullmatch(r"\d{8}", name):
        return ""
    try:
        return datetime.datetime.strptime(name, "%Y%m%d").date().isoformat()
    except ValueError:
        return ""


def _complete(
    folder: str, wiki: str, dates: list[tuple[str, str]], client: MirrorClient, say: Callable[[str], None]
) -> Iterator[Dump]:
    for date, name in dates:
        place = files.join(folder, name)
        found = _read_dump(place, wiki, date, name, client)
        if isinstance(found, Dump):
            yield found
        else:
            say(f"{place}: this dump does not count: {found}.")


def _read_dump(place: str, wiki: str, date: str, name: str, client: MirrorClient) -> Dump | str:
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
    sums = read_checksums(client.read(files.join(place, f"{wiki}-{name}-sha1sums.txt")) or b"")
    chosen = []
    for file_name in choose_pages_files(list(listed)):
        if date_in_name(file_name) != date:
            return f"{file_name} is not of {date}"
        entry = listed[file_name]
        checksum, algorithm = str(entry.get("sha1", "")).lower(), "sha1"
        published = sums.get(file_name, ("", ""))[0]
        if checksum and published and checksum != published:
            return f"dumpstatus.json and the list of checksums differ about {file_name}"
        checksum = checksum or published
        if not checksum:
            checksum, algorithm = str(entry.get("md5", "")).lower(), "md5"
        size = entry.get("size")
        if not checksum or not isinstance(size, int):
            return f"{file_name} has no checksum or no size yet"
        chosen.append(
            DumpFile(
                name=file_name,
                url=files.join(place, file_name),
                size=size,
                checksum=checksum,
                algorithm=algorithm,
                is_index=is_index(file_name),
            )
        )
    if not any(not file.is_index for file in chosen):
        return "it lists no file of pages"
    return Dump(wiki=wiki, date=date, layout=LAYOUT, files=chosen)


def _job_of(jobs: Mapping[str, Any]) -> str:
    """The job whose files are wanted: multistream, unless there will be none.

    The plain files are done days before. A dump that counted with them would be another one, of the same pages, later.
    """
    entry = jobs.get(_MULTISTREAM)
    has_none = not isinstance(entry, dict) or entry.get("status") in _WITHOUT_FILES
    return _PLAIN if has_none and _done_files(jobs.get(_PLAIN)) else _MULTISTREAM


def _done_files(entry: Any) -> Mapping[str, Any]:
    """The files of a job that is done, by name; {} for another job. A name never leads out of the dump's folder."""
    listed = entry.get("files") if isinstance(entry, dict) and entry.get("status") == _DONE else None
    if not isinstance(listed, dict):
        return {}
    return {name: info for name, info in listed.items() if isinstance(info, dict) and name == files.base_name(name)}
