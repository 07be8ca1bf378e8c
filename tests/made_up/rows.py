"""Rows made up at random, for every objective: what masking/rows.py hands on, without a text."""

import dataclasses
from typing import cast

import numpy as np

from maskmill.masking.kernels.rows import RowArrays
from maskmill.masking.objective_options import Objective, ObjectiveOptions
from maskmill.masking.options import MaskingOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class MadeUpRows:
    """A block of rows and what decided it; ids are below `vocabulary_size`, and `pad_id` is that of padding."""

    rows: RowArrays
    masking: MaskingOptions
    objective: ObjectiveOptions
    vocabulary_size: int
    pad_id: int


def made_up_rows(seed: int, special_ids: tuple[int, int] = (1, 2), count: int | None = None) -> MadeUpRows:
    """Rows of a random objective, width and number, with masks that may stand on any piece, special ones too."""
    rng = np.random.default_rng(seed)
    objective = str(rng.choice(["nsp", "mlm", "blocks", "sop"]))
    pack, dynamic = bool(rng.integers(2)), bool(rng.integers(2))
    width = int(rng.choice([5, 8, 33, 300]))
    predictions = int(rng.integers(1, width))
    vocabulary_size = int(rng.choice([10, 200, 30_000, 3_000_000]))
    count = int(rng.integers(0, 20)) if count is None else count
    most = max(1, width // 2)
    lengths = rng.integers(1, width + 1, count).astype(np.int32)
    pieces = np.arange(width) < lengths[:, None]
    ids = np.where(pieces, rng.integers(0, vocabulary_size, (count, width)), 0).astype(np.int32)
    ids[pieces & (rng.random((count, width)) < 0.2)] = rng.choice(special_ids)
    pairs, masks = objective in ("nsp", "sop"), 0 if dynamic else predictions
    rows = RowArrays(
        input_ids=ids,
        lengths=lengths,
        segment_ids=(rng.integers(0, 2, (count, width)) * pieces if pairs else np.empty((count, 0))).astype(np.uint8),
        positions=np.zeros((count, masks), np.int32),
        labels=np.zeros((count, masks), np.int32),
        masked=np.zeros(count, np.int32),
        sequence_starts=rng.integers(0, width, (count, most + 1)).astype(np.int32),  # what is not used may be anything
        members=np.ones(count, np.int32),
        next_sentence_labels=rng.integers(0, 2, (count, most if pairs else 0)).astype(np.uint8),
        continues=(rng.integers(0, 2, (count, width)) * pieces).astype(np.uint8),
    )
    for n, length in enumerate(lengths.tolist()):
        members = int(rng.integers(1, min(most, length) + 1)) if pack else 1
        inner = np.sort(rng.choice(np.arange(1, length), members - 1, replace=False)) if members > 1 else []
        rows.sequence_starts[n, : members + 1] = [0, *inner, length]
        rows.members[n] = members
        if not dynamic:
            masked = int(rng.integers(0, min(predictions, length) + 1))
            rows.masked[n] = masked
            rows.positions[n, :masked] = np.sort(rng.choice(length, masked, replace=False))
            rows.labels[n, :masked] = rng.integers(0, vocabulary_size, masked)
            rows.labels[n, : masked // 4] = rng.choice(special_ids)
    pad_id = int(rng.choice([0, 3, vocabulary_size - 1]))
    rows.input_ids[~pieces] = pad_id
    return MadeUpRows(
        rows=rows,
        masking=MaskingOptions(max_seq_length=width, max_predictions_per_seq=predictions),
        objective=ObjectiveOptions(objective=cast(Objective, objective), pack=pack, dynamic_masking=dynamic),
        vocabulary_size=vocabulary_size,
        pad_id=pad_id,
    )
