"""Rows to Parquet: a list column for each column, of the smallest integer type that fits, packed with zstd.

Encodings are those that every reader knows, see parquet_format.py: DuckDB reads integers in BYTE_STREAM_SPLIT only from
version 2 on. zstd's level 2 takes 1.6 times the time of level 1 to save 8 % of the ids.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow

from maskmill.masking.kernels.rows import RowArrays
from maskmill.records.columns import Column, ColumnValues, column_values
from maskmill.records.parquet_format import MAGIC, Chunk, encode_chunk, encode_footer
from maskmill.records.tfrecord import WrittenFile, written_file
from maskmill.storage import files

# A row group is what a reader holds in memory, and what it shuffles by. At 512 pieces, groups of 2,048 rows take 3 %
# more room than groups of 10,000.
_GROUP_ROWS = 4096
_GROUP_BYTES = 8 << 20
_LEVEL = 1


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

    columns: of `columns.columns_of`. special_ids: of [CLS] and [SEP]. The other arguments: see ShardFormat.write.

    Raises:
      RunFailedError: the file cannot be written.
    """
    group = _RowGroup(columns, width)
    with files.new_file(path, checksum=checksum) as file:
        writer = _Writer(file, columns)
        for rows, count in blocks:
            block = [column_values(column, rows, count, special_ids, width) for column in columns]
            start = 0
            while start < count:
                start += group.add(block, start, count)
                if group.is_full:
                    writer.write(group)
        if group.rows:
            writer.write(group)
        writer.close()
    return [written_file(file, checksum)]


class _RowGroup:
    """The rows of a group, in arrays that are used again for the next one.

    Attributes:
      rows: how many there are. Each group but the last has the same number, whatever the blocks.
    """

    def __init__(self, columns: Sequence[Column], width: int) -> None:
        row_bytes = sum((column.length or width) * column.dtype.itemsize for column in columns)
        most = max(1, min(_GROUP_ROWS, _GROUP_BYTES // row_bytes))
        # A power of two: then readers that take the groups of bins in equal blocks never read half a group.
        self._most = 1 << most.bit_length() - 1
        # cu_seqlens has up to width + 1 values. Pages that no value reaches take no memory.
        self._values = [np.empty(self._most * (column.length or width + 1), column.dtype) for column in columns]
        self._offsets = [np.zeros(self._most + 1, np.int32) for _ in columns]
        self.rows = 0

    @property
    def is_full(self) -> bool:
        return self.rows == self._most

    def add(self, block: Sequence[ColumnValues], start: int, count: int) -> int:
        """Adds rows [start, count) of a block, or as many as there is room for; returns how many."""
        end = min(count, start + self._most - self.rows)
        rows = self.rows + end - start
        for values, offsets, added in zip(self._values, self._offsets, block, strict=True):
            first, last = added.offsets[start], added.offsets[end]
            filled = offsets[self.rows]
            values[filled : filled + last - first] = added.values[first:last]
            offsets[self.rows + 1 : rows + 1] = added.offsets[start + 1 : end + 1] - first + filled
        self.rows = rows
        return end - start

    def take(self) -> list[tuple[npt.NDArray[np.generic], npt.NDArray[np.int32]]]:
        """The values and offsets of each column, until rows are added again; the group is empty then."""
        rows, self.rows = self.rows, 0
        return [
            (values[: offsets[rows]], offsets[: rows + 1])
            for values, offsets in zip(self._values, self._offsets, strict=True)
        ]


class _Writer:
    """Writes row groups one behind the other, and in the end what the file says of them."""

    def __init__(self, file: files.OutputFile, columns: Sequence[Column]) -> None:
        self._file = file
        self._columns = columns
        self._codec = pyarrow.Codec("zstd", compression_level=_LEVEL)
        self._groups: list[tuple[int, int, list[Chunk]]] = []
        self._at = len(MAGIC)
        file.write(MAGIC)

    def write(self, group: _RowGroup) -> None:
        """Writes the rows of a group, which has none then."""
        start, rows = self._at, group.rows
        chunks = []
        for column, (values, offsets) in zip(self._columns, group.take(), strict=True):
            chunk, pages = encode_chunk(column, values, offsets, self._codec)
            for page in pages:
                self._file.write(page)
            self._at += chunk.size
            chunks.append(chunk)
        self._groups.append((rows, start, chunks))

    def close(self) -> None:
        """Writes the end of the file."""
        self._file.write(encode_footer(self._columns, self._groups))
