"""Tables of the places and allowed values of a row's columns: shared by all kernels that read rows.

Kernels get the columns as a table, int64[columns, TARGET]. It holds for one `Rows`, whose arrays must live as long
as it is used: it has their addresses. The functions here take the address of a column's line.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from maskmill.kernels import kernel
from maskmill.kernels.memory import (
    get_i32,
    get_i64,
    get_u16,
    get_u32,
    get_u64,
    load_u8,
    put_i32,
    store_u8,
    store_u16,
    store_u32,
)
from maskmill.kernels.python_mode import intrinsic_or

# What a line says of its column.
ADDRESS = 0  # of its array
VALUE_BYTES = 1  # 1, 2 or 4
IS_FLOAT = 2
WIDTH = 3  # values of a row in memory
VARIES = 4  # whether rows have numbers of values of their own
FILL = 5  # what rows are filled up with
FILLS_WITH_LAST = 6  # they are filled up with their last value instead
LOW = 7  # the smallest and the largest value allowed; of floats the bits of a float64, where NaN is no limit
HIGH = 8
IS_OPTIONAL = 9
COUNTS = 10  # the address of its int32 counts; 0: none
NAME_SIZE = 11  # bytes of its name
NAME = 12  # the name, in the bytes from here on
TARGET = 20
MOST_NAME_BYTES = 8 * (TARGET - NAME)

# Why values are not taken, in place of their number.
UNREADABLE = -1  # not what the format says
OTHER_COUNT = -2  # there are more or fewer than there must be
OUT_OF_RANGE = -3
OTHER_KIND = -4  # integers for floats, floats for integers, or neither
MISSING = -5  # no values at all
REPEATED = -6  # the column is there twice

_VECTOR = 32  # bytes


@kernel
def row_address(column, row):
    """Return where a row of a column starts in memory."""
    return get_i64(column, ADDRESS) + row * get_i64(column, WIDTH) * get_i64(column, VALUE_BYTES)


@kernel
def put_value(target, size, n, value):
    """Store an integer, or the bits of a float, as the n-th of values of `size` bytes."""
    if size == 1:
        store_u8(target, n, value)
    elif size == 2:
        store_u16(target, 2 * n, value)
    else:
        store_u32(target, 4 * n, value)


def _any_above(bits: int) -> Any:
    """Return any_above(base, offset, limit): whether one of the unsigned integers of 32 bytes is above a limit; else
    0.
    """
    lanes = 8 * _VECTOR // bits
    kind = ir.VectorType(ir.IntType(bits), lanes)

    def in_python(base: Any, offset: Any, limit: Any) -> int:
        get = load_u8 if bits == 8 else get_u16
        return int(any(get(base + offset, lane) > limit for lane in range(lanes)))

    def typed(typingctx: Any, base: Any, offset: Any, limit: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            base, offset, limit = args
            values = builder.load(builder.inttoptr(builder.add(base, offset), kind.as_pointer()), align=1)
            zero = ir.Constant(ir.IntType(32), 0)
            limit = builder.insert_element(ir.Constant(kind, ir.Undefined), builder.trunc(limit, kind.element), zero)
            limits = builder.shuffle_vector(limit, limit, ir.Constant(ir.VectorType(ir.IntType(32), lanes), None))
            above = builder.bitcast(builder.icmp_unsigned(">", values, limits), ir.IntType(lanes))
            return builder.zext(above, ir.IntType(64))

        return types.int64(types.int64, types.int64, types.int64), code

    return intrinsic_or(in_python)(typed)


_any_above_8 = _any_above(8)
_any_above_16 = _any_above(16)


@kernel
def get_integer(values, size, k):
    """Return the k-th of integers of `size` bytes: 1, 2, or 4 with a sign."""
    if size == 1:
        return load_u8(values, k)
    return get_u16(values, k) if size == 2 else get_i32(values, k)


@kernel
def are_integers_allowed(column, values, size, count):
    """Return whether integers at an address are within their limits; size: their bytes: 1, 2, or 4 with a sign."""
    low, high = get_i64(column, LOW), get_i64(column, HIGH)
    k = 0
    above = np.int64(0)
    if low <= 0 and size <= 2 and high >= 0:
        end = count * size - _VECTOR
        if size == 1:
            limit = min(high, 255)
            for offset in range(0, end + 1, _VECTOR):
                above |= _any_above_8(values, offset, limit)
        else:
            limit = min(high, 65535)
            for offset in range(0, end + 1, _VECTOR):
                above |= _any_above_16(values, offset, limit)
        k = max(0, end + _VECTOR) // _VECTOR * (_VECTOR // size)
    least = np.int64(1 << 62)
    most = np.int64(-1 << 62)
    for place in range(k, count):
        value = get_integer(values, size, place)
        least = min(least, value)
        most = max(most, value)
    return above == 0 and (k == count or (least >= low and most <= high))


@kernel
def are_floats_allowed(column, values, count):
    """Return whether floats at an address are within their limits, which NaN never is unless there are none."""
    low = np.float32(np.uint64(get_u64(column, LOW)).view(np.float64))
    high = np.float32(np.uint64(get_u64(column, HIGH)).view(np.float64))
    if low != low:
        return True
    wrong = 0
    for k in range(count):
        value = np.uint32(get_u32(values, k)).view(np.float32)
        wrong += 0 if value >= low and value <= high else 1
    return wrong == 0


@kernel
def finish_row(column, row, count):
    """Fill a row up after `count` values and note their number; return it, or OTHER_COUNT if it is wrong."""
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
    """Write zeros as the values of a row that lacks an optional column."""
    size = get_i64(column, VALUE_BYTES)
    target = row_address(column, row)
    for n in range(get_i64(column, WIDTH)):
        put_value(target, size, n, 0)
    counts = get_i64(column, COUNTS)
    if counts:
        put_i32(counts, row, 0)
