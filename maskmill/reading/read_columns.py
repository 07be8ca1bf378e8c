"""The columns of a data set and the values that they allow, from a manifest's schema or from a first example."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from maskmill.reading.data_set import ReadColumn
from maskmill.records.columns import smallest_integers
from maskmill.records.features import FEATURES, V2_NAMES, most_sequences

INT64, FLOAT = "int64", "float"  # the kinds of a tf.train.Feature
_GOOGLE_NAMES = {v2: google for google, v2 in V2_NAMES.items()}
_IDS = ("input_ids", "masked_lm_ids")
_MOST_INT32 = int(np.iinfo(np.int32).max)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowLimits:
    """The limits of the values of rows.

    Attributes:
      width: most pieces of a row.
      vocabulary_size: ids are below it; None: not known.
      vocabulary: the source of vocabulary_size, for messages.
      segments: segment ids are below it.
      pad_id: the id that pads rows.
    """

    width: int
    vocabulary_size: int | None
    vocabulary: str
    segments: int
    pad_id: int


@dataclasses.dataclass(frozen=True)
class SchemaColumn:
    """A column as a manifest lists it: its name, the number of values of each row (None: it varies), its kind."""

    name: str
    length: int | None
    is_float: bool


@dataclasses.dataclass(frozen=True)
class Range:
    """The values that a column allows, from `low` to `high`, both included; `meaning` completes "it must be …"."""

    low: float
    high: float
    meaning: str


def columns_of_schema(schema: Sequence[SchemaColumn], limits: RowLimits) -> tuple[ReadColumn, ...]:
    """Return the columns that a manifest lists."""
    columns = [_column(column, limits) for column in schema]
    return tuple(sorted(columns, key=lambda column: column.feature))


def columns_of_example(features: Mapping[str, tuple[int, str]], limits: RowLimits) -> tuple[ReadColumn, ...]:
    """Return the columns of TFRecords without a schema: one for each feature of an example, except those of bytes.

    features: by name, the number of values and their kind: int64, float or bytes.
    """
    is_packed = "cu_seqlens" in features
    columns = []
    for name, (length, kind) in features.items():
        if kind in (INT64, FLOAT):
            varies = name == "cu_seqlens" or (is_packed and name == "next_sentence_labels")
            columns.append(_column(SchemaColumn(name, None if varies else length, kind == FLOAT), limits))
    return tuple(sorted(columns, key=lambda column: column.feature))


def _column(column: SchemaColumn, limits: RowLimits) -> ReadColumn:
    name = _GOOGLE_NAMES.get(column.name, column.name)
    feature = FEATURES.get(name)
    allowed = _allowed(name, limits)
    largest = math.inf if allowed is None else allowed.high
    # A packed row has one border more than sequences.
    most = {"piece": limits.width, "sequence": most_sequences(limits.width), "border": most_sequences(limits.width) + 1}
    fill = 0 if feature is None else feature.fill
    return ReadColumn(
        name=column.name,
        feature=name,
        width=most.get(feature.per if feature else "", limits.width) if column.length is None else column.length,
        varies=column.length is None,
        dtype=np.dtype(np.float32) if column.is_float else smallest_integers(largest),
        fill=limits.pad_id if name == "input_ids" else fill,
        low=None if allowed is None else allowed.low,
        high=None if allowed is None else allowed.high,
        meaning="" if allowed is None else allowed.meaning,
    )


def _allowed(name: str, limits: RowLimits) -> Range | None:
    """Return the values that a feature allows; None: any."""
    feature, width, pieces = FEATURES.get(name), limits.width, limits.vocabulary_size
    if feature is None:
        return None
    if feature.largest is None:
        return Range(0, float(np.finfo(np.float32).max), feature.why)
    why = feature.why.format(width=width, vocabulary=limits.vocabulary, pieces=pieces)
    largest = limits.segments - 1 if name == "segment_ids" else feature.largest(width, pieces or 0)
    if pieces is None and name in _IDS:
        largest, why = _MOST_INT32, "ids of pieces have 31 bits"
    return Range(0, largest, f"from 0 to {largest}: {why}")
