"""A directory of an object store of which this process asks once what lies there."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from maskmill.storage.files import FileInfo, join
from maskmill.storage.read_ahead import RangeFile
from maskmill.storage.stores import ObjectStore, PartedUpload, Stored, missing

_SMALL = 1 << 20  # bytes of an object whose content is kept

_remembered: dict[str, "RememberedStore"] = {}  # by the beginning of their paths
os.register_at_fork(after_in_child=_remembered.clear)


def find_remembered(path: str) -> "RememberedStore | None":
    """Return the store that remembers the directory of a path."""
    # A copy: other threads begin and end blocks.
    return next((store for below, store in tuple(_remembered.items()) if path.startswith(below)), None)


@contextlib.contextmanager
def remembering(directory: str, store: ObjectStore) -> Iterator[None]:
    """Within the block, `store` is asked only once what lies below a directory; see files.remembering."""
    below = join(directory, "")
    if find_remembered(below) is not None:
        yield
        return
    _remembered[below] = RememberedStore(store, below)
    try:
        yield
    finally:
        _remembered.pop(below, None)


class RememberedStore(ObjectStore):
    """The objects below a directory of another store."""

    def __init__(self, store: ObjectStore, below: str) -> None:
        """Ask nothing yet. below: how the paths of the objects begin."""
        self.scheme, self.checked, self.written = store.scheme, store.checked, store.written
        self._store, self._below = store, below
        self._lock = threading.Lock()
        self._objects: dict[str, FileInfo] | None = None
        self._contents: dict[str, tuple[bytes, str]] = {}

    def _known(self) -> dict[str, FileInfo]:
        with self._lock:
            if self._objects is None:
                self._objects = {file.path: file for file in self._store.entries(self._below)[0]}
            return self._objects

    def wrote(self, path: str, size: int, stored: Stored) -> None:
        self._store.wrote(path, size, stored)
        file = FileInfo(path=path, size=size, version=stored.version, checksum=stored.checksum)
        self._known()[path] = file
        self._contents.pop(path, None)

    def check(self, path: str) -> None:
        self._store.check(path)

    def find(self, path: str, *, fresh: bool = False) -> FileInfo | None:
        return self._store.find(path, fresh=True) if fresh else self._known().get(path)

    def get(self, path: str, start: int = 0, end: int | None = None, version: str = "") -> tuple[bytes, str]:
        file = self._known().get(path)
        if file is None:
            missing(path)
        if (start, end) != (0, None) or file.size > _SMALL:
            return self._store.get(path, start, end, version)
        if path not in self._contents:
            self._contents[path] = self._store.get(path, version=version)
        return self._contents[path]

    def file_over(self, file: FileInfo, read: Callable[[int, int], Any]) -> RangeFile:
        return self._store.file_over(file, read)

    def pages(self, prefix: str, *, deep: bool) -> Iterator[tuple[list[FileInfo], list[str]]]:
        found = [file for path, file in self._known().items() if path.startswith(prefix)]
        names = [(file, file.path.removeprefix(prefix)) for file in found]
        folders = {f"{prefix}{name.partition('/')[0]}/" for _, name in names if "/" in name}
        yield (found, []) if deep else ([file for file, name in names if "/" not in name], sorted(folders))

    def put(self, path: str, content: bytes | bytearray, expected: str | None = None) -> Stored:
        stored = self._store.put(path, content, expected)
        self.wrote(path, len(content), stored)
        return stored

    def begin(self, path: str) -> PartedUpload:
        return self._store.begin(path)

    def delete_one(self, path: str, version: str | None = None) -> None:
        self._store.delete_one(path, version)
        self._forget([path])

    def delete(self, paths: Sequence[str]) -> None:
        self._store.delete(paths)
        self._forget(paths)

    def _forget(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._known().pop(path, None)
            self._contents.pop(path, None)
