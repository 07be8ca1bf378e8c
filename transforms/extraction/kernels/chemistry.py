"""Chemical formulas as {{chem2}} takes them: charges, indices, bonds and arrows as characters.

`SO4(2-)` is SO4²⁻, `Na+` Na⁺, `C_{n}H_{2n+2}` CnH2n+2, `^{13}C` ¹³C, `CuSO4*5H2O` CuSO4·5H2O, `A <-> B` A ↔ B.

A function that writes takes the output's end `o` and returns the new one.
"""

import numpy as np

from maskmill.characters.kernels.characters import put_code_point
from maskmill.kernels import ascii, lean_kernel
from transforms.extraction.kernels.text import is_alphanumeric, is_digit, is_letter, put_byte, put_superscript

RIGHT_ARROW = ord("→")
LEFT_ARROW = ord("←")
BOTH_ARROWS = ord("↔")
EQUILIBRIUM = ord("⇌")
TRIPLE_BOND = ord("≡")
MIDDLE_DOT = ord("·")


@lean_kernel
def arrow_at(out, i, end):
    """(character, bytes) of the arrow that out[i:end] starts with: `->`, `<-`, `<->`, `<=>`; (0, 0) if none."""
    left = out[i] == ascii.LESS_THAN
    j = i + 1 if left else i
    if j >= end or (out[j] != ascii.HYPHEN and not (left and out[j] == ascii.EQUALS)):
        return 0, 0
    right = j + 1 < end and out[j + 1] == ascii.GREATER_THAN
    if out[j] == ascii.EQUALS:
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
    if j + 1 < end and (out[j] == ascii.PLUS or out[j] == ascii.HYPHEN) and out[j + 1] == ascii.CLOSE_PAREN and i > 0:
        return j + 2
    return 0


@lean_kernel
def closes(c):
    """True for the brackets that close a group of atoms."""
    return c == ascii.CLOSE_PAREN or c == ascii.CLOSE_BRACKET


@lean_kernel
def is_charge(out, i, start, end):
    """True if the sign at i is a charge: it ends the formula of an ion."""
    if i == start or not (is_alphanumeric(out[i - 1]) or closes(out[i - 1])):
        return False
    return i + 1 >= end or out[i + 1] == ascii.SPACE or closes(out[i + 1])


@lean_kernel
def put_index(out, o, i, end, is_raised):
    """(where to go on, new end) once the index that starts at i is written: one character, or some in braces."""
    first, stop, after = i, i + 1, i + 1
    if out[i] == ascii.OPEN_BRACE:
        first, stop = i + 1, i + 1
        while stop < end and out[stop] != ascii.CLOSE_BRACE:
            stop += 1
        after = stop + 1
    for k in range(first, min(stop, end)):
        if is_raised:
            o = put_superscript(out, o, out[k])
        else:
            o = put_byte(out, o, out[k])
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
        closed = charge_end(out, i, end) if c == ascii.OPEN_PAREN and i > start else 0
        if size > 0:
            o = put_code_point(out, o, np.int64(character))
            i += size
        elif closed > 0:
            for k in range(i + 1, closed - 1):
                o = put_superscript(out, o, out[k])
            i = closed
        elif (c == ascii.CARET or c == ascii.UNDERSCORE) and i + 1 < end:
            i, o = put_index(out, o, i + 1, end, c == ascii.CARET)
        elif (c == ascii.PLUS or c == ascii.HYPHEN) and is_charge(out, i, start, end):
            o = put_superscript(out, o, c)
            i += 1
        elif c == ascii.ASTERISK:
            o = put_code_point(out, o, np.int64(MIDDLE_DOT))
            i += 1
        elif c == ascii.HASH and i > start and i + 1 < end and is_letter(out[i - 1]) and is_letter(out[i + 1]):
            o = put_code_point(out, o, np.int64(TRIPLE_BOND))
            i += 1
        else:
            o = put_byte(out, o, c)
            i += 1
    return o
