"""Reads data sets in Parquet, a row group at a time; see parquet_pages.py.

A file's footer is read once. What is kept of it are the places of the pages, some hundred bytes for a row group.
"""

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow

from transforms.reading.block_reader import Block, BlockReader, DamagedBlockError, OtherColumnsError
from transforms.reading.byte_ranges import ByteRanges
from transforms.reading.data_set import DataSet, ReadColumn
from transforms.reading.kernels.gathering import scatter
from transforms.reading.parquet_pages import (
    FOOTER_END,
    DamagedPartError,
    Layout,
    Page,
    footer_size,
    read_layout,
    read_pages,
)
from transforms.reading.rows import Rows
from transforms.reading.targets import is_float, limits, wrong_count, wrong_value

_FOOTER_BYTES = 1 << 16  # read at first; most footers are smaller


@dataclasses.dataclass(frozen=True)
class _File:
    """What is kept of a file.

    rows: int64[groups + 1], the rows before each row group, and of all.
    extents: int64[groups, 2], where each row group starts and ends.
    chunks: int64[groups, columns, 2], where the pages of each column of the data set do; 0, 0 for one that is missing.
    """

    rows: npt.NDArray[np.int64]
    extents: npt.NDArray[np.int64]
    chunks: npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class _Group:
    """The bytes of a row group: its number, the first row and the end of its rows, where its bytes start, the bytes."""

    number: int
    first: int
    end: int
    start: int
    data: npt.NDArray[np.uint8]


@dataclasses.dataclass(frozen=True)
class _Fetched:
    """The row groups that a block has rows of."""

    file: _File
    groups: list[_Group]


