"""Reads all rows of a file, around what is damaged.

A data set's readers (maskmill.reading) stop at the first thing that is wrong. Here each record that cannot be read is
noted, and reading goes on behind it. TFRecords are read from their start to their end, without their index.
"""

import abc
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.reading.block_reader import Block, DamagedBlockError, Rows, WrongChecksumError
from maskmill.reading.byte_ranges import ByteRanges, open_range_file
from maskmill.reading.column_tables import TargetTable
from maskmill.reading.data_set import DataSet, ReadColumn
from maskmill.reading.formats import reader_of_format
from maskmill.reading.kernels import column_tables
from maskmill.reading.opening import reader_of
from maskmill.reading.record_indexes import features_of_record
from maskmill.reading.tfrecords import explain_example
from maskmill.records.features import FEATURES, FLAGS
from maskmill.records.kernels.frames import FRAME, HEAD, TAIL
from maskmill.records.tfrecord import begins_record, read_part, unpacked
from maskmill.verification.kernels import damaged_records as kernels
from maskmill.verification.pieces import Piece
from maskmill.verification.row_results import Faults

_BLOCK_BYTES = 1 << 19  # of input_ids in memory
_READ_BYTES = 1 << 20
_REMOTE_BYTES = 8 << 20
_WORD = 4
_FITTING = "a length that fits its checksum"
_UNREAD = "the rest of the file, because no record can be found behind the damage"


def _check_of(feature: str) -> str:
    """The check that values of a feature belong to which are not allowed."""
    return FEATURES[feature].check if feature in FEATURES else "schema"


def checked_columns(columns: tuple[ReadColumn, ...]) -> tuple[ReadColumn, ...]:
    """The columns of a data set with the types that kernels/row_checking.py takes."""
    flags, numbers = np.dtype(np.uint8), np.dtype(np.int32)
    return tuple(
        dataclasses.replace(column, dtype=flags if column.feature in FLAGS else numbers)
        if column.dtype.kind != "f" and column.feature in FEATURES
        else column
        for column in columns
    )


@dataclasses.dataclass
class ReadRows:
    """A block of rows.

    Attributes:
      rows: the values.
      numbers: int64[rows.room], the number of each row's record in the file, from 0.
      table: the columns, as kernels take them.
    """

    rows: Rows
    numbers: npt.NDArray[np.int64]
    table: TargetTable


class RowSource(abc.ABC):
    """Reads the rows of a file.

    Attributes:
      room: how many rows a block has at most.
      records: how many records were found so far, readable or not.
      unread: what of the file could not be looked at, as a clause; None: nothing.
      starts: int64[records + 1], where each record starts in a TFRecord, unpacked, and where the last one ends; None:
        not known, as of other formats, before the end, and of damaged files.
      checksums: why checksums were not looked at, as a clause; None: they were.
    """

    room: int
    records: int = 0
    unread: str | None = None
    starts: npt.NDArray[np.int64] | None = None
    checksums: str | None = None

    @abc.abstractmethod
    def blocks(self, into: ReadRows) -> Iterator[int]:
        """Fills rows again and again; yields how many were filled."""


def open_rows(data_set: DataSet, ranges: ByteRanges, faults: Faults, *, is_listed: bool = False) -> RowSource:
    """Opens the only file of a data set.

    Args:
      data_set: its columns, and the file.
      ranges: reads the file.
      faults: takes what is wrong with its records.
      is_listed: whether a manifest lists the columns, so that TFRecords must not have others.

    Raises:
      UnusableInputError: it cannot be read at all.
      RunFailedError: the machine cannot read it on.
    """
    if data_set.format == "tfrecord":
        return _TfRecordRows(data_set, ranges, faults, is_listed=is_listed)
    return _BlockRows(data_set, ranges, faults)


# ---- TFRecords


