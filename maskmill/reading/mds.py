"""Read MDS, the shards of mosaicml-streaming, as maskmill writes them (maskmill/records/mds.py)."""

import dataclasses
import itertools
import json
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.reading.block_reader import Block, BlockReader, DamagedBlockError, OtherColumnsError, Rows
from maskmill.reading.byte_ranges import ByteRanges, forward
from maskmill.reading.column_tables import TargetTable, is_float, wrong_count, wrong_value
from maskmill.reading.data_set import DataFile, DataSet, ReadColumn
from maskmill.reading.kernels import column_tables
from maskmill.reading.kernels import mds_samples as kernels

BLOCK_SAMPLES = 256
_WORD = 4  # bytes of a number in a shard's head
_CONFIG_BYTES = 4096  # the descriptions of most shards have fewer
# The types of values that maskmill stores, by their names in MDS.
_INTEGERS = {f"ndarray:{name}": np.dtype(name) for name in ("uint8", "uint16", "int32")}
_FLOATS = {"ndarray:float32": np.dtype(np.float32)}
_CODES = 4  # for the type of a length, in the first byte of a part


@dataclasses.dataclass(frozen=True)
class _Head:
    """The head of a shard.

    starts: int64[blocks + 1], the start of each block in the file, and the end of the last one. parts: int64[parts,
    PART], the column and the type of each part of a sample (kernels/mds_samples.py).
    """

    starts: npt.NDArray[np.int64]
    parts: npt.NDArray[np.int64]


