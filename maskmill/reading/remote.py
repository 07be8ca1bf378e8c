"""Read ranges of files on web servers and in object stores, with a cache on disk."""

import concurrent.futures
import functools
import threading
import urllib.parse
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import numpy.typing as npt

from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.reading import disk_cache
from maskmill.reading.byte_ranges import ByteRanges, LocalRanges
from maskmill.reading.disk_cache import CachedRange, DiskCache
from maskmill.storage import files, paths
from maskmill.storage.files import FileInfo

if TYPE_CHECKING:
    from maskmill.storage.stores import Store

CACHE_BYTES = 8 << 30
PARALLEL_READS = 32
_CHUNK_BYTES = 1 << 18  # to fetch of a file if many small ranges are read


def open_ranges(
    path: str,
    cache_dir: str | None = None,
    cache_bytes: int = CACHE_BYTES,
) -> ByteRanges:
    """Return a reader of ranges of the files in a directory.

    Args:
      path: of the directory or a file in it: local, gs://, s3://, http:// or https://. No request is sent yet.
      cache_dir: the directory of the cache of remote files; None: below the user's cache directory.
      cache_bytes: the most bytes of the cache; 0: no cache.

    Raises:
      UnusableInputError: data sets cannot be read under such a path.
    """
    if files.is_local(path):
        return LocalRanges()
    cache = DiskCache(cache_dir or disk_cache.default_directory(), cache_bytes) if cache_bytes else None
    if paths.is_web(path):
        if not urllib.parse.urlsplit(path).hostname:
            raise UnusableInputError(f"{path}: this address names no server; write https://SERVER/FOLDER.")
        from maskmill.storage.web_store import WebStore

        return RemoteRanges(cache, WebStore())
    if not path.startswith((*paths.COMPARING, "file://")):
        raise UnusableInputError(
            f"{path}: data sets are read from local directories, gs://, s3://, http:// and https://; copy this one "
            "there."
        )
    paths.check_scheme(path)
    from maskmill.storage import stores

    return RemoteRanges(cache, stores.store_of(path))


class RemoteRanges(ByteRanges):
    """Files of a store. Ranges that were read before come from a cache on disk."""

    parallel_reads = PARALLEL_READS

    def __init__(self, cache: DiskCache | None, store: "Store") -> None:
        """Take a store, without a request yet.

        Args:
          cache: keeps the ranges that were read; None: no cache.
          store: has the files.
        """
        self._cache = cache
        self._store = store
        self._lock = threading.Lock()
        self._files: dict[str, FileInfo] = {}
        self._fresh: set[str] = set()  # files to read from the server itself, not from a proxy's cache
        self._bytes_read = self._bytes_fetched = 0

    def read(self, path: str, start: int, end: int) -> npt.NDArray[np.uint8]:
        file = self._file(path)
        if end > file.size:
            raise UnusableInputError(
                f"{path}: this file ends before byte {end:,} (it has {file.size:,}); make or fetch it again."
            )
        if start >= end:
            return np.empty(0, np.uint8)
        if self._cache is None or not file.version:
            data = self._fetch(file, start, end)
        else:
            range_ = CachedRange(file=_identity(file), start=start, end=end)
            data = self._cache.get(range_, functools.partial(self._fetch, file, start, end))
        with self._lock:
            self._bytes_read += end - start
        return data

    def read_many(self, path: str, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        # Ranges may be many and small, so whole chunks of the file are fetched and kept.
        size = self.size(path)
        if len(ends) and ends.max() > size:
            return self.read(path, int(starts[-1]), int(ends.max()))  # raises the error
        first, last = starts // _CHUNK_BYTES, (ends - 1) // _CHUNK_BYTES
        numbers = sorted({n for a, b in zip(first.tolist(), last.tolist(), strict=True) for n in range(a, b + 1)})
        chunks = [self.read(path, n * _CHUNK_BYTES, min(size, (n + 1) * _CHUNK_BYTES)) for n in numbers]
        data = np.concatenate(chunks) if chunks else np.empty(0, np.uint8)
        at = np.searchsorted(numbers, first) * _CHUNK_BYTES + starts % _CHUNK_BYTES
        spans = zip(at.tolist(), (at + ends - starts).tolist(), strict=True)
        return np.concatenate([data[start:end] for start, end in spans]) if len(starts) else data

    def read_all(self, path: str) -> bytes:
        return self.read(path, 0, self.size(path)).tobytes()

    def size(self, path: str) -> int:
        return self._file(path).size

    def sizes(self, paths: Sequence[str]) -> list[int]:
        with concurrent.futures.ThreadPoolExecutor(self.parallel_reads) as threads:
            return list(threads.map(self.size, paths))

    def glob(self, pattern: str) -> list[str]:
        return [file.path for file in self._store.glob(pattern)]

    def forget(self, path: str) -> bool:
        with self._lock:
            file = self._files.pop(path, None)
            self._fresh.add(path)
        if file is not None and self._cache is not None:
            self._cache.drop(_identity(file))
        return True

    def stats(self) -> dict[str, int]:
        counts = {"bytes_read": self._bytes_read, "bytes_fetched": self._bytes_fetched}
        return counts | (self._cache.stats() if self._cache is not None else {})

    def _file(self, path: str) -> FileInfo:
        """Return a file's info from the first request. Two threads may both send that."""
        with self._lock:
            file = self._files.get(path)
        if file is None:
            file = self._store.find(path, fresh=path in self._fresh)
            if file is None:
                _missing(path)
            with self._lock:
                file = self._files.setdefault(path, file)
        return file

    def _fetch(self, file: FileInfo, start: int, end: int) -> npt.NDArray[np.uint8]:
        """Return bytes [start, end) from the server."""
        content = self._store.read(file, start, end, fresh=file.path in self._fresh)
        with self._lock:
            self._bytes_fetched += end - start
        return np.frombuffer(bytearray(content), np.uint8)


def _identity(file: FileInfo) -> str:
    """Return a string that identifies a file and its version."""
    return f"{file.path} {file.version} {file.size}"


def _missing(path: str) -> NoReturn:
    raise MissingFileError(f"{path}: there is no such file; check the address.")
