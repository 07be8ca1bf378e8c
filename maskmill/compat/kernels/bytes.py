"""Functions that the kernels of WikiExtractor's text share: comparing names in any case, copying, references.

The modules of this folder hold WikiExtractor's steps on the bytes of a page: what it drops, in its order, with its idea
of what is balanced. Each step takes the text (uint8, UTF-8) and writes what is left to `out`, which is at least as
long; it returns how many bytes it wrote, or NOTHING_TO_DO and leaves `out` untouched. All take time linear in the text:
a search that found nothing is not made again.

The text is the page's own, with the XML's references resolved. WikiExtractor works on the references and resolves them
between its links and its tags; the difference only shows in the double quotes that italics become, and in the tag
around a failed calculation. QUOTE_MARK, LESS_MARK and GREATER_MARK, three control characters that XML does not allow,
stand for these characters until references are resolved.

`model` has the character tables, laid out as maskmill/characters/kernels/characters.py says, of the Unicode version
of Python 3.7.
"""

import html.entities
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from maskmill.characters.kernels.characters import SPACE, character, put_code_point
from maskmill.kernels import ascii, kernel, lean_kernel

NOTHING_TO_DO = -1
ODD_DIGITS = -2  # of resolve_references

QUOTE_MARK, LESS_MARK, GREATER_MARK = 1, 2, 3


def packed(names: Iterable[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Name one after another, uint8; and where each starts and the last one ends, int64 [names + 1]."""
    names = list(names)
    starts = np.concatenate(([0], np.cumsum([len(name) for name in names])))
    return np.frombuffer(b"".join(names), np.uint8).copy(), starts


_ENTITIES = sorted((name.encode(), code) for name, code in html.entities.name2codepoint.items())
_ENTITY_BYTES, _ENTITY_STARTS = packed(tuple(name for name, _ in _ENTITIES))
_ENTITY_CODES = np.array([code for _, code in _ENTITIES], np.int64)


@lean_kernel
def lower(byte):
    """Return a byte, in lower case if it is an ASCII letter."""
    return byte | ascii.LOWER_CASE if ascii.UPPER_A <= byte <= ascii.UPPER_Z else byte


@lean_kernel
def copy(data, start, end, out, written):
    """Copy bytes `start:end` after what is written to `out`; return how many bytes are written then."""
    for at in range(start, end):
        out[written] = data[at]
        written += 1
    return written


@lean_kernel
def stands_at(data, at, word):
    """Return whether the bytes `word` stand at byte `at`."""
    if at + word.size > data.size:
        return False
    for i in range(word.size):
        if data[at + i] != word[i]:
            return False
    return True


@lean_kernel
def letter_at(data, at):
    """Return the character at byte `at` as Python's patterns compare it in either case, and its size; 0 for others."""
    byte = data[at]
    if byte < 0x80:
        return lower(byte), 1
    if at + 1 < data.size:
        if byte == 0xC4 and data[at + 1] in (0xB0, 0xB1):  # U+0130, U+0131
            return ord("i"), 2
        if byte == 0xC5 and data[at + 1] == 0xBF:  # U+017F
            return ord("s"), 2
        if byte == 0xE2 and at + 2 < data.size and data[at + 1] == 0x84 and data[at + 2] == 0xAA:  # U+212A
            return ord("k"), 3
    return 0, 1


@lean_kernel
def match(data, at, names, starts, number):
    """Return where the packed name of this number ends that starts at byte `at`, in whatever case; -1 if it is not
    there.
    """
    for i in range(starts[number], starts[number + 1]):
        if at >= data.size:
            return -1
        letter, size = letter_at(data, at)
        if letter != names[i]:
            return -1
        at += size
    return at


@lean_kernel
def skip_space(model, data, at):
    """Return where the white space ends that starts at byte `at`."""
    while at < data.size:
        properties, size = character(model, data, at)
        if not properties & SPACE:
            break
        at += size
    return at


@kernel
def _entity(data, start, end):
    """Return the code point that a name stands for, or -1."""
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
def _reference(data, start, end):
    """Return the code point that the digits of a numeric reference stand for, or -1."""
    base = 10
    if data[start] == ascii.LOWER_X:
        base = 16
        start += 1
    if start == end:
        return -1
    code = 0
    for at in range(start, end):
        byte = lower(data[at])
        if ascii.ZERO <= byte <= ascii.NINE:
            code = code * base + byte - ascii.ZERO
        elif base == 16 and ascii.LOWER_A <= byte <= ascii.LOWER_F:
            code = code * base + byte - ascii.LOWER_A + 10
        else:
            return -1
        if code > 0x10FFFF:
            return -1
    # Half of a surrogate pair is in no UTF-8: WikiExtractor dies of it.
    return -1 if 0xD800 <= code < 0xE000 else code


@kernel
def resolve_references(data, out):
    """Put characters in place of HTML 4's named references and of numeric ones; `ODD_DIGITS` if it meets such.

    Python's int, and so WikiExtractor, takes digits of all scripts, and `_` between them.
    """
    size = data.size
    written = 0
    at = 0
    has_references = False
    while at < size:
        byte = data[at]
        if byte == ascii.AMPERSAND:
            first = at + 1
            numeric = first < size and data[first] == ascii.HASH
            first += numeric
            end = first
            while end < size and (
                ascii.LOWER_A <= lower(data[end]) <= ascii.LOWER_Z or ascii.ZERO <= data[end] <= ascii.NINE
            ):
                end += 1
            if numeric and end < size and (data[end] >= 0x80 or data[end] == ascii.UNDERSCORE):
                return ODD_DIGITS
            if end < size and end > first and data[end] == ascii.SEMICOLON:
                code = _reference(data, first, end) if numeric else _entity(data, first, end)
                if code >= 0:
                    written = put_code_point(out, written, code)
                    at = end + 1
                    has_references = True
                    continue
        out[written] = byte
        written += 1
        at += 1
    return written if has_references else NOTHING_TO_DO


def warm_up() -> None:
    """Compile what this module's callers use."""
    # Texts come out of bytes objects, so that they are read-only.
    resolve_references(np.frombuffer(b"{{[[", np.uint8), np.empty(8, np.uint8))
