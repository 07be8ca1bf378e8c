"""Columns: their names, types and order, and the values that rows give for them."""

import hypothesis.strategies as st
import numpy as np
import pytest
from data_sets.row_blocks import columns_for
from hypothesis import given
from made_up.rows import made_up_rows
from oracles.columns import features_of
from properties import SEEDED, tries

from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.records.columns import Column, ColumnRules, column_values, columns_of, schema

SPECIAL = (1, 2)
LONG = MaskingOptions(max_seq_length=512)
OWN = ("masking", "names", "padded", "special_tokens_mask", "vocabulary_size")
OF_PIECES = ("continuation_mask", "input_ids", "segment_ids", "special_tokens_mask", "sequence_ids", "position_ids")
NSP = ColumnRules(
    masking=MaskingOptions(),
    objective=ObjectiveOptions(),
    vocabulary_size=30_522,
    names="google",
    special_tokens_mask=False,
    padded=True,
)


def rules(**changes: object) -> ColumnRules:
    """Those of nsp with these changes; of ObjectiveOptions where that has the name."""
    own = {name: value for name, value in changes.items() if name in OWN}
    objective = ObjectiveOptions(**{name: value for name, value in changes.items() if name not in own})  # type: ignore[arg-type]
    return ColumnRules(**{**vars(NSP), "objective": objective, **own})


def test_the_columns_of_nsp_are_the_references() -> None:
    assert [(column.name, column.length, column.dtype.name) for column in columns_of(NSP, 128)] == [
        ("input_ids", 128, "uint16"),
        ("input_mask", 128, "uint8"),
        ("masked_lm_ids", 20, "uint16"),
        ("masked_lm_positions", 20, "uint8"),
        ("masked_lm_weights", 20, "float32"),
        ("next_sentence_labels", 1, "uint8"),
        ("segment_ids", 128, "uint8"),
    ]


def test_v2_names_stand_in_their_own_order() -> None:
    names = [column.name for column in columns_of(rules(names="v2"), 128)]
    assert names == sorted(names)
    assert names[:3] == ["input_mask", "input_type_ids", "input_word_ids"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"objective": "mlm", "dynamic_masking": True}, ["input_ids", "input_mask"]),
        ({"objective": "mlm", "dynamic_masking": True, "padded": False}, ["input_ids"]),
        ({"objective": "sop", "dynamic_masking": True, "padded": False}, "input_ids next_sentence_labels segment_ids"),
        (
            {"objective": "mlm", "dynamic_masking": True, "pack": True, "special_tokens_mask": True},
            "cu_seqlens input_ids input_mask position_ids sequence_ids special_tokens_mask",
        ),
    ],
)
def test_the_columns_of_other_objectives(changes: dict[str, object], expected: str | list[str]) -> None:
    names = [column.name for column in columns_of(rules(**changes), 128)]
    assert names == (expected.split() if isinstance(expected, str) else expected)


def test_types_are_the_smallest_that_fit() -> None:
    for largest, name in [(255, "uint8"), (256, "uint16"), (65_535, "uint16"), (65_536, "int32"), (None, "float32")]:
        assert Column(name="x", feature="x", length=1, largest=largest).dtype.name == name


def test_files_of_all_bins_have_the_same_types() -> None:
    types = [[column.dtype.name for column in columns_of(rules(bins=4, masking=LONG), width)] for width in (128, 512)]
    assert types[0] == types[1]


def test_the_schema_says_how_a_format_stores_each_column() -> None:
    columns = columns_of(rules(objective="mlm", pack=True, masking=LONG), 512)
    parquet = {entry["name"]: entry for entry in schema(columns, "parquet")}
    assert (parquet["input_ids"]["dtype"], parquet["input_ids"]["shape"]) == ("uint16", [512])
    assert (parquet["cu_seqlens"]["dtype"], parquet["cu_seqlens"]["shape"]) == ("uint16", [None])
    assert {entry["dtype"] for entry in schema(columns, "tfrecord")} == {"int64", "float32"}
    assert all(entry["what"] for entry in parquet.values())


@tries(200, **SEEDED)
@given(seed=st.integers(0, 2**62), padded=st.booleans())
def test_values_are_those_of_the_oracle(seed: int, padded: bool) -> None:
    made = made_up_rows(seed, SPECIAL)
    width = made.masking.max_seq_length
    count = len(made.rows.lengths)
    rows = [features_of(made.rows, n, SPECIAL, width, made.pad_id) for n in range(count)]
    for column in columns_for(made, padded=padded):
        made_values = column_values(column, made.rows, count, SPECIAL, width)
        assert made_values.values.dtype == column.dtype
        assert len(made_values.offsets) == count + 1
        for n, row in enumerate(rows):
            values = made_values.values[made_values.offsets[n] : made_values.offsets[n + 1]].tolist()
            expected = row[column.feature]
            if not padded and column.feature in OF_PIECES:
                expected = expected[: made.rows.lengths[n]]
            assert values == expected, column.feature


def test_a_narrower_width_leaves_out_padding_only() -> None:
    made = made_up_rows(3, SPECIAL, count=5)
    made.rows.lengths[:] = np.minimum(made.rows.lengths, 4)
    made.rows.members[:] = 1
    made.rows.sequence_starts[:, :2] = np.stack([np.zeros(5), made.rows.lengths], axis=1)
    made.rows.masked[:] = 0
    for column in columns_of(rules(objective="mlm", dynamic_masking=True, vocabulary_size=made.vocabulary_size), 4):
        values = column_values(column, made.rows, 5, SPECIAL, 4).values
        expected = [v for n in range(5) for v in features_of(made.rows, n, SPECIAL, 4, made.pad_id)[column.feature]]
        assert values.tolist() == expected
