"""Draw, order and count the rows of a text. They are laid out as arrays block by block, when they are written."""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from maskmill.masking.instances import Instances, make_instances
from maskmill.masking.kernels.pairs import SPECIAL_PIECES
from maskmill.masking.kernels.rows import RowArrays, Rows
from maskmill.masking.kernels.sequences import Sequences
from maskmill.masking.packing import row_lengths
from maskmill.masking.row_masks import RowMasker
from maskmill.masking.rows import instance_blocks, make_rows, row_order, sequence_blocks
from maskmill.masking.sequences import make_sequences
from maskmill.records.plan import ExamplesPlan
from maskmill.tokenization.tokenized_text import TokenizedText
from maskmill.tokenization.vocabulary import Vocabulary

RowBlocks = Iterator[tuple[RowArrays, int]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DrawnRows:
    """The rows of a text.

    Attributes:
      order: int64[rows], the order in which they are written.
      lengths: int64[rows], the number of pieces of each, special ones included.
      lay_out: takes the numbers of some rows, in order, and the width of their arrays; yields blocks of these rows with
        the number of rows in use. A block is valid until the next one is asked for.
      counts: those of ExampleCounts that are known before rows are laid out.
      sequences, rows: the parts of the rows; None: they are instances with stored masks.
    """

    order: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    lay_out: Callable[[npt.NDArray[np.int64], int], RowBlocks]
    counts: dict[str, int]
    sequences: Sequences | None = None
    rows: Rows | None = None


def draw_rows(text: TokenizedText, vocabulary: Vocabulary, plan: ExamplesPlan) -> DrawnRows:
    """Draw the rows of a text of at least one document."""
    if plan.is_exact:
        return rows_of_instances(text, make_instances(text, vocabulary, plan.exact_masking), vocabulary, plan)
    return _rows_of_sequences(text, vocabulary, plan)


def rows_of_instances(
    text: TokenizedText, instances: Instances, vocabulary: Vocabulary, plan: ExamplesPlan
) -> DrawnRows:
    """Return a row for each instance of a text."""

    def lay_out(order: npt.NDArray[np.int64], width: int) -> RowBlocks:
        masking = dataclasses.replace(plan.masking, max_seq_length=width)
        return instance_blocks(text, instances, order, vocabulary, masking)

    parts = instances.arrays.lengths
    return DrawnRows(
        order=instances.order,
        lengths=parts[:, 0].astype(np.int64) + parts[:, 1] + SPECIAL_PIECES,
        lay_out=lay_out,
        counts={
            "unused_tokens": instances.unused,
            "examples": len(instances),
            "example_tokens": int(parts.sum()),
            "random_next": int(np.count_nonzero(instances.arrays.is_random)),
        },
    )


def _rows_of_sequences(text: TokenizedText, vocabulary: Vocabulary, plan: ExamplesPlan) -> DrawnRows:
    """Return rows of one sequence or several, with masks by row."""
    masking, objective = plan.masking, plan.objective
    drawn = make_sequences(text, vocabulary, masking, objective)
    rows = make_rows(drawn.sequences, masking, objective)
    masker = None if objective.dynamic_masking else RowMasker(vocabulary, masking, objective)

    def lay_out(order: npt.NDArray[np.int64], width: int) -> RowBlocks:
        of_width = dataclasses.replace(masking, max_seq_length=width)
        return sequence_blocks(text, drawn.sequences, rows, order, vocabulary, of_width, objective, masker)

    counts = {"unused_tokens": drawn.unused, "examples": len(rows.ends)}
    counts["example_tokens"] = int(_text_pieces(drawn.sequences)[rows.members].sum())
    if objective.objective == "blocks" and objective.block_remainder == "drop":
        counts["dropped_tokens"] = drawn.dropped
    if objective.objective == "mlm" and objective.full_sentences:
        counts["split_sentences"] = drawn.split_sentences
    if objective.objective in ("nsp", "sop"):
        name = "random_next" if objective.objective == "nsp" else "swapped"
        counts[name] = int(drawn.sequences.labels[rows.members].sum())
    if objective.strict_labels:
        counts["single_document_shards"] = int(len(text.document_ends) == 1)
    if objective.pack:
        counts["sequences"] = len(rows.members)
        lengths = drawn.sequences.lengths[rows.members]
        counts["unpacked_padding_tokens"] = masking.max_seq_length * len(lengths) - int(lengths.sum())
    return DrawnRows(
        order=row_order(rows, masking, objective),
        lengths=row_lengths(drawn.sequences, rows),
        lay_out=lay_out,
        counts=counts,
        sequences=drawn.sequences,
        rows=rows,
    )


def _text_pieces(sequences: Sequences) -> npt.NDArray[np.int64]:
    """Return int64[sequences]: the number of pieces of each that are text, not special ones."""
    of_text = np.where(sequences.starts >= 0, sequences.sizes, 0)
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(of_text, dtype=np.int64)])
    pieces: npt.NDArray[np.int64] = np.diff(sums[sequences.ends], prepend=0)
    return pieces
