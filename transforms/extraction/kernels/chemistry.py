"""Chemical formulas as {{chem2}} takes them: charges, indices, bonds and arrows as characters.

`SO4(2-)` is SO4²⁻, `Na+` Na⁺, `C_{n}H_{2n+2}` CnH2n+2, `^{13}C` ¹³C, `CuSO4*5H2O` CuSO4·5H2O, `A <-> B` A ↔ B.

A function that writes takes the output's end `o` and returns the new one.
"""

import numpy as np

from maskmill.kernels import lean_kernel
from maskmill.kernels.ascii import (
    ASTERISK,
    CARET,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    CLOSE_PAREN,
    EQUALS,
    GREATER_THAN,
    HASH,
    HYPHEN,
    LESS_THAN,
    OPEN_BRACE,
    OPEN_PAREN,
    PLUS,
    SPACE,
    UNDERSCORE,
)
from transforms.extraction.kernels.text import is_alphanumeric, is_digit, is_letter, put_code_point, put_superscript

RIGHT_ARROW = ord("→")
LEFT_ARROW = ord("←")
BOTH_ARROWS = ord("↔")
EQUILIBRIUM = ord("⇌")
TRIPLE_BOND = ord("≡")
MIDDLE_DOT = ord("·")


@lean_kernel
def arrow_at(out, i, end):
    """(character, bytes) of the arrow that out[i:end] starts with: `->`, `<-`, `<->`, `<=>`; (0, 0) if none."""
    left = out[i] == LESS_THAN
    j = i + 1 if left else i
    if j >= end or (out[j] != HYPHEN and not (left and out[j] == EQUALS)):
        return 0, 0
    right = j + 1 < end and out[j + 1] == GREATER_THAN
    if out[j] == EQUALS:
        return (EQUILIBRIUM, 3) if right else (0, 0)
    if left:
        return (BOTH_ARROWS, 3) if right else (LEFT_ARROW, 2)
    return (RIGHT_ARROW, 2) if right else (0, 0)


@lean_kernel
def charge_end(out, i, end):
    """One past the bracket at i, if it holds nothing but a charge such as `2+` or `-`; else 0."""
    j = i + 1
    while j < end and is_digit(out[j]):
        j += 1
    if j + 1 < end and (out[j] == PLUS or out[j] == HYPHEN) and out[j + 1] == CLOSE_PAREN and i > 0:
        return j + 2
    return 0


@lean_kernel
def is_charge(out, i, start, end):
    """True if the sign at i is a charge: it ends the formula of an ion."""
    if i == start or not (is_alphanumeric(out[i - 1]) or out[i - 1] == CLOSE_PAREN or out[i - 1] == CLOSE_BRACKET):
        return False
    return i + 1 >= end or out[i + 1] == SPACE or out[i + 1] == CLOSE_BRACKET or out[i + 1] == CLOSE_PAREN


@lean_kernel
def put_index(out, o, i, end, is_raised):
    """(where to go on, new end) once the index that starts at i is written: one character, or some in braces."""
    first, stop, after = i, i + 1, i + 1
    if out[i] == OPEN_BRACE:
        first, stop = i + 1, i + 1
        while stop < end and out[stop] != CLOSE_BRACE:
            stop += 1
        after = stop + 1
    for k in range(first, min(stop, end)):
        if is_raised and out[k] < 0x80:
            o = put_superscript(out, o, out[k])
        else:
            out[o] = out[k]
            o += 1
    return after, o


@lean_kernel
def put_chemistry(out, o, room, start, end):
    """Writes the formula out[start:end]; -1 without room for three bytes each of its own."""
    if o + 3 * (end - start) > room:
        return -1
    i = start
    while i < end:
        c = out[i]
        character, size = arrow_at(out, i, end)
        closed = charge_end(out, i, end) if c == OPEN_PAREN and i > start else 0
        if size > 0:
            o = put_code_point(out, o, np.int64(character))
            i += size
        elif closed > 0:
            for k in range(i + 1, closed - 1):
                o = put_superscript(out, o, out[k])
            i = closed
        elif (c == CARET or c == UNDERSCORE) and i + 1 < end:
            i, o = put_index(out, o, i + 1, end, c == CARET)
        elif (c == PLUS or c == HYPHEN) and is_charge(out, i, start, end):
            o = put_superscript(out, o, c)
            i += 1
        elif c == ASTERISK:
            o = put_code_point(out, o, np.int64(MIDDLE_DOT))
            i += 1
        elif c == HASH and i > start and i + 1 < end and is_letter(out[i - 1]) and is_letter(out[i + 1]):
            o = put_code_point(out, o, np.int64(TRIPLE_BOND))
            i += 1
        else:
            out[o] = c
            o += 1
            i += 1
    return o
