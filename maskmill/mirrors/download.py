"""A dump's files on this machine: downloads that continue where they stopped, and are checked.

A dump is at DOWNLOADS/WIKI-DATE/ under its files' own names; NAME.part is an unfinished file. dump.part.json names the
dump that is being downloaded, and dump.json, written last, a complete one.
"""

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import io
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from maskmill.errors import MissingFileError, RunFailedError
from maskmill.mirrors.client import MirrorClient, TransientError
from maskmill.mirrors.dumps import Dump, DumpChangedError, DumpFile
from maskmill.storage import completions, files
from maskmill.storage.paths import is_web

COMPLETE = "dump.json"
_UNDER_WAY = "dump.part.json"
_KIND, _KEY = "dump", "files"
_MOST_CONNECTIONS = 3  # Wikimedia allows no more
_PART = ".part"
_BLOCK = 1 << 20

# Called with a file's name and the number of its bytes that are downloaded.
Progress = Callable[[str, int], None]


def is_remote(dump: Dump) -> bool:
    """Return whether a dump must be downloaded; other dumps are read in place."""
    return any(is_web(file.url) for file in dump.files)


def directory_of(downloads: str, dump: Dump) -> str:
    """Return the directory that a dump is downloaded to."""
    return files.join(downloads, f"{dump.wiki}-{dump.date}")


def paths_of(directory: str, dump: Dump) -> list[str]:
    """Return the paths of a dump's files: in its download directory, or where they are read in place."""
    return [files.join(directory, file.name) if is_web(file.url) else file.url for file in dump.files]


def download(
    dump: Dump,
    downloads: str,
    *,
    client: MirrorClient,
    connections: int = _MOST_CONNECTIONS,
    progress: Progress = lambda name, done: None,
) -> list[str]:
    """Download the files of a dump that are missing, and check them.

    Args:
      dump: one of wikimedia.find_dumps.
      downloads: the directory of all downloads, local or gs://.
      client: reads the mirror.
      connections: the number of files at a time, 3 at most.
      progress: called from any thread with a file's name and the number of its bytes that are downloaded.

    Returns:
      The paths of the files.

    Raises:
      DumpChangedError: a file was replaced while it was read, or has the wrong checksum.
      UnusableInputError, RunFailedError: a file is gone, or cannot be read or written.
    """
    directory = directory_of(downloads, dump)
    if is_downloaded(dump, downloads):
        return paths_of(directory, dump)
    files.make_directory(directory)
    if not is_remote(dump):
        for file in dump.files:
            _check_in_place(file, progress)
        _write_record(directory, COMPLETE, dump)  # the dump, and the places of its files
        return paths_of(directory, dump)
    if dump not in (_read_record(directory, _UNDER_WAY), _read_record(directory)):
        delete_downloaded(directory)  # of another publication of the dump
    _write_record(directory, _UNDER_WAY, dump)
    files.delete([files.join(directory, COMPLETE)])
    _check_room(directory, dump)
    _fetch_all(dump, directory, client, min(max(1, connections), _MOST_CONNECTIONS), progress)
    _write_record(directory, COMPLETE, dump)
    files.delete([files.join(directory, _UNDER_WAY)])
    return paths_of(directory, dump)


def _fetch_all(dump: Dump, directory: str, client: MirrorClient, connections: int, progress: Progress) -> None:
    """Download files side by side; the first failure ends all, and the bytes downloaded so far stay."""
    client.stopped.clear()
    with concurrent.futures.ThreadPoolExecutor(connections) as threads:
        paths = [files.join(directory, file.name) for file in dump.files]
        tasks = [threads.submit(_fetch, *of, client, progress) for of in zip(dump.files, paths, strict=True)]
        try:
            for task in concurrent.futures.as_completed(tasks):
                task.result()
        except BaseException:
            client.stopped.set()
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def is_downloaded(dump: Dump, downloads: str) -> bool:
    """Return whether the download of a dump is complete, and its files still exist."""
    directory = directory_of(downloads, dump)
    return _read_record(directory) == dump and all(map(files.exists, paths_of(directory, dump)))


def _write_record(directory: str, name: str, dump: Dump) -> None:
    files.write_bytes(files.join(directory, name), completions.sealed_json(_KIND, _KEY, dataclasses.asdict(dump)))


def _read_record(directory: str, name: str = COMPLETE) -> Dump | None:
    """Return the dump in a record; None if there is no record, or it is damaged."""
    content = files.read_if_there(files.join(directory, name))
    record: Mapping[str, Any] | None = completions.unsealed_json(_KIND, _KEY, content or b"")
    return None if record is None else Dump(**{**record, "files": tuple(DumpFile(**f) for f in record["files"])})


def downloaded_dumps(downloads: str) -> list[tuple[str, Dump]]:
    """Return the dumps whose downloads are complete, each with its directory, newest first.

    Raises:
      UnusableInputError, RunFailedError: the directory cannot be read.
    """
    folders = [files.join(downloads, name) for name in files.list_folders(downloads)]
    found = [(folder, dump) for folder in folders if (dump := _read_record(folder)) is not None]
    return sorted(found, key=lambda pair: (pair[1].date, pair[1].wiki), reverse=True)


def unfinished_downloads(downloads: str, wiki: str) -> list[tuple[str, str]]:
    """Return the directories of a wiki's unfinished downloads, each with the ISO date of its dump.

    They are in progress, or left over from a dump that disappeared, or from a deletion that was killed.

    Raises:
      UnusableInputError, RunFailedError: the directory cannot be read.
    """
    dated = re.compile(re.escape(wiki) + r"-(\d{4}-\d\d-\d\d)")
    names = [(files.join(downloads, name), dated.fullmatch(name)) for name in files.list_folders(downloads)]
    return [(place, match[1]) for place, match in names if match and not files.exists(files.join(place, COMPLETE))]


