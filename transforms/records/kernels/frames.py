"""Walks over TFRecords: where each record lies, with its two checksums verified.

Arrays
  data        uint8: a part of a TFRecord file that starts where a record starts.
  starts, sizes
              int64: where the data of each record starts in `data`, and its size, without the frame.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from transforms.kernels import kernel
from transforms.kernels.crc32c import masked_crc32c
from transforms.kernels.memory import load_u32, load_u64

HEAD = 12  # bytes in front of a record's data
TAIL = 4  # and behind it

# How a walk ends.
INCOMPLETE = 0  # the data ends, inside a record or behind the last
BAD_LENGTH = 1  # the checksum of a record's length is wrong
BAD_DATA = 2  # the checksum of a record's data is wrong
FULL = 3  # `starts` has no room left


@kernel
def scan_records(data, size, starts, sizes):
    """Walks over data[:size]; returns how it ended, how many records there are, where the next one starts, and how
    many bytes from there that one needs (at least)."""
    n = 0
    i = 0
    while True:
        if i + HEAD > size:
            return INCOMPLETE, n, i, HEAD
        if load_u32(data, i + 8) != masked_crc32c(data, i, i + 8):
            return BAD_LENGTH, n, i, HEAD
        length = np.int64(load_u64(data, i))
        if length < 0:
            return BAD_LENGTH, n, i, HEAD
        if i + HEAD + length + TAIL > size:
            return INCOMPLETE, n, i, HEAD + length + TAIL
        if load_u32(data, i + HEAD + length) != masked_crc32c(data, i + HEAD, i + HEAD + length):
            return BAD_DATA, n, i, HEAD
        if n == len(starts):
            return FULL, n, i, HEAD
        starts[n] = i + HEAD
        sizes[n] = length
        n += 1
        i += HEAD + length + TAIL


def warm_up() -> None:
    """Compiles the entry kernels of this module."""
    scan_records(np.zeros(HEAD, np.uint8), 0, np.empty(1, np.int64), np.empty(1, np.int64))
