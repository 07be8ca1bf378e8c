"""Turn tokens into instances: sentence pairs with masked positions, and the order in which they are written.

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

# How much memory is allocated at first. Memory that is not written to costs nothing, so these are generous.
_INSTANCE_SHARE = 0.9  # of max_seq_length, that an instance fills
_INSTANCE_MARGIN = 1.2
_MASK_MARGIN = 1.1
_SPARE = 1024

_NONE = np.empty(0, np.uint8)  # `continues` where words do not matter


@dataclasses.dataclass(frozen=True)
class Instances:
    """Sentence pairs with masks, over the pieces of a tokenized text.

    Attributes:
      arrays: the instances in the order in which they were drawn, see kernels/instances.py.
      order: int64[instances], the order in which they are written.
      unused: the number of pieces of the text that are in no instance. Each pass puts each sentence into a pair, but
        a pair longer than max_seq_length is cut. So the number is large only if lines are longer than that.
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
    """Draw instances, with masks if the rules ask for predictions."""
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
    arrays = _allocate(instances, masks if rules.to_predict.any() else 0)
    while not kernels.make_instances(twister, documents, rules, mask_rules, scratch, arrays, state):
        _enlarge(arrays, int(state[kernels.INSTANCES]), options)
    count = int(state[kernels.INSTANCES])
    written = np.arange(count, dtype=np.int64)
    random_kernels.shuffle(twister, written)
    spans, lengths = arrays.spans[:count], arrays.lengths[:count]
    return Instances(
        kernels.InstanceArrays(
            spans=spans,
            lengths=lengths,
            is_random=arrays.is_random[:count],
            mask_ends=arrays.mask_ends[:count],
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
    """Return int64[max_seq_length + 1]: for each number of pieces, how many positions such an instance predicts."""
    unlimited = (max(1, round(pieces * options.masked_lm_prob)) for pieces in range(options.max_seq_length + 1))
    return np.array([min(options.max_predictions_per_seq, positions) for positions in unlimited], np.int64)


def word_continuations(text: TokenizedText, vocabulary: Vocabulary) -> npt.NDArray[np.uint8]:
    """Return uint8[tokens]: 1 for each piece of a text that continues a word."""
    return piece_continuations(vocabulary)[text.ids] if text.continues is None else text.continues


def piece_continuations(vocabulary: Vocabulary) -> npt.NDArray[np.uint8]:
    """Return uint8[ids]: 1 for each piece that always continues a word; all 0 if only the tokenizer knows where words
    start.
    """
    continues = np.zeros(vocabulary.size, np.uint8)
    if vocabulary.marks_words:
        continues[vocabulary.ids] = [piece.startswith("##") for piece in vocabulary.pieces]
    return continues


def _guess(tokens: int, documents: int, options: MaskingOptions) -> tuple[int, int]:
    """Return generous estimates of the number of instances and of masks."""
    passes = tokens / (_INSTANCE_SHARE * options.max_seq_length) + documents
    instances = int(_INSTANCE_MARGIN * options.dupe_factor * passes) + _SPARE
    most = min(options.max_seq_length * options.masked_lm_prob, options.max_predictions_per_seq)
    return instances, int(_MASK_MARGIN * instances * most) + options.max_predictions_per_seq


def _allocate(instances: int, masks: int) -> kernels.InstanceArrays:
    return kernels.InstanceArrays(
        spans=np.empty((instances, 2), np.int64),
        lengths=np.empty((instances, 2), np.int32),
        is_random=np.empty(instances, np.uint8),
        mask_ends=np.empty((instances, 2), np.int64),
        masks=np.empty(masks, np.uint16),
        redrawn=np.empty(masks, np.int32),  # a tenth of it is used
    )


def _enlarge(arrays: kernels.InstanceArrays, instances: int, options: MaskingOptions) -> None:
    """Enlarge the arrays in place: for more instances if `instances` fill them, else for more masks."""
    if instances == len(arrays.spans):
        size = _more(instances)
        for pairs in (arrays.spans, arrays.lengths, arrays.mask_ends):
            pairs.resize((size, 2), refcheck=False)
        arrays.is_random.resize(size, refcheck=False)
    else:
        size = _more(len(arrays.masks)) + options.max_predictions_per_seq
        arrays.masks.resize(size, refcheck=False)
        arrays.redrawn.resize(size, refcheck=False)


def _more(size: int) -> int:
    return size + (size >> 2) + _SPARE