class MdsReader(BlockReader):
    """Read MDS shards. A block is 256 samples; only the starts of blocks are kept of each shard."""

    block_samples = BLOCK_SAMPLES

    def __init__(self, data_set: DataSet, ranges: ByteRanges) -> None:
        """Take a data set, without reading it yet."""
        self._files, self._columns, self._ranges = data_set.files, data_set.columns, ranges
        self._targets = TargetTable(self._columns)
        self._heads: dict[int, _Head] = {}
        self._locks = [threading.Lock() for _ in self._files]

    def fetch(self, block: Block) -> Any:
        head = self._head(block.file)
        number = block.first // BLOCK_SAMPLES
        start, end = head.starts[number : number + 2].tolist()
        return head.parts, self._ranges.read(self._files[block.file].path, start, end)

    def decode(
        self, fetched: Any, block: Block, samples: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows
    ) -> None:
        parts, data = fetched
        # Copies, because numba compiles anew for arrays that cannot be written to.
        samples, rows = np.array(samples, np.int64), np.array(rows, np.int64)
        end, sample, place, why = kernels.read_samples(data, block.count, samples, rows, self._targets.of(into), parts)
        if end == kernels.DONE:
            self._fill_missing(parts, rows, into)
            return
        path = self._files[block.file].path
        if end == kernels.OTHER_END:
            which = f"records {block.first + 1:,} to {block.first + block.count:,} do not end where they must"
            if block.count == 1:
                which = f"record {block.first + 1:,} does not end where it must"
            raise DamagedBlockError(f"{path}: {which}: the file is damaged; make or fetch it again.")
        part = parts[:, kernels.COLUMN].tolist().index(place)
        reason = _explain(_part(data, sample, len(parts), part), parts[part].tolist(), self._columns[place], why)
        feature = self._columns[place].feature if why == column_tables.OUT_OF_RANGE else None
        raise DamagedBlockError(f"{path}, record {block.first + sample + 1:,}: {reason}", feature=feature)

    def decode_each(self, fetched: Any, block: Block, into: Rows) -> dict[int, DamagedBlockError]:
        parts, data = fetched
        start = _WORD * (1 + block.first)
        words = self._ranges.read(self._files[block.file].path, start, start + _WORD * (block.count + 1))
        offsets = words.view("<u4").astype(np.int64)
        wrong = {}
        for sample, (first, end) in enumerate(itertools.pairwise((offsets - offsets[0]).tolist())):
            alone = Block(block.file, block.first + sample, 1)
            try:
                self.decode((parts, data[first:end]), alone, np.zeros(1, np.int64), np.array([sample]), into)
            except DamagedBlockError as error:
                wrong[sample] = error
        return wrong

    def forget(self, block: Block) -> bool:
        with self._locks[block.file]:
            self._heads.pop(block.file, None)
        return self._ranges.forget(self._files[block.file].path)

    @staticmethod
    def count_samples(path: str, ranges: ByteRanges) -> int:
        if ranges.size(path) < _WORD:
            raise UnusableInputError(f"{path}: this shard is too short; make or fetch it again.")
        return int(ranges.read(path, 0, _WORD).view("<u4")[0])

    @staticmethod
    def why_unchecked(path: str, ranges: ByteRanges) -> str | None:
        return "MDS has no checksums of records"

    def _fill_missing(self, parts: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows) -> None:
        """Write zeros for the optional columns that a shard lacks."""
        for place, column in enumerate(self._columns):
            if place not in parts[:, kernels.COLUMN]:
                into.put_zeros(column, rows)

    def _head(self, number: int) -> _Head:
        """Return the head of a shard. The first time, verify the sha256 of the shard: records have no checksums."""
        with self._locks[number]:
            head = self._heads.get(number)
            if head is None:
                file = self._files[number]
                head = self._read_head(file)
                if file.sha256 is not None and forward(self._ranges).sha256_of(file.path) != file.sha256:
                    raise DamagedBlockError(
                        f"{file.path}: the content of this shard is not what was written (another sha256 than in the "
                        "manifest); make or fetch it again."
                    )
                self._heads[number] = head
            return head

    def _read_head(self, file: DataFile) -> _Head:
        size = self._ranges.size(file.path) if file.size is None else file.size
        config_at = _WORD * (file.samples + 2)
        data = self._ranges.read(file.path, 0, min(size, config_at + _CONFIG_BYTES))
        if len(data) < config_at or (count := int(data[:_WORD].view("<u4")[0])) != file.samples:
            what = "is too short" if len(data) < config_at else f"says that it has {count:,} records"
            raise DamagedBlockError(
                f"{file.path}: this shard {what}, but it must have {file.samples:,}; make or fetch it again."
            )
        offsets = data[_WORD:config_at].view("<u4").astype(np.int64)
        if offsets[0] < config_at or offsets[-1] != size or (np.diff(offsets) < 0).any():
            raise DamagedBlockError(
                f"{file.path}: the places of this shard's records do not fit the file; make or fetch it again."
            )
        if offsets[0] > len(data):
            data = self._ranges.read(file.path, 0, int(offsets[0]))
        parts = self._parts(file.path, data[config_at : offsets[0]].tobytes())
        return _Head(np.append(offsets[:-1:BLOCK_SAMPLES], offsets[-1]), parts)

    def _parts(self, path: str, config: bytes) -> npt.NDArray[np.int64]:
        """Return _Head.parts, by the description in a shard."""
        try:
            described = json.loads(config)
            encodings = dict(zip(described["column_names"], described["column_encodings"], strict=True))
            sizes = described["column_sizes"]
        except (ValueError, KeyError, TypeError):
            raise DamagedBlockError(
                f"{path}: this shard does not say what its columns are; make or fetch it again."
            ) from None
        parts = np.full((len(encodings), kernels.PART), -1, np.int64)
        names = list(encodings)
        for place, column in enumerate(self._columns):
            encoding = encodings.get(column.name)
            if encoding is None and column.optional:
                continue
            if encoding is None:
                raise OtherColumnsError(f"{path}: the column {column.name} is missing; make or fetch the file again.")
            stored = (_FLOATS if is_float(column) else _INTEGERS).get(encoding)
            if stored is None or any(sizes):
                raise OtherColumnsError(
                    f"{path}: the values of {column.name} are stored as {encoding}, which is not read; make the "
                    "examples with maskmill."
                )
            parts[names.index(column.name)] = place, stored.itemsize
        return parts


def _part(data: npt.NDArray[np.uint8], sample: int, parts: int, part: int) -> bytes:
    """Return the bytes of one of the `parts` of a sample."""
    start = 0
    while True:
        sizes = data[start : start + _WORD * parts].view("<u4").astype(np.int64)
        if not sample:
            start += _WORD * parts + int(sizes[:part].sum())
            return data[start : start + int(sizes[part])].tobytes()
        start += _WORD * parts + int(sizes.sum())
        sample -= 1


def _explain(part: bytes, description: list[int], column: ReadColumn, why: int) -> str:
    """Return a sentence about a wrong part; the caller adds the place."""
    if why == column_tables.UNREADABLE:
        return f"{column.name} cannot be read; make or fetch the file again."
    known = _FLOATS if is_float(column) else _INTEGERS
    dtype = next(dtype for dtype in known.values() if dtype.itemsize == description[kernels.STORED_BYTES])
    values = np.frombuffer(part[1 + (1 << part[0] % _CODES) :], dtype)
    return wrong_count(column, len(values)) if why == column_tables.OTHER_COUNT else wrong_value(column, values)
