"""Draws pairs of parts of the text: where two parts start and end.

`draw_pair` draws them as create_pretraining_data.py does, its random numbers and their order are the reference's, if it
is not strict; `draw_ordered_pair` is a variant of it. Functions that draw take the address of `twister` and how
many of its outputs are used, and return that number again, see kernels/random.py.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.memory import address, get_i64, load_u8
from maskmill.kernels.random import below, next_53_bits

SPECIAL_PIECES = 3  # of a pair: [CLS], [SEP] and [SEP]
_SHORTEST_TARGET = 2  # pieces, one in each part
_TRIES = 10  # to draw another document than the pair's own
_HALF = 1 << 52  # random() < 0.5, in units of 2**-53

# Kinds of pairs.
REFERENCE = 0  # create_pretraining_data.py's
STRICT = 1  # labelled random only if the second part is from another document
ORDERED = 2  # of ALBERT's sentence order prediction


class Documents(NamedTuple):
    """The text as ranges of its pieces.

    segment_starts: int64[segments + 1], where each segment starts in the pieces; the last is where all end.
    document_starts: int64[documents + 1], the first segment of each document; the last is the number of segments.
    order: int64[documents], the documents in the order in which they are used.
    continues: uint8[pieces], whether a piece goes on a word ("##"); empty for pairs that split no segment.
    """

    segment_starts: np.ndarray
    document_starts: np.ndarray
    order: np.ndarray
    continues: np.ndarray


class Places(NamedTuple):
    """The addresses of the arrays of Documents: inner functions take addresses, see kernels/memory.py."""

    segment_starts: int
    document_starts: int
    order: int
    continues: int
    documents: int


class Pair(NamedTuple):
    """Two parts: where each starts in the pieces of the text and how many pieces it has."""

    a: int
    a_length: int
    b: int
    b_length: int
    is_random: bool  # what the label says: the second part is drawn elsewhere or, of an ordered pair, was the first


@kernel
def places_of(documents):
    """Return the addresses of the arrays of Documents."""
    return Places(
        address(documents.segment_starts),
        address(documents.document_starts),
        address(documents.order),
        address(documents.continues),
        np.int64(len(documents.order)),
    )


@kernel
def segments_of(places, turn):
    """Return the first segment of the document whose turn it is, and the one after its last."""
    document = get_i64(places.order, turn)
    return get_i64(places.document_starts, document), get_i64(places.document_starts, document + 1)


@kernel
def draw_target(twister, used, most, short_seq_prob):
    """Draw how many pieces the pairs of a document aim at: `most`, or with `short_seq_prob` fewer."""
    target = most
    drawn, used = next_53_bits(twister, used)
    if np.float64(drawn) * 2.0**-53 < short_seq_prob:
        drawn, used = below(twister, used, most - _SHORTEST_TARGET + 1)
        target = _SHORTEST_TARGET + drawn
    return target, used


@kernel
def draw_pair(twister, used, places, turn, start, target, most, strict):
    """Draw a pair of at most `most` pieces whose first part starts at segment `start`.

    turn: the place in `order` of the document. target: how many pieces the pair aims at. strict: a random second part
    never comes from the pair's own document. Then, where there is no other document, no pair is random, and a segment
    that is alone is split in two; the pair of a single piece has no second part: it is none.
    Returns the pair, the segment at which the next pair starts, and the used outputs.
    """
    end = _chunk_end(places, turn, start, target)
    if strict and end - start == 1 and places.documents == 1:
        pair, used = _split_segment(twister, used, places, start)
        pair, used = _truncated(twister, used, pair, most)
        return pair, end, used
    a_end = start + 1
    is_random = places.documents > 1 or not strict
    if end - start >= 2:
        drawn, used = below(twister, used, end - start - 1)
        a_end += drawn
        drawn, used = next_53_bits(twister, used)
        is_random = is_random and drawn < _HALF
    a, a_length = _part(places, start, a_end)
    if is_random:
        other, used = _draw_other(twister, used, places, turn, strict)
        b, b_length, used = _draw_part(twister, used, places, other, target - a_length)
        end = a_end  # the segments that were not used are put back
    else:
        b, b_length = _part(places, a_end, end)
    pair, used = _truncated(twister, used, Pair(a, a_length, b, b_length, is_random), most)
    return pair, end, used


@kernel
def _draw_other(twister, used, places, turn, strict):
    """Draw another document than the one whose turn it is; unless strict, that one after all if _TRIES fail."""
    if strict:
        other, used = below(twister, used, places.documents - 1)
        return other + (other >= turn), used
    other = np.int64(0)
    for _ in range(_TRIES):
        other, used = below(twister, used, places.documents)
        if other != turn:
            break
    return other, used


@kernel
def draw_ordered_pair(twister, used, places, turn, start, target, most):
    """Draw a pair of two parts that follow each other, swapped with probability 1/2, as ALBERT does.

    A segment that is alone is split in two, where google-research/albert draws a second part from another document and
    labels it as if it were swapped. The pair of a single piece has no second part: it is none.
    """
    end = _chunk_end(places, turn, start, target)
    if end - start == 1:
        pair, used = _split_segment(twister, used, places, start)
    else:
        drawn, used = below(twister, used, end - start - 1)
        a_end = start + 1 + drawn
        a, a_length = _part(places, start, a_end)
        b, b_length = _part(places, a_end, end)
        pair = Pair(a, a_length, b, b_length, False)
    if pair.b_length > 0:
        drawn, used = next_53_bits(twister, used)
        if drawn < _HALF:
            pair = Pair(pair.b, pair.b_length, pair.a, pair.a_length, True)
    pair, used = _truncated(twister, used, pair, most)
    return pair, end, used


@kernel
def _chunk_end(places, turn, start, target):
    """Return where the segments from `start` on end that have `target` pieces or more together, or the document's
    end.
    """
    _, document_end = segments_of(places, turn)
    first = get_i64(places.segment_starts, start)
    end = start + 1
    while end < document_end and get_i64(places.segment_starts, end) - first < target:
        end += 1
    return end


@kernel
def _part(places, start, end):
    """Return where the segments from `start` to `end` start in the pieces, and how many pieces they have."""
    first = get_i64(places.segment_starts, start)
    return first, get_i64(places.segment_starts, end) - first


@kernel
def _split_segment(twister, used, places, segment):
    """Return a pair of the two parts of a segment, split at random; the second part of a single piece is empty.

    It is split where a word starts, at or after the place that is drawn, else before it; within the word, if there is
    only one.
    """
    a, length = _part(places, segment, segment + 1)
    end = a + length
    if length < 2:
        return Pair(a, length, end, np.int64(0), False), used
    drawn, used = below(twister, used, length - 1)
    b = a + 1 + drawn
    while b < end and load_u8(places.continues, b):
        b += 1
    if b == end:
        b = a + 1 + drawn
        while b > a and load_u8(places.continues, b):
            b -= 1
        if b == a:
            b = a + 1 + drawn
    return Pair(a, b - a, b, end - b, False), used


@kernel
def _truncated(twister, used, pair, most):
    """Return the pair without the pieces that are too many: each is the first or the last of the part that is
    longer.
    """
    a, a_length, b, b_length, is_random = pair
    while a_length + b_length > most:
        drawn, used = next_53_bits(twister, used)
        if a_length > b_length:
            a += drawn < _HALF
            a_length -= 1
        else:
            b += drawn < _HALF
            b_length -= 1
    return Pair(a, a_length, b, b_length, is_random), used


@kernel
def _draw_part(twister, used, places, turn, wanted):
    """Draw segments of a document, up to `wanted` pieces or more, or its end: their start and their length."""
    first, last = segments_of(places, turn)
    drawn, used = below(twister, used, last - first)
    end = first + drawn + 1
    b = get_i64(places.segment_starts, end - 1)
    while end < last and get_i64(places.segment_starts, end) - b < wanted:
        end += 1
    return b, get_i64(places.segment_starts, end) - b, used
