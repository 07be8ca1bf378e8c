"""Rows as the writers of formats get them, and the arrays that a reader must find again."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from made_up.rows import MadeUpRows
from oracles.columns import features_of

from maskmill.masking.kernels.rows import RowArrays
from maskmill.records.columns import Column, ColumnRules, columns_of
from maskmill.records.options import FeatureNames

SPECIAL_IDS = (1, 2)


def columns_for(
    made: MadeUpRows,
    *,
    padded: bool,
    names: FeatureNames = "google",
    special_tokens_mask: bool = True,
    width: int | None = None,
) -> tuple[Column, ...]:
    """All columns that rows can have, or without those of special and of continued pieces."""
    rules = ColumnRules(
        masking=made.masking,
        objective=made.objective,
        vocabulary_size=made.vocabulary_size,
        names=names,
        special_tokens_mask=special_tokens_mask,
        padded=padded,
        continuation_mask=special_tokens_mask,
    )
    return columns_of(rules, width or made.masking.max_seq_length)


def blocks_of(rows: RowArrays, size: int) -> Iterator[tuple[RowArrays, int]]:
    """Blocks of up to `size` rows, all in the same arrays, which are destroyed before the next block is made."""
    block = RowArrays(*(np.empty((size, *array.shape[1:]), array.dtype) for array in rows))
    for start in range(0, len(rows.lengths), size):
        count = min(size, len(rows.lengths) - start)
        for target, source in zip(block, rows, strict=True):
            target[:count] = source[start : start + count]
        yield block, count
        for target in block:
            target[:] = 77


def arrays_of(made: MadeUpRows, columns: tuple[Column, ...]) -> list[dict[str, npt.NDArray[Any]]]:
    """The arrays of each row, by the plain oracle."""
    width = made.masking.max_seq_length
    arrays = []
    for n, length in enumerate(made.rows.lengths.tolist()):
        features = features_of(made.rows, n, SPECIAL_IDS, width, made.pad_id)
        row = {}
        for column in columns:
            values = features[column.feature]
            unpadded = column.length is None and column.feature not in ("cu_seqlens", "next_sentence_labels")
            row[column.name] = np.array(values[:length] if unpadded else values, column.dtype)
        arrays.append(row)
    return arrays


def assert_same(
    found: list[dict[str, Any]], expected: list[dict[str, npt.NDArray[Any]]], *, types: bool = True
) -> None:
    """Compares rows value for value, and type for type unless `types` is False."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert list(one) == list(other)
        for name, values in other.items():
            assert not types or one[name].dtype == values.dtype
            np.testing.assert_array_equal(one[name], values)
