"""The columns of rows in plain Python, one value after the other."""

import itertools
from typing import Any

from maskmill.masking.kernels.rows import RowArrays


def features_of(
    rows: RowArrays, n: int, special_ids: tuple[int, int], width: int, pad_id: int = 0
) -> dict[str, list[Any]]:
    """All features of a row, padded to `width`, under google's names and ours."""
    length, members, masked = int(rows.lengths[n]), int(rows.members[n]), int(rows.masked[n])
    padding = width - length
    ids = rows.input_ids[n, :length].tolist()
    positions, labels = rows.positions[n, :masked].tolist(), rows.labels[n, :masked].tolist()
    unmasked = list(ids)
    for position, label in zip(positions, labels, strict=True):
        unmasked[position] = label
    starts = rows.sequence_starts[n, : members + 1].tolist()
    sequences: list[int] = []
    places: list[int] = []
    for number, (start, end) in enumerate(itertools.pairwise(starts), 1):
        sequences += [number] * (end - start)
        places += range(end - start)
    left = rows.positions.shape[1] - masked
    return {
        "continuation_mask": rows.continues[n, :length].tolist() + [0] * padding,
        "input_ids": ids + [pad_id] * padding,
        "input_mask": [1] * length + [0] * padding,
        "segment_ids": rows.segment_ids[n, :length].tolist() + [0] * padding,
        "special_tokens_mask": [int(piece in special_ids) for piece in unmasked] + [1] * padding,
        "sequence_ids": sequences + [0] * padding,
        "position_ids": places + [0] * padding,
        "cu_seqlens": starts,
        "next_sentence_labels": rows.next_sentence_labels[n, :members].tolist(),
        "masked_lm_positions": positions + [0] * left,
        "masked_lm_ids": labels + [0] * left,
        "masked_lm_weights": [1.0] * masked + [0.0] * left,
    }
