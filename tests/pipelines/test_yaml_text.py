"""YAML by the rules of YAML 1.2's core schema; what is written reads back as the same value."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskmill.errors import UnusableInputError
from pipelines.settings import yaml_text


def parse(text: str) -> Any:
    return yaml_text.parse(text.encode(), where="b.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5e-05", 5e-05),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-.inf", -math.inf),
        ("0123", 123),
        ("0o17", 15),
        ("0x1F", 31),
        ("+5", 5),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2024-05-01", "2024-05-01"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("True", True),
        ("FALSE", False),
        ("~", None),
        ("", None),
        ("Null", None),
        ("'1'", "1"),
        ("=", "="),
        ("[1, '2', null]", [1, "2", None]),
        ("&seed 7", 7),
    ],
)
def test_plain_values_follow_the_core_schema(text: str, value: object) -> None:
    read = parse(f"k: {text}")["k"]
    assert read == value
    assert type(read) is type(value)


def test_not_a_number_is_a_number() -> None:
    assert all(math.isnan(parse(f"k: {text}")["k"]) for text in (".nan", ".NaN", ".NAN"))


def test_an_alias_stands_for_a_single_value() -> None:
    assert parse("a: &seed 7\nb: *seed") == {"a": 7, "b": 7}


def test_a_key_knows_its_line() -> None:
    content = parse("# a comment\na: 1\n\nb:\n  c: 2\n")
    assert content.lines == {"a": 2, "b": 4}
    assert content["b"].lines == {"c": 5}


def test_a_byte_order_mark_is_no_character() -> None:
    assert parse("\ufeffa: 1") == {"a": 1}


@pytest.mark.parametrize("text", ["output: [\n", "a: 'b\n", "a:\n\tb: 1\n"])
def test_what_is_not_yaml_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(UnusableInputError, match=r"^b\.yaml, line \d: this is not YAML \("):
        parse(text)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False), TEXTS))
def test_a_value_reads_back_as_itself(value: object) -> None:
    read = parse(f"k: {yaml_text.write(value)}")["k"]
    assert read == value
    assert type(read) is type(value)


@given(st.lists(st.one_of(st.integers(0, 99), st.floats(allow_nan=False), TEXTS)))
def test_a_list_reads_back_as_itself(values: list[object]) -> None:
    assert parse(f"k: {yaml_text.write(tuple(values))}")["k"] == values


def test_an_ordinary_name_is_written_plainly() -> None:
    assert [yaml_text.write(text) for text in ("english", "a/b-c.txt", "none")] == ["english", "a/b-c.txt", "none"]


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused_in_one_sentence(content: bytes) -> None:
    said = ""
    try:
        yaml_text.parse(content, where="b.yaml")
    except UnusableInputError as error:
        said = str(error)
    assert not said or said.startswith("b.yaml")
    assert "\n" not in said
