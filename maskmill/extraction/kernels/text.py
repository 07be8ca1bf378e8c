"""Functions on bytes for all passes: classify, skip and copy them, read and write numbers and characters.

A function that writes takes the output and its end `o`, and returns the new end.
"""

import numpy as np
from numpy.typing import NDArray

from maskmill.characters.kernels.characters import put_code_point
from maskmill.extraction.kernels import codes
from maskmill.extraction.kernels.tables import find
from maskmill.kernels import ascii, inlined_kernel, lean_kernel

# What was dropped leaves this byte in the output until `clean` has repaired the punctuation around it.
MARK = 1
# A rule leaves this byte where the bracket around its call has to go as a whole.
BRACKET_MARK = 2
# What gave nothing although the wiki shows something there leaves this byte. `clean` keeps it where text stands on both
# sides of it: what is between them is not known.
HOLE = 3

NUMERIC_ENTITY = 8  # digits of an entity such as `&#x2212;` that are read
NAMED_ENTITY = 40  # bytes from `&` on among which the end of an entity's name is looked for
LONGEST_INTEGER = 9  # digits of an argument that is read as a number

SUPERSCRIPT_MINUS = ord("⁻")
SUPERSCRIPT_N = ord("ⁿ")
SUPERSCRIPTS = np.arange(ascii.NOT_ASCII)  # for each ASCII character its superscript form, or itself if it has none
SUPERSCRIPTS[list(b"0123456789+-")] = [ord(c) for c in "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻"]

LAST_CODE_POINT = 0x10FFFF
FIRST_SURROGATE = 0xD800
LAST_SURROGATE = 0xDFFF
FIRST_CONTROL = 0x7F  # of the second range of control characters
AFTER_CONTROLS = 0xA0


def utf8(character: str) -> int:
    """Return the UTF-8 of a character as one number, its first byte the highest: what `last_bytes` gives."""
    return int.from_bytes(character.encode(), "big")


def byte_set(characters: bytes) -> NDArray[np.bool_]:
    """For each byte value whether it is one of these, bool [256]."""
    members = np.zeros(256, np.bool_)
    members[list(characters)] = True
    return members


MINUS_SIGN = utf8("−")
NEWLINES = byte_set(b"\n")
SPACES = byte_set(b" \t")
BLANKS = byte_set(bytes((*b" \n\t\r", MARK, HOLE)))
HOLES = byte_set(bytes((HOLE,)))


NO_BREAK_SPACE = utf8("\u00a0")
FIRST_EN_SPACE, LAST_EN_SPACE = utf8("\u2000"), utf8("\u200a")
WIDE_SPACES = tuple(map(utf8, "\u1680\u202f\u205f\u3000"))
FIRST_WIDE_SPACE = 0xE1  # the first byte of the first of them


@lean_kernel
def is_letter(c):
    """Return True for an ASCII letter."""
    return ascii.LOWER_A <= c <= ascii.LOWER_Z or ascii.UPPER_A <= c <= ascii.UPPER_Z


@lean_kernel
def is_digit(c):
    """Return True for an ASCII digit."""
    return ascii.ZERO <= c <= ascii.NINE


@lean_kernel
def is_alphanumeric(c):
    """Return True for an ASCII letter or digit."""
    return is_letter(c) or is_digit(c)


@lean_kernel
def is_capital(c):
    """Return True for an ASCII capital."""
    return ascii.UPPER_A <= c <= ascii.UPPER_Z


@lean_kernel
def is_stop(c):
    """Return True for the marks of ASCII that end sentences, among other things."""
    return c == ascii.PERIOD or c == ascii.EXCLAMATION or c == ascii.QUESTION


@lean_kernel
def is_separator(c):
    """Return True for the marks of ASCII that divide a sentence."""
    return c == ascii.COMMA or c == ascii.SEMICOLON or c == ascii.COLON


@lean_kernel
def is_blank(c):
    """Return True for white space and the marks of something dropped."""
    return BLANKS[c]


@lean_kernel
def separator_at(text, i):
    """Return the bytes of the space that stands at i, of those that Unicode calls space separators; 0 if none does."""
    c = text[i]
    if c == ascii.SPACE:
        return 1
    if c == NO_BREAK_SPACE >> 8 and text[i + 1] == NO_BREAK_SPACE & 0xFF:
        return 2
    if c < FIRST_WIDE_SPACE:
        return 0
    three = three_bytes(text, i)
    return 3 if FIRST_EN_SPACE <= three <= LAST_EN_SPACE or three in WIDE_SPACES else 0


@lean_kernel
def is_mark(c):
    """Return True for the marks of something dropped, but for that of a whole bracket."""
    return c == MARK or c == HOLE


@lean_kernel
def trim(source, start, end):
    """Return (start, end) of source[start:end] without blanks at its ends."""
    while start < end and is_blank(source[start]):
        start += 1
    while end > start and is_blank(source[end - 1]):
        end -= 1
    return start, end


@inlined_kernel
def skip(source, i, end, c):
    """Return the first position from i on, at most `end`, that does not hold the byte c."""
    while i < end and source[i] == c:
        i += 1
    return i


@lean_kernel
def skip_any(text, i, end, members):
    """Return the first position from i on, at most `end`, whose byte is not one of a `byte_set`."""
    while i < end and members[text[i]]:
        i += 1
    return i


