"""A dump's files on this machine: downloads that go on where they stopped, and are checked.

A dump lies at DOWNLOADS/WIKI-DATE/ under its files' own names. NAME.part is a file under way, NAME.part.json says of
what. dump.part.json names the dump that is being downloaded, and dump.json, written last, the one that is complete.
"""

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import http.client
import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from transforms.errors import MissingFileError, RunFailedError, UnusableInputError
from transforms.mirrors.client import MirrorClient, is_web
from transforms.mirrors.dumps import Dump, DumpFile
from transforms.storage import completions, files
from transforms.storage.web_client import RefusedError, TransientError

COMPLETE = "dump.json"
_UNDER_WAY = "dump.part.json"
_PART = ".part"
_KIND, _KEY = "dump", "files"
_MOST_CONNECTIONS = 3  # Wikimedia allows no more
_BLOCK = 1 << 20
_ATTEMPTS = 2  # at a file whose checksum is wrong

Progress = Callable[[str, int, int | None], None]


class DumpGoneError(RunFailedError):
    """A file of the dump is not on the mirror any more."""


class DumpChangedError(RunFailedError):
    """The mirror has other files under the same names than when the dump was found; look for it again."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Part:
    """What a part of a file is of: as the mirror described it when the download began."""

    url: str
    checksum: str
    size: int | None
    etag: str


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
    if not is_remote(dump):
        _complete(directory, dump)  # which dump it is, and where its files lie
        return paths_of(directory, dump)
    _begin(directory, dump)
    stop = threading.Event()
    wanted = [file for file in dump.files if not file.is_index]
    _check_room(directory, wanted)
    with concurrent.futures.ThreadPoolExecutor(min(max(1, connections), _MOST_CONNECTIONS)) as threads:
        tasks = [threads.submit(_fetch, file, directory, client, stop, progress) for file in wanted]
        try:
            for task in concurrent.futures.as_completed(tasks):
                task.result()
        except BaseException:
            stop.set()
            threads.shutdown(wait=False, cancel_futures=True)
            raise
    _complete(directory, dump)
    files.delete([files.join(directory, _UNDER_WAY)])
    return paths_of(directory, dump)


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
    path = files.join(directory, COMPLETE)
    if not files.exists(path):
        return None
    record = completions.unsealed_json(_KIND, _KEY, files.read_bytes(path))
    return None if record is None else _dump_of(record)


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
    """Deletes what a download has made; dump.json goes first, so that no dump without its files counts as complete."""
    files.delete([files.join(directory, COMPLETE)])
    files.delete(files.list_directory(directory))
    if files.is_local(directory):
        with contextlib.suppress(FileNotFoundError, OSError):
            os.rmdir(directory)  # it stays if somebody keeps files of their own in it


def _begin(directory: str, dump: Dump) -> None:
    """Makes a directory ready for a dump: what lies there of another publication of it is deleted."""
    under_way, complete = files.join(directory, _UNDER_WAY), files.join(directory, COMPLETE)
    record = completions.sealed_json(_KIND, _KEY, _record(dump))
    if files.exists(under_way) and files.read_bytes(under_way) == record:
        return
    files.delete([complete])
    names = {file.name for file in dump.files}
    if files.exists(under_way):
        before = completions.unsealed_json(_KIND, _KEY, files.read_bytes(under_way))
        names |= set() if before is None else {file["name"] for file in before["files"]}
    files.delete([files.join(directory, name) for name in sorted(names)])
    files.write_bytes(under_way, record)


def _check_room(directory: str, wanted: list[DumpFile]) -> None:
    """Says at once that a disk is too small.

    Raises:
      RunFailedError: it is.
    """
    if not files.is_local(directory):
        return
    missing = sum(
        max(0, (file.size or 0) - _size_of(path + _PART))
        for file in wanted
        if not os.path.exists(path := files.join(directory, file.name))
    )
    free = shutil.disk_usage(directory).free
    if missing > free:
        raise RunFailedError(
            f"{directory}: this download needs {missing / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free; make room, "
            "or name another directory by watch.downloads."
        )


def _size_of(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _fetch(file: DumpFile, directory: str, client: MirrorClient, stop: threading.Event, progress: Progress) -> None:
    """Downloads a file, if it is not there, and checks it."""
    path = files.join(directory, file.name)
    if files.exists(path):
        return  # it got its name when it was whole and right
    fetch = _fetch_local if files.is_local(path) else _fetch_to_bucket
    try:
        for attempt in range(_ATTEMPTS):
            digest = fetch(file, path, client, stop, progress)
            if digest == file.checksum:
                return
            if attempt + 1 == _ATTEMPTS:
                raise DumpChangedError(
                    f"{file.url}: its {file.algorithm} is {digest}, and the mirror says {file.checksum}; it was "
                    "downloaded twice. The mirror may be replacing it: run the same command again later."
                )
    except MissingFileError as error:
        raise DumpGoneError(
            f"{file.url}: this file is not on the mirror any more; run the same command again for the dump that is."
        ) from error


def _fetch_local(file: DumpFile, path: str, client: MirrorClient, stop: threading.Event, progress: Progress) -> str:
    """Downloads a file to a local disk and returns its checksum; it has its name if that is right."""
    part = path + _PART

    def attempt() -> None:
        _fetch_rest(file, part, client, stop, progress)

    client.web.patiently(file.url, file.url, attempt)
    digest = _digest(part, file.algorithm)
    if digest == file.checksum:
        with open(part, "rb") as written:
            os.fsync(written.fileno())
        os.replace(part, path)
    else:
        os.unlink(part)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{part}.json")
    return digest


def _digest(path: str, algorithm: str) -> str:
    """The checksum of a file; empty where the mirror has published none."""
    if not algorithm:
        return ""
    with open(path, "rb") as content:
        return hashlib.file_digest(content, algorithm).hexdigest()


def _fetch_rest(file: DumpFile, part: str, client: MirrorClient, stop: threading.Event, progress: Progress) -> None:
    """Makes one request for what is missing of a file, and appends what comes.

    Raises:
      TransientError: the connection failed; what came stays.
      DumpChangedError: the file is not the one whose part is there.
    """
    before = _read_part(part)
    start = _size_of(part) if before is not None and (before.url, before.checksum) == (file.url, file.checksum) else 0
    headers = {}
    if start and before is not None:
        if before.size == start:
            return
        headers = {"Range": f"bytes={start}-"}
        if before.etag and not before.etag.startswith("W/"):
            headers["If-Range"] = before.etag
    try:
        with client.answer("GET", file.url, headers) as response:
            start, size = _where(response, start, file)
            etag = response.headers.get("ETag", "")
            if start and before is not None and before.size not in (None, size):
                os.unlink(part)
                raise DumpChangedError(
                    f"{file.url}: this file was replaced while it was read; run the same command again."
                )
            _write_part(part, _Part(url=file.url, checksum=file.checksum, size=size, etag=etag))
            _append(response, part, start, size, stop, lambda done: progress(file.name, done, size))
    except RefusedError:
        if not headers:
            raise
        # The part is longer than the file, or the server does not take the range: from the beginning.
        os.unlink(part)
        raise TransientError("the server refused to go on", progressed=False) from None


def _where(response: http.client.HTTPResponse, start: int, file: DumpFile) -> tuple[int, int | None]:
    """Where what comes belongs in the file, and the size of the whole file, None where the server does not say.

    Raises:
      DumpChangedError: it is not the size that the mirror lists.
    """
    length = response.length
    size = None if length is None else length
    if response.status == HTTPStatus.PARTIAL_CONTENT:
        match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", response.headers.get("Content-Range", "").strip())
        if match is None or int(match[1]) != start:
            raise TransientError("it sent another part than it was asked for")
        size = None if match[3] == "*" else int(match[3])
    else:
        start = 0  # it ignores ranges, or the file is another than before
    if size is not None and file.size is not None and size != file.size:
        raise DumpChangedError(
            f"{file.url}: the mirror lists {file.size:,} bytes and sends {size:,}: it is replacing this file; run the "
            "same command again later."
        )
    return start, file.size if size is None else size


def _append(
    response: http.client.HTTPResponse,
    part: str,
    start: int,
    size: int | None,
    stop: threading.Event,
    progress: Callable[[int], None],
) -> None:
    """Writes what comes to a part from `start` on."""
    done = start
    with _writing(part), open(part, "r+b" if os.path.exists(part) else "wb") as output:
        output.truncate(start)
        output.seek(start)
        for block in _blocks(response, start):
            if stop.is_set():
                return
            output.write(block)
            done += len(block)
            progress(done)
    if size is not None and done < size:
        raise TransientError("the connection was cut", progressed=done > start)


def _blocks(response: http.client.HTTPResponse, start: int) -> Iterator[bytes]:
    """What comes, in blocks.

    Raises:
      TransientError: the connection failed.
    """
    came = False
    while True:
        try:
            block = response.read1(_BLOCK)
        except (OSError, http.client.HTTPException) as error:
            text = "nothing came in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
            raise TransientError(text, progressed=came) from error
        if not block:
            return
        came = True
        yield block


@contextlib.contextmanager
def _writing(path: str) -> Iterator[None]:
    """Turns what a disk refuses into a sentence.

    Raises:
      RunFailedError: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise RunFailedError(
            f"{path}: this file cannot be written ({error.strerror or error}); what is there stays. Make room, and run "
            "the same command again."
        ) from error


