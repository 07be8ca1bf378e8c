"""The characters of counted words: how often each begins a word and goes on one, and words as characters.

A table of characters has a row for those that begin a word (BEGINNING) and one for those that go on one (INSIDE), and a
column for each code point. Words are UTF-8.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.characters.kernels.characters import code_at
from maskmill.kernels import kernel

BEGINNING = 0
INSIDE = 1
CODE_POINTS = 0x110000
MISSING = -1  # a character that is not in the alphabet


@kernel
def count_characters(text, ends, counts):
    """Return how often each character occurs: int64[2, CODE_POINTS]. The arguments are those of WordCounts."""
    table = np.zeros((2, CODE_POINTS), np.int64)
    at = np.int64(0)
    for word in range(len(ends)):
        row = BEGINNING
        while at < ends[word]:
            character, size = code_at(text, at)
            table[row, character] += counts[word]
            row = INSIDE
            at += size
    return table


@kernel
def words_as_characters(text, ends, ids, symbols, weights):
    """Write the piece of each character to `symbols`, where the character begins.

    ids: int32[2, CODE_POINTS], the pieces of the characters, or MISSING. weights: int64[words], set to 0 for each word
    with a character that is missing.
    """
    at = np.int64(0)
    for word in range(len(ends)):
        row = BEGINNING
        while at < ends[word]:
            character, size = code_at(text, at)
            symbols[at] = ids[row, character]
            if symbols[at] == MISSING:
                symbols[at] = 0
                weights[word] = 0
            row = INSIDE
            at += size


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    text = np.full(1, ord("a"), np.uint8)
    ends = np.ones(1, np.int64)
    counts = count_characters(text, ends, ends)
    words_as_characters(text, ends, counts.astype(np.int32), np.zeros(1, np.int32), ends.copy())
