"""A dump's files on this machine: downloads that go on where they stopped, and are checked.

A dump lies at DOWNLOADS/WIKI-DATE/ under its files' own names. NAME.part is a file under way, NAME.part.json says of
what. dump.part.json names the dump that is being downloaded, and dump.json, written last, the one that is complete.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import hashlib
import http
import io
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import urllib3

from maskmill.errors import MissingFileError, RunFailedError
from maskmill.mirrors.client import MirrorClient, NoSuchRangeError, TransientError
from maskmill.mirrors.dumps import Dump, DumpChangedError, DumpFile
from maskmill.storage import completions, files
from maskmill.storage.paths import is_web

COMPLETE = "dump.json"
_UNDER_WAY = "dump.part.json"
_KIND, _KEY = "dump", "files"
_MOST_CONNECTIONS = 3  # Wikimedia allows no more
_PART, _PART_RECORD = ".part", ".part.json"
_BLOCK = 1 << 20

# Is told of a file's name, the bytes of it that are there, and its size (None: not known).
Progress = Callable[[str, int, int | None], None]


class StoppedError(Exception):
    """The download of a file ends because that of another has failed; its part stays."""


def is_remote(dump: Dump) -> bool:
    """Say whether a dump must be downloaded; others are read where they are."""
    return any(is_web(file.url) for file in dump.files)


def directory_of(downloads: str, dump: Dump) -> str:
    """Return where a dump is downloaded to."""
    return files.join(downloads, f"{dump.wiki}-{dump.date}")


def paths_of(directory: str, dump: Dump) -> list[str]:
    """Return the paths of a dump's files: in the directory of its download, or where they are."""
    return [files.join(directory, file.name) if is_web(file.url) else file.url for file in dump.files]


def download(
    dump: Dump,
    downloads: str,
    *,
    client: MirrorClient,
    connections: int = _MOST_CONNECTIONS,
    progress: Progress = lambda name, done, size: None,
) -> list[str]:
    """Download the files of a dump, unless they are there, and check them.

    Args:
      dump: as newest.dumps gives it.
      downloads: the directory of all downloads, local or gs://.
      client: reads the mirror.
      connections: how many files at a time, 3 at most.
      progress: is told of a file's name, its bytes that are there, and its size (None: not known); from any thread.

    Returns:
      The paths of the files. `read_downloaded` of their directory gives the dump from now on.

    Raises:
      DumpChangedError: a file was replaced while it was read, or has the wrong checksum.
      UnusableInputError, RunFailedError: a file has vanished, or cannot be read or written.
    """
    directory = directory_of(downloads, dump)
    if is_downloaded(dump, downloads):
        return paths_of(directory, dump)
    files.make_directory(directory)
    if not is_remote(dump):
        for file in dump.files:
            _check_in_place(file, progress)
        _write_record(directory, COMPLETE, dump)  # which dump it is, and where its files lie
        return paths_of(directory, dump)
    if dump not in (_read_record(directory, _UNDER_WAY), read_downloaded(directory)):
        _delete_files(directory)  # of another publication of it
    _write_record(directory, _UNDER_WAY, dump)
    files.delete([files.join(directory, COMPLETE)])
    _check_room(directory, dump, client)
    _fetch_all(dump, directory, client, min(max(1, connections), _MOST_CONNECTIONS), progress)
    _write_record(directory, COMPLETE, dump)
    files.delete([files.join(directory, _UNDER_WAY)])
    return paths_of(directory, dump)


@dataclasses.dataclass(frozen=True)
class _Fetching:
    """What the downloads of a dump's files share: who makes requests, who is told of progress, and what ends all."""

    client: MirrorClient
    progress: Progress
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)

    def tell(self, name: str, done: int, size: int | None) -> None:
        """Tell of progress; raises StoppedError where the downloads are to end."""
        if self.stop.is_set():
            raise StoppedError
        self.progress(name, done, size)


