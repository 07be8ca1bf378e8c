"""Quantities in another unit, rounded as {{convert}} rounds them: its Module:Convert, default_precision.

A unit is a row of a table of the rules: the letter of what it measures, its size in a common unit, and for a
temperature also the value of its zero in kelvins, as `L 1609.344` and `T 1 273.15`. A plus after the letter says that
whole numbers are converted to this unit more precisely.

A function that writes takes the output's end `o` and returns the new one, or -1 if it cannot determine the quantity.
"""

import math

import numpy as np

from maskmill.extraction.kernels.tables import find_in_table
from maskmill.extraction.kernels.text import (
    MINUS_SIGN,
    byte_set,
    find_any,
    is_digit,
    put_byte,
    three_bytes,
)
from maskmill.kernels import ascii, lean_kernel

MOST_DIGITS = 12  # of a value, and of its decimals
MOST_PLACES = 8
SAFE = 1e15  # values from here on are not written
FUDGE = 1e-14  # as Module:Convert adds it to logarithms
KELVINS_OF_ZERO = 1e-8  # values below are an error of the computation
SPACE = byte_set(b" ")
TEMPERATURE = ord("T")


@lean_kernel
def read_decimal(text, i, end):
    """Return (value, digits after the point, zeros at the end of an integer, whether it is a number) of text[i:end].

    Commas between digits are passed over.
    """
    sign = 1.0
    if i + 2 < end and three_bytes(text, i) == MINUS_SIGN:
        sign, i = -1.0, i + 3
    elif i < end and text[i] == ascii.HYPHEN:
        sign, i = -1.0, i + 1
    value = 0.0
    digits = decimals = zeros = 0
    pointed = False
    while i < end:
        c = text[i]
        if is_digit(c):
            value = value * 10.0 + (np.int64(c) - ascii.ZERO)
            digits += 1
            decimals += pointed
            zeros = zeros + 1 if c == ascii.ZERO else 0
        elif c == ascii.PERIOD and not pointed:
            pointed = True
        elif c != ascii.COMMA or pointed or digits == 0:
            return 0.0, 0, 0, False
        i += 1
    known = 0 < digits <= MOST_DIGITS
    return sign * value / 10.0**decimals, decimals, 0 if pointed else zeros, known


@lean_kernel
def read_unit(tables, table, text, start, end):
    """Return (what it measures, size, zero, whether whole numbers get more precise) of the unit text[start:end].

    table: of the rules. (0, 0, 0, False) for a unit that is not in it.
    """
    row = find_in_table(tables, table, text, start, end)
    if row < 0:
        return 0, 0.0, 0.0, False
    pool = tables.pool
    i, after = np.int64(tables.words[row].value), np.int64(tables.words[row].value + tables.words[row].second)
    precise = pool[i + 1] == ascii.PLUS
    first = i + 2 + precise
    stop = find_any(pool, first, after, SPACE)
    size = read_decimal(pool, first, stop)[0]
    zero = read_decimal(pool, stop + 1, after)[0] if stop < after else 0.0
    return np.int64(pool[i]), size, zero, precise


@lean_kernel
def default_precision(value, decimals, zeros, result, kind, size, zero, precise):
    """Return the digits after the point of a result, unless a call asks for some; negative ones round to tens and so
    on.

    size, zero: of the unit that was converted from. precise: of the one that was converted to.
    """
    precision = decimals if decimals > 0 else -zeros
    if kind == TEMPERATURE:
        kelvins = abs(value * size + zero)
        least = 2 if kelvins < KELVINS_OF_ZERO else 2 - math.floor(math.log10(kelvins) + FUDGE)
        return max(precision, least)
    if value == 0 or result <= 0:
        return 0
    ratio = 1.0 / size if precise and math.floor(value) == value else abs(value / result)
    adjust = math.log10(ratio) + math.log10(2.0)
    least = 1 - math.floor(math.log10(result) + FUDGE)
    return max(math.floor(precision + adjust), least)


@lean_kernel
def rounds_to_zero(value, precision):
    """Return True if nothing is left of a value that is rounded to so many digits after the point."""
    return abs(value) * 10.0**precision < 0.5


@lean_kernel
def put_decimal(out, o, value, precision):
    """Write a value that is not negative, rounded to so many digits after the point; return -1 if it has too many
    digits.
    """
    if precision > MOST_PLACES or precision < -MOST_PLACES or value * 10.0 ** max(precision, 0) >= SAFE:
        return -1
    places = max(precision, 0)
    digits = np.int64(math.floor(value * 10.0**precision + 0.5))
    for _ in range(-precision):
        digits *= 10
    size = places + 1
    while digits >= 10**size:
        size += 1
    for k in range(size - 1, -1, -1):
        if k == places - 1:
            o = put_byte(out, o, ascii.PERIOD)
        o = put_byte(out, o, ascii.ZERO + (digits // 10**k) % 10)
    return o
