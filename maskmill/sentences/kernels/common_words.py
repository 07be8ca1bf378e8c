"""Counts of a text's words that are among the commonest of a language, by which its language is detected.

A model is Punkt's (kernels/punkt.py), whose words are those of all languages; the bits of a word are its row in
`masks`, counted from 1. `masks`, uint64 [rows], has a bit for each language that the word is common in. `groups`, int64
[MOST_LANGUAGES], is equal for languages that have the same rules, so that they are no rivals.
"""

from typing import NamedTuple

import numpy as np

from maskmill.characters.kernels.characters import ALPHA, ASCII, character, code_at
from maskmill.kernels import kernel
from maskmill.sentences.kernels.punkt import LONGEST_WORD
from maskmill.sentences.kernels.words import word_bits, word_end

MOST_LANGUAGES = 64
# A rival whose words are at most this part of the best one's is none.
_RIVAL_PART = 4
# Scripts without spaces between words: Thai to Myanmar, Khmer, and those of East Asia but for Korean.
_FIRST_SOUTHERN, _LAST_SOUTHERN, _FIRST_KHMER, _LAST_KHMER = 0xE00, 0x109F, 0x1780, 0x17FF
_FIRST_EASTERN, _FIRST_HANGUL, _LAST_HANGUL = 0x2E80, 0xAC00, 0xD7A3
_FEW_WORDS = 4  # that no other language has, after which it is not asked which language a text is in
_BYTES_OF_ONE = 3  # of a character of those scripts, which counts as a word


class Found(NamedTuple):
    """The evidence of a text's words for its language.

    words: their number. language: the number of that in which most are common, -1 for none. common, distinct: how many
    are, and how many different ones. own: those of them that are not common in the language that is the nearest rival.
    other: words that are common in that one alone.
    """

    words: int
    language: int
    common: int
    distinct: int
    own: int
    other: int


@kernel
def _is_without_spaces(code):
    return (
        _FIRST_SOUTHERN <= code <= _LAST_SOUTHERN
        or _FIRST_KHMER <= code <= _LAST_KHMER
        or (code >= _FIRST_EASTERN and not _FIRST_HANGUL <= code <= _LAST_HANGUL)
    )


@kernel
def _common_words(model, data, counts, rows):
    """Count each common word of a text in `counts`, by its row, and write the rows to `rows`: (words, rows)."""
    scratch = np.empty(model[LONGEST_WORD] + 2, np.int32)
    words = 0
    distinct = 0
    at = 0
    while at < data.size:
        properties, size = character(model, data, at)
        if not properties & ALPHA:
            at += size
            continue
        end = max(word_end(model, data, at, data.size), at + size)  # a letter such as ℓ is a word that ends at once
        words += (end - at) // _BYTES_OF_ONE if _is_without_spaces(code_at(data, at)[0]) else 1
        row = word_bits(model, data, at, end, scratch) - 1
        if row >= 0:
            if counts[row] == 0:
                rows[distinct] = row
                distinct += 1
            counts[row] += 1
        at = end
    return words, distinct


@kernel
def has_own_words(model, masks, language, data, limit):
    """Return whether the first `limit` bytes of a text (UTF-8) have some words that are common in one language
    alone.
    """
    scratch = np.empty(model[LONGEST_WORD] + 2, np.int32)
    rows = np.empty(_FEW_WORDS, np.int64)
    own = np.uint64(1) << np.uint64(language)
    count = 0
    at = 0
    while at < limit:
        properties, size = character(model, data, at)
        if not properties & ALPHA:
            at += size
            continue
        end = max(word_end(model, data, at, data.size), at + size)
        row = word_bits(model, data, at, end, scratch) - 1
        if row >= 0 and masks[row] == own:
            is_new = True
            for number in range(count):
                is_new = is_new and rows[number] != row
            if is_new:
                rows[count] = row
                count += 1
                if count == _FEW_WORDS:
                    return True
        at = end
    return False


@kernel
def _sum(masks, counts, rows, wanted):
    """Return how many of the counted words are common in all of the languages whose bits are `wanted`."""
    number = 0
    for row in rows:
        if masks[row] & wanted == wanted:
            number += counts[row]
    return number


@kernel
def nearest_language(model, masks, groups, data):
    """Return the language in which most words of a text (UTF-8) are common, and what speaks for it, as `Found`."""
    counts = np.zeros(masks.size, np.int64)
    rows = np.empty(masks.size, np.int64)
    words, distinct = _common_words(model, data, counts, rows)
    rows = rows[:distinct]
    common = np.zeros(MOST_LANGUAGES, np.int64)
    for row in rows:
        mask = masks[row]
        language = 0
        while mask:
            if mask & np.uint64(1):
                common[language] += counts[row]
            mask >>= np.uint64(1)
            language += 1
    best = 0
    for language in range(MOST_LANGUAGES):  # numba's argmax imports SciPy, for a quarter of a second
        if common[language] > common[best]:
            best = language
    of_best = np.uint64(1) << np.uint64(best)
    if common[best] == 0:
        return Found(words, -1, 0, 0, 0, 0)
    own, other = int(common[best]), 0
    for rival in range(MOST_LANGUAGES):
        if groups[rival] == groups[best] or common[rival] * _RIVAL_PART <= common[best]:
            continue
        both = _sum(masks, counts, rows, of_best | np.uint64(1) << np.uint64(rival))
        for_best, for_rival = common[best] - both, common[rival] - both
        if for_rival * own > other * for_best or (for_rival * own == other * for_best and for_best < own):
            own, other = int(for_best), int(for_rival)
    different = np.int64(0)
    for row in rows:
        different += np.int64(masks[row] >> np.uint64(best) & np.uint64(1))
    return Found(words, best, int(common[best]), int(different), own, other)


def warm_up() -> None:
    """Compile what this module's callers use."""
    text = np.frombuffer(b"one", np.uint8)  # it comes out of a bytes object, so that it is read-only
    model, masks = np.zeros(ASCII + 256, np.int32), np.zeros(1, np.uint64)
    nearest_language(model, masks, np.zeros(MOST_LANGUAGES, np.int64), text)
    has_own_words(model, masks, 0, text, 3)
