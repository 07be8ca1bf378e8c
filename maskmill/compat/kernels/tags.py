"""WikiExtractor's text: comments, tags and elements. See bytes.py."""

import numpy as np

from maskmill.characters.kernels.characters import ALPHA, ASCII, DIGIT, SPACE, character, character_before
from maskmill.compat.kernels.braces import END, START, drop_spans, nested_spans
from maskmill.compat.kernels.bytes import NOTHING_TO_DO, copy, letter_at, match, packed, skip_space, stands_at
from maskmill.kernels import ascii, kernel, lean_kernel

_WORD = ALPHA | DIGIT  # \w

_SELF_CLOSING = (b"br", b"hr", b"nobr", b"ref", b"references", b"nowiki")
_UNWRAPPED = (
    *(b"abbr", b"b", b"big", b"blockquote", b"center", b"cite", b"em", b"font", b"h1", b"h2", b"h3", b"h4", b"hiero"),
    *(b"i", b"kbd", b"p", b"plaintext", b"s", b"span", b"strike", b"strong", b"tt", b"u", b"var", b"a"),
)
_DROPPED = (
    *(b"gallery", b"timeline", b"noinclude", b"pre", b"table", b"tr", b"td", b"th", b"caption", b"div", b"form"),
    *(b"input", b"select", b"option", b"textarea", b"ul", b"li", b"ol", b"dl", b"dt", b"dd", b"menu", b"dir", b"ref"),
    *(b"references", b"img", b"imagemap", b"source", b"small", b"sub", b"sup", b"indicator"),
)
NUM_DROPPED = len(_DROPPED)
# Elements are dropped in this order, so that it numbers them; the others follow.
_NAMES = (*_DROPPED, *(name for name in (*_SELF_CLOSING, *_UNWRAPPED) if name not in _DROPPED))
_NAME_BYTES, _NAME_STARTS = packed(_NAMES)
_IS_SELF_CLOSING = np.array([name in _SELF_CLOSING for name in _NAMES])
_IS_UNWRAPPED = np.array([name in _UNWRAPPED for name in _NAMES])
_BY_LETTER = np.zeros((26, len(_NAMES)), np.int64)
_NUM_BY_LETTER = np.zeros(26, np.int64)
for _number, _name in enumerate(_NAMES):
    _letter = _name[0] - ascii.LOWER_A
    _BY_LETTER[_letter, _NUM_BY_LETTER[_letter]] = _number
    _NUM_BY_LETTER[_letter] += 1


@lean_kernel
def _name_at(model, data, at):
    """Return the number of the element whose name is the word at byte `at`, and where the name ends; -1 for no such."""
    if at >= data.size:
        return -1, at
    first, _size = letter_at(data, at)
    letter = first - ascii.LOWER_A
    if letter < 0 or letter >= 26:
        return -1, at
    for i in range(_NUM_BY_LETTER[letter]):
        number = _BY_LETTER[letter, i]
        end = match(data, at, _NAME_BYTES, _NAME_STARTS, number)
        if end >= 0 and (end == data.size or not character(model, data, end)[0] & _WORD):
            return number, end
    return -1, at


@lean_kernel
def _seek(data, byte, found, at):
    """Return the first such byte from `at` on (the text's end if none), `found` being what an earlier search gave."""
    if found < at:
        found = at
        while found < data.size and data[found] != byte:
            found += 1
    return found


_COMMENT_START = np.frombuffer(b"!--", np.uint8)
_COMMENT_END = np.frombuffer(b"-->", np.uint8)
# What drop_tags remembers of its searches, int64 [4].
_COMMENT_CLOSE = 0  # the last `-->` found
_GREATER_FOUND = 1  # the last `>` found
_SOLIDUS_OF = 2  # the `>` that _SOLIDUS belongs to
_SOLIDUS = 3  # the `/` before it, with nothing but white space in between, or -1
_NUM_SEARCHES = 4


@lean_kernel
def _comment_end(data, start, searches):
    """Return where the comment ends whose `<` is byte `start`, or -1 if it is not one."""
    size = data.size
    inside = start + 4
    if not stands_at(data, start + 1, _COMMENT_START):
        return -1
    at = searches[_COMMENT_CLOSE]
    if at < inside:
        at = inside
        while at + 2 < size and not stands_at(data, at, _COMMENT_END):
            at += 1
        searches[_COMMENT_CLOSE] = at
    return at + 3 if at + 2 < size else -1


@lean_kernel
def _solidus_before(model, data, greater, searches):
    """Return the `/` before the `>` at byte `greater`, with nothing but white space in between, or -1."""
    if searches[_SOLIDUS_OF] != greater:
        searches[_SOLIDUS_OF] = greater
        before = greater
        while before > 0:
            place = character_before(data, before, 0)
            if not character(model, data, place)[0] & SPACE:
                break
            before = place
        searches[_SOLIDUS] = before - 1 if before > 0 and data[before - 1] == ascii.SLASH else -1
    return searches[_SOLIDUS]


