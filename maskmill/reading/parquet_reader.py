"""What the process that reads Parquet does with pyarrow: rows of numbers, and what all of its tasks need.

Only that process imports this module. A task of `parquet_process.py` takes the file, its path for messages, and the
arguments as text, and yields answers, each a tuple of bytes.
"""

import contextlib
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow
import pyarrow.compute
import pyarrow.parquet
from pyarrow import types

from maskmill.errors import UnusableInputError

_ROWS_AT_ONCE = 64
_BUFFER_BYTES = 1 << 20  # of each column, where row groups may be large


def rows_of_lists(file: BinaryIO, path: str, columns: str, start: str, count: str) -> Iterator[tuple[bytes, ...]]:
    """Yields what the file has as JSON, then rows of numbers, `count` at a time from row `start` on.

    "rows" is how many rows there are, and "is_float" says of each of the columns whether its numbers are floats. Of
    rows two fields for each column, in that order: int64, how many values each row has, and the values of all rows:
    float32 or int64.

    Args:
      columns: the names of columns as JSON; those that the file lacks are left out.
      start, count: which rows; with a count of 0 none.

    Raises:
      UnusableInputError: the file is damaged, or a column holds something else than lists of numbers.
    """
    parquet = open_parquet(file, path, buffer_size=_BUFFER_BYTES)
    with explained(path):
        schema = parquet.schema_arrow
    names = [name for name in json.loads(columns) if schema.get_field_index(name) >= 0]
    is_float = {name: _has_floats(schema.field(name), path) for name in names}
    yield (json.dumps({"rows": parquet.metadata.num_rows, "is_float": is_float}).encode(),)
    first, size = int(start), int(count)
    pending: list[Any] = []
    for number in range(parquet.metadata.num_row_groups if size else 0):
        group = parquet.metadata.row_group(number)
        if first >= group.num_rows:
            first -= group.num_rows
            continue
        for batch in batches(parquet, path, number, names):
            pending.append(batch.slice(first))
            first = max(0, first - batch.num_rows)
            while sum(one.num_rows for one in pending) >= size:
                table = pyarrow.Table.from_batches(pending)
                pending = table.slice(size).to_batches()
                yield _numbers(table.slice(0, size), is_float, path)
    if sum(one.num_rows for one in pending):
        yield _numbers(pyarrow.Table.from_batches(pending), is_float, path)


def _has_floats(field: Any, path: str) -> bool:
    """Whether a column has lists of floats, or of integers."""
    kind = field.type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not is_list or not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        raise UnusableInputError(f"{path}: the column {field.name} has {kind}, but it must have lists of numbers.")
    return bool(types.is_floating(kind.value_type))


def _numbers(table: Any, is_float: dict[str, bool], path: str) -> tuple[bytes, ...]:
    """The lengths and the values of each column of some rows."""
    fields = []
    for name, has_floats in is_float.items():
        lists = table.column(name).combine_chunks()
        with explained(path):
            values = lists.flatten()
            if lists.null_count or values.null_count:
                raise UnusableInputError(f"{path}: values of the column {name} are missing (null); make it again.")
            lengths = pyarrow.compute.list_value_length(lists).cast("int64")
            fields += [lengths, values.cast("float32" if has_floats else "int64", safe=False)]
    return tuple(field.to_numpy(zero_copy_only=False).tobytes() for field in fields)


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
