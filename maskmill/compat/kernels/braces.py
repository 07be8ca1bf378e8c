"""WikiExtractor's text: templates and tables, and what is nested in general. See bytes.py."""

import numpy as np

from maskmill.characters.kernels.characters import ASCII, stripped_end, stripped_start
from maskmill.compat.kernels.bytes import NOTHING_TO_DO, copy
from maskmill.kernels import ascii, kernel

# Columns of spans.
START = 0
END = 1
NEEDS_EXPANSION = 2  # of template_spans


@kernel
def _run_end(data, at):
    """Return where the run of equal bytes ends that starts at byte `at`."""
    byte = data[at]
    while at < data.size and data[at] == byte:
        at += 1
    return at


@kernel
def _find_opening(data, at):
    """Return the first `{{` from byte `at` on; the text's end if there is none."""
    while at + 1 < data.size:
        if data[at] == ascii.OPEN_BRACE and data[at + 1] == ascii.OPEN_BRACE:
            return at
        at += 1
    return data.size


@kernel
def _find_run(data, at):
    """Return the first `{{` or `}}` from byte `at` on; the text's end if there is none."""
    while at + 1 < data.size:
        if data[at] in (ascii.OPEN_BRACE, ascii.CLOSE_BRACE) and data[at + 1] == data[at]:
            return at
        at += 1
    return data.size


@kernel
def _close_runs(stack, depth, length):
    """Close open runs (their lengths are `stack[:depth]`) with `length` braces: (the new depth, braces left)."""
    while depth > 0:
        depth -= 1
        if length < stack[depth]:
            stack[depth] -= length
            return depth + 1, length
        length -= stack[depth]
        if length <= 1:
            break
    return depth, length


@kernel
def brace_spans(data):
    """Return the outermost `{{…}}`, int64 [n, 2].

    Runs of two or more braces are matched from the inside; a run may close several, and one that stays open ends
    the search.
    """
    size = data.size
    most = 0
    for at in range(size - 1):
        if data[at] == ascii.OPEN_BRACE and data[at + 1] == ascii.OPEN_BRACE:
            most += 1
    spans = np.empty((most, 2), np.int64)
    stack = np.empty(most, np.int64)  # lengths of the open runs
    count = 0
    start = _find_opening(data, 0)
    while start < size:
        at = _run_end(data, start)
        stack[0] = at - start
        depth = 1
        while depth > 0:
            run = _find_run(data, at)
            if run >= size:
                return spans[:count]
            at = _run_end(data, run)
            if data[run] == ascii.OPEN_BRACE:
                stack[depth] = at - run
                depth += 1
                continue
            depth, left = _close_runs(stack, depth, at - run)
            if depth == 0:
                spans[count, START] = start
                spans[count, END] = at - left
                count += 1
            elif depth == 1 and stack[0] == 1:  # one brace is left over: neither a template nor text to look into
                depth = 0
        start = _find_opening(data, at)
    return spans[:count]


@kernel
def needs_expansion(model, data, start, end):
    """Return whether the body of `{{…}}` may be a variable, a parser function, or a title that holds braces.

    All others are transclusions of pages, which give nothing.
    """
    stop = end
    for at in range(start, end):
        byte = data[at]
        if byte == ascii.PIPE:
            stop = at
            break
        if byte in (ascii.OPEN_BRACE, ascii.OPEN_BRACKET) and at + 1 < end and data[at + 1] == byte:
            return True
    first = stripped_start(model, data, start, stop)
    last = stripped_end(model, data, first, stop)
    if first == last:
        return False
    if data[first] == ascii.EXCLAMATION and last == first + 1:
        return True
    characters = 0
    capitals = True
    for at in range(first, last):
        byte = data[at]
        if byte == ascii.COLON:
            return characters > 1
        if not ascii.UPPER_A <= byte <= ascii.UPPER_Z:
            capitals = False
        if byte & 0xC0 != 0x80:
            characters += 1
    return capitals


