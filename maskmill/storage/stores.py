"""The interface of stores of files, and the code that all stores share.

Web servers are only read (web_store.py). Objects in buckets are written, too: gs:// (cloud_store.py), s3://
(s3_store.py), and the stores that Beam supports (beam_store.py).
"""

import abc
import contextlib
import datetime
import functools
import io
import os
import queue
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NoReturn

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.storage import files, turns
from maskmill.storage.files import ChangedError, DeniedError, FileInfo
from maskmill.storage.read_ahead import LOOK_BYTES, RangeFile, ReadAhead

UPLOAD_BYTES = 40 << 20  # of a part of a large upload; a smaller upload is one part
_SMALL = 1 << 20  # the most bytes of an object whose content is cached
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_WILDCARD = re.compile(r"[*?[]")
_PATTERN_PARTS = re.compile(r"\*\*|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_PATTERN = {"**": ".*", "*": "[^/]*", "?": "[^/]"}


def matcher(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a glob: `*` and `?` match no slash, `**` matches anything."""
    parts = _PATTERN_PARTS.findall(pattern)
    return re.compile(
        "".join(
            part.replace("[!", "[^", 1) if len(part) > 1 and part[0] == "[" else _PATTERN.get(part, re.escape(part))
            for part in parts
        ),
        re.DOTALL,
    )


class Store(abc.ABC):
    """Read files of a scheme. For any number of threads; a forked process opens new connections.

    All methods raise UnusableInputError if a file cannot be used, and RunFailedError if the server fails for too long.
    """

    @abc.abstractmethod
    def find(self, path: str, *, fresh: bool = False) -> FileInfo | None:
        """Return the info of a file, or None; fresh: from the server, not from a proxy's or our own cache."""

    @abc.abstractmethod
    def read(self, file: FileInfo, start: int, end: int, *, fresh: bool = False) -> bytes | bytearray:
        """Return bytes [start, end) of a file, which must have them.

        Raises:
          MissingFileError: the file is gone.
          ChangedError: it has another version now.
        """

    @abc.abstractmethod
    def glob(self, pattern: str) -> list[FileInfo]:
        """Return the files that a pattern matches, sorted; the path of a file matches itself."""


class ObjectStore(Store):
    """Objects in buckets, which appear whole. `version` is the store's own, and changes when an object is replaced.

    Subclasses define six methods, from `look` to `remove`; the others are shared. Listings of a directory are cached
    within a block of `remembering`.

    Attributes:
      scheme: with its slashes.
      written: the store's checksums of the objects that this process has written, by path; "" if it has none.
    """

    scheme: str

    def __init__(self) -> None:
        """Send no request yet."""
        self.written: dict[str, str] = {}
        self._listing = threading.Lock()
        self._remembered: dict[str, dict[str, FileInfo] | None] = {}  # by directory; None: not yet listed
        self._contents: dict[str, tuple[bytes, str]] = {}

    @abc.abstractmethod
    def look(self, path: str) -> FileInfo | None:
        """Return the info of an object, or None."""

    @abc.abstractmethod
    def fetch(self, path: str, start: int = 0, end: int | None = None, version: str = "") -> tuple[bytes, str]:
        """Return bytes [start, end) of an object, up to its end, and its version, with one request.

        end: None: the object's end. version: required; "": any.

        Raises:
          MissingFileError: there is no such object.
          ChangedError: it has another version.
        """

    @abc.abstractmethod
    def pages(self, prefix: str, *, deep: bool) -> Iterator[tuple[list[FileInfo], list[str]]]:
        """Yield the objects whose paths begin with a prefix, and unless `deep`, folders (with a slash), by page."""

    @abc.abstractmethod
    def write(self, path: str, content: bytes, expected: str | None = None) -> FileInfo:
        """Write an object with one request.

        expected: the version to replace; "": the object must not exist; None: any.

        Raises:
          ChangedError: it has another version.
        """

    @abc.abstractmethod
    def send(self, path: str, parts: Iterator[bytes]) -> FileInfo:
        """Write a large object of parts, all but the last of UPLOAD_BYTES; drop it if the iterator raises."""

    @abc.abstractmethod
    def remove(self, path: str, version: str | None = None) -> None:
        """Delete an object; a missing one is no error.

        version: required; None: any.

        Raises:
          ChangedError: it has another version.
        """

    def file_over(self, file: FileInfo, read: Callable[[int, int], Any]) -> RangeFile:
        """Return the raw file over `read`; a subclass may verify the checksum."""
        return RangeFile(file.size, read)

    @contextlib.contextmanager
    def remembering(self, directory: str) -> Iterator[None]:
        """Within the block, list the objects below a directory only once; see files.remembering."""
        below = files.join(directory, "")
        if self._directory_of(below) is not None:
            yield
            return
        self._remembered[below] = None
        try:
            yield
        finally:
            with self._listing:
                del self._remembered[below]
                self._contents.clear()

    def _directory_of(self, path: str) -> str | None:
        """Return the cached directory that a path is in, or None."""
        return next((below for below in tuple(self._remembered) if path.startswith(below)), None)

    def _known(self, path: str) -> dict[str, FileInfo] | None:
        """Return the objects of the cached directory that a path is in, by path; None if it is in none."""
        below = self._directory_of(path)
        if below is None:
            return None
        with self._listing:
            if below not in self._remembered:
                return None  # another thread's block has just ended
            known = self._remembered[below]
            if known is None:
                found = [file for page, _ in self.pages(below, deep=True) for file in page]
                known = self._remembered[below] = {file.path: file for file in found}
            return known

    def find(self, path: str, *, fresh: bool = False) -> FileInfo | None:
        known = None if fresh else self._known(path)
        return self.look(path) if known is None else known.get(path)

    def get(self, path: str, start: int = 0, end: int | None = None, version: str = "") -> tuple[bytes, str]:
        """Return bytes of an object and its version, from the cache or by `fetch`."""
        known = self._known(path)
        if known is None:
            return self.fetch(path, start, end, version)
        file = known.get(path)
        if file is None:
            missing(path)
        if (start, end) != (0, None) or file.size > _SMALL:
            return self.fetch(path, start, end, version)
        if path not in self._contents:
            self._contents[path] = self.fetch(path, version=version)
        return self._contents[path]

    def entries(self, prefix: str, *, deep: bool = True) -> tuple[list[FileInfo], list[str]]:
        """Return the sorted objects whose paths begin with a prefix, and the folders as in `pages`."""
        known, objects, folders = self._known(prefix), list[FileInfo](), set[str]()
        if known is None:
            for page, prefixes in self.pages(prefix, deep=deep):
                objects += page
                folders.update(prefixes)
        else:
            objects = [file for path, file in known.items() if path.startswith(prefix)]
        if known is not None and not deep:
            names = {file: file.path.removeprefix(prefix) for file in objects}
            folders = {f"{prefix}{name.partition('/')[0]}/" for name in names.values() if "/" in name}
            objects = [file for file, name in names.items() if "/" not in name]
        return sorted(file for file in objects if not file.path.endswith("/")), sorted(folders)

    def put(self, path: str, content: bytes, expected: str | None = None) -> FileInfo:
        """Write a small object, as `write`, and update the caches."""
        return self.wrote(self.write(path, content, expected))

    def wrote(self, file: FileInfo) -> FileInfo:
        """Update the caches for an object that this process has written."""
        self.written[file.path] = file.checksum
        if (known := self._known(file.path)) is not None:
            known[file.path] = file
        self._contents.pop(file.path, None)
        return file

    def delete(self, paths: Sequence[str], version: str | None = None) -> None:
        """Delete objects, as `remove`."""
        files.each(self.scheme, lambda path: self.remove(path, version), paths)
        for path in paths:
            (self._known(path) or {}).pop(path, None)
            self._contents.pop(path, None)

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
        """Open an object for reading; the file can seek, and parts are fetched ahead of use.

        start, end: the range that will be read for certain; None: unknown.

        Raises:
          MissingFileError: there is no such object.
        """
        file = self.find(path)
        if file is None:
            missing(path)
        ahead = ReadAhead(file.size, functools.partial(self.read, file), start, end)
        return io.BufferedReader(self.file_over(file, ahead.read), LOOK_BYTES)

    def glob(self, pattern: str) -> list[FileInfo]:
        found = _WILDCARD.search(pattern)
        if found is None:
            file = self.find(pattern)
            return [] if file is None else [file]
        objects, _ = self.entries(pattern[: found.start()])
        expression = matcher(pattern)
        return [file for file in objects if file.path == pattern] or [
            file for file in objects if expression.fullmatch(file.path)
        ]


class ObjectWriter:
    """Write an object, which appears with `finish`: a small one with one request, a large one in parts.

    A thread sends parts while the caller writes: at a time one part is sent, one waits, one is written.
    """

    def __init__(self, store: ObjectStore, path: str) -> None:
        """Take the store and the path; nothing is sent yet."""
        self._store, self._path = store, path
        self._part = io.BytesIO()
        self._parts: queue.Queue[bytes | None] = queue.Queue(1)  # empty: the end; None: the object is abandoned
        self._sent: Future[FileInfo] | None = None

    def write(self, block: bytes | bytearray | memoryview) -> None:
        """Append a block of any size."""
        rest = memoryview(block).cast("B")
        while len(rest):
            if self._part.tell() == UPLOAD_BYTES:  # there is more, so the last part is not empty
                self._enqueue(self._part.getvalue())
                self._part = io.BytesIO()
            count = UPLOAD_BYTES - self._part.tell()
            self._part.write(rest[:count])
            rest = rest[count:]

    def _enqueue(self, part: bytes | None) -> None:
        """Pass a part to the sending thread, or raise the error with which that has failed."""
        if self._sent is None:
            thread = ThreadPoolExecutor(1, "upload")
            self._sent = thread.submit(lambda: self._store.send(self._path, self._queued_parts()))
            thread.shutdown(wait=False)
        with turns.waiting():
            while not self._sent.done():
                with contextlib.suppress(queue.Full):
                    self._parts.put(part, timeout=1)
                    return
        self._sent.result()

    def _queued_parts(self) -> Iterator[bytes]:
        while part := self._parts.get():
            yield part
        if part is None:
            raise _AbandonedError

    def finish(self) -> FileInfo:
        """Make the object visible."""
        part = self._part.getvalue()
        if self._sent is None:
            with turns.waiting():
                return self._store.put(self._path, part)
        self._enqueue(part)
        self._enqueue(b"")
        with turns.waiting():
            return self._store.wrote(self._sent.result())

    def abandon(self) -> None:
        """Drop the upload; if that fails, the store drops it by itself later."""
        if self._sent is not None:
            with contextlib.suppress(_AbandonedError, UnusableInputError, RunFailedError):
                self._enqueue(None)
                self._sent.result()


class _AbandonedError(Exception):
    """The caller has abandoned the upload."""


def missing(path: str) -> NoReturn:
    """Raise MissingFileError for an object."""
    raise MissingFileError(f"{path}: there is no such object.")


def no_bucket(path: str) -> UnusableInputError:
    """Return the error for a path in a bucket that does not exist."""
    bucket = "/".join(path.split("/", 3)[:3])
    return UnusableInputError(f"{bucket}: there is no such bucket; correct its name, or create it.")


def denied(path: str, error: str) -> DeniedError:
    """Return the error for an object whose store refuses access; error: its answer."""
    return DeniedError(f"{path}: access is refused; check the credentials ({error}).", error)


def failing(path: str, error: str) -> RunFailedError:
    """Return the error for a store that has failed for too long."""
    return RunFailedError(
        f"{path}: the object store does not answer any more ({error}); once it does, run the same command again."
    )


def microseconds(moment: datetime.datetime) -> int:
    """Return a time with a zone as microseconds since 1970, as in FileInfo."""
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)


def store_of(path: str) -> ObjectStore:
    """Return the writable store of a path's scheme; each process has its own.

    Raises:
      UnusableInputError: an extra is missing.
    """
    # These variables name emulators of stores.
    named = os.environ.get("STORAGE_EMULATOR_HOST", "") + os.environ.get("AWS_ENDPOINT_URL", "")
    with _making:
        return _store(path.partition("://")[0], os.getpid(), named)


_making = threading.Lock()  # otherwise two threads would make a store each
files.free_after_fork(_making)


@functools.cache
def _store(scheme: str, process: int, endpoint: str) -> ObjectStore:
    make: Callable[[], ObjectStore]
    if scheme == "gs":
        from maskmill.storage.cloud_store import CloudStore as make
    elif scheme == "s3":
        from maskmill.storage.s3_store import S3Store as make
    else:
        from maskmill.storage.beam_store import BeamStore as make
    return make()
