"""WikiExtractor's text: bold and italics. See bytes.py."""

import numpy as np

from maskmill.kernels import kernel, lean_kernel
from maskmill.kernels.ascii import APOSTROPHE, NEWLINE
from transforms.compat.kernels.bytes import NOTHING_TO_DO, QUOTE_MARK, copy

# Apostrophes in a row.
_ITALIC, _BOLD, _BOLD_ITALIC = 2, 3, 5


@lean_kernel
def _find_apostrophes(data, start, end, width):
    """The first `width` apostrophes in a row of bytes `start:end`, or -1."""
    run = 0
    for at in range(start, end):
        if data[at] == APOSTROPHE:
            run += 1
            if run == width:
                return at + 1 - width
        else:
            run = 0
    return -1


@lean_kernel
def _take_quotes(data, start, end, width, out, written, mark):
    """Takes `width` apostrophes away before and after each quoted text of a line; how many bytes are written then.

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
    """Where the line ends that starts at byte `start`, and how many apostrophes stand in a row there at most."""
    end = start
    longest = run = 0
    while end < data.size and data[end] != NEWLINE:
        if data[end] == APOSTROPHE:
            run += 1
            if run > longest:
                longest = run
        else:
            run = 0
        end += 1
    return end, longest


@kernel
def replace_quotes(data, out):
    """Takes bold away and puts italics into quotes (QUOTE_MARK), line by line; what is unbalanced follows suit."""
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
            out[written] = NEWLINE
            written += 1
        start = end + 1
    return _tidy_quotes(out, written) if has_quotes else NOTHING_TO_DO


@lean_kernel
def _has_doubles(text, size):
    """Whether two quote marks or two apostrophes stand next to each other."""
    at = 1
    while at < size and not (text[at - 1] == text[at] and text[at] in (QUOTE_MARK, APOSTROPHE)):
        at += 1
    return at < size


@lean_kernel
def _merge_marks(text, size):
    """Makes one mark of two on either side of a text without any, in place; the new size."""
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
    """Drops each `width` apostrophes in a row, or puts a QUOTE_MARK in their place, in place; the new size."""
    written = 0
    at = 0
    while at < size:
        run = 0
        while run < width and at + run < size and text[at + run] == APOSTROPHE:
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
    """Mends what unbalanced quotes leave, in place; the new size."""
    if not _has_doubles(text, size):
        return size
    size = _merge_marks(text, size)
    size = _drop_apostrophes(text, size, _BOLD, False)
    return _drop_apostrophes(text, size, _ITALIC, True)


def warm_up() -> None:
    """Compiles what this module's callers use."""
    # Texts come out of bytes objects, so that they are read-only.
    replace_quotes(np.frombuffer(b"{{[[", np.uint8), np.empty(8, np.uint8))
