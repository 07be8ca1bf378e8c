"""Draws which pieces of an instance are masked, and what is written there, as create_pretraining_data.py does.

Exact to the scripts of mlcommons/training and, with whole-word masking, of google-research/bert. Functions that draw
take the address of `twister` and how many of its outputs are used, and return that number again, see
kernels/random.py.

Arrays
  scratch     uint8[SCRATCH]: of one instance, all 0 to start. See the names below.
  masks       uint16: masked positions, ascending in each instance, each with what is written there in its two upper
              bits: MASKED is [MASK], KEPT the piece itself, REDRAWN a random one.
  redrawn     int32: the random pieces, in the order of their positions.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.memory import (
    address,
    get_i32,
    get_u16,
    get_u64,
    load_u8,
    put_i32,
    put_u16,
    put_u64,
    trailing_zeros,
)
from maskmill.kernels.random import below, next_53_bits, shuffle_u16

POSITION_BITS = 14
POSITION = (1 << POSITION_BITS) - 1  # the bits of a position in `masks`
KIND_SHIFT = POSITION_BITS
MASKED = 0
KEPT = 1
REDRAWN = 2
_KEPT_PIECE = -1  # stands for KEPT where a piece is expected

# Where the first part starts in an instance, after [CLS]; and by how much the second part is shifted, by [SEP] too.
_FIRST_SHIFT = 1
_SECOND_SHIFT = 2

# Places in `scratch`.
_MOST = POSITION + 1  # no sequence is longer
_BITS = 0  # a bit for each position: whether it is masked
_REPLACED = _BITS + _MOST // 8  # int32 for each position: what is written there, if masked
_CANDIDATES = _REPLACED + 4 * _MOST  # uint16: the positions that may be masked, or where words start
_WORDS = _CANDIDATES + 2 * _MOST  # uint16: words, in the order in which they are tried
SCRATCH = _WORDS + 2 * _MOST

_EIGHT_TENTHS = int(0.8 * 2**53)  # random() < 0.8, in units of 2**-53; exact
_HALF = 1 << 52


class MaskRules(NamedTuple):
    """Rules by which masks are drawn.

    piece_ids: int32[vocabulary], what a random piece is drawn from.
    mask_id: the id of [MASK].
    whole_words: whether all pieces of a word are masked together.
    continues: uint8[pieces of the text], whether a piece goes on a word ("##"); empty where single pieces are masked.
    """

    piece_ids: np.ndarray
    mask_id: int
    whole_words: bool
    continues: np.ndarray


class Masker(NamedTuple):
    """MaskRules and `scratch` for inner functions, which take addresses, see kernels/memory.py."""

    piece_ids: int
    pieces: int
    mask_id: int
    whole_words: bool
    continues: int
    scratch: int


@kernel
def masker_of(rules, scratch):
    """Return the addresses of the arrays of MaskRules and of `scratch`."""
    return Masker(
        address(rules.piece_ids),
        np.int64(len(rules.piece_ids)),
        np.int64(rules.mask_id),
        rules.whole_words,
        address(rules.continues),
        address(scratch),
    )


@kernel
def draw_masks(twister, used, masker, pair, count):
    """Draw up to `count` masks of a pair; they are kept in `scratch` until `store_masks`."""
    if masker.whole_words:
        return _mask_words(twister, used, masker, pair, count)
    return _mask_pieces(twister, used, masker, pair, count)


@kernel
def _mask_pieces(twister, used, masker, pair, count):
    """Mask `count` pieces one by one."""
    candidates = masker.scratch + _CANDIDATES
    for i in range(pair.a_length):
        put_u16(candidates, i, i + _FIRST_SHIFT)
    for i in range(pair.b_length):
        put_u16(candidates, pair.a_length + i, pair.a_length + _SECOND_SHIFT + i)
    used = shuffle_u16(twister, used, candidates, pair.a_length + pair.b_length, count)
    for i in range(count):
        used = _replace(twister, used, masker, get_u16(candidates, i))
    return used


@kernel
def _mask_words(twister, used, masker, pair, count):
    """Mask whole words while they fit into `count` pieces."""
    starts = masker.scratch + _CANDIDATES  # where each word starts among the pair's pieces
    words = masker.scratch + _WORDS
    n = np.int64(0)
    for i in range(pair.a_length + pair.b_length):
        at = pair.a + i if i < pair.a_length else pair.b + i - pair.a_length
        # A piece that goes on a word belongs to what is before it, even over the [SEP] that is between.
        if n == 0 or load_u8(masker.continues, at) == 0:
            put_u16(starts, n, i)
            put_u16(words, n, n)
            n += 1
    put_u16(starts, n, pair.a_length + pair.b_length)
    used = shuffle_u16(twister, used, words, n, n)
    masked = 0
    for k in range(n):
        if masked >= count:
            break
        word = get_u16(words, k)
        start = get_u16(starts, word)
        end = get_u16(starts, word + 1)
        if masked + end - start > count:
            continue
        for i in range(start, end):
            position = i + _FIRST_SHIFT if i < pair.a_length else i + _SECOND_SHIFT
            used = _replace(twister, used, masker, position)
        masked += end - start
    return used


@kernel
def _replace(twister, used, masker, position):
    """Mark a position as masked and draw what is written there: 80 % [MASK], 10 % itself, 10 % a random piece."""
    drawn, used = next_53_bits(twister, used)
    piece = masker.mask_id
    if drawn >= _EIGHT_TENTHS:
        drawn, used = next_53_bits(twister, used)
        piece = np.int64(_KEPT_PIECE)
        if drawn >= _HALF:
            drawn, used = below(twister, used, masker.pieces)
            piece = get_i32(masker.piece_ids, drawn)
    put_i32(masker.scratch + _REPLACED, position, piece)
    marked = masker.scratch + _BITS
    bits = get_u64(marked, position >> 6)
    put_u64(marked, position >> 6, bits | np.uint64(1) << np.uint64(position & 63))
    return used


@kernel
def store_masks(masker, last, masks, m, redrawn, r):
    """Move the masks of a pair from `scratch` to masks[m:] and redrawn[r:]; return where they end in both.

    last: no position above it is masked.
    """
    marked = masker.scratch + _BITS
    for block in range((last >> 6) + 1):
        bits = get_u64(marked, block)
        put_u64(marked, block, np.uint64(0))
        while bits:
            position = (block << 6) + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            piece = get_i32(masker.scratch + _REPLACED, position)
            # Branch-free: the kind of a mask is random, so a branch would be mispredicted.
            is_kept = np.int64(piece == _KEPT_PIECE)
            is_redrawn = np.int64(piece != masker.mask_id) - is_kept
            put_u16(masks, m, position | (is_kept * KEPT + is_redrawn * REDRAWN) << KIND_SHIFT)
            m += 1
            put_i32(redrawn, r, piece)
            r += is_redrawn
    return m, r
