"""Finds the pieces around the border of a pair inside other rows, where the text goes on from one to the other."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel, wraps_around
from maskmill.kernels.counter_random import mix

SIDE = 4  # pieces on each side of a border
GRAM = 2 * SIDE

# What a row of `found` counts of a border: the second part goes on behind the first, or before it.
FORWARD, BACKWARD = range(2)

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@kernel
@wraps_around
def _gram(ids, row, first, second):
    """The hash of SIDE pieces from `first` on, then of SIDE pieces from `second` on."""
    hashed = _ZERO
    for k in range(SIDE):
        hashed = hashed * _FACTOR + np.uint64(ids[row, first + k]) + _ONE
    for k in range(SIDE):
        hashed = hashed * _FACTOR + np.uint64(ids[row, second + k]) + _ONE
    return mix(hashed)


@kernel
def hash_borders(ids, count, parts, borders):
    """Hashes the pieces around the border of each row; returns how many borders there are.

    Args:
      ids: int32[rows, width], masks undone.
      count: how many rows to look at.
      parts: int64[rows, 4], where the first part starts and ends, and where the second one does.
      borders: uint64[rows, 2], takes the hashes: first part, then second; and the other way round. 0: one is too short.
    """
    made = np.int64(0)
    for row in range(count):
        borders[row, FORWARD] = _ZERO
        borders[row, BACKWARD] = _ZERO
        a, a_end, b, b_end = parts[row, 0], parts[row, 1], parts[row, 2], parts[row, 3]
        if a_end - a < SIDE or b_end - b < SIDE:
            continue
        borders[row, FORWARD] = _gram(ids, row, a_end - SIDE, b)
        borders[row, BACKWARD] = _gram(ids, row, b_end - SIDE, a)
        made += 1
    return made


@kernel
def _slot(table, hashed):
    """Where a hash is in a table, or would be: uint64[a power of two], where 0 is empty."""
    mask = np.uint64(len(table) - 1)
    at = hashed & mask
    while table[at] != _ZERO and table[at] != hashed:
        at = (at + _ONE) & mask
    return at


@kernel
def fill_set(hashes, table):
    """Puts hashes that are not 0 into a table."""
    for k in range(len(hashes)):
        if hashes[k] != _ZERO:
            table[_slot(table, hashes[k])] = hashes[k]


@kernel
@wraps_around
def mark_insides(ids, count, parts, table, marks):
    """Marks the hashes of `table` that stand inside of a part of a row: where the text goes on.

    marks: uint8, as long as the table.
    """
    lowest = np.uint64(1)
    for _ in range(GRAM):
        lowest *= _FACTOR
    for row in range(count):
        for part in range(2):
            start, end = parts[row, 2 * part], parts[row, 2 * part + 1]
            hashed = _ZERO
            for k in range(start, end):
                hashed = hashed * _FACTOR + np.uint64(ids[row, k]) + _ONE
                if k - start >= GRAM:
                    hashed -= (np.uint64(ids[row, k - GRAM]) + _ONE) * lowest
                if k - start >= GRAM - 1:
                    mixed = mix(hashed)
                    at = _slot(table, mixed)
                    if table[at] == mixed:
                        marks[at] = 1


@kernel
def count_marked(borders, labels, count, table, marks, found):
    """Counts the borders whose text goes on elsewhere.

    found: int64[labels, 3], by label how many borders there are, and how many are found FORWARD and BACKWARD.
    """
    for row in range(count):
        if borders[row, FORWARD] == _ZERO:
            continue
        label = labels[row]
        found[label, 0] += 1
        for way in range(2):
            at = _slot(table, borders[row, way])
            if table[at] == borders[row, way]:
                found[label, 1 + way] += marks[at]


def warm_up() -> None:
    """Compiles the entry kernels of this module."""
    ids, parts = np.zeros((1, 1), np.int32), np.zeros((1, 4), np.int64)
    borders, table, marks = np.zeros((1, 2), np.uint64), np.zeros(2, np.uint64), np.zeros(2, np.uint8)
    hash_borders(ids, 1, parts, borders)
    fill_set(borders.ravel(), table)
    mark_insides(ids, 1, parts, table, marks)
    count_marked(borders, np.zeros(1, np.int64), 1, table, marks, np.zeros((2, 3), np.int64))
