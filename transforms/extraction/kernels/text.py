"""What all passes do with bytes: tell what they are, pass over them, copy them, read and write numbers and characters.

A function that writes takes the output and its end `o`, and returns the new end.
"""

import numpy as np

from maskmill.kernels import inlined_kernel, lean_kernel
from maskmill.kernels.ascii import (
    AMPERSAND,
    CARRIAGE_RETURN,
    HASH,
    HYPHEN,
    LOWER_A,
    LOWER_CASE,
    LOWER_F,
    LOWER_X,
    LOWER_Z,
    NEWLINE,
    NINE,
    NOT_ASCII,
    ONE,
    PLUS,
    SEMICOLON,
    SPACE,
    TAB,
    THREE,
    TWO,
    UPPER_A,
    UPPER_Z,
    ZERO,
)
from transforms.extraction.kernels.tables import DOMAIN_ENTITY, find

# What was dropped leaves this byte in the output until `clean` has repaired the punctuation around it.
MARK = 1
# A rule leaves this byte where the bracket around its call has to go as a whole.
BRACKET_MARK = 2

NUMERIC_ENTITY = 8  # digits of an entity such as `&#x2212;` that are read
NAMED_ENTITY = 40  # bytes from `&` on among which the end of an entity's name is looked for
LONGEST_INTEGER = 9  # digits of an argument that is read as a number

SUPERSCRIPT_ONE = ord("¹")
SUPERSCRIPT_TWO = ord("²")
SUPERSCRIPT_ZERO = ord("⁰")
SUPERSCRIPT_PLUS = ord("⁺")
SUPERSCRIPT_MINUS = ord("⁻")
SUPERSCRIPT_N = ord("ⁿ")

LAST_CODE_POINT = 0x10FFFF
FIRST_SURROGATE = 0xD800
LAST_SURROGATE = 0xDFFF
FIRST_CONTROL = 0x7F  # of the second range of control characters
AFTER_CONTROLS = 0xA0


def utf8(character: str) -> int:
    """The UTF-8 of a character as one number, its first byte the highest: what `last_bytes` gives."""
    return int.from_bytes(character.encode(), "big")


MINUS_SIGN = utf8("−")


@lean_kernel
def is_letter(c):
    """True for an ASCII letter."""
    return (LOWER_A <= c <= LOWER_Z) or (UPPER_A <= c <= UPPER_Z)


@lean_kernel
def is_digit(c):
    """True for an ASCII digit."""
    return ZERO <= c <= NINE


@lean_kernel
def is_alphanumeric(c):
    """True for an ASCII letter or digit."""
    return is_letter(c) or is_digit(c)


@lean_kernel
def is_blank(c):
    """True for white space and the mark of something dropped."""
    return c == SPACE or c == NEWLINE or c == TAB or c == MARK or c == CARRIAGE_RETURN


@lean_kernel
def trim(source, start, end):
    """(start, end) of source[start:end] without blanks at its ends."""
    while start < end and is_blank(source[start]):
        start += 1
    while end > start and is_blank(source[end - 1]):
        end -= 1
    return start, end


@inlined_kernel
def skip(source, i, end, c):
    """The first position from i on, at most `end`, that does not hold the byte c."""
    while i < end and source[i] == c:
        i += 1
    return i


@inlined_kernel
def line_end(text, i, end):
    """The first position from i on, at most `end`, that holds a newline."""
    while i < end and text[i] != NEWLINE:
        i += 1
    return i


@lean_kernel
def three_bytes(text, i):
    """The bytes at i, i + 1 and i + 2 as one number, as `utf8` gives them."""
    return (np.int64(text[i]) << 16) | (np.int64(text[i + 1]) << 8) | np.int64(text[i + 2])


@lean_kernel
def has_word(text, i, word):
    """True if `word` (uint8, no capitals) stands at i, in any case."""
    for k in range(len(word)):
        c = text[i + k]
        if UPPER_A <= c <= UPPER_Z:
            c |= LOWER_CASE
        if c != word[k]:
            return False
    return True


@lean_kernel
def stands_at(text, i, word):
    """True if `word` (uint8) stands at i."""
    for k in range(len(word)):
        if text[i + k] != word[k]:
            return False
    return True


@lean_kernel
def copy(source, start, end, out, o):
    """Writes source[start:end], from left to right where it lies in the output itself."""
    for i in range(start, end):
        out[o] = source[i]
        o += 1
    return o


@lean_kernel
def put_mark(out, o):
    """Writes the mark of something dropped."""
    out[o] = MARK
    return o + 1


