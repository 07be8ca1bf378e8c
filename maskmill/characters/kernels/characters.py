"""Kernels for the characters of UTF-8 bytes: validity, code points and back, properties.

Layout. The tables are one int32 array. The PAGE entries of a code point's page start at `tables[PAGES + (code >> 8)]`;
page 0 starts at ASCII. An entry is `delta << DELTA_SHIFT | properties`: the distance to the lower-case letter, and the
bits SPACE to CHECK. The first PAGES fields are free for modules that append words to the array.
"""

import numpy as np

from maskmill.kernels import kernel

# Properties of a character.
SPACE = 1  # \s of the regular expressions
STRIPPED = 2  # str.strip removes it
NON_WORD = 4  # ends a word (_re_non_word_chars)
CLOSER = 8  # may be moved back to the sentence before it (re_boundary_realignment)
NO_WORD_START = 16  # does not start a word (outside _re_word_start)
ALPHA = 32  # [^\W\d]
DIGIT = 64
UPPER = 128
LOWER = 256
CASED = 512
IGNORABLE = 1024
CHECK = 2048  # hyphen, full stop, comma: the next characters decide whether the word ends there
DELTA_SHIFT = 12

PAGE = 256  # code points
PAGES = 16
ASCII = PAGES + 0x110000 // PAGE

# First bytes of a character: of 2 bytes from 0xC2 on (0xC0 and 0xC1 would be overlong), of 3 and of 4 from these on.
_ASCII_END = 0x80
_LEAD_2, _LEAD_3, _LEAD_4, _LEAD_END = 0xC2, 0xE0, 0xF0, 0xF5
# A byte that continues a character has the two bits 10 and six bits of the code point.
_KIND, _CONTINUES, _BITS = 0xC0, 0x80, 0x3F
_HIGH_BITS = np.uint64(0x8080808080808080)


@kernel
def first_invalid(data, words):
    """Return the index of the first character in `data` that is not UTF-8 (RFC 3629), or -1.

    Args:
      data: uint8[n].
      words: the same memory as uint64[n // 8].
    """
    at = 0
    while at < data.size:
        if at & 7 == 0:
            word = at >> 3
            while word < words.size and words[word] & _HIGH_BITS == 0:
                word += 1
            at = word << 3
            if at >= data.size:
                break
        lead = data[at]
        if lead < _ASCII_END:
            at += 1
            continue
        if lead < _LEAD_2 or lead >= _LEAD_END:
            return at
        size = 2 if lead < _LEAD_3 else 3 if lead < _LEAD_4 else 4
        if at + size > data.size or not _may_follow(lead, data[at + 1]):
            return at
        for k in range(2, size):
            if data[at + k] & _KIND != _CONTINUES:
                return at
        at += size
    return -1


@kernel
def _may_follow(lead, second):
    """Return whether a character may start with these two bytes: not if it is overlong, a surrogate or above
    U+10FFFF.
    """
    if lead == 0xE0:
        return 0xA0 <= second <= 0xBF
    if lead == 0xED:
        return 0x80 <= second <= 0x9F
    if lead == 0xF0:
        return 0x90 <= second <= 0xBF
    if lead == 0xF4:
        return 0x80 <= second <= 0x8F
    return second & _KIND == _CONTINUES


@kernel
def code_at(data, at):
    """Return the code point that starts at byte `at` of valid UTF-8, and its length in bytes."""
    lead = np.int64(data[at])
    if lead < _ASCII_END:
        return lead, 1
    second = np.int64(data[at + 1]) & _BITS
    if lead < _LEAD_3:
        return (lead & 0x1F) << 6 | second, 2
    third = np.int64(data[at + 2]) & _BITS
    if lead < _LEAD_4:
        return (lead & 0x0F) << 12 | second << 6 | third, 3
    return (lead & 0x07) << 18 | second << 12 | third << 6 | np.int64(data[at + 3]) & _BITS, 4


@kernel
def put_code_point(out, size, code):
    """Write a code point as UTF-8 after out[:size] and return the new size."""
    if code < _ASCII_END:
        out[size] = code
        return size + 1
    if code < 0x800:
        out[size] = 0xC0 | (code >> 6)
        out[size + 1] = _CONTINUES | (code & _BITS)
        return size + 2
    if code < 0x10000:
        out[size] = 0xE0 | (code >> 12)
        out[size + 1] = _CONTINUES | ((code >> 6) & _BITS)
        out[size + 2] = _CONTINUES | (code & _BITS)
        return size + 3
    out[size] = 0xF0 | (code >> 18)
    out[size + 1] = _CONTINUES | ((code >> 12) & _BITS)
    out[size + 2] = _CONTINUES | ((code >> 6) & _BITS)
    out[size + 3] = _CONTINUES | (code & _BITS)
    return size + 4


@kernel
def entry(model, code):
    """Return the entry of a code point in the tables."""
    return model[model[PAGES + (code >> 8)] + (code & 255)]


@kernel
def character(model, data, at):
    """Return the entry of the character at byte `at`, and its length in bytes."""
    lead = data[at]
    if lead < _ASCII_END:
        return model[ASCII + lead], 1
    code, size = code_at(data, at)
    return entry(model, code), size


@kernel
def character_before(data, at, begin):
    """Return the index of the character that ends in front of byte `at`; it starts at `begin` or after it."""
    at -= 1
    while at > begin and data[at] & _KIND == _CONTINUES:
        at -= 1
    return at


@kernel
def stripped_end(model, data, begin, end):
    """Return the end of bytes `begin:end` without their trailing white space (str.rstrip)."""
    while end > begin:
        at = character_before(data, end, begin)
        if not character(model, data, at)[0] & STRIPPED:
            break
        end = at
    return end


@kernel
def stripped_start(model, data, begin, end):
    """Return the start of bytes `begin:end` without their leading white space (str.lstrip)."""
    while begin < end:
        properties, size = character(model, data, begin)
        if not properties & STRIPPED:
            break
        begin += size
    return begin


def warm_up() -> None:
    """Compile the kernel that other modules call from Python."""
    text = np.frombuffer(b"One. Two.", np.uint8)
    first_invalid(text, text[:8].view(np.uint64))