class _Plain:
    """The content of a file, read forward; the end of one part may be asked for again."""

    def __init__(self, path: str, ranges: ByteRanges) -> None:
        self._path, self._ranges = path, ranges
        self._size = ranges.size(path)
        self.part = _REMOTE_BYTES if ranges.parallel_reads else _READ_BYTES

    def read(self, start: int, size: int) -> npt.NDArray[np.uint8]:
        """Bytes from `start` on, fewer than `size` only where the file ends."""
        end = min(self._size, start + size)
        return self._ranges.read(self._path, start, end) if end > start else np.empty(0, np.uint8)


class _Unpacked:
    """The same of a gzipped file, by places in what is unpacked."""

    part = _READ_BYTES

    def __init__(self, path: str, ranges: ByteRanges) -> None:
        self._path, self._start, self._data = path, 0, b""
        self._file = unpacked(open_range_file(path, ranges), path)

    def read(self, start: int, size: int) -> npt.NDArray[np.uint8]:
        """See _Plain.

        Raises:
          UnusableInputError: the file is truncated or damaged.
        """
        self._data = self._data[start - self._start :]
        self._start = start
        while len(self._data) < size and (more := read_part(self._file, self._path, size - len(self._data))):
            self._data += more
        return np.frombuffer(bytearray(self._data[:size]), np.uint8)


def first_readable_example(path: str, ranges: ByteRanges) -> dict[str, tuple[int, str]] | None:
    """The features of the first example that can be read, wherever in TFRecords it is; None: there is none.

    Raises:
      UnusableInputError: the file is missing, or packed and damaged.
      RunFailedError: the machine cannot read it on.
    """
    source = _Unpacked(path, ranges) if _is_packed(path, ranges) else _Plain(path, ranges)
    start, size = 0, source.part
    while True:
        data = source.read(start, size)
        (is_found, found), is_last = kernels.find_record(data, 0), len(data) < size
        if not is_found:
            if is_last:
                return None
            start, size = start + len(data) - HEAD + 1, source.part
            continue
        end = found + FRAME + int(data[found : found + 8].view("<u8")[0])
        if end <= len(data):
            features = features_of_record(data[found + HEAD : end - TAIL].tobytes())
            if features:
                return features
            start, size = start + end, source.part
        elif is_last:
            start += found + 1  # what looked like a record is none
        else:
            start, size = start + found, max(source.part, end - found)


