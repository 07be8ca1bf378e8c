"""Dumps in any place that can be listed: a directory, a bucket, a web server's index; files with a date in their names.

A dump is complete when a list of checksums beside it names all its files and all are there. Without such a list it is
complete when none of its files has changed for ten minutes; objects in a bucket appear whole, and need not wait. Either
way no part may be missing between the ranges of pages in the files' names.
"""

import dataclasses
import re
import time
from collections.abc import Callable, Iterator

from maskmill.errors import UnusableInputError
from maskmill.mirrors.client import Facts, MirrorClient, matching
from maskmill.mirrors.dump_names import date_in_name
from maskmill.mirrors.dumps import (
    PREFERRED,
    Dump,
    DumpFile,
    algorithm_in_name,
    choose_pages_files,
    complete,
    is_index,
    missing_part,
    part_twice,
    read_checksums,
)
from maskmill.storage import files
from maskmill.storage.paths import is_web

LAYOUT = "listing"

_SETTLED = 600.0  # seconds without a change after which a file counts as whole
_WIKI = re.compile(r"([a-z0-9][a-z0-9_]*)-")
_DATED_FOLDER = re.compile(r"\d{8}|\d{4}-\d\d-\d\d")
_UNFINISHED = (".part", ".tmp", ".inprog", ".crdownload")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Folder:
    """A folder with its files and its lists of checksums.

    sums: by the name of a file its checksums by their algorithms, the best one first.
    """

    place: str
    names: list[str]
    sums: dict[str, dict[str, str]]


def find_dumps(
    source: str,
    wiki: str | None,
    pattern: str,
    client: MirrorClient,
    say: Callable[[str], None],
    *,
    may_be_empty: bool = True,
) -> Iterator[Dump] | None:
    """Return the complete dumps in a folder, and in folders below it whose names are dates, newest first.

    Args:
      source: the folder: a directory, gs://… or the address of a web server's index.
      wiki: only dumps whose names begin so; None: of any, which must be one.
      pattern: a glob of the names of dump files.
      client: reads the folder.
      say: is told why a dump does not count.
      may_be_empty: whether a folder without any file of a dump counts as one in which there is no dump yet.

    Returns:
      The dumps; None where there is no such folder.

    Raises:
      UnusableInputError, RunFailedError: the folder cannot be read.
    """
    names = client.names(source)
    if names is None:
        return None
    folders = [_read_folder(source, names, client)]
    for name in names:
        if name.endswith("/") and _DATED_FOLDER.fullmatch(name.rstrip("/")):
            place = files.join(source, name.rstrip("/"))
            folders.append(_read_folder(place, client.names(place) or [], client))
    by_dump = _by_dump(folders, wiki, pattern)
    if len(wikis := sorted({of_wiki for _, of_wiki in by_dump})) > 1:
        raise UnusableInputError(
            f"{source}: there are dumps of several wikis ({', '.join(wikis)}); name the wanted one as watch.wiki."
        )
    if not by_dump and not may_be_empty:
        return None
    newest_first = [(*key, by_dump[key]) for key in sorted(by_dump, reverse=True)]
    return complete(
        (
            (folder.place, f"the dump {of_wiki}-{date}", _read_dump(folder, of_wiki, date, pattern, client))
            for date, of_wiki, folder in newest_first
        ),
        say,
    )


def _read_folder(place: str, names: list[str], client: MirrorClient) -> _Folder:
    lists = [name for name in names if algorithm_in_name(name)]
    sums: dict[str, dict[str, str]] = {}
    for name in sorted(lists, key=lambda name: PREFERRED.index(algorithm_in_name(name))):
        for file, (checksum, algorithm) in read_checksums(client.read(files.join(place, name)) or b"").items():
            sums.setdefault(file, {}).setdefault(algorithm, checksum)
    return _Folder(place=place, names=[name for name in names if not name.endswith("/")], sums=sums)


def _by_dump(folders: list[_Folder], wiki: str | None, pattern: str) -> dict[tuple[str, str], _Folder]:
    """Return the folder of each dump, by its date and its wiki; of dumps that are not complete, too."""
    by_dump: dict[tuple[str, str], _Folder] = {}
    for folder in folders:
        for name in {*folder.names, *folder.sums}:
            plain = name.removesuffix(next((end for end in _UNFINISHED if name.endswith(end)), ""))
            if matching([plain], pattern) and not algorithm_in_name(name) and (key := _dump_of(folder, plain, wiki)):
                by_dump[key] = folder
    return by_dump


def _dump_of(folder: _Folder, name: str, wiki: str | None) -> tuple[str, str] | None:
    """Return the date and the wiki of the dump that a file belongs to; None if it is none that is looked for."""
    date = date_in_name(name) or date_in_name(f"{folder.place}/{name}")
    match = _WIKI.match(name)
    of_wiki = match[1] if match else wiki
    if not date or of_wiki is None or (wiki is not None and of_wiki != wiki):
        return None
    return date, of_wiki


def _read_dump(folder: _Folder, wiki: str, date: str, pattern: str, client: MirrorClient) -> Dump | str:
    """Return the dump in a folder, or a clause that says why it is not complete."""

    def of_dump(names: list[str]) -> list[str]:
        return [name for name in matching(names, pattern) if _dump_of(folder, name, wiki) == (date, wiki)]

    for name in folder.names:
        end = next((end for end in _UNFINISHED if name.endswith(end)), "")
        if end and of_dump([name.removesuffix(end)]):
            return f"{name} is still being written"
    there, listed = of_dump(folder.names), of_dump(list(folder.sums))
    if missing := sorted(set(listed) - set(there)):
        return f"{missing[0]} is in the list of checksums but not there yet"
    chosen = choose_pages_files([name for name in there if not algorithm_in_name(name)])
    if not chosen:
        return "it has no file of pages"
    if unlisted := [name for name in chosen if listed and name not in folder.sums]:
        return f"{unlisted[0]} is not in the list of checksums"
    if gap := missing_part(chosen, from_start=False):
        # A pattern may choose some parts of a dump that is whole.
        everything = [name for name in folder.names if _dump_of(folder, name, wiki) == (date, wiki)]
        if missing_part(choose_pages_files(everything), from_start=False):
            return gap
    chosen_files = []
    for name in filter(lambda name: not is_index(name), chosen):
        place = files.join(folder.place, name)
        # A web server is asked only where no checksum will tell whether the file is the one that is listed here.
        facts = Facts() if listed and is_web(place) else client.facts(place)
        if facts is None:
            return f"{name} has just gone"
        if not listed and facts.modified is not None and facts.modified > time.time() - _SETTLED:
            return f"{name} changed less than ten minutes ago, and no list of checksums has it"
        chosen_files.append(DumpFile(name=name, url=place, size=facts.size, sums=folder.sums.get(name, {})))
    return part_twice(chosen_files) or Dump(wiki=wiki, date=date, layout=LAYOUT, files=tuple(chosen_files))
