"""Indexes of TFRecords, in the form of NVIDIA DALI: a line "offset size" for each record, its frame included."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel

MOST_DIGITS = 18
_ZERO_DIGIT = 48
_SPACE = 32
_NEWLINE = 10


@kernel
def _number(text, i, behind):
    """Return whether a number stands there that ends in the byte `behind`; the number, and the place after that."""
    value = np.int64(0)
    start = i
    while i < len(text) and i - start < MOST_DIGITS and text[i] >= _ZERO_DIGIT and text[i] < _ZERO_DIGIT + 10:
        value = value * 10 + text[i] - _ZERO_DIGIT
        i += 1
    if i == start or i == len(text) or text[i] != behind:
        return False, value, i
    return True, value, i + 1


@kernel
def read_index(text, every, starts):
    """Read an index whose records lie one after the other, from byte 0 on.

    text: uint8. starts: int64, takes where each `every`-th record starts, the first, the one after them, and so on.

    Returns whether this is such an index, the number of records, and where the last one ends.
    """
    i = np.int64(0)
    end = np.int64(0)
    records = 0
    while i < len(text):
        is_offset, offset, i = _number(text, i, _SPACE)
        is_size, size, i = _number(text, i, _NEWLINE)
        if not is_offset or not is_size or offset != end or size <= 0:
            return False, records, end
        if records % every == 0:
            starts[records // every] = offset
        records += 1
        end = offset + size
    return True, records, end


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    read_index(np.empty(0, np.uint8), 1, np.empty(0, np.int64))
