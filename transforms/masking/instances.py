"""Pieces to instances: sentence pairs with masked positions, and the order in which they are written.

The draws are those of create_pretraining_data.py, of mlcommons/training (retired_benchmarks/bert) or, with whole-word
masking, of google-research/bert: the same text, vocabulary, options and seed give the same instances.
"""

import dataclasses

import numpy as np

from transforms.kernels import random as random_kernels
from transforms.masking.kernels import instances as instance_kernels
from transforms.masking.options import MaskingOptions
from transforms.tokenization.vocabulary import Vocabulary
from transforms.tokenization.wordpiece import TokenizedText

_SPARE = 1024


@dataclasses.dataclass(frozen=True)
class Instances:
    """Sentence pairs with masks, over the pieces of a tokenized text: arrays as in kernels/instances.py.

    `order` int64[instances] is the order in which they are written.
    """

    spans: np.ndarray
    lengths: np.ndarray
    is_random: np.ndarray
    mask_ends: np.ndarray
    masks: np.ndarray
    redrawn: np.ndarray
    order: np.ndarray

    def __len__(self) -> int:
        return len(self.order)


def make_instances(text: TokenizedText, vocabulary: Vocabulary, options: MaskingOptions) -> Instances:
    """Draws the instances of a tokenized text of at least one document, and the order in which they are written."""
    twister = random_kernels.seeded(options.random_seed)
    segment_starts = np.concatenate([np.zeros(1, np.int64), text.segment_ends])
    document_starts = np.concatenate([np.zeros(1, np.int64), text.document_ends])
    order = np.arange(len(text.document_ends), dtype=np.int64)
    random_kernels.shuffle(twister, order)
    length = options.max_seq_length
    to_predict = np.array(
        [
            min(options.max_predictions_per_seq, max(1, round(pieces * options.masked_lm_prob)))
            for pieces in range(length + 1)
        ],
        np.int64,
    )
    continues = np.empty(0, np.uint8)
    if options.do_whole_word_mask:
        continues = _continues(vocabulary)[text.ids]
    room, mask_room = _guess(len(text.ids), len(order), options)
    spans = np.empty((room, 2), np.int64)
    lengths = np.empty((room, 2), np.int32)
    is_random = np.empty(room, np.uint8)
    mask_ends = np.empty((room, 2), np.int64)
    masks = np.empty(mask_room, np.uint16)
    # Every tenth mask is redrawn; here, too, room that is not used costs nothing.
    redrawn = np.empty(mask_room, np.int32)
    scratch = np.zeros(instance_kernels.SCRATCH, np.uint8)
    state = np.zeros(instance_kernels.STATE, np.int64)
    state[instance_kernels.TARGET] = -1
    while not instance_kernels.make_instances(
        twister, segment_starts, document_starts, order, continues, vocabulary.ids, vocabulary.id_of("[MASK]"),
        to_predict, options.dupe_factor, float(options.short_seq_prob), length, options.do_whole_word_mask, scratch,
        spans, lengths, is_random, mask_ends, masks, redrawn, state,
    ):  # fmt: skip
        if state[instance_kernels.INSTANCES] == len(spans):
            room = _more(len(spans))
            for array in (spans, lengths, mask_ends):
                array.resize((room, 2), refcheck=False)
            is_random.resize(room, refcheck=False)
        else:
            mask_room = _more(len(masks)) + options.max_predictions_per_seq
            masks.resize(mask_room, refcheck=False)
            redrawn.resize(mask_room, refcheck=False)
    made = int(state[instance_kernels.INSTANCES])
    written = np.arange(made, dtype=np.int64)
    random_kernels.shuffle(twister, written)
    return Instances(
        spans[:made],
        lengths[:made],
        is_random[:made],
        mask_ends[:made],
        masks[: state[instance_kernels.MASKS]],
        redrawn[: state[instance_kernels.PIECES]],
        written,
    )


def _guess(tokens: int, documents: int, options: MaskingOptions) -> tuple[int, int]:
    """How many instances and masks there will be, generously: memory that is not written to costs nothing.

    What the guesses do not hold is added as it is needed.
    """
    instances = int(1.2 * options.dupe_factor * (tokens / (0.9 * options.max_seq_length) + documents)) + _SPARE
    most = min(options.max_seq_length * options.masked_lm_prob, options.max_predictions_per_seq)
    return instances, int(1.1 * instances * most) + options.max_predictions_per_seq


def _more(size: int) -> int:
    return size + (size >> 2) + _SPARE


def _continues(vocabulary: Vocabulary) -> np.ndarray:
    """uint8[ids]: whether a piece goes on a word."""
    continues = np.zeros(vocabulary.size, np.uint8)
    marks = [piece.startswith("##") for piece in vocabulary.pieces]
    continues[vocabulary.ids] = marks
    return continues
