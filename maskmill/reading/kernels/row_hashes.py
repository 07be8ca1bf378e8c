"""Hashes of rows by their values, whatever types these have in memory and however far rows are filled up.

Arrays
  hashes      uint64[rows]: the hash of each row so far.
  values      int32[rows, have]: a column.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel, wraps_around

_FACTOR = 0xD6E8FEB86659FD93  # odd, so that each step can be undone: rows that differ in one value never get one hash
_HALF = 32


@kernel
@wraps_around
def add_column(hashes, values, width, fill, repeats_last):
    """Adds a column to the hashes of rows, as if it were `width` wide: filled up with `fill` or its last value."""
    rows, have = values.shape
    for row in range(rows):
        state = hashes[row]
        last = values[row, have - 1] if repeats_last and have else fill
        for place in range(width):
            value = values[row, place] if place < have else last
            state = (state ^ np.uint64(np.uint32(value))) * np.uint64(_FACTOR)
            state ^= state >> np.uint64(_HALF)
        hashes[row] = state


def warm_up() -> None:
    """Compiles the kernel."""
    add_column(np.zeros(1, np.uint64), np.zeros((1, 1), np.int32), 1, 0, False)