class ParquetReader(BlockReader):
    """Reads the Parquet files of a data set. Columns are known by their names.

    Attributes:
      block_samples: the rows of a row group of the largest file; where files have different widths, the most of these.
    """

    def __init__(self, data_set: DataSet, ranges: ByteRanges) -> None:
        """Reads the footer of a file of each width.

        Raises:
          UnusableInputError: a file is no Parquet, is damaged, or lacks a column.
          RunFailedError: a file cannot be read.
        """
        self._data_files = data_set.files
        self._columns = data_set.columns
        self._ranges = ranges
        self._codec = pyarrow.Codec("zstd")
        self._files: dict[int, _File] = {}
        # The largest file of each width: a smaller one may end within its first group.
        by_size = sorted(range(len(data_set.files)), key=lambda number: data_set.files[number].samples)
        largest_of_width = {data_set.files[number].width: number for number in by_size}
        self.block_samples = max(map(self._first_group, largest_of_width.values()), default=1)

    def fetch(self, block: Block) -> _Fetched:
        file, path = self._file(block.file), self._data_files[block.file].path
        first = int(np.searchsorted(file.rows, block.first, "right")) - 1
        end = int(np.searchsorted(file.rows, block.first + block.count, "left"))
        groups = []
        for number in range(first, end):
            start, stop = file.extents[number].tolist()
            data = self._ranges.read(path, start, stop)
            groups.append(_Group(number, int(file.rows[number]), int(file.rows[number + 1]), start, data))
        return _Fetched(file, groups)

    def decode(
        self, fetched: _Fetched, block: Block, wanted: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows
    ) -> None:
        path, samples = self._data_files[block.file].path, wanted + block.first
        rows = np.array(rows, np.int64)  # in one run and writable: numba compiles anew for any other array
        for group in fetched.groups:
            first, end = np.searchsorted(samples, [group.first, group.end])
            for column, chunk in zip(self._columns, fetched.file.chunks[group.number], strict=True):
                if not chunk[1]:
                    into.put_zeros(column, rows[first:end])
                    continue
                target = _Target(path, column, samples[first:end], rows[first:end], into)
                start, stop = (chunk - group.start).tolist()
                try:
                    target.put_chunk(group, group.data.data[start:stop], self._codec)
                except DamagedPartError as error:
                    raise _damaged_group(path, group, column, error) from error

    def decode_each(self, fetched: _Fetched, block: Block, into: Rows) -> dict[int, DamagedBlockError]:
        """Writes the samples of a block that can be read to the rows of their numbers, counted from the block's first.

        Returns:
          What is wrong with the others. With a page all samples of its row group are lost.
        """
        path, wrong = self._data_files[block.file].path, dict[int, DamagedBlockError]()
        for group in fetched.groups:
            samples = np.arange(max(group.first, block.first), min(group.end, block.first + block.count))
            for column, chunk in zip(self._columns, fetched.file.chunks[group.number], strict=True):
                if not chunk[1]:
                    into.put_zeros(column, samples - block.first)
                    continue
                target = _EachTarget(path, column, samples, samples - block.first, into, wrong)
                start, stop = (chunk - group.start).tolist()
                try:
                    target.put_chunk(group, group.data.data[start:stop], self._codec)
                except DamagedPartError as error:
                    damaged = _damaged_group(path, group, column, error)
                    damaged.__cause__ = error
                    for row in (samples - block.first).tolist():
                        wrong.setdefault(row, damaged)
        return wrong

    def forget(self, block: Block) -> bool:
        self._files.pop(block.file, None)
        return self._ranges.forget(self._data_files[block.file].path)

    def _first_group(self, number: int) -> int:
        """The rows of a file's first row group. A footer that arrives damaged is fetched once more."""
        try:
            return int(self._file(number).rows[1])
        except DamagedBlockError:
            if not self._ranges.forget(self._data_files[number].path):
                raise
            return int(self._file(number).rows[1])

    def _file(self, number: int) -> _File:
        """What is kept of a file. Threads that ask at the same time may read its footer twice."""
        file = self._files.get(number)
        if file is None:
            file = self._files[number] = self._read_file(number)
        return file

    def _read_file(self, number: int) -> _File:
        file = self._data_files[number]
        try:
            layout = _read_layout(file.path, file.size or self._ranges.size(file.path), self._ranges)
        except DamagedPartError as error:
            raise DamagedBlockError(f"{file.path}: {error}; make or fetch this Parquet file again.") from error
        if layout.rows[-1] != file.samples:
            raise DamagedBlockError(
                f"{file.path}: this file has {layout.rows[-1]:,} examples, but the manifest says {file.samples:,}; "
                "make or fetch it again."
            )
        chunks = np.zeros((len(layout.rows) - 1, len(self._columns), 2), np.int64)
        places = {name: place for place, name in enumerate(layout.is_float)}
        for n, column in enumerate(self._columns):
            if column.name in places:
                _check_kind(file.path, column, has_floats=layout.is_float[column.name])
                chunks[:, n] = layout.chunks[:, places[column.name]]
            elif not column.optional:
                raise OtherColumnsError(f"{file.path}: the column {column.name} is missing; make the file again.")
        extents = np.stack([layout.chunks[..., 0].min(axis=1), layout.chunks[..., 1].max(axis=1)], axis=1)
        return _File(layout.rows, extents, chunks)


def count_rows(path: str, ranges: ByteRanges) -> int:
    """How many rows a file has, by its footer.

    Raises:
      DamagedBlockError: it is no Parquet, or not as maskmill writes it.
      RunFailedError: it cannot be read.
    """
    try:
        return int(_read_layout(path, ranges.size(path), ranges).rows[-1])
    except DamagedPartError as error:
        raise DamagedBlockError(f"{path}: {error}; make or fetch this Parquet file again.") from error


def _read_layout(path: str, size: int, ranges: ByteRanges) -> Layout:
    end = ranges.read(path, max(0, size - _FOOTER_BYTES), size).tobytes()
    metadata_size = footer_size(end[-FOOTER_END:])
    start = size - FOOTER_END - metadata_size
    if start < 0:
        raise DamagedPartError("its end says that its metadata are larger than the file")
    if metadata_size + FOOTER_END > len(end):
        end = ranges.read(path, start, size).tobytes()
    return read_layout(end[-FOOTER_END - metadata_size : -FOOTER_END], start)


def _check_kind(path: str, column: ReadColumn, *, has_floats: bool) -> None:
    if has_floats != is_float(column):
        has, must = ("floats", "integers") if has_floats else ("integers", "floats")
        raise OtherColumnsError(f"{path}: the column {column.name} has {has}, but it must have {must}.")


