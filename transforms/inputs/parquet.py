"""Parquet: one document a row. A unit owns the row groups that start in it."""

from collections.abc import Iterator
from typing import Any

from transforms.errors import RunFailedError, UnusableInputError
from transforms.inputs.documents import Document, RejectedPage, document_of_record
from transforms.inputs.options import ReadOptions
from transforms.storage import files

_ROWS_AT_ONCE = 64


def unit_bounds(path: str, size: int, reading: ReadOptions | None, unit_bytes: int) -> list[int]:
    """The byte offsets at which a Parquet file is cut into units: 0, starts of row groups, its size.

    Args:
      size: of the file, in bytes.
      reading: names the columns that the file must have; None: they are not checked.
      unit_bytes: the size that a unit reaches, but for the last one.

    Raises:
      UnusableInputError: the file is damaged, or lacks a column that `reading` names.
    """
    with files.open_input(path) as file:
        parquet = _open(file, path)
        if reading is not None:
            _check_columns(parquet, path, reading)
        bounds = [0]
        for start in _row_group_starts(parquet.metadata)[1:]:
            if start - bounds[-1] >= unit_bytes:
                bounds.append(start)
    return [*bounds, size]


def read_documents(path: str, start: int, end: int, reading: ReadOptions) -> Iterator[Document | RejectedPage]:
    """The documents of the row groups that start in bytes [start, end) of a file, in order.

    Raises:
      UnusableInputError: a column is missing.
      RunFailedError: the file is damaged.
    """
    import pyarrow

    with files.open_input(path) as file:
        parquet = _open(file, path)
        columns = _check_columns(parquet, path, reading)
        groups = [k for k, at in enumerate(_row_group_starts(parquet.metadata)) if start <= at < end]
        for group in groups:
            try:
                for batch in parquet.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=columns):
                    for record in batch.to_pylist():
                        yield document_of_record(record, str(record).encode("utf-8", "replace"), reading)
            except (pyarrow.ArrowException, OSError) as error:
                raise RunFailedError(
                    f"{path}: the Parquet data of row group {group} is damaged ({_first_line(error)})."
                ) from error


def _open(file: Any, path: str) -> Any:
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(file, pre_buffer=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise UnusableInputError(f"{path}: this Parquet file is damaged or cut off ({_first_line(error)}).") from error


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0].rstrip(".")


def _check_columns(parquet: Any, path: str, reading: ReadOptions) -> list[str]:
    """The columns that `reading` names; raises UnusableInputError where the file lacks one."""
    present = parquet.schema_arrow.names
    columns = [column for column in (reading.text_column, reading.id_column) if column is not None]
    for column in columns:
        if column not in present:
            raise UnusableInputError(f'{path}: there is no column "{column}"; its columns are {", ".join(present)}.')
    return columns


def _row_group_starts(metadata: Any) -> list[int]:
    """The offset of the first byte of each row group."""
    return [_row_group_start(metadata.row_group(number)) for number in range(metadata.num_row_groups)]


def _row_group_start(group: Any) -> int:
    offsets: list[int] = []
    for number in range(group.num_columns):
        column = group.column(number)
        offsets.append(column.data_page_offset)
        if column.has_dictionary_page:
            offsets.append(column.dictionary_page_offset)
    return min(offsets)
