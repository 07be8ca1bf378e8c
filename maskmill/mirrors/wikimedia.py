"""The complete dumps of a mirror, newest first, in Wikimedia's two layouts.

classic: WIKI/YYYYMMDD/ with dumpstatus.json and WIKI-YYYYMMDD-sha1sums.txt. Source:
https://meta.wikimedia.org/wiki/Data_dumps/Dump_format, https://dumps.wikimedia.org/enwiki/20260301/.

content: other/mediawiki_content_current/WIKI/YYYY-MM-DD/xml/bzip2/ with SHA256SUMS and _SUCCESS. Source:
https://meta.wikimedia.org/wiki/Data_dumps/mediawiki_content_current.
"""

import datetime
import heapq
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.mirrors.client import MirrorClient, check_source
from maskmill.mirrors.dumps import (
    Dump,
    DumpFile,
    choose_pages_files,
    is_index,
    part_twice,
    problem_of,
    read_checksums,
)
from maskmill.storage import files

CLASSIC, CONTENT, AUTO = "classic", "content", "auto"

_FOLDERS = {CLASSIC: "", CONTENT: "other/mediawiki_content_current/"}
_DATES = {CLASSIC: "%Y%m%d", CONTENT: "%Y-%m-%d"}
_WIKI = re.compile(r"[a-z0-9][a-z0-9_]*")
# The jobs that write all articles, for wikis of every size.
_MULTISTREAM, _PLAIN = "articlesmultistreamdump", "articlesdump"
_DONE = "done"
_WITHOUT_FILES = {"failed", "skipped"}  # states of a job that will not have files
_STATUS, _CHECKSUMS, _SUCCESS = "dumpstatus.json", "SHA256SUMS", "_SUCCESS"


