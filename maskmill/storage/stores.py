"""What every store of files does, whichever protocol it speaks.

Web servers are only read (web_store.py). Objects in buckets are written, too: gs:// (cloud_store.py), s3://
(s3_store.py), and what Beam knows (beam_store.py).
"""

import abc
import contextlib
import datetime
import functools
import io
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.storage import files
from maskmill.storage.files import ChangedError, DeniedError, FileInfo
from maskmill.storage.read_ahead import LOOK_BYTES, RangeFile, ReadAhead

UPLOAD_BYTES = 40 << 20  # of a large upload, that are sent at a time; smaller ones are one part
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_WILDCARD = re.compile(r"[*?[]")
_PATTERN_PARTS = re.compile(r"\*\*|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_PATTERN = {"**": ".*", "*": "[^/]*", "?": "[^/]"}


def matcher(pattern: str) -> re.Pattern[str]:
    """Return what matches the paths that a glob means: `*` and `?` stand for no slash, `**` for anything."""
    parts = _PATTERN_PARTS.findall(pattern)
    return re.compile(
        "".join(
            part.replace("[!", "[^", 1) if len(part) > 1 and part[0] == "[" else _PATTERN.get(part, re.escape(part))
            for part in parts
        ),
        re.DOTALL,
    )


class Stored(NamedTuple):
    """What a store says of an object that it has just taken, as in FileInfo."""

    version: str = ""
    checksum: str = ""


class Store(abc.ABC):
    """Reads files of a scheme. For any number of threads; a forked process gets connections of its own.

    All methods raise UnusableInputError where a file cannot be used and RunFailedError where the server has failed for
    too long.
    """

    @abc.abstractmethod
    def find(self, path: str, *, fresh: bool = False) -> FileInfo | None:
        """Return what is known of a file; None where there is none. fresh: take no proxy's copy."""

    @abc.abstractmethod
    def read(self, file: FileInfo, start: int, end: int, *, fresh: bool = False) -> bytes | bytearray:
        """Return bytes [start, end) of a file, which lie within it.

        Raises:
          MissingFileError: the file is gone.
          ChangedError: it has another version now.
        """

    @abc.abstractmethod
    def glob(self, pattern: str) -> list[FileInfo]:
        """Return the files that a pattern matches, sorted; a path of a file matches itself."""

    def identity(self, file: FileInfo) -> str:
        """Return what tells a file from others, and from itself with other content."""
        return f"{file.path} {file.version} {file.size}"

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Close connections, and end waits."""


class ObjectStore(Store):
    """Objects in buckets, which appear whole. `version` is the store's own: it changes when an object is replaced.

    Attributes:
      scheme: with its slashes.
      checked: the buckets that were looked at.
      written: the store's checksums of the objects that this process has written, by path; "" where it gives none.
    """

    scheme: str

    def __init__(self) -> None:
        """Ask nothing yet."""
        self.checked: set[str] = set()
        self.written: dict[str, str] = {}
        self._checking = threading.Lock()

    @abc.abstractmethod
    def get(self, path: str, start: int = 0, end: int | None = None, version: str = "") -> tuple[bytes, str]:
        """Return bytes [start, end) of an object, as far as there are, and its version, with one request.

        end: None: the object's end. version: that it must have; "": any.

        Raises:
          MissingFileError: there is no such object.
          ChangedError: it has another version.
        """

    @abc.abstractmethod
    def pages(self, prefix: str, *, deep: bool) -> Iterator[tuple[list[FileInfo], list[str]]]:
        """Yield the objects whose paths begin so, and unless it is deep, the folders (with a slash), page by page."""

    @abc.abstractmethod
    def put(self, path: str, content: bytes | bytearray, expected: str | None = None) -> Stored:
        """Write an object with one request.

        expected: the version that it must have; "": it must not be there; None: any.

        Raises:
          ChangedError: it has another version.
        """

    @abc.abstractmethod
    def begin(self, path: str) -> "PartedUpload":
        """Begin an upload in parts."""

    @abc.abstractmethod
    def delete_one(self, path: str, version: str | None = None) -> None:
        """Delete an object; one that is not there is no error.

        version: that it must have; None: any.

        Raises:
          ChangedError: it has another version.
        """

    def wrote(self, path: str, size: int, stored: Stored) -> None:
        """Take note of an object that this process has written."""
        self.written[path] = stored.checksum

    def ask_for_bucket(self, name: str, bucket: str) -> None:
        """Make a request that raises MissingFileError where there is no such bucket."""

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects."""
        files.each(self.scheme, self.delete_one, paths)

    def check(self, path: str) -> None:
        """Look, once for each bucket, whether the bucket of a path can be used.

        Raises:
          UnusableInputError: there is no such bucket, there are no credentials, or the service cannot be reached.
          RunFailedError: the service fails.
        """
        bucket, _ = self.split(path)
        with self._checking:
            if bucket in self.checked:
                return
            name = f"{self.scheme}{bucket}"
            try:
                self.ask_for_bucket(name, bucket)
            except DeniedError:
                pass  # an account that may not look at a bucket may still read or write in it: the use itself will tell
            except MissingFileError:
                raise UnusableInputError(f"{name}: there is no such bucket; correct its name, or create it.") from None
            self.checked.add(bucket)

    def split(self, path: str) -> tuple[str, str]:
        """Return the bucket and the name of an object."""
        bucket, _, name = path.removeprefix(self.scheme).partition("/")
        return bucket, name

    def read(self, file: FileInfo, start: int, end: int, *, fresh: bool = False) -> bytes:
        is_whole = start == 0 and end >= file.size
        content, _ = self.get(file.path, start, None if is_whole else end, file.version)
        if len(content) != end - start:
            raise ChangedError(file.path)
        return content

    def open(self, path: str, start: int = 0, end: int | None = None) -> io.BufferedReader:
        """Open an object for reading from any place; parts are fetched ahead of use.

        start, end: what will be read for certain; None: unknown.

        Raises:
          MissingFileError: there is none.
        """
        file = self.find(path)
        if file is None:
            missing(path)
        ahead = ReadAhead(file.size, functools.partial(self.read, file), start, end)
        return io.BufferedReader(self.file_over(file, ahead.read), LOOK_BYTES)

    def file_over(self, file: FileInfo, read: Callable[[int, int], Any]) -> RangeFile:
        """Return the raw file that `read` reads; a store may compare what was read with its checksum."""
        return RangeFile(file.size, read)

    def entries(self, prefix: str, *, deep: bool = True) -> tuple[list[FileInfo], list[str]]:
        """Return the objects whose paths begin so, sorted, and the folders as in `pages`."""
        objects, folders = [], []
        for page, prefixes in self.pages(prefix, deep=deep):
            objects += [file for file in page if not file.path.endswith("/")]
            folders += prefixes
        return sorted(objects), sorted(folders)

    def glob(self, pattern: str) -> list[FileInfo]:
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


class PartedUpload(abc.ABC):
    """An upload in parts, each UPLOAD_BYTES long but the last."""

    @abc.abstractmethod
    def send(self, part: bytes) -> None:
        """Send a part that is not the last one."""

    @abc.abstractmethod
    def finish(self, part: bytes) -> Stored:
        """Send the last part, which makes the object visible."""

    @abc.abstractmethod
    def abandon(self) -> None:
        """Drop what was sent."""


class ObjectWriter:
    """Writes an object: a small one with one request, a large one in parts. It appears with `finish`."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        """Send nothing yet."""
        self._store, self._path = store, path
        self._gathered = bytearray()
        self._parts: PartedUpload | None = None

    def write(self, block: bytes | bytearray | memoryview) -> None:
        """Append a block of any size."""
        self._gathered += block
        while len(self._gathered) > UPLOAD_BYTES:  # so that the last part is not empty
            self._parts = self._parts or self._store.begin(self._path)
            self._parts.send(bytes(self._gathered[:UPLOAD_BYTES]))
            del self._gathered[:UPLOAD_BYTES]

    def finish(self) -> Stored:
        """Make the object visible."""
        if self._parts is None:
            return self._store.put(self._path, self._gathered)
        return self._parts.finish(bytes(self._gathered))

    def abandon(self) -> None:
        """Drop what was sent; if that fails, the store drops it by itself later."""
        if self._parts is not None:
            with contextlib.suppress(UnusableInputError, RunFailedError):
                self._parts.abandon()


def missing(path: str) -> NoReturn:
    """Raise MissingFileError for an object."""
    raise MissingFileError(f"{path}: there is no such object.")


def denied(path: str, error: str) -> DeniedError:
    """Return the error for an object to which access is refused."""
    return DeniedError(f"{path}: access is refused; check the credentials ({error}).", error)


def failing(path: str, error: str) -> RunFailedError:
    """Return the error for a store that has failed for too long."""
    return RunFailedError(
        f"{path}: the object store does not answer any more ({error}); once it does, run the same command again."
    )


def microseconds(moment: datetime.datetime) -> int:
    """Return a time with its zone as FileInfo has it: microseconds since 1970."""
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)


def store_of(path: str) -> ObjectStore:
    """Return the store of a path with a scheme that can be written to; each process has its own.

    Raises:
      UnusableInputError: an extra is missing.
    """
    from maskmill.storage.remembered import find_remembered

    if (remembered := find_remembered(path)) is not None:
        return remembered
    # Emulators of stores are named by the environment.
    named = os.environ.get("STORAGE_EMULATOR_HOST", "") + os.environ.get("AWS_ENDPOINT_URL", "")
    with _making:
        return _store(path.partition("://")[0], os.getpid(), named)


_making = threading.Lock()  # two threads would make a store each
files.free_after_fork(_making)


@functools.cache
def _store(scheme: str, process: int, endpoint: str) -> ObjectStore:
    store = new_store(scheme)
    store.checked = _checked(scheme, endpoint)
    return store


@functools.cache
def _checked(scheme: str, endpoint: str) -> set[str]:
    """Return the buckets that this process has looked at, or the one of which it is a fork."""
    return set()


def new_store(scheme: str) -> ObjectStore:
    """Return a store of its own, that can be closed."""
    make: Callable[[], ObjectStore]
    if scheme == "gs":
        from maskmill.storage.cloud_store import CloudStore as make
    elif scheme == "s3":
        from maskmill.storage.s3_store import S3Store as make
    else:
        from maskmill.storage.beam_store import BeamStore as make
    return make()
