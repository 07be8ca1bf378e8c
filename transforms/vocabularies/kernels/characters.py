"""The characters of counted words: how often each begins a word and goes on one, and words as characters.

A table of characters has a row for those that begin a word (BEGINNING) and one for those that go on one (INSIDE), and a
column for each code point. Words are UTF-8.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel

BEGINNING = 0
INSIDE = 1
CODE_POINTS = 0x110000
MISSING = -1  # a character that is not in the alphabet


@kernel
def _character(text, at):
    """The code point at a byte of valid UTF-8, and how many bytes it has."""
    lead = np.int64(text[at])
    if lead < 0x80:
        return lead, np.int64(1)
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | text[at + 1] & 0x3F, np.int64(2)
    if lead < 0xF0:
        return (lead & 0xF) << 12 | (text[at + 1] & 0x3F) << 6 | text[at + 2] & 0x3F, np.int64(3)
    low = (text[at + 1] & 0x3F) << 12 | (text[at + 2] & 0x3F) << 6 | text[at + 3] & 0x3F
    return (lead & 0x7) << 18 | low, np.int64(4)


@kernel
def count_characters(text, ends, counts):
    """How often each character occurs: int64[2, CODE_POINTS]. The arguments are those of WordCounts."""
    table = np.zeros((2, CODE_POINTS), np.int64)
    at = np.int64(0)
    for word in range(len(ends)):
        row = BEGINNING
        while at < ends[word]:
            character, size = _character(text, at)
            table[row, character] += counts[word]
            row = INSIDE
            at += size
    return table


@kernel
def words_as_characters(text, ends, ids, symbols, weights):
    """Writes the piece of each character to `symbols`, where the character begins.

    ids: int32[2, CODE_POINTS], the pieces of the characters, or MISSING. weights: int64[words], set to 0 for each word
    with a character that is missing.
    """
    at = np.int64(0)
    for word in range(len(ends)):
        row = BEGINNING
        while at < ends[word]:
            character, size = _character(text, at)
            symbols[at] = ids[row, character]
            if symbols[at] == MISSING:
                symbols[at] = 0
                weights[word] = 0
            row = INSIDE
            at += size


def warm_up() -> None:
    """Compiles the entry kernels of this module."""
    text = np.full(1, ord("a"), np.uint8)
    ends = np.ones(1, np.int64)
    counts = count_characters(text, ends, ends)
    words_as_characters(text, ends, counts.astype(np.int32), np.zeros(1, np.int32), ends.copy())
