"""Where the values of a row go, and what they may be: shared by all kernels that read rows.

Columns are told to kernels by two tables, a line for each column: TARGET integers and LIMIT floats. Both hold for
one `Rows`, whose arrays must live as long as the tables are used: they are named by their addresses.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from transforms.kernels import kernel
from transforms.kernels.memory import get_i64, load_u8, load_u32, put_i32, store_u8, store_u16, store_u32

# The integers of a column.
ADDRESS = 0  # of its array
VALUE_BYTES = 1  # 1, 2 or 4
IS_FLOAT = 2
WIDTH = 3  # values of a row in memory
VARIES = 4  # whether rows have numbers of values of their own
FILL = 5  # what rows are filled up with
FILLS_WITH_LAST = 6  # they are filled up with their last value instead
LOW = 7  # the smallest and the largest integer allowed
HIGH = 8
IS_OPTIONAL = 9
COUNTS = 10  # the address of its int32 counts; 0: none
TARGET = 11

# The floats of a column: the smallest and the largest allowed.
LIMIT = 2

# Why values are not taken, in place of their number.
UNREADABLE = -1  # not what the format says
OTHER_COUNT = -2  # there are more or fewer than there must be
OUT_OF_RANGE = -3
OTHER_KIND = -4  # integers for floats, floats for integers, or neither
MISSING = -5  # no values at all
REPEATED = -6  # the column is there twice


class Targets(NamedTuple):
    """The tables of the columns: integers int64[columns, TARGET], floats float64[columns, LIMIT]."""

    integers: np.ndarray
    floats: np.ndarray


@kernel
def row_address(column, row):
    """Where a row of a column starts in memory; column: the address of its line of integers."""
    return get_i64(column, ADDRESS) + row * get_i64(column, WIDTH) * get_i64(column, VALUE_BYTES)


@kernel
def put_value(target, size, n, value):
    """Stores an integer, or the bits of a float, as the n-th of values of `size` bytes."""
    if size == 1:
        store_u8(target, n, value)
    elif size == 2:
        store_u16(target, 2 * n, value)
    else:
        store_u32(target, 4 * n, value)


@kernel
def are_floats_allowed(column, limits, row, count):
    """Whether floats are within their limits, which NaN never is. A lower limit of NaN: anything is allowed."""
    low, high = limits[0], limits[1]
    if low != low:
        return True
    target = row_address(column, row)
    for n in range(count):
        value = np.uint32(load_u32(target, 4 * n)).view(np.float32)
        if not (value >= low and value <= high):
            return False
    return True


@kernel
def finish_row(column, row, count):
    """Fills a row up behind `count` values and notes their number; returns it, or OTHER_COUNT if it is wrong."""
    width = get_i64(column, WIDTH)
    if count > width or (count < width and not get_i64(column, VARIES)):
        return OTHER_COUNT
    if count < width:
        size = get_i64(column, VALUE_BYTES)
        target = row_address(column, row)
        if not get_i64(column, FILLS_WITH_LAST):
            for n in range(count, width):
                put_value(target, size, n, get_i64(column, FILL))
        else:
            start = max(count, 1)
            if count == 0:
                put_value(target, size, 0, 0)
            for k in range(start * size, width * size):
                store_u8(target, k, load_u8(target, k - size))
    counts = get_i64(column, COUNTS)
    if counts:
        put_i32(counts, row, count)
    return count


@kernel
def zero_row(column, row):
    """What a row has that lacks an optional column."""
    size = get_i64(column, VALUE_BYTES)
    target = row_address(column, row)
    for n in range(get_i64(column, WIDTH)):
        put_value(target, size, n, 0)
    counts = get_i64(column, COUNTS)
    if counts:
        put_i32(counts, row, 0)
