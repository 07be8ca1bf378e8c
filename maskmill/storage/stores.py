"""A store of files for each scheme: what every one does, whichever protocol it speaks.

https:// is read only (web_store.py). gs:// (cloud_store.py) and s3:// (s3_store.py) are written, too, and compare
versions before they change an object. All share the client's patience, its errors and its count of requests.
"""

import abc
import contextlib
import datetime
import functools
import io
import os
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent import futures
from http import HTTPStatus
from typing import Any, NamedTuple, NoReturn

import numpy as np

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.storage import files
from maskmill.storage.files import ChangedError, FileInfo
from maskmill.storage.range_files import RangeFile
from maskmill.storage.read_ahead import LOOK_BYTES, ReadAhead
from maskmill.storage.read_ahead import PART_BYTES as AHEAD_BYTES
from maskmill.storage.web_client import DeniedError, RefusedError, TransientError, WebClient

PART_BYTES = 40 << 20  # of a large upload, that are sent at a time, while as many are gathered
_CHUNKS_OF_A_PART = 2  # of memory
_KEPT_CHUNKS = 8  # for others: as many as a process gathers, sends and leaves unsent at a time
Content = Sequence[bytes | memoryview]  # of an object or a part, in pieces that follow one another
FAILING = "the object store does not answer any more ({error}); once it does, run the same command again."
DENIED, MISSING = "access is refused; check the credentials ({error}).", "there is no such object."
_BLOCK = 1 << 20
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_WILDCARD = re.compile(r"[*?[]")
_PATTERN_PARTS = re.compile(r"\*\*|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_PATTERN = {"**": ".*", "*": "[^/]*", "?": "[^/]"}


def matcher(pattern: str) -> re.Pattern[str]:
    """What the paths match that a glob means: `*` and `?` stand for no slash, `**` for anything."""
    parts = _PATTERN_PARTS.findall(pattern)
    return re.compile(
        "".join(
            part.replace("[!", "[^", 1) if len(part) > 1 and part[0] == "[" else _PATTERN.get(part, re.escape(part))
            for part in parts
        ),
        re.DOTALL,
    )


class Store(abc.ABC):
    """Reads files of a scheme. For any number of threads.

    All methods raise UnusableInputError where a file cannot be used and RunFailedError where the server has failed for
    too long.
    """

    def __init__(self, client: WebClient) -> None:
        """Asks nothing yet. client: keeps the patience, and makes the requests of most stores."""
        self.client = client

    @abc.abstractmethod
    def find(self, path: str, *, fresh: bool = False) -> FileInfo | None:
        """What is known of a file; None where there is none. fresh: no proxy's copy is wanted."""

    @abc.abstractmethod
    def body(self, file: FileInfo, start: int, end: int, *, fresh: bool) -> contextlib.AbstractContextManager[Any]:
        """Bytes [start, end) of a file: something whose `read1(n)` gives them; makes one request.

        Raises:
          TransientError: the request failed in a way that may pass.
          ChangedError: the file has another version now.
        """

    @abc.abstractmethod
    def address(self, path: str) -> str:
        """The address whose server is asked for a file."""

    @abc.abstractmethod
    def glob(self, pattern: str) -> list[FileInfo]:
        """The files that a pattern matches, sorted; a path of a file matches itself."""

    def identity(self, file: FileInfo) -> str:
        """Tells a file from others, and from itself with other content."""
        return f"{self.address(file.path)} {file.version} {file.size}"

    def read_unseen(self, path: str, start: int, end: int) -> tuple[bytes, FileInfo] | None:
        """Bytes [start, end) of a file, as far as there are, and what the same answer says of the file.

        None where a file has to be looked at first. Raises MissingFileError where there is none.
        """
        return None

    def fill(self, file: FileInfo, start: int, buffer: memoryview, *, fresh: bool = False) -> None:
        """Fills a buffer with the bytes of a file from `start` on. A request that is cut is made again for the rest."""
        filled = 0

        def attempt() -> None:
            nonlocal filled
            before = filled
            try:
                with self.body(file, start + filled, start + len(buffer), fresh=fresh) as body:
                    while filled < len(buffer):
                        block = body.read1(min(_BLOCK, len(buffer) - filled))
                        if not block:
                            raise TransientError("the connection was cut")
                        buffer[filled : filled + len(block)] = block
                        filled += len(block)
            except TransientError as error:
                error.progressed |= filled > before
                raise

        self.client.patiently(file.path, self.address(file.path), attempt)


class ObjectStore(Store):
    """Objects in buckets, which appear whole. `version` is the store's own: it changes when an object is replaced.

    Attributes:
      scheme: with its slashes.
      checked: the buckets that were looked at.
      chunks: memory that uploads have used and others may use: that of the system has to be cleared first, which takes
        as long as to send it.
    """

    scheme: str

    def __init__(self, client: WebClient) -> None:
        """See Store."""
        super().__init__(client)
        self.checked: set[str] = set()
        self.chunks: list[memoryview] = []
        self._checking = threading.Lock()

    def check(self, path: str) -> None:
        """Looks, once for each bucket, whether the bucket of a path can be used.

        Raises:
          UnusableInputError: there is no such bucket, there are no credentials, or the service cannot be reached.
          RunFailedError: the service fails.
        """
        bucket = path.removeprefix(self.scheme).partition("/")[0]
        if bucket in self.checked:
            return
        name = f"{self.scheme}{bucket}"
        with self._checking:  # a thread that waits here looks no second time
            if bucket in self.checked:
                return
            try:
                self.ask_for_bucket(name, bucket)
            except DeniedError:
                pass  # an account that may not look at a bucket may still read or write in it: the use itself will tell
            except MissingFileError:
                raise UnusableInputError(f"{name}: there is no such bucket; correct its name, or create it.") from None
            self.checked.add(bucket)

    def ask_for_bucket(self, name: str, bucket: str) -> None:
        """Makes a request that fails where there is no such bucket; none in stores that know no buckets."""

    def read(self, path: str, start: int = 0, end: int | None = None) -> tuple[bytes, str] | None:
        """Bytes [start, end) of an object, as far as there are, and its version; None where there is none.

        Makes one request, and others if the answer is not what was asked for. end: None: all that there is.
        """

        def attempt() -> tuple[bytes, str]:
            content, file = self.content(path, start, end)
            if end is not None and len(content) != max(0, min(end, file.size) - start):
                raise TransientError(f"it gave {len(content):,} bytes where those from {start:,} to {end:,} are wanted")
            return content, file.version

        try:
            return self.client.patiently(path, self.address(path), attempt)
        except MissingFileError:
            return None
        except RefusedError as error:
            if error.status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            return b"", ""

    @abc.abstractmethod
    def content(self, path: str, start: int, end: int | None) -> tuple[bytes, FileInfo]:
        """As `read`, but with the object's size, and raises MissingFileError and RefusedError, as requests do."""

    def read_unseen(self, path: str, start: int, end: int) -> tuple[bytes, FileInfo] | None:
        """One request, which names no version: what it gives has one."""
        try:
            content, file = self.content(path, start, end)
        except RefusedError as error:
            if error.status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            return None
        return (content, file) if file.version and len(content) == min(end, file.size) - start else None

    @abc.abstractmethod
    def pages(self, prefix: str, *, deep: bool) -> Iterator[tuple[list[FileInfo], list[str]]]:
        """The objects whose paths begin so, and unless it is deep, the folders (with a slash), a page at a time."""

    @abc.abstractmethod
    def put(self, path: str, content: Content, expected: str | None = None) -> "Stored":
        """Writes an object with one request.

        expected: the version that it must have; "": it must not be there; None: whatever it is.

        Raises:
          ChangedError: it has another version.
        """

    @abc.abstractmethod
    def begin(self, path: str) -> "PartedUpload":
        """Begins an upload in parts."""

    @abc.abstractmethod
    def delete_one(self, path: str, version: str | None = None) -> None:
        """Deletes an object; one that is not there is no error.

        version: that it must have; None: whatever it is.

        Raises:
          ChangedError: it has another version.
        """

    @abc.abstractmethod
    def copy(self, source: str, target: str) -> None:
        """Copies an object within the store, which reads and writes it itself."""

    def entries(self, prefix: str, *, deep: bool = True) -> tuple[list[FileInfo], list[str]]:
        """The objects whose paths begin so, sorted, and the folders as in `pages`."""
        objects, folders = [], []
        for page, prefixes in self.pages(prefix, deep=deep):
            objects += [file for file in page if not file.path.endswith("/")]
            folders += prefixes
        return sorted(objects), sorted(folders)

    def glob(self, pattern: str) -> list[FileInfo]:
        """The objects that a pattern matches, sorted."""
        found = _WILDCARD.search(pattern)
        if found is None:
            file = self.find(pattern)
            return [] if file is None else [file]
        objects, _ = self.entries(pattern[: found.start()])
        named = [file for file in objects if file.path == pattern]
        # As with local files, folders that have a part of the pattern for their name come before those that it matches.
        ends = [slash.end() for slash in re.finditer("/", pattern) if slash.start() > found.start()]
        there = (end for end in reversed(ends) if any(file.path.startswith(pattern[:end]) for file in objects))
        literal = next(there, 0)
        wanted = re.compile(re.escape(pattern[:literal]) + matcher(pattern[literal:]).pattern, re.DOTALL)
        return named or [file for file in objects if wanted.fullmatch(file.path)]

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes objects, many at a time."""
        files.each(self.scheme, self.delete_one, paths)

    def open(self, path: str, start: int = 0, end: int | None = None, version: str = "") -> io.BufferedReader:
        """Opens an object for reading from any place, and reads some of it; parts are fetched ahead of use.

        start, end: what will be read at first, and behind what nothing is fetched ahead. version: that is wanted; "":
        the one that is there.

        Raises:
          MissingFileError: there is none.
          ChangedError: it has another version.
        """
        first = LOOK_BYTES if end is None else min(end - start, AHEAD_BYTES)
        content, file = self.read_unseen(path, start, start + first) or (b"", self.find(path))
        if file is None:
            missing(path)
        if version and file.version != version:
            raise ChangedError(path)
        ahead = ReadAhead(file.size, functools.partial(self.fill, file), end)
        ahead.keep(start, memoryview(content))

        def fill(start: int, view: memoryview) -> int:
            ahead.read(start, view)
            return len(view)

        return io.BufferedReader(RangeFile(file.size, fill), LOOK_BYTES)


def range_header(start: int, end: int | None) -> dict[str, str]:
    """The header that asks for bytes [start, end); none if all are wanted."""
    return {} if end is None else {"Range": f"bytes={start}-{end - 1}"}


def whole_size(content_range: str, content: bytes) -> int:
    """The size of a file of which an answer has a part, by its Content-Range; without, the answer has all of it."""
    size = content_range.rpartition("/")[2]
    return int(size) if size.isdecimal() else len(content)


def missing(path: str) -> NoReturn:
    """Raises MissingFileError for an object."""
    raise MissingFileError(f"{path}: {MISSING}")


def microseconds(moment: datetime.datetime) -> int:
    """A time with its zone as FileInfo has it: microseconds since 1970."""
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)


class Stored(NamedTuple):
    """What a store says of an object that it has just taken, as in FileInfo."""

    version: str = ""
    checksum: str = ""


class PartedUpload(abc.ABC):
    """An upload in parts, each PART_BYTES long but the last, which has up to `most_unsent`."""

    @abc.abstractmethod
    def send(self, part: Content) -> None:
        """Sends a part that is not the last one."""

    @abc.abstractmethod
    def finish(self, part: Content) -> "Stored":
        """Sends the last part, which makes the object visible."""

    @abc.abstractmethod
    def abandon(self) -> None:
        """Drops what was sent."""


def most_unsent() -> int:
    """The most bytes of an upload's last part: a small one behind a whole one would be one more request."""
    return PART_BYTES + _chunk_bytes()


def _chunk_bytes() -> int:
    return PART_BYTES // _CHUNKS_OF_A_PART


class ObjectWriter:
    """Writes an object: a small one with one request, a large one in parts. It appears with `finish`.

    A thread sends a part while the next one is gathered.
    """

    def __init__(self, store: ObjectStore, path: str) -> None:
        """Sends nothing yet."""
        self._store = store
        self._path = path
        self._chunks: list[memoryview] = []  # what is gathered fills them, but for the last
        self._gathered = 0
        self._parts: PartedUpload | None = None
        self._threads: futures.ThreadPoolExecutor | None = None
        self._sent: futures.Future[None] | None = None  # the part that was sent last

    @property
    def gathered(self) -> int:
        """The bytes that `finish` will send."""
        return self._gathered

    def write(self, block: bytes | bytearray | memoryview) -> int:
        """Appends a block of any size."""
        rest = memoryview(block)
        while rest:
            # The last part is sent by `finish` alone, and must not be empty.
            if self._gathered == most_unsent():
                self._wait()  # before there is one part more
                part, self._chunks = self._chunks[:_CHUNKS_OF_A_PART], self._chunks[_CHUNKS_OF_A_PART:]
                self._gathered -= PART_BYTES
                self._threads = self._threads or futures.ThreadPoolExecutor(1)
                self._sent = self._threads.submit(self._send, part)
            at = self._gathered % _chunk_bytes()
            if not at:
                self._chunks.append(self._new_chunk())
            taken = rest[: _chunk_bytes() - at]
            self._chunks[-1][at : at + len(taken)] = taken
            self._gathered += len(taken)
            rest = rest[len(taken) :]
        return len(block)

    def _new_chunk(self) -> memoryview:
        try:
            return self._store.chunks.pop()
        except IndexError:
            return np.empty(_chunk_bytes(), np.uint8).data

    def _free(self, chunks: list[memoryview]) -> None:
        """Gives chunks to other uploads."""
        self._store.chunks += chunks[: max(0, _KEPT_CHUNKS - len(self._store.chunks))]

    def _send(self, part: list[memoryview]) -> None:
        if self._parts is None:
            self._parts = self._store.begin(self._path)
        self._parts.send(part)
        self._free(part)

    def _wait(self) -> None:
        """Waits for the part that was sent last; raises what its sending has raised."""
        if self._sent is not None:
            self._sent.result()

    def finish(self) -> "Stored":
        """Makes the object visible."""
        self._wait()
        if self._threads is not None:
            self._threads.shutdown()
        starts = range(0, self._gathered, _chunk_bytes())
        last = [chunk[: self._gathered - start] for start, chunk in zip(starts, self._chunks, strict=True)]
        if self._parts is None and self._gathered <= PART_BYTES:
            stored = self._store.put(self._path, last)
        else:
            self._parts = self._parts or self._store.begin(self._path)
            stored = self._parts.finish(last)
        self._free(self._chunks)
        self._chunks = []
        return stored

    def abandon(self) -> None:
        """Drops what was sent; if that fails, the store drops it by itself later."""
        if self._threads is not None:
            self._threads.shutdown()
        if self._parts is not None:
            with contextlib.suppress(UnusableInputError, RunFailedError):
                self._parts.abandon()


def store_of(path: str) -> ObjectStore:
    """The store of a path with a scheme that can be written to; each process has its own, with its own connections.

    Raises:
      UnusableInputError: an extra is missing.
    """
    scheme = path.partition("://")[0]
    # Emulators of stores are named by the environment.
    named = os.environ.get("STORAGE_EMULATOR_HOST", "") + os.environ.get("AWS_ENDPOINT_URL", "")
    with _making:
        return _store(scheme, os.getpid(), named)


_making = threading.Lock()  # two threads would make a store each
files.free_after_fork(_making)


@functools.cache
def _store(scheme: str, process: int, endpoint: str) -> ObjectStore:
    store = new_store(scheme)
    store.checked = _checked(scheme, endpoint)
    return store


@functools.cache
def _checked(scheme: str, endpoint: str) -> set[str]:
    """The buckets that this process has looked at, or the one of which it is a fork."""
    return set()


def new_store(scheme: str) -> ObjectStore:
    """A store of its own, that can be closed."""
    if scheme == "gs":
        from maskmill.storage.cloud_store import CloudStore

        return CloudStore()
    if scheme == "s3":
        from maskmill.storage.s3_store import S3Store

        return S3Store()
    from maskmill.storage.beam_store import BeamStore

    return BeamStore()
