"""Draws the masks of rows, each as a function of the row's pieces and its key (seed, epoch, sample) alone.

All units are drawn in three steps. The row's words are found; with the unit "piece" each piece is a word. Words, or
runs of words, are tried in random order and taken while they fit into the number of pieces to mask. Then the masked
positions are visited, ascending, and what is written there is drawn.

Each word is tried once at most (with spans once for each of its pieces), so the time is linear in the row's length, and
it ends where nothing more fits: a row whose only word is too long has no masks.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.counter_random import below, key_of, next_53_bits
from maskmill.kernels.memory import (
    address,
    get_i32,
    get_i64,
    get_u16,
    get_u32,
    get_u64,
    load_u8,
    put_i32,
    put_u16,
    put_u32,
    put_u64,
    trailing_zeros,
)

# Units, in the order of objective_options.MaskUnit.
PIECE, WHOLE_WORD, WORD, NGRAM, SPAN = range(5)

# Kinds of pieces.
STARTS = 0  # starts a word
CONTINUES = 1  # goes on the word before it, if there is one
SPECIAL = 2  # is never masked, and ends a word

MAX_ROW = (1 << 16) - 1  # `words` packs a position into 16 bits
_END_BITS = 16
_END = (1 << _END_BITS) - 1

_ONE = np.uint64(1)
_LAST_BIT = np.uint64(63)
_NONE = np.uint64(0)


class RowMaskRules(NamedTuple):
    """Rules by which the masks of rows are drawn.

    unit: PIECE, WHOLE_WORD, WORD, NGRAM or SPAN.
    to_predict: int64[S + 1], how many positions of a row of so many pieces are masked, if its words allow it.
    kinds: uint8[ids], STARTS, CONTINUES or SPECIAL; STARTS where only MaskedRows.continues tells the first two apart.
    mask_id: the id of [MASK].
    piece_ids: int32[pieces], what a random piece is drawn from.
    masked_below, kept_below: a number from 0 to 2**53 is drawn. Below the first, [MASK] is written; from there to the
      second, the piece stays; from there on, it is replaced by a random one.
    lengths_below: int64[most words], for n-grams and spans: a run has k + 1 words where a number from 0 to 2**53 is
      below element k and not below the one before it.
    """

    unit: int
    to_predict: np.ndarray
    kinds: np.ndarray
    mask_id: int
    piece_ids: np.ndarray
    masked_below: int
    kept_below: int
    lengths_below: np.ndarray


class MaskedRows(NamedTuple):
    """The arrays of rows that masks are drawn in, see RowArrays: as many rows in each, in C order.

    input_ids: int32[rows, S], changed in place.
    lengths: int32[rows].
    positions: int32[rows, P], written.
    labels: int32[rows, P], written.
    masked: int32[rows], written.
    continues: uint8[rows, S], 1 where a piece goes on the word before it, else 0; [0, 0] where the kinds tell.
    """

    input_ids: np.ndarray
    lengths: np.ndarray
    positions: np.ndarray
    labels: np.ndarray
    masked: np.ndarray
    continues: np.ndarray = np.zeros((0, 0), np.uint8)


class Scratch(NamedTuple):
    """Memory for the words and masks of one row.

    words: uint32[S + 1], element 0 unused, then the start and (in the lower 16 bits) the end of each word.
    tries: uint16[S], words in the order in which they are tried.
    marked: uint64[S // 64 + 1], a bit for each position: whether it is masked; all 0 between rows.
    heads: uint64[S // 64 + 1], with WORD a bit for each position at which a masked word starts; all 0 between rows.
    """

    words: np.ndarray
    tries: np.ndarray
    marked: np.ndarray
    heads: np.ndarray


def make_scratch(most_pieces: int) -> Scratch:
    """Return scratch for rows of up to so many pieces."""
    blocks = most_pieces // 64 + 1
    return Scratch(
        words=np.zeros(most_pieces + 1, np.uint32),
        tries=np.zeros(most_pieces + 1, np.uint16),
        marked=np.zeros(blocks, np.uint64),
        heads=np.zeros(blocks, np.uint64),
    )


class _Masker(NamedTuple):
    """RowMaskRules and Scratch for inner functions, which take addresses, see kernels/memory.py."""

    unit: int
    kinds_at: int
    has_continues: bool
    mask_id: int
    piece_ids: int
    pieces: int
    masked_below: int
    kept_below: int
    lengths_below: int
    words: int
    tries: int
    marked: int
    heads: int


@kernel
def draw_row_masks(rules, seed, epochs, samples, rows, scratch):
    """Draw the masks of all rows. seed: uint64; epochs, samples: int64[rows]."""
    masker = _Masker(
        np.int64(rules.unit),
        address(rules.kinds),
        rows.continues.shape[1] > 0,
        np.int64(rules.mask_id),
        address(rules.piece_ids),
        np.int64(len(rules.piece_ids)),
        np.int64(rules.masked_below),
        np.int64(rules.kept_below),
        address(rules.lengths_below),
        address(scratch.words) + 4,
        address(scratch.tries),
        address(scratch.marked),
        address(scratch.heads),
    )
    to_predict = rules.to_predict
    lengths = rows.lengths
    masked = rows.masked
    most = rows.positions.shape[1]
    row_bytes = 4 * rows.input_ids.shape[1]
    ids, positions, labels = address(rows.input_ids), address(rows.positions), address(rows.labels)
    continues = address(rows.continues)
    for row in range(len(masked)):
        length = np.int64(lengths[row])
        state = key_of(seed, epochs[row], samples[row])
        count = min(to_predict[length], most)
        if masker.unit == PIECE:
            state = _choose_pieces(state, masker, _find_pieces(masker, ids, length), count)
        else:
            words, tries = _find_words(masker, ids, continues, length)
            if masker.unit >= NGRAM:
                state = _choose_runs(state, masker, words, tries, count)
            else:
                state = _choose_words(state, masker, tries, count)
        count = _write(state, masker, ids, length, positions, labels)
        for i in range(count, most):
            put_i32(positions, i, 0)
            put_i32(labels, i, 0)
        masked[row] = count
        ids += row_bytes
        continues += rows.continues.shape[1]
        positions += 4 * most
        labels += 4 * most


@kernel
def _find_pieces(masker, ids, length):
    """Fill `tries` with the positions of the pieces that can be masked; return how many there are."""
    pieces = np.int64(0)
    for i in range(length):
        put_u16(masker.tries, pieces, i)
        pieces += load_u8(masker.kinds_at, get_i32(ids, i)) < SPECIAL
    return pieces


@kernel
def _choose_pieces(state, masker, tries, left):
    """Mark pieces as `_choose_words` would if each were a word."""
    for tried in range(min(tries, left)):
        at, state = below(state, tries - tried)
        at += tried
        position = get_u16(masker.tries, at)
        put_u16(masker.tries, at, get_u16(masker.tries, tried))
        _mark(masker.marked, position, position + 1)
    return state


@kernel
def _find_words(masker, ids, continues, length):
    """Fill `words` and `tries`; return how many of each there are."""
    last = np.int64(-1)
    pieces = np.int64(0)
    word = np.int64(0)
    inside = np.int64(0)  # whether the piece before can be gone on
    # Branch-free: which kinds of pieces follow each other cannot be foreseen.
    for i in range(length):
        kind = load_u8(masker.kinds_at, get_i32(ids, i))
        if masker.has_continues:
            kind |= load_u8(continues, i) & CONTINUES
        maskable = np.int64(kind < SPECIAL)
        starts = maskable & ~(kind & inside)
        word = (i << _END_BITS | i) if starts else word
        word += maskable
        last += starts
        put_u32(masker.words, last, word)
        put_u16(masker.tries, pieces, last)
        pieces += maskable
        inside = maskable
    words = last + 1
    if masker.unit == SPAN:
        return words, pieces  # a word is tried once for each of its pieces
    for i in range(words):
        put_u16(masker.tries, i, i)
    return words, words


@kernel
def _draw_word(state, masker, tried, tries):
    """Draw one of the words tries[tried:] and remove it: its number, start and end, and the state."""
    at, state = below(state, tries - tried)
    at += tried
    number = get_u16(masker.tries, at)
    put_u16(masker.tries, at, get_u16(masker.tries, tried))
    word = get_u32(masker.words, number)
    return number, word >> _END_BITS, word & _END, state


@kernel
def _choose_words(state, masker, tries, left):
    """Mark words, in random order, while they fit into `left` pieces."""
    for tried in range(tries):
        if left == 0:
            break
        _, start, end, state = _draw_word(state, masker, tried, tries)
        if end - start > left:
            continue
        _mark(masker.marked, start, end)
        if masker.unit == WORD:
            _mark(masker.heads, start, start + 1)
        left -= end - start
    return state


@kernel
def _choose_runs(state, masker, words, tries, left):
    """Mark runs of words, at random places, while they fit into `left` pieces."""
    for tried in range(tries):
        if left == 0:
            break
        number, start, end, state = _draw_word(state, masker, tried, tries)
        if end - start > left or _is_marked(masker, start):
            continue
        wanted, state = _draw_length(state, masker)
        end, pieces = _extend(masker, number, min(number + wanted, words), left)
        if pieces:
            _mark(masker.marked, start, end)
            left -= pieces
    return state


@kernel
def _draw_length(state, masker):
    """Draw how many words a run has."""
    drawn, state = next_53_bits(state)
    length = np.int64(1)
    while drawn >= get_i64(masker.lengths_below, length - 1):
        length += 1
    return length, state


@kernel
def _extend(masker, number, stop, left):
    """Return where the run of words from `number` to `stop` ends, and how many pieces it masks anew: `left` at most.

    It ends early at a special piece, and before a word that does not fit. A span passes over words that are masked
    already; an n-gram that meets one is given up, and masks 0 pieces.
    """
    word = get_u32(masker.words, number)
    end = word & _END
    pieces = end - (word >> _END_BITS)
    for following in range(number + 1, stop):
        word = get_u32(masker.words, following)
        start = word >> _END_BITS
        if start != end:
            break
        is_marked = _is_marked(masker, start)
        size = (word & _END) - start
        if is_marked and masker.unit == SPAN:
            size = np.int64(0)
        if pieces + size > left:
            break
        if is_marked and masker.unit == NGRAM:
            return end, np.int64(0)
        pieces += size
        end = word & _END
    return end, pieces


@kernel
def _is_marked(masker, position):
    return get_u64(masker.marked, position >> 6) >> np.uint64(position & 63) & _ONE != _NONE


@kernel
def _mark(bits, start, end):
    """Set the bits of the positions from `start` to `end`."""
    for position in range(start, end):
        block = get_u64(bits, position >> 6)
        put_u64(bits, position >> 6, block | _ONE << np.uint64(position & 63))


@kernel
def _write(state, masker, ids, length, positions, labels):
    """Draw what is written at the marked positions, and clear the marks. Returns how many there are.

    It is drawn for each piece, but with WORD for each word, and with SPAN for each run of masked pieces.
    """
    count = np.int64(0)
    drawn = np.int64(0)
    before = _NONE  # whether the last position of the block before is marked
    for block in range((length + 63) >> 6):
        marked = get_u64(masker.marked, block)
        heads = marked
        if masker.unit == WORD:
            heads = get_u64(masker.heads, block)
            put_u64(masker.heads, block, _NONE)
        elif masker.unit == SPAN:
            heads = marked & ~(marked << _ONE | before)
            before = marked >> _LAST_BIT
        put_u64(masker.marked, block, _NONE)
        while marked != _NONE:
            bit = trailing_zeros(marked)
            marked &= marked - _ONE
            if heads >> np.uint64(bit) & _ONE != _NONE:
                drawn, state = next_53_bits(state)
            position = (block << 6) + bit
            label = get_i32(ids, position)
            piece = masker.mask_id
            if drawn >= masker.masked_below:
                piece = label
                if drawn >= masker.kept_below:
                    at, state = below(state, masker.pieces)
                    piece = get_i32(masker.piece_ids, at)
            put_i32(ids, position, piece)
            put_i32(positions, count, position)
            put_i32(labels, count, label)
            count += 1
    return count


def warm_up() -> None:
    """Compile the entry kernel of this module."""
    rules = RowMaskRules(
        unit=PIECE,
        to_predict=np.ones(3, np.int64),
        kinds=np.zeros(1, np.uint8),
        mask_id=0,
        piece_ids=np.zeros(1, np.int32),
        masked_below=0,
        kept_below=0,
        lengths_below=np.zeros(0, np.int64),
    )
    rows = MaskedRows(
        input_ids=np.zeros((1, 2), np.int32),
        lengths=np.ones(1, np.int32),
        positions=np.zeros((1, 1), np.int32),
        labels=np.zeros((1, 1), np.int32),
        masked=np.zeros(1, np.int32),
    )
    keys = np.zeros(1, np.int64)
    draw_row_masks(rules, np.uint64(0), keys, keys, rows, make_scratch(2))
