"""Walks over TFRecords: where each record lies, with its two checksums verified; and the index of a walk.

Arrays
  data        uint8: a part of a TFRecord file that starts where a record starts.
  starts, sizes
              int64: where the data of each record starts in `data`, and its size, without the frame.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.crc32c import masked_crc32c
from maskmill.kernels.memory import load_u32, load_u64

HEAD = 12  # bytes in front of a record's data
TAIL = 4  # and after it
FRAME = HEAD + TAIL
_LENGTH = 8  # bytes of a record's length, the first of its head

INDEX_LINE = 42  # most bytes of a line "offset size"; two numbers of 20 digits, a space and a newline
_ZERO_DIGIT = 48
_SPACE = 32
_NEWLINE = 10

# How a walk ends.
INCOMPLETE = 0  # the data ends, inside a record or after the last
BAD_LENGTH = 1  # the checksum of a record's length is wrong
BAD_DATA = 2  # the checksum of a record's data is wrong
FULL = 3  # `starts` has no room left

_NO_LENGTH = np.int64(1 << 62)  # beyond any file


@kernel
def scan_records(data, size, starts, sizes):
    """Walk over data[:size]; return how it ended, how many records there are, where the next one starts, and how
    many bytes from there that one needs (at least)."""
    n = 0
    i = 0
    while True:
        if i + HEAD > size:
            return INCOMPLETE, n, i, HEAD
        if load_u32(data, i + _LENGTH) != masked_crc32c(data, i, i + _LENGTH):
            return BAD_LENGTH, n, i, HEAD
        length = np.int64(load_u64(data, i))
        if length < 0:
            return BAD_LENGTH, n, i, HEAD
        if length > size - i - FRAME:  # a sum could overflow
            return INCOMPLETE, n, i, min(length, _NO_LENGTH) + FRAME
        if load_u32(data, i + HEAD + length) != masked_crc32c(data, i + HEAD, i + HEAD + length):
            return BAD_DATA, n, i, HEAD
        if n == len(starts):
            return FULL, n, i, HEAD
        starts[n] = i + HEAD
        sizes[n] = length
        n += 1
        i += HEAD + length + TAIL


@kernel
def index_lines(record_sizes, count, offset, lines):
    """Write a line "offset size" for each of `count` records, the first at `offset`; return how many bytes.

    record_sizes: int64, each with its frame. lines: uint8, with room for INDEX_LINE bytes a record.
    """
    digits = np.empty(INDEX_LINE, np.uint8)
    n = 0
    for k in range(count):
        for part in range(2):
            number = record_sizes[k] if part else offset
            length = 0
            while True:
                digits[length] = _ZERO_DIGIT + number % 10
                number //= 10
                length += 1
                if number == 0:
                    break
            for d in range(length - 1, -1, -1):
                lines[n] = digits[d]
                n += 1
            lines[n] = _NEWLINE if part else _SPACE
            n += 1
        offset += record_sizes[k]
    return n


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    sizes = np.empty(1, np.int64)
    index_lines(sizes, 0, 0, np.empty(INDEX_LINE, np.uint8))
    scan_records(np.zeros(HEAD, np.uint8), 0, np.empty(1, np.int64), np.empty(1, np.int64))