def _fetch_all(dump: Dump, directory: str, client: MirrorClient, connections: int, progress: Progress) -> None:
    """Download files side by side; the first that fails ends all, and what came of the others stays."""
    fetching = _Fetching(client, progress)
    with concurrent.futures.ThreadPoolExecutor(connections) as threads:
        tasks = [threads.submit(_fetch, file, files.join(directory, file.name), fetching) for file in dump.files]
        try:
            for task in concurrent.futures.as_completed(tasks):
                task.result()
        except BaseException as error:
            fetching.stop.set()
            threads.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, DumpChangedError) and not all(file.sums for file in dump.files):
                # Without checksums nobody can tell which of the files that are here belong to the new dump.
                threads.shutdown(wait=True)
                _delete_files(directory)
            raise


def is_downloaded(dump: Dump, downloads: str) -> bool:
    """Say whether the download of a dump is complete, and its files are still there; raises as `read_downloaded`."""
    directory = directory_of(downloads, dump)
    return read_downloaded(directory) == dump and all(map(files.exists, paths_of(directory, dump)))


def read_downloaded(directory: str) -> Dump | None:
    """Return the dump whose download into a directory is complete; None where there is none.

    Raises:
      UnusableInputError, RunFailedError: the directory cannot be read.
    """
    return _read_record(directory, COMPLETE)


def _write_record(directory: str, name: str, dump: Dump) -> None:
    files.write_bytes(files.join(directory, name), completions.sealed_json(_KIND, _KEY, dataclasses.asdict(dump)))


def _read_record(directory: str, name: str) -> Dump | None:
    """Return the dump that a record names; None where there is none, or a damaged one."""
    content = files.read_if_there(files.join(directory, name))
    record: Mapping[str, Any] | None = completions.unsealed_json(_KIND, _KEY, content or b"")
    return None if record is None else Dump(**{**record, "files": tuple(DumpFile(**f) for f in record["files"])})


def downloaded_dumps(downloads: str) -> list[tuple[str, Dump]]:
    """Return the dumps whose downloads are complete, each with its directory, newest first.

    Raises:
      UnusableInputError, RunFailedError: the directory cannot be read.
    """
    folders = [files.join(downloads, name) for name in files.list_folders(downloads)]
    found = [(folder, dump) for folder in folders if (dump := read_downloaded(folder)) is not None]
    return sorted(found, key=lambda pair: (pair[1].date, pair[1].wiki), reverse=True)


def unfinished_downloads(downloads: str, wiki: str) -> list[tuple[str, str]]:
    """Return the directories of a wiki's downloads that are not complete, each with the ISO date of its dump.

    They are under way, or what a dump that vanished, or a deletion that was killed, has left.

    Raises:
      UnusableInputError, RunFailedError: the directory cannot be read.
    """
    dated = re.compile(re.escape(wiki) + r"-(\d{4}-\d\d-\d\d)")
    names = [(files.join(downloads, name), dated.fullmatch(name)) for name in files.list_folders(downloads)]
    return [(place, match[1]) for place, match in names if match and not files.exists(files.join(place, COMPLETE))]


def delete_downloaded(directory: str) -> None:
    """Delete what a download has made; files of others stay."""
    _delete_files(directory)
    if files.is_local(directory):
        with contextlib.suppress(OSError):
            os.rmdir(directory)  # it stays if somebody keeps files of their own in it


def _delete_files(directory: str) -> None:
    """Delete the files of a download, and its record last: it names them. Who is killed meanwhile can do it again."""
    complete, under_way = read_downloaded(directory), _read_record(directory, _UNDER_WAY)
    if complete is not None:
        _write_record(directory, _UNDER_WAY, complete)
        files.delete([files.join(directory, COMPLETE)])  # no dump without its files counts as complete
    names = {file.name for dump in (complete, under_way) if dump is not None for file in dump.files}
    for path in files.list_directory(directory):
        name = files.base_name(path)
        if name.removesuffix(_PART_RECORD).removesuffix(_PART) in names or name.endswith(files.TEMPORARY_SUFFIX):
            files.delete([path])
    files.delete([files.join(directory, _UNDER_WAY)])