def delete_downloaded(directory: str) -> None:
    """Delete the files of a download; other files stay. It can be repeated after a kill."""
    files.delete([files.join(directory, COMPLETE)])  # no dump without its files counts as complete
    own = (files.base_name(directory)[: -len("2026-03-01")], COMPLETE, _UNDER_WAY)
    files.delete([path for path in files.list_directory(directory) if files.base_name(path).startswith(own)])
    if files.is_local(directory):
        with contextlib.suppress(OSError):
            os.rmdir(directory)  # it stays if somebody keeps other files in it


def _check_room(directory: str, dump: Dump) -> None:
    """Raise RunFailedError early if a disk is too small for the files whose sizes the mirror lists."""
    if not files.is_local(directory):
        return
    present = sum(map(files.size, files.list_directory(directory)))
    missing, free = sum(file.size or 0 for file in dump.files) - present, shutil.disk_usage(directory).free
    if missing > free:
        raise RunFailedError(
            f"{directory}: this download needs {_amount(missing)}, and {_amount(free)} are free; make room, "
            "or name another directory by watch.downloads."
        )


def _amount(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"


def _wrong_checksum(file: DumpFile, path: str, progress: Callable[[int], None] = lambda done: None) -> str:
    """Return a clause that names the first wrong checksum of a file; empty if all are right.

    progress: called with the number of bytes read so far.
    """
    digests, done = {algorithm: hashlib.new(algorithm) for algorithm in file.sums}, 0
    with files.open_input(path) as content:
        while block := content.read(_BLOCK):
            for digest in digests.values():
                digest.update(block)
            done += len(block)
            progress(done)
    for algorithm, published in file.sums.items():
        if (found := digests[algorithm].hexdigest()) != published:
            return f"its {algorithm} is {found}, and the mirror says {published}"
    return ""


def _check_in_place(file: DumpFile, progress: Progress) -> None:
    """Compare a file that is read in place, in a directory or a bucket, with its checksums.

    Raises:
      DumpChangedError: a checksum is wrong.
      UnusableInputError, RunFailedError: the file cannot be read.
    """
    if wrong := _wrong_checksum(file, file.url, lambda done: progress(file.name, done)):
        raise DumpChangedError(
            f"{file.url}: {wrong}; this copy is damaged, or incomplete: copy it again, and run the same command again."
        )


def _fetch(file: DumpFile, path: str, client: MirrorClient, progress: Progress) -> None:
    """Download a file if it is missing, and check it; it gets its name when it is complete and correct.

    Raises as `download`.
    """
    if files.exists(path):
        return
    with contextlib.ExitStack() as stack:
        local = path
        if not files.is_local(path):  # objects cannot be appended to: the file is downloaded to this machine first
            local = os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), file.name)
        try:
            wrong = _receive(file, local, client, progress) and _receive(file, local, client, progress)
        except MissingFileError as error:
            raise RunFailedError(
                f"{file.url}: this file is no longer on the mirror; run the same command again later."
            ) from error
        if wrong:
            raise DumpChangedError(
                f"{file.url}: {wrong}; it was downloaded twice. The mirror may be replacing it: run the same command "
                "again later."
            )
        if local != path:
            with open(local, "rb") as content, files.new_file(path, checksum=False) as output:
                while block := content.read(_BLOCK):
                    output.write(block)


def _receive(file: DumpFile, path: str, client: MirrorClient, progress: Progress) -> str:
    """Download a file to a local disk, continuing after the bytes that are there.

    Returns:
      A clause that names a wrong checksum, after deleting the file; empty if all are right.

    Raises:
      RunFailedError: the download fails, or the file cannot be written.
    """
    try:
        # Nothing is buffered in this process, so that a kill loses nothing that was received.
        with open(path + _PART, "ab", buffering=0) as part:
            client.patiently(file.url, lambda: _request_rest(file, part, client, progress), part.tell)
            wrong = _wrong_checksum(file, part.name)
            os.fsync(part.fileno())
            os.unlink(part.name) if wrong else os.replace(part.name, path)
            return wrong
    except OSError as error:
        raise RunFailedError(
            f"{path}: this file cannot be written ({error.strerror or error}); its part file stays. Make room, and run "
            "the same command again."
        ) from error


def _request_rest(file: DumpFile, part: io.FileIO, client: MirrorClient, progress: Progress) -> None:
    """Make one request for the rest of a file, and append it. The checksums are compared later.

    Raises:
      TransientError: the connection failed, or another part was sent; the bytes so far stay.
      DumpChangedError: the file's size differs from the mirror's list.
    """
    done = part.tell()
    if done and done == file.size:
        return
    with client.answer(file.url, {"Range": f"bytes={done}-"} if done else {}) as answer:
        if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:  # the file is complete
            return
        is_rest = answer.headers.get("Content-Range", "").startswith(f"bytes {done}-")
        if not is_rest:
            part.seek(0)
            part.truncate()
            if answer.status == HTTPStatus.PARTIAL_CONTENT:
                raise TransientError("it sent another part than the requested one")
        size = None if answer.length_remaining is None else part.tell() + answer.length_remaining
        if size is not None and file.size not in (None, size):
            raise DumpChangedError(
                f"{file.url}: the mirror lists {file.size:,} bytes and sends {size:,}: it is replacing this file; run "
                "the same command again later."
            )
        while rest := memoryview(answer.read1(_BLOCK)):
            while rest:
                rest = rest[part.write(rest) :]
            progress(file.name, part.tell())
            client.check_stopped(file.url)
