"""Read rows of Parquet files as Arrow's tables.

A damaged file may make pyarrow abort its process, so here it gets only bytes that fit a seal (records/parquet.py).
Files without a seal were written by another program, or by maskmill before version 3 of its format. A separate process
makes a sealed copy of them (parquet_process.py), which is read instead.
"""

import functools
import io
import os
import tempfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.parquet

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading import parquet_process
from maskmill.reading.block_reader import DamagedBlockError, WrongChecksumError
from maskmill.reading.byte_ranges import ByteRanges, open_bytes, open_range_file
from maskmill.records.parquet import SEAL_END, SEAL_ENTRY, SEAL_MARK

_END_BYTES = 1 << 16  # read at first; most seals and metadata are smaller
_SIZE_BYTES = 8  # of the size of the metadata, and the magic number
_COPY = "maskmill.reading.parquet_copy:sealed_copy"


class _NoSealError(Exception):
    """The file has no seal."""


# Consecutive rows: the number of the first, and a function that returns them.
Part = tuple[int, Callable[[], pyarrow.Table]]
# Returns bytes [start, end) of a file, as uint8[n].
Read = Callable[[int, int], npt.NDArray[np.uint8]]


class ParquetFile:
    """A file with a seal.

    Attributes:
      rows: the number of its rows.
      block_rows: the number of rows of the first row group.
      schema: of the columns to read that the file has.
      is_copy: whether this is the copy of a file without a seal.
    """

    def __init__(self, path: str, size: int, read: Read, columns: Sequence[str], *, is_copy: bool = False) -> None:
        """Read the seal and the metadata.

        Args:
          path: the name of the file in messages.
          size: of the file, in bytes.
          read: reads it.
          columns: the names of the columns to read; those that the file lacks are skipped.

        Raises:
          _NoSealError: it has no seal.
          DamagedBlockError: the seal or the metadata is damaged.
        """
        self._path, self._read, self.is_copy = path, read, is_copy
        end = b""

        def last(count: int) -> bytes:
            nonlocal end
            if count > len(end):
                end = read(max(0, size - max(count, _END_BYTES)), size).tobytes()
            return end[-count:]

        metadata_size = int.from_bytes(last(_SIZE_BYTES)[:4], "little") + _SIZE_BYTES
        if metadata_size + SEAL_END.size > size:
            raise _NoSealError
        mark, groups, checksum, other = SEAL_END.unpack_from(last(metadata_size + SEAL_END.size))
        if SEAL_MARK not in (mark, other):
            raise _NoSealError
        content = last(metadata_size + SEAL_END.size + groups * SEAL_ENTRY.size)
        seal, metadata = content[: groups * SEAL_ENTRY.size], content[-metadata_size:]
        if mark != other or zlib.crc32(seal + metadata) != checksum:
            raise DamagedBlockError(f"{path}: the end of this Parquet file is damaged; make or fetch it again.")
        entries = np.frombuffer(seal, np.int64).reshape(groups, 3)
        # int64[groups + 1] each: the rows before each row group and the start of its bytes; last, the totals.
        self._rows, self._ends = np.append(0, np.cumsum(entries[:, 0])), np.append(0, entries[:, 1])
        self._checksums = entries[:, 2]
        self._metadata = pyarrow.parquet.read_metadata(io.BytesIO(metadata))
        schema = self._metadata.schema.to_arrow_schema()
        self.schema = pyarrow.schema([schema.field(name) for name in columns if name in schema.names])
        self.rows = int(self._rows[-1])
        self.block_rows = max(1, int(self._rows[:2][-1]))

    def parts(self, first: int, count: int) -> list[Part]:
        """Read the row groups of rows [first, first + count); they are unpacked when a part is called."""
        start = int(np.searchsorted(self._rows, first, "right")) - 1
        stop = int(np.searchsorted(self._rows, first + count, "left"))
        parts = list[Part]()
        for number in range(start, stop):
            content = self._read(*self._ends[number : number + 2].tolist())
            parts.append((int(self._rows[number]), functools.cache(functools.partial(self._unpack, number, content))))
        return parts

    def _unpack(self, number: int, content: npt.NDArray[np.uint8]) -> pyarrow.Table:
        """Return the rows of a row group; content: its bytes."""
        if zlib.crc32(content.data) != self._checksums[number]:
            message = f"{self._path}: row group {number + 1:,} does not fit its checksum; make or fetch the file again."
            raise DamagedBlockError(message) from WrongChecksumError(message)
        at, end = self._ends[number], int(self._ends[-1])
        file = open_bytes(end, lambda start, stop: content[start - at : stop - at], len(content))
        parquet = pyarrow.parquet.ParquetFile(file, metadata=self._metadata, pre_buffer=False)
        return parquet.read_row_group(number, columns=self.schema.names, use_threads=False)


def open_file(path: str, ranges: ByteRanges, columns: Sequence[str], size: int | None = None) -> ParquetFile:
    """Open a file, or a copy of it, to read columns; see ParquetFile.

    Raises:
      DamagedBlockError: it is damaged, or no Parquet.
      RunFailedError: it cannot be read, or the disk has no space for a copy.
    """
    try:
        return ParquetFile(path, size or ranges.size(path), functools.partial(ranges.read, path), columns)
    except _NoSealError:
        return _copy(path, ranges, columns)


def _copy(path: str, ranges: ByteRanges, columns: Sequence[str]) -> ParquetFile:
    """Return a copy of columns of a file, in an unnamed temporary file, which is deleted with the ParquetFile."""
    copy: Any = tempfile.TemporaryFile()  # noqa: SIM115 - the ParquetFile reads it
    try:
        for content in parquet_process.answers(_COPY, path, list(columns), file=open_range_file(path, ranges)):
            copy.write(content)
        copy.flush()
    except UnusableInputError as error:
        raise DamagedBlockError(str(error)) from error
    except OSError as error:
        raise RunFailedError(
            f"{path}: this file has no checksums, and there is no room for a copy of its rows ({error.strerror}); make "
            "room, or name another directory for temporary files in TMPDIR."
        ) from error

    def read(start: int, end: int) -> npt.NDArray[np.uint8]:
        return np.frombuffer(bytearray(os.pread(copy.fileno(), end - start, start)), np.uint8)

    return ParquetFile(path, copy.tell(), read, columns, is_copy=True)
