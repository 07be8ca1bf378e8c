"""Samples of an MDS shard to rows; their layout is in maskmill/records/kernels/mds.py."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.memory import address, copy_32, get_i64, get_u16, load_u8, load_u32, store_u8
from maskmill.reading.kernels.column_tables import (
    IS_FLOAT,
    OTHER_COUNT,
    OUT_OF_RANGE,
    TARGET,
    UNREADABLE,
    VALUE_BYTES,
    WIDTH,
    are_floats_allowed,
    are_integers_allowed,
    finish_row,
    get_integer,
    put_value,
    row_address,
)

# What a part of a sample holds.
COLUMN = 0  # the column that it is read to; -1: none
STORED_BYTES = 1  # of a value: 1 or 2 (unsigned integers), or 4 (int32 or float32)
PART = 2

# How the reading of a block ends.
DONE = 0
OTHER_END = 1  # the samples do not end where the block ends
BAD_SAMPLE = 2

_SIZE_BYTES = 4  # of the size of a part
_ONE_DIMENSION = 4
_VECTOR = 32


@kernel
def _copy(target, source, size):
    """Copy bytes."""
    whole = size & -_VECTOR
    for k in range(0, whole, _VECTOR):
        copy_32(target, k, source, k)
    for k in range(whole, size):
        store_u8(target, k, load_u8(source, k))


@kernel
def _part(data, i, end, stored, column, row):
    """Read a part, of values of `stored` bytes, to a row of its column; return their number, negative if wrong."""
    code = load_u8(data, i) - _ONE_DIMENSION if i < end else np.int64(-1)
    if code < 0 or code > 2 or i + 1 + (1 << code) > end:
        return np.int64(UNREADABLE)
    count = load_u8(data, i + 1)
    if code == 1:
        count = get_u16(data + i + 1, 0)
    elif code == 2:
        count = load_u32(data, i + 1)
    source = data + i + 1 + (1 << code)
    if count * stored != data + end - source:
        return np.int64(UNREADABLE)
    if count > get_i64(column, WIDTH):
        return np.int64(OTHER_COUNT)
    if not get_i64(column, IS_FLOAT) and not are_integers_allowed(column, source, stored, count):
        return np.int64(OUT_OF_RANGE)
    target, size = row_address(column, row), get_i64(column, VALUE_BYTES)
    if size == stored:
        _copy(target, source, count * size)
    else:
        for k in range(count):
            put_value(target, size, k, get_integer(source, stored, k))
    if get_i64(column, IS_FLOAT) and not are_floats_allowed(column, target, count):
        return np.int64(OUT_OF_RANGE)
    return finish_row(column, row, count)


@kernel
def _sample_end(data, start, size, parts):
    """Return where a sample ends; UNREADABLE if it goes beyond the block."""
    end = start + _SIZE_BYTES * parts
    if end > size:
        return np.int64(UNREADABLE)
    for part in range(parts):
        end += load_u32(data, start + _SIZE_BYTES * part)
    return end if end <= size else np.int64(UNREADABLE)


@kernel
def read_samples(data, count, wanted, rows, targets, parts):
    """Read samples of a block to rows.

    data: uint8, samples, the first at byte 0, the last at the end. count: how many they are. wanted: int64[n],
    ascending, which of them to read. rows: int64[n], the row for each. targets: kernels/column_tables.py. parts:
    int64[parts, PART], in the order in which a sample has them.

    Returns how the reading ended and the sample; for BAD_SAMPLE also the column and why.
    """
    base = address(data)
    table = address(targets)
    i = np.int64(0)
    k = 0
    for sample in range(count):
        end = _sample_end(base, i, len(data), len(parts))
        if end < 0:
            return OTHER_END, sample, np.int64(-1), np.int64(0)
        if k < len(wanted) and wanted[k] == sample:
            start = i + _SIZE_BYTES * len(parts)
            for part in range(len(parts)):
                stop = start + load_u32(base, i + _SIZE_BYTES * part)
                column = parts[part, COLUMN]
                if column >= 0:
                    line = table + 8 * TARGET * column
                    why = _part(base, start, stop, parts[part, STORED_BYTES], line, rows[k])
                    if why < 0:
                        return BAD_SAMPLE, sample, column, why
                start = stop
            k += 1
        i = end
    return (DONE if i == len(data) else OTHER_END), count, np.int64(-1), np.int64(0)


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    none = np.empty(0, np.int64)
    targets, parts = np.empty((0, TARGET), np.int64), np.empty((0, PART), np.int64)
    read_samples(np.empty(0, np.uint8), 0, none, none, targets, parts)
