"""The columns of a data set: which there are, what they are called, and the arrays that rows give for them.

Every format is written from these, so that the same rows read from any of them are the same arrays.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from transforms.masking.kernels.rows import RowArrays
from transforms.masking.objective_options import ObjectiveOptions
from transforms.masking.options import MaskingOptions
from transforms.records.options import FeatureNames

# TensorFlow Models' own names.
_V2_NAMES = {"input_ids": "input_word_ids", "segment_ids": "input_type_ids"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a data set.

    Attributes:
      name: as it is written.
      feature: what it is, by google's name or ours, whatever it is called.
      length: how many values each row has; None: as many as the row needs.
      largest: the largest value, from which a format chooses its type; None for floats.
    """

    name: str
    feature: str
    length: int | None
    largest: int | None

    @property
    def dtype(self) -> np.dtype:
        """The smallest type that fits: uint8, uint16 or int32; float32 for floats."""
        if self.largest is None:
            return np.dtype(np.float32)
        for kind in (np.uint8, np.uint16):
            if self.largest <= np.iinfo(kind).max:
                return np.dtype(kind)
        return np.dtype(np.int32)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ColumnRules:
    """What decides the columns.

    masking, objective: as the rows were made. vocabulary_size: ids are below it. names: how features are called.
    special_tokens_mask: whether there is such a column. padded: whether the columns of pieces have `width` values in
    every row, or only those of its pieces.
    """

    masking: MaskingOptions
    objective: ObjectiveOptions
    vocabulary_size: int
    names: FeatureNames
    special_tokens_mask: bool
    padded: bool


def columns_of(rules: ColumnRules, width: int) -> tuple[Column, ...]:
    """The columns of rows, in the order of their features' names, padded to `width` pieces where they are padded."""
    objective, predictions = rules.objective, rules.masking.max_predictions_per_seq
    pieces = width if rules.padded else None
    packed, pairs = objective.pack, objective.objective in ("nsp", "sop")
    wanted: dict[str, tuple[int | None, int | None]] = {"input_ids": (pieces, rules.vocabulary_size - 1)}
    if rules.padded:
        wanted["input_mask"] = (pieces, 1)
    if pairs:
        wanted["segment_ids"] = (pieces, 1)
        wanted["next_sentence_labels"] = (None if packed else 1, 1)
    if rules.special_tokens_mask:
        wanted["special_tokens_mask"] = (pieces, 1)
    if packed:
        wanted |= {
            "sequence_ids": (pieces, width // 2),
            "position_ids": (pieces, width - 1),
            "cu_seqlens": (None, width),
        }
    if not objective.dynamic_masking:
        wanted |= {
            "masked_lm_positions": (predictions, width - 1),
            "masked_lm_ids": (predictions, rules.vocabulary_size - 1),
            "masked_lm_weights": (predictions, None),
        }
    v2 = _V2_NAMES if rules.names == "v2" else {}
    return tuple(
        Column(name=v2.get(feature, feature), feature=feature, length=length, largest=largest)
        for feature, (length, largest) in sorted(wanted.items())
    )


@dataclasses.dataclass(frozen=True)
class ColumnValues:
    """The values of a column for some rows.

    values: of all rows, one row after the other, of the column's dtype. offsets: int64[rows + 1], where each row's
    values start and end.
    """

    values: npt.NDArray[np.generic]
    offsets: npt.NDArray[np.int64]


def column_values(column: Column, rows: RowArrays, count: int, special_ids: Sequence[int], width: int) -> ColumnValues:
    """The values of a column for the first `count` rows of a block; special_ids: those of [CLS] and [SEP]."""
    raise NotImplementedError
