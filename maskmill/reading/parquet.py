"""Reads data sets in Parquet, a row group at a time; see parquet_pages.py.

A file's footer is read once. What is kept of it is its Layout, some hundred bytes for a row group.
"""

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow

from maskmill.errors import UnusableInputError
from maskmill.reading.block_reader import (
    Block,
    BlockReader,
    DamagedBlockError,
    DamagedPartError,
    OtherColumnsError,
    Rows,
)
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.column_tables import is_float, limits, wrong_count, wrong_value
from maskmill.reading.data_set import DataSet, ReadColumn
from maskmill.reading.foreign_parquet import BLOCK_ROWS, ForeignFile
from maskmill.reading.kernels.gathering import scatter
from maskmill.reading.parquet_pages import (
    FOOTER_END,
    Layout,
    Page,
    footer_size,
    is_of_maskmill,
    read_layout,
    read_pages,
)

_FOOTER_BYTES = 1 << 16  # read at first; most footers are smaller


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
    """The row groups that a block has rows of; of another program's file the rows themselves, by column."""

    file: Layout | ForeignFile
    groups: list[_Group]
    pages: Mapping[str, Page] = dataclasses.field(default_factory=dict)


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
        self._files: dict[int, Layout | ForeignFile] = {}
        # The largest file of each width: a smaller one may end within its first group.
        by_size = sorted(range(len(data_set.files)), key=lambda number: data_set.files[number].samples)
        largest_of_width = {data_set.files[number].width: number for number in by_size}
        self.block_samples = max(map(self._first_group, largest_of_width.values()), default=1)

    def fetch(self, block: Block) -> _Fetched:
        file, path = self._file(block.file), self._data_files[block.file].path
        if isinstance(file, ForeignFile):
            return _Fetched(file, [], _explained(path, file, block))
        first = int(np.searchsorted(file.rows, block.first, "right")) - 1
        end = int(np.searchsorted(file.rows, block.first + block.count, "left"))
        groups = []
        for number in range(first, end):
            start, stop = int(file.chunks[number, :, 0].min()), int(file.chunks[number, :, 1].max())
            data = self._ranges.read(path, start, stop)
            groups.append(_Group(number, int(file.rows[number]), int(file.rows[number + 1]), start, data))
        return _Fetched(file, groups)

    def decode(
        self, fetched: _Fetched, block: Block, wanted: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows
    ) -> None:
        # The rows in one run and writable: numba compiles anew for any other array.
        self._put(fetched, block, wanted + block.first, np.array(rows, np.int64), into, None)

    def decode_each(self, fetched: _Fetched, block: Block, into: Rows) -> dict[int, DamagedBlockError]:
        """See BlockReader. With a page all samples of its row group are lost."""
        wrong, every = dict[int, DamagedBlockError](), np.arange(block.count)
        self._put(fetched, block, every + block.first, every, into, wrong)
        return wrong

    def _put(
        self,
        fetched: _Fetched,
        block: Block,
        samples: npt.NDArray[np.int64],
        rows: npt.NDArray[np.int64],
        into: Rows,
        wrong: dict[int, DamagedBlockError] | None,
    ) -> None:
        """Writes samples, counted in the file, to rows, column by column; columns that a file lacks are zeros.

        wrong: takes what is wrong with samples that cannot be read, by their rows; None: it is raised.
        """
        path = self._data_files[block.file].path
        if isinstance(fetched.file, ForeignFile):
            for column in self._columns:
                if column.name in fetched.pages:
                    target = _Target(path, column, samples, rows, into, wrong)
                    target.put_page(fetched.pages[column.name], block.first)
                else:
                    into.put_zeros(column, rows)
            return
        for group in fetched.groups:
            first, end = np.searchsorted(samples, [group.first, group.end])
            chunks = dict(zip(fetched.file.is_float, fetched.file.chunks[group.number] - group.start, strict=True))
            for column in self._columns:
                target = _Target(path, column, samples[first:end], rows[first:end], into, wrong)
                if column.name not in chunks:
                    into.put_zeros(column, target.rows)
                    continue
                start, stop = chunks[column.name].tolist()
                try:
                    target.put_chunk(group, group.data.data[start:stop], self._codec)
                except DamagedPartError as error:
                    damaged = _damaged_group(path, group, column, error)
                    if wrong is None:
                        raise damaged from error
                    damaged.__cause__ = error
                    for row in target.rows.tolist():
                        wrong.setdefault(row, damaged)

    def forget(self, block: Block) -> bool:
        self._files.pop(block.file, None)
        return self._ranges.forget(self._data_files[block.file].path)

    @staticmethod
    def count_samples(path: str, ranges: ByteRanges) -> int:
        return _rows(_open_file(path, ranges, []))

    @staticmethod
    def why_unchecked(path: str, ranges: ByteRanges) -> str | None:
        if isinstance(_open_file(path, ranges, []), ForeignFile):
            return "another program wrote this Parquet file again; its pages need no checksums"
        return None

    def _first_group(self, number: int) -> int:
        """The rows of a file's first row group. A footer that arrives damaged is fetched once more."""
        try:
            return _block_rows(self._file(number))
        except DamagedBlockError:
            if not self._ranges.forget(self._data_files[number].path):
                raise
            return _block_rows(self._file(number))

    def _file(self, number: int) -> Layout | ForeignFile:
        """What is kept of a file. Threads that ask at the same time may read its footer twice."""
        file = self._files.get(number)
        if file is None:
            file = self._files[number] = self._read_file(number)
        return file

    def _read_file(self, number: int) -> Layout | ForeignFile:
        file = self._data_files[number]
        found = _open_file(file.path, self._ranges, [column.name for column in self._columns], file.size)
        rows = _rows(found)
        if rows != file.samples:
            raise DamagedBlockError(
                f"{file.path}: this file has {rows:,} examples, but the manifest says {file.samples:,}; "
                "make or fetch it again."
            )
        for column in self._columns:
            if column.name in found.is_float:
                _check_kind(file.path, column, has_floats=found.is_float[column.name])
            elif not column.optional:
                raise OtherColumnsError(f"{file.path}: the column {column.name} is missing; make the file again.")
        return found


