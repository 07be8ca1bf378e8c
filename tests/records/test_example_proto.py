"""tf.train.Example on the protobuf library, against examples that are encoded byte by byte."""

import gzip
import struct

import hypothesis
import pytest
from data_sets.gold_examples import PICKED
from hypothesis import strategies as st
from oracles import pretraining as oracle
from properties import tries

from maskmill.records.example_proto import Feature, count_values, encode_example, parse_example

BYTES_LIST, FLOAT_LIST, INT64_LIST = 1, 2, 3  # field numbers of tf.train.Feature


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field of fewer than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def entry(name: str, feature: bytes) -> bytes:
    """An entry of the feature map."""
    return field(1, field(1, name.encode()) + field(2, feature))


WORDS = entry("words", field(BYTES_LIST, field(1, b"ab") + field(1, b"")))
NUMBERS = entry("numbers", field(INT64_LIST, field(1, b"\x01\xac\x02")))
NEGATIVE = entry("negative", field(INT64_LIST, field(1, b"\xff" * 9 + b"\x01")))
FLOATS = entry("floats", field(FLOAT_LIST, field(1, struct.pack("<3f", 1.5, 0.0, float("inf")))))
EMPTY = entry("empty", b"")


def test_features_of_every_kind_are_kept() -> None:
    # Two fields of features are merged; entries come out sorted by name.
    record = field(1, WORDS + NUMBERS) + field(1, NEGATIVE + FLOATS + EMPTY)
    features = parse_example(record)
    assert {name: count_values(feature) for name, feature in features.items()} == {
        "empty": 0, "floats": 3, "negative": 1, "numbers": 2, "words": 2,
    }  # fmt: skip
    assert list(features["words"].bytes_list.value) == [b"ab", b""]
    assert list(features["floats"].float_list.value) == [1.5, 0.0, float("inf")]
    assert list(features["numbers"].int64_list.value) == [1, 300]
    assert list(features["negative"].int64_list.value) == [-1]
    assert encode_example(features) == field(1, EMPTY + FLOATS + NEGATIVE + NUMBERS + WORDS)


def test_lists_that_are_not_packed_come_out_packed() -> None:
    loose = entry("loose", field(INT64_LIST, b"\x08\x01\x08\xac\x02"))
    mixed = entry("mixed", field(FLOAT_LIST, b"\x0d" + struct.pack("<f", 1.5) + field(1, bytes(8))))
    features = parse_example(field(1, loose + mixed))
    assert {name: count_values(feature) for name, feature in features.items()} == {"loose": 2, "mixed": 3}
    packed = entry("loose", field(INT64_LIST, field(1, b"\x01\xac\x02")))
    packed += entry("mixed", field(FLOAT_LIST, field(1, struct.pack("<3f", 1.5, 0.0, 0.0))))
    assert encode_example(features) == field(1, packed)


def test_a_name_on_two_entries_has_the_last_one() -> None:
    first = entry("numbers", field(INT64_LIST, field(1, b"\x07")))
    assert encode_example(parse_example(field(1, first + NUMBERS))) == field(1, NUMBERS)


def test_an_example_without_features() -> None:
    assert parse_example(b"") == parse_example(field(1, b"")) == {}
    assert encode_example({}) == field(1, b"")


def test_parts_of_entries_that_are_missing_are_empty() -> None:
    assert encode_example(parse_example(field(1, field(1, b"")))) == field(1, entry("", b""))


def test_the_references_examples_come_out_as_the_oracle_encodes_them() -> None:
    content = gzip.decompress(PICKED.read_bytes())
    for record in oracle.split_tfrecord(content):
        assert encode_example(parse_example(record)) == oracle.encode_example(oracle.decode_example(record))


names = st.text(st.sampled_from("a/bé漢\U0001f600"), max_size=3)
lists = st.one_of(
    st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=4),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=4),
)


@tries(100)
@hypothesis.given(st.lists(st.tuples(names, lists), min_size=1, max_size=6, unique_by=lambda item: item[0]))
def test_entries_in_any_order_come_out_sorted(items: list[tuple[str, list[int] | list[float]]]) -> None:
    features = {name: Feature() for name, _ in items}
    for name, values in items:
        kind = "float_list" if isinstance(values[0], float) else "int64_list"
        getattr(features[name], kind).value.extend(values)
    parsed = parse_example(encode_example(features))
    assert list(parsed) == sorted(features)
    assert parsed == features
    # The oracle sorts them itself.
    assert encode_example(parsed) == oracle.encode_example(dict(items))


@pytest.mark.parametrize(
    "record",
    [
        b"\x0b",  # a group that does not end
        field(1, NUMBERS)[:-1],
        b"\xff" * 12,
        field(1, field(1, field(1, b"\xff") + field(2, b""))),  # a name that is not UTF-8
    ],
)
def test_what_is_no_message_is_refused(record: bytes) -> None:
    with pytest.raises(ValueError, match="it cannot be decoded"):
        parse_example(record)


@pytest.mark.parametrize(
    "record",
    [
        b"\x10\x01",  # of the Example
        field(1, b"\x10\x01"),  # of the Features
        field(1, NUMBERS) + field(2, b"more"),
        field(1, entry("a", field(4, b""))),  # of a Feature
        field(1, entry("a", b"\x18\x01")),  # its list of integers is a number
        field(1, entry("a", field(INT64_LIST, field(2, b"")))),  # of a list
    ],
)
def test_fields_that_an_example_does_not_have_are_refused(record: bytes) -> None:
    with pytest.raises(ValueError, match="it has fields that an Example does not have"):
        parse_example(record)
