"""WikiExtractor's text: the last steps, which tidy spaces, punctuation and lines. See bytes.py."""

import numpy as np

from maskmill.characters.kernels.characters import ALPHA, ASCII, DIGIT, character, character_before
from maskmill.kernels import kernel, lean_kernel
from maskmill.kernels.ascii import (
    ASTERISK,
    CLOSE_BRACE,
    CLOSE_PAREN,
    COLON,
    COMMA,
    EQUALS,
    EXCLAMATION,
    GREATER_THAN,
    HASH,
    HYPHEN,
    LESS_THAN,
    NEWLINE,
    OPEN_BRACE,
    OPEN_PAREN,
    PERIOD,
    PIPE,
    PLUS,
    QUESTION,
    SEMICOLON,
    TAB,
)
from maskmill.kernels.ascii import SPACE as BLANK
from transforms.compat.kernels.bytes import copy

_WORD = ALPHA | DIGIT  # \w
_MOST_STOPS = 3  # in a row
_LEFT_GUILLEMET, _RIGHT_GUILLEMET = 0xAB, 0xBB  # their second bytes; the first is that of all of U+0080 to U+00BF
_LATIN_1 = 0xC2


@kernel
def tidy_spaces(data, out):
    """Makes guillemets of `<<` and `>>`, blanks of tabs, one blank of several, and three full stops of more."""
    written = 0
    stops = 0
    second = -1
    for at in range(data.size):
        byte = data[at]
        if at == second:
            continue
        if byte in (LESS_THAN, GREATER_THAN) and at + 1 < data.size and data[at + 1] == byte:
            out[written] = _LATIN_1
            written += 1
            byte = np.uint8(_LEFT_GUILLEMET if byte == LESS_THAN else _RIGHT_GUILLEMET)
            second = at + 1
        if byte in (BLANK, TAB):
            if written > 0 and out[written - 1] == BLANK:
                continue
            byte = np.uint8(BLANK)
        if byte == PERIOD:
            stops += 1
            if stops > _MOST_STOPS:
                continue
        else:
            stops = 0
        out[written] = byte
        written += 1
    return written


@kernel
def tidy_lines(model, data, out):
    """Drops lines that hold no word character (of neighbouring ones, and of empty lines, every other).

    Then makes one comma of two, and a full stop of a comma and a full stop.
    """
    size = data.size
    written = 0
    at = 0
    while at < size:
        out[written] = data[at]
        written += 1
        if data[at] != NEWLINE:
            at += 1
            continue
        end = at + 1
        while end < size:
            properties, length = character(model, data, end)
            if properties & _WORD or (data[end] == NEWLINE and end > at + 1):
                break
            end += length
        if end < size and end > at + 1 and data[end] == NEWLINE:
            at = end + 1
        else:
            at += 1
    return _tidy_commas(out, written)


@lean_kernel
def _tidy_commas(text, size):
    written = 0
    commas = 0
    for at in range(size):
        byte = text[at]
        if byte == COMMA:
            commas += 1
            if commas & 1:
                text[written] = byte
                written += 1
            continue
        if commas > 0 and byte == PERIOD:
            written -= 1
        commas = 0
        text[written] = byte
        written += 1
    return written


@lean_kernel
def _is_left_over(data, start, end):
    """Whether a line is what a table, a note in brackets, or dropped text leaves behind."""
    if data[start] in (OPEN_BRACE, PIPE) or data[end - 1] == CLOSE_BRACE:
        return True
    if data[start] == OPEN_PAREN and data[end - 1] == CLOSE_PAREN:
        return True
    while start < end and data[start] in (PERIOD, HYPHEN):
        start += 1
    return start == end


@lean_kernel
def _is_heading(data, start, end):
    if end - start < 4 or data[start] != EQUALS or data[start + 1] != EQUALS:
        return False
    at = start + 2
    while at + 1 < end and not (data[at] == EQUALS and data[at + 1] == EQUALS):
        at += 1
    return at + 1 < end


# What a line is, told by its first characters.
_LINE_EMPTY, _LINE_HEADING, _LINE_PLUS, _LINE_INDENTED, _LINE_LIST, _LINE_LEFT_OVER, _LINE_BLANK, _LINE_TEXT = range(8)


@lean_kernel
def _line_kind(data, start, end):
    """Which of the _LINE_… kinds bytes `start:end`, a line without its newline, are."""
    if start == end:
        return _LINE_EMPTY
    first = data[start]
    if _is_heading(data, start, end):
        return _LINE_HEADING
    if end - start >= 2 and first == PLUS and data[start + 1] == PLUS:
        return _LINE_PLUS
    if first == COLON:
        return _LINE_INDENTED
    if first in (ASTERISK, HASH, SEMICOLON):
        return _LINE_LIST
    if _is_left_over(data, start, end):
        return _LINE_LEFT_OVER
    return _LINE_BLANK if first == BLANK else _LINE_TEXT


@lean_kernel
def _write_plus_line(data, start, end, out, written):
    """Writes a line that starts with `++`, without its first and last two characters, as a sentence."""
    start += 2
    for _ in range(2):
        if end > start:
            end = character_before(data, end, start)
    if end <= start:
        return written
    written = copy(data, start, end, out, written)
    if data[end - 1] not in (EXCLAMATION, QUESTION):
        out[written] = PERIOD
        written += 1
    out[written] = NEWLINE
    return written + 1


@kernel
def compact(data, out):
    """Drops headings, lists and what is left of tables; writes the lines that stay, each with its newline.

    The line right after a list stays whatever it is. `out` needs two bytes more than the text.
    """
    size = data.size
    written = 0
    in_list = False
    after_heading = False
    last_is_empty = True  # the last line written, or there is none
    start = 0
    while start <= size:
        end = start
        while end < size and data[end] != NEWLINE:
            end += 1
        kind = _line_kind(data, start, end)
        keep = False
        if kind == _LINE_EMPTY:
            keep = in_list or not last_is_empty
            in_list = False
        elif kind == _LINE_HEADING:
            after_heading = True
            in_list = False
        elif kind == _LINE_PLUS:
            before = written
            written = _write_plus_line(data, start, end, out, written)
            last_is_empty = last_is_empty and written == before
        elif kind == _LINE_LIST:
            in_list = True
        elif kind == _LINE_INDENTED:
            pass
        elif in_list:
            in_list = False
            keep = True
        elif kind == _LINE_LEFT_OVER:
            pass
        elif after_heading:
            after_heading = False
            keep = True
        else:
            keep = kind != _LINE_BLANK
        if keep:
            written = copy(data, start, end, out, written)
            out[written] = NEWLINE
            written += 1
            last_is_empty = start == end
        start = end + 1
    return written


def warm_up() -> None:
    """Compiles what this module's callers use."""
    model = np.zeros(ASCII + 256, np.int32)
    # Texts come out of bytes objects, so that they are read-only.
    text = np.frombuffer(b"{{[[", np.uint8)
    out = np.empty(8, np.uint8)
    tidy_spaces(text, out)
    tidy_lines(model, text, out)
    compact(text, out)
