"""Turn tokens into the sequences of an objective, before anything is masked.

nsp: the pairs of create_pretraining_data.py (instances.py), or of strict labels.
mlm: full sentences, as RoBERTa's (Liu et al. 2019, section 4.2: FULL-SENTENCES, or DOC-SENTENCES within documents), or
as many pieces as fit.
blocks: joined documents cut into blocks, as Hugging Face's examples/pytorch/language-modeling/run_mlm.py.
sop: pairs in their order or swapped, as ALBERT's (Lan et al. 2020, section 3.1; google-research/albert).
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from maskmill.masking.instances import Instances, make_pairs
from maskmill.masking.kernels import pairs
from maskmill.masking.kernels import sequences as kernels
from maskmill.masking.kernels.sequences import SequenceRules, Sequences
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.tokenization.tokenized_text import TokenizedText
from maskmill.tokenization.vocabulary import Vocabulary

_PAIR_SPANS = 5  # [CLS], the first part, [SEP], the second part, [SEP]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MadeSequences:
    """The sequences of a text, and the counts of pieces that are in none.

    Attributes:
      sequences: mlm and blocks: in text order, each once, whatever dupe_factor is. nsp and sop: in the order of
        shuffled documents, with other pairs in each of the dupe_factor passes.
      unused: the number of pieces of the text in no sequence: those cut off pairs that are too long (nsp, sop), single
        pieces, which make no pair (sop, strict labels), and dropped remainders of batches.
      dropped: the number of them in dropped remainders.
      split_sentences: full sentences: the number of sentences longer than a sequence, which are split.
    """

    sequences: Sequences
    unused: int
    dropped: int = 0
    split_sentences: int = 0

    def __len__(self) -> int:
        return len(self.sequences.ends)


def make_sequences(
    text: TokenizedText, vocabulary: Vocabulary, masking: MaskingOptions, objective: ObjectiveOptions
) -> MadeSequences:
    """Make the sequences of a text.

    Each piece of the text is in a sequence or counted as unused. short_seq_prob has no effect on mlm and blocks.

    Args:
      text: of at least one document.
      vocabulary: has the ids of [CLS] and [SEP], and the pieces that continue a word.
      masking: length, seed, dupe_factor and short_seq_prob.
      objective: the kind of sequences.
    """
    rules = SequenceRules(
        length=masking.max_seq_length,
        cls_id=vocabulary.cls_id,
        sep_id=vocabulary.sep_id,
        joins=objective.objective == "blocks" or objective.cross_documents,
        batch=objective.block_batch if objective.block_remainder == "drop" and objective.objective == "blocks" else 0,
    )
    if objective.objective == "mlm":
        return _fill_with_sentences(text, rules) if objective.full_sentences else _cut(text, rules, "sep")
    if objective.objective == "blocks":
        return _cut(text, rules, objective.block_separators)
    if objective.objective == "sop":
        kind = pairs.ORDERED
    else:
        kind = pairs.STRICT if objective.strict_labels else pairs.REFERENCE
    instances = make_pairs(text, vocabulary, masking, kind)
    return MadeSequences(sequences=_sequences_of(instances, rules), unused=instances.unused)


def _fill_with_sentences(text: TokenizedText, rules: SequenceRules) -> MadeSequences:
    arguments = (_starts(text.segment_ends), _starts(text.document_ends), rules)
    counts = kernels.fill_with_sentences(*arguments, kernels.make_room(0, 0))
    sequences = kernels.make_room(counts.spans, counts.sequences)
    kernels.fill_with_sentences(*arguments, sequences)
    return MadeSequences(sequences=sequences, unused=0, split_sentences=counts.split)


def _cut(text: TokenizedText, rules: SequenceRules, separators: str) -> MadeSequences:
    starts = _starts(_starts(text.segment_ends)[text.document_ends])
    cut = kernels.cut_framed_documents if separators == "recipe" else kernels.cut_documents
    if separators == "none":
        # Without separators a batch of documents, or the whole text, is cut as one document.
        starts = np.append(starts[: -1 : rules.batch or len(starts)], starts[-1])
        rules = rules._replace(batch=min(rules.batch, 1))
    counts = cut(starts, rules, kernels.make_room(0, 0))
    sequences = kernels.make_room(counts.spans, counts.sequences)
    cut(starts, rules, sequences)
    return MadeSequences(sequences=sequences, unused=counts.dropped, dropped=counts.dropped)


def _starts(ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return int64[n + 1]: the start of each of n runs, then the end of the last one."""
    return np.concatenate([np.zeros(1, np.int64), ends])


def _sequences_of(instances: Instances, rules: SequenceRules) -> Sequences:
    """Return pairs as sequences of [CLS], a first part of segment 0, [SEP], and a second part of segment 1, [SEP]."""
    count, arrays = len(instances), instances.arrays
    sequences = kernels.make_room(count * _PAIR_SPANS, count, count)
    starts, sizes, segments = (
        values.reshape(count, _PAIR_SPANS) for values in (sequences.starts, sequences.sizes, sequences.segments)
    )
    starts[:, ::2] = -1 - rules.sep_id
    starts[:, 0] = -1 - rules.cls_id
    starts[:, 1::2] = arrays.spans
    sizes[:, ::2] = 1
    sizes[:, 1::2] = arrays.lengths
    segments[:, 3:] = 1
    sequences.ends[:] = np.arange(1, count + 1) * _PAIR_SPANS
    sequences.lengths[:] = arrays.lengths.sum(axis=1) + pairs.SPECIAL_PIECES
    sequences.labels[:] = arrays.is_random
    return sequences
