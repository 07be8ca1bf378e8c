"""Reads data sets in Parquet, a row group at a time, with pyarrow.

A file's footer is read once and kept. A row group's columns are fetched with one request, and decoded from memory.
"""

import collections
import dataclasses
import io
import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.parquet

from transforms.errors import UnusableInputError
from transforms.loading.block_reader import Block, BlockReader, DamagedBlockError
from transforms.loading.byte_ranges import ByteRanges
from transforms.loading.data_set import DataSet, ReadColumn
from transforms.loading.rows import Rows

_KEPT_BYTES = 8 << 20  # of footers, as files have them; several times as much in memory


@dataclasses.dataclass(frozen=True)
class _Footer:
    """What a file says of itself.

    metadata: pyarrow's. size: of the file. starts: int64[groups + 1], the samples before each row group, and of all.
    """

    metadata: Any
    size: int
    starts: npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class _Group:
    """The bytes of a row group: number: its place in the file; start: where data begins in the file."""

    number: int
    start: int
    data: npt.NDArray[np.uint8]


@dataclasses.dataclass(frozen=True)
class _Fetched:
    """The row groups of a block, and the footer that they were found by."""

    footer: _Footer
    groups: list[_Group]


class ParquetReader(BlockReader):
    """Reads the Parquet files of a data set.

    Attributes:
      block_samples: see BlockReader; the rows of the largest row group among the first files of each width.
    """

    def __init__(self, data_set: DataSet, ranges: ByteRanges) -> None:
        """Reads the footer of a file or a few.

        Raises:
          UnusableInputError: a file is no Parquet, is damaged, or has other columns.
        """
        self._files = data_set.files
        self._columns = data_set.columns
        self._ranges = ranges
        self._footers: collections.OrderedDict[int, _Footer] = collections.OrderedDict()
        self._lock = threading.Lock()
        firsts = {file.width: number for number, file in reversed(list(enumerate(self._files)))}
        rows = [int(self._footer(number).starts[1]) for number in firsts.values()]
        self.block_samples = max(rows, default=1)

    def fetch(self, block: Block) -> _Fetched:
        footer = self._footer(block.file)
        starts, path = footer.starts, self._files[block.file].path
        first = int(np.searchsorted(starts, block.first, "right")) - 1
        end = int(np.searchsorted(starts, block.first + block.count, "left"))
        groups = []
        for number in range(first, end):
            start, stop = _extent(footer.metadata.row_group(number))
            if not 0 < start < stop <= footer.size:
                raise DamagedBlockError(f"{path}: row group {number + 1} lies outside of the file; make it again.")
            groups.append(_Group(number, start, self._ranges.read(path, start, stop)))
        return _Fetched(footer, groups)

    def decode(
        self, fetched: _Fetched, block: Block, wanted: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows
    ) -> None:
        path, samples = self._files[block.file].path, wanted + block.first
        for group in fetched.groups:
            start, end = fetched.footer.starts[group.number : group.number + 2]
            chosen = slice(*np.searchsorted(samples, [start, end]))
            table = _table(path, fetched.footer, group)
            for column in self._columns:
                records = samples[chosen] + 1
                found = _Column(path, column, records, rows[chosen], into)
                if column.name in table.column_names:
                    found.put(table[column.name].combine_chunks(), samples[chosen] - start)
                elif column.optional:
                    found.put_nothing()
                else:
                    raise UnusableInputError(f"{path}: the column {column.name} is missing; make the file again.")

    def forget(self, block: Block) -> bool:
        with self._lock:
            self._footers.pop(block.file, None)
        return self._ranges.forget(self._files[block.file].path)

    def _footer(self, number: int) -> _Footer:
        """The footer of a file; those read last are kept."""
        with self._lock:
            if number in self._footers:
                self._footers.move_to_end(number)
                return self._footers[number]
        footer = self._read_footer(number)
        with self._lock:
            self._footers[number] = footer
            while len(self._footers) > 1 and sum(_size(f) for f in self._footers.values()) > _KEPT_BYTES:
                self._footers.popitem(last=False)
        return footer

    def _read_footer(self, number: int) -> _Footer:
        file = self._files[number]
        size = self._ranges.size(file.path)
        try:
            metadata = pyarrow.parquet.read_metadata(_RangesFile(self._ranges, file.path, size))
        except (pyarrow.ArrowException, OSError) as error:
            raise _damaged(file.path, error) from error
        counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        if starts[-1] != file.samples:
            raise DamagedBlockError(
                f"{file.path}: this file has {starts[-1]:,} rows, but the manifest says {file.samples:,}; make or "
                "fetch it again."
            )
        return _Footer(metadata, size, starts)


