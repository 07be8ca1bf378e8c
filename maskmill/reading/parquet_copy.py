"""What the process that reads Parquet without seals (parquet_process.py) does with pyarrow.

Only that process imports this module.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow
import pyarrow.parquet

from maskmill.errors import UnusableInputError
from maskmill.records.parquet import SealedWriter

_ROWS_AT_ONCE = 64
_BUFFER_BYTES = 1 << 20  # of each column, where row groups may be large
_BLOCK_ROWS = 1024
_MAKER = "maskmill "  # how `created_by` begins in files of maskmill's up to version 2 of its format


def sealed_copy(file: BinaryIO, path: str, columns: Sequence[str]) -> Iterator[bytes]:
    """Yield the bytes of a file with a seal that has the same rows, in blocks.

    A file of maskmill's keeps its row groups, by whose rows loaders shuffle.

    Args:
      columns: the names of those that are copied; those that the file lacks are left out.

    Raises:
      UnusableInputError: the file is damaged.
    """
    parquet = open_parquet(file, path, buffer_size=_BUFFER_BYTES)
    metadata = parquet.metadata
    with explained(path):
        schema = parquet.schema_arrow
    # Rows are counted by a column: pyarrow's tables without columns have none.
    names = [name for name in columns if schema.get_field_index(name) >= 0] or schema.names[:1]
    if not names:
        raise damaged(path, "it has no columns")
    is_of_maskmill = metadata.num_row_groups and (metadata.created_by or "").startswith(_MAKER)
    most = max(1, metadata.row_group(0).num_rows) if is_of_maskmill else _BLOCK_ROWS
    with explained(path):
        writer = SealedWriter(pyarrow.schema([schema.field(name) for name in names]))

    def group(rows: pyarrow.Table) -> bytes:
        with explained(path):
            return writer.group(rows)

    pending, rows = list[Any](), 0
    for number in range(metadata.num_row_groups):
        for batch in batches(parquet, path, number, names):
            rows += batch.num_rows
            pending.append(batch)
            while sum(one.num_rows for one in pending) >= most:
                table = pyarrow.Table.from_batches(pending)
                pending = table.slice(most).to_batches()
                yield group(table.slice(0, most))
    if pending:
        yield group(pyarrow.Table.from_batches(pending))
    if rows != metadata.num_rows:
        raise damaged(path, f"it has {rows:,} rows, and says {metadata.num_rows:,}")
    yield writer.end()


def open_parquet(file: BinaryIO, path: str, *, buffer_size: int = 0) -> Any:
    """Return a file; with a buffer its columns are read by so many bytes, not a whole row group at a time."""
    with explained(path):
        return pyarrow.parquet.ParquetFile(
            file, pre_buffer=False, page_checksum_verification=True, buffer_size=buffer_size
        )


def batches(parquet: Any, path: str, group: int, columns: list[str]) -> Iterator[Any]:
    """Yield the record batches of a row group."""
    with explained(path, f" of row group {group}"):
        # Without threads, so that nothing asks for bytes of the file while an answer is being sent.
        yield from parquet.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=columns, use_threads=False)


@contextlib.contextmanager
def explained(path: str, part: str = "") -> Iterator[None]:
    """Turn what pyarrow raises on a damaged file into one sentence."""
    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(path, (str(error) or type(error).__name__).split("\n", 1)[0].rstrip("."), part) from error


def damaged(path: str, problem: str, part: str = "") -> UnusableInputError:
    return UnusableInputError(
        f"{path}: the Parquet data{part} is damaged or cut off ({problem}); make or fetch the file again, "
        "for nothing can be taken of a cut Parquet file, whose table of contents is at its end."
    )
