"""Read all rows of a file with the reader of its format; skip and note records that cannot be read."""

import collections
import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.reading.block_reader import (
    Block,
    BlockReader,
    DamagedBlockError,
    OtherColumnsError,
    Rows,
    WrongChecksumError,
)
from maskmill.reading.byte_ranges import ByteRanges, open_range_file
from maskmill.reading.column_tables import TargetTable
from maskmill.reading.data_set import DataSet, ReadColumn
from maskmill.reading.formats import reader_of_format
from maskmill.reading.kernels import column_tables
from maskmill.reading.kernels import examples as kernels
from maskmill.reading.opening import reader_of
from maskmill.reading.tfrecords import explain_example
from maskmill.records.features import FEATURES, FLAGS
from maskmill.records.kernels.frames import FRAME, HEAD
from maskmill.records.tfrecord import record_runs, unpacked
from maskmill.verification.findings import Finding, finding

_RECORDS = 256  # to read at a time
_FACTOR = 0xD6E8FEB86659FD93  # odd
AGAIN = "make the examples again, or fetch the file again"


class Faults:
    """The faults of a file: one finding for each kind, which describes the first record that has it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._first: dict[tuple[str, str], Finding] = {}
        self._counts: collections.Counter[tuple[str, str]] = collections.Counter()

    def add(self, check: str, record: int | None, what: str, *, kind: str = "", count: int = 1) -> None:
        """Add a fault.

        Args:
          check: as in Finding.
          record: number of the first record, from 1; None: the whole file.
          what: a clause about the fault, without the place; and what to do, if not to make the examples again.
          kind: faults of one kind are one finding; "": those of one `what`.
          count: the number of records that have it.
        """
        key = check, kind or what
        first = self._first.get(key)
        if first is None or (record is not None and first.record is not None and record < first.record):
            at = None if record is None else ("record", record)
            what = what if "; " in what else f"{what}; {AGAIN}"
            self._first[key] = finding(check, self._path, what, at=at)
        self._counts[key] += count

    def add_error(self, error: UnusableInputError, record: int | None = None) -> None:
        """Add the error of a reader about a record, or about the file."""
        what = str(error).removeprefix(f"{self._path}, record {record or 0:,}").removeprefix(self._path)
        what = what.lstrip(":, ").rstrip(".")
        feature = error.feature if isinstance(error, DamagedBlockError) else None
        check = "framing"
        if isinstance(error.__cause__, WrongChecksumError) or "has data that does not fit" in what:
            check = "crc"
        elif isinstance(error, OtherColumnsError) or (record is not None and feature not in FEATURES):
            check = "schema"
        elif feature is not None:
            check = FEATURES[feature].check
        self.add(check, record, what, kind=feature or (what if record is None else "record"))

    def findings(self) -> tuple[Finding, ...]:
        """Return a finding for each kind of fault."""
        return tuple(dataclasses.replace(first, count=self._counts[key]) for key, first in self._first.items())


def checked_columns(columns: tuple[ReadColumn, ...]) -> tuple[ReadColumn, ...]:
    """Return the columns of a data set with the types for comparisons: flags uint8, other integers int32."""
    flags, numbers = np.dtype(np.uint8), np.dtype(np.int32)
    return tuple(
        dataclasses.replace(column, dtype=flags if column.feature in FLAGS else numbers)
        if column.dtype.kind != "f" and column.feature in FEATURES
        else column
        for column in columns
    )


class RowReading:
    """Read the rows of the only file of a data set.

    Attributes:
      columns: of the rows.
      records: the number of records found so far, readable or not.
      checksums: a clause that says why checksums were not verified; None: they were.
      rows: of the block that was read last.
    """

    def __init__(self, data_set: DataSet, ranges: ByteRanges, faults: Faults) -> None:
        """Open the file.

        Args:
          data_set: its columns, and the file.
          ranges: reads the file.
          faults: gets the faults of its records.

        Raises:
          UnusableInputError: it cannot be read at all.
          RunFailedError: reading it fails.
        """
        file, kind = data_set.files[0], reader_of_format(data_set.format)
        self._path, self._ranges, self._faults, self._data_set = file.path, ranges, faults, data_set
        self.columns, self.records = checked_columns(data_set.columns), 0
        self.checksums = kind.why_unchecked(file.path, ranges)
        self._reader: BlockReader | None = None
        room = _RECORDS
        if data_set.format != "tfrecord":
            samples = kind.count_samples(file.path, ranges)
            file = dataclasses.replace(file, samples=samples, size=None, sha256=None, index=None)
            self._reader = reader_of(dataclasses.replace(data_set, files=(file,), columns=self.columns), ranges)
            self._samples, room = samples, max(1, min(samples, self._reader.block_samples))
        self.rows = Rows(self.columns, room)

    def blocks(self) -> Iterator[npt.NDArray[np.int64]]:
        """Read the rows to `rows`, a block at a time; yield the numbers of their records, from 1.

        Raises:
          UnusableInputError: the file is damaged from here on.
          RunFailedError: reading it fails.
        """
        return self._records() if self._reader is None else self._blocks(self._reader)

    def _blocks(self, reader: BlockReader) -> Iterator[npt.NDArray[np.int64]]:
        with contextlib.closing(reader):
            for first in range(0, self._samples, reader.block_samples):
                block = Block(0, first, min(reader.block_samples, self._samples - first))
                fetched, every, wrong = reader.fetch(block), np.arange(block.count), dict[int, DamagedBlockError]()
                try:
                    reader.decode(fetched, block, every, every, self.rows)
                except DamagedBlockError:
                    wrong = reader.decode_each(fetched, block, self.rows)
                for sample, error in sorted(wrong.items()):
                    self._faults.add_error(error, first + sample + 1)
                right = np.setdiff1d(every, list(wrong))
                for array in (*self.rows.arrays.values(), *self.rows.counts.values()) if wrong else ():
                    array[: len(right)] = array[right]
                self.records += block.count
                yield right + first + 1

    def _records(self) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the numbers of the records of TFRecords, which are read sequentially, without their index."""
        table = TargetTable(self.columns).of(self.rows)
        for run in record_runs(unpacked(open_range_file(self._path, self._ranges), self._path), self._path):
            for first in range(0, len(run.starts), _RECORDS):
                starts, sizes = (part[first : first + _RECORDS].copy() for part in (run.starts, run.sizes))
                starts -= HEAD
                end = int(starts[-1] + sizes[-1]) + FRAME
                right = self._read_examples(run.data[starts[0] : end].copy(), len(starts), table)
                self.records += len(starts)
                yield right + self.records - len(starts) + 1

    def _read_examples(
        self, data: npt.NDArray[np.uint8], count: int, table: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Read records to `rows`, except those that are no examples; return int64[n], the numbers of those read."""
        left, right = np.arange(count), [np.zeros(0, np.int64)]
        while len(left):
            rows = np.arange(len(left)) + sum(map(len, right))
            end, record, at, column, why = kernels.read_examples(data, count, left, rows, table)
            is_wrong = end == kernels.BAD_EXAMPLE
            right.append(left[left < record] if is_wrong else left)
            left = left[left > record] if is_wrong else left[:0]
            if is_wrong:
                size = int(data[at : at + 8].view("<u8")[0])
                example = data[at + HEAD : at + HEAD + size].tobytes()
                reason = explain_example(example, self.columns, column, why)
                feature = self.columns[column].feature if why == column_tables.OUT_OF_RANGE else None
                self._faults.add_error(DamagedBlockError(reason, feature=feature), self.records + int(record) + 1)
        return np.concatenate(right)


def hash_rows(data_set: DataSet, ranges: ByteRanges) -> npt.NDArray[np.uint64]:
    """Return uint64[n]: a hash of each readable row of a data set's only file.

    Raises:
      UnusableInputError: the file is missing, or damaged.
      RunFailedError: reading it fails.
    """
    reading, found = RowReading(data_set, ranges, Faults(data_set.files[0].path)), [np.zeros(0, np.uint64)]
    for numbers in reading.blocks():
        rows = reading.rows
        arrays = [rows.arrays[name][: len(numbers)] for name in sorted(rows.arrays)]
        counts = [rows.counts[name][: len(numbers), None] for name in sorted(rows.counts)]
        found.append(hashed([array.view(np.int32) if array.dtype.kind == "f" else array for array in arrays] + counts))
    return np.concatenate(found)


def hashed(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
    """Return uint64[rows]: a hash of each row of some columns; rows that differ in one value have different hashes."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for number, values in enumerate(columns):
        factors = np.random.PCG64(number).random_raw(values.shape[1]) | np.uint64(1)
        hashes += np.einsum("ij,j->i", values.astype(np.uint64), factors)
    return (hashes ^ (hashes >> np.uint64(32))) * np.uint64(_FACTOR)
