"""Third pass: collapses white space and repairs the punctuation next to what was dropped.

It works in place: what is read at i has not been written to, as the output's end `w` is never behind i.
"""

import numpy as np

from transforms.extraction.kernels.text import MARK, is_alphanumeric, is_blank, three_bytes, utf8
from transforms.kernels import inlined_kernel, lean_kernel
from transforms.kernels.ascii import (
    CLOSE_BRACKET,
    CLOSE_PAREN,
    COLON,
    COMMA,
    DELETE,
    EXCLAMATION,
    NEWLINE,
    NOT_ASCII,
    OPEN_BRACKET,
    OPEN_PAREN,
    PERIOD,
    QUESTION,
    SEMICOLON,
    SPACE,
)

FULLWIDTH_OPEN_PAREN = utf8("（")
FULLWIDTH_CLOSE_PAREN = utf8("）")

NO_BREAK_SPACE = utf8("\u00a0")
SOFT_HYPHEN = utf8("\u00ad")
GENERAL_PUNCTUATION = utf8("\u2000") >> 8  # what the characters from U+2000 to U+203F start with
HAIR_SPACE = utf8("\u200a")  # the last of the spaces that this block starts with
ZERO_WIDTH_SPACE = utf8("\u200b")
LEFT_TO_RIGHT_MARK = utf8("\u200e")
RIGHT_TO_LEFT_MARK = utf8("\u200f")
LINE_SEPARATOR = utf8("\u2028")
PARAGRAPH_SEPARATOR = utf8("\u2029")
NARROW_NO_BREAK_SPACE = utf8("\u202f")
BYTE_ORDER_MARK = utf8("\ufeff")


@inlined_kernel
def character_at(out, i, n):  # type: ignore[no-untyped-def]
    """(UTF-8 of the character at i as one number, bytes of it), as far as `is_invisible` and `is_space` need it.

    Other characters than those are given as their first byte alone, which tells them apart as well.
    """
    c = np.int64(out[i])
    if c < NOT_ASCII:
        return c, 1
    if c == NO_BREAK_SPACE >> 8 and i + 1 < n:
        return (c << 8) | np.int64(out[i + 1]), 2
    if (c == GENERAL_PUNCTUATION >> 8 or c == BYTE_ORDER_MARK >> 16) and i + 2 < n:
        return three_bytes(out, i), 3
    return c, 1


@inlined_kernel
def is_invisible(character):  # type: ignore[no-untyped-def]
    """True for characters that take no room: soft hyphen, zero-width space, direction marks, byte order mark."""
    return (
        character == SOFT_HYPHEN
        or character == ZERO_WIDTH_SPACE
        or character == LEFT_TO_RIGHT_MARK
        or character == RIGHT_TO_LEFT_MARK
        or character == BYTE_ORDER_MARK
    )


@inlined_kernel
def is_space(character):  # type: ignore[no-untyped-def]
    """True for white space, control characters, and Unicode's spaces and separators."""
    if character < NOT_ASCII:
        return character <= SPACE or character == DELETE
    if character >> 8 == GENERAL_PUNCTUATION:
        return (
            character <= HAIR_SPACE
            or character == LINE_SEPARATOR
            or character == PARAGRAPH_SEPARATOR
            or character == NARROW_NO_BREAK_SPACE
        )
    return character == NO_BREAK_SPACE


@lean_kernel
def opens(out, w, line):  # type: ignore[no-untyped-def]
    """True if what is written, from `line` up to w, ends in an opening bracket."""
    if w <= line:
        return False
    c = out[w - 1]
    if c < NOT_ASCII:
        return c == OPEN_PAREN or c == OPEN_BRACKET
    return w - line >= 3 and three_bytes(out, w - 3) == FULLWIDTH_OPEN_PAREN


@inlined_kernel
def closing_bracket(out, i, n):  # type: ignore[no-untyped-def]
    """The bytes of the closing bracket at i; 0 if there is none."""
    c = out[i]
    if c == CLOSE_PAREN or c == CLOSE_BRACKET:
        return 1
    if c >= NOT_ASCII and i + 2 < n and three_bytes(out, i) == FULLWIDTH_CLOSE_PAREN:
        return 3
    return 0


@inlined_kernel
def is_separator(c):  # type: ignore[no-untyped-def]
    """True for the marks that divide a sentence."""
    return c == COMMA or c == SEMICOLON or c == COLON