@kernel
def template_spans(model, data):
    """Return the outermost `{{…}}`, and whether each needs a look: int64 [n, 3], columns START, END,
    NEEDS_EXPANSION.
    """
    spans = brace_spans(data)
    templates = np.empty((spans.shape[0], 3), np.int64)
    for i in range(spans.shape[0]):
        templates[i, START] = spans[i, START]
        templates[i, END] = spans[i, END]
        templates[i, NEEDS_EXPANSION] = needs_expansion(model, data, spans[i, START] + 2, spans[i, END] - 2)
    return templates


@kernel
def drop_spans(data, spans, out):
    """Copy what is outside the spans (sorted by their starts); one that starts within another is ignored."""
    written = 0
    at = 0
    for i in range(spans.shape[0]):
        if spans[i, START] >= at:
            written = copy(data, at, spans[i, START], out, written)
            at = spans[i, END]
    return copy(data, at, data.size, out, written)


@kernel
def _first_from(spans, number, at):
    """Return the number of the first span, from `number` on, that starts at byte `at` or later."""
    while number < spans.shape[0] and spans[number, START] < at:
        number += 1
    return number


@kernel
def nested_spans(opens, closes):
    """Return the outermost balanced pairs of opening and closing marks (each int64 [n, 2], sorted), int64 [n, 2].

    A pair only counts as closed if something stands between its end and the next opening. When closing marks run
    out before the openings do, everything from the first pair's start to the last mark is one span.
    """
    spans = np.empty((opens.shape[0], 2), np.int64)
    count = 0
    if opens.shape[0] == 0:
        return spans
    start = following = 0  # the pair's opening mark, and the next one after it
    depth = 0
    close = _first_from(closes, 0, opens[0, END])
    while close < closes.shape[0]:
        following += 1
        if following == opens.shape[0]:
            while depth > 0 and close + 1 < closes.shape[0]:
                depth -= 1
                close += 1
            spans[count, START] = opens[start, START]
            spans[count, END] = closes[close, END]
            return spans[: count + 1]
        while closes[close, END] < opens[following, START]:
            if depth == 0:
                spans[count, START] = opens[start, START]
                spans[count, END] = closes[close, END]
                count += 1
                start = following
                close = _first_from(closes, close, opens[following, END])
                break
            depth -= 1
            close += 1
            if close == closes.shape[0]:
                spans[0, START] = spans[0, START] if count > 0 else opens[start, START]
                spans[0, END] = closes[close - 1, END]
                return spans[:1]
        if following != start:
            depth += 1
    return spans[:count]


@kernel
def _write_pairs(data, first, second, pairs):
    """Write where the two bytes stand next to each other, as far as `pairs` has rows; return their number."""
    count = 0
    at = 0
    while at + 1 < data.size:
        if data[at] == first and data[at + 1] == second:
            if count < pairs.shape[0]:
                pairs[count, START] = at
                pairs[count, END] = at + 2
            count += 1
            at += 1
        at += 1
    return count


@kernel
def _pairs(data, first, second):
    """Return where the two bytes stand next to each other, from the left, int64 [n, 2]."""
    pairs = np.empty((_write_pairs(data, first, second, np.empty((0, 2), np.int64)), 2), np.int64)
    _write_pairs(data, first, second, pairs)
    return pairs


@kernel
def drop_pairs(data, first, second, out):
    """Drop what is between the bytes `first second` and their mirror image: `{{` and `}}`, `{|` and `|}`."""
    opens = _pairs(data, first, second)
    if opens.shape[0] == 0:
        return NOTHING_TO_DO
    closing = second if second != first else ascii.CLOSE_BRACE
    spans = nested_spans(opens, _pairs(data, closing, ascii.CLOSE_BRACE))
    return drop_spans(data, spans, out)


def warm_up() -> None:
    """Compile what this module's callers use."""
    model = np.zeros(ASCII + 256, np.int32)
    # Texts come out of bytes objects, so that they are read-only.
    text = np.frombuffer(b"{{[[", np.uint8)
    out = np.empty(8, np.uint8)
    drop_spans(text, template_spans(model, text), out)
    drop_pairs(text, ord("{"), ord("|"), out)