def find_dumps(
    source: str,
    *,
    wiki: str | None,
    client: MirrorClient,
    layout: str = AUTO,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[Dump]:
    """Return the complete dumps of a wiki on a mirror, newest first; each is read when the iterator reaches it.

    Args:
      source: the mirror: http(s)://, gs://, s3:// or a directory.
      wiki: its database's name, such as enwiki.
      client: reads the mirror.
      layout: classic, content, or auto: both if they exist; of two dumps of one date, that of content comes first.
      say: called with the reason why a dump that exists does not count.

    Raises:
      UnusableInputError: there is no such mirror or wiki.
      RunFailedError: the mirror cannot be read.
    """
    if wiki is None:
        raise UnusableInputError("watch.wiki is missing: name the wiki whose dumps you want, such as enwiki.")
    if not _WIKI.fullmatch(wiki):
        raise UnusableInputError(f"watch.wiki is {wiki!r}; it must be the name of a database, as enwiki or lvwiki.")
    source, found = check_source(source), []
    for own in (CONTENT, CLASSIC):
        folder = files.join(source, f"{_FOLDERS[own]}{wiki}")
        if layout in (AUTO, own) and (names := client.names(folder)) is not None:
            found.append(_of_layout(own, folder, names, wiki, client, say))
    if not found:
        raise UnusableInputError(
            f"{source}: there are no dumps of {wiki} here; check watch.source, watch.wiki and watch.layout."
        )
    # heapq.merge is stable: of two dumps of one date, that of the first layout comes first.
    return heapq.merge(*found, key=lambda dump: dump.date, reverse=True)


def _of_layout(
    layout: str, folder: str, names: list[str], wiki: str, client: MirrorClient, say: Callable[[str], None]
) -> Iterator[Dump]:
    below, read = ("", _read_classic) if layout == CLASSIC else ("/xml/bzip2", _read_content)
    dates = {date: name for name in names if (date := _date_of(name, _DATES[layout]))}
    for date in sorted(dates, reverse=True):
        place = files.join(folder, dates[date] + below)
        dump = read(place, wiki, date, client)
        if isinstance(dump, Dump):
            yield dump
        else:
            say(f"{place}: this dump does not count: {dump}.")


def _date_of(name: str, form: str) -> str:
    """Return the ISO date of a dump's folder; empty for other folders, such as `latest`."""
    try:
        date = datetime.datetime.strptime(name, form).date()
    except ValueError:
        return ""
    return date.isoformat() if date.strftime(form) == name else ""


def _read_classic(place: str, wiki: str, date: str, client: MirrorClient) -> Dump | str:
    """Return the dump in a folder, or a clause that says why it is not complete."""
    content = client.read(files.join(place, _STATUS))
    if content is None:
        return f"it has no {_STATUS}"
    try:
        jobs = dict(json.loads(content)["jobs"])
    except (ValueError, KeyError, TypeError):
        return f"its {_STATUS} cannot be read"
    job = _job_of(jobs)
    listed = _done_files(jobs.get(job))
    if not listed:
        return f"{job} is not done"
    if outside := [name for name in listed if name != files.base_name(name)]:
        return f"{_STATUS} lists {outside[0]!r}, which is no name of a file in this folder"
    sums = read_checksums(client.read(files.join(place, f"{wiki}-{files.base_name(place)}-sha1sums.txt")) or b"")
    # The list of checksums has the files of all jobs.
    kind = "-pages-articles-multistream" if job == _MULTISTREAM else "-pages-articles"
    of_job = [n for n in sums if kind in n and n.endswith(".bz2") and ("multistream" in n) == (job == _MULTISTREAM)]
    names = choose_pages_files(list(dict.fromkeys([*listed, *of_job])))
    if problem := problem_of(names, wiki, date, planned=True):
        return problem
    chosen = []
    for name in names:
        if name not in listed:
            return f"{name} is in the list of checksums, but {_STATUS} does not list it"
        entry = listed[name] if isinstance(listed[name], dict) else {}
        said = {algorithm: str(entry.get(algorithm) or "").lower() for algorithm in ("sha1", "md5")}
        if said["sha1"] and sums.get(name, said["sha1"]) != said["sha1"]:
            return f"{_STATUS} and the list of checksums differ about {name}"
        said["sha1"] = said["sha1"] or sums.get(name, "")
        found = {algorithm: checksum for algorithm, checksum in said.items() if checksum}
        if not found or not isinstance(entry.get("size"), int):
            return f"{name} has no checksum or no size yet"
        if not is_index(name):
            chosen.append(DumpFile(name=name, url=files.join(place, name), size=entry["size"], sums=found))
    return _dump_of(wiki, date, CLASSIC, chosen)


def _job_of(jobs: Mapping[str, Any]) -> str:
    """Return the job whose files are used: multistream, unless it will not have files.

    The plain files are finished days earlier. If they counted, the same pages would count as another dump later.
    """
    entry = jobs.get(_MULTISTREAM)
    has_none = not isinstance(entry, dict) or entry.get("status") in _WITHOUT_FILES
    return _PLAIN if has_none and _done_files(jobs.get(_PLAIN)) else _MULTISTREAM


def _done_files(entry: Any) -> Mapping[str, Any]:
    """Return the files of a finished job, by their names in dumpstatus.json; {} for any other job."""
    listed = entry.get("files") if isinstance(entry, dict) and entry.get("status") == _DONE else None
    return listed if isinstance(listed, dict) else {}


def _read_content(place: str, wiki: str, date: str, client: MirrorClient) -> Dump | str:
    """Return the dump in a folder, or a clause that says why it is not complete."""
    # _SUCCESS is written last, so it is read first: all that is read after it is complete.
    if client.read(files.join(place, _SUCCESS)) is None:
        return f"{_SUCCESS} is not there yet"
    content = client.read(files.join(place, _CHECKSUMS))
    if content is None:
        return f"{_CHECKSUMS} is not there yet"
    sums = read_checksums(content)
    # A truncated list names fewer parts than the folder has; the listing of the folder may be truncated, too.
    names = choose_pages_files([name for name in {*sums, *(client.names(place) or [])} if ".xml" in name])
    if problem := problem_of(names, wiki, date, planned=False):
        return problem
    if unlisted := [name for name in names if name not in sums]:
        return f"{unlisted[0]} is not in {_CHECKSUMS}"
    chosen = [DumpFile(name=name, url=files.join(place, name), sums={"sha256": sums[name]}) for name in names]
    return _dump_of(wiki, date, CONTENT, chosen)


def _dump_of(wiki: str, date: str, layout: str, chosen: list[DumpFile]) -> Dump | str:
    if not chosen:
        return "it lists no file of pages"
    return part_twice(chosen) or Dump(wiki=wiki, date=date, layout=layout, files=tuple(chosen))
