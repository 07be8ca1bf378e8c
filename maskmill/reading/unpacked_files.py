"""Keep the unpacked content of files in a temporary file, so that any range of it can be read."""

import os
import tempfile
import threading
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from maskmill.errors import RunFailedError
from maskmill.reading.byte_ranges import open_bytes
from maskmill.records.tfrecord import read_part

_COPIED = 1 << 20


class UnpackedFiles:
    """The contents of files, one after the other in a temporary file.

    That file has no name, so the system deletes it when the process ends, however it ends. Several threads may call the
    methods at the same time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None
        self._size = 0

    def add(self, content: BinaryIO, path: str) -> tuple[int, int]:
        """Keep a file's content, and return its start and end in the temporary file.

        Args:
          content: of `unpacked`.
          path: the name of the file in messages.

        Raises:
          UnusableInputError: the file is damaged.
          RunFailedError: the disk has no space for it.
        """
        with self._lock:
            start = self._size
            while part := read_part(content, path, _COPIED):
                try:
                    self._append(part)
                except OSError as error:
                    raise RunFailedError(
                        f"{path}: this file is packed and cannot be unpacked in {tempfile.gettempdir()} "
                        f"({error.strerror or error}); set TMPDIR to a directory with room, or unpack it first."
                    ) from error
            return start, self._size

    def _append(self, part: bytes) -> None:
        if self._file is None:
            self._file = cast(BinaryIO, tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 - `close` closes it
        left = memoryview(part)
        while left:
            written = os.pwrite(self._file.fileno(), left, self._size)
            self._size += written
            left = left[written:]

    def read(self, start: int, end: int) -> npt.NDArray[np.uint8]:
        """Return bytes [start, end) of the temporary file, which must have them, in a new, writable array."""
        data = np.empty(end - start, np.uint8)
        filled = 0
        while self._file is not None and filled < len(data):
            count = os.preadv(self._file.fileno(), [data[filled:].data], start + filled)
            if not count:
                raise RunFailedError(f"{tempfile.gettempdir()}: a temporary file became shorter; start again.")
            filled += count
        return data

    def open(self, start: int, end: int) -> BinaryIO:
        """Return bytes [start, end) of the temporary file as a file."""
        return open_bytes(end - start, lambda first, last: self.read(start + first, start + last), _COPIED)

    def close(self) -> None:
        """Drop all contents."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