def _rows(file: Layout | ForeignFile) -> int:
    return file.rows if isinstance(file, ForeignFile) else int(file.rows[-1])


def _block_rows(file: Layout | ForeignFile) -> int:
    return min(BLOCK_ROWS, max(1, file.rows)) if isinstance(file, ForeignFile) else int(file.rows[1])


def _open_file(path: str, ranges: ByteRanges, columns: Sequence[str], size: int | None = None) -> Layout | ForeignFile:
    size = size or ranges.size(path)
    try:
        metadata, start = _read_metadata(path, size, ranges)
        if is_of_maskmill(metadata):
            return read_layout(metadata, start)
    except DamagedPartError as error:
        raise DamagedBlockError(f"{path}: {error}; make or fetch this Parquet file again.") from error
    with contextlib.suppress(DamagedPartError):
        # A file of maskmill's that is damaged where it names its writer is not a file of another program.
        layout = read_layout(metadata, start)
        if _has_own_pages(path, layout, ranges):
            return layout
    try:
        return ForeignFile(path, ranges, columns)
    except UnusableInputError as error:
        raise DamagedBlockError(str(error)) from error


def _has_own_pages(path: str, layout: Layout, ranges: ByteRanges) -> bool:
    """Whether the first column of a file has pages as maskmill writes them; else this raises DamagedPartError."""
    if not layout.chunks.size:
        return False
    start, end = layout.chunks[0, 0].tolist()
    chunk = ranges.read(path, start, end).data
    return bool(list(read_pages(chunk, pyarrow.Codec("zstd"), is_float=next(iter(layout.is_float.values())))))


def _explained(path: str, file: ForeignFile, block: Block) -> Mapping[str, Page]:
    """The rows of a block; what pyarrow says of damage is said of the block."""
    try:
        return file.pages(block.first, block.count)
    except UnusableInputError as error:
        raise DamagedBlockError(str(error)) from error


def _read_metadata(path: str, size: int, ranges: ByteRanges) -> tuple[bytes, int]:
    """The metadata at the end of a file, and where they start."""
    end = ranges.read(path, max(0, size - _FOOTER_BYTES), size).tobytes()
    metadata_size = footer_size(end[-FOOTER_END:])
    start = size - FOOTER_END - metadata_size
    if start < 0:
        raise DamagedPartError("its end says that its metadata are larger than the file")
    if metadata_size + FOOTER_END > len(end):
        end = ranges.read(path, start, size).tobytes()
    return end[-FOOTER_END - metadata_size : -FOOTER_END], start


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
    wrong: takes what is wrong with rows that are not written, by the rows; None: it is raised.
    """

    path: str
    column: ReadColumn
    samples: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    into: Rows
    wrong: dict[int, DamagedBlockError] | None

    def put_chunk(self, group: _Group, chunk: memoryview, codec: pyarrow.Codec) -> None:
        """Writes the wanted rows; all rows are checked, because whole pages are unpacked in any case."""
        at = group.first
        for page in read_pages(chunk, codec, is_float=is_float(self.column)):
            self.put_page(page, at)
            at += len(page.lengths)
        if at != group.end:
            raise DamagedPartError(f"it has {at - group.first:,} rows instead of {group.end - group.first:,}")

    def put_page(self, page: Page, at: int) -> None:
        """Writes the wanted rows of a page whose first row is sample `at`."""
        first, end = np.searchsorted(self.samples, [at, at + len(page.lengths)])
        places, rows = self._allowed(page, at, self.samples[first:end] - at, self.rows[first:end])
        self._put(page, places, rows)

    def _allowed(
        self, page: Page, at: int, places: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Those of the wanted places of a page, and of their rows, with which nothing is wrong.

        at: the first sample of the page.
        """
        row_of = dict(zip(places.tolist(), rows.tolist(), strict=True)) if self.wrong is not None else {}
        for place, error in self._faults(page, at):
            if self.wrong is None:
                raise error
            if place in row_of:
                self.wrong.setdefault(row_of[place], error)
        if not self.wrong:
            return places, rows
        is_right = ~np.isin(rows, list(self.wrong))
        return places[is_right], rows[is_right]

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
