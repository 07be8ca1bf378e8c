"""WikiExtractor's steps on the bytes of a page: what it drops, in its order, with its idea of what is balanced.

Each kernel is one step: it takes the text (uint8, UTF-8) and writes what is left to `out`, which is at least as long;
it returns how many bytes it wrote, or -1 where there was nothing to do and `out` is untouched. All take time linear in
the text: a search that found nothing is not made again.

The text is the page's own, with the XML's references resolved. WikiExtractor works on the references and resolves them
between its links and its tags; the difference only shows in the double quotes that italics become, and in the tag
around a failed calculation: `QUOTE_MARK`, `LESS_MARK` and `GREATER_MARK` stand for what is not a reference until then,
three control characters that XML does not allow.

`model` has the character tables, laid out as transforms/characters/kernels/characters.py says, of the Unicode version
of Python 3.7.
"""

import html.entities
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from transforms.characters.kernels.characters import (
    ALPHA,
    ASCII,
    DIGIT,
    SPACE,
    character,
    character_before,
    stripped_end,
    stripped_start,
)
from transforms.kernels import kernel

QUOTE_MARK, LESS_MARK, GREATER_MARK = 1, 2, 3
_WORD = ALPHA | DIGIT  # \w

_NEWLINE, _TAB, _BLANK, _COMMA = ord("\n"), ord("\t"), ord(" "), ord(",")
_OPEN_BRACE, _CLOSE_BRACE, _OPEN_BRACKET, _CLOSE_BRACKET = ord("{"), ord("}"), ord("["), ord("]")
_PIPE, _COLON, _APOSTROPHE = ord("|"), ord(":"), ord("'")
_LESS, _GREATER, _SLASH, _HYPHEN, _AMPERSAND, _SEMICOLON = ord("<"), ord(">"), ord("/"), ord("-"), ord("&"), ord(";")
_HASH_SIGN, _STOP, _EQUALS, _EXCLAMATION, _QUESTION, _PLUS = ord("#"), ord("."), ord("="), ord("!"), ord("?"), ord("+")
_DELETE = 0x7F


