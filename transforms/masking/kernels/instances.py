"""Sentence pairs with masked positions, drawn as create_pretraining_data.py draws them.

Exact to the scripts of mlcommons/training and, with whole-word masking, of google-research/bert. Nothing is copied:
a segment is a range of the pieces of the whole text, an instance two such ranges and its masks.

Arrays
  twister     the random generator, see kernels/random.py.
  segment_starts
              int64[segments + 1]: where each segment starts in the pieces; the last is where all end.
  document_starts
              int64[documents + 1]: the first segment of each document; the last is the number of segments.
  order       int64[documents]: the documents in the order in which they are used.
  continues   uint8[pieces]: whether a piece goes on a word ("##"); empty where single pieces are masked.
  piece_ids   int32[vocabulary]: what a random word is drawn from.
  to_predict  int64[max_seq_length + 1]: how many positions an instance of so many pieces predicts.
  spans       int64[instances, 2]: where the first and the second part start in the pieces.
  lengths     int32[instances, 2]: how many pieces they have.
  is_random   uint8[instances]: whether the second part is drawn from another document.
  mask_ends   int64[instances, 2]: where each instance's masks end in the two arrays below.
  masks       uint16: the masked positions of all instances, ascending in each, each with what is written there in its
              two upper bits: MASKED is [MASK], KEPT the piece itself, REDRAWN a random one.
  redrawn     int32: the random pieces, in the order of their positions.
  scratch     uint8[SCRATCH]: of one instance, all 0 to start. See the names below.
  state       int64[STATE]: where to go on, see the names below; all 0 to start, but TARGET, which is -1.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from transforms.kernels import kernel
from transforms.kernels.memory import (
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
from transforms.kernels.random import USED, below, next_53_bits, seeded, shuffle_u16

POSITION = (1 << 14) - 1  # the bits of a position in `masks`
KIND_SHIFT = 14
MASKED = 0
KEPT = 1
REDRAWN = 2
_KEPT_PIECE = -1  # stands for KEPT where a piece is expected

# Places in `state`.
PASS = 0
DOCUMENT = 1
SEGMENT = 2
TARGET = 3  # target_seq_length of the document that is being read; -1 before it is drawn
INSTANCES = 4
MASKS = 5
PIECES = 6  # in `redrawn`
STATE = 7

# Places in `scratch`.
_MOST = POSITION + 1  # no sequence is longer
BITS = 0  # a bit for each position: whether it is masked
REPLACED = BITS + _MOST // 8  # int32 for each position: what is written there, if masked
CANDIDATES = REPLACED + 4 * _MOST  # uint16: the positions that may be masked, or where words start
WORDS = CANDIDATES + 2 * _MOST  # uint16: words, in the order in which they are tried
SCRATCH = WORDS + 2 * _MOST

_EIGHT_TENTHS = int(0.8 * 2**53)  # random() < 0.8, in units of 2**-53; exact
_HALF = 1 << 52


@kernel
def _mask_pieces(twister, used, first, second, count, piece_ids, pieces, mask_id, scratch):
    """Masks `count` of an instance's pieces one by one: sets their bits in BITS and fills REPLACED."""
    candidates = scratch + CANDIDATES
    for i in range(first):
        put_u16(candidates, i, i + 1)
    for i in range(second):
        put_u16(candidates, first + i, first + 2 + i)
    used = shuffle_u16(twister, used, candidates, first + second, count)
    for i in range(count):
        used = _replace(twister, used, get_u16(candidates, i), piece_ids, pieces, mask_id, scratch)
    return used


@kernel
def _mask_words(twister, used, first, second, count, piece_ids, pieces, mask_id, scratch, continues, a, b):
    """Masks whole words while they fit into `count` pieces; see _mask_pieces."""
    candidates = scratch + CANDIDATES  # where each word starts among the instance's pieces
    words = scratch + WORDS
    n = np.int64(0)
    for i in range(first + second):
        at = a + i if i < first else b + i - first
        # A piece that goes on a word belongs to what is before it, even over the [SEP] that is between.
        if n == 0 or load_u8(continues, at) == 0:
            put_u16(candidates, n, i)
            put_u16(words, n, n)
            n += 1
    put_u16(candidates, n, first + second)
    used = shuffle_u16(twister, used, words, n, n)
    masked = 0
    for k in range(n):
        if masked >= count:
            break
        word = get_u16(words, k)
        start = get_u16(candidates, word)
        end = get_u16(candidates, word + 1)
        if masked + end - start > count:
            continue
        for i in range(start, end):
            position = i + 1 if i < first else i + 2
            used = _replace(twister, used, position, piece_ids, pieces, mask_id, scratch)
        masked += end - start
    return used


@kernel
def _replace(twister, used, position, piece_ids, pieces, mask_id, scratch):
    """Draws what is written at a masked position."""
    drawn, used = next_53_bits(twister, used)
    piece = mask_id
    if drawn >= _EIGHT_TENTHS:
        drawn, used = next_53_bits(twister, used)
        piece = np.int64(_KEPT_PIECE)
        if drawn >= _HALF:
            drawn, used = below(twister, used, pieces)
            piece = get_i32(piece_ids, drawn)
    put_i32(scratch + REPLACED, position, piece)
    marked = scratch + BITS
    bits = get_u64(marked, position >> 6)
    put_u64(marked, position >> 6, bits | np.uint64(1) << np.uint64(position & 63))
    return used


