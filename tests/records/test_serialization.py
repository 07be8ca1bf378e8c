"""Serialised records: what a parser reads of them, the same bytes in blocks of any size, numbers of any size."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
import pytest
from data_sets.row_blocks import columns_for
from hypothesis import given
from hypothesis import strategies as st
from made_up.rows import MadeUpRows, made_up_rows
from made_up.texts import vocabulary_from
from oracles import pretraining as oracle
from properties import SEEDED, tries

from maskmill.masking.kernels.rows import RowArrays
from maskmill.records import serialization
from maskmill.records.columns import Column, column_values
from maskmill.records.kernels import serialize as kernels
from maskmill.records.options import FeatureNames
from maskmill.records.serialization import Serializer
from maskmill.tokenization.vocabulary import Vocabulary

SMALL = "[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
SPECIAL = (1, 2)


@functools.cache
def vocabulary_of_size(size: int) -> Vocabulary:
    """One in which [CLS] is 1 and [SEP] is 2; its last line is its largest id."""
    return vocabulary_from((SMALL + "\n" * (size - 5) + "last").encode(), "last")


def records_of(made: MadeUpRows, columns: Sequence[Column], width: int, blocks: Sequence[RowArrays]) -> list[bytes]:
    """The records that a new serializer gives, frames included."""
    records = []
    vocabulary = dataclasses.replace(vocabulary_of_size(made.vocabulary_size), pad_id=made.pad_id)
    serializer = Serializer(columns, vocabulary, width, made.masking.max_predictions_per_seq)
    for block in serializer.blocks((rows, len(rows.lengths)) for rows in blocks):
        data, ends = bytes(block.data), np.cumsum(block.sizes).tolist()
        assert ends[-1] == len(data)
        records += [data[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    return records


def feature_values(record: bytes) -> oracle.Features:
    (example,) = oracle.split_tfrecord(record)
    return oracle.decode_example(example)


@tries(200, **SEEDED)
@given(seed=st.integers(0, 2**62), names=st.sampled_from(["google", "v2"]), special_tokens_mask=st.booleans())
def test_a_parser_reads_the_values_of_the_columns(seed: int, names: FeatureNames, special_tokens_mask: bool) -> None:
    made = made_up_rows(seed, SPECIAL)
    width, count = made.masking.max_seq_length, len(made.rows.lengths)
    columns = columns_for(made, padded=True, names=names, special_tokens_mask=special_tokens_mask)
    records = records_of(made, columns, width, [made.rows])
    parsed = [feature_values(record) for record in records]
    assert len(parsed) == count
    for column in columns:
        expected = column_values(column, made.rows, count, SPECIAL, width)
        for n, features in enumerate(parsed):
            assert list(features) == [c.name for c in columns]
            assert features[column.name] == expected.values[expected.offsets[n] : expected.offsets[n + 1]].tolist()
    for record, features in zip(records, parsed, strict=True):
        assert record == oracle.encode_tfrecord(oracle.encode_example(features))


def cut(rows: RowArrays, start: int, end: int) -> RowArrays:
    return RowArrays(*(array[start:end] for array in rows))


@pytest.mark.builds
@pytest.mark.parametrize("buffer", [1, 2000, 10_000])
@pytest.mark.parametrize("seed", range(3))
def test_where_blocks_end_makes_no_difference(seed: int, buffer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_up_rows(seed, SPECIAL, count=40)
    width = made.masking.max_seq_length
    columns = columns_for(made, padded=True)
    expected = records_of(made, columns, width, [made.rows])
    monkeypatch.setattr(serialization, "_BUFFER_BYTES", buffer)
    blocks = [cut(made.rows, 0, 17), cut(made.rows, 17, 17), cut(made.rows, 17, 40)]
    assert records_of(made, columns, width, blocks) == expected
    monkeypatch.undo()
    for n, record in enumerate(expected):
        assert records_of(made, columns, width, [cut(made.rows, n, n + 1)]) == [record]


@pytest.mark.builds
@pytest.mark.parametrize("seed", range(20))
def test_rows_are_padded_to_the_width_of_their_bin(seed: int) -> None:
    made = made_up_rows(seed, SPECIAL, count=30)
    for width in range(1, made.masking.max_seq_length + 1, 7):
        chosen = np.flatnonzero(made.rows.lengths <= width)
        rows = RowArrays(*(np.ascontiguousarray(array[chosen]) for array in made.rows))
        columns = columns_for(made, padded=True, width=width)
        for n, record in enumerate(records_of(made, columns, width, [rows])):
            features = feature_values(record)
            for column in columns:
                expected = column_values(column, cut(rows, n, n + 1), 1, SPECIAL, width).values.tolist()
                assert features[column.name] == expected
                assert column.feature not in ("input_ids", "input_mask") or len(expected) == width


def test_ids_of_any_size_are_encoded() -> None:
    varints = np.empty(2**21 + 2, np.uint64)
    kernels.make_varints(varints)
    for number in (0, 1, 127, 128, 300, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**21 + 1):
        word = int(varints[number])
        length = word & 255
        encoded = word.to_bytes(8, "little")[8 - length :]
        shifted = [(byte & 127) << 7 * k for k, byte in enumerate(encoded)]
        assert sum(shifted) == number
        assert [byte >> 7 for byte in encoded] == [1] * (length - 1) + [0]
        assert length == max(1, -(-number.bit_length() // 7))