def _damaged_group(path: str, group: _Group, column: ReadColumn, error: DamagedPartError) -> DamagedBlockError:
    return DamagedBlockError(
        f"{path}: row group {group.number + 1:,} is damaged at the column {column.name} ({error}); make or fetch the "
        "file again."
    )


@dataclasses.dataclass(frozen=True)
class _Target:
    """Where the values of a column of a row group go.

    samples: int64[n], ascending, the samples of the group that are wanted, counted in the file.
    rows: int64[n], the row of `into` for each.
    """

    path: str
    column: ReadColumn
    samples: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    into: Rows

    def put_chunk(self, group: _Group, chunk: memoryview, codec: pyarrow.Codec) -> None:
        """Writes the wanted rows; all rows are checked, because whole pages are unpacked in any case."""
        at = group.first
        for page in read_pages(chunk, codec, is_float=is_float(self.column)):
            first, end = np.searchsorted(self.samples, [at, at + len(page.lengths)])
            places, rows = self._allowed(page, at, self.samples[first:end] - at, self.rows[first:end])
            self._put(page, places, rows)
            at += len(page.lengths)
        if at != group.end:
            raise DamagedPartError(f"it has {at - group.first:,} rows instead of {group.end - group.first:,}")

    def _allowed(
        self, page: Page, at: int, places: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The wanted places of a page and their rows: all of them, because nothing of it may be wrong.

        at: the first sample of the page.
        """
        for _, error in self._faults(page, at):
            raise error
        return places, rows

    def _put(self, page: Page, places: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> None:
        """Writes the rows of a page at some places."""
        column, array = self.column, self.into.arrays[self.column.feature]
        values = page.values.astype(column.dtype, copy=False)
        starts, lengths = (np.cumsum(page.lengths) - page.lengths)[places], page.lengths[places]
        if column.varies:
            self.into.counts[column.feature][rows] = lengths
            last = values[np.maximum(starts + lengths - 1, 0)] if len(values) else np.zeros(len(rows), values.dtype)
            array[rows] = last[:, None] if column.fill is None else column.fill
        size = column.dtype.itemsize
        scatter(values.view(np.uint8), starts * size, lengths * size, rows, array.view(np.uint8))

    def _faults(self, page: Page, at: int) -> Iterator[tuple[int, DamagedBlockError]]:
        """What is wrong with the rows of a page, by their places in it; of each row its length, or its first value."""
        column, values = self.column, page.values
        is_bad = page.lengths > column.width if column.varies else page.lengths != column.width
        if is_bad.any():
            for place in np.flatnonzero(is_bad).tolist():
                yield place, self._wrong(at + place, wrong_count(column, int(page.lengths[place])), None)
        low, high = limits(column)
        # NaN is neither above nor below anything.
        if not len(values) or math.isnan(low) or (values.min() >= low and values.max() <= high):
            return
        wrong = np.flatnonzero(~((values >= low) & (values <= high)))
        places, first = np.unique(np.searchsorted(np.cumsum(page.lengths), wrong, "right"), return_index=True)
        for place, value in zip(places.tolist(), wrong[first].tolist(), strict=True):
            reason = wrong_value(column, values[value : value + 1])
            yield place, self._wrong(at + place, reason, column.feature)

    def _wrong(self, sample: int, what: str, feature: str | None) -> DamagedBlockError:
        return DamagedBlockError(f"{self.path}, record {sample + 1:,}: {what}", feature=feature)


@dataclasses.dataclass(frozen=True)
class _EachTarget(_Target):
    """Where the values of a column of a row group go, of those rows with which nothing is wrong.

    wrong: takes what is wrong with the others, by their rows.
    """

    wrong: dict[int, DamagedBlockError]

    def _allowed(
        self, page: Page, at: int, places: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        row_of = dict(zip(places.tolist(), rows.tolist(), strict=True))
        for place, error in self._faults(page, at):
            if place in row_of:
                self.wrong.setdefault(row_of[place], error)
        is_right = ~np.isin(rows, list(self.wrong))
        return places[is_right], rows[is_right]
