"""The columns of a data set: their names and types, and their values for blocks of rows.

Every format is written from these, so the same rows read from any format are the same arrays.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.masking.kernels.rows import RowArrays
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.records.features import FEATURES, MEANINGS, OF_MASKS, V2_NAMES
from maskmill.records.options import FeatureNames
from maskmill.records.shard_formats import format_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a data set.

    Attributes:
      name: as it is written.
      feature: the feature that it holds, by google's name or ours, whatever the column is called.
      length: the number of values of each row; None: it varies from row to row.
      largest: the largest value, which decides the type; None for floats.
    """

    name: str
    feature: str
    length: int | None
    largest: int | None

    @property
    def dtype(self) -> np.dtype:
        """The smallest type that fits: uint8, uint16 or int32; float32 for floats."""
        return np.dtype(np.float32) if self.largest is None else smallest_integers(self.largest)


def smallest_integers(largest: float) -> np.dtype:
    """Return the smallest of uint8, uint16 and int32 that holds all integers from 0 to `largest`."""
    for kind in (np.uint8, np.uint16):
        if largest <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.int32)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ColumnRules:
    """The options that decide the columns.

    masking, objective: the options of the rows. vocabulary_size: ids are below it. names: of the features.
    special_tokens_mask, continuation_mask: whether there is such a column; a reader that draws masks needs the second
    if ids do not show where words start. padded: whether the columns of pieces have `width` values in every row, or
    only one for each piece.
    """

    masking: MaskingOptions
    objective: ObjectiveOptions
    vocabulary_size: int
    names: FeatureNames
    special_tokens_mask: bool
    padded: bool
    continuation_mask: bool = False


def columns_of(rules: ColumnRules, width: int) -> tuple[Column, ...]:
    """Return the columns of rows in the order of their names; if padded, then to `width` pieces.

    Types follow from max_seq_length, so the files of all bins have the same.
    """
    objective, longest = rules.objective, rules.masking.max_seq_length
    lengths = {
        "piece": width if rules.padded else None,
        "sequence": None if objective.pack else 1,
        "border": None,
        "mask": rules.masking.max_predictions_per_seq,
    }
    is_written = {
        "input_ids": True,
        "input_mask": rules.padded,
        "continuation_mask": rules.continuation_mask,
        "special_tokens_mask": rules.special_tokens_mask,
        **dict.fromkeys(("segment_ids", "next_sentence_labels"), objective.objective in ("nsp", "sop")),
        **dict.fromkeys(("sequence_ids", "position_ids", "cu_seqlens"), objective.pack),
        **dict.fromkeys(OF_MASKS, not objective.dynamic_masking),
    }
    names = V2_NAMES if rules.names == "v2" else {}
    columns = [
        Column(
            name=names.get(name, name),
            feature=name,
            length=lengths[feature.per],
            largest=None if feature.largest is None else feature.largest(longest, rules.vocabulary_size),
        )
        for name, feature in FEATURES.items()
        if is_written[name]
    ]
    return tuple(sorted(columns, key=lambda column: column.name))


@dataclasses.dataclass(frozen=True)
class ColumnValues:
    """The values of a column for some rows.

    values: of all rows, one row after the other, of the column's dtype. offsets: int64[rows + 1]; the values of row k
    are values[offsets[k] : offsets[k + 1]].
    """

    values: npt.NDArray[np.generic]
    offsets: npt.NDArray[np.int64]


def column_values(column: Column, rows: RowArrays, count: int, special_ids: Sequence[int], width: int) -> ColumnValues:
    """Return the values of a column for the first `count` rows of a block.

    Args:
      column: one of `columns_of` for this width.
      rows: a block.
      count: how many of its rows are in use.
      special_ids: the ids of [CLS] and [SEP].
      width: the pieces of a padded row; no row of the block has more.
    """
    rows = RowArrays(*(array[:count] for array in rows))
    table, used = _table(column.feature, rows, special_ids, width)
    if column.length is None:
        values = table[up_to(used, table.shape[1])]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(used, dtype=np.int64)])
    else:
        values = table[:, : column.length].reshape(-1)
        offsets = np.arange(count + 1, dtype=np.int64) * column.length
    if values.dtype == np.bool_:
        values = values.view(np.uint8)
    return ColumnValues(values.astype(column.dtype, copy=False), offsets)


