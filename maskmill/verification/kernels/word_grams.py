"""Hashes of words in a row (n-grams), by which text is found again."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import ascii, kernel, wraps_around
from maskmill.kernels.memory import address, load_u8, put_i64, put_u64, store_u64
from maskmill.tokenization.kernels.word_hashes import CodePointArrays, hash_bytes
from maskmill.tokenization.kernels.wordpiece import SCRATCH, CodePointTable, ascii_word, read_own_word, read_word
from maskmill.tokenization.text_blocks import PADDING
from maskmill.tokenization.unicode_tables import IDEOGRAPH, KIND_MASK, VERSIONS, load

WORDS = 13  # of a gram, as Brown et al. 2020 (GPT-3, appendix C) look for test sets in training data

_CASE_BIT = np.uint64(0x2020202020202020)
_ASCII_WORD = 16  # `ascii_word` reads no further
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_ZERO = np.uint64(0)


@kernel
@wraps_around
def _power(factor, exponent):
    power = np.uint64(1)
    for _ in range(exponent):
        power *= factor
    return power


@kernel
@wraps_around
def hash_grams(text_array, size, arrays, hashes_array, places_array):
    """Hashes each WORDS words in a row of a text; returns how many there are.

    Words are runs of letters, digits and marks in lower case, without accents, as BERT's basic tokenizer reads them;
    ideographs are words of their own, and punctuation is none. A blank line is never within a gram.

    Args:
      text_array: uint8, UTF-8, whole lines, each ended by a newline, with PADDING newlines behind them.
      size: which of it.
      arrays: a CodePointArrays.
      hashes_array, places_array: uint64 and int64, take the hashes, and where the first words end; [size].
    """
    text, hashes, places = address(text_array), address(hashes_array), address(places_array)
    table = CodePointTable(address(arrays.pages), address(arrays.blocks), address(arrays.pool))
    word = address(arrays.scratch)
    lowest = _power(_FACTOR, WORDS)
    recent = np.zeros(WORDS, np.uint64)
    recent_places = np.zeros(WORDS, np.int64)
    hashed, found, count, is_blank = _ZERO, np.int64(0), np.int64(0), True
    i = np.int64(0)
    while i < size:
        start = i
        low, high, length = ascii_word(text, i, _CASE_BIT)
        byte = load_u8(text, i + length)
        is_plain = (byte >= ascii.SPACE and byte < ascii.DELETE) or byte == ascii.NEWLINE
        of_word = np.int64(0)
        if length == 0 and is_plain:
            i += 1
            if byte == ascii.NEWLINE:
                if is_blank:
                    hashed, count = _ZERO, np.int64(0)
                is_blank = True
            continue
        if is_plain and length < _ASCII_WORD:
            store_u64(word, 0, low)
            store_u64(word, 8, high)
            i += length
            of_word = length
        else:
            i, decoded, entry, of_word, _, _ = read_word(table, word, text, i)
            if i == start:
                # A character that stands alone, or what is not UTF-8.
                if entry & KIND_MASK == IDEOGRAPH:
                    of_word = read_own_word(table, word, text, i, decoded, entry)
                i += max(decoded & 7, np.int64(1)) if entry != 0 else np.int64(1)
        if of_word == 0:
            continue
        is_blank = False
        value = hash_bytes(word, of_word)
        slot = count % WORDS
        oldest = recent[slot] if count >= WORDS else _ZERO
        recent[slot], recent_places[slot] = value, start
        hashed = hashed * _FACTOR + value - oldest * lowest
        count += 1
        if count >= WORDS:
            put_u64(hashes, found, hashed)
            put_i64(places, found, recent_places[count % WORDS])
            found += 1
    return found


def lower_case_arrays() -> CodePointArrays:
    """What `hash_grams` looks words up in; its scratch memory serves one thread."""
    points = load(VERSIONS[-1], True)
    return CodePointArrays(points.pages, points.blocks, points.pool, np.empty(SCRATCH, np.uint8), True)


def warm_up() -> None:
    """Compiles the entry kernels of this module."""
    text = np.full(1 + PADDING, ascii.NEWLINE, np.uint8)
    hash_grams(text, 1, lower_case_arrays(), np.zeros(1, np.uint64), np.zeros(1, np.int64))
