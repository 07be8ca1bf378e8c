"""WikiExtractor's text: bold and italics; the last steps, which tidy spaces, punctuation and lines. See bytes.py."""

import numpy as np

from maskmill.characters.kernels.characters import ALPHA, ASCII, DIGIT, character, character_before
from maskmill.compat.kernels.bytes import NOTHING_TO_DO, QUOTE_MARK, copy
from maskmill.kernels import ascii, kernel, lean_kernel

_WORD = ALPHA | DIGIT  # \w
_MOST_STOPS = 3  # in a row
_LEFT_GUILLEMET, _RIGHT_GUILLEMET = 0xAB, 0xBB  # their second bytes; the first is that of all of U+0080 to U+00BF
_LATIN_1 = 0xC2
# Apostrophes in a row.
_ITALIC, _BOLD, _BOLD_ITALIC = 2, 3, 5


@lean_kernel
def _find_apostrophes(data, start, end, width):
    """Return the first `width` apostrophes in a row of bytes `start:end`, or -1."""
    run = 0
    for at in range(start, end):
        if data[at] == ascii.APOSTROPHE:
            run += 1
            if run == width:
                return at + 1 - width
        else:
            run = 0
    return -1


@lean_kernel
def _take_quotes(data, start, end, width, out, written, mark):
    """Take `width` apostrophes away before and after each quoted text of a line; return how many bytes are written
    then.

    With `mark`, a QUOTE_MARK takes the place of each.
    """
    at = start
    while True:
        first = _find_apostrophes(data, at, end, width)
        second = _find_apostrophes(data, first + width, end, width) if first >= 0 else -1
        if second < 0:
            return copy(data, at, end, out, written)
        written = copy(data, at, first, out, written)
        if mark:
            out[written] = QUOTE_MARK
            written += 1
        written = copy(data, first + width, second, out, written)
        if mark:
            out[written] = QUOTE_MARK
            written += 1
        at = second + width


@lean_kernel
def _scan_line(data, start):
    """Return where the line ends that starts at byte `start`, and how many apostrophes stand in a row there at most."""
    end = start
    longest = run = 0
    while end < data.size and data[end] != ascii.NEWLINE:
        if data[end] == ascii.APOSTROPHE:
            run += 1
            if run > longest:
                longest = run
        else:
            run = 0
        end += 1
    return end, longest


@kernel
def replace_quotes(data, out):
    """Take bold away and put italics into quotes (QUOTE_MARK), line by line; what is unbalanced follows suit."""
    size = data.size
    written = 0
    start = 0
    has_quotes = False
    # The line without bold italics, and then without bold.
    once = np.empty(0, np.uint8)
    twice = np.empty(0, np.uint8)
    while start < size:
        end, longest = _scan_line(data, start)
        has_quotes = has_quotes or longest >= _ITALIC
        if longest < _ITALIC:
            written = copy(data, start, end, out, written)
        elif longest < _BOLD:
            written = _take_quotes(data, start, end, _ITALIC, out, written, True)
        else:
            if once.size < end - start:
                once = np.empty(2 * (end - start), np.uint8)
                twice = np.empty(2 * (end - start), np.uint8)
            length = _take_quotes(data, start, end, _BOLD_ITALIC, once, 0, False)
            length = _take_quotes(once, 0, length, _BOLD, twice, 0, False)
            written = _take_quotes(twice, 0, length, _ITALIC, out, written, True)
        if end < size:
            out[written] = ascii.NEWLINE
            written += 1
        start = end + 1
    return _tidy_quotes(out, written) if has_quotes else NOTHING_TO_DO


@lean_kernel
def _has_doubles(text, size):
    """Return whether two quote marks or two apostrophes stand next to each other."""
    at = 1
    while at < size and not (text[at - 1] == text[at] and text[at] in (QUOTE_MARK, ascii.APOSTROPHE)):
        at += 1
    return at < size


@lean_kernel
def _merge_marks(text, size):
    """Make one mark of two on either side of a text without any, in place; return the new size."""
    written = 0
    at = 0
    while at < size:
        if text[at] == QUOTE_MARK and at + 1 < size and text[at + 1] == QUOTE_MARK:
            end = at + 2
            while end < size and text[end] != QUOTE_MARK:
                end += 1
            if end + 1 < size and text[end + 1] == QUOTE_MARK:
                written = copy(text, at + 1, end + 1, text, written)
                at = end + 2
                continue
        text[written] = text[at]
        written += 1
        at += 1
    return written


@lean_kernel
def _drop_apostrophes(text, size, width, mark):
    """Drop each `width` apostrophes in a row, or put a QUOTE_MARK in their place, in place; return the new size."""
    written = 0
    at = 0
    while at < size:
        run = 0
        while run < width and at + run < size and text[at + run] == ascii.APOSTROPHE:
            run += 1
        if run == width:
            if mark:
                text[written] = QUOTE_MARK
                written += 1
            at += width
            continue
        text[written] = text[at]
        written += 1
        at += 1
    return written


