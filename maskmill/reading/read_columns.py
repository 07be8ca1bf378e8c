"""Which columns of a data set are read, and what their values may be: by a manifest's schema, or by a first example."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from maskmill.reading.data_set import ReadColumn
from maskmill.records.columns import V2_NAMES, smallest_integers

INT64, FLOAT = "int64", "float"  # kinds of a tf.train.Feature
_GOOGLE_NAMES = {v2: google for google, v2 in V2_NAMES.items()}
_MOST_INT32 = int(np.iinfo(np.int32).max)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowLimits:
    """What limits the values of rows.

    Attributes:
      width: most pieces of a row.
      vocabulary_size: ids are below it; None: not known.
      vocabulary: where that is from, for messages.
      segments: segment ids are below it.
      pad_id: what rows of pieces are filled up with.
    """

    width: int
    vocabulary_size: int | None
    vocabulary: str
    segments: int
    pad_id: int


@dataclasses.dataclass(frozen=True)
class SchemaColumn:
    """A column as a manifest lists it: its name, how many values each row has (None: as many as it needs), its kind."""

    name: str
    length: int | None
    is_float: bool


@dataclasses.dataclass(frozen=True)
class Range:
    """The values that a column may have, from `low` to `high`, both included, and their `meaning`: it must be …"""

    low: float
    high: float
    meaning: str


def columns_of_schema(schema: Sequence[SchemaColumn], limits: RowLimits) -> tuple[ReadColumn, ...]:
    """The columns that a manifest lists."""
    columns = [_column(column, limits) for column in schema]
    return tuple(sorted(columns, key=lambda column: column.feature))


def columns_of_example(features: Mapping[str, tuple[int, str]], limits: RowLimits) -> tuple[ReadColumn, ...]:
    """The columns of TFRecords without a schema: one for each feature of an example, but for those of bytes.

    features: by name the number of values and their kind: int64, float or bytes.
    """
    is_packed = "cu_seqlens" in features
    columns = []
    for name, (length, kind) in features.items():
        if kind in (INT64, FLOAT):
            varies = name == "cu_seqlens" or (is_packed and name == "next_sentence_labels")
            columns.append(_column(SchemaColumn(name, None if varies else length, kind == FLOAT), limits))
    return tuple(sorted(columns, key=lambda column: column.feature))


def _column(column: SchemaColumn, limits: RowLimits) -> ReadColumn:
    feature = _GOOGLE_NAMES.get(column.name, column.name)
    allowed = _ranges(limits).get(feature)
    largest = math.inf if allowed is None else allowed.high
    return ReadColumn(
        name=column.name,
        feature=feature,
        width=_room(feature, limits.width) if column.length is None else column.length,
        varies=column.length is None,
        dtype=np.dtype(np.float32) if column.is_float else smallest_integers(largest),
        fill=_fill(feature, limits),
        low=None if allowed is None else allowed.low,
        high=None if allowed is None else allowed.high,
        meaning="" if allowed is None else allowed.meaning,
    )


def _fill(feature: str, limits: RowLimits) -> int | None:
    """ReadColumn.fill. Padding is special to special_tokens_mask."""
    return {"input_ids": limits.pad_id, "special_tokens_mask": 1, "cu_seqlens": None}.get(feature, 0)


def _room(feature: str, width: int) -> int:
    """The most values of a column whose rows have as many as they need; a sequence of a packed row has two pieces."""
    return {"cu_seqlens": width // 2 + 1, "next_sentence_labels": width // 2}.get(feature, width)


def _ranges(limits: RowLimits) -> dict[str, Range]:
    """The values that features may have."""
    width = limits.width

    def below(count: int, why: str) -> Range:
        return Range(0, count - 1, f"from 0 to {count - 1}: {why}")

    if limits.vocabulary_size is None:
        pieces = Range(0, _MOST_INT32, f"from 0 to {_MOST_INT32}: ids of pieces have 31 bits")
    else:
        pieces = below(limits.vocabulary_size, f"{limits.vocabulary} has {limits.vocabulary_size} pieces")
    in_row = f"a row has at most {width} pieces"
    return {
        "input_ids": pieces,
        "masked_lm_ids": pieces,
        "input_mask": below(2, "1 stands for a piece, and 0 for padding"),
        "continuation_mask": below(2, "1 stands for a piece that goes on a word"),
        "special_tokens_mask": below(2, "1 stands for a special piece or padding"),
        "segment_ids": below(limits.segments, "the parts of a pair are 0 and 1"),
        "next_sentence_labels": below(2, "0 means the next sentence, and 1 another one"),
        "sequence_ids": below(width // 2 + 1, in_row),
        "position_ids": below(width, in_row),
        "cu_seqlens": below(width + 1, in_row),
        "masked_lm_positions": below(width, in_row),
        "masked_lm_weights": Range(0, float(np.finfo(np.float32).max), "a number that is not negative"),
    }
