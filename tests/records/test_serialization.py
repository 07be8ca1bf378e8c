"""Serialised records: the same bytes in blocks of any size and any order, and numbers of any size."""

import hypothesis
import numpy as np
import oracle_pretraining as oracle
import pytest
from hypothesis import strategies as st
from made_up_texts import vocabulary_from

from transforms.masking.instances import Instances, make_instances
from transforms.masking.options import MaskingOptions
from transforms.records import serialization
from transforms.records.kernels import serialize as kernels
from transforms.records.serialization import Serializer
from transforms.tokenization.wordpiece import TokenizedText, Tokenizer

VOCABULARY = vocabulary_from("\n".join(["[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(300)), "##1"]).encode())
OPTIONS = MaskingOptions(max_seq_length=24, max_predictions_per_seq=4, dupe_factor=3)


@pytest.fixture(scope="module")
def text() -> TokenizedText:
    lines = [" ".join(map(str, range(start, start + 7))) for start in range(290)]
    documents = ["\n".join(lines[k : k + 10]) for k in range(0, 290, 10)]
    return Tokenizer(VOCABULARY).tokenize_bytes("\n\n".join(documents).encode())


@pytest.fixture(scope="module")
def instances(text: TokenizedText) -> Instances:
    return make_instances(text, VOCABULARY, OPTIONS)


def records_in(text: TokenizedText, instances: Instances, order: np.ndarray) -> list[bytes]:
    """The records that a new serializer gives, frames included."""
    records = []
    for block in Serializer(VOCABULARY, OPTIONS).blocks(text, instances, order):
        data, ends = bytes(block.data), np.cumsum(block.sizes).tolist()
        assert ends[-1] == len(data)
        records += [data[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    return records


def test_each_record_is_in_the_frame_of_the_format(text: TokenizedText, instances: Instances) -> None:
    records = records_in(text, instances, instances.order)
    assert len(records) == len(instances) > 100
    for record in records:
        (example,) = oracle.split_tfrecord(record)
        assert record == oracle.encode_tfrecord(oracle.encode_example(oracle.decode_example(example)))


@pytest.mark.parametrize("buffer", [1, 2000, 10_000])
def test_where_blocks_end_makes_no_difference(
    buffer: int, text: TokenizedText, instances: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = records_in(text, instances, instances.order)
    monkeypatch.setattr(serialization, "_BUFFER_BYTES", buffer)
    assert records_in(text, instances, instances.order) == expected


@hypothesis.settings(
    deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(st.lists(st.integers(0, 100), max_size=20), st.integers(1, 3))
def test_any_order(text: TokenizedText, instances: Instances, order: list[int], step: int) -> None:
    in_place = records_in(text, instances, np.arange(len(instances)))
    strided = np.array(order, np.int64)[::step]
    assert records_in(text, instances, strided) == [in_place[n] for n in strided]


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
