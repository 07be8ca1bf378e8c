"""Turn instances or sequences into rows: choose the sequences of each row, order the rows, gather their pieces.

Rows come in blocks that fit a processor's cache. The arrays of a block are used again for the next one.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from maskmill.kernels import random as random_kernels
from maskmill.masking.instances import Instances
from maskmill.masking.kernels import rows as kernels
from maskmill.masking.kernels.pairs import SPECIAL_PIECES
from maskmill.masking.kernels.rows import RowArrays, Rows
from maskmill.masking.kernels.sequences import Sequences
from maskmill.masking.objective_options import ObjectiveOptions, asks_for_words
from maskmill.masking.options import MaskingOptions
from maskmill.masking.packing import check_lengths, pack, row_lengths
from maskmill.masking.row_masks import RowMasker
from maskmill.tokenization.tokenized_text import TokenizedText
from maskmill.tokenization.vocabulary import Vocabulary

_BLOCK_BYTES = 1 << 19  # of input_ids


def make_rows(sequences: Sequences, masking: MaskingOptions, objective: ObjectiveOptions) -> Rows:
    """Assign sequences to rows.

    A row has one sequence, or with `pack` several. For mlm and blocks the rows are repeated dupe_factor times, with
    other masks each time: those that a loader draws in epochs 0, 1, …. The sequences of nsp and sop have been drawn
    dupe_factor times, so their rows are all of epoch 0. A row's sample is its number within its epoch.

    Raises:
      ValueError: a sequence is empty, or longer than max_seq_length.
    """
    if objective.pack:
        members, ends = pack(sequences.lengths, masking.max_seq_length)
    else:
        members = np.arange(len(sequences.ends), dtype=np.int64)
        ends = members + 1
    count = len(ends)
    epochs = masking.dupe_factor if objective.objective in ("mlm", "blocks") else 1
    first_members = np.arange(epochs, dtype=np.int64) * len(members)
    return Rows(
        members=np.tile(members, epochs),
        ends=(first_members[:, None] + ends).ravel(),
        epochs=np.repeat(np.arange(epochs, dtype=np.int64), count),
        samples=np.tile(np.arange(count, dtype=np.int64), epochs),
    )


def row_order(rows: Rows, masking: MaskingOptions, objective: ObjectiveOptions) -> npt.NDArray[np.int64]:
    """Return int64[rows]: the order in which rows are written.

    It is drawn as random.Random(random_seed).shuffle draws it. Rows of mlm and blocks whose masks the reader draws stay
    in the order of the text.
    """
    order = np.arange(len(rows.ends), dtype=np.int64)
    if not (objective.dynamic_masking and objective.objective in ("mlm", "blocks")):
        random_kernels.shuffle(random_kernels.seeded(masking.random_seed), order)
    return order


def instance_blocks(
    text: TokenizedText,
    instances: Instances,
    order: npt.NDArray[np.int64],
    vocabulary: Vocabulary,
    masking: MaskingOptions,
) -> Iterator[tuple[RowArrays, int]]:
    """Yield the instances that `order` names as rows, in this order: blocks, and how many rows of each are used.

    A block is valid until the next one is asked for. Rows are max_seq_length wide. With bins, this may be less than
    the length that the instances were drawn with, if those named are short enough.

    Raises:
      ValueError: an instance is longer than max_seq_length.
    """
    lengths = instances.arrays.lengths
    check_lengths((lengths[:, 0] + lengths[:, 1])[order] + SPECIAL_PIECES, masking.max_seq_length)
    rows = _allocate(len(order), masking, sequences=1, segments=True, labels=True, masks=True)
    special_ids = kernels.SpecialIds(vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id, vocabulary.pad_id)
    for selection in _selections(order, len(rows.lengths)):
        kernels.gather_instances(text.ids, instances.arrays, selection, special_ids, rows)
        yield rows, len(selection)


def sequence_blocks(
    text: TokenizedText,
    sequences: Sequences,
    row_set: Rows,
    order: npt.NDArray[np.int64],
    vocabulary: Vocabulary,
    masking: MaskingOptions,
    objective: ObjectiveOptions,
    masker: RowMasker | None,
) -> Iterator[tuple[RowArrays, int]]:
    """Yield the rows that `order` names, in this order: blocks, and how many rows of each are used.

    A block is valid until the next one is asked for. Rows are max_seq_length wide. masker: draws the masks; None if
    the reader draws them.

    If the masks depend on words, which only the tokenizer knows, the blocks mark the pieces that continue a word.

    Raises:
      ValueError: a row has more pieces than max_seq_length.
    """
    check_lengths(row_lengths(sequences, row_set)[order], masking.max_seq_length)
    pairs = objective.objective in ("nsp", "sop")
    continues = text.continues if asks_for_words(masking, objective) else None
    rows = _allocate(
        len(order),
        masking,
        sequences=int(np.diff(row_set.ends, prepend=0).max(initial=1)),
        segments=pairs,
        labels=pairs,
        masks=masker is not None,
        continues=continues is not None,
    )
    of_text = np.empty(0, np.uint8) if continues is None else continues
    for selection in _selections(order, len(rows.lengths)):
        kernels.gather_sequences(text.ids, of_text, sequences, row_set, selection, vocabulary.pad_id, rows)
        if masker is not None:
            masker.draw(rows, len(selection), row_set.epochs[selection], row_set.samples[selection])
        yield rows, len(selection)


def _allocate(
    rows: int,
    masking: MaskingOptions,
    *,
    sequences: int,
    segments: bool,
    labels: bool,
    masks: bool,
    continues: bool = False,
) -> RowArrays:
    """Return the arrays of a block of at most `rows` rows; `sequences`: the most sequences of a row."""
    length = masking.max_seq_length
    rows = min(rows, max(1, _BLOCK_BYTES // (4 * length)))
    predictions = masking.max_predictions_per_seq if masks else 0
    return RowArrays(
        input_ids=np.zeros((rows, length), np.int32),
        lengths=np.zeros(rows, np.int32),
        segment_ids=np.zeros((rows, length if segments else 0), np.uint8),
        positions=np.zeros((rows, predictions), np.int32),
        labels=np.zeros((rows, predictions), np.int32),
        masked=np.zeros(rows, np.int32),
        sequence_starts=np.zeros((rows, sequences + 1), np.int32),
        members=np.zeros(rows, np.int32),
        next_sentence_labels=np.zeros((rows, sequences if labels else 0), np.uint8),
        continues=np.zeros((rows, length if continues else 0), np.uint8),
    )


def _selections(order: npt.NDArray[np.int64], rows: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield slices of an order, each of a block's rows."""
    for first in range(0, len(order), rows or 1):
        yield np.ascontiguousarray(order[first : first + rows])
