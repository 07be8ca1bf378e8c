"""Find the records of a TFRecord file: in the index beside it, or by reading the file once."""

import dataclasses
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges, open_range_file
from maskmill.reading.kernels import indexes as kernels
from maskmill.records import example_proto
from maskmill.records.kernels.frames import FRAME, HEAD
from maskmill.records.tfrecord import record_runs, unpacked

BLOCK_RECORDS = 256
_SHORTEST_LINE = 4  # bytes of "0 1" and a newline
_FIRST_BYTES = 1 << 16  # most first examples are smaller


@dataclasses.dataclass(frozen=True)
class BlockIndex:
    """The places of the blocks of a file.

    samples: the number of records of the file. starts: int64[blocks + 1], the start of each block in the file,
    unpacked, and the end of the last one.
    """

    samples: int
    starts: npt.NDArray[np.int64]


def read_index(index: str, ranges: ByteRanges, block_records: int = BLOCK_RECORDS) -> BlockIndex | None:
    """Return the blocks that an index lists; None if it is no index, or if its records are not consecutive."""
    return parse_index(ranges.read_all(index), block_records)


def parse_index(content: bytes, block_records: int = BLOCK_RECORDS) -> BlockIndex | None:
    """Return the blocks that the content of an index lists; see `read_index`."""
    text = np.frombuffer(bytearray(content), np.uint8)
    starts = np.empty(len(text) // (_SHORTEST_LINE * block_records) + 2, np.int64)
    is_index, records, end = kernels.read_index(text, block_records, starts)
    if not is_index:
        return None
    blocks = -(-records // block_records)
    starts[blocks] = end
    return BlockIndex(records, starts[: blocks + 1].copy())


def find_records(file: BinaryIO, path: str, block_records: int = BLOCK_RECORDS) -> BlockIndex:
    """Return the blocks of a file; read the whole file for them, and verify each checksum.

    Args:
      file: the records, unpacked.
      path: the name of the file in messages.
      block_records: the number of records of a block.

    Raises:
      UnusableInputError: the file is truncated, damaged or no TFRecord.
    """
    starts: list[npt.NDArray[np.int64]] = []
    records = end = 0
    for run in record_runs(file, path):
        starts.append(run.offset + run.starts[-records % block_records :: block_records] - HEAD)
        records += len(run.starts)
        end = run.offset + int(run.starts[-1] + run.sizes[-1]) - HEAD + FRAME
    return BlockIndex(records, np.concatenate([*starts, np.array([end])]))


def index_blocks(path: str, ranges: ByteRanges, index: str | None = None) -> BlockIndex:
    """Return the blocks of a TFRecord file, gzipped or not.

    Args:
      path: the file.
      ranges: reads it.
      index: its index. If it does not fit the file, or is None, the whole file is read.

    Raises:
      UnusableInputError: the file is missing, truncated, damaged or no TFRecord.
    """
    blocks = None if index is None else read_index(index, ranges)
    if blocks is not None and blocks.starts[-1] == ranges.size(path):
        return blocks
    return find_records(unpacked(open_range_file(path, ranges), path), path)


def first_example(path: str, ranges: ByteRanges) -> dict[str, tuple[int, str]]:
    """Return by name the number of values of each feature of a file's first example, and "int64", "float" or "bytes".

    A feature without a list of values counts as "int64". A file without examples has no features.

    Raises:
      UnusableInputError: the file is missing, or no TFRecord of examples.
    """
    file = unpacked(open_range_file(path, ranges, _FIRST_BYTES), path)
    for run in record_runs(file, path, _FIRST_BYTES):
        start, size = int(run.starts[0]), int(run.sizes[0])
        features = features_of_record(run.data[start : start + size].tobytes())
        if features is None:
            raise UnusableInputError(f"{path}: this is no TFRecord of examples.")
        return features
    return {}


def features_of_record(record: bytes) -> dict[str, tuple[int, str]] | None:
    """Return the features of an example as `first_example` does; None if the record is no example."""
    try:
        features = example_proto.parse_example(record, strict=False)
    except ValueError:
        return None
    return {
        name: (example_proto.count_values(feature), str(feature.WhichOneof("kind") or "int64_list")[: -len("_list")])
        for name, feature in features.items()
    }