def _packed(names: Iterable[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Names one behind another, and where each starts (and the last one ends)."""
    names = list(names)
    starts = np.concatenate(([0], np.cumsum([len(name) for name in names])))
    return np.frombuffer(b"".join(names), np.uint8).copy(), starts


@kernel
def _lower(byte):  # type: ignore[no-untyped-def]
    return byte + 32 if ord("A") <= byte <= ord("Z") else byte


@kernel
def _letter_at(data, at):  # type: ignore[no-untyped-def]
    """The character at byte `at` as Python's patterns compare it in either case, and its size; 0 for others."""
    byte = data[at]
    if byte < 0x80:
        return _lower(byte), 1
    if at + 1 < data.size:
        if byte == 0xC4 and data[at + 1] in (0xB0, 0xB1):  # U+0130, U+0131
            return ord("i"), 2
        if byte == 0xC5 and data[at + 1] == 0xBF:  # U+017F
            return ord("s"), 2
        if byte == 0xE2 and at + 2 < data.size and data[at + 1] == 0x84 and data[at + 2] == 0xAA:  # U+212A
            return ord("k"), 3
    return 0, 1


@kernel
def _match(data, at, names, starts, number):  # type: ignore[no-untyped-def]
    """Where the name of this number ends that starts at byte `at`, in whatever case; -1 if it is not there."""
    for i in range(starts[number], starts[number + 1]):
        if at >= data.size:
            return -1
        letter, size = _letter_at(data, at)
        if letter != names[i]:
            return -1
        at += size
    return at


# Templates, tables, elements: what is nested


@kernel
def brace_spans(data):  # type: ignore[no-untyped-def]
    """The outermost `{{…}}`, int64 [n, 2].

    Runs of two or more braces are matched from the inside; a run may close several, and one that stays open ends
    the search.
    """
    size = data.size
    most = 0
    for at in range(size - 1):
        if data[at] == _OPEN_BRACE and data[at + 1] == _OPEN_BRACE:
            most += 1
    spans = np.empty((most, 2), np.int64)
    stack = np.empty(most, np.int64)  # lengths of the open runs
    count = 0
    at = 0
    while True:
        while at + 1 < size and not (data[at] == _OPEN_BRACE and data[at + 1] == _OPEN_BRACE):
            at += 1
        if at + 1 >= size:
            return spans[:count]
        start = at
        while at < size and data[at] == _OPEN_BRACE:
            at += 1
        stack[0] = at - start
        depth = 1
        while depth > 0:
            while at + 1 < size and not (data[at] in (_OPEN_BRACE, _CLOSE_BRACE) and data[at + 1] == data[at]):
                at += 1
            if at + 1 >= size:
                return spans[:count]
            brace = data[at]
            length = -at
            while at < size and data[at] == brace:
                at += 1
            length += at
            if brace == _OPEN_BRACE:
                stack[depth] = length
                depth += 1
                continue
            while depth > 0:
                depth -= 1
                if length < stack[depth]:
                    stack[depth] -= length
                    depth += 1
                    break
                length -= stack[depth]
                if length <= 1:
                    break
            if depth == 0:
                spans[count, 0] = start
                spans[count, 1] = at - length
                count += 1
            elif depth == 1 and stack[0] == 1:  # one brace is left over: neither a template nor text to look into
                depth = 0


@kernel
def needs_expansion(model, data, start, end):  # type: ignore[no-untyped-def]
    """Whether the body of `{{…}}` may be a variable, a parser function, or a title that holds braces.

    All others are transclusions of pages, which give nothing.
    """
    stop = end
    for at in range(start, end):
        byte = data[at]
        if byte == _PIPE:
            stop = at
            break
        if byte in (_OPEN_BRACE, _OPEN_BRACKET) and at + 1 < end and data[at + 1] == byte:
            return True
    first = stripped_start(model, data, start, stop)
    last = stripped_end(model, data, first, stop)
    if first == last:
        return False
    if data[first] == _EXCLAMATION and last == first + 1:
        return True
    characters = 0
    capitals = True
    for at in range(first, last):
        byte = data[at]
        if byte == _COLON:
            return characters > 1
        if not ord("A") <= byte <= ord("Z"):
            capitals = False
        if byte & 0xC0 != 0x80:
            characters += 1
    return capitals


@kernel
def template_spans(model, data):  # type: ignore[no-untyped-def]
    """The outermost `{{…}}`, and whether each needs a look: int64 [n, 3]."""
    spans = brace_spans(data)
    found = np.empty((spans.shape[0], 3), np.int64)
    for i in range(spans.shape[0]):
        found[i, 0] = spans[i, 0]
        found[i, 1] = spans[i, 1]
        found[i, 2] = needs_expansion(model, data, spans[i, 0] + 2, spans[i, 1] - 2)
    return found


@kernel
def drop_spans(data, spans, out):  # type: ignore[no-untyped-def]
    """Copies what is outside the spans (sorted by their starts); one that starts within another is ignored."""
    written = 0
    at = 0
    for i in range(spans.shape[0]):
        if spans[i, 0] >= at:
            while at < spans[i, 0]:
                out[written] = data[at]
                written += 1
                at += 1
            at = spans[i, 1]
    while at < data.size:
        out[written] = data[at]
        written += 1
        at += 1
    return written


@kernel
def _first_from(starts, number, at):  # type: ignore[no-untyped-def]
    while number < starts.shape[0] and starts[number, 0] < at:
        number += 1
    return number


@kernel
def nested_spans(opens, closes):  # type: ignore[no-untyped-def]
    """The outermost balanced pairs of opening and closing marks (each int64 [n, 2], sorted), int64 [n, 2].

    A pair only counts as closed where something stands between its end and the next opening. When closing marks run
    out before the openings do, everything from the first pair's start to the last mark is one span.
    """
    spans = np.empty((opens.shape[0], 2), np.int64)
    count = 0
    if opens.shape[0] == 0:
        return spans
    start = following = 0
    nested = 0
    close = _first_from(closes, 0, opens[0, 1])
    while close < closes.shape[0]:
        following += 1
        if following == opens.shape[0]:
            while nested > 0 and close + 1 < closes.shape[0]:
                nested -= 1
                close += 1
            spans[count, 0] = opens[start, 0]
            spans[count, 1] = closes[close, 1]
            return spans[: count + 1]
        while closes[close, 1] < opens[following, 0]:
            if nested > 0:
                nested -= 1
                close += 1
                if close == closes.shape[0]:
                    spans[0, 0] = spans[0, 0] if count > 0 else opens[start, 0]
                    spans[0, 1] = closes[close - 1, 1]
                    return spans[:1]
            else:
                spans[count, 0] = opens[start, 0]
                spans[count, 1] = closes[close, 1]
                count += 1
                start = following
                close = _first_from(closes, close, opens[following, 1])
                break
        if following != start:
            nested += 1
    return spans[:count]


@kernel
def _pairs(data, first, second):  # type: ignore[no-untyped-def]
    """Where the two bytes stand next to each other, from the left, int64 [n, 2]."""
    count = 0
    at = 0
    while at + 1 < data.size:
        if data[at] == first and data[at + 1] == second:
            count += 1
            at += 1
        at += 1
    found = np.empty((count, 2), np.int64)
    count = 0
    at = 0
    while at + 1 < data.size:
        if data[at] == first and data[at + 1] == second:
            found[count, 0] = at
            found[count, 1] = at + 2
            count += 1
            at += 1
        at += 1
    return found


@kernel
def drop_pairs(data, first, second, out):  # type: ignore[no-untyped-def]
    """Drops what is between the bytes `first second` and their mirror image: `{{` and `}}`, `{|` and `|}`."""
    opens = _pairs(data, first, second)
    if opens.shape[0] == 0:
        return -1
    closing = second if second != first else _CLOSE_BRACE
    spans = nested_spans(opens, _pairs(data, closing, _CLOSE_BRACE))
    return drop_spans(data, spans, out)


# Quotes


@kernel
def _take_quotes(data, start, end, width, out, written, mark):  # type: ignore[no-untyped-def]
    """Takes `width` apostrophes away before and after each quoted text of a line; the place behind what it wrote."""
    at = start
    while True:
        first = -1
        second = -1
        run = 0
        i = at
        while i < end:
            if data[i] == _APOSTROPHE:
                run += 1
                if run == width:
                    if first < 0:
                        first = i + 1 - width
                        run = 0
                    else:
                        second = i + 1 - width
                        break
            else:
                run = 0
            i += 1
        stop = first if second >= 0 else end
        while at < stop:
            out[written] = data[at]
            written += 1
            at += 1
        if second < 0:
            return written
        if mark:
            out[written] = QUOTE_MARK
            written += 1
        at = first + width
        while at < second:
            out[written] = data[at]
            written += 1
            at += 1
        if mark:
            out[written] = QUOTE_MARK
            written += 1
        at = second + width


@kernel
def replace_quotes(data, out):  # type: ignore[no-untyped-def]
    """Takes bold away and puts italics into quotes (`QUOTE_MARK`), line by line; what is unbalanced follows suit."""
    size = data.size
    written = 0
    start = 0
    found = False
    one = np.empty(0, np.uint8)
    two = np.empty(0, np.uint8)
    while start < size:
        end = start
        longest = run = 0  # apostrophes in a row
        while end < size and data[end] != _NEWLINE:
            if data[end] == _APOSTROPHE:
                run += 1
                if run > longest:
                    longest = run
            else:
                run = 0
            end += 1
        found = found or longest > 1
        if longest < 2:
            for at in range(start, end):
                out[written] = data[at]
                written += 1
        elif longest < 3:
            written = _take_quotes(data, start, end, 2, out, written, True)
        else:
            if one.size < end - start:
                one = np.empty(2 * (end - start), np.uint8)
                two = np.empty(2 * (end - start), np.uint8)
            length = _take_quotes(data, start, end, 5, one, 0, False)
            length = _take_quotes(one, 0, length, 3, two, 0, False)
            written = _take_quotes(two, 0, length, 2, out, written, True)
        if end < size:
            out[written] = _NEWLINE
            written += 1
        start = end + 1
    return _tidy_quotes(out, written) if found else -1


@kernel
def _tidy_quotes(text, size):  # type: ignore[no-untyped-def]
    """Makes one mark of two on either side of a text without any, then of what apostrophes are left; in place."""
    written = 0
    at = 1
    while at < size and not (text[at - 1] == text[at] and text[at] in (QUOTE_MARK, _APOSTROPHE)):
        at += 1
    if at >= size:
        return size
    at = 0
    while at < size:
        if text[at] == QUOTE_MARK and at + 1 < size and text[at + 1] == QUOTE_MARK:
            end = at + 2
            while end < size and text[end] != QUOTE_MARK:
                end += 1
            if end + 1 < size and text[end + 1] == QUOTE_MARK:
                for i in range(at + 1, end + 1):
                    text[written] = text[i]
                    written += 1
                at = end + 2
                continue
        text[written] = text[at]
        written += 1
        at += 1
    size = written
    for width in (3, 2):
        written = 0
        at = 0
        while at < size:
            if text[at] == _APOSTROPHE:
                run = 1
                while run < width and at + run < size and text[at + run] == _APOSTROPHE:
                    run += 1
                if run == width:
                    if width == 2:
                        text[written] = QUOTE_MARK
                        written += 1
                    at += width
                    continue
            text[written] = text[at]
            written += 1
            at += 1
        size = written
    return size


# Links


@kernel
def _find(data, byte, start, end):  # type: ignore[no-untyped-def]
    for at in range(start, end):
        if data[at] == byte:
            return at
    return -1


@kernel
def _find_last(data, byte, start, end):  # type: ignore[no-untyped-def]
    for at in range(end - 1, start - 1, -1):
        if data[at] == byte:
            return at
    return -1


_PREFIXES, _PREFIX_STARTS = _packed((b"w", b"wiktionary", b"wikt"))


@kernel
def _is_accepted_prefix(data, start, end):  # type: ignore[no-untyped-def]
    for number in range(_PREFIX_STARTS.size - 1):
        first = _PREFIX_STARTS[number]
        if end - start == _PREFIX_STARTS[number + 1] - first:
            at = start
            while at < end and data[at] == _PREFIXES[first + at - start]:
                at += 1
            if at == end:
                return True
    return False


@kernel
def _keeps_link(data, start, end):  # type: ignore[no-untyped-def]
    """Whether a link with this title keeps its label: it is no file, category, or page of another wiki."""
    colon = _find(data, _COLON, start, end)
    if colon > start:
        return _is_accepted_prefix(data, start, colon)
    if colon == start and end > start:
        colon = _find(data, _COLON, start + 1, end)
        # WikiExtractor counts characters here, one of them being the first colon.
        if colon > start + 1:
            return _is_accepted_prefix(data, start + 1, colon)
    return True


@kernel
def _label(model, data, start, end):  # type: ignore[no-untyped-def]
    """The label of the link whose inside is `start:end`: (its start, its end), an empty one if it is dropped."""
    pipe = _find(data, _PIPE, start, end)
    if pipe < 0:
        return (start, end) if _keeps_link(data, start, end) else (start, start)
    if not _keeps_link(data, start, stripped_end(model, data, start, pipe)):
        return start, start
    # The label starts behind the last pipe that a nested link follows, else behind the first one.
    searched = pipe + 1
    depth = 0
    nested_start = start
    at = start
    while at + 1 < end:
        if data[at] == _OPEN_BRACKET and data[at + 1] == _OPEN_BRACKET:
            if depth == 0:
                nested_start = at
            depth += 1
            at += 2
        elif depth > 0 and data[at] == _CLOSE_BRACKET and data[at + 1] == _CLOSE_BRACKET:
            depth -= 1
            at += 2
            if depth == 0:
                last = _find_last(data, _PIPE, searched, nested_start)
                if last >= 0:
                    pipe = last
                searched = at
        else:
            at += 1
    first = stripped_start(model, data, pipe + 1, end)
    return first, stripped_end(model, data, first, end)


@kernel
def replace_links(model, data, out):  # type: ignore[no-untyped-def]
    """Puts the label in place of each outermost `[[…]]`; word characters behind a link stay with it."""
    size = data.size
    written = 0
    copied = 0
    depth = 0
    start = 0
    at = 0
    found = False
    while at + 1 < size:
        byte = data[at]
        if byte == _OPEN_BRACKET and data[at + 1] == _OPEN_BRACKET:
            if depth == 0:
                start = at
            depth += 1
            found = True
            at += 2
        elif depth > 0 and byte == _CLOSE_BRACKET and data[at + 1] == _CLOSE_BRACKET:
            depth -= 1
            at += 2
            if depth == 0:
                while copied < start:
                    out[written] = data[copied]
                    written += 1
                    copied += 1
                first, last = _label(model, data, start + 2, at - 2)
                for i in range(first, last):
                    out[written] = data[i]
                    written += 1
                copied = at
        else:
            at += 1
    if not found:
        return -1
    while copied < size:
        out[written] = data[copied]
        written += 1
        copied += 1
    return written


# What may stand in front of the address of an external link.
_SCHEMES, _SCHEME_STARTS = _packed(
    (
        *(b"bitcoin:", b"ftp://", b"ftps://", b"geo:", b"git://", b"gopher://", b"http://", b"https://", b"irc://"),
        *(b"ircs://", b"magnet:", b"mailto:", b"mms://", b"news:", b"nntp://", b"redis://", b"sftp://", b"sip:"),
        *(b"sips:", b"sms:", b"ssh://", b"svn://", b"tel:", b"telnet://", b"urn:", b"worldwind://", b"xmpp:", b"//"),
    )
)


@kernel
def _is_address_character(model, data, at, end):  # type: ignore[no-untyped-def]
    """Whether the character at byte `at` may be in an address, and its size."""
    if at >= end:
        return False, 1
    byte = data[at]
    if byte < 0x80:
        return byte > _BLANK and byte not in (_OPEN_BRACKET, _CLOSE_BRACKET, _DELETE), 1
    held, size = character(model, data, at)
    return not held & SPACE, size


@kernel
def _scheme_end(model, data, at, end):  # type: ignore[no-untyped-def]
    """Where the address starts behind a scheme at byte `at`, or -1; it has one character at least."""
    for number in range(_SCHEME_STARTS.size - 1):
        place = _match(data, at, _SCHEMES, _SCHEME_STARTS, number)
        if place >= 0 and _is_address_character(model, data, place, end)[0]:
            return place
    return -1


@kernel
def _is_label_byte(byte):  # type: ignore[no-untyped-def]
    return byte not in (_OPEN_BRACKET, _CLOSE_BRACKET) and (
        byte >= _BLANK or byte == _TAB or byte in (QUOTE_MARK, LESS_MARK, GREATER_MARK)
    )


@kernel
def _label_end(data, at, end):  # type: ignore[no-untyped-def]
    """Where the label ends that starts at byte `at`: at a bracket; -1 if it does not end well."""
    while at < end and data[at] != _CLOSE_BRACKET:
        if _is_label_byte(data[at]):
            at += 1
            continue
        if data[at] != _OPEN_BRACKET or at + 2 >= end or data[at + 1] != _OPEN_BRACKET:
            return -1
        at += 2
        first = at
        while at < end and _is_label_byte(data[at]):
            at += 1
        if at == first or at + 1 >= end or data[at] != _CLOSE_BRACKET or data[at + 1] != _CLOSE_BRACKET:
            return -1
        at += 2
    return at if at < end else -1


_IMAGE_NAME = np.zeros(256, np.bool_)  # [A-Za-z0-9_.,~%\-+&;#*?!=()@\x80-\xFF]; `<`, `>`, `"` are references there
_IMAGE_NAME[list(b'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,~%-+&;#*?!=()@<>"\xc2\xc3')] = True
_IMAGE_ENDINGS, _IMAGE_ENDING_STARTS = _packed((b"gif", b"png", b"jpg", b"jpeg"))
_IMAGE_SCHEMES, _IMAGE_SCHEME_STARTS = _packed((b"http://", b"https://"))


@kernel
def _is_image_address(model, data, start, end):  # type: ignore[no-untyped-def]
    """Whether a label is the address of an image, which is dropped."""
    slash = _find_last(data, _SLASH, start, end)
    dot = _find_last(data, _STOP, start, end)
    if slash < start or dot < slash + 2:
        return False
    good = False
    for number in range(_IMAGE_ENDING_STARTS.size - 1):
        good = good or _match(data, dot + 1, _IMAGE_ENDINGS, _IMAGE_ENDING_STARTS, number) == end
    at = slash
    for number in range(_IMAGE_SCHEME_STARTS.size - 1):
        place = _match(data, start, _IMAGE_SCHEMES, _IMAGE_SCHEME_STARTS, number)
        if 0 <= place < slash:
            at = place
    if not good or at == slash:
        return False
    while at < slash:
        good, size = _is_address_character(model, data, at, slash)
        if not good:
            return False
        at += size
    for at in range(slash + 1, dot):
        if not _IMAGE_NAME[data[at]] and not (data[at] & 0xC0 == 0x80 and data[at - 1] in (0xC2, 0xC3)):
            return False
    return True


@kernel
def replace_addresses(model, data, out):  # type: ignore[no-untyped-def]
    """Puts the label in place of each `[address label]`."""
    size = data.size
    written = 0
    at = 0
    while at < size:
        byte = data[at]
        if byte == _OPEN_BRACKET:
            place = _scheme_end(model, data, at + 1, size)
            if place >= 0:
                good = True
                while good:
                    good, length = _is_address_character(model, data, place, size)
                    if good:
                        place += length
                while place < size:
                    held, length = character(model, data, place)
                    if not held & SPACE:
                        break
                    place += length
                end = _label_end(data, place, size)
                if end >= 0:
                    if not _is_image_address(model, data, place, end):
                        for i in range(place, end):
                            out[written] = data[i]
                            written += 1
                    at = end + 1
                    continue
        out[written] = byte
        written += 1
        at += 1
    return written


# Comments, tags, elements

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
_NAME_BYTES, _NAME_STARTS = _packed(_NAMES)
_IS_SELF_CLOSING = np.array([name in _SELF_CLOSING for name in _NAMES])
_IS_UNWRAPPED = np.array([name in _UNWRAPPED for name in _NAMES])
_BY_LETTER = np.zeros((26, len(_NAMES)), np.int64)
_NUM_BY_LETTER = np.zeros(26, np.int64)
for _number, _name in enumerate(_NAMES):
    _letter = _name[0] - ord("a")
    _BY_LETTER[_letter, _NUM_BY_LETTER[_letter]] = _number
    _NUM_BY_LETTER[_letter] += 1


@kernel
def _skip_space(model, data, at):  # type: ignore[no-untyped-def]
    while at < data.size:
        held, size = character(model, data, at)
        if not held & SPACE:
            break
        at += size
    return at


@kernel
def _name_at(model, data, at):  # type: ignore[no-untyped-def]
    """The number of the element whose name is the word at byte `at`, and where the name ends; -1 for no such."""
    if at >= data.size:
        return -1, at
    first, _size = _letter_at(data, at)
    letter = first - ord("a")
    if letter < 0 or letter >= 26:
        return -1, at
    for i in range(_NUM_BY_LETTER[letter]):
        number = _BY_LETTER[letter, i]
        end = _match(data, at, _NAME_BYTES, _NAME_STARTS, number)
        if end >= 0 and (end == data.size or not character(model, data, end)[0] & _WORD):
            return number, end
    return -1, at


@kernel
def _seek(data, byte, found, at):  # type: ignore[no-untyped-def]
    """The first such byte from `at` on (the text's end if none), `found` being what an earlier search gave."""
    if found < at:
        found = at
        while found < data.size and data[found] != byte:
            found += 1
    return found


@kernel
def drop_tags(model, data, out):  # type: ignore[no-untyped-def]
    """Drops comments, self-closing tags, and the tags (not what is between them) of formatting elements."""
    size = data.size
    written = 0
    copied = 0
    comment_end = 0  # of each pattern, where its last match ends: the next one starts behind
    ends = np.zeros(_NAME_STARTS.size, np.int64)
    close_comment = -1
    greater = -1
    solidus_of = -1  # the `>` that `solidus` belongs to: the `/` before it, and white space in between
    solidus = -1
    at = 0
    while at < size:
        if data[at] != _LESS:
            at += 1
            continue
        start = at
        at += 1
        end = -1
        if at < size and data[at] == _EXCLAMATION:
            if at + 2 < size and data[at + 1] == _HYPHEN and data[at + 2] == _HYPHEN and start >= comment_end:
                if close_comment < at + 3:
                    close_comment = at + 3
                    while close_comment + 2 < size and not (
                        data[close_comment] == _HYPHEN
                        and data[close_comment + 1] == _HYPHEN
                        and data[close_comment + 2] == _GREATER
                    ):
                        close_comment += 1
                if close_comment + 2 < size:
                    end = comment_end = close_comment + 3
        elif at < size and data[at] == _SLASH:
            number, name_end = _name_at(model, data, _skip_space(model, data, at + 1))
            if number >= 0 and _IS_UNWRAPPED[number] and name_end < size and data[name_end] == _GREATER:
                end = name_end + 1
        else:
            first = _skip_space(model, data, at)
            number, name_end = _name_at(model, data, first)
            if number >= 0 and start >= ends[number] and (_IS_SELF_CLOSING[number] or _IS_UNWRAPPED[number]):
                greater = _seek(data, _GREATER, greater, name_end)
                if greater < size:
                    if _IS_UNWRAPPED[number]:
                        if first == at:
                            end = ends[number] = greater + 1
                    else:
                        if solidus_of != greater:
                            solidus_of = greater
                            before = greater
                            while before > 0:
                                place = character_before(data, before, 0)
                                if not character(model, data, place)[0] & SPACE:
                                    break
                                before = place
                            solidus = before - 1 if before > 0 and data[before - 1] == _SLASH else -1
                        if solidus >= name_end:
                            end = ends[number] = greater + 1
        if end >= 0 and start >= copied:
            while copied < start:
                out[written] = data[copied]
                written += 1
                copied += 1
            copied = end
    if copied == 0:
        return -1
    while copied < size:
        out[written] = data[copied]
        written += 1
        copied += 1
    return written


@kernel
def opened_elements(model, data):  # type: ignore[no-untyped-def]
    """Which of the elements to drop are opened in the text: a bit for each."""
    found = 0
    for at in range(data.size):
        if data[at] == _LESS:
            number, _end = _name_at(model, data, _skip_space(model, data, at + 1))
            if 0 <= number < NUM_DROPPED:
                found |= 1 << number
    return found


@kernel
def drop_element(model, data, number, out):  # type: ignore[no-untyped-def]
    """Drops the elements of one name with what is between their tags.

    An opening tag has no `/` in it; in a closing one white space may stand around the `/`.
    """
    size = data.size
    most = 0
    for at in range(size):
        most += data[at] == _LESS
    opens = np.empty((most, 2), np.int64)
    closes = np.empty((most, 2), np.int64)
    num_opens = num_closes = 0
    stop = -1  # the next `>` or `/`
    open_end = 0
    for start in range(size):
        if data[start] != _LESS:
            continue
        at = _skip_space(model, data, start + 1)
        if at < size and data[at] == _SLASH:
            name, end = _name_at(model, data, _skip_space(model, data, at + 1))
            if name == number and end < size and data[end] == _GREATER:
                closes[num_closes, 0] = start
                closes[num_closes, 1] = end + 1
                num_closes += 1
        elif start >= open_end:
            name, end = _name_at(model, data, at)
            if name == number:
                if stop < end:
                    stop = end
                    while stop < size and data[stop] not in (_GREATER, _SLASH):
                        stop += 1
                if stop < size and data[stop] == _GREATER:
                    opens[num_opens, 0] = start
                    opens[num_opens, 1] = open_end = stop + 1
                    num_opens += 1
    spans = nested_spans(opens[:num_opens], closes[:num_closes])
    if spans.shape[0] == 0:
        return -1
    return drop_spans(data, spans, out)


# Entities

ODD_DIGITS = -2
_ENTITIES = sorted((name.encode(), code) for name, code in html.entities.name2codepoint.items())
_ENTITY_BYTES, _ENTITY_STARTS = _packed(tuple(name for name, _ in _ENTITIES))
_ENTITY_CODES = np.array([code for _, code in _ENTITIES], np.int64)
_LONGEST_ENTITY = max(len(name) for name, _ in _ENTITIES)


@kernel
def _entity(data, start, end):  # type: ignore[no-untyped-def]
    """The code point that a name stands for, or -1."""
    low, high = 0, _ENTITY_CODES.size
    while low < high:
        middle = (low + high) >> 1
        first = _ENTITY_STARTS[middle]
        length = _ENTITY_STARTS[middle + 1] - first
        order = 0
        for i in range(min(length, end - start)):
            if data[start + i] != _ENTITY_BYTES[first + i]:
                order = -1 if data[start + i] < _ENTITY_BYTES[first + i] else 1
                break
        if order == 0:
            order = end - start - length
        if order == 0:
            return _ENTITY_CODES[middle]
        if order < 0:
            high = middle
        else:
            low = middle + 1
    return -1


@kernel
def _reference(data, start, end):  # type: ignore[no-untyped-def]
    """The code point that the digits of a numeric reference stand for, or -1."""
    base = 10
    if data[start] == ord("x"):
        base = 16
        start += 1
    if start == end:
        return -1
    code = 0
    for at in range(start, end):
        byte = _lower(data[at])
        if ord("0") <= byte <= ord("9"):
            code = code * base + byte - ord("0")
        elif base == 16 and ord("a") <= byte <= ord("f"):
            code = code * base + byte - ord("a") + 10
        else:
            return -1
        if code > 0x10FFFF:
            return -1
    # Half of a surrogate pair is in no UTF-8: WikiExtractor dies of it.
    return -1 if 0xD800 <= code < 0xE000 else code


@kernel
def _write_code(code, out, written):  # type: ignore[no-untyped-def]
    if code < 0x80:
        out[written] = code
        return written + 1
    if code < 0x800:
        out[written] = 0xC0 | code >> 6
        out[written + 1] = 0x80 | code & 0x3F
        return written + 2
    if code < 0x10000:
        out[written] = 0xE0 | code >> 12
        out[written + 1] = 0x80 | code >> 6 & 0x3F
        out[written + 2] = 0x80 | code & 0x3F
        return written + 3
    out[written] = 0xF0 | code >> 18
    out[written + 1] = 0x80 | code >> 12 & 0x3F
    out[written + 2] = 0x80 | code >> 6 & 0x3F
    out[written + 3] = 0x80 | code & 0x3F
    return written + 4


@kernel
def resolve_references(data, out):  # type: ignore[no-untyped-def]
    """Puts characters in place of HTML 4's named references and of numeric ones; `ODD_DIGITS` if it meets such.

    Python's int, and so WikiExtractor, takes digits of all scripts, and `_` between them.
    """
    size = data.size
    written = 0
    at = 0
    found = False
    while at < size:
        byte = data[at]
        if byte == _AMPERSAND:
            first = at + 1
            numeric = first < size and data[first] == _HASH_SIGN
            first += numeric
            end = first
            while end < size and (ord("a") <= _lower(data[end]) <= ord("z") or ord("0") <= data[end] <= ord("9")):
                end += 1
            if numeric and end < size and (data[end] >= 0x80 or data[end] == ord("_")):
                return ODD_DIGITS
            if end < size and end > first and data[end] == _SEMICOLON:
                code = _reference(data, first, end) if numeric else _entity(data, first, end)
                if code >= 0:
                    written = _write_code(code, out, written)
                    at = end + 1
                    found = True
                    continue
        out[written] = byte
        written += 1
        at += 1
    return written if found else -1


# The last steps


@kernel
def tidy_spaces(data, out):  # type: ignore[no-untyped-def]
    """Makes guillemets of `<<` and `>>`, blanks of tabs, one blank of several, and three full stops of more."""
    written = 0
    stops = 0
    second = -1
    for at in range(data.size):
        byte = data[at]
        if at == second:
            continue
        if byte in (_LESS, _GREATER) and at + 1 < data.size and data[at + 1] == byte:
            out[written] = 0xC2  # U+00AB, U+00BB
            written += 1
            byte = np.uint8(0xAB if byte == _LESS else 0xBB)
            second = at + 1
        if byte in (_BLANK, _TAB):
            if written > 0 and out[written - 1] == _BLANK:
                continue
            byte = np.uint8(_BLANK)
        if byte == _STOP:
            stops += 1
            if stops > 3:
                continue
        else:
            stops = 0
        out[written] = byte
        written += 1
    return written


@kernel
def tidy_lines(model, data, out):  # type: ignore[no-untyped-def]
    """Drops lines that hold no word character (of neighbouring ones, and of empty lines, every other).

    Then makes one comma of two, and a full stop of a comma and a full stop.
    """
    size = data.size
    written = 0
    at = 0
    while at < size:
        out[written] = data[at]
        written += 1
        if data[at] != _NEWLINE:
            at += 1
            continue
        end = at + 1
        while end < size:
            held, length = character(model, data, end)
            if held & _WORD or (data[end] == _NEWLINE and end > at + 1):
                break
            end += length
        if end < size and end > at + 1 and data[end] == _NEWLINE:
            at = end + 1
        else:
            at += 1
    return _tidy_commas(out, written)


@kernel
def _tidy_commas(text, size):  # type: ignore[no-untyped-def]
    written = 0
    commas = 0
    for at in range(size):
        byte = text[at]
        if byte == _COMMA:
            commas += 1
            if commas & 1:
                text[written] = byte
                written += 1
            continue
        if commas > 0 and byte == _STOP:
            written -= 1
        commas = 0
        text[written] = byte
        written += 1
    return written


@kernel
def _is_left_over(data, start, end):  # type: ignore[no-untyped-def]
    """Whether a line is what a table, a note in brackets, or dropped text leaves behind."""
    if data[start] in (_OPEN_BRACE, _PIPE) or data[end - 1] == _CLOSE_BRACE:
        return True
    if data[start] == ord("(") and data[end - 1] == ord(")"):
        return True
    while start < end and data[start] in (_STOP, _HYPHEN):
        start += 1
    return start == end


@kernel
def _is_heading(data, start, end):  # type: ignore[no-untyped-def]
    if end - start < 4 or data[start] != _EQUALS or data[start + 1] != _EQUALS:
        return False
    at = start + 2
    while at + 1 < end and not (data[at] == _EQUALS and data[at + 1] == _EQUALS):
        at += 1
    return at + 1 < end


@kernel
def compact(data, out):  # type: ignore[no-untyped-def]
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
        while end < size and data[end] != _NEWLINE:
            end += 1
        line, after = start, end
        start = end + 1
        keep = False
        if line == after:
            if in_list or not last_is_empty:
                keep = True
            in_list = False
        elif _is_heading(data, line, after):
            after_heading = True
            in_list = False
        elif after - line >= 2 and data[line] == _PLUS and data[line + 1] == _PLUS:
            line += 2
            for _ in range(2):
                if after > line:
                    after = character_before(data, after, line)
            if after > line:
                for at in range(line, after):
                    out[written] = data[at]
                    written += 1
                if data[after - 1] not in (_EXCLAMATION, _QUESTION):
                    out[written] = _STOP
                    written += 1
                out[written] = _NEWLINE
                written += 1
                last_is_empty = False
        elif data[line] == _COLON:
            pass
        elif data[line] in (ord("*"), _HASH_SIGN, _SEMICOLON):
            in_list = True
        elif in_list:
            in_list = False
            keep = True
        elif _is_left_over(data, line, after):
            pass
        elif after_heading:
            after_heading = False
            keep = True
        else:
            keep = data[line] != _BLANK
        if keep:
            for at in range(line, after):
                out[written] = data[at]
                written += 1
            out[written] = _NEWLINE
            written += 1
            last_is_empty = line == after
    return written


def warm_up() -> None:
    """Compiles what this module's callers use."""
    model = np.zeros(ASCII + 256, np.int32)
    # Texts come out of bytes objects, so that they are read-only.
    text = np.frombuffer(b"{{[[", np.uint8)
    out = np.empty(8, np.uint8)
    drop_spans(text, template_spans(model, text), out)
    drop_pairs(text, ord("{"), ord("|"), out)
    replace_quotes(text, out)
    replace_links(model, text, out)
    replace_addresses(model, text, out)
    drop_tags(model, text, out)
    opened_elements(model, text)
    drop_element(model, text, 0, out)
    resolve_references(text, out)
    tidy_spaces(text, out)
    tidy_lines(model, text, out)
    compact(text, out)
