"""Characters of UTF-8 bytes: whether the bytes are valid, code points, and what each character is.

Layout. The tables are one int32 array. `tables[PAGES + (code >> 8)]` is where the 256 entries of a code point's page
start; page 0 starts at `ASCII`. An entry is `delta << DELTA_SHIFT | properties`: the distance to the lower-case letter,
and the bits `SPACE` to `CHECK`. The first `PAGES` fields belong to whoever adds words to the array.
"""

import numpy as np

from transforms.kernels import kernel

# What a character is.
SPACE = 1  # \s of the regular expressions
STRIPPED = 2  # str.strip takes it off
NON_WORD = 4  # ends a word (_re_non_word_chars)
CLOSER = 8  # may be moved back to the sentence before it (re_boundary_realignment)
NO_WORD_START = 16  # does not start a word (outside _re_word_start)
ALPHA = 32  # [^\W\d]
DIGIT = 64
UPPER = 128
LOWER = 256
CASED = 512
IGNORABLE = 1024
CHECK = 2048  # hyphen, full stop, comma: what follows decides whether the word ends there
DELTA_SHIFT = 12

PAGES = 16
ASCII = PAGES + 0x1100

_HIGH_BITS = np.uint64(0x8080808080808080)


@kernel
def first_invalid(data, words):  # type: ignore[no-untyped-def]
    """The place of the first byte of `data` that is not UTF-8 (RFC 3629), or -1.

    `words` is the same memory as uint64, without the last bytes that do not fill one.
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
        if lead < 0x80:
            at += 1
            continue
        low, high = 0x80, 0xBF
        if lead < 0xC2:
            return at
        if lead < 0xE0:
            size = 2
        elif lead < 0xF0:
            size = 3
            if lead == 0xE0:
                low = 0xA0
            elif lead == 0xED:
                high = 0x9F
        elif lead < 0xF5:
            size = 4
            if lead == 0xF0:
                low = 0x90
            elif lead == 0xF4:
                high = 0x8F
        else:
            return at
        if at + size > data.size or not low <= data[at + 1] <= high:
            return at
        for follow in range(2, size):
            if data[at + follow] & 0xC0 != 0x80:
                return at
        at += size
    return -1


@kernel
def code_at(data, at):  # type: ignore[no-untyped-def]
    """The code point that starts at byte `at`, and its length in bytes."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return lead, 1
    second = np.int64(data[at + 1]) & 0x3F
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second, 2
    third = np.int64(data[at + 2]) & 0x3F
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | second << 6 | third, 3
    return (lead & 0x07) << 18 | second << 12 | third << 6 | np.int64(data[at + 3]) & 0x3F, 4


@kernel
def entry(model, code):  # type: ignore[no-untyped-def]
    """The entry of a code point."""
    return model[model[PAGES + (code >> 8)] + (code & 255)]


@kernel
def character(model, data, at):  # type: ignore[no-untyped-def]
    """The properties of the character at byte `at`, and its length in bytes."""
    lead = data[at]
    if lead < 0x80:
        return model[ASCII + lead], 1
    code, size = code_at(data, at)
    return entry(model, code), size


@kernel
def character_before(data, at, begin):  # type: ignore[no-untyped-def]
    """Where the character starts that ends at byte `at`."""
    at -= 1
    while at > begin and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


@kernel
def stripped_end(model, data, begin, end):  # type: ignore[no-untyped-def]
    """Where bytes `begin:end` end without their trailing white space (str.rstrip)."""
    while end > begin:
        at = character_before(data, end, begin)
        if not character(model, data, at)[0] & STRIPPED:
            break
        end = at
    return end


@kernel
def stripped_start(model, data, begin, end):  # type: ignore[no-untyped-def]
    """Where bytes `begin:end` start without their leading white space (str.lstrip)."""
    while begin < end:
        held, size = character(model, data, begin)
        if not held & STRIPPED:
            break
        begin += size
    return begin


def warm_up() -> None:
    """Compiles the entry kernel for the types that callers use."""
    text = np.frombuffer(b"One. Two.", np.uint8)
    first_invalid(text, text[:8].view(np.uint64))