@kernel
def make_instances(
    twister_array, segment_starts, document_starts, order, continues_array, piece_ids_array, mask_id,
    to_predict, dupe_factor, short_seq_prob, max_seq_length, whole_words, scratch_array,
    spans, lengths, is_random, mask_ends, masks_array, redrawn_array, state,
):  # fmt: skip
    """Makes instances of all documents, `dupe_factor` times; returns whether all are made.

    False: there is no room for one instance more. Enlarge the arrays and call again.
    """
    twister = address(twister_array)
    used = np.int64(twister_array[USED])
    continues = address(continues_array)
    piece_ids = address(piece_ids_array)
    pieces = len(piece_ids_array)
    scratch = address(scratch_array)
    masks = address(masks_array)
    redrawn = address(redrawn_array)
    max_tokens = max_seq_length - 3
    most_masks = to_predict[max_seq_length]
    documents = len(order)
    room = len(spans)
    mask_room = len(masks_array) - most_masks
    redrawn_room = len(redrawn_array) - most_masks
    n = state[INSTANCES]
    m = state[MASKS]
    r = state[PIECES]
    target = state[TARGET]
    i = state[SEGMENT]
    place = state[DOCUMENT]
    for repeat in range(state[PASS], dupe_factor):
        while place < documents:
            document = order[place]
            base = document_starts[document]
            segments = document_starts[document + 1] - base
            if target < 0:
                target = max_tokens
                drawn, used = next_53_bits(twister, used)
                if np.float64(drawn) * 2.0**-53 < short_seq_prob:
                    drawn, used = below(twister, used, max_tokens - 1)
                    target = 2 + drawn
            while i < segments:
                if n == room or m > mask_room or r > redrawn_room:
                    state[PASS] = repeat
                    state[DOCUMENT] = place
                    state[SEGMENT] = i
                    state[TARGET] = target
                    state[INSTANCES] = n
                    state[MASKS] = m
                    state[PIECES] = r
                    twister_array[USED] = used
                    return False
                start = base + i
                a = segment_starts[start]
                while i < segments - 1 and segment_starts[base + i + 1] - a < target:
                    i += 1
                chunk = base + i + 1 - start
                a_end = np.int64(1)
                random_next = True
                if chunk >= 2:
                    drawn, used = below(twister, used, chunk - 1)
                    a_end = 1 + drawn
                    drawn, used = next_53_bits(twister, used)
                    random_next = drawn < _HALF
                first = segment_starts[start + a_end] - a
                if random_next:
                    wanted = target - first
                    other = np.int64(0)
                    for _ in range(10):
                        other, used = below(twister, used, documents)
                        if other != place:
                            break
                    other_base = document_starts[order[other]]
                    other_end = document_starts[order[other] + 1]
                    drawn, used = below(twister, used, other_end - other_base)
                    b_end = other_base + drawn + 1
                    b = segment_starts[b_end - 1]
                    while b_end < other_end and segment_starts[b_end] - b < wanted:
                        b_end += 1
                    second = segment_starts[b_end] - b
                    # The segments that were not used are put back.
                    i -= chunk - a_end
                else:
                    b = segment_starts[start + a_end]
                    second = segment_starts[start + chunk] - b
                while first + second > max_tokens:
                    drawn, used = next_53_bits(twister, used)
                    if first > second:
                        a += drawn < _HALF
                        first -= 1
                    else:
                        b += drawn < _HALF
                        second -= 1
                count = min(to_predict[first + second + 3], first + second)
                spans[n, 0] = a
                spans[n, 1] = b
                lengths[n, 0] = first
                lengths[n, 1] = second
                is_random[n] = random_next
                if whole_words:
                    used = _mask_words(
                        twister, used, first, second, count, piece_ids, pieces, mask_id, scratch, continues, a, b
                    )
                else:
                    used = _mask_pieces(twister, used, first, second, count, piece_ids, pieces, mask_id, scratch)
                for block in range((first + second + 2 >> 6) + 1):
                    bits = get_u64(scratch + BITS, block)
                    put_u64(scratch + BITS, block, np.uint64(0))
                    while bits:
                        position = (block << 6) + trailing_zeros(bits)
                        bits &= bits - np.uint64(1)
                        piece = get_i32(scratch + REPLACED, position)
                        # No branch on what it is, which cannot be foreseen.
                        kept = np.int64(piece == _KEPT_PIECE)
                        drawn = np.int64(piece != mask_id) - kept
                        put_u16(masks, m, position | (kept * KEPT + drawn * REDRAWN) << KIND_SHIFT)
                        m += 1
                        put_i32(redrawn, r, piece)
                        r += drawn
                mask_ends[n, 0] = m
                mask_ends[n, 1] = r
                n += 1
                i += 1
            i = np.int64(0)
            target = np.int64(-1)
            place += 1
        place = np.int64(0)
    state[PASS] = dupe_factor
    state[INSTANCES] = n
    state[MASKS] = m
    state[PIECES] = r
    twister_array[USED] = used
    return True


def warm_up() -> None:
    """Compiles the entry kernel of this module."""
    room = 4
    make_instances(
        seeded(0), np.array([0, 4]), np.array([0, 1]), np.zeros(1, np.int64), np.empty(0, np.uint8),
        np.zeros(1, np.int32), 0, np.ones(9, np.int64), 1, 0.1, 8, False, np.zeros(SCRATCH, np.uint8),
        np.empty((room, 2), np.int64), np.empty((room, 2), np.int32), np.empty(room, np.uint8),
        np.empty((room, 2), np.int64), np.empty(room, np.uint16), np.empty(room, np.int32),
        np.array([0, 0, 0, -1, 0, 0, 0]),
    )  # fmt: skip
