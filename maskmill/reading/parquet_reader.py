"""What the process that reads Parquet does with pyarrow; nothing else imports this module.

Each public function is a task of `parquet_process.py`: it takes the file, its path for messages, and the arguments as
text, and yields answers, each a tuple of bytes.
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
from transforms.inputs.documents import NOT_UTF8, Document, RejectedPage, document_of_record, rejected, too_large
from transforms.inputs.options import ReadOptions

_ROWS_AT_ONCE = 64
_BUFFER_BYTES = 1 << 20  # of each column, where row groups may be large
_SHOWN_CHARACTERS = 200  # of a value of a record that is rejected


def row_group_starts(file: BinaryIO, path: str, columns: str) -> Iterator[tuple[bytes]]:
    """Yields the offset of the first byte of each row group.

    Args:
      columns: the fields of a ReadOptions as JSON, whose columns the file must have; "null": they are not checked.

    Raises:
      UnusableInputError: the file is damaged, or lacks a column, or holds something else in it.
    """
    parquet = _open(file, path)
    reading = json.loads(columns)
    if reading is not None:
        _check_columns(parquet.schema_arrow, path, ReadOptions(**reading))
    size = file.seek(0, 2)
    metadata = parquet.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if sum(group.num_rows for group in groups) != metadata.num_rows:
        raise _damaged(path, "its row groups have other numbers of rows than the whole")
    for start in map(_row_group_start, groups):
        if not 0 <= start < size:
            raise _damaged(path, "a row group starts outside the file")
        yield (str(start).encode(),)


def documents(file: BinaryIO, path: str, reading: str, start: str, end: str) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yields (b"document", id, text) or (b"rejected", title, reason) for each row of some row groups, in order.

    Args:
      reading: the fields of a ReadOptions as JSON.
      start, end: the row groups that start in bytes [start, end) are read.

    Raises:
      UnusableInputError: the file is damaged, or lacks a column, or holds something else in it.
    """
    parquet = _open(file, path)
    options = ReadOptions(**json.loads(reading))
    columns = _check_columns(parquet.schema_arrow, path, options)
    for number in range(parquet.metadata.num_row_groups):
        group = parquet.metadata.row_group(number)
        if not int(start) <= _row_group_start(group) < int(end):
            continue
        rows = 0
        for batch in _batches(parquet, path, number, columns):
            rows += batch.num_rows
            for document in _documents_of(batch, options):
                if isinstance(document, Document) and len(document.text) > options.largest_page:
                    document = rejected(document.text, too_large(options))
                if isinstance(document, Document):
                    yield b"document", document.document_id.encode(), document.text
                else:
                    yield b"rejected", document.title.encode("utf-8", "replace"), document.reason.encode()
        if rows != group.num_rows:
            raise _damaged(path, f"row group {number} has {rows} rows instead of {group.num_rows}")


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
    parquet = _open(file, path, buffer_size=_BUFFER_BYTES)
    with _explained(path):
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
        for batch in _batches(parquet, path, number, names):
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
        with _explained(path):
            values = lists.flatten()
            if lists.null_count or values.null_count:
                raise UnusableInputError(f"{path}: values of the column {name} are missing (null); make it again.")
            lengths = pyarrow.compute.list_value_length(lists).cast("int64")
            fields += [lengths, values.cast("float32" if has_floats else "int64", safe=False)]
    return tuple(field.to_numpy(zero_copy_only=False).tobytes() for field in fields)


def _open(file: BinaryIO, path: str, *, buffer_size: int = 0) -> Any:
    """A file; with a buffer its columns are read by so many bytes, not a whole row group at a time."""
    with _explained(path):
        return pyarrow.parquet.ParquetFile(
            file, pre_buffer=False, page_checksum_verification=True, buffer_size=buffer_size
        )


def _batches(parquet: Any, path: str, group: int, columns: list[str]) -> Iterator[Any]:
    """The record batches of a row group."""
    with _explained(path, f" of row group {group}"):
        # Without threads, so that nothing asks for bytes of the file while an answer is being sent.
        yield from parquet.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=columns, use_threads=False)


@contextlib.contextmanager
def _explained(path: str, part: str = "") -> Iterator[None]:
    """Turns what pyarrow raises on a damaged file into one sentence."""
    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _damaged(path, (str(error) or type(error).__name__).split("\n", 1)[0].rstrip("."), part) from error


def _damaged(path: str, problem: str, part: str = "") -> UnusableInputError:
    return UnusableInputError(
        f"{path}: the Parquet data{part} is damaged or cut off ({problem}); make or fetch the file again, "
        "for nothing can be taken of a cut Parquet file, whose table of contents is at its end."
    )


def _check_columns(schema: Any, path: str, reading: ReadOptions) -> list[str]:
    """The columns that `reading` names; raises UnusableInputError where the file lacks one or holds something else."""
    with _explained(path):
        present = ", ".join(f"{field.name} ({field.type})" for field in schema) or "none"
        wanted = [(reading.text_column, "--text_column", "text", _is_text)]
        if reading.id_column is not None:
            wanted.append((reading.id_column, "--id_column", "text or whole numbers", _is_id))
        for column, option, kind, is_kind in wanted:
            places = schema.get_all_field_indices(column)
            if len(places) != 1:
                number = "2 or more columns" if places else "no column"
                raise UnusableInputError(
                    f'{path}: there is {number} "{column}"; name one with {option}; its columns are {present}.'
                )
            found = schema.field(places[0]).type
            if not is_kind(found.value_type if types.is_dictionary(found) else found):
                raise UnusableInputError(
                    f'{path}: the column "{column}" holds {found} values, not {kind}; '
                    f"name another with {option}; its columns are {present}."
                )
    return [column for column, *_ in wanted]


def _is_text(kind: Any) -> bool:
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_string_view))


def _is_id(kind: Any) -> bool:
    return _is_text(kind) or bool(types.is_integer(kind))


def _row_group_start(group: Any) -> int:
    offsets: list[int] = []
    for number in range(group.num_columns):
        column = group.column(number)
        offsets.append(column.data_page_offset)
        if column.has_dictionary_page:
            offsets.append(column.dictionary_page_offset)
    return min(offsets, default=0)


def _documents_of(batch: Any, reading: ReadOptions) -> Iterator[Document | RejectedPage]:
    try:
        records = batch.to_pylist()
    except UnicodeDecodeError:
        for row in range(batch.num_rows):
            yield _document_of_row(batch, row, reading)
        return
    for record in records:
        yield document_of_record(record, _beginning(record), reading)


def _document_of_row(batch: Any, row: int, reading: ReadOptions) -> Document | RejectedPage:
    """The document of a row, some of whose values may not be UTF-8, as pyarrow does not check."""
    try:
        (record,) = batch.slice(row, 1).to_pylist()
    except UnicodeDecodeError:
        text = batch.column(reading.text_column)[row]
        buffer = (text.value if isinstance(text, pyarrow.DictionaryScalar) else text).as_buffer()
        return rejected(buffer.to_pybytes() if buffer is not None else b"", NOT_UTF8)
    return document_of_record(record, _beginning(record), reading)


def _beginning(record: dict[str, Any]) -> bytes:
    """A record as messages show it, with values that are not too long."""
    shown = {name: value[:_SHOWN_CHARACTERS] if isinstance(value, str) else value for name, value in record.items()}
    return str(shown).encode("utf-8", "replace")
