"""A dump's files on this machine: downloads that go on where they stopped, and are checked.

A dump lies at DOWNLOADS/WIKI-DATE/ under its files' own names. NAME.part is a file under way, NAME.part.json says of
what. dump.part.json names the dump that is being downloaded, and dump.json, written last, the one that is complete.
"""

import concurrent.futures
import contextlib
import dataclasses
import os
import re
import shutil
from collections.abc import Mapping
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import Dump, DumpChangedError, DumpFile, DumpGoneError
from maskmill.mirrors.fetching import PART, PART_RECORD, Fetching, Progress, check, fetch
from maskmill.storage import completions, files
from maskmill.storage.paths import is_web

__all__ = [
    "COMPLETE", "DumpChangedError", "DumpGoneError", "Progress", "delete_downloaded", "directory_of", "download",
    "downloaded_dumps", "is_downloaded", "is_remote", "paths_of", "read_downloaded", "unfinished_downloads",
]  # fmt: skip

COMPLETE = "dump.json"
_UNDER_WAY = "dump.part.json"
_KIND, _KEY = "dump", "files"
_MOST_CONNECTIONS = 3  # Wikimedia allows no more


def is_remote(dump: Dump) -> bool:
    """Whether a dump must be downloaded; others are read where they are."""
    return any(is_web(file.url) for file in dump.files)


def directory_of(downloads: str, dump: Dump) -> str:
    """Where a dump is downloaded to."""
    return files.join(downloads, f"{dump.wiki}-{dump.date}")


def paths_of(directory: str, dump: Dump) -> list[str]:
    """The paths of the files with a dump's pages: in the directory of its download, or where they are."""
    return [
        files.join(directory, file.name) if is_web(file.url) else file.url for file in dump.files if not file.is_index
    ]


def download(
    dump: Dump,
    downloads: str,
    *,
    client: MirrorClient,
    connections: int = _MOST_CONNECTIONS,
    progress: Progress = lambda name, done, size: None,
) -> list[str]:
    """Downloads the pages' files of a dump, unless they are there, and checks them. Indexes are left out.

    Args:
      dump: as newest.dumps gives it.
      downloads: the directory of all downloads, local or gs://.
      client: reads the mirror.
      connections: how many files at a time, 3 at most.
      progress: is told of a file's name, its bytes that are there, and its size (None: not known); from any thread.

    Returns:
      The paths of the files. `read_downloaded` of their directory gives the dump from now on.

    Raises:
      DumpGoneError: a file has vanished.
      DumpChangedError: a file was replaced while it was read.
      UnusableInputError, RunFailedError: a file cannot be read, written, or has the wrong checksum.
    """
    directory = directory_of(downloads, dump)
    if is_downloaded(dump, downloads):
        return paths_of(directory, dump)
    files.make_directory(directory)
    wanted = [file for file in dump.files if not file.is_index]
    fetching = Fetching(client, progress)
    if not is_remote(dump):
        for file in wanted:
            check(file, fetching)
        _complete(directory, dump)  # which dump it is, and where its files lie
        return paths_of(directory, dump)
    _begin(directory, dump)
    _check_room(directory, wanted, client)
    _fetch_all(wanted, directory, fetching, min(max(1, connections), _MOST_CONNECTIONS))
    _complete(directory, dump)
    files.delete([files.join(directory, _UNDER_WAY)])
    return paths_of(directory, dump)


def _fetch_all(wanted: list[DumpFile], directory: str, fetching: Fetching, connections: int) -> None:
    """Downloads files side by side; the first that fails ends all, and what came of the others stays."""
    with concurrent.futures.ThreadPoolExecutor(connections) as threads:
        tasks = [threads.submit(fetch, file, files.join(directory, file.name), fetching) for file in wanted]
        try:
            for task in concurrent.futures.as_completed(tasks):
                task.result()
        except BaseException as error:
            fetching.stop()
            threads.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, DumpChangedError) and not all(file.checksum for file in wanted):
                # Without checksums nobody can tell which of the files that are here belong to the new dump.
                threads.shutdown(wait=True)
                _forget(directory)
            raise


def is_downloaded(dump: Dump, downloads: str) -> bool:
    """Whether the download of a dump is complete, and its files are still there; raises as `read_downloaded`."""
    directory = directory_of(downloads, dump)
    return read_downloaded(directory) == _as_kept(dump) and all(map(files.exists, paths_of(directory, dump)))


def _complete(directory: str, dump: Dump) -> None:
    files.write_bytes(files.join(directory, COMPLETE), completions.sealed_json(_KIND, _KEY, _record(dump)))


def _as_kept(dump: Dump) -> Dump:
    """A dump as `read_downloaded` gives it: with a tuple of files, and without their indexes."""
    return dataclasses.replace(dump, files=tuple(file for file in dump.files if not file.is_index))


def _record(dump: Dump) -> dict[str, Any]:
    return dataclasses.asdict(_as_kept(dump))


def _dump_of(record: Mapping[str, Any]) -> Dump:
    return Dump(**{**record, "files": tuple(DumpFile(**file) for file in record["files"])})


