"""A bounded cache of ranges of remote files, on a local disk; the processes of a machine share it.

Each range is a file: its bytes, then their CRC-32. A folder has the ranges of one version of a remote file. A range is
written as NAME.part, which its writer locks, and then renamed. Others that need the same range wait for the lock
instead of fetching it, too; if a writer dies, its part is unlocked, and the next writer takes it over. The file `used`
has the number of bytes of all ranges; the writer that exceeds the limit deletes the least recently used ones.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import logging
import os
import threading
import zlib
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

_log = logging.getLogger(__name__)

_PART = ".part"
_USED = "used"
_CRC_BYTES = 4
_COUNT_BYTES = 8
_FOLDER_DIGITS = 32
# The share of the limit to which the cache is reduced, so that it is seldom: each time it lists all ranges.
_KEPT_NUMERATOR, _KEPT_DENOMINATOR = 9, 10

Bytes = npt.NDArray[np.uint8]


def default_directory() -> str:
    """Return the default directory of the cache: $XDG_CACHE_HOME/maskmill/data or ~/.cache/maskmill/data."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "maskmill", "data")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CachedRange:
    """A range of bytes of a remote file.

    Attributes:
      file: identifies the remote file and its version.
      start, end: the bytes [start, end).
    """

    file: str
    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.end - self.start

    @property
    def name(self) -> str:
        """Its path below the cache's directory."""
        return os.path.join(_folder(self.file), f"{self.start}-{self.end}")

    def checksum(self, data: Bytes) -> bytes:
        """Return the checksum of its bytes and of its identity, so that no range is taken for another."""
        start = zlib.crc32(f"{self.file} {self.start} {self.end}".encode())
        return zlib.crc32(data.data, start).to_bytes(_CRC_BYTES, "little")


def _folder(file: str) -> str:
    return hashlib.sha256(file.encode()).hexdigest()[:_FOLDER_DIGITS]


