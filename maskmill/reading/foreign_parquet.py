"""Reads Parquet files that another program wrote, pyarrow or DuckDB: by pyarrow, in a process of its own.

A data set that was written again has the same rows in other row groups, codecs, types and pages. This takes at least
6 times the CPU time that parquet_pages.py takes for maskmill's own files (benchmarks/parquet_reading.py).
"""

import contextlib
import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from maskmill.errors import UnusableInputError
from maskmill.reading import parquet_process
from maskmill.reading.byte_ranges import ByteRanges, open_range_file
from maskmill.reading.parquet_pages import Page

BLOCK_ROWS = 1024
_TASK = "maskmill.reading.parquet_reader:rows_of_lists"


class ForeignFile:
    """The rows of a file, read forward; whoever asks for others than the next ones lets the file be opened once more.

    Attributes:
      rows: how many there are.
      is_float: for each column that is there whether it has floats; otherwise it has integers.
    """

    def __init__(self, path: str, ranges: ByteRanges, columns: Sequence[str]) -> None:
        """Opens the file.

        Raises:
          UnusableInputError: it is damaged, or one of these columns does not have lists of numbers.
          RunFailedError: it cannot be read.
        """
        self._path, self._ranges = path, ranges
        self._wanted: Sequence[str] = columns
        self._lock = threading.Lock()
        self._open(0, 0)
        self._wanted = list(self.is_float)

    def _open(self, first: int, count: int) -> None:
        file = open_range_file(self._path, self._ranges)
        arguments = json.dumps(list(self._wanted)), str(first), str(count)
        self._answers = parquet_process.answers(_TASK, self._path, *arguments, file=file)
        self._next, self._count = first, count
        (described,) = next(self._answers)
        told = json.loads(described)
        self.rows: int = told["rows"]
        self.is_float: dict[str, bool] = told["is_float"]
        if not count:
            self._finish()

    def _finish(self) -> None:
        """Lets the process go back to those that wait for a task."""
        with contextlib.suppress(StopIteration):
            next(self._answers)

    def pages(self, first: int, count: int) -> dict[str, Page]:
        """`count` rows from `first` on, by column.

        Raises:
          UnusableInputError: they are damaged.
          RunFailedError: they cannot be read.
        """
        with self._lock:
            if (first, count) != (self._next, self._count):
                self._answers.close()  # type: ignore[attr-defined]
                self._open(first, count)
            pages = dict(self._pages_of(iter(next(self._answers, ()))))
            if any(len(page.lengths) != count for page in pages.values()):
                raise UnusableInputError(f"{self._path}: this file has fewer rows than it says; make it again.")
            self._next += count
            self._count = min(count, self.rows - self._next)
            if not self._count:
                self._finish()
            return pages

    def _pages_of(self, fields: Iterator[bytes]) -> Iterator[tuple[str, Page]]:
        for name, is_float in self.is_float.items():
            lengths = np.frombuffer(next(fields, b""), np.int64)
            kind: Any = np.float32 if is_float else np.int64
            yield name, Page(np.frombuffer(next(fields, b""), kind), lengths)
