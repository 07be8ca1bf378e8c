"""Write rows to Parquet with pyarrow: list columns of the smallest integer type that fits, packed with zstd.

Between the pages and the metadata, which readers of Parquet skip, a file of ours has a seal: checksums of each row
group and of the metadata. pyarrow may abort its process on damaged bytes, so reading/parquet_files.py gives it only
bytes that fit the seal.
"""

import io
import struct
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow
import pyarrow.parquet

from maskmill.masking.kernels.rows import RowArrays
from maskmill.records.columns import Column, ColumnValues, column_values
from maskmill.records.tfrecord import WrittenFile, written_file
from maskmill.storage import files

# The seal. An entry for each row group: its rows, the end of its bytes (they start where the group before ends), their
# CRC-32. Then, between two marks, the number of row groups, and the CRC-32 of the entries and the metadata.
SEAL_ENTRY = struct.Struct("<QQQ")
SEAL_END = struct.Struct("<8sII8s")
SEAL_MARK = b"maskmill"  # two of them, so that one flipped bit does not make a file look like another program's
# A reader holds one row group in memory, and shuffles by row groups. At 512 pieces, groups of 2,048 rows take 3 %
# more room than groups of 10,000.
_GROUP_ROWS = 4096
_GROUP_BYTES = 8 << 20
_IDS = pyarrow.list_(pyarrow.field("element", pyarrow.uint16(), nullable=False))
_LEVEL = 1  # level 2 takes 1.6 times the time to save 8 % of the ids


def write_parquet(
    path: str,
    blocks: Iterable[tuple[RowArrays, int]],
    columns: Sequence[Column],
    special_ids: Sequence[int],
    width: int,
    *,
    checksum: bool,
) -> list[WrittenFile]:
    """Write rows to a Parquet file.

    The same rows give the same bytes with one version of pyarrow, which the file's metadata (`created_by`) names,
    however they are split into blocks.

    columns: of `columns.columns_of`. special_ids: of [CLS] and [SEP]. The other arguments: see ShardFormat.write.

    Raises:
      RunFailedError: the file cannot be written.
    """
    schema = schema_of(columns)
    group_rows = _group_rows(columns, width)
    with files.new_file(path, checksum=checksum) as file:
        writer, pending = SealedWriter(schema), schema.empty_table()
        for rows, count in blocks:
            block = [_lists(column_values(column, rows, count, special_ids, width)) for column in columns]
            pending = pyarrow.concat_tables([pending, pyarrow.table(block, schema)])
            while pending.num_rows >= group_rows:
                file.write(writer.group(pending.slice(0, group_rows)))
                pending = pending.slice(group_rows)
        if pending.num_rows:
            file.write(writer.group(pending))
        file.write(writer.end())
    return [written_file(file, checksum)]


def schema_of(columns: Sequence[Column]) -> pyarrow.Schema:
    """Return the schema of the columns in Parquet: lists without nulls, of values without nulls."""
    return pyarrow.schema(
        [
            pyarrow.field(column.name, pyarrow.list_(pyarrow.field("element", kind, nullable=False)), nullable=False)
            for column in columns
            for kind in [pyarrow.from_numpy_dtype(column.dtype)]
        ]
    )


def _group_rows(columns: Sequence[Column], width: int) -> int:
    """Return the number of rows of each row group, except a file's last."""
    row_bytes = sum((column.length or width) * column.dtype.itemsize for column in columns)
    most = max(1, min(_GROUP_ROWS, _GROUP_BYTES // row_bytes))
    # A power of two: then readers that take the groups of bins in equal blocks never read half a group.
    return 1 << most.bit_length() - 1


def _lists(of_block: ColumnValues) -> pyarrow.ListArray:
    """Return a block's values as lists; they are copied, because the block's arrays are used again."""
    field = pyarrow.field("element", pyarrow.from_numpy_dtype(of_block.values.dtype), nullable=False)
    values = pyarrow.array(of_block.values.copy())
    return pyarrow.ListArray.from_arrays(of_block.offsets.astype(np.int32), values, type=pyarrow.list_(field))


class SealedWriter:
    """Encode a file with a seal, a row group at a time."""

    def __init__(self, schema: pyarrow.Schema) -> None:
        """Take the schema of the columns."""
        self._sink, self._seal = _Sink(), b""
        self._writer = pyarrow.parquet.ParquetWriter(
            self._sink,
            schema,
            compression="zstd",
            compression_level=_LEVEL,
            write_statistics=False,
            # Ids take less room with a dictionary; for smaller numbers it takes more time than it saves room.
            use_dictionary=[f"{f.name}.list.element" for f in schema if f.type == _IDS],
            store_schema=False,
            write_page_checksum=True,  # for other readers
        )

    def group(self, rows: pyarrow.Table) -> bytes:
        """Return the bytes of the next row group, which has these rows."""
        self._writer.write_table(rows.combine_chunks(), row_group_size=rows.num_rows)
        content = self._sink.take()
        self._seal += SEAL_ENTRY.pack(rows.num_rows, self._sink.tell(), zlib.crc32(content))
        return content

    def end(self) -> bytes:
        """Return the bytes after the last row group: the seal and the metadata."""
        start = self._sink.take()  # of a file without row groups
        self._writer.close()
        metadata = self._sink.take()
        groups, checksum = len(self._seal) // SEAL_ENTRY.size, zlib.crc32(self._seal + metadata)
        return start + self._seal + SEAL_END.pack(SEAL_MARK, groups, checksum, SEAL_MARK) + metadata


class _Sink(io.BytesIO):
    """The bytes that pyarrow has written since they were last taken."""

    _taken = 0

    def tell(self) -> int:
        return self._taken + super().tell()

    def take(self) -> bytes:
        content = self.getvalue()
        self._taken += len(content)
        self.seek(0)
        self.truncate()
        return content