@lean_kernel
def put_word(tables, row, out, o):
    """Writes the text that a row of `words` stands for."""
    start = np.int64(tables.words[row].value)
    return copy(tables.pool, start, start + np.int64(tables.words[row].second), out, o)


@lean_kernel
def put_code_point(out, o, code):
    """Writes a code point as UTF-8."""
    if code < 0x80:
        out[o] = code
        return o + 1
    if code < 0x800:
        out[o] = 0xC0 | (code >> 6)
        out[o + 1] = 0x80 | (code & 0x3F)
        return o + 2
    if code < 0x10000:
        out[o] = 0xE0 | (code >> 12)
        out[o + 1] = 0x80 | ((code >> 6) & 0x3F)
        out[o + 2] = 0x80 | (code & 0x3F)
        return o + 3
    out[o] = 0xF0 | (code >> 18)
    out[o + 1] = 0x80 | ((code >> 12) & 0x3F)
    out[o + 2] = 0x80 | ((code >> 6) & 0x3F)
    out[o + 3] = 0x80 | (code & 0x3F)
    return o + 4


@lean_kernel
def put_superscript(out, o, c):
    """Writes a digit or a sign as its superscript character, another byte as it is."""
    if c >= NOT_ASCII:  # of a character of several bytes
        out[o] = c
        return o + 1
    if c == PLUS:
        code = SUPERSCRIPT_PLUS
    elif c == HYPHEN:
        code = SUPERSCRIPT_MINUS
    elif c == ONE:
        code = SUPERSCRIPT_ONE
    elif c == TWO or c == THREE:
        code = SUPERSCRIPT_TWO + c - TWO
    elif is_digit(c):
        code = SUPERSCRIPT_ZERO + c - ZERO
    else:
        code = c
    return put_code_point(out, o, np.int64(code))


@lean_kernel
def put_integer(out, o, value):
    """Writes a non-negative integer in decimal."""
    divisor = 1
    while value // divisor >= 10:
        divisor *= 10
    while divisor > 0:
        out[o] = ZERO + (value // divisor) % 10
        o += 1
        divisor //= 10
    return o


@lean_kernel
def read_integer(source, start, end):
    """The integer written in source[start:end]; -1 if it is none, or one of more than LONGEST_INTEGER digits."""
    if end <= start or end - start > LONGEST_INTEGER:
        return -1
    value = 0
    for i in range(start, end):
        if not is_digit(source[i]):
            return -1
        value = value * 10 + (source[i] - ZERO)
    return value


@lean_kernel
def read_code_point(text, first, limit):
    """(value, end) of the digits of a numeric entity that start at `first`, or of `x` and hexadecimal ones."""
    value = 0
    j = first
    if (text[first] | LOWER_CASE) == LOWER_X:
        j += 1
        stop = min(limit, j + NUMERIC_ENTITY)
        while j < stop:
            c = text[j]
            letter = c | LOWER_CASE
            if is_digit(c):
                value = value * 16 + (c - ZERO)
            elif LOWER_A <= letter <= LOWER_F:
                value = value * 16 + (letter - LOWER_A + 10)
            else:
                break
            j += 1
    else:
        stop = min(limit, j + NUMERIC_ENTITY)
        while j < stop and is_digit(text[j]):
            value = value * 10 + (text[j] - ZERO)
            j += 1
    return value, j


@lean_kernel
def put_entity(text, p, limit, out, o, tables):
    """Writes what the `&` at p stands for; (where to go on, new end of the output).

    Code points that no text holds become a space, and an `&` that starts no entity stays.
    """
    if text[p + 1] == HASH:
        code, j = read_code_point(text, p + 2, limit)
        # The byte before is the `#` or the `x` where there is no digit.
        if j < limit and text[j] == SEMICOLON and text[j - 1] != HASH and (text[j - 1] | LOWER_CASE) != LOWER_X:
            unusable = code < SPACE or FIRST_CONTROL <= code < AFTER_CONTROLS or code > LAST_CODE_POINT
            if unusable or FIRST_SURROGATE <= code <= LAST_SURROGATE:
                code = SPACE
            return j + 1, put_code_point(out, o, code)
        out[o] = AMPERSAND
        return p + 1, o + 1
    j = p + 1
    while j < limit and j < p + NAMED_ENTITY and is_alphanumeric(text[j]):
        j += 1
    if j < limit and text[j] == SEMICOLON and j > p + 1:
        row = find(tables, np.int64(DOMAIN_ENTITY), text, p + 1, j)
        if row >= 0:
            return j + 1, put_word(tables, row, out, o)
    out[o] = AMPERSAND
    return p + 1, o + 1