def read_downloaded(directory: str) -> Dump | None:
    """The dump whose download into a directory is complete; None where there is none.

    Raises:
      UnusableInputError, RunFailedError: the directory cannot be read.
    """
    return _read_record(files.join(directory, COMPLETE))


def downloaded_dumps(downloads: str) -> list[tuple[str, Dump]]:
    """The dumps whose downloads are complete, each with its directory, newest first.

    Raises:
      UnusableInputError, RunFailedError: the directory cannot be read.
    """
    if files.is_local(downloads):
        folders = (
            sorted(entry.path for entry in os.scandir(downloads) if entry.is_dir()) if os.path.isdir(downloads) else []
        )
    else:
        try:
            folders = [files.parent(file.path) for file in files.match([f"{downloads}/*/{COMPLETE}"])]
        except UnusableInputError:
            folders = []
    found = [(folder, dump) for folder in folders if (dump := read_downloaded(folder)) is not None]
    return sorted(found, key=lambda pair: (pair[1].date, pair[1].wiki), reverse=True)


def unfinished_downloads(downloads: str, wiki: str) -> list[tuple[str, str]]:
    """The directories of a wiki's downloads that are not complete, each with the ISO date of its dump.

    They are under way, or what a dump that vanished, or a deletion that was killed, has left.

    Raises:
      UnusableInputError, RunFailedError: the directory cannot be read.
    """
    if files.is_local(downloads):
        names = os.listdir(downloads) if os.path.isdir(downloads) else []
    else:
        try:
            paths = [file.path for file in files.match([f"{downloads}/{wiki}-*/*"])]
        except UnusableInputError:
            paths = []  # nothing matches
        names = sorted({files.base_name(files.parent(path)) for path in paths})
    dated = re.compile(re.escape(wiki) + r"-(\d{4}-\d\d-\d\d)")
    found = [(files.join(downloads, name), match[1]) for name in sorted(names) if (match := dated.fullmatch(name))]
    return [(directory, date) for directory, date in found if not files.exists(files.join(directory, COMPLETE))]


def delete_downloaded(directory: str) -> None:
    """Deletes what a download has made; files of others stay.

    dump.json goes first, so that no dump without its files counts as complete; who is killed meanwhile can do it again.
    """
    _forget(directory)
    if files.is_local(directory):
        with contextlib.suppress(OSError):
            os.rmdir(directory)  # it stays if somebody keeps files of their own in it


def _forget(directory: str) -> None:
    """Deletes the files of a download and then its record."""
    complete, under_way = files.join(directory, COMPLETE), files.join(directory, _UNDER_WAY)
    if files.exists(complete):
        # The names of the files are needed until the last is deleted.
        if not files.exists(under_way):
            files.write_bytes(under_way, files.read_bytes(complete))
        files.delete([complete])
    # Beside those of the record, which may be damaged, all that begin as this dump's do.
    wiki, _, date = files.base_name(directory).partition("-")
    starts = (f"{wiki}-{date}", f"{wiki}-{date.replace('-', '')}")
    named = {file.name for file in dump.files} if (dump := _read_record(under_way)) is not None else set()
    found = [
        path
        for path in files.list_directory(directory)
        if (name := files.base_name(path)).startswith(starts)
        or name.removesuffix(PART_RECORD).removesuffix(PART) in named
        or name.endswith(files.TEMPORARY_SUFFIX)
    ]
    files.delete(found)
    files.delete([under_way])


def _read_record(path: str) -> Dump | None:
    """The dump that a record names; None where there is none, or a damaged one."""
    if not files.exists(path):
        return None
    record = completions.unsealed_json(_KIND, _KEY, files.read_bytes(path))
    return None if record is None else _dump_of(record)


def _begin(directory: str, dump: Dump) -> None:
    """Makes a directory ready for a dump: what lies there of another publication of it is deleted."""
    under_way, complete = files.join(directory, _UNDER_WAY), files.join(directory, COMPLETE)
    if _as_kept(dump) not in (_read_record(under_way), _read_record(complete)):
        _forget(directory)
    files.write_bytes(under_way, completions.sealed_json(_KIND, _KEY, _record(dump)))
    files.delete([complete])


def _check_room(directory: str, wanted: list[DumpFile], client: MirrorClient) -> None:
    """Says at once that a disk is too small; asks for the sizes that the mirror does not list.

    Raises:
      RunFailedError: it is.
    """
    if not files.is_local(directory):
        return
    missing = 0
    for file in wanted:
        path = files.join(directory, file.name)
        if not os.path.exists(path):
            size = file.size
            if size is None:
                facts = client.facts(file.url)
                size = None if facts is None else facts.size
            missing += max(0, (size or 0) - _size_of(path + PART))
    free = shutil.disk_usage(directory).free
    if missing > free:
        raise RunFailedError(
            f"{directory}: this download needs {_amount(missing)}, and {_amount(free)} are free; make room, "
            "or name another directory by watch.downloads."
        )


def _amount(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"


def _size_of(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0
