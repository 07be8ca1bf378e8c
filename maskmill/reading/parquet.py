"""Read data sets in Parquet, a row group at a time; see parquet_files.py."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
from pyarrow import types

from maskmill.reading.block_reader import Block, BlockReader, DamagedBlockError, OtherColumnsError, Rows
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.column_tables import is_float, limits, wrong_count, wrong_value
from maskmill.reading.data_set import DataSet, ReadColumn
from maskmill.reading.parquet_files import ParquetFile, Part, open_file


class ParquetReader(BlockReader):
    """Read the Parquet files of a data set. Columns are found by name.

    Attributes:
      block_samples: the rows of a row group of the largest file; if files differ in width, the maximum over widths.
    """

    def __init__(self, data_set: DataSet, ranges: ByteRanges) -> None:
        """Open one file of each width.

        Raises:
          UnusableInputError: a file is no Parquet, is damaged, or lacks a column.
          RunFailedError: a file cannot be read.
        """
        self._data_files = data_set.files
        self._columns = data_set.columns
        self._ranges = ranges
        self._files: dict[int, ParquetFile] = {}
        # The largest file of each width: a smaller one may end within its first group.
        by_size = sorted(range(len(data_set.files)), key=lambda number: data_set.files[number].samples)
        largest_of_width = {data_set.files[number].width: number for number in by_size}
        self.block_samples = max(map(self._block_rows, largest_of_width.values()), default=1)

    def fetch(self, block: Block) -> list[Part]:
        return self._file(block.file).parts(block.first, block.count)

    def decode(
        self, fetched: list[Part], block: Block, samples: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows
    ) -> None:
        path, samples = self._data_files[block.file].path, samples + block.first
        for at, load in fetched:
            table = load()
            first, end = np.searchsorted(samples, [at, at + table.num_rows])
            if end - first < table.num_rows:
                table = table.take(pyarrow.array(samples[first:end] - at))
            for column in self._columns:
                if column.name in table.column_names:
                    _put(path, column, table.column(column.name), samples[first:end], rows[first:end], into)
                else:
                    into.put_zeros(column, rows[first:end])

    def forget(self, block: Block) -> bool:
        self._files.pop(block.file, None)
        return self._ranges.forget(self._data_files[block.file].path)

    @staticmethod
    def count_samples(path: str, ranges: ByteRanges) -> int:
        return open_file(path, ranges, []).rows

    @staticmethod
    def why_unchecked(path: str, ranges: ByteRanges) -> str | None:
        if open_file(path, ranges, []).is_copy:
            return "another program wrote this Parquet file again; its pages need no checksums"
        return None

    def _block_rows(self, number: int) -> int:
        """Return the number of rows of a file's blocks; open a file that arrives damaged once more."""
        try:
            return self._file(number).block_rows
        except DamagedBlockError:
            if not self._ranges.forget(self._data_files[number].path):
                raise
            return self._file(number).block_rows

    def _file(self, number: int) -> ParquetFile:
        """Return a file, opened the first time; two threads may both open it."""
        file = self._files.get(number)
        if file is None:
            file = self._files[number] = self._open(number)
        return file

    def _open(self, number: int) -> ParquetFile:
        file = self._data_files[number]
        found = open_file(file.path, self._ranges, [column.name for column in self._columns], file.size)
        if found.rows != file.samples:
            raise DamagedBlockError(
                f"{file.path}: this file has {found.rows:,} examples, but the manifest says {file.samples:,}; "
                "make or fetch it again."
            )
        for column in self._columns:
            if column.name in found.schema.names:
                _check_kind(file.path, column, found.schema.field(column.name).type)
            elif not column.optional:
                raise OtherColumnsError(f"{file.path}: the column {column.name} is missing; make the file again.")
        return found


def _check_kind(path: str, column: ReadColumn, kind: pyarrow.DataType) -> None:
    """Raise OtherColumnsError if a column does not have lists of numbers of its kind."""
    if not types.is_list(kind) or not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        raise OtherColumnsError(f"{path}: the column {column.name} has {kind}, but it must have lists of numbers.")
    if types.is_floating(kind.value_type) != is_float(column):
        has, must = ("integers", "floats") if is_float(column) else ("floats", "integers")
        raise OtherColumnsError(f"{path}: the column {column.name} has {has}, but it must have {must}.")


def _put(
    path: str,
    column: ReadColumn,
    lists: pyarrow.ChunkedArray,
    samples: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    into: Rows,
) -> None:
    """Check the lists of a column, and write them to rows; samples: their numbers in the file, for messages."""
    array = lists.combine_chunks()
    flat = array.flatten()
    if array.null_count or flat.null_count:
        raise DamagedBlockError(f"{path}: values of the column {column.name} are missing (null); make it again.")
    values: npt.NDArray[Any] = np.from_dlpack(flat)  # to_numpy imports pandas where it is installed
    lengths = np.diff(np.from_dlpack(array.offsets))
    is_wrong = lengths > column.width if column.varies else lengths != column.width
    if is_wrong.any():
        place = int(np.argmax(is_wrong))
        message = wrong_count(column, int(lengths[place]))
        raise DamagedBlockError(f"{path}, record {samples[place] + 1:,}: {message}")
    low, high = limits(column)
    # NaN is neither above nor below anything.
    if len(values) and not np.isnan(low) and not (values.min() >= low and values.max() <= high):
        value = int(np.argmax(~((values >= low) & (values <= high))))
        sample = samples[np.searchsorted(np.cumsum(lengths), value, "right")]
        message = wrong_value(column, values[value : value + 1])
        raise DamagedBlockError(f"{path}, record {sample + 1:,}: {message}", feature=column.feature)
    target = into.arrays[column.feature]
    if not column.varies:
        target[rows] = values.reshape(len(rows), column.width)
        return
    padded = np.full((len(rows), column.width), 0 if column.fill is None else column.fill, column.dtype)
    is_value = np.arange(column.width) < lengths[:, None]
    padded[is_value] = values
    if column.fill is None and column.width:
        last = padded[np.arange(len(rows)), np.maximum(lengths - 1, 0)]
        padded = np.where(is_value, padded, last[:, None])
    target[rows] = padded
    into.counts[column.feature][rows] = lengths
