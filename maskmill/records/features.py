"""The features that a row may have: what each is, how many values it has, and which values are allowed.

Whoever writes, reads, checks or batches columns takes their rules from this table.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

# What TensorFlow Models calls features that have another name there.
V2_NAMES = {"input_ids": "input_word_ids", "segment_ids": "input_type_ids"}


class Feature(NamedTuple):
    """A feature of a row.

    Attributes:
      per: of what a row has a value: of each piece; of each sequence in it, or where each starts and the last one ends
        (borders); of each mask.
      largest: the largest value, for a row of at most so many pieces and a vocabulary of so many; None: floats. The
        smallest is 0.
      what: what it is, for the schema in a manifest.
      why: why a value is allowed; it may name the `width` of a row and the `vocabulary` with its number of `pieces`.
      check: the check of `maskmill verify` that finds a value that is not allowed.
      fill: what rows are filled up with behind the values that they have; None: their last value.
    """

    per: Literal["piece", "sequence", "border", "mask"]
    largest: Callable[[int, int], int] | None
    what: str
    why: str
    check: str
    fill: int | None = 0


def _one(width: int, pieces: int) -> int:
    return 1


def _piece(width: int, pieces: int) -> int:
    return pieces - 1


def _place(width: int, pieces: int) -> int:
    return width - 1


def _end(width: int, pieces: int) -> int:
    return width


def _sequence(width: int, pieces: int) -> int:
    return most_sequences(width)


def most_sequences(width: int) -> int:
    """The most sequences of a packed row of `width` pieces: each has two."""
    return width // 2


_OF_VOCABULARY = "{vocabulary} has {pieces} pieces"
_IN_ROW = "a row has at most {width} pieces"

FEATURES: dict[str, Feature] = {
    "input_ids": Feature("piece", _piece, "pieces, as the model reads them", _OF_VOCABULARY, "ids"),
    "input_mask": Feature(
        "piece", _one, "1 for a piece, 0 for padding", "1 stands for a piece, and 0 for padding", "padding"
    ),
    "segment_ids": Feature(
        "piece",
        _one,
        "0 for the first part of a pair and for padding, 1 for the second part",
        "the parts of a pair are 0 and 1",
        "segments",
    ),
    "special_tokens_mask": Feature(
        "piece",
        _one,
        "1 for [CLS], [SEP] and padding, as they stood before masking",
        "1 stands for a special piece or padding",
        "special_tokens",
        fill=1,
    ),
    "continuation_mask": Feature(
        "piece",
        _one,
        "1 for a piece that goes on the word before it, else 0",
        "1 stands for a piece that goes on a word",
        "schema",
    ),
    "sequence_ids": Feature(
        "piece", _sequence, "1, 2, … for the sequences of the row, 0 for padding", _IN_ROW, "packing"
    ),
    "position_ids": Feature(
        "piece", _place, "a piece's place in its sequence, from 0; 0 for padding", _IN_ROW, "packing"
    ),
    "next_sentence_labels": Feature(
        "sequence",
        _one,
        "of each pair: 0 as in the text, 1 with a random second part (nsp) or swapped (sop)",
        "0 means the next sentence, and 1 another one",
        "labels",
    ),
    "cu_seqlens": Feature(
        "border",
        _end,
        "0, then where each sequence of the row ends; padding is not counted",
        _IN_ROW,
        "packing",
        fill=None,
    ),
    "masked_lm_positions": Feature("mask", _place, "the masked positions, ascending, then 0", _IN_ROW, "masks"),
    "masked_lm_ids": Feature(
        "mask", _piece, "the pieces that belong at the masked positions, then 0", _OF_VOCABULARY, "ids"
    ),
    "masked_lm_weights": Feature(
        "mask", None, "1.0 for a masked position, 0.0 behind the last", "a number that is not negative", "masks"
    ),
}
OF_MASKS = tuple(name for name, feature in FEATURES.items() if feature.per == "mask")
# Those whose values are 0 or 1.
FLAGS = tuple(name for name, feature in FEATURES.items() if feature.largest is _one)
