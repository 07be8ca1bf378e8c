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
  mask_ends   int64[instances]: where each instance's masks end in the two arrays below.
  mask_positions, mask_ids
              uint16, int32: the masked positions of all instances, ascending in each, and the pieces written there;
              KEPT where the piece stays.
  state       int64[STATE]: where to go on, see the names below; all 0 to start, but TARGET, which is -1.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from transforms.kernels import kernel
from transforms.kernels.memory import trailing_zeros
from transforms.kernels.random import below, next_53_bits, shuffle

KEPT = -1

# Places in `state`.
PASS = 0
DOCUMENT = 1
SEGMENT = 2
TARGET = 3  # target_seq_length of the document that is being read; -1 before it is drawn
INSTANCES = 4
MASKS = 5
STATE = 6

_EIGHT_TENTHS = int(0.8 * 2**53)  # random() < 0.8, in units of 2**-53; exact
_HALF = 1 << 52


@kernel
def _mask_pieces(twister, first, second, count, piece_ids, mask_id, candidates, replaced, marked):
    """Masks `count` of an instance's pieces one by one; sets their bits in `marked` and fills `replaced`."""
    for i in range(first):
        candidates[i] = i + 1
    for i in range(second):
        candidates[first + i] = first + 2 + i
    shuffle(twister, candidates[: first + second], count)
    for i in range(count):
        _replace(twister, candidates[i], piece_ids, mask_id, replaced, marked)


@kernel
def _mask_words(
    twister, first, second, count, piece_ids, mask_id, candidates, replaced, marked, continues, spans, words
):
    """Masks whole words while they fit into `count` pieces; see _mask_pieces. Returns how many pieces are masked."""
    n = 0
    for i in range(first + second):
        inside = i < first
        at = spans[0] + i if inside else spans[1] + i - first
        # A piece that goes on a word belongs to what is before it, even over the [SEP] that is between.
        if n == 0 or not continues[at]:
            candidates[n] = i
            words[n] = n
            n += 1
    candidates[n] = first + second
    shuffle(twister, words[:n], n)
    masked = 0
    for k in range(n):
        if masked >= count:
            break
        word = np.int64(words[k])
        start = np.int64(candidates[word])
        end = np.int64(candidates[word + 1])
        if masked + end - start > count:
            continue
        for i in range(start, end):
            _replace(twister, i + 1 if i < first else i + 2, piece_ids, mask_id, replaced, marked)
        masked += end - start
    return masked


@kernel
def _replace(twister, position, piece_ids, mask_id, replaced, marked):
    """Draws what is written at a masked position."""
    position = np.int64(position)
    if next_53_bits(twister) < _EIGHT_TENTHS:
        piece = mask_id
    elif next_53_bits(twister) < _HALF:
        piece = KEPT
    else:
        piece = np.int64(piece_ids[below(twister, len(piece_ids))])
    replaced[position] = piece
    marked[position >> 6] |= np.uint64(1) << np.uint64(position & 63)


@kernel
def make_instances(
    twister, segment_starts, document_starts, order, continues, piece_ids, mask_id, to_predict,
    dupe_factor, short_seq_prob, max_seq_length, whole_words,
    spans, lengths, is_random, mask_ends, mask_positions, mask_ids, state,
):  # fmt: skip
    """Makes instances of all documents, `dupe_factor` times; returns whether all are made.

    False: there is no room for one instance more. Enlarge the arrays and call again.
    """
    max_tokens = max_seq_length - 3
    most_masks = to_predict[max_seq_length]
    candidates = np.empty(max_seq_length + 1, np.uint16)
    words = np.empty(max_seq_length + 1, np.uint16)
    replaced = np.empty(max_seq_length, np.int32)
    marked = np.zeros((max_seq_length >> 6) + 1, np.uint64)
    documents = len(order)
    room = len(spans)
    mask_room = len(mask_positions)
    n = state[INSTANCES]
    masks = state[MASKS]
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
                if np.float64(next_53_bits(twister)) * 2.0**-53 < short_seq_prob:
                    target = 2 + below(twister, max_tokens - 1)
            while i < segments:
                if n == room or masks + most_masks > mask_room:
                    state[PASS] = repeat
                    state[DOCUMENT] = place
                    state[SEGMENT] = i
                    state[TARGET] = target
                    state[INSTANCES] = n
                    state[MASKS] = masks
                    return False
                start = base + i
                a = segment_starts[start]
                while i < segments - 1 and segment_starts[base + i + 1] - a < target:
                    i += 1
                chunk = base + i + 1 - start
                a_end = np.int64(1)
                if chunk >= 2:
                    a_end = 1 + below(twister, chunk - 1)
                first = segment_starts[start + a_end] - a
                random_next = chunk == 1 or next_53_bits(twister) < _HALF
                if random_next:
                    wanted = target - first
                    other = np.int64(0)
                    for _ in range(10):
                        other = below(twister, documents)
                        if other != place:
                            break
                    other_base = document_starts[order[other]]
                    other_end = document_starts[order[other] + 1]
                    b_start = other_base + below(twister, other_end - other_base)
                    b_end = b_start + 1
                    b = segment_starts[b_start]
                    while b_end < other_end and segment_starts[b_end] - b < wanted:
                        b_end += 1
                    second = segment_starts[b_end] - b
                    # The segments that were not used are put back.
                    i -= chunk - a_end
                else:
                    b = segment_starts[start + a_end]
                    second = segment_starts[start + chunk] - b
                while first + second > max_tokens:
                    in_front = next_53_bits(twister) < _HALF
                    if first > second:
                        a += in_front
                        first -= 1
                    else:
                        b += in_front
                        second -= 1
                count = min(to_predict[first + second + 3], first + second)
                spans[n, 0] = a
                spans[n, 1] = b
                lengths[n, 0] = first
                lengths[n, 1] = second
                is_random[n] = random_next
                if whole_words:
                    count = _mask_words(
                        twister, first, second, count, piece_ids, mask_id, candidates, replaced, marked,
                        continues, spans[n], words,
                    )  # fmt: skip
                else:
                    _mask_pieces(twister, first, second, count, piece_ids, mask_id, candidates, replaced, marked)
                for block in range((first + second + 2 >> 6) + 1):
                    bits = marked[block]
                    marked[block] = 0
                    while bits:
                        position = (block << 6) + trailing_zeros(bits)
                        bits &= bits - np.uint64(1)
                        mask_positions[masks] = position
                        mask_ids[masks] = replaced[position]
                        masks += 1
                mask_ends[n] = masks
                n += 1
                i += 1
            i = np.int64(0)
            target = np.int64(-1)
            place += 1
        place = np.int64(0)
    state[PASS] = dupe_factor
    state[INSTANCES] = n
    state[MASKS] = masks
    return True