@lean_kernel
def _closing_tag_end(model, data, start):
    """Return where the closing tag of a formatting element ends whose `</` is at byte `start`, or -1 if it is not
    one.
    """
    number, end = _name_at(model, data, skip_space(model, data, start + 2))
    if number >= 0 and _IS_UNWRAPPED[number] and end < data.size and data[end] == ascii.GREATER_THAN:
        return end + 1
    return -1


@lean_kernel
def _opening_tag_end(model, data, start, ends, searches):
    """Return where the tag ends, to be dropped, whose `<` is byte `start`, or -1.

    ends: for each element's pattern, where its last match ends; the next one starts after.
    """
    first = skip_space(model, data, start + 1)
    number, name_end = _name_at(model, data, first)
    if number < 0 or start < ends[number] or not (_IS_SELF_CLOSING[number] or _IS_UNWRAPPED[number]):
        return -1
    greater = searches[_GREATER_FOUND] = _seek(data, ascii.GREATER_THAN, searches[_GREATER_FOUND], name_end)
    if greater >= data.size:
        return -1
    if _IS_UNWRAPPED[number]:
        matches = first == start + 1
    else:
        matches = _solidus_before(model, data, greater, searches) >= name_end
    if not matches:
        return -1
    ends[number] = greater + 1
    return greater + 1


@kernel
def drop_tags(model, data, out):
    """Drop comments, self-closing tags, and the tags (not what is between them) of formatting elements."""
    size = data.size
    written = 0
    copied = 0
    comment_end = 0  # of the last comment: the next one starts after
    ends = np.zeros(_NAME_STARTS.size, np.int64)
    searches = np.full(_NUM_SEARCHES, -1, np.int64)
    for start in range(size):
        if data[start] != ascii.LESS_THAN:
            continue
        following = data[start + 1] if start + 1 < size else 0
        if following == ascii.EXCLAMATION:
            end = _comment_end(data, start, searches) if start >= comment_end else -1
            if end >= 0:
                comment_end = end
        elif following == ascii.SLASH:
            end = _closing_tag_end(model, data, start)
        else:
            end = _opening_tag_end(model, data, start, ends, searches)
        if end >= 0 and start >= copied:
            written = copy(data, copied, start, out, written)
            copied = end
    return copy(data, copied, size, out, written) if copied > 0 else NOTHING_TO_DO


@kernel
def opened_elements(model, data):
    """Return which of the elements to drop are opened in the text: a bit for each."""
    opened = 0
    for at in range(data.size):
        if data[at] == ascii.LESS_THAN:
            number, _end = _name_at(model, data, skip_space(model, data, at + 1))
            if 0 <= number < NUM_DROPPED:
                opened |= 1 << number
    return opened


@kernel
def drop_element(model, data, number, out):
    """Drop the elements of one name with what is between their tags.

    An opening tag has no `/` in it; in a closing one white space may stand around the `/`.
    """
    size = data.size
    most = 0
    for at in range(size):
        most += data[at] == ascii.LESS_THAN
    opens = np.empty((most, 2), np.int64)
    closes = np.empty((most, 2), np.int64)
    num_opens = num_closes = 0
    stop = -1  # the next `>` or `/`
    open_end = 0
    for start in range(size):
        if data[start] != ascii.LESS_THAN:
            continue
        at = skip_space(model, data, start + 1)
        if at < size and data[at] == ascii.SLASH:
            name, end = _name_at(model, data, skip_space(model, data, at + 1))
            if name == number and end < size and data[end] == ascii.GREATER_THAN:
                closes[num_closes, START] = start
                closes[num_closes, END] = end + 1
                num_closes += 1
        elif start >= open_end:
            name, end = _name_at(model, data, at)
            if name == number:
                if stop < end:
                    stop = end
                    while stop < size and data[stop] not in (ascii.GREATER_THAN, ascii.SLASH):
                        stop += 1
                if stop < size and data[stop] == ascii.GREATER_THAN:
                    opens[num_opens, START] = start
                    opens[num_opens, END] = open_end = stop + 1
                    num_opens += 1
    spans = nested_spans(opens[:num_opens], closes[:num_closes])
    if spans.shape[0] == 0:
        return NOTHING_TO_DO
    return drop_spans(data, spans, out)


def warm_up() -> None:
    """Compile what this module's callers use."""
    model = np.zeros(ASCII + 256, np.int32)
    # Texts come out of bytes objects, so that they are read-only.
    text = np.frombuffer(b"{{[[", np.uint8)
    out = np.empty(8, np.uint8)
    drop_tags(model, text, out)
    opened_elements(model, text)
    drop_element(model, text, 0, out)
