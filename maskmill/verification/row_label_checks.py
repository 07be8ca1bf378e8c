"""Whether the labels of pairs fit the text, which the rows tell by themselves.

A document is used dupe_factor times, and cut in other places each time. So the pieces around the border of a pair whose
second part is the next sentence stand next to each other inside of other rows; those of a random pair do not, and those
of a swapped one do the other way round.
"""

import numpy as np
import numpy.typing as npt

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.verification.bounds import is_too_many
from maskmill.verification.findings import Checked, Finding, finding, makes_check, skipped
from maskmill.verification.kernels import borders as kernels
from maskmill.verification.pieces import Piece
from maskmill.verification.row_reading import piece_blocks

_CHECK = "labels"
_MOST_ROWS = 1 << 15  # that are looked at: rows are shuffled, so any are as good as others
_MOST_BYTES = 1 << 26  # of their ids
_DOUBT = 3  # borders that are taken to be found beside those that are
_MOST_WRONG = 0.25  # share of swapped pairs that text which repeats itself may show the other way round


@makes_check("file", "examples")
def check_labels(piece: Piece, ranges: ByteRanges) -> Checked:
    """Compares the labels of pairs with the rows of their file."""
    rules = piece.rules
    if rules is None or rules.objective not in ("nsp", "sop") or rules.is_packed:
        return Checked()
    try:
        found = _look(piece, ranges)
    except (UnusableInputError, RunFailedError) as error:
        return skipped(error, _CHECK)
    if found is None:
        return skipped("it is not known where the parts of a pair are", _CHECK)
    return Checked(findings=_findings(piece.path, found, rules.objective))


def _look(piece: Piece, ranges: ByteRanges) -> npt.NDArray[np.int64] | None:
    """int64[2, 3] of kernels.count_marked, of the first rows of a file; None: there are no segments or labels."""
    ids, parts, labels = [], [], []
    rows = 0
    for block in piece_blocks(piece, ranges):
        arrays = block.rows.arrays
        if "segment_ids" not in arrays or "next_sentence_labels" not in arrays:
            return None
        ids.append(block.rows.original_pieces(slice(block.count)))
        parts.append(_parts(block.lengths, np.asarray(arrays["segment_ids"][: block.count])))
        labels.append(np.minimum(arrays["next_sentence_labels"][: block.count, 0].astype(np.int64), 1))
        rows += block.count
        if rows >= _MOST_ROWS or sum(part.nbytes for part in ids) >= _MOST_BYTES:
            break
    found = np.zeros((2, 3), np.int64)
    if not rows:
        return found
    borders = [np.zeros((len(part), 2), np.uint64) for part in parts]
    made = sum(
        kernels.hash_borders(of_block, len(of_block), part, border)
        for of_block, part, border in zip(ids, parts, borders, strict=True)
    )
    table = np.zeros(1 << max(4, int(4 * made).bit_length()), np.uint64)
    for border in borders:
        kernels.fill_set(border.ravel(), table)
    marks = np.zeros(len(table), np.uint8)
    for of_block, part in zip(ids, parts, strict=True):
        kernels.mark_insides(of_block, len(of_block), part, table, marks)
    for border, label in zip(borders, labels, strict=True):
        kernels.count_marked(border, label, len(border), table, marks, found)
    return found


def _parts(lengths: npt.NDArray[np.int64], segments: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """int64[rows, 4]: where the first and the second part of each pair start and end, special pieces aside."""
    second = segments.astype(np.int64).sum(axis=1)
    second_start = lengths - second
    parts = np.stack([np.ones(len(lengths), np.int64), second_start - 1, second_start, lengths - 1], axis=1)
    is_bad = (second <= 1) | (second_start < 2)
    parts[is_bad] = 0
    return parts


def _findings(path: str, found: npt.NDArray[np.int64], objective: str) -> list[Finding]:
    """Labels that are wrong: of sop, pairs found as the other label says; of nsp, random pairs that go on too often."""
    (next_pairs, in_order, next_backward), (other_pairs, other_in_order, other_backward) = found.tolist()
    if objective == "sop":  # label 1: the other way round
        right, wrong = in_order + other_backward, next_backward + other_in_order
        if not is_too_many(wrong, right + wrong, _MOST_WRONG):
            return []
        share, names = wrong / (right + wrong), "pairs labelled swapped are in order, and the other way round"
    else:
        # At most as many random pairs go on as others do, even where both parts come from one document, or from texts
        # that are nearly the same.
        rate = (in_order + _DOUBT) / (next_pairs + _DOUBT)
        if not is_too_many(other_in_order, other_pairs, rate):
            return []
        share, names = other_in_order / other_pairs, "pairs labelled random go on in the text"
    what = f"{share:.0%} of the {names}, so labels are inverted or do not belong to these pairs; make the shard again"
    return [finding(_CHECK, path, "labels that fit the text", f"{share:.0%}", what)]
