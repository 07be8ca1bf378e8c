"""A bounded cache of pieces of remote files, on a local disk; the processes of a machine share it.

A piece is a file of its own: its bytes, then their CRC-32. The folder that it is in stands for a version of a remote
file. A piece is written as NAME.part, which its writer holds locked, and then renamed: whoever wants the same piece
meanwhile waits for the lock instead of fetching it as well, and a writer that dies leaves an unlocked part that the
next one takes over. The file `used` has the bytes of all pieces; whoever exceeds the limit deletes those that were not
used for longest.
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
# What is left when pieces were deleted, as a share of the limit: to delete means to look at all pieces.
_KEPT_NUMERATOR, _KEPT_DENOMINATOR = 9, 10

Bytes = npt.NDArray[np.uint8]


def default_directory() -> str:
    """Return where pieces are kept unless somebody says otherwise: $XDG_CACHE_HOME/maskmill/data or
    ~/.cache/maskmill/data.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "maskmill", "data")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """Bytes of a remote file.

    Attributes:
      file: names the remote file and its version.
      start, end: the piece is the file's bytes [start, end).
    """

    file: str
    start: int
    end: int

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.end - self.start

    @property
    def name(self) -> str:
        """Where it is, below the cache's directory."""
        return os.path.join(_folder(self.file), f"{self.start}-{self.end}")

    def checksum(self, data: Bytes) -> bytes:
        """Return the checksum of its bytes and of what it is, so that no piece is taken for another."""
        start = zlib.crc32(f"{self.file} {self.start} {self.end}".encode())
        return zlib.crc32(data.data, start).to_bytes(_CRC_BYTES, "little")


def _folder(file: str) -> str:
    return hashlib.sha256(file.encode()).hexdigest()[:_FOLDER_DIGITS]


class DiskCache:
    """Pieces of remote files in a directory. Any number of threads and processes may use it at the same time.

    Where the directory cannot be used, or its disk is full, pieces are fetched each time; one warning says so.
    """

    def __init__(self, directory: str, most_bytes: int) -> None:
        """Use a directory; nothing is made before the first piece.

        Args:
          directory: of the cache, and of nothing else.
          most_bytes: of all pieces together; larger pieces are not kept.
        """
        self._directory = directory
        self._most_bytes = most_bytes
        self._counts_lock = threading.Lock()
        self._hits = self._misses = 0
        self._is_usable = True

    def stats(self) -> dict[str, int]:
        """Return how many pieces were found, and how many were not, or were damaged."""
        return {"cache_hits": self._hits, "cache_misses": self._misses}

    def get(self, piece: Piece, fetch: Callable[[], Bytes]) -> Bytes:
        """Return the bytes of a piece, in an array of its own; `fetch` is called where the cache does not have them."""
        path = os.path.join(self._directory, piece.name)
        data = self._find(piece, path)
        if data is None:
            data = self._fetch(piece, path, fetch)
        return data

    def drop(self, file: str) -> None:
        """Delete all pieces of a version of a remote file."""
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(os.path.join(self._directory, _folder(file))):
                if not entry.name.endswith(_PART):  # which belongs to its writer
                    _delete(entry.path)

    def _fetch(self, piece: Piece, path: str, fetch: Callable[[], Bytes]) -> Bytes:
        """Fetch a piece and keep it, or find it after all where another thread or process has fetched it."""
        part = None
        if self._is_usable and piece.size + _CRC_BYTES <= self._most_bytes:
            try:
                part = _lock_part(path)
            except OSError as error:
                self._do_without(error)
        try:
            if part is not None and (found := self._find(piece, path)) is not None:
                return found
            self._count(misses=1)
            data = fetch()
            if part is not None:
                try:
                    self._keep(piece, path, part, data)
                except OSError as error:
                    self._do_without(error)
            return data
        finally:
            if part is not None:
                if _is_file(part, path + _PART):  # it was not renamed
                    _delete(path + _PART)
                os.close(part)

    def _find(self, piece: Piece, path: str) -> Bytes | None:
        """Return a piece that is there and whole; a damaged one is deleted."""
        try:
            with open(path, "rb", buffering=0) as file:
                data = np.empty(piece.size + _CRC_BYTES, np.uint8)
                filled = 0
                while count := file.readinto(data[filled:].data) if filled < len(data) else 0:
                    filled += count
                content = data[: piece.size]
                is_whole = (
                    filled == len(data)
                    and os.fstat(file.fileno()).st_size == len(data)
                    and piece.checksum(content) == data[piece.size :].tobytes()
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

    def _keep(self, piece: Piece, path: str, part: int, data: Bytes) -> None:
        """Write a piece to its locked part, and give it its name."""
        self._make_room(part, piece.size + _CRC_BYTES)
        at = 0
        for view in (data.data, memoryview(piece.checksum(data))):
            while len(view):
                count = os.pwrite(part, view, at)
                at += count
                view = view[count:]
        os.rename(path + _PART, path)

    def _make_room(self, part: int, size: int) -> None:
        """Give a part its size, after pieces were deleted if the bytes in use would be too many."""
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
        """Delete the pieces that were not used for longest if `size` more bytes are too many; return their bytes."""
        pieces = sorted(_pieces(self._directory))
        used = sum(bytes_ for _, bytes_, _ in pieces)
        if used + size <= self._most_bytes:
            return used
        aim = max(0, self._most_bytes * _KEPT_NUMERATOR // _KEPT_DENOMINATOR - size)
        for _, bytes_, path in pieces:
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
        """Go on without the cache, and say so once."""
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
    """Wait until nobody else writes a piece; give the open file that will become it, which is locked until closed.

    Only who holds the lock renames or deletes the part.
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
                os.ftruncate(part, 0)  # what a dead writer has left
                return part
        except OSError:
            os.close(part)
            raise
        os.close(part)  # it was renamed or deleted while this thread waited


def _is_file(descriptor: int, path: str) -> bool:
    """Return whether an open file is the one that has a name now."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _delete(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        os.unlink(path)


def _pieces(directory: str) -> Iterator[tuple[int, int, str]]:
    """Yield when each piece or part was used last (nanoseconds), its bytes, and its path. Deletes parts of dead
    writers.
    """
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
    """Delete a part that nobody holds locked; return whether it did."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if _is_file(file.fileno(), path):
            os.unlink(path)
        return True
