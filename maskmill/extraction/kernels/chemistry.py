"""Chemical formulas as {{chem2}} and `<chem>` take them: charges, indices, bonds and arrows as characters.

`SO4(2-)` and `SO4^2-` are SO4²⁻, `Na+` Na⁺, `C_{n}H_{2n+2}` CnH2n+2, `^{13}C` ¹³C, `^{14}_{6}C` ¹⁴₆C, `CuSO4*5H2O`
CuSO4·5H2O, `A <-> B` A ↔ B, `A ->[heat] B` A → B, `CO2 ^` CO2 ↑.

A function that writes takes the output's end `o` and returns the new one.
"""

import numpy as np

from maskmill.characters.kernels.characters import put_code_point
from maskmill.extraction.kernels.text import (
    byte_set,
    find_any,
    is_alphanumeric,
    is_digit,
    is_letter,
    put_byte,
    put_superscript,
    skip,
)
from maskmill.kernels import ascii, lean_kernel

RIGHT_ARROW = ord("→")
LEFT_ARROW = ord("←")
BOTH_ARROWS = ord("↔")
EQUILIBRIUM = ord("⇌")
GAS = ord("↑")
PRECIPITATE = ord("↓")
TRIPLE_BOND = ord("≡")
MIDDLE_DOT = ord("·")
SUBSCRIPT_ZERO = ord("₀")
LABEL_ENDS = byte_set(b"]")
OTHER_NOTATIONS = byte_set(b"\\$")  # a command of TeX, a formula


@lean_kernel
def arrow_at(source, i, end):
    """Return (character, bytes) of the arrow that source[i:end] starts with, its labels included; (0, 0) if none.

    `->`, `<-`, `<->`, `<=>`, each with more of its marks: `-->`, `<=>>`. Labels follow the last mark in brackets.
    """
    shaft = skip(source, i, end, ascii.LESS_THAN)
    if shaft >= end or (source[shaft] != ascii.HYPHEN and source[shaft] != ascii.EQUALS):
        return 0, 0
    head = skip(source, shaft, end, source[shaft])
    j = skip(source, head, end, ascii.GREATER_THAN)
    left = shaft > i
    right = j > head
    if source[shaft] == ascii.EQUALS:
        character = EQUILIBRIUM if left and right else 0
    elif left:
        character = BOTH_ARROWS if right else LEFT_ARROW
    else:
        character = RIGHT_ARROW if right else 0
    while right and j < end and source[j] == ascii.OPEN_BRACKET:
        j = min(find_any(source, j, end, LABEL_ENDS) + 1, end)
    return (character, j - i) if character else (0, 0)


@lean_kernel
def charge_end(source, i, end):
    """Return one past the bracket at i, if it holds nothing but a charge such as `2+` or `-`; else 0."""
    j = i + 1
    while j < end and is_digit(source[j]):
        j += 1
    if j + 1 < end and is_sign(source[j]) and source[j + 1] == ascii.CLOSE_PAREN and i > 0:
        return j + 2
    return 0


@lean_kernel
def is_sign(c):
    """Return True for plus and minus."""
    return c == ascii.PLUS or c == ascii.HYPHEN


@lean_kernel
def closes(c):
    """Return True for the brackets that close a group of atoms."""
    return c == ascii.CLOSE_PAREN or c == ascii.CLOSE_BRACKET


@lean_kernel
def ends_word(source, i, end):
    """Return True if nothing or a space stands at i."""
    return i >= end or source[i] == ascii.SPACE


@lean_kernel
def is_charge(source, i, start, end):
    """Return True if the sign at i is a charge: it ends the formula of an ion."""
    if i == start or not (is_alphanumeric(source[i - 1]) or closes(source[i - 1])):
        return False
    return ends_word(source, i + 1, end) or closes(source[i + 1])


@lean_kernel
def put_index(source, i, end, out, o, is_raised):
    """Return (where to go on, new end) once the index that starts at i is written: what stands in braces, a number with
    a sign if it is raised, or one character. One before its atom is lowered."""
    lowered = not is_raised and (o == 0 or not (is_alphanumeric(out[o - 1]) or closes(out[o - 1])))
    first, stop, after = i, i + 1, i + 1
    if source[i] == ascii.OPEN_BRACE:
        first, stop = i + 1, i + 1
        while stop < end and source[stop] != ascii.CLOSE_BRACE:
            stop += 1
        after = stop + 1
    elif is_digit(source[i]):
        while stop < end and is_digit(source[stop]):
            stop += 1
        after = stop = stop + (is_raised and stop < end and is_sign(source[stop]))
    for k in range(first, min(stop, end)):
        if is_raised:
            o = put_superscript(out, o, source[k])
        elif lowered and is_digit(source[k]):
            o = put_code_point(out, o, np.int64(SUBSCRIPT_ZERO) + source[k] - ascii.ZERO)
        else:
            o = put_byte(out, o, source[k])
    return after, o


@lean_kernel
def put_chemistry(source, start, end, out, o, room):
    """Write the formula source[start:end]; return -1 without room for three bytes each of its own, or if it holds
    TeX.
    """
    if o + 3 * (end - start) > room or find_any(source, start, end, OTHER_NOTATIONS) < end:
        return -1
    i = start
    while i < end:
        c = source[i]
        character, size = arrow_at(source, i, end)
        closed = charge_end(source, i, end) if c == ascii.OPEN_PAREN and i > start else 0
        apart = i > start and source[i - 1] == ascii.SPACE and ends_word(source, i + 1, end)
        if size > 0:
            o = put_code_point(out, o, np.int64(character))
            i += size
        elif closed > 0:
            for k in range(i + 1, closed - 1):
                o = put_superscript(out, o, source[k])
            i = closed
        elif apart and (c == ascii.CARET or c == ascii.LOWER_V):
            o = put_code_point(out, o, np.int64(GAS if c == ascii.CARET else PRECIPITATE))
            i += 1
        elif (c == ascii.CARET or c == ascii.UNDERSCORE) and i + 1 < end:
            i, o = put_index(source, i + 1, end, out, o, c == ascii.CARET)
        elif is_sign(c) and is_charge(source, i, start, end):
            o = put_superscript(out, o, c)
            i += 1
        elif c == ascii.ASTERISK:
            o = put_code_point(out, o, np.int64(MIDDLE_DOT))
            i += 1
        elif c == ascii.HASH and i > start and i + 1 < end and is_letter(source[i - 1]) and is_letter(source[i + 1]):
            o = put_code_point(out, o, np.int64(TRIPLE_BOND))
            i += 1
        elif c == ascii.OPEN_BRACE or c == ascii.CLOSE_BRACE:
            i += 1
        else:
            o = put_byte(out, o, ascii.SPACE if c == ascii.NEWLINE else c)
            i += 1
    return o