@lean_kernel
def _tidy_quotes(text, size):
    """Correct what unbalanced quotes leave, in place; return the new size."""
    if not _has_doubles(text, size):
        return size
    size = _merge_marks(text, size)
    size = _drop_apostrophes(text, size, _BOLD, False)
    return _drop_apostrophes(text, size, _ITALIC, True)


@kernel
def tidy_spaces(data, out):
    """Make guillemets of `<<` and `>>`, blanks of tabs, one blank of several, and three full stops of more."""
    written = 0
    stops = 0
    second = -1
    for at in range(data.size):
        byte = data[at]
        if at == second:
            continue
        if byte in (ascii.LESS_THAN, ascii.GREATER_THAN) and at + 1 < data.size and data[at + 1] == byte:
            out[written] = _LATIN_1
            written += 1
            byte = np.uint8(_LEFT_GUILLEMET if byte == ascii.LESS_THAN else _RIGHT_GUILLEMET)
            second = at + 1
        if byte in (ascii.SPACE, ascii.TAB):
            if written > 0 and out[written - 1] == ascii.SPACE:
                continue
            byte = np.uint8(ascii.SPACE)
        if byte == ascii.PERIOD:
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
    """Drop lines that hold no word character (of neighbouring ones, and of empty lines, every other).

    Then makes one comma of two, and a full stop of a comma and a full stop.
    """
    size = data.size
    written = 0
    at = 0
    while at < size:
        out[written] = data[at]
        written += 1
        if data[at] != ascii.NEWLINE:
            at += 1
            continue
        end = at + 1
        while end < size:
            properties, length = character(model, data, end)
            if properties & _WORD or (data[end] == ascii.NEWLINE and end > at + 1):
                break
            end += length
        if end < size and end > at + 1 and data[end] == ascii.NEWLINE:
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
        if byte == ascii.COMMA:
            commas += 1
            if commas & 1:
                text[written] = byte
                written += 1
            continue
        if commas > 0 and byte == ascii.PERIOD:
            written -= 1
        commas = 0
        text[written] = byte
        written += 1
    return written


@lean_kernel
def _is_left_over(data, start, end):
    """Return whether a line is what a table, a note in brackets, or dropped text leaves after."""
    if data[start] in (ascii.OPEN_BRACE, ascii.PIPE) or data[end - 1] == ascii.CLOSE_BRACE:
        return True
    if data[start] == ascii.OPEN_PAREN and data[end - 1] == ascii.CLOSE_PAREN:
        return True
    while start < end and data[start] in (ascii.PERIOD, ascii.HYPHEN):
        start += 1
    return start == end


@lean_kernel
def _is_heading(data, start, end):
    if end - start < 4 or data[start] != ascii.EQUALS or data[start + 1] != ascii.EQUALS:
        return False
    at = start + 2
    while at + 1 < end and not (data[at] == ascii.EQUALS and data[at + 1] == ascii.EQUALS):
        at += 1
    return at + 1 < end


# What a line is, told by its first characters.
_LINE_EMPTY, _LINE_HEADING, _LINE_PLUS, _LINE_INDENTED, _LINE_LIST, _LINE_LEFT_OVER, _LINE_BLANK, _LINE_TEXT = range(8)


@lean_kernel
def _line_kind(data, start, end):
    """Return which of the _LINE_… kinds bytes `start:end`, a line without its newline, are."""
    if start == end:
        return _LINE_EMPTY
    first = data[start]
    if _is_heading(data, start, end):
        return _LINE_HEADING
    if end - start >= 2 and first == ascii.PLUS and data[start + 1] == ascii.PLUS:
        return _LINE_PLUS
    if first == ascii.COLON:
        return _LINE_INDENTED
    if first in (ascii.ASTERISK, ascii.HASH, ascii.SEMICOLON):
        return _LINE_LIST
    if _is_left_over(data, start, end):
        return _LINE_LEFT_OVER
    return _LINE_BLANK if first == ascii.SPACE else _LINE_TEXT


@lean_kernel
def _write_plus_line(data, start, end, out, written):
    """Write a line that starts with `++`, without its first and last two characters, as a sentence."""
    start += 2
    for _ in range(2):
        if end > start:
            end = character_before(data, end, start)
    if end <= start:
        return written
    written = copy(data, start, end, out, written)
    if data[end - 1] not in (ascii.EXCLAMATION, ascii.QUESTION):
        out[written] = ascii.PERIOD
        written += 1
    out[written] = ascii.NEWLINE
    return written + 1


@kernel
def compact(data, out):
    """Drop headings, lists and what is left of tables; write the lines that stay, each with its newline.

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
        while end < size and data[end] != ascii.NEWLINE:
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
            out[written] = ascii.NEWLINE
            written += 1
            last_is_empty = start == end
        start = end + 1
    return written


def warm_up() -> None:
    """Compile what this module's callers use."""
    model = np.zeros(ASCII + 256, np.int32)
    # Texts come out of bytes objects, so that they are read-only.
    text = np.frombuffer(b"{{[[", np.uint8)
    out = np.empty(8, np.uint8)
    replace_quotes(text, out)
    tidy_spaces(text, out)
    tidy_lines(model, text, out)
    compact(text, out)
