"""Pieces to instances: sentence pairs with masked positions, and the order in which they are written.

The draws of `make_instances` are those of create_pretraining_data.py, of mlcommons/training (retired_benchmarks/bert)
or, with whole-word masking, of google-research/bert: the same text, vocabulary, options and seed give the same
instances.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from maskmill.kernels import random as random_kernels
from maskmill.masking.kernels import instances as kernels
from maskmill.masking.kernels.masks import SCRATCH, MaskRules
from maskmill.masking.kernels.pairs import REFERENCE, Documents
from maskmill.masking.kernels.usage import count_unused
from maskmill.masking.options import MaskingOptions
from maskmill.tokenization.tokenized_text import TokenizedText
from maskmill.tokenization.vocabulary import Vocabulary

# How much memory is taken at first. Memory that is not written to costs nothing, so these are generous.
_INSTANCE_SHARE = 0.9  # of max_seq_length, that an instance fills
_INSTANCE_MARGIN = 1.2
_MASK_MARGIN = 1.1
_SPARE = 1024

_NONE = np.empty(0, np.uint8)  # stands for `continues` where words do not matter


@dataclasses.dataclass(frozen=True)
class Instances:
    """Sentence pairs with masks, over the pieces of a tokenized text.

    Attributes:
      arrays: the instances as they were made, see kernels/instances.py.
      order: int64[instances], the order in which they are written.
      unused: how many pieces of the text are in no instance. Each sentence is in some pair of each pass, but a pair
        longer than max_seq_length is cut, so much is left over only where lines are longer than that.
    """

    arrays: kernels.InstanceArrays
    order: npt.NDArray[np.int64]
    unused: int

    def __len__(self) -> int:
        return len(self.order)


def make_instances(text: TokenizedText, vocabulary: Vocabulary, options: MaskingOptions) -> Instances:
    """Draw the instances of a tokenized text of at least one document, and the order in which they are written."""
    mask_rules = MaskRules(
        piece_ids=vocabulary.ids,
        mask_id=vocabulary.mask_id,
        whole_words=options.do_whole_word_mask,
        continues=word_continuations(text, vocabulary) if options.do_whole_word_mask else _NONE,
    )
    return _draw(text, _NONE, options, _instance_rules(options, REFERENCE, predictions(options)), mask_rules)


def make_pairs(text: TokenizedText, vocabulary: Vocabulary, options: MaskingOptions, kind: int) -> Instances:
    """Draw pairs of a kind of kernels/pairs.py, without masks, of a tokenized text of at least one document."""
    no_masks = MaskRules(piece_ids=np.empty(0, np.int32), mask_id=0, whole_words=False, continues=_NONE)
    no_predictions = np.zeros(options.max_seq_length + 1, np.int64)
    continues = _NONE if kind == REFERENCE else word_continuations(text, vocabulary)
    return _draw(text, continues, options, _instance_rules(options, kind, no_predictions), no_masks)


def _draw(
    text: TokenizedText,
    continues: npt.NDArray[np.uint8],
    options: MaskingOptions,
    rules: kernels.InstanceRules,
    mask_rules: MaskRules,
) -> Instances:
    """Draw instances, with masks where the rules want any."""
    twister = random_kernels.seeded(options.random_seed)
    order = np.arange(len(text.document_ends), dtype=np.int64)
    random_kernels.shuffle(twister, order)
    documents = Documents(
        segment_starts=np.concatenate([np.zeros(1, np.int64), text.segment_ends]),
        document_starts=np.concatenate([np.zeros(1, np.int64), text.document_ends]),
        order=order,
        continues=continues,
    )
    scratch = np.zeros(SCRATCH, np.uint8)
    state = np.zeros(kernels.STATE, np.int64)
    state[kernels.TARGET] = kernels.NO_TARGET
    instances, masks = _guess(len(text.ids), len(order), options)
    arrays = _make_room(instances, masks if rules.to_predict.any() else 0)
    while not kernels.make_instances(twister, documents, rules, mask_rules, scratch, arrays, state):
        _enlarge(arrays, int(state[kernels.INSTANCES]), options)
    made = int(state[kernels.INSTANCES])
    written = np.arange(made, dtype=np.int64)
    random_kernels.shuffle(twister, written)
    spans, lengths = arrays.spans[:made], arrays.lengths[:made]
    return Instances(
        kernels.InstanceArrays(
            spans=spans,
            lengths=lengths,
            is_random=arrays.is_random[:made],
            mask_ends=arrays.mask_ends[:made],
            masks=arrays.masks[: state[kernels.MASKS]],
            redrawn=arrays.redrawn[: state[kernels.REDRAWN_PIECES]],
        ),
        written,
        int(count_unused(spans, lengths, len(text.ids))),
    )


def _instance_rules(options: MaskingOptions, pairs: int, to_predict: npt.NDArray[np.int64]) -> kernels.InstanceRules:
    return kernels.InstanceRules(
        pairs=pairs,
        dupe_factor=options.dupe_factor,
        short_seq_prob=float(options.short_seq_prob),
        max_seq_length=options.max_seq_length,
        to_predict=to_predict,
    )


def predictions(options: MaskingOptions) -> npt.NDArray[np.int64]:
    """Return int64[max_seq_length + 1]: how many positions an instance of so many pieces predicts."""
    wanted = (max(1, round(pieces * options.masked_lm_prob)) for pieces in range(options.max_seq_length + 1))
    return np.array([min(options.max_predictions_per_seq, positions) for positions in wanted], np.int64)


def word_continuations(text: TokenizedText, vocabulary: Vocabulary) -> npt.NDArray[np.uint8]:
    """Return uint8[tokens]: 1 where a piece of a text goes on a word."""
    return piece_continuations(vocabulary)[text.ids] if text.continues is None else text.continues


def piece_continuations(vocabulary: Vocabulary) -> npt.NDArray[np.uint8]:
    """Return uint8[ids]: 1 for a piece that goes on a word wherever it stands; for none, if only the tokenizer knows
    words.
    """
    continues = np.zeros(vocabulary.size, np.uint8)
    if vocabulary.marks_words:
        continues[vocabulary.ids] = [piece.startswith("##") for piece in vocabulary.pieces]
    return continues


def _guess(tokens: int, documents: int, options: MaskingOptions) -> tuple[int, int]:
    """Return how many instances and how many masks there will be, rather too many than too few."""
    passes = tokens / (_INSTANCE_SHARE * options.max_seq_length) + documents
    instances = int(_INSTANCE_MARGIN * options.dupe_factor * passes) + _SPARE
    most = min(options.max_seq_length * options.masked_lm_prob, options.max_predictions_per_seq)
    return instances, int(_MASK_MARGIN * instances * most) + options.max_predictions_per_seq


def _make_room(instances: int, masks: int) -> kernels.InstanceArrays:
    return kernels.InstanceArrays(
        spans=np.empty((instances, 2), np.int64),
        lengths=np.empty((instances, 2), np.int32),
        is_random=np.empty(instances, np.uint8),
        mask_ends=np.empty((instances, 2), np.int64),
        masks=np.empty(masks, np.uint16),
        redrawn=np.empty(masks, np.int32),  # a tenth of it is used
    )


def _enlarge(arrays: kernels.InstanceArrays, instances: int, options: MaskingOptions) -> None:
    """Make room, in place, for more instances where `instances` fill the arrays, else for more masks."""
    if instances == len(arrays.spans):
        room = _more(instances)
        for pairs in (arrays.spans, arrays.lengths, arrays.mask_ends):
            pairs.resize((room, 2), refcheck=False)
        arrays.is_random.resize(room, refcheck=False)
    else:
        room = _more(len(arrays.masks)) + options.max_predictions_per_seq
        arrays.masks.resize(room, refcheck=False)
        arrays.redrawn.resize(room, refcheck=False)


def _more(size: int) -> int:
    return size + (size >> 2) + _SPARE