class DiskCache:
    """Ranges of remote files in a directory. Any number of threads and processes may use it at the same time.

    If the directory cannot be used, or its disk is full, ranges are fetched each time, and one warning says so.
    """

    def __init__(self, directory: str, most_bytes: int) -> None:
        """Take a directory; it is created with the first range.

        Args:
          directory: of the cache, for nothing else.
          most_bytes: of all ranges together; larger ranges are not kept.
        """
        self._directory = directory
        self._most_bytes = most_bytes
        self._counts_lock = threading.Lock()
        self._hits = self._misses = 0
        self._is_usable = True

    def stats(self) -> dict[str, int]:
        """Return the numbers of ranges that were found, and of those that were missing or damaged."""
        return {"cache_hits": self._hits, "cache_misses": self._misses}

    def get(self, range_: CachedRange, fetch: Callable[[], Bytes]) -> Bytes:
        """Return the bytes of a range in a new array; fetch: called if the cache does not have them."""
        path = os.path.join(self._directory, range_.name)
        data = self._find(range_, path)
        if data is None:
            data = self._fetch(range_, path, fetch)
        return data

    def drop(self, file: str) -> None:
        """Delete all ranges of a version of a remote file."""
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(os.path.join(self._directory, _folder(file))):
                if not entry.name.endswith(_PART):  # a part belongs to its writer
                    _delete(entry.path)

    def _fetch(self, range_: CachedRange, path: str, fetch: Callable[[], Bytes]) -> Bytes:
        """Fetch and keep a range, unless another thread or process has done so meanwhile."""
        part = None
        if self._is_usable and range_.size + _CRC_BYTES <= self._most_bytes:
            try:
                part = _lock_part(path)
            except OSError as error:
                self._do_without(error)
        try:
            if part is not None and (found := self._find(range_, path)) is not None:
                return found
            self._count(misses=1)
            data = fetch()
            if part is not None:
                try:
                    self._keep(range_, path, part, data)
                except OSError as error:
                    self._do_without(error)
            return data
        finally:
            if part is not None:
                if _is_file(part, path + _PART):  # it was not renamed
                    _delete(path + _PART)
                os.close(part)

    def _find(self, range_: CachedRange, path: str) -> Bytes | None:
        """Return the bytes of a range in the cache, or None; delete a damaged one."""
        try:
            with open(path, "rb", buffering=0) as file:
                data = np.empty(range_.size + _CRC_BYTES, np.uint8)
                filled = 0
                while count := file.readinto(data[filled:].data) if filled < len(data) else 0:
                    filled += count
                content = data[: range_.size]
                is_whole = (
                    filled == len(data)
                    and os.fstat(file.fileno()).st_size == len(data)
                    and range_.checksum(content) == data[range_.size :].tobytes()
                )
                if is_whole:
                    os.utime(file.fileno())  # used now
        except FileNotFoundError:
            return None
        except OSError as error:
            self._do_without(error)
            return None
        if is_whole:
            self._count(hits=1)
            return content
        _delete(path)
        return None

    def _keep(self, range_: CachedRange, path: str, part: int, data: Bytes) -> None:
        """Write a range to its locked part, and rename that."""
        self._reserve(part, range_.size + _CRC_BYTES)
        at = 0
        for view in (data.data, memoryview(range_.checksum(data))):
            while len(view):
                count = os.pwrite(part, view, at)
                at += count
                view = view[count:]
        os.rename(path + _PART, path)

    def _reserve(self, part: int, size: int) -> None:
        """Extend a part to its size, after deleting other ranges if the cache would exceed its limit."""
        used_file = os.open(os.path.join(self._directory, _USED), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(used_file, fcntl.LOCK_EX)
            content = os.pread(used_file, _COUNT_BYTES, 0)
            used = int.from_bytes(content, "little") if len(content) == _COUNT_BYTES else None
            if used is None or used + size > self._most_bytes:
                used = self._delete_oldest(size)
            os.ftruncate(part, size)
            os.pwrite(used_file, (used + size).to_bytes(_COUNT_BYTES, "little"), 0)
        finally:
            os.close(used_file)

    def _delete_oldest(self, size: int) -> int:
        """Delete the least recently used ranges if `size` more bytes are too many; return the bytes of the others."""
        ranges = sorted(_ranges_in(self._directory))
        used = sum(bytes_ for _, bytes_, _ in ranges)
        if used + size <= self._most_bytes:
            return used
        aim = max(0, self._most_bytes * _KEPT_NUMERATOR // _KEPT_DENOMINATOR - size)
        for _, bytes_, path in ranges:
            if used <= aim:
                break
            if path.endswith(_PART):
                continue
            _delete(path)
            used -= bytes_
            with contextlib.suppress(OSError):
                os.rmdir(os.path.dirname(path))  # the last one of its folder
        return used

    def _do_without(self, error: OSError) -> None:
        """Continue without the cache, and log this once."""
        if self._is_usable:
            self._is_usable = False
            _log.warning(
                "%s: this cache of remote files cannot be used (%s), so each read goes over the network; make room, or "
                "name another directory.",
                self._directory,
                error.strerror or error,
            )

    def _count(self, hits: int = 0, misses: int = 0) -> None:
        with self._counts_lock:
            self._hits += hits
            self._misses += misses


def _lock_part(path: str) -> int:
    """Wait until no other writer has a range's part; return the part, open and locked until it is closed.

    Only the holder of the lock renames or deletes a part.
    """
    while True:
        try:
            part = os.open(path + _PART, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            continue
        try:
            fcntl.flock(part, fcntl.LOCK_EX)
            if _is_file(part, path + _PART):
                os.ftruncate(part, 0)  # removes the bytes of a dead writer
                return part
        except OSError:
            os.close(part)
            raise
        os.close(part)  # it was renamed or deleted while this thread waited


def _is_file(descriptor: int, path: str) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _delete(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        os.unlink(path)


def _ranges_in(directory: str) -> Iterator[tuple[int, int, str]]:
    """Yield the last use (nanoseconds), the size and the path of each range or part; delete parts of dead writers."""
    for folder in os.scandir(directory):
        if not folder.is_dir(follow_symlinks=False) or len(folder.name) != _FOLDER_DIGITS:
            continue
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(folder.path):
                with contextlib.suppress(FileNotFoundError):
                    if entry.name.endswith(_PART) and _delete_abandoned(entry.path):
                        continue
                    status = entry.stat(follow_symlinks=False)
                    yield status.st_mtime_ns, status.st_size, entry.path


def _delete_abandoned(path: str) -> bool:
    """Delete a part unless a writer has locked it; return whether it was deleted."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if _is_file(file.fileno(), path):
            os.unlink(path)
        return True
