"""Gives rows of Parquet files as Arrow's tables: of maskmill's own files, and of those that another program wrote.

A damaged file may make pyarrow abort its process. Of our own files it gets no byte that does not fit the file's seal
(records/parquet.py); other files are read in a process of their own, at several times the CPU time.
"""

import functools
import io
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.parquet

from maskmill.errors import UnusableInputError
from maskmill.reading import parquet_process
from maskmill.reading.block_reader import DamagedBlockError, WrongChecksumError
from maskmill.reading.byte_ranges import ByteRanges, open_bytes, open_range_file
from maskmill.records.parquet import SEAL_END, SEAL_ENTRY, SEAL_MARK

_END_BYTES = 1 << 16  # read at first; most seals and metadata are smaller
_SIZE_BYTES = 8  # of the size of the metadata, and the magic number
_TASK = "maskmill.reading.parquet_reader:tables"

Part = tuple[int, Callable[[], pyarrow.Table]]  # rows in one run: the number of the first, and what gives them


class SealedFile:
    """A file of maskmill's.

    Attributes:
      rows: how many there are.
      block_rows: those of the first row group.
      schema: of the columns that are read and that there are.
    """

    def __init__(
        self, path: str, ranges: ByteRanges, columns: Sequence[str], entries: npt.NDArray[np.int64], metadata: bytes
    ) -> None:
        """entries: int64[groups, 3], those of the seal. metadata: the end of the file."""
        self._path, self._ranges = path, ranges
        # int64[groups + 1]: the rows before each row group, where its bytes start, and what is behind the last.
        self._rows, self._ends = np.append(0, np.cumsum(entries[:, 0])), np.append(0, entries[:, 1])
        self._checksums = entries[:, 2]
        self._metadata = pyarrow.parquet.read_metadata(io.BytesIO(metadata))
        schema = self._metadata.schema.to_arrow_schema()
        self.schema = pyarrow.schema([schema.field(name) for name in columns if name in schema.names])
        self.rows = int(self._rows[-1])
        self.block_rows = max(1, int(self._rows[:2][-1]))

    def parts(self, first: int, count: int) -> list[Part]:
        """Reads the row groups in which rows [first, first + count) are."""
        start = int(np.searchsorted(self._rows, first, "right")) - 1
        stop = int(np.searchsorted(self._rows, first + count, "left"))
        parts = list[Part]()
        for number in range(start, stop):
            content = self._ranges.read(self._path, *self._ends[number : number + 2].tolist())
            parts.append((int(self._rows[number]), functools.cache(functools.partial(self._unpack, number, content))))
        return parts

    def _unpack(self, number: int, content: npt.NDArray[np.uint8]) -> pyarrow.Table:
        """The rows of a row group, whose bytes `content` are."""
        if zlib.crc32(content.data) != self._checksums[number]:
            message = f"{self._path}: row group {number + 1:,} does not fit its checksum; make or fetch the file again."
            raise DamagedBlockError(message) from WrongChecksumError(message)
        at, end = self._ends[number], int(self._ends[-1])
        file = open_bytes(end, lambda start, stop: content[start - at : stop - at], len(content))
        parquet = pyarrow.parquet.ParquetFile(file, metadata=self._metadata, pre_buffer=False)
        return parquet.read_row_group(number, columns=self.schema.names, use_threads=False)


def _open_sealed(path: str, size: int, ranges: ByteRanges, columns: Sequence[str]) -> SealedFile | None:
    """Opens a file of `size` bytes; None: it has no seal.

    Raises:
      DamagedBlockError: the seal is damaged, or the metadata are.
    """
    end = b""

    def last(count: int) -> bytes:
        nonlocal end
        if count > len(end):
            end = ranges.read(path, max(0, size - max(count, _END_BYTES)), size).tobytes()
        return end[-count:]

    metadata_size = int.from_bytes(last(_SIZE_BYTES)[:4], "little") + _SIZE_BYTES
    if metadata_size + SEAL_END.size > size:
        return None
    mark, groups, checksum, other = SEAL_END.unpack_from(last(metadata_size + SEAL_END.size))
    if SEAL_MARK not in (mark, other):
        return None
    content = last(metadata_size + SEAL_END.size + groups * SEAL_ENTRY.size)
    entries, metadata = content[: groups * SEAL_ENTRY.size], content[-metadata_size:]
    if mark != other or zlib.crc32(entries + metadata) != checksum:
        raise DamagedBlockError(f"{path}: the end of this Parquet file is damaged; make or fetch it again.")
    return SealedFile(path, ranges, columns, np.frombuffer(entries, np.int64).reshape(groups, 3), metadata)


class ForeignFile:
    """The rows of a file, read forward; whoever asks for others than the next ones lets the file be opened once more.

    The attributes are those of SealedFile.
    """

    def __init__(self, path: str, ranges: ByteRanges, columns: Sequence[str]) -> None:
        self._path, self._ranges, self._columns = path, ranges, list(columns)
        self._lock = threading.Lock()
        self._open(0, 0)
        list(self._answers)

    def _open(self, first: int, count: int) -> None:
        file = open_range_file(self._path, self._ranges)
        self._answers: Iterator[Any] = parquet_process.answers(
            _TASK, self._path, self._columns, first, count, file=file
        )
        self._next, self._count = first, count
        self.rows, self.block_rows, self.schema = next(self._answers)

    def parts(self, first: int, count: int) -> list[Part]:
        """Reads rows [first, first + count)."""
        try:
            with self._lock:
                table = self._read(first, count)
        except UnusableInputError as error:
            raise DamagedBlockError(str(error)) from error
        return [(first, lambda: table)]

    def _read(self, first: int, count: int) -> pyarrow.Table:
        if (first, count) != (self._next, self._count):
            self._answers.close()  # type: ignore[attr-defined]
            self._open(first, count)
        stream = next(self._answers, b"")
        table = pyarrow.ipc.open_stream(stream).read_all() if stream else self.schema.empty_table()
        if table.num_rows != count:
            raise UnusableInputError(f"{self._path}: this file has fewer rows than it says; make it again.")
        self._next += count
        self._count = min(count, self.rows - self._next)
        if not self._count:
            list(self._answers)  # which lets the process go back to those that wait for a task
        return table


def open_file(
    path: str, ranges: ByteRanges, columns: Sequence[str], size: int | None = None
) -> SealedFile | ForeignFile:
    """Opens a file to read columns; those that it lacks are left out.

    Raises:
      DamagedBlockError: it is damaged, or no Parquet.
      RunFailedError: it cannot be read.
    """
    sealed = _open_sealed(path, size or ranges.size(path), ranges, columns)
    if sealed is not None:
        return sealed
    try:
        return ForeignFile(path, ranges, columns)
    except UnusableInputError as error:
        raise DamagedBlockError(str(error)) from error
