"""WikiExtractor's text: references to characters. See bytes.py."""

import html.entities

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.ascii import (
    AMPERSAND,
    HASH,
    LOWER_A,
    LOWER_F,
    LOWER_X,
    LOWER_Z,
    NINE,
    SEMICOLON,
    UNDERSCORE,
    ZERO,
)
from transforms.compat.kernels.bytes import NOTHING_TO_DO, lower, packed

ODD_DIGITS = -2
_ENTITIES = sorted((name.encode(), code) for name, code in html.entities.name2codepoint.items())
_ENTITY_BYTES, _ENTITY_STARTS = packed(tuple(name for name, _ in _ENTITIES))
_ENTITY_CODES = np.array([code for _, code in _ENTITIES], np.int64)


@kernel
def _entity(data, start, end):
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
def _reference(data, start, end):
    """The code point that the digits of a numeric reference stand for, or -1."""
    base = 10
    if data[start] == LOWER_X:
        base = 16
        start += 1
    if start == end:
        return -1
    code = 0
    for at in range(start, end):
        byte = lower(data[at])
        if ZERO <= byte <= NINE:
            code = code * base + byte - ZERO
        elif base == 16 and LOWER_A <= byte <= LOWER_F:
            code = code * base + byte - LOWER_A + 10
        else:
            return -1
        if code > 0x10FFFF:
            return -1
    # Half of a surrogate pair is in no UTF-8: WikiExtractor dies of it.
    return -1 if 0xD800 <= code < 0xE000 else code


@kernel
def _write_code(code, out, written):
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
def resolve_references(data, out):
    """Puts characters in place of HTML 4's named references and of numeric ones; `ODD_DIGITS` if it meets such.

    Python's int, and so WikiExtractor, takes digits of all scripts, and `_` between them.
    """
    size = data.size
    written = 0
    at = 0
    has_references = False
    while at < size:
        byte = data[at]
        if byte == AMPERSAND:
            first = at + 1
            numeric = first < size and data[first] == HASH
            first += numeric
            end = first
            while end < size and (LOWER_A <= lower(data[end]) <= LOWER_Z or ZERO <= data[end] <= NINE):
                end += 1
            if numeric and end < size and (data[end] >= 0x80 or data[end] == UNDERSCORE):
                return ODD_DIGITS
            if end < size and end > first and data[end] == SEMICOLON:
                code = _reference(data, first, end) if numeric else _entity(data, first, end)
                if code >= 0:
                    written = _write_code(code, out, written)
                    at = end + 1
                    has_references = True
                    continue
        out[written] = byte
        written += 1
        at += 1
    return written if has_references else NOTHING_TO_DO


def warm_up() -> None:
    """Compiles what this module's callers use."""
    # Texts come out of bytes objects, so that they are read-only.
    resolve_references(np.frombuffer(b"{{[[", np.uint8), np.empty(8, np.uint8))
