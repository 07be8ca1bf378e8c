"""Draws sentence pairs as create_pretraining_data.py draws them: where two parts of the text start and end.

The random numbers and their order are the reference's. Functions that draw take the address of `twister` and how many
of its outputs are used, and return that number again, see kernels/random.py.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from transforms.kernels import kernel
from transforms.kernels.memory import address, get_i64
from transforms.kernels.random import below, next_53_bits

SPECIAL_PIECES = 3  # of a pair: [CLS], [SEP] and [SEP]
_SHORTEST_TARGET = 2  # pieces, one in each part
_TRIES = 10  # to draw another document than the pair's own
_HALF = 1 << 52  # random() < 0.5, in units of 2**-53


class Documents(NamedTuple):
    """The text as ranges of its pieces.

    segment_starts: int64[segments + 1], where each segment starts in the pieces; the last is where all end.
    document_starts: int64[documents + 1], the first segment of each document; the last is the number of segments.
    order: int64[documents], the documents in the order in which they are used.
    """

    segment_starts: np.ndarray
    document_starts: np.ndarray
    order: np.ndarray


class Places(NamedTuple):
    """Where the arrays of Documents lie: inner functions take addresses, see kernels/memory.py."""

    segment_starts: int
    document_starts: int
    order: int
    documents: int


class Pair(NamedTuple):
    """Two parts: where each starts in the pieces of the text and how many pieces it has."""

    a: int
    a_length: int
    b: int
    b_length: int
    is_random: bool  # whether the second part is drawn from another document


@kernel
def places_of(documents):
    """The addresses of the arrays of Documents."""
    return Places(
        address(documents.segment_starts),
        address(documents.document_starts),
        address(documents.order),
        np.int64(len(documents.order)),
    )


@kernel
def segments_of(places, turn):
    """The first segment of the document whose turn it is, and the one behind its last."""
    document = get_i64(places.order, turn)
    return get_i64(places.document_starts, document), get_i64(places.document_starts, document + 1)


@kernel
def draw_target(twister, used, most, short_seq_prob):
    """Draws how many pieces the pairs of a document aim at: `most`, or with `short_seq_prob` fewer."""
    target = most
    drawn, used = next_53_bits(twister, used)
    if np.float64(drawn) * 2.0**-53 < short_seq_prob:
        drawn, used = below(twister, used, most - _SHORTEST_TARGET + 1)
        target = _SHORTEST_TARGET + drawn
    return target, used


@kernel
def draw_pair(twister, used, places, turn, start, target, most):
    """Draws a pair of at most `most` pieces whose first part starts at segment `start`.

    turn: the place in `order` of the document. target: how many pieces the pair aims at.
    Returns the pair, the segment at which the next pair starts, and the used outputs.
    """
    _, document_end = segments_of(places, turn)
    a = get_i64(places.segment_starts, start)
    end = start + 1
    while end < document_end and get_i64(places.segment_starts, end) - a < target:
        end += 1
    a_end = start + 1
    is_random = True
    if end - start >= 2:
        drawn, used = below(twister, used, end - start - 1)
        a_end += drawn
        drawn, used = next_53_bits(twister, used)
        is_random = drawn < _HALF
    a_length = get_i64(places.segment_starts, a_end) - a
    if is_random:
        b, b_length, used = _draw_other_part(twister, used, places, turn, target - a_length)
        end = a_end  # the segments that were not used are put back
    else:
        b = get_i64(places.segment_starts, a_end)
        b_length = get_i64(places.segment_starts, end) - b
    while a_length + b_length > most:
        drawn, used = next_53_bits(twister, used)
        if a_length > b_length:
            a += drawn < _HALF
            a_length -= 1
        else:
            b += drawn < _HALF
            b_length -= 1
    return Pair(a, a_length, b, b_length, is_random), end, used


@kernel
def _draw_other_part(twister, used, places, turn, wanted):
    """Draws segments of another document, up to `wanted` pieces or more, or its end: their start and their length."""
    other = np.int64(0)
    for _ in range(_TRIES):
        other, used = below(twister, used, places.documents)
        if other != turn:
            break
    first, last = segments_of(places, other)
    drawn, used = below(twister, used, last - first)
    end = first + drawn + 1
    b = get_i64(places.segment_starts, end - 1)
    while end < last and get_i64(places.segment_starts, end) - b < wanted:
        end += 1
    return b, get_i64(places.segment_starts, end) - b, used
