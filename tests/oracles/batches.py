"""Batches in plain Python: one value after the other, from what each sample is."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    """A row as it goes into a batch, masked.

    Attributes:
      ids: its pieces, masks in place.
      segments, special: one for each piece.
      starts: 0, and where each of its sequences ends.
      pairs: the label of each sequence, or the one of a row that is not packed.
      masks: position and label of each mask, ascending.
      number, source, epoch: which sample it is.
    """

    ids: Sequence[int]
    segments: Sequence[int]
    special: Sequence[int]
    starts: Sequence[int]
    pairs: Sequence[int]
    masks: Sequence[tuple[int, int]]
    number: int = 0
    source: int = 0
    epoch: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """What all samples of a batch have in common."""

    width: int
    predictions: int
    pad_id: int
    packed: bool
    has_pairs: bool
    has_special: bool


def _padded(values: Sequence[Any], width: int, fill: Any) -> list[Any]:
    return [*values, *[fill] * (width - len(values))]


def _piece_arrays(samples: Sequence[Sample | None], layout: Layout) -> dict[str, list[Any]]:
    """The arrays with a value for each piece."""
    rows: dict[str, list[Any]] = {}
    for sample in samples:
        ids = sample.ids if sample else []
        of_row: dict[str, tuple[Sequence[int], int]] = {
            "input_ids": (ids, layout.pad_id),
            "input_mask": ([1] * len(ids), 0),
        }
        if layout.has_pairs:
            of_row["segment_ids"] = (sample.segments if sample else [], 0)
        if layout.has_special:
            of_row["special_tokens_mask"] = (sample.special if sample else [], 1)
        if layout.packed:
            lengths = [end - start for start, end in itertools.pairwise(sample.starts)] if sample else []
            of_row["sequence_ids"] = ([n for n, length in enumerate(lengths, 1) for _ in range(length)], 0)
            of_row["position_ids"] = ([place for length in lengths for place in range(length)], 0)
        for name, (values, fill) in of_row.items():
            rows.setdefault(name, []).append(_padded(values, layout.width, fill))
    return rows


def google_batch(samples: Sequence[Sample | None], layout: Layout) -> dict[str, list[Any]]:
    """The arrays as BERT calls them; None is a row of padding."""
    rows = _piece_arrays(samples, layout)
    if layout.packed:
        rows["cu_seqlens"] = [
            _padded(sample.starts, layout.width // 2 + 1, sample.starts[-1])
            if sample
            else [0] * (layout.width // 2 + 1)
            for sample in samples
        ]
    masks = [sample.masks if sample else [] for sample in samples]
    rows["masked_lm_positions"] = [_padded([at for at, _ in m], layout.predictions, 0) for m in masks]
    rows["masked_lm_ids"] = [_padded([label for _, label in m], layout.predictions, 0) for m in masks]
    rows["masked_lm_weights"] = [_padded([1.0] * len(m), layout.predictions, 0.0) for m in masks]
    if layout.has_pairs and layout.packed:
        rows["next_sentence_labels"] = [
            _padded(sample.pairs if sample else [], layout.width // 2, -100) for sample in samples
        ]
    elif layout.has_pairs:
        rows["next_sentence_labels"] = [list(sample.pairs) if sample else [0] for sample in samples]
    return rows


def v2_batch(samples: Sequence[Sample | None], layout: Layout) -> dict[str, list[Any]]:
    """The arrays as TensorFlow Models calls them."""
    names = {"input_ids": "input_word_ids", "segment_ids": "input_type_ids"}
    return {names.get(name, name): rows for name, rows in google_batch(samples, layout).items()}


def huggingface_batch(samples: Sequence[Sample | None], layout: Layout) -> dict[str, list[Any]]:
    """The arrays that a model of transformers takes; the layout is not packed."""
    names = {
        "input_mask": "attention_mask",
        "segment_ids": "token_type_ids",
        "next_sentence_labels": "next_sentence_label",
    }
    google = google_batch(samples, layout)
    left_out = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights", "special_tokens_mask")
    rows = {names.get(name, name): rows for name, rows in google.items() if name not in left_out}
    rows["labels"] = []
    for sample in samples:
        labels = [-100] * layout.width
        for at, label in sample.masks if sample else []:
            labels[at] = label
        rows["labels"].append(labels)
    if layout.has_pairs:
        rows["next_sentence_label"] = [sample.pairs[0] if sample else -100 for sample in samples]
    return rows


BATCHES = {"google": google_batch, "v2": v2_batch, "huggingface": huggingface_batch}
