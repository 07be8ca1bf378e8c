"""Parquet: one document a row. A unit owns the row groups that start in it.

pyarrow may abort its process on a damaged file, so a process of its own reads (maskmill/reading/parquet_process.py);
what that process does is in `parquet_documents.py`.
"""

from collections.abc import Iterator

from maskmill.inputs.items import Document, RejectedPage
from maskmill.inputs.options import ReadOptions
from maskmill.reading import parquet_process

_TASKS = "maskmill.inputs.parquet_documents"


def unit_bounds(
    path: str, size: int, reading: ReadOptions | None, unit_bytes: int, *, takes_html: bool = True
) -> list[int]:
    """Return the byte offsets at which a Parquet file is cut into units: 0, starts of row groups, its size.

    size: of the file, in bytes. reading: names the columns that the file must have; None: they are not checked.
    unit_bytes: the size that a unit reaches, but for the last one.

    Raises:
      UnusableInputError: the file is damaged, or lacks a column that `reading` names, or has no text in it; or the
        texts are HTML, unless `takes_html`.
      RunFailedError: the machine cannot read the file.
    """
    starts = list(parquet_process.answers(f"{_TASKS}:row_group_starts", path, reading, takes_html))
    bounds = [0]
    for start in starts[1:]:
        if start - bounds[-1] >= unit_bytes:
            bounds.append(start)
    return [*bounds, size]


def read_documents(path: str, start: int, end: int, reading: ReadOptions) -> Iterator[Document | RejectedPage]:
    """Yield the documents of the row groups that start in bytes [start, end) of a file, in order.

    Raises:
      UnusableInputError: the file is damaged, a column is missing, or the text's column holds no text.
      RunFailedError: the machine cannot read the file.
    """
    yield from parquet_process.answers(f"{_TASKS}:documents", path, reading, start, end)
