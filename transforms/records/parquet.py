"""Rows to Parquet: a list column for each column, of the smallest integer type that fits.

Encodings are those that every reader knows, chosen by measuring on enwik8's examples of 512 pieces: dictionaries for
pieces and their positions, PLAIN for the rest, and zstd's level 1. BYTE_STREAM_SPLIT makes ids 11 % smaller in less
time, but DuckDB reads integers in it only from version 2 on. Level 3 takes 1.7 times the time to save 2 %.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.parquet

from transforms.masking.kernels.rows import RowArrays
from transforms.records.columns import Column, ColumnValues, column_values
from transforms.records.tfrecord import WrittenFile
from transforms.storage import files

# A row group is what a reader holds in memory, and what it shuffles by.
_GROUP_ROWS = 10_000
_GROUP_BYTES = 32 << 20
_WITH_DICTIONARY = ("input_ids", "masked_lm_ids", "masked_lm_positions")
_OPTIONS = {
    "version": "2.6",
    "data_page_version": "1.0",
    "compression": "zstd",
    "compression_level": 1,
    "write_statistics": False,
    "write_page_checksum": True,
    "data_page_size": 1 << 20,
    "write_batch_size": 1024,
    "store_schema": False,
}


def write_parquet(
    path: str,
    blocks: Iterable[tuple[RowArrays, int]],
    columns: Sequence[Column],
    special_ids: Sequence[int],
    width: int,
    *,
    checksum: bool,
) -> list[WrittenFile]:
    """Writes rows to a Parquet file.

    The same rows give the same bytes, whatever the blocks they come in, as long as the version of pyarrow is the same;
    the file's metadata (`created_by`) names it.

    Args:
      path: the file.
      blocks: the rows, as blocks with the number of rows in use; each is read before the next one is asked for.
      columns: see `columns.columns_of`.
      special_ids: the ids of [CLS] and [SEP].
      width: how many pieces rows are padded to.
      checksum: compute the file's sha256 while it is written.

    Returns:
      The file written.

    Raises:
      RunFailedError: the file cannot be written.
    """
    schema = pyarrow.schema([pyarrow.field(c.name, _list_type(c), nullable=False) for c in columns])
    with files.new_file(path, checksum=checksum) as file, _writer(file, columns, schema) as writer:
        for group in _row_groups(blocks, columns, special_ids, width):
            arrays = [
                pyarrow.ListArray.from_arrays(values.offsets.astype(np.int32), values.values, type=_list_type(column))
                for column, values in zip(columns, group, strict=True)
            ]
            table = pyarrow.Table.from_arrays(arrays, schema=schema)
            writer.write_table(table, row_group_size=len(table))
    return [WrittenFile(path=file.path, size=file.size, sha256=file.sha256 if checksum else None)]


def _list_type(column: Column) -> pyarrow.DataType:
    values = pyarrow.from_numpy_dtype(column.dtype)
    return pyarrow.list_(pyarrow.field("element", values, nullable=False))


def _row_groups(
    blocks: Iterable[tuple[RowArrays, int]], columns: Sequence[Column], special_ids: Sequence[int], width: int
) -> Iterator[list[ColumnValues]]:
    """Yields the values of each column for the rows of a group, of which each but the last has the same number."""
    row_bytes = sum((c.length or width) * c.dtype.itemsize for c in columns)
    most = max(1, min(_GROUP_ROWS, _GROUP_BYTES // row_bytes))
    parts: list[list[ColumnValues]] = [[] for _ in columns]
    filled = 0
    for rows, count in blocks:
        block = [column_values(column, rows, count, special_ids, width) for column in columns]
        start = 0
        while start < count:
            end = min(count, start + most - filled)
            for part, values in zip(parts, block, strict=True):
                part.append(_copy(values, start, end))
            filled += end - start
            start = end
            if filled == most:
                yield [_join(part) for part in parts]
                parts = [[] for _ in columns]
                filled = 0
    if filled:
        yield [_join(part) for part in parts]


def _copy(values: ColumnValues, start: int, end: int) -> ColumnValues:
    """The values of rows [start, end), which stay when those of the block are overwritten."""
    first, last = values.offsets[start], values.offsets[end]
    return ColumnValues(values.values[first:last].copy(), values.offsets[start : end + 1] - first)


def _join(parts: Sequence[ColumnValues]) -> ColumnValues:
    """The values of several runs of rows as those of one."""
    lengths: list[npt.NDArray[np.int64]] = [np.diff(part.offsets) for part in parts]
    offsets = np.concatenate([np.zeros(1, np.int64), *lengths]).cumsum()
    return ColumnValues(np.concatenate([part.values for part in parts]), offsets)


class _Sink:
    """The file object that pyarrow writes to: it passes the bytes on to the output file, until it is told to stop."""

    closed = False

    def __init__(self, output: files.OutputFile) -> None:
        self._output: files.OutputFile | None = output

    def write(self, block: bytes) -> int:
        if self._output is not None:
            self._output.write(block)
        return len(block)

    def stop(self) -> None:
        """Drops what is written from now on."""
        self._output = None

    def flush(self) -> None:
        """Does nothing; pyarrow calls it."""

    def close(self) -> None:
        """Does nothing; who opened the file closes it."""


@contextlib.contextmanager
def _writer(
    output: files.OutputFile, columns: Sequence[Column], schema: pyarrow.Schema
) -> Iterator[pyarrow.parquet.ParquetWriter]:
    """A writer whose last bytes are written when the block ends without an exception, and dropped otherwise."""
    sink = _Sink(output)
    dictionaries = [f"{column.name}.list.element" for column in columns if column.feature in _WITH_DICTIONARY]
    writer = pyarrow.parquet.ParquetWriter(sink, schema, use_dictionary=dictionaries, **_OPTIONS)
    try:
        yield writer
        writer.close()
    except BaseException:
        # A writer that stays open would be closed by the garbage collector, and would write then.
        sink.stop()
        writer.close()
        raise
