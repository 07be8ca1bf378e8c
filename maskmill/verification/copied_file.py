"""A remote file that is read more than once, but fetched only once."""

import tempfile
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from maskmill.reading.byte_ranges import ByteRanges

_READ_BYTES = 8 << 20


class CopiedFile(ByteRanges):
    """Reads one remote file from a temporary copy of it, and all others from where they are.

    The copy is made at the first read, and deleted when this is closed.
    """

    def __init__(self, path: str, ranges: ByteRanges) -> None:
        """Fetches nothing yet.

        Args:
          path: of the file that is copied.
          ranges: reads it and the others; it stays open when this is closed.
        """
        self._path, self._ranges = path, ranges
        self._copy: BinaryIO | None = None

    def read(self, path: str, start: int, end: int) -> npt.NDArray[np.uint8]:
        if path != self._path:
            return self._ranges.read(path, start, end)
        size = self._ranges.size(path)
        if end > size:
            return self._ranges.read(path, start, end)  # which says what is wrong
        if self._copy is None:
            self._copy = self._fetched(size)
        data = np.empty(end - start, np.uint8)
        self._copy.seek(start)
        data[:] = np.frombuffer(self._copy.read(end - start), np.uint8)
        return data

    def _fetched(self, size: int) -> BinaryIO:
        copy = cast(BinaryIO, tempfile.TemporaryFile(prefix="maskmill-verify-"))  # noqa: SIM115 - close() closes it
        for start in range(0, size, _READ_BYTES):
            copy.write(self._ranges.read(self._path, start, min(size, start + _READ_BYTES)).data)
        copy.flush()
        return copy

    def read_all(self, path: str) -> bytes:
        return self.read(path, 0, self.size(path)).tobytes()

    def size(self, path: str) -> int:
        return self._ranges.size(path)

    def glob(self, pattern: str) -> list[str]:
        return self._ranges.glob(pattern)

    def forget(self, path: str) -> bool:
        return False

    def close(self) -> None:
        if self._copy is not None:
            self._copy.close()