def _table(
    feature: str, rows: RowArrays, special_ids: Sequence[int], width: int
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int32]]:
    """Return the values of a feature, [rows, width], padded; and int32[rows], how many of each row are no padding."""
    used = {"piece": rows.lengths, "sequence": rows.members, "border": rows.members + 1, "mask": rows.masked}
    if feature == "special_tokens_mask":
        return _is_special(rows, special_ids, width), rows.lengths
    return _TABLES[feature](rows, width), used[FEATURES[feature].per]


def up_to(counts: npt.NDArray[np.int32], width: int) -> npt.NDArray[np.bool_]:
    """Return bool[rows, width]: True at the first counts[k] places of row k."""
    places = np.arange(width, dtype=np.int32)  # of the type of counts, so that neither is converted
    return places < counts[:, None]


def _is_special(rows: RowArrays, special_ids: Sequence[int], width: int) -> npt.NDArray[np.bool_]:
    """Return bool[rows, width]: True for [CLS], [SEP] and padding, as they were before masking."""
    is_special = ~up_to(rows.lengths, width)
    ids = rows.input_ids[:, :width]
    for special_id in special_ids:
        is_special |= ids == special_id
    lines, masks = np.nonzero(up_to(rows.masked, rows.labels.shape[1]))
    is_special[lines, rows.positions[lines, masks]] = np.isin(rows.labels[lines, masks], special_ids)
    return is_special


def _sequence_ids(rows: RowArrays, width: int) -> npt.NDArray[np.int32]:
    """Return int32[rows, width]: 1, 2, … for the sequences of a row, 0 for padding."""
    numbers = np.arange(1, rows.sequence_starts.shape[1] + 1, dtype=np.int32)
    ids: npt.NDArray[np.int32] = _spread(np.where(numbers <= rows.members[:, None], numbers, 0), rows, width)
    return ids


def _position_ids(rows: RowArrays, width: int) -> npt.NDArray[np.int32]:
    """Return int32[rows, width]: a piece's place in its sequence, 0 for padding."""
    places = np.arange(width, dtype=np.int32) - _spread(rows.sequence_starts, rows, width)
    return np.where(up_to(rows.lengths, width), places, np.int32(0))


def _spread(values: npt.NDArray[np.int32], rows: RowArrays, width: int) -> npt.NDArray[np.int32]:
    """Return int32[rows, width]: at each place the value of its sequence.

    values: int32[rows, M + 1], as sequence_starts: after the values of a row's sequences comes that of its padding.
    """
    count, columns = values.shape
    is_run = up_to(rows.members + 1, columns)
    starts = np.concatenate([rows.sequence_starts[is_run], np.zeros(1, np.int32)])
    sizes = np.diff(starts)
    sizes[np.cumsum(rows.members + 1) - 1] = width - rows.lengths
    return np.repeat(values[is_run], sizes).reshape(count, width)


# The array of each feature, a line for each row; _is_special makes that of special_tokens_mask.
_TABLES: dict[str, Callable[[RowArrays, int], npt.NDArray[np.generic]]] = {
    "input_ids": lambda rows, width: rows.input_ids[:, :width],
    "input_mask": lambda rows, width: up_to(rows.lengths, width),
    "segment_ids": lambda rows, width: rows.segment_ids[:, :width],
    "continuation_mask": lambda rows, width: rows.continues[:, :width],
    "sequence_ids": _sequence_ids,
    "position_ids": _position_ids,
    "next_sentence_labels": lambda rows, width: rows.next_sentence_labels,
    "cu_seqlens": lambda rows, width: rows.sequence_starts,
    "masked_lm_positions": lambda rows, width: rows.positions,
    "masked_lm_ids": lambda rows, width: rows.labels,
    "masked_lm_weights": lambda rows, width: up_to(rows.masked, rows.labels.shape[1]).astype(np.float32),
}


def schema(columns: Sequence[Column], format: str) -> list[dict[str, Any]]:
    """Return the columns as a manifest lists them.

    Each has its name, the type of its values as the format stores them, the shape of a row's values ([n], or [null]
    where it varies from row to row) and what it is.
    """
    integers = format_of(format).integers
    return [
        {
            "name": column.name,
            "dtype": (column.largest is not None and integers) or column.dtype.name,
            "shape": [column.length],
            "what": MEANINGS[column.feature],
        }
        for column in columns
    ]