@lean_kernel
def find_any(text, i, end, members):
    """Return the first position from i on, at most `end`, whose byte is one of a `byte_set`."""
    while i < end and not members[text[i]]:
        i += 1
    return i


@lean_kernel
def skip_back(source, i, start, c):
    """Return the end of source[start:i] without the bytes c that it ends with."""
    while i > start and source[i - 1] == c:
        i -= 1
    return i


@lean_kernel
def three_bytes(text, i):
    """Return the bytes at i, i + 1 and i + 2 as one number, as `utf8` gives them."""
    return (np.int64(text[i]) << 16) | (np.int64(text[i + 1]) << 8) | np.int64(text[i + 2])


@lean_kernel
def has_word(text, i, word):
    """Return True if `word` (uint8, no capitals) stands at i, in any case."""
    for k in range(len(word)):
        c = text[i + k]
        if is_capital(c):
            c |= ascii.LOWER_CASE
        if c != word[k]:
            return False
    return True


@lean_kernel
def stands_at(text, i, word):
    """Return True if `word` (uint8) stands at i."""
    for k in range(len(word)):
        if text[i + k] != word[k]:
            return False
    return True


@lean_kernel
def copy(source, start, end, out, o):
    """Write source[start:end], from left to right if it lies in the output itself."""
    for i in range(start, end):
        out[o] = source[i]
        o += 1
    return o


@lean_kernel
def put_byte(out, o, c):
    """Write a byte."""
    out[o] = c
    return o + 1


@lean_kernel
def put_mark(out, o):
    """Write the mark of something dropped."""
    out[o] = MARK
    return o + 1


@lean_kernel
def put_hole(tables, out, o):
    """Write the mark of something dropped that the wiki shows."""
    return put_byte(out, o, HOLE if tables.settings[codes.SETTING_HOLES] != 0 else MARK)


@lean_kernel
def put_word(tables, row, out, o):
    """Write the text that a row of `words` stands for."""
    start = np.int64(tables.words[row].value)
    return copy(tables.pool, start, start + np.int64(tables.words[row].second), out, o)


@lean_kernel
def put_superscript(out, o, c):
    """Write a digit or a sign as its superscript character, another byte as it is."""
    if c >= ascii.NOT_ASCII:  # of a character of several bytes
        return put_byte(out, o, c)
    return put_code_point(out, o, SUPERSCRIPTS[c])


@lean_kernel
def put_integer(out, o, value):
    """Write a non-negative integer in decimal."""
    divisor = 1
    while value // divisor >= 10:
        divisor *= 10
    while divisor > 0:
        o = put_byte(out, o, ascii.ZERO + (value // divisor) % 10)
        divisor //= 10
    return o


@lean_kernel
def read_integer(source, start, end):
    """Return the integer written in source[start:end]; -1 if it is not one, or one of more than LONGEST_INTEGER
    digits.
    """
    if end <= start or end - start > LONGEST_INTEGER:
        return -1
    value = 0
    for i in range(start, end):
        if not is_digit(source[i]):
            return -1
        value = value * 10 + (source[i] - ascii.ZERO)
    return value


@lean_kernel
def read_code_point(text, first, limit):
    """Return (value, end) of a numeric entity whose `#` is before `first`: decimal digits, or `x` and hexadecimal ones.

    The value is -1 if there are no digits, or no semicolon after them; the end is that of the digits.
    """
    value = 0
    is_hexadecimal = text[first] | ascii.LOWER_CASE == ascii.LOWER_X
    start = first + is_hexadecimal
    j = start
    stop = min(limit, start + NUMERIC_ENTITY)
    while j < stop:
        letter = text[j] | ascii.LOWER_CASE
        if is_digit(text[j]):
            digit = text[j] - ascii.ZERO
        elif is_hexadecimal and ascii.LOWER_A <= letter <= ascii.LOWER_F:
            digit = letter - ascii.LOWER_A + 10
        else:
            break
        value = value * (16 if is_hexadecimal else 10) + digit
        j += 1
    is_closed = start < j < limit and text[j] == ascii.SEMICOLON
    return value if is_closed else -1, j


@lean_kernel
def put_entity(text, p, limit, out, o, tables):
    """Write what the `&` at p stands for; (where to go on, new end of the output).

    Code points that no text holds become a space, and an `&` that starts no entity stays.
    """
    if text[p + 1] == ascii.HASH:
        code, j = read_code_point(text, p + 2, limit)
        if code >= 0:
            unusable = code < ascii.SPACE or FIRST_CONTROL <= code < AFTER_CONTROLS or code > LAST_CODE_POINT
            if unusable or FIRST_SURROGATE <= code <= LAST_SURROGATE:
                code = ascii.SPACE
            return j + 1, put_code_point(out, o, code)
    else:
        j = p + 1
        while j < limit and j < p + NAMED_ENTITY and is_alphanumeric(text[j]):
            j += 1
        if j < limit and text[j] == ascii.SEMICOLON and j > p + 1:
            row = find(tables, codes.DOMAIN_ENTITY, text, p + 1, j)
            if row >= 0:
                return j + 1, put_word(tables, row, out, o)
    return p + 1, put_byte(out, o, ascii.AMPERSAND)