def _check_room(directory: str, dump: Dump, client: MirrorClient) -> None:
    """Say at once that a disk is too small; ask for the sizes that the mirror does not list.

    Raises:
      RunFailedError: it is.
    """
    if not files.is_local(directory):
        return
    missing = 0
    for file in dump.files:
        path = files.join(directory, file.name)
        if not os.path.exists(path):
            facts = client.facts(file.url) if file.size is None else None
            size = file.size or (facts.size if facts is not None else 0) or 0
            missing += max(0, size - (os.path.getsize(path + _PART) if os.path.exists(path + _PART) else 0))
    free = shutil.disk_usage(directory).free
    if missing > free:
        raise RunFailedError(
            f"{directory}: this download needs {_amount(missing)}, and {_amount(free)} are free; make room, "
            "or name another directory by watch.downloads."
        )


def _amount(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"


def _wrong_checksum(file: DumpFile, digests: Mapping[str, str]) -> str:
    """Return a clause that names the first checksum that is wrong; empty where all are right."""
    for algorithm, published in file.sums.items():
        if digests[algorithm] != published:
            return f"its {algorithm} is {digests[algorithm]}, and the mirror says {published}"
    return ""


def _digests_of(
    path: str, algorithms: Collection[str], told: Callable[[int], None] = lambda done: None
) -> dict[str, str]:
    """Return the checksums of a file, by their algorithms. told: takes the bytes that were read so far."""
    digests, done = {algorithm: hashlib.new(algorithm) for algorithm in algorithms}, 0
    with files.open_input(path) as content:
        while digests and (block := content.read(_BLOCK)):
            for digest in digests.values():
                digest.update(block)
            done += len(block)
            told(done)
    return {algorithm: digest.hexdigest() for algorithm, digest in digests.items()}


def _check_in_place(file: DumpFile, progress: Progress) -> None:
    """Compare a file that is read where it lies, in a directory or a bucket, with the checksums beside it.

    Raises:
      DumpChangedError: one is wrong.
      UnusableInputError, RunFailedError: it cannot be read.
    """
    digests = _digests_of(file.url, file.sums, lambda done: progress(file.name, done, file.size))
    if wrong := _wrong_checksum(file, digests):
        raise DumpChangedError(
            f"{file.url}: {wrong}; this copy is damaged, or not complete yet: copy it again, and run the same command "
            "again."
        )


def _fetch(file: DumpFile, path: str, fetching: _Fetching) -> None:
    """Download a file, unless it is there, and check it; it gets its name when it is whole and right.

    Raises as `download`, and StoppedError where the downloads are to end.
    """
    if files.exists(path):
        return
    with contextlib.ExitStack() as stack:
        local = path
        if not files.is_local(path):  # an object cannot grow: its file comes to this machine first
            local = os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), file.name)
        try:
            wrong = _receive(file, local, fetching) and _receive(file, local, fetching)
        except MissingFileError as error:
            raise RunFailedError(
                f"{file.url}: this file is not on the mirror any more; run the same command again later."
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


def _receive(file: DumpFile, path: str, fetching: _Fetching) -> str:
    """Download a file to a local disk; it has its name if no checksum is wrong (`_wrong_checksum`)."""
    with _writing(path):
        part = _Part(file, path + _PART)
    try:
        attempt = functools.partial(_request_rest, file, part, fetching)
        fetching.client.patiently(file.url, attempt, lambda: part.size, fetching.stop)
        wrong = _wrong_checksum(file, _digests_of(part.path, file.sums))
        with _writing(path):
            part.close("" if wrong else path)
    finally:
        part.raw.close()
    return wrong


def _request_rest(file: DumpFile, part: "_Part", fetching: _Fetching) -> None:
    """Make one request for what is missing of a file, and append what comes.

    Raises:
      TransientError, urllib3.exceptions.HTTPError: the connection failed; what came stays.
      DumpChangedError: the file is not the one that the mirror lists, or not the one whose beginning is there.
    """
    seen, headers = part.seen, {}
    if part.size and part.size == seen.size:
        return
    if part.size and (seen.validator or file.sums):
        headers = {"Range": f"bytes={part.size}-"} | ({"If-Range": seen.validator} if seen.validator else {})
    try:
        with fetching.client.answer("GET", file.url, headers) as response:
            first, now = _described(response, file)
            is_other = bool(part.size) and not seen.may_be(now)
            if is_other and not file.sums:
                raise DumpChangedError(
                    f"{file.url}: this file was replaced while it was read; run the same command again."
                )
            if first and (is_other or first != part.size):
                part.begin(0, now)
                raise TransientError("it sent another part than it was asked for, or of another file")
            part.begin(first, now)
            while block := response.read1(_BLOCK):
                part.write(block)
                fetching.tell(file.name, part.size, now.size)
    except NoSuchRangeError:  # what is there is longer than the file
        part.begin(0, seen)
        raise TransientError("it refused to send the rest") from None


@dataclasses.dataclass(frozen=True)
class _Seen:
    """What is known of a file whose download has begun: NAME.part.json.

    Attributes:
      url, checksum: of the file, as the mirror lists it.
      size: in bytes; None where nobody says.
      etag, modified: the headers ETag and Last-Modified; empty where there is none.
    """

    url: str
    checksum: str
    size: int | None = None
    etag: str = ""
    modified: str = ""

    @property
    def validator(self) -> str:
        """What makes a server send the rest only of this same file (If-Range); empty where nothing does."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.modified

    def may_be(self, other: "_Seen") -> bool:
        """Say whether another answer may be of the same file: whether all agree that both have."""
        pairs = [(self.etag, other.etag), (self.size, other.size), (self.modified, other.modified)]
        return all(one == another for one, another in pairs if one and another)


def _described(response: urllib3.BaseHTTPResponse, file: DumpFile) -> tuple[int, _Seen]:
    """Return where what comes begins in the file, and what the server says of the file.

    Raises:
      DumpChangedError: it has not the size that the mirror lists.
      TransientError: the server says nothing that makes sense.
    """
    first, size = 0, response.length_remaining
    if response.status == http.HTTPStatus.PARTIAL_CONTENT:
        match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", response.headers.get("Content-Range", "").strip())
        if match is None:
            raise TransientError("it does not say which part it sends")
        first, size = int(match[1]), None if match[3] == "*" else int(match[3])
    if size is not None and file.size is not None and size != file.size:
        raise DumpChangedError(
            f"{file.url}: the mirror lists {file.size:,} bytes and sends {size:,}: it is replacing this file; run the "
            "same command again later."
        )
    told = (response.headers.get("ETag", ""), response.headers.get("Last-Modified", ""))
    return first, _Seen(file.url, file.checksum, file.size if size is None else size, *told)


class _Part:
    """The part of a file on a local disk, which another process may have begun.

    Attributes:
      path: of the part.
      seen: what is known of the file of which it is.
      raw: the part, open. Nothing is buffered in this process: a kill loses nothing that came.
      size: how many bytes are there.
    """

    def __init__(self, file: DumpFile, path: str) -> None:
        self.path = path
        self._record = path.removesuffix(_PART) + _PART_RECORD
        self.seen = _Seen(file.url, file.checksum)
        self.raw = io.FileIO(path, "r+" if os.path.exists(path) else "w+")
        self.size = 0
        known = _read_seen(self._record)
        if known is not None and (known.url, known.checksum) == (file.url, file.checksum):
            self.seen, self.size = known, self.raw.seek(0, os.SEEK_END)

    def begin(self, start: int, seen: _Seen) -> None:
        """Forget what lies after `start`. Nothing is ever there of another file than the record says."""
        with _writing(self.path):
            self.raw.truncate(start)
            self.raw.seek(start)
        self.size = start
        if seen != self.seen or not start:
            files.write_bytes(self._record, completions.canonical_json(seen).encode())
            self.seen = seen

    def write(self, block: bytes) -> None:
        """Append a block."""
        rest = memoryview(block)
        with _writing(self.path):
            while rest:
                written = self.raw.write(rest)
                self.size += written
                rest = rest[written:]

    def close(self, final: str) -> None:
        """Give the file its name; an empty name deletes it."""
        os.fsync(self.raw.fileno())
        if final:
            os.replace(self.path, final)
        else:
            os.unlink(self.path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._record)


def _read_seen(path: str) -> _Seen | None:
    """Return what the part of a file is of; None where nobody knows."""
    try:
        with open(path, "rb") as described:
            return _Seen(**json.loads(described.read()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


@contextlib.contextmanager
def _writing(path: str) -> Iterator[None]:
    """Turn what a disk refuses into a sentence.

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
