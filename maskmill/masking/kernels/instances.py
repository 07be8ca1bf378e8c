"""Makes instances: sentence pairs (pairs.py) and their masks (masks.py), in the reference's order of draws.

Pairs of other kinds than the reference's, or without masks, are made by the same walk over the documents.

Nothing is copied: a segment is a range of the pieces of the whole text, an instance two such ranges and its masks.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.memory import address
from maskmill.kernels.random import USED, seeded
from maskmill.masking.kernels.masks import SCRATCH, MaskRules, draw_masks, masker_of, store_masks
from maskmill.masking.kernels.pairs import (
    ORDERED,
    REFERENCE,
    SPECIAL_PIECES,
    STRICT,
    Documents,
    draw_ordered_pair,
    draw_pair,
    draw_target,
    places_of,
    segments_of,
)

# Places in `state`, int64[STATE]: where to go on. All 0 to start, but TARGET.
TURN = 0  # how many documents are done, counted over all passes
SEGMENT = 1  # of the document
TARGET = 2  # how many pieces the pairs of the document aim at; NO_TARGET before it is drawn
INSTANCES = 3
MASKS = 4
REDRAWN_PIECES = 5
STATE = 6

NO_TARGET = -1


class InstanceRules(NamedTuple):
    """Rules that decide how many instances there are, and how long.

    pairs: what kind of pairs are drawn, see pairs.py.
    to_predict: int64[max_seq_length + 1], how many positions an instance of so many pieces predicts; where none of them
    predicts any, no masks are drawn.
    """

    pairs: int
    dupe_factor: int
    short_seq_prob: float
    max_seq_length: int
    to_predict: np.ndarray


class InstanceArrays(NamedTuple):
    """Instances, one a row of the first four arrays.

    spans: int64[instances, 2], where the first and the second part start in the pieces of the text.
    lengths: int32[instances, 2], how many pieces they have.
    is_random: uint8[instances], what the label says of each, see Pair.
    mask_ends: int64[instances, 2], where each instance's masks end in the two arrays below.
    masks, redrawn: uint16 and int32, see masks.py.
    """

    spans: np.ndarray
    lengths: np.ndarray
    is_random: np.ndarray
    mask_ends: np.ndarray
    masks: np.ndarray
    redrawn: np.ndarray


@kernel
def make_instances(twister_array, documents, rules, mask_rules, scratch, instances, state):
    """Make instances of all documents, `dupe_factor` times; return whether all are made.

    False: there is no room for one instance more. Enlarge the arrays and call again.
    """
    twister = address(twister_array)
    used = np.int64(twister_array[USED])
    places = places_of(documents)
    masker = masker_of(mask_rules, scratch)
    masks = address(instances.masks)
    redrawn = address(instances.redrawn)
    most_pieces = rules.max_seq_length - SPECIAL_PIECES
    most_masks = rules.to_predict[rules.max_seq_length]
    room = len(instances.spans)
    mask_room = len(instances.masks) - most_masks
    redrawn_room = len(instances.redrawn) - most_masks
    n = state[INSTANCES]
    m = state[MASKS]
    r = state[REDRAWN_PIECES]
    target = state[TARGET]
    done = state[SEGMENT]
    for turn in range(state[TURN], rules.dupe_factor * places.documents):
        state[TURN] = turn
        place = turn % places.documents
        start, end = segments_of(places, place)
        start += done
        if target == NO_TARGET:
            target, used = draw_target(twister, used, most_pieces, rules.short_seq_prob)
        while start < end:
            if n == room or m > mask_room or r > redrawn_room:
                state[SEGMENT] = start - segments_of(places, place)[0]
                state[TARGET] = target
                _save(twister_array, used, state, n, m, r)
                return False
            if rules.pairs == ORDERED:
                pair, start, used = draw_ordered_pair(twister, used, places, place, start, target, most_pieces)
            else:
                is_strict = rules.pairs == STRICT
                pair, start, used = draw_pair(twister, used, places, place, start, target, most_pieces, is_strict)
            if pair.b_length == 0:
                continue  # a single piece, of which no pair can be made
            if most_masks > 0:
                pieces = pair.a_length + pair.b_length
                count = min(rules.to_predict[pieces + SPECIAL_PIECES], pieces)
                used = draw_masks(twister, used, masker, pair, count)
                m, r = store_masks(masker, pieces + 1, masks, m, redrawn, r)
            instances.spans[n, 0] = pair.a
            instances.spans[n, 1] = pair.b
            instances.lengths[n, 0] = pair.a_length
            instances.lengths[n, 1] = pair.b_length
            instances.is_random[n] = pair.is_random
            instances.mask_ends[n, 0] = m
            instances.mask_ends[n, 1] = r
            n += 1
        done = np.int64(0)
        target = np.int64(NO_TARGET)
    _save(twister_array, used, state, n, m, r)
    return True


@kernel
def _save(twister, used, state, n, m, r):
    """Write down how far it went."""
    twister[USED] = used
    state[INSTANCES] = n
    state[MASKS] = m
    state[REDRAWN_PIECES] = r


def warm_up() -> None:
    """Compile the entry kernel of this module."""
    room = 4
    documents = Documents(
        segment_starts=np.array([0, 4]),
        document_starts=np.array([0, 1]),
        order=np.zeros(1, np.int64),
        continues=np.empty(0, np.uint8),
    )
    rules = InstanceRules(
        pairs=REFERENCE, dupe_factor=1, short_seq_prob=0.1, max_seq_length=8, to_predict=np.ones(9, np.int64)
    )
    mask_rules = MaskRules(
        piece_ids=np.zeros(1, np.int32), mask_id=0, whole_words=False, continues=np.empty(0, np.uint8)
    )
    instances = InstanceArrays(
        spans=np.empty((room, 2), np.int64),
        lengths=np.empty((room, 2), np.int32),
        is_random=np.empty(room, np.uint8),
        mask_ends=np.empty((room, 2), np.int64),
        masks=np.empty(room, np.uint16),
        redrawn=np.empty(room, np.int32),
    )
    state = np.zeros(STATE, np.int64)
    state[TARGET] = NO_TARGET
    make_instances(seeded(0), documents, rules, mask_rules, np.zeros(SCRATCH, np.uint8), instances, state)
