"""Write rows to MDS, the shards of mosaicml-streaming, and their index. ModernBERT's and Composer's trainers read them.

All but the names of shards is byte for byte as `streaming.MDSWriter(hashes=["sha256"])` (0.13) writes these samples.
Each column is an `ndarray:TYPE`. Source: streaming/base/format/mds/writer.py, encodings.py and base/writer.py.

A shard: the number of samples n (uint32), n + 1 offsets (uint32, from the start of the file), the columns as JSON, the
samples (kernels/mds.py).
"""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.masking.kernels.rows import RowArrays
from maskmill.records.columns import Column, column_values
from maskmill.records.kernels import mds as kernels
from maskmill.records.tfrecord import WrittenFile, written_file
from maskmill.storage import files

_SIZE_LIMIT = 1 << 26  # MDSWriter's default
_VERSION = 2
_HASH = "sha256"
_OFFSET_BYTES = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class MdsShard(WrittenFile):
    """A shard that was written, and the number of its samples."""

    samples: int


def write_mds(
    prefix: str,
    blocks: Iterable[tuple[RowArrays, int]],
    columns: Sequence[Column],
    special_ids: Sequence[int],
    width: int,
    *,
    checksum: bool,
    size_limit: int = _SIZE_LIMIT,
) -> list[MdsShard]:
    """Write rows to MDS shards, `PREFIX.00000.mds` and so on. Their index is written from `mds_shard_entry`.

    Args:
      prefix, blocks, width, checksum: see ShardFormat.write. Without rows no shard is written.
      columns: in the order of their names, see `columns.columns_of`.
      special_ids: the ids of [CLS] and [SEP].
      size_limit: most bytes of a shard; a sample that is larger gets a shard of its own.

    Raises:
      RunFailedError: a file cannot be written.
    """
    config = json.dumps(_config(columns, checksum, size_limit), sort_keys=True).encode()
    shard = _Shard(size_limit, len(config))
    written: list[MdsShard] = []

    def flush() -> None:
        path = f"{prefix}.{len(written):05}.mds"
        with files.new_file(path, checksum=checksum) as file:
            shard.write(file, config)
        written.append(MdsShard(**vars(written_file(file, checksum)), samples=shard.samples))
        shard.clear()

    for rows, count in blocks:
        block = _Block(columns, rows, count, special_ids, width)
        start = 0
        while start < count:
            fitting = shard.fitting(block.sizes[start:])
            if not fitting:
                flush()
                continue
            shard.add(block, start, start + fitting)
            start += fitting
    if shard.samples:
        flush()
    return written


def mds_shard_entry(
    columns: Sequence[Column], name: str, size: int, sha256: str | None, samples: int, size_limit: int = _SIZE_LIMIT
) -> dict[str, Any]:
    """Return the entry of a shard in the index, as values of JSON.

    Args:
      columns: of `write_mds`, and likewise `size_limit`.
      name: of the shard's file, in the directory of the index.
      size, sha256, samples: of the shard's MdsShard.
    """
    hashes = {} if sha256 is None else {_HASH: sha256}
    return _config(columns, sha256 is not None, size_limit) | {
        "raw_data": {"basename": name, "bytes": size, "hashes": hashes},
        "samples": samples,
        "zip_data": None,
    }


def mds_index(entries: Sequence[dict[str, Any]]) -> bytes:
    """Return the content of `index.json`, which lies in the directory of its shards; entries: see `mds_shard_entry`."""
    return json.dumps({"version": _VERSION, "shards": entries}, sort_keys=True).encode()


def _config(columns: Sequence[Column], checksum: bool, size_limit: int) -> dict[str, Any]:
    """Return the head of every shard; MDSWriter.get_config."""
    return {
        "version": _VERSION,
        "format": "mds",
        "compression": None,
        "hashes": [_HASH] if checksum else [],
        "size_limit": size_limit,
        "column_names": [column.name for column in columns],
        "column_encodings": [f"ndarray:{column.dtype.name}" for column in columns],
        "column_sizes": [None for _ in columns],
    }


def part_sizes(lengths: npt.NDArray[np.int64], value_bytes: int) -> npt.NDArray[np.int64]:
    """Return int64[rows]: the bytes that kernels/mds.py writes for lengths[k] values of `value_bytes` bytes each."""
    return 2 + (lengths >= 1 << 8) + 2 * (lengths >= 1 << 16) + lengths * value_bytes


class _Block:
    """The values of a block of rows; sizes: int64[rows], the bytes of their samples."""

    def __init__(
        self, columns: Sequence[Column], rows: RowArrays, count: int, special_ids: Sequence[int], width: int
    ) -> None:
        self.values = [column_values(column, rows, count, special_ids, width) for column in columns]
        self.sizes = np.full(count, len(columns) * kernels.SIZE_BYTES, np.int64)
        for values in self.values:
            self.sizes += part_sizes(np.diff(values.offsets), values.values.itemsize)


class _Shard:
    """The samples of a shard until it is written: its head needs their number."""

    def __init__(self, size_limit: int, config_size: int) -> None:
        self._data = np.empty(size_limit, np.uint8)  # takes memory as it is filled
        self._most = size_limit - config_size - 2 * _OFFSET_BYTES
        self.clear()

    def clear(self) -> None:
        """Drop all samples."""
        self._sizes: list[npt.NDArray[np.int64]] = []
        self._used = 0
        self.samples = 0

    def fitting(self, sizes: npt.NDArray[np.int64]) -> int:
        """Return how many samples, of these sizes, still fit; at least one in an empty shard."""
        room = self._most - self._used - self.samples * _OFFSET_BYTES
        fitting = int(np.searchsorted((sizes + _OFFSET_BYTES).cumsum(), room, side="right"))
        return fitting or int(not self.samples)

    def add(self, block: _Block, start: int, end: int) -> None:
        """Add the samples of rows [start, end) of a block."""
        sizes = block.sizes[start:end]
        starts = self._used + sizes.cumsum() - sizes
        used = self._used + int(sizes.sum())
        if used > len(self._data):  # one sample, larger than a shard should be
            self._data = np.empty(used, np.uint8)
        ends = starts + len(block.values) * kernels.SIZE_BYTES
        for column, values in enumerate(block.values):
            data = np.ascontiguousarray(values.values).view(np.uint8)
            offsets = values.offsets[start : end + 1]
            kernels.put_column(data, values.values.itemsize, offsets, column, starts, ends, self._data)
        self._sizes.append(sizes)
        self._used = used
        self.samples += len(sizes)

    def write(self, file: files.OutputFile, config: bytes) -> None:
        """Write the shard; config: that of `_config`, as JSON."""
        sizes = np.concatenate([np.zeros(1, np.int64), *self._sizes])
        first = (2 + self.samples) * _OFFSET_BYTES + len(config)
        file.write(np.uint32(self.samples).tobytes())
        file.write((first + sizes.cumsum()).astype(np.uint32).tobytes())
        file.write(config)
        file.write(self._data[: self._used].data)