class _TfRecordRows(RowSource):
    """Rows of TFRecords. A record that cannot be read is passed over; behind a broken length the next is looked for."""

    def __init__(self, data_set: DataSet, ranges: ByteRanges, faults: Faults, *, is_listed: bool) -> None:
        file = data_set.files[0]
        self._columns, self._faults, self._is_listed = data_set.columns, faults, is_listed
        self.room = max(1, _BLOCK_BYTES // (_WORD * max(1, data_set.width)))
        self._source = _Unpacked(file.path, ranges) if _is_packed(file.path, ranges) else _Plain(file.path, ranges)
        self._start = 0  # of the data in the file
        self._places: list[npt.NDArray[np.int64]] = []

    def blocks(self, into: ReadRows) -> Iterator[int]:
        part, row, i = self._source.part, 0, 0
        table, places = into.table.of(into.rows), np.empty(self.room, np.int64)
        data = self._source.read(0, part)
        is_last = len(data) < part
        while True:
            first = row
            end, i, self.records, row, needs, column, why = kernels.read_run(
                data, i, self.records, row, into.numbers, places, table
            )
            self._keep_places(places[first:row], into.numbers[first:row])
            if end == kernels.FULL:
                yield row
                row = 0
            elif end == kernels.INCOMPLETE:
                if is_last:
                    break
                wanted = max(part, needs)
                self._start += i
                data, i = self._source.read(self._start, wanted), 0
                is_last = len(data) < wanted
            elif end == kernels.BAD_LENGTH:
                data, i, is_last = self._find_next(data, i, is_last)
                self.records += 1
            else:
                record = data[i + HEAD : i + needs - TAIL]
                self._note_record(end, record, column, why)
                self.records += 1
                i += needs
        if row:
            yield row
        if i < len(data):
            what = f"the file ends within this record, which starts at byte {self._start + i:,}"
            self._faults.add("framing", "end", self.records, "a whole record", f"{len(data) - i:,} bytes of one", what)
            self.records += 1
        starts = np.concatenate([*self._places, np.array([self._start + i])])
        self.starts = starts if len(starts) == self.records + 1 else None

    def _keep_places(self, places: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> None:
        """Keeps where records start, and notes those that have features which are not columns."""
        has_others = places < 0
        self._places.append(np.where(has_others, ~places, places) + self._start)
        if self._is_listed and has_others.any():
            first, count = int(numbers[has_others][0]), int(np.count_nonzero(has_others))
            found, what = "another feature", "this record has a feature that is none of the columns in the manifest"
            self._faults.add("schema", "other features", first, "the columns of the manifest", found, what, count=count)

    def _find_next(self, data: npt.NDArray[np.uint8], i: int, is_last: bool) -> tuple[npt.NDArray[np.uint8], int, bool]:
        """Looks for the record behind a broken length: the data, its place there (or the end), and is this the last?"""
        broken = self._start + i
        is_found, found = kernels.find_record(data, i + 1)
        while not is_found and not is_last:
            self._start += max(i + 1, len(data) - HEAD + 1)
            data, i = self._source.read(self._start, self._source.part), -1
            is_last = len(data) < self._source.part
            is_found, found = kernels.find_record(data, 0)
        behind = "no record is found behind it"
        if is_found:
            behind = f"the next record starts at byte {self._start + found:,}"
        else:
            self.unread = _UNREAD
        expected, what = _FITTING, f"the length at byte {broken:,} does not fit its checksum, and {behind}"
        self._faults.add("framing", "length", self.records, expected, f"another at byte {broken:,}", what)
        return data, found, is_last

    def _note_record(self, end: int, record: npt.NDArray[np.uint8], column: int, why: int) -> None:
        """Notes what is wrong with the data of a record."""
        if end == kernels.BAD_DATA:
            expected, what = "data that fits its checksum", "the data of this record does not fit its checksum"
            self._faults.add("crc", "data", self.records, expected, "other data", what)
            return
        feature = self._columns[column].feature if column >= 0 else ""
        check = _check_of(feature) if why == column_tables.OUT_OF_RANGE else "schema"
        kind = f"{feature} {why}"
        if self._faults.counts_again(check, kind):
            return
        reason = explain_example(record.tobytes(), self._columns, column, why)
        _add_value_fault(self._faults, check, kind, self.records, reason)


def _is_packed(path: str, ranges: ByteRanges) -> bool:
    """Whether a file of TFRecords is gzipped.

    Raises:
      UnusableInputError: it is packed with something else.
    """
    head = ranges.read(path, 0, min(ranges.size(path), HEAD))
    if len(head) < HEAD or begins_record(head.tobytes()):
        return False
    raw = open_range_file(path, ranges, HEAD)
    return unpacked(raw, path) is not raw


def _add_value_fault(faults: Faults, check: str, kind: str, record: int, reason: str) -> None:
    """Adds what a reader says of a record: "input_ids is 70000, but it must be from 0 to 30521: …." """
    what = reason.rstrip(".")
    found, _, expected = what.partition(", but it must be ")
    if not expected:
        found, _, expected = what.partition(" must be ")
    faults.add(check, kind, record, expected.partition(":")[0] or "the columns of the data set", found, what)


# ---- Parquet and MDS


class _BlockRows(RowSource):
    """Rows of files that are read by blocks."""

    def __init__(self, data_set: DataSet, ranges: ByteRanges, faults: Faults) -> None:
        self._faults, self._path = faults, data_set.files[0].path
        reader = reader_of_format(data_set.format)
        self._samples = self.records = reader.count_samples(self._path, ranges)
        file = dataclasses.replace(data_set.files[0], samples=self._samples, size=None, sha256=None)
        self._reader = reader_of(dataclasses.replace(data_set, files=(file,)), ranges)
        self.room = self._reader.block_samples
        self.checksums = reader.why_unchecked(self._path, ranges)

    def blocks(self, into: ReadRows) -> Iterator[int]:
        for first in range(0, self._samples, self.room):
            block = Block(0, first, min(self.room, self._samples - first))
            fetched = self._reader.fetch(block)
            wanted = np.arange(block.count, dtype=np.int64)
            try:
                self._reader.decode(fetched, block, wanted, wanted, into.rows)
                into.numbers[: block.count] = wanted + first
                yield block.count
            except DamagedBlockError:
                yield self._decode_each(fetched, block, into)

    def _decode_each(self, fetched: Any, block: Block, into: ReadRows) -> int:
        """Reads the records of a damaged block that can be read; returns how many they are."""
        wrong = self._reader.decode_each(fetched, block, into.rows)
        for sample, error in sorted(wrong.items()):
            self._note(block.first + sample, error)
        right = np.setdiff1d(np.arange(block.count), list(wrong))
        for arrays in (into.rows.arrays, into.rows.counts):
            for array in arrays.values():
                array[: len(right)] = array[right]
        into.numbers[: len(right)] = right + block.first
        return len(right)

    def _note(self, record: int, error: DamagedBlockError) -> None:
        """Notes what a reader says of a record."""
        is_checksum = isinstance(error.__cause__, WrongChecksumError)
        check = "crc" if is_checksum else _check_of(error.feature or "")
        # Of a damaged row group there is one finding; of values one for each column.
        kind = error.feature or str(error).removeprefix(f"{self._path}, record {record + 1:,}: ")
        if self._faults.counts_again(check, kind):
            return
        reason = str(error).removeprefix(f"{self._path}, record {record + 1:,}: ").removeprefix(f"{self._path}: ")
        reason = reason.partition("; make or fetch")[0]
        _add_value_fault(self._faults, check, kind, record, reason)


# ---- once more


@dataclasses.dataclass(frozen=True)
class RowBlock:
    """Rows that can be read, valid until the next block is asked for.

    Attributes:
      rows: the values, of the types of row_reading.checked_columns.
      count: how many of them count.
      numbers: int64[count], the numbers of their records, from 1.
      lengths: int64[count], their pieces, padding aside.
    """

    rows: Rows
    count: int
    numbers: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


def piece_blocks(piece: Piece, ranges: ByteRanges) -> Iterator[RowBlock]:
    """Yields the rows of a file of examples; records that cannot be read are left out, and another check names them.

    Raises:
      UnusableInputError: the file cannot be read at all.
      RunFailedError: the machine cannot read it on.
    """
    data_set = piece.rules.data_set
    data_set = dataclasses.replace(data_set, columns=checked_columns(data_set.columns))
    source = open_rows(data_set, ranges, Faults(piece.path))
    rows = Rows(data_set.columns, source.room)
    read = ReadRows(rows, np.zeros(source.room, np.int64), TargetTable(data_set.columns))
    for count in source.blocks(read):
        yield RowBlock(rows, count, read.numbers[:count] + 1, _lengths(rows, count))


def _lengths(rows: Rows, count: int) -> npt.NDArray[np.int64]:
    if "input_mask" in rows.arrays:
        lengths: npt.NDArray[np.int64] = np.asarray(rows.arrays["input_mask"][:count], np.int64).sum(axis=1)
        return lengths
    if "input_ids" in rows.counts:
        return rows.counts["input_ids"][:count].astype(np.int64)
    return np.full(count, rows.arrays["input_ids"].shape[1])
