"""The work of the process that reads Parquet (maskmill/reading/parquet_process.py) for inputs: documents of rows.

Only that process imports this module, because pyarrow may abort its process on a damaged file.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow
from pyarrow import types

from maskmill.errors import UnusableInputError
from maskmill.inputs.html_texts import refuse_html
from maskmill.inputs.items import (
    NOT_UTF8,
    Document,
    RejectedPage,
    document_of_record,
    refuse_missing_columns,
    rejected,
    too_large,
)
from maskmill.inputs.options import ReadOptions
from maskmill.reading.parquet_copy import batches, damaged, explained, open_parquet

_FIRST_ROWS = 500  # in which HTML is looked for
_SHOWN_CHARACTERS = 200  # of a value of a record that is rejected


def row_group_starts(file: BinaryIO, path: str, reading: ReadOptions | None, takes_html: bool) -> Iterator[int]:
    """Yield the offset of the first byte of each row group.

    Args:
      reading: names the columns that the file must have; None: they are not checked.
      takes_html: whether texts may be HTML.

    Raises:
      UnusableInputError: the file is damaged, or lacks a column, or holds something else in it.
    """
    parquet = open_parquet(file, path)
    if reading is not None:
        _check_columns(parquet.schema_arrow, path, reading)
    size = file.seek(0, 2)
    metadata = parquet.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if sum(group.num_rows for group in groups) != metadata.num_rows:
        raise damaged(path, "its row groups have other numbers of rows than the whole")
    if reading is not None and not takes_html and metadata.num_rows:
        refuse_html(_first_texts(parquet, path, reading.text_column), path, reading.text_column, "parquet")
    for start in map(_row_group_start, groups):
        if not 0 <= start < size:
            raise damaged(path, "a row group starts outside the file")
        yield start


def _first_texts(parquet: Any, path: str, column: str) -> Iterator[str]:
    """Yield the texts of the first rows that are UTF-8."""
    with explained(path):
        batch = next(parquet.iter_batches(_FIRST_ROWS, columns=[column], use_threads=False), None)
        for value in () if batch is None else batch.column(0):
            with contextlib.suppress(UnicodeDecodeError):
                yield value.as_py()


def documents(
    file: BinaryIO, path: str, reading: ReadOptions, start: int, end: int
) -> Iterator[Document | RejectedPage]:
    """Yield the document of each row of the row groups that start in bytes [start, end).

    Raises:
      UnusableInputError: the file is damaged, or lacks a column, or holds something else in it.
    """
    parquet = open_parquet(file, path)
    columns = _check_columns(parquet.schema_arrow, path, reading)
    for number in range(parquet.metadata.num_row_groups):
        group = parquet.metadata.row_group(number)
        if not start <= _row_group_start(group) < end:
            continue
        rows = 0
        for batch in batches(parquet, path, number, columns):
            rows += batch.num_rows
            for document in _documents_of(batch, reading):
                if isinstance(document, Document) and len(document.text) > reading.largest_page:
                    yield rejected(document.text, too_large(reading))
                else:
                    yield document
        if rows != group.num_rows:
            raise damaged(path, f"row group {number} has {rows} rows instead of {group.num_rows}")


def _check_columns(schema: Any, path: str, reading: ReadOptions) -> list[str]:
    """Return the columns that `reading` names; raises UnusableInputError where the file lacks one or holds something
    else.
    """
    with explained(path):
        present = ", ".join(f"{field.name} ({field.type})" for field in schema) or "none"
        wanted = [(reading.text_column, "--text_column", "text", _is_text)]
        if reading.id_column is not None:
            wanted.append((reading.id_column, "--id_column", "text or whole numbers", _is_id))
        if reading.language_column is not None:
            wanted.append((reading.language_column, "--language_column", "text", _is_text))
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
        refuse_missing_columns(schema.names, path, reading)
    if reading.all_columns:
        return list(schema.names)
    return list(dict.fromkeys([*(column for column, *_ in wanted), *reading.metadata_columns]))


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
        # Rows of a large batch one at a time: a dictionary of a few kilobytes may stand for gigabytes of text.
        records = batch.to_pylist() if batch.nbytes <= reading.largest_page else None
    except UnicodeDecodeError:
        records = None
    for row in range(batch.num_rows) if records is None else ():
        yield _document_of_row(batch, row, reading)
    for record in records or ():
        yield document_of_record(record, _beginning(record), reading)


def _document_of_row(batch: Any, row: int, reading: ReadOptions) -> Document | RejectedPage:
    """Return the document of a row, some of whose values may not be UTF-8, as pyarrow does not check."""
    try:
        (record,) = batch.slice(row, 1).to_pylist()
    except UnicodeDecodeError:
        text = batch.column(reading.text_column)[row]
        buffer = (text.value if isinstance(text, pyarrow.DictionaryScalar) else text).as_buffer()
        return rejected(buffer.to_pybytes() if buffer is not None else b"", NOT_UTF8)
    return document_of_record(record, _beginning(record), reading)


def _beginning(record: dict[str, Any]) -> bytes:
    """Return a record as messages show it, with values that are not too long."""
    shown = {name: value[:_SHOWN_CHARACTERS] if isinstance(value, str) else value for name, value in record.items()}
    return str(shown).encode("utf-8", "replace")