def _read_part(part: str) -> _Part | None:
    """What the part of a file is of; None where nothing can be made of it."""
    try:
        with open(f"{part}.json", "rb") as described:
            return _Part(**json.loads(described.read()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _write_part(part: str, described: _Part) -> None:
    content = completions.canonical_json(described).encode()
    if _read_part(part) != described:
        files.write_bytes(f"{part}.json", content)


def _fetch_to_bucket(file: DumpFile, path: str, client: MirrorClient, stop: threading.Event, progress: Progress) -> str:
    """Downloads a file to an object store and returns its checksum; the object appears if that is right.

    An object is written in one go, so a file that was interrupted begins again.
    """

    def attempt() -> str:
        digest = hashlib.new(file.algorithm) if file.algorithm else None
        done = 0
        with client.answer("GET", file.url) as response:
            _, size = _where(response, 0, file)
            with contextlib.suppress(_WrongChecksum), files.new_file(path, checksum=False) as output:
                for block in _blocks(response, 0):
                    if stop.is_set():
                        raise RunFailedError(f"{file.url}: another file failed, so this download was stopped.")
                    output.write(block)
                    done += len(block)
                    if digest is not None:
                        digest.update(block)
                    progress(file.name, done, size)
                if size is not None and done < size:
                    raise TransientError("the connection was cut")
                found = digest.hexdigest() if digest is not None else ""
                if found != file.checksum:
                    raise _WrongChecksum
        return found

    return client.web.patiently(file.url, file.url, attempt)


class _WrongChecksum(Exception):
    """Ends the writing of an object without making it visible."""