@inlined_kernel
def is_punctuation(c):  # type: ignore[no-untyped-def]
    """True for the marks that divide or end a sentence."""
    return is_separator(c) or c == PERIOD or c == EXCLAMATION or c == QUESTION


@inlined_kernel
def before_bracket(out, w, line):  # type: ignore[no-untyped-def]
    """(end of what is written, whether the bracket is kept) where a closing bracket follows what was dropped.

    What stands before it may be punctuation that led to what was dropped; brackets with nothing left in them go too.
    """
    while w > line and (out[w - 1] == SPACE or is_separator(out[w - 1])):
        w -= 1
    if opens(out, w, line):
        return w - (3 if out[w - 1] >= NOT_ASCII else 1), False
    return w, True


@inlined_kernel
def before_punctuation(out, w, line, c):  # type: ignore[no-untyped-def]
    """(end of what is written, whether c is kept) where the punctuation mark c follows what was dropped."""
    k = w
    while k > line and out[k - 1] == SPACE:
        k -= 1
    if opens(out, k, line):
        return (w, True) if c == PERIOD else (k, False)
    if k == line:
        return w, True
    before = out[k - 1]
    if before == c or (before == COMMA and (c == PERIOD or c == SEMICOLON or c == COLON)):
        # Two marks with nothing left between them: the later one stays.
        k -= 1
    elif c == COMMA and (before == SEMICOLON or before == COLON) and k < w:
        return w, False
    # A colon behind a space is not one that belongs to the word before.
    return (w, True) if c == COLON and k < w else (k, True)


@inlined_kernel
def before_spaced(out, w, line, i, n):  # type: ignore[no-untyped-def]
    """The end of what is written without the space that stands wrongly before the comma or period at i."""
    if w - line <= 1 or out[w - 1] != SPACE:
        return w
    c = out[i]
    at_end = i + 1 >= n
    if c == COMMA and (at_end or is_blank(out[i + 1])):
        # No language sets a space before a comma.
        return w - 1
    if c == PERIOD and out[w - 2] == PERIOD and (at_end or not is_alphanumeric(out[i + 1])):
        # A spaced ellipsis is one, or each of its dots would be a sentence; ".NET" after an abbreviation is not.
        return w - 1
    return w


@inlined_kernel
def end_line(out, w, line, letters):  # type: ignore[no-untyped-def]
    """The end of what is written once the line that starts at `line` has ended; without letters it is removed."""
    while w > line and out[w - 1] == SPACE:
        w -= 1
    if not letters or w == line:
        return line
    out[w] = NEWLINE
    return w + 1


@lean_kernel
def has_letters(out, start, end):  # type: ignore[no-untyped-def]
    """True if there is a letter or a digit, or any character beyond ASCII, from start up to end."""
    for i in range(start, end):
        if is_alphanumeric(out[i]) or out[i] >= NOT_ASCII:
            return True
    return False


@lean_kernel
def clean(out, n):  # type: ignore[no-untyped-def]
    """Collapses white space and repairs punctuation beside MARKs, in place; the number of bytes left.

    out: uint8, of which the first n bytes are text. Lines keep no space at their ends; blank lines, and lines without a
    letter or a digit, are removed.
    """
    w = n - n
    line = w  # where the current line starts in what is written
    mark = False  # something was dropped since the last character
    letters = False
    i = n - n
    while i < n:
        c = out[i]
        if c == NEWLINE:
            w = end_line(out, w, line, letters)
            line = w
            mark = letters = False
            i += 1
            continue
        if c == MARK:
            mark = True
            i += 1
            continue
        character, size = character_at(out, i, n)
        if is_space(character):
            if w > line and out[w - 1] != SPACE and not (mark and opens(out, w, line)):
                out[w] = SPACE
                w += 1
            i += size
            continue
        if is_invisible(character):
            i += size
            continue
        if mark and w > line:
            bracket = closing_bracket(out, i, n)
            kept = True
            if bracket > 0:
                w, kept = before_bracket(out, w, line)
            elif is_punctuation(c):
                w, kept = before_punctuation(out, w, line, c)
            if not kept:
                if bracket > 0:
                    # The bracket that opened is gone, too; a wide one counted as a letter.
                    letters = has_letters(out, line, w)
                i += max(bracket, 1)
                continue
        elif c == COMMA or c == PERIOD:
            w = before_spaced(out, w, line, i, n)
        mark = False
        letters |= is_alphanumeric(c) or c >= NOT_ASCII
        out[w] = c
        w += 1
        i += 1
    w = end_line(out, w, line, letters)
    return w - 1 if w > 0 else 0
