"""Bytes of text: what they are, and writing characters."""

import numpy as np

from transforms.extraction.kernels.tables import _SPACE, DOMAIN_ENTITY, find
from transforms.kernels import kernel

# What was dropped leaves this byte in the output until `clean` has repaired the punctuation around it.
MARK = 1


@kernel
def is_letter(c):  # type: ignore[no-untyped-def]
    return (97 <= c <= 122) or (65 <= c <= 90)


@kernel
def is_digit(c):  # type: ignore[no-untyped-def]
    return 48 <= c <= 57


@kernel
def is_blank(c):  # type: ignore[no-untyped-def]
    """White space or the mark of something dropped."""
    return c == 32 or c == 10 or c == 9 or c == MARK or c == 13


@kernel
def trim(source, start, end):  # type: ignore[no-untyped-def]
    while start < end and is_blank(source[start]):
        start += 1
    while end > start and is_blank(source[end - 1]):
        end -= 1
    return start, end


@kernel
def put_code_point(out, o, code):  # type: ignore[no-untyped-def]
    """Writes a code point as UTF-8; the new end of the output."""
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


@kernel
def put_entity(text, p, limit, out, o, tables):  # type: ignore[no-untyped-def]
    """Writes what the `&` at p stands for; (where to go on, new end of the output)."""
    j = p + 1
    code = j - j
    if text[j] == 35:  # numeric
        j += 1
        if (text[j] | 32) == 120:
            j += 1
            first = j
            while j < limit and j < first + 8:
                c = text[j]
                if is_digit(c):
                    code = code * 16 + (c - 48)
                elif 97 <= (c | 32) <= 102:
                    code = code * 16 + ((c | 32) - 87)
                else:
                    break
                j += 1
        else:
            first = j
            while j < limit and j < first + 8 and is_digit(text[j]):
                code = code * 10 + (text[j] - 48)
                j += 1
        if j > first and j < limit and text[j] == 59:
            if code < 32 or 0x7F <= code < 0xA0 or 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
                out[o] = _SPACE
                return j + 1, o + 1
            return j + 1, put_code_point(out, o, code)
        out[o] = 38
        return p + 1, o + 1
    while j < limit and j < p + 40 and (is_letter(text[j]) or is_digit(text[j])):
        j += 1
    if j < limit and text[j] == 59 and j > p + 1:
        row = find(tables, np.int64(DOMAIN_ENTITY), text, p + 1, j)
        if row >= 0:
            offset = tables.words[row, 4]
            for k in range(tables.words[row, 5]):
                out[o + k] = tables.pool[offset + k]
            return j + 1, o + tables.words[row, 5]
    out[o] = 38
    return p + 1, o + 1


@kernel
def read_integer(out, start, end):  # type: ignore[no-untyped-def]
    """The integer written in out[start:end]; -1 if it is not one of at most nine digits."""
    if end <= start or end - start > 9:
        return -1
    value = 0
    for i in range(start, end):
        if not is_digit(out[i]):
            return -1
        value = value * 10 + (out[i] - 48)
    return value


@kernel
def put_superscript(out, o, c):  # type: ignore[no-untyped-def]
    """Writes a digit or a sign as its superscript character, another byte as it is; the new end of the output."""
    if c == 43:
        code = 0x207A
    elif c == 45:
        code = 0x207B
    elif c == 49:
        code = 0xB9
    elif c == 50 or c == 51:
        code = 0xB0 + c - 48
    elif is_digit(c):
        code = 0x2070 + c - 48
    else:
        code = c
    return put_code_point(out, o, np.int64(code))


@kernel
def put_integer(out, o, value):  # type: ignore[no-untyped-def]
    """Writes a non-negative integer in decimal."""
    divisor = 1
    while value // divisor >= 10:
        divisor *= 10
    while divisor > 0:
        out[o] = 48 + (value // divisor) % 10
        o += 1
        divisor //= 10
    return o
