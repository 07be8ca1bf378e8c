"""What the process that reads other programs' Parquet (parquet_process.py) does with pyarrow.

Only that process imports this module.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow
import pyarrow.parquet

from maskmill.errors import UnusableInputError

_ROWS_AT_ONCE = 64
_BUFFER_BYTES = 1 << 20  # of each column, where row groups may be large
_BLOCK_ROWS = 1024
_MAKER = "maskmill "  # how `created_by` begins in files of maskmill's up to version 2 of its format


def tables(file: BinaryIO, path: str, columns: Sequence[str], first: int, count: int) -> Iterator[Any]:
    """Yields the number of rows, the rows of a block, and the schema; then rows as streams of Arrow, `count` at a time.

    Args:
      columns: the names of those that are read; those that the file lacks are left out.
      first, count: which rows are read; with a count of 0 none.

    Raises:
      UnusableInputError: the file is damaged.
    """
    parquet = open_parquet(file, path, buffer_size=_BUFFER_BYTES)
    metadata = parquet.metadata
    with explained(path):
        schema = parquet.schema_arrow
    names = [name for name in columns if schema.get_field_index(name) >= 0]
    is_of_maskmill = metadata.num_row_groups and (metadata.created_by or "").startswith(_MAKER)
    most = metadata.row_group(0).num_rows if is_of_maskmill else _BLOCK_ROWS
    yield (
        metadata.num_rows,
        max(1, min(most, metadata.num_rows)),
        pyarrow.schema([schema.field(name) for name in names]),
    )
    pending: list[Any] = []
    for number in range(metadata.num_row_groups if count else 0):
        rows = metadata.row_group(number).num_rows
        if first >= rows:
            first -= rows
            continue
        for batch in batches(parquet, path, number, names):
            pending.append(batch.slice(first))
            first = max(0, first - batch.num_rows)
            while sum(one.num_rows for one in pending) >= count:
                table = pyarrow.Table.from_batches(pending)
                pending = table.slice(count).to_batches()
                yield _stream(table.slice(0, count))
    if pending:
        yield _stream(pyarrow.Table.from_batches(pending))


def _stream(table: Any) -> bytes:
    """A table as a stream of Arrow, which has no more than its rows."""
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def open_parquet(file: BinaryIO, path: str, *, buffer_size: int = 0) -> Any:
    """A file; with a buffer its columns are read by so many bytes, not a whole row group at a time."""
    with explained(path):
        return pyarrow.parquet.ParquetFile(
            file, pre_buffer=False, page_checksum_verification=True, buffer_size=buffer_size
        )


def batches(parquet: Any, path: str, group: int, columns: list[str]) -> Iterator[Any]:
    """The record batches of a row group."""
    with explained(path, f" of row group {group}"):
        # Without threads, so that nothing asks for bytes of the file while an answer is being sent.
        yield from parquet.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=columns, use_threads=False)


@contextlib.contextmanager
def explained(path: str, part: str = "") -> Iterator[None]:
    """Turns what pyarrow raises on a damaged file into one sentence."""
    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(path, (str(error) or type(error).__name__).split("\n", 1)[0].rstrip("."), part) from error


def damaged(path: str, problem: str, part: str = "") -> UnusableInputError:
    return UnusableInputError(
        f"{path}: the Parquet data{part} is damaged or cut off ({problem}); make or fetch the file again, "
        "for nothing can be taken of a cut Parquet file, whose table of contents is at its end."
    )
