"""Values of columns to the samples of an MDS shard: mosaicml-streaming's streaming/base/format/mds.

A sample: the size of each column's part (uint32), then the parts. A part, an `ndarray:TYPE` of one dimension: a byte
with the number of dimensions times 4 and the code of the length's type (0: uint8, 1: uint16, 2: uint32, the smallest
that fits), the length, the values. All little-endian.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.memory import copy_32, store_u8, store_u16, store_u32

SIZE_BYTES = 4  # of the size of a part
_ONE_DIMENSION = 4
_VECTOR = 32


@kernel
def put_column(values, value_bytes, offsets, column, starts, ends, samples):
    """Write the parts of a column into samples, and their sizes; move `ends` after them.

    values: uint8, the bytes of the values of all rows, each value of `value_bytes` bytes.
    offsets: int64[rows + 1], where the values of each row start and end, counted in values.
    column: which of the columns this is. starts: int64[rows], where each sample starts in `samples` (uint8).
    ends: int64[rows], where the parts written so far end.
    """
    for row in range(len(starts)):
        start = ends[row]
        length = offsets[row + 1] - offsets[row]
        at = start + 1
        if length < 1 << 8:
            store_u8(samples, start, _ONE_DIMENSION)
            store_u8(samples, at, length)
            at += 1
        elif length < 1 << 16:
            store_u8(samples, start, _ONE_DIMENSION + 1)
            store_u16(samples, at, length)
            at += 2
        else:
            store_u8(samples, start, _ONE_DIMENSION + 2)
            store_u32(samples, at, length)
            at += 4
        source = offsets[row] * value_bytes
        size = length * value_bytes
        whole = size & -_VECTOR
        for k in range(0, whole, _VECTOR):
            copy_32(samples, at + k, values, source + k)
        for k in range(whole, size):
            samples[at + k] = values[source + k]
        ends[row] = at + size
        store_u32(samples, starts[row] + column * SIZE_BYTES, at + size - start)


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    place = np.zeros(1, np.int64)
    put_column(np.zeros(1, np.uint8), 1, np.arange(2), 0, place, place + SIZE_BYTES, np.empty(16, np.uint8))