def _size(footer: _Footer) -> int:
    return int(footer.metadata.serialized_size)


def _damaged(path: str, error: Exception) -> DamagedBlockError:
    return DamagedBlockError(f"{path}: this Parquet file is damaged ({error}); make or fetch it again.")


def _extent(group: Any) -> tuple[int, int]:
    """Where the bytes of a row group start and end."""
    columns = [group.column(number) for number in range(group.num_columns)]
    starts = [c.dictionary_page_offset or c.data_page_offset for c in columns]
    return min(starts), max(start + c.total_compressed_size for start, c in zip(starts, columns, strict=True))


def _table(path: str, footer: _Footer, group: _Group) -> Any:
    """The columns of a row group."""
    try:
        source = _PartOfFile(group.data.data, group.start, footer.size)
        file = pyarrow.parquet.ParquetFile(
            source, metadata=footer.metadata, page_checksum_verification=True, pre_buffer=False
        )
        return file.read_row_group(group.number, use_threads=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


class _RangesFile(io.RawIOBase):
    """A file whose reads are ranges."""

    def __init__(self, ranges: ByteRanges, path: str, size: int) -> None:
        self._ranges, self._path, self._size, self._at = ranges, path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, count: int = -1) -> bytes:
        end = self._size if count < 0 else min(self._size, self._at + count)
        content = self._bytes(self._at, end)
        self._at = end
        return content

    def _bytes(self, start: int, end: int) -> bytes:
        return self._ranges.read(self._path, start, end).tobytes() if start < end else b""


class _PartOfFile(_RangesFile):
    """A file of which a part is in memory, and nothing else is read."""

    def __init__(self, data: memoryview, start: int, size: int) -> None:
        self._data, self._start, self._size, self._at = data, start, size, 0

    def _bytes(self, start: int, end: int) -> bytes:
        return bytes(self._data[max(0, start - self._start) : max(0, end - self._start)])


@dataclasses.dataclass(frozen=True)
class _Column:
    """Where the values of a column go: records: their numbers in the file, from 1; rows: of `into`."""

    path: str
    column: ReadColumn
    records: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    into: Rows

    def put_nothing(self) -> None:
        """Writes zeros."""
        self.into.arrays[self.column.feature][self.rows] = 0
        if self.column.varies:
            self.into.counts[self.column.feature][self.rows] = 0

    def put(self, array: Any, places: npt.NDArray[np.int64]) -> None:
        """Writes the values of some rows of a list array."""
        column = self.column
        offsets = array.offsets.to_numpy()
        lengths = np.diff(offsets)[places]
        values = array.values.to_numpy(zero_copy_only=False)
        self._check_lengths(lengths)
        wide = np.minimum(offsets[:-1][places, None] + np.arange(column.width), max(0, len(values) - 1))
        found = values[wide] if len(values) else np.zeros(wide.shape, values.dtype)
        behind = np.arange(column.width) >= lengths[:, None]
        self._check_values(found, behind)
        if column.varies:
            last = found[np.arange(len(places)), np.maximum(lengths - 1, 0)]
            fill = last[:, None] if column.fill is None else np.array(column.fill, column.dtype)
            found = np.where(behind, fill, found)
            self.into.counts[column.feature][self.rows] = lengths
        self.into.arrays[column.feature][self.rows] = found

    def _check_lengths(self, lengths: npt.NDArray[np.int64]) -> None:
        column = self.column
        bad = lengths > column.width if column.varies else lengths != column.width
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            must = f"at most {column.width}" if column.varies else str(column.width)
            raise UnusableInputError(
                f"{self.path}, record {self.records[at]:,}: {column.name} has length {lengths[at]}, but it must "
                f"have {must}."
            )

    def _check_values(self, values: npt.NDArray[Any], behind: npt.NDArray[np.bool_]) -> None:
        column = self.column
        bad = np.zeros(values.shape, np.bool_)
        if column.low is not None:
            bad |= ~(values >= column.low)
        if column.high is not None:
            bad |= ~(values <= column.high)
        bad &= ~behind
        if bad.any():
            row, place = (int(indexes[0]) for indexes in np.nonzero(bad))
            raise UnusableInputError(
                f"{self.path}, record {self.records[row]:,}: {column.name} is {values[row, place]}, but it must be "
                f"from {column.low} to {column.high}: {column.meaning}."
            )
