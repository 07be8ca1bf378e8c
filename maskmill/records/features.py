"""The features that a row may have: their meanings, their numbers of values, and the values allowed.

All code that writes, reads, checks or batches columns takes their rules from this table.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

# The names of features that TensorFlow Models calls otherwise.
V2_NAMES = {"input_ids": "input_word_ids", "segment_ids": "input_type_ids"}


class Feature(NamedTuple):
    """A feature of a row.

    Attributes:
      per: the things that have a value each: the row's pieces, its sequences, the borders of these, or its masks.
      largest: takes the most pieces of a row and the size of the vocabulary, and returns the largest value allowed; the
        smallest is 0. None: floats.
      check: the check of `maskmill verify` that finds a value that is not allowed.
      why: the reason for these bounds, with the `width` of a row and the `vocabulary` of `pieces` filled in.
      fill: the value that pads a row; None: its last value.
    """

    per: Literal["piece", "sequence", "border", "mask"]
    largest: Callable[[int, int], int] | None
    check: str
    why: str
    fill: int | None = 0


def most_sequences(width: int, pieces: int = 0) -> int:
    """Return the most sequences of a packed row of `width` pieces: each has two."""
    return width // 2


def _one(width: int, pieces: int) -> int:
    return 1


def _piece(width: int, pieces: int) -> int:
    return pieces - 1


def _place(width: int, pieces: int) -> int:
    return width - 1


def _end(width: int, pieces: int) -> int:
    return width


_WHY_ID, _WHY_PLACE = "{vocabulary} has {pieces} pieces", "a row has at most {width} pieces"
_WHY_MASK, _WHY_SPECIAL = "1 stands for a piece, and 0 for padding", "1 stands for a special piece or padding"
_WHY_PART, _WHY_GOES_ON = "the parts of a pair are 0 and 1", "1 stands for a piece that goes on a word"
_WHY_LABEL, _WHY_WEIGHT = "0 means the next sentence, and 1 another one", "a number that is not negative"
# The meaning of each, for the schema in a manifest.
MEANINGS = {
    "continuation_mask": "1 for a piece that goes on the word before it, else 0",
    "cu_seqlens": "0, then where each sequence of the row ends; padding is not counted",
    "input_ids": "pieces, as the model reads them",
    "input_mask": "1 for a piece, 0 for padding",
    "masked_lm_ids": "the pieces that belong at the masked positions, then 0",
    "masked_lm_positions": "the masked positions, ascending, then 0",
    "masked_lm_weights": "1.0 for a masked position, 0.0 after the last",
    "next_sentence_labels": "of each pair: 0 as in the text, 1 with a random second part (nsp) or swapped (sop)",
    "position_ids": "a piece's place in its sequence, from 0; 0 for padding",
    "segment_ids": "0 for the first part of a pair and for padding, 1 for the second part",
    "sequence_ids": "1, 2, … for the sequences of the row, 0 for padding",
    "special_tokens_mask": "1 for [CLS], [SEP] and padding, as they stood before masking",
}
FEATURES = {
    "input_ids": Feature("piece", _piece, "ids", _WHY_ID),
    "input_mask": Feature("piece", _one, "padding", _WHY_MASK),
    "segment_ids": Feature("piece", _one, "segments", _WHY_PART),
    "special_tokens_mask": Feature("piece", _one, "special_tokens", _WHY_SPECIAL, fill=1),
    "continuation_mask": Feature("piece", _one, "schema", _WHY_GOES_ON),
    "sequence_ids": Feature("piece", most_sequences, "packing", _WHY_PLACE),
    "position_ids": Feature("piece", _place, "packing", _WHY_PLACE),
    "next_sentence_labels": Feature("sequence", _one, "labels", _WHY_LABEL),
    "cu_seqlens": Feature("border", _end, "packing", _WHY_PLACE, fill=None),
    "masked_lm_positions": Feature("mask", _place, "masks", _WHY_PLACE),
    "masked_lm_ids": Feature("mask", _piece, "ids", _WHY_ID),
    "masked_lm_weights": Feature("mask", None, "masks", _WHY_WEIGHT),
}
OF_MASKS = tuple(name for name, feature in FEATURES.items() if feature.per == "mask")
# The features whose values are 0 or 1.
FLAGS = tuple(name for name, feature in FEATURES.items() if feature.largest is _one)
