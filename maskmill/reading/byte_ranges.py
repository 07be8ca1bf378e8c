"""Read ranges of bytes of files, local or remote."""

import abc
import contextlib
import functools
import hashlib
import io
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.storage import paths
from maskmill.storage.files import ChangedError
from maskmill.storage.read_ahead import LOOK_BYTES, RangeFile, ReadAhead

_READ_BYTES = 1 << 20
_HASHED_BYTES = 8 << 20


class ByteRanges(abc.ABC):
    """Read ranges of files. Several threads may call the methods at the same time.

    Attributes:
      parallel_reads: the best number of parallel reads; 0: one after the other is fast enough.
    """

    parallel_reads: int = 0

    @abc.abstractmethod
    def read(self, path: str, start: int, end: int) -> npt.NDArray[np.uint8]:
        """Return bytes [start, end) of a file, in a new, writable array.

        Raises:
          MissingFileError: there is no such file. `read_all` and `size` raise it, too.
          UnusableInputError: the file ends before `end`, or reading it is not allowed.
          RunFailedError: it cannot be read.
        """

    def read_all(self, path: str) -> bytes:
        """Return the whole content of a small file."""
        return self.read(path, 0, self.size(path)).tobytes()

    def read_many(self, path: str, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Return several ascending ranges of a file as one array; raise as `read` does."""
        return np.concatenate([self.read(path, start, end) for start, end in zip(starts, ends, strict=True)])

    @abc.abstractmethod
    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""

    def sha256_of(self, path: str) -> str:
        """Return the sha256 of a file in hexadecimal, read a few megabytes at a time."""
        digest, size = hashlib.sha256(), self.size(path)
        for start in range(0, size, _HASHED_BYTES):
            digest.update(self.read(path, start, min(size, start + _HASHED_BYTES)).data)
        return digest.hexdigest()

    def exists(self, path: str) -> bool:
        """Return whether a file exists; raise as `size` does, except MissingFileError."""
        try:
            self.size(path)
        except MissingFileError:
            return False
        return True

    def sizes(self, paths: Sequence[str]) -> list[int]:
        """Return the sizes of files; raise as `size` does, for the first file with an error."""
        return [self.size(path) for path in paths]

    def glob(self, pattern: str) -> list[str]:
        """Return the files whose paths match a pattern with *, ? and [...], sorted; the path of a file matches itself.

        Raises:
          UnusableInputError: files cannot be listed there.
        """
        raise UnusableInputError(f"{pattern}: files cannot be listed here; name a data set's directory.")

    def forget(self, path: str) -> bool:
        """Drop cached bytes of a file; return whether reading it again may return other bytes."""
        return False

    def stats(self) -> dict[str, int]:
        """Return counts: `bytes_read`; with a cache also `cache_hits`, `cache_misses` and `bytes_fetched`."""
        return {}

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Close files and connections."""


Stamp = tuple[int, int, int]  # of a file: its inode, its size in bytes, and when it was changed, in nanoseconds


class LocalRanges(ByteRanges):
    """Files on this machine. To read a file that was replaced since it was first opened raises ChangedError.

    Attributes:
      stamps: of the files opened so far, by path.
    """

    def __init__(self, stamps: dict[str, Stamp] | None = None) -> None:
        """Take the stamps of files that other readers have opened, shared with them; None: none."""
        self.stamps = {} if stamps is None else stamps
        self._bytes_read = 0
        self._counting = threading.Lock()

    def __reduce__(self) -> Any:
        return type(self), (self.stamps,)  # a lock cannot be pickled

    def _check(self, path: str, found: os.stat_result) -> None:
        """Raise ChangedError if this is not the file that was first opened under the path."""
        stamp = found.st_ino, found.st_size, found.st_mtime_ns
        if self.stamps.setdefault(path, stamp) != stamp:
            raise ChangedError(path)

    def read(self, path: str, start: int, end: int) -> npt.NDArray[np.uint8]:
        return self.read_many(path, np.array([start]), np.array([end]))

    def read_many(self, path: str, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        data = np.empty(int((ends - starts).sum()), np.uint8)
        try:
            with open(path, "rb", buffering=0) as file:
                self._check(path, os.fstat(file.fileno()))
                filled = 0
                for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                    file.seek(start)
                    stop = filled + end - start
                    while filled < stop:
                        count = file.readinto(data[filled:stop].data)
                        if not count:
                            message = f"{path}: this file ends before byte {end:,}; make or fetch it again."
                            raise UnusableInputError(message)
                        filled += count
        except (FileNotFoundError, NotADirectoryError):
            raise MissingFileError(f"{path}: this file does not exist; check the path, or make it again.") from None
        except OSError as error:
            raise RunFailedError(f"{path}: this file cannot be read ({error.strerror or error}).") from error
        with self._counting:
            self._bytes_read += len(data)
        return data

    def size(self, path: str) -> int:
        try:
            found = os.stat(path)
            self._check(path, found)
            return found.st_size
        except (FileNotFoundError, NotADirectoryError):
            raise MissingFileError(f"{path}: this file does not exist; check the path, or make it again.") from None
        except OSError as error:
            raise UnusableInputError(f"{path}: this file cannot be read ({error.strerror}).") from None

    def glob(self, pattern: str) -> list[str]:
        if os.path.isfile(pattern):
            return [pattern]
        return [path for path in paths.expand(os.path.expanduser(pattern)) if os.path.isfile(path)]

    def stats(self) -> dict[str, int]:
        return {"bytes_read": self._bytes_read}


def is_beside(path: str, other: str) -> bool:
    """Return whether one ByteRanges can read both paths: their schemes are the same."""
    schemes = {one.partition("://")[0] if "://" in one else "" for one in (path, other)}
    return len(schemes) == 1


@contextlib.contextmanager
def ranges_beside(path: str, other: str, ranges: ByteRanges) -> Iterator[ByteRanges]:
    """Yield ranges that read `path`: `ranges`, which reads `other`, or new ones, closed at the end."""
    if is_beside(path, other):
        yield ranges
        return
    from maskmill.reading.remote import open_ranges

    with contextlib.closing(open_ranges(path, cache_bytes=0)) as elsewhere:
        yield elsewhere


def open_bytes(size: int, read: Callable[[int, int], Any], read_bytes: int, most: int = 1 << 62) -> BinaryIO:
    """Return bytes as a file.

    Args:
      size: their number.
      read: returns bytes [start, end), or fewer, but at least one, as a buffer.
      read_bytes: the bytes to buffer.
      most: the most bytes of a read.
    """

    def read_some(start: int, end: int) -> Any:
        return read(start, min(end, start + most))

    return cast(BinaryIO, io.BufferedReader(RangeFile(size, read_some), read_bytes))


def open_range_file(path: str, ranges: ByteRanges, read_bytes: int = _READ_BYTES) -> BinaryIO:
    """Return a file, opened for reading `read_bytes` at a time, ahead of use if it is remote."""
    if ranges.parallel_reads:
        ranges, read_bytes = ForwardRanges(ranges), min(read_bytes, LOOK_BYTES)
    return open_bytes(ranges.size(path), functools.partial(ranges.read, path), read_bytes)


def forward(ranges: ByteRanges) -> ByteRanges:
    """Return ranges for reading long stretches of files: remote files are read ahead of use."""
    return ForwardRanges(ranges) if ranges.parallel_reads else ranges


class ForwardRanges(ByteRanges):
    """Read remote files ahead of a sequential reader (ReadAhead), a file at a time."""

    def __init__(self, ranges: ByteRanges) -> None:
        """Take the ranges that read the files; `close` leaves them open."""
        self._ranges = ranges
        self._lock = threading.Lock()
        self._ahead: dict[str, ReadAhead] = {}

    def read(self, path: str, start: int, end: int) -> npt.NDArray[np.uint8]:
        if not 0 <= start < end <= self._ranges.size(path):
            return self._ranges.read(path, start, end)  # raises the error
        data, filled = np.empty(end - start, np.uint8), 0
        with self._lock:
            ahead = self._of(path)
            while filled < len(data):
                block = np.frombuffer(ahead.read(start + filled, end), np.uint8)
                data[filled : filled + len(block)] = block
                filled += len(block)
        return data

    def _of(self, path: str) -> ReadAhead:
        if path not in self._ahead:
            self._ahead.clear()
            self._ahead[path] = ReadAhead(self._ranges.size(path), functools.partial(self._ranges.read, path))
        return self._ahead[path]

    def read_all(self, path: str) -> bytes:
        return self._ranges.read_all(path)

    def size(self, path: str) -> int:
        return self._ranges.size(path)

    def sizes(self, paths: Sequence[str]) -> list[int]:
        return self._ranges.sizes(paths)

    def glob(self, pattern: str) -> list[str]:
        return self._ranges.glob(pattern)

    def forget(self, path: str) -> bool:
        with self._lock:
            self._ahead.pop(path, None)
        return self._ranges.forget(path)

    def stats(self) -> dict[str, int]:
        return self._ranges.stats()

    def close(self) -> None:
        self._ahead.clear()
