"""Read TFRecords of tf.train.Examples, gzipped or not, with or without an index."""

import dataclasses
import logging
import struct
import tempfile
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.reading.block_reader import Block, BlockReader, DamagedBlockError, Rows
from maskmill.reading.byte_ranges import ByteRanges, open_range_file
from maskmill.reading.column_tables import TargetTable, is_float, wrong_count, wrong_value
from maskmill.reading.data_set import DataFile, DataSet, ReadColumn
from maskmill.reading.kernels import column_tables
from maskmill.reading.kernels import examples as kernels
from maskmill.reading.record_indexes import BLOCK_RECORDS, BlockIndex, find_records, index_blocks, read_index
from maskmill.reading.unpacked_files import UnpackedFiles
from maskmill.records import example_proto
from maskmill.records.kernels.frames import HEAD
from maskmill.records.tfrecord import unpacked

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class _Found:
    """The places of the blocks of a file.

    blocks: their places in the file, unpacked. unpacked_at: the start of the file in UnpackedFiles; None: it is not
    gzipped. from_index: whether the places are those of an index, which are not verified.
    """

    blocks: BlockIndex
    unpacked_at: int | None
    from_index: bool


class TfRecordReader(BlockReader):
    """Read TFRecords. A block is 256 records; only the places of blocks are kept of each file."""

    block_samples = BLOCK_RECORDS

    def __init__(self, data_set: DataSet, ranges: ByteRanges) -> None:
        """Take a data set, without reading it yet."""
        self._files, self._columns, self._ranges = data_set.files, data_set.columns, ranges
        if len(self._columns) > kernels.MOST_COLUMNS:
            raise ValueError(f"{len(self._columns)} columns are more than {kernels.MOST_COLUMNS}")
        self._targets = TargetTable(self._columns)
        self._unpacked = UnpackedFiles()
        self._found: dict[int, _Found] = {}
        self._not_trusted: set[int] = set()  # files whose index was found to be wrong
        self._locks = [threading.Lock() for _ in self._files]
        self._logged: set[str] = set()

    def fetch(self, block: Block) -> Any:
        with self._locks[block.file]:
            found = self._found.get(block.file)
            if found is None:
                found = self._found[block.file] = self._find(block.file)
        number = block.first // BLOCK_RECORDS
        start, end = found.blocks.starts[number : number + 2].tolist()
        if found.unpacked_at is not None:
            return self._unpacked.read(found.unpacked_at + start, found.unpacked_at + end)
        return self._ranges.read(self._files[block.file].path, start, end)

    def decode(
        self, fetched: Any, block: Block, samples: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows
    ) -> None:
        # Copies, because numba compiles anew for arrays that cannot be written to.
        samples, rows = np.array(samples, np.int64), np.array(rows, np.int64)
        table = self._targets.of(into)
        end, record, at, column, why = kernels.read_examples(fetched, block.count, samples, rows, table)
        if end == kernels.BAD_EXAMPLE:
            (size,) = struct.unpack_from("<Q", fetched, at)
            reason = explain_example(fetched[at + HEAD : at + HEAD + size].tobytes(), self._columns, column, why)
            raise DamagedBlockError(f"{self._files[block.file].path}, record {block.first + record + 1:,}: {reason}")
        if end != kernels.DONE:
            raise DamagedBlockError(self._describe_damage(block, end, record))

    def forget(self, block: Block) -> bool:
        file = self._files[block.file]
        may_change = self._ranges.forget(file.path)
        if file.index is not None:
            may_change |= self._ranges.forget(file.index)
        with self._locks[block.file]:
            found = self._found.pop(block.file, None)
            if may_change or found is None or not found.from_index:
                return may_change
            # The bytes have not changed, but the index may have a wrong place of the block.
            self._not_trusted.add(block.file)
            return True

    def close(self) -> None:
        self._unpacked.close()

    @staticmethod
    def count_samples(path: str, ranges: ByteRanges) -> int:
        return index_blocks(path, ranges).samples

    @staticmethod
    def why_unchecked(path: str, ranges: ByteRanges) -> str | None:
        return None

    def _find(self, number: int) -> _Found:
        """Find the blocks of a file: by its index, if that fits, else by reading the file once."""
        file = self._files[number]
        indexed = None if number in self._not_trusted else self._indexed(file)
        size = self._ranges.size(file.path) if file.size is None else file.size
        if indexed is not None and indexed.starts[-1] == size:
            return _Found(indexed, None, from_index=True)
        raw = open_range_file(file.path, self._ranges)
        content = unpacked(raw, file.path)
        start = None
        if content is not raw:
            self._warn_once(
                "%s: files of this data set are packed with gzip, and each process unpacks those that it reads into "
                "%s; make the examples without --packed.",
                file.path,
                tempfile.gettempdir(),
            )
            start, end = self._unpacked.add(content, file.path)
            if indexed is not None and indexed.starts[-1] == end - start:
                return _Found(indexed, start, from_index=True)
            content = self._unpacked.open(start, end)
        if file.index is not None:
            self._warn_once(
                "%s: this index is missing or does not fit %s, which is read once more to find its records; make the "
                "index again.",
                file.index,
                file.path,
            )
        blocks = find_records(content, file.path)
        if blocks.samples != file.samples:
            raise DamagedBlockError(
                f"{file.path}: this file has {blocks.samples:,} records instead of {file.samples:,}; make or fetch it "
                "again."
            )
        return _Found(blocks, start, from_index=False)

    def _warn_once(self, message: str, *names: str) -> None:
        """Log a warning for the first file only."""
        if message not in self._logged:
            self._logged.add(message)
            _log.warning(message, *names)

    def _indexed(self, file: DataFile) -> BlockIndex | None:
        """Return the blocks that a file's index lists; None if it has none, or a wrong one."""
        if file.index is None:
            return None
        try:
            blocks = read_index(file.index, self._ranges)
        except UnusableInputError:  # it is missing: the file itself is read instead
            return None
        return blocks if blocks is not None and blocks.samples == file.samples else None

    def _describe_damage(self, block: Block, end: int, record: int) -> str:
        """Return the message about a damaged record of a block."""
        file, found = self._files[block.file], self._found.get(block.file)
        where = f"{file.path}, record {block.first + record + 1:,}"
        if end == kernels.BAD_DATA:
            return f"{where} has data that does not fit its checksum: the file is damaged; make or fetch it again."
        damage = "has a length that does not fit its checksum"
        if end == kernels.OTHER_END:
            where, damage = f"{file.path}, record {block.first + record:,}", "does not end where the next one starts"
        if found is not None and found.from_index:
            return f"{where} {damage}: the file or its index is damaged; make or fetch both again."
        return f"{where} {damage}: the file is damaged; make or fetch it again."


def explain_example(record: bytes, columns: Sequence[ReadColumn], place: int, why: int) -> str:
    """Return a sentence about a wrong example; the caller adds the place.

    columns: of the data set. place: the index of the wrong one; -1: none. why: column_tables.UNREADABLE and so on.
    """
    try:
        features = example_proto.parse_example(record, strict=False)
    except ValueError:
        place = -1
    if place < 0 or why == column_tables.UNREADABLE:
        return "this is no example (tf.train.Example)."
    column = columns[place]
    if why == column_tables.MISSING:
        return f"the feature {column.name} is missing."
    if why == column_tables.REPEATED:
        return f"the feature {column.name} is there twice."
    if why == column_tables.OTHER_KIND:
        kind = "floats (a float_list)" if is_float(column) else "integers (an int64_list)"
        return f"{column.name} must be {kind}."
    feature = features[column.name]
    if why == column_tables.OTHER_COUNT:
        return wrong_count(column, example_proto.count_values(feature))
    return wrong_value(column, np.array(getattr(feature, str(feature.WhichOneof("kind"))).value))
