"""Copy Parquet without seals with pyarrow, in a process of its own (parquet_process.py).

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
_BUFFER_BYTES = 1 << 20  # of each column: row groups may be large
_BLOCK_ROWS = 1024
_MAKER = "maskmill "  # the start of `created_by` in maskmill's files up to version 2 of its format


def sealed_copy(file: BinaryIO, path: str, columns: Sequence[str]) -> Iterator[bytes]:
    """Yield the bytes of a copy of a file with a seal, in blocks.

    A file of maskmill's keeps its row groups, by which loaders shuffle.

    Args:
      columns: the names of the columns to copy; those that the file lacks are skipped.

    Raises:
      UnusableInputError: the file is damaged.
    """
    parquet = open_parquet(file, path, buffer_size=_BUFFER_BYTES)
    metadata = parquet.metadata
    with explained(path):
        schema = parquet.schema_arrow
    # At least one column, because pyarrow's tables without columns have no rows to count.
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
    """Return an open file; buffer_size: bytes of a column to read at a time, 0: a whole row group."""
    with explained(path):
        return pyarrow.parquet.ParquetFile(
            file, pre_buffer=False, page_checksum_verification=True, buffer_size=buffer_size
        )


def batches(parquet: Any, path: str, group: int, columns: list[str]) -> Iterator[Any]:
    """Yield the record batches of a row group."""
    with explained(path, f" of row group {group}"):
        # Without threads, so that no thread requests bytes of the file while an answer is being sent.
        yield from parquet.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=columns, use_threads=False)


@contextlib.contextmanager
def explained(path: str, part: str = "") -> Iterator[None]:
    """Turn pyarrow's exceptions on a damaged file into UnusableInputError with one sentence."""
    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(path, (str(error) or type(error).__name__).split("\n", 1)[0].rstrip("."), part) from error


def damaged(path: str, problem: str, part: str = "") -> UnusableInputError:
    return UnusableInputError(
        f"{path}: the Parquet data{part} is damaged or cut off ({problem}); make or fetch the file again, "
        "for nothing can be taken of a cut Parquet file, whose table of contents is at its end."
    )
