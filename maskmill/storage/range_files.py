"""Bytes that are read by range, as a raw file."""

import io
import os
from collections.abc import Callable
from typing import Any


class RangeFile(io.RawIOBase):
    """A raw file that can be read from any place."""

    def __init__(self, size: int, fill: Callable[[int, memoryview], int]) -> None:
        """Reads nothing yet.

        Args:
          size: how many bytes there are.
          fill: puts the bytes from a place on into a buffer, of which it fills the beginning or all; returns how many.
            The buffer ends at the file's end at the latest.
        """
        self._size, self._fill = size, fill
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._fill = _nothing  # what was fetched ahead goes with it
        super().close()

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if at < 0:
            raise OSError(f"there is no byte {at}")
        self._at = at
        return at

    def readall(self) -> bytes:
        rest = bytearray(max(0, self._size - self._at))
        view, filled = memoryview(rest), 0
        while count := self.readinto(view[filled:]):
            filled += count
        return bytes(view[:filled])

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self._size - self._at))
        if count:
            count = self._fill(self._at, view[:count])
        self._at += count
        return count


def _nothing(start: int, view: memoryview) -> int:
    return 0
