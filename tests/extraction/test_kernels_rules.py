"""The pieces that rules of templates are evaluated with."""

import numpy as np
import pytest
from made_up.extractors import tables_of

from maskmill.extraction.kernels.codes import (
    COUNTS,
    FLAG_AFTER_WORD,
    FLAG_BRACKET,
    FLAG_START,
    FORMAT_FIRST_LOWER,
    FORMAT_FIRST_UPPER,
    FORMAT_INTEGER,
    FORMAT_LOWER,
    FORMAT_NUMBER,
    FORMAT_PLAIN,
    FORMAT_SUPERSCRIPT,
    FORMAT_UPPER,
    PADDING,
)
from maskmill.extraction.kernels.rules import (
    ARGUMENT,
    MAX_ARGUMENTS,
    Call,
    close_argument,
    find_argument,
    find_template,
    put_formatted,
    where_called,
)


def call_with(out: bytes, arguments: list[tuple[int, int, int, int, int]]) -> Call:
    """A call whose rendered arguments are `out`."""
    rows = np.zeros(MAX_ARGUMENTS, ARGUMENT)
    rows[: len(arguments)] = arguments
    return Call(
        tables=tables_of(),
        arguments=rows,
        first=0,
        last=len(arguments),
        out=np.frombuffer(out + bytes(200), np.uint8).copy(),
        room=len(out) + 200,
        title=np.frombuffer(b"Title", np.uint8).copy(),
        flags=0,
        counts=np.zeros(COUNTS, np.int64),
    )


def test_the_last_argument_of_a_number_counts_and_is_trimmed() -> None:
    call = call_with(b"a bc ", [(0, 1, -1, -1, 1), (1, 5, -1, -1, 1)])
    assert find_argument(call, np.int32(1)) == (2, 4)


def test_an_argument_that_is_not_given_is_empty() -> None:
    start, end = find_argument(call_with(b"a", [(0, 1, -1, -1, 1)]), np.int32(2))
    assert start == end


def test_arguments_are_numbered_by_place_or_by_name() -> None:
    out = np.frombuffer(b"x 2 =yname", np.uint8).copy()
    rows = np.zeros(3, ARGUMENT)
    rows[:] = [(0, 0, -1, -1, -1), (5, 0, 1, 4, -1), (6, 0, 6, 10, -1)]
    position = close_argument(rows, 0, out, 1, 1)
    assert (position, rows[0]["number"], rows[0]["end"]) == (2, 1, 1)
    assert close_argument(rows, 1, out, 6, position) == 2  # a name does not count as a place
    assert rows[1].tolist() == (5, 6, 2, 3, 2)
    assert close_argument(rows, 2, out, 10, position) == 2
    assert rows[2]["number"] == -1


@pytest.mark.parametrize(
    ("language", "form", "text", "expected"),
    [
        ("en", FORMAT_PLAIN, "aB", "aB"),
        ("en", FORMAT_NUMBER, "1234567.891", "1,234,567.891"),
        ("de", FORMAT_NUMBER, "1234567.891", "1.234.567,891"),
        ("en", FORMAT_NUMBER, "999", "999"),
        ("en", FORMAT_NUMBER, "about 1000 km", "about 1,000 km"),
        ("en", FORMAT_NUMBER, "many", "many"),
        ("en", FORMAT_LOWER, "ABC ÄΩЖ 漢", "abc äωж 漢"),
        ("en", FORMAT_UPPER, "abc äωж 漢", "ABC ÄΩЖ 漢"),
        ("en", FORMAT_FIRST_UPPER, "äbc", "Äbc"),
        ("en", FORMAT_FIRST_LOWER, "ABC", "aBC"),
        ("en", FORMAT_INTEGER, "007", "7"),
        ("en", FORMAT_INTEGER, "00", "0"),
        ("en", FORMAT_SUPERSCRIPT, "-12+3", "⁻¹²⁺³"),
        ("en", FORMAT_SUPERSCRIPT, "−4", "⁻⁴"),
    ],
)
def test_formats(language: str, form: int, text: str, expected: str) -> None:
    encoded = text.encode()
    out = np.frombuffer(encoded + bytes(200), np.uint8).copy()
    end = put_formatted(tables_of(language), np.int32(form), out, len(encoded), len(out), 0, len(encoded))
    assert out[len(encoded) : end].tobytes().decode() == expected


@pytest.mark.parametrize("form", [FORMAT_PLAIN, FORMAT_NUMBER, FORMAT_LOWER, FORMAT_FIRST_UPPER, FORMAT_SUPERSCRIPT])
def test_without_room_nothing_is_written(form: int) -> None:
    out = np.frombuffer(b"12345" + bytes(20), np.uint8).copy()
    assert put_formatted(tables_of(), np.int32(form), out, 5, 9, 0, 5) == -1
    assert not out[5:].any()


@pytest.mark.parametrize(
    ("before", "blank", "flags"),
    [
        ("", True, FLAG_START),
        ("a ", False, FLAG_AFTER_WORD),
        ("д", False, FLAG_AFTER_WORD),
        ("a: ", False, 0),
        ("a «", False, 0),
        ("(a /", False, FLAG_BRACKET | FLAG_AFTER_WORD),
        ("(/a/→", False, FLAG_BRACKET | FLAG_AFTER_WORD),
        ("(一", False, FLAG_BRACKET),
        ("a (", False, FLAG_BRACKET),
        ("a (b) ", False, 0),
        ("a (b (c) ", False, FLAG_BRACKET),
        ("a（", False, FLAG_BRACKET),
        ("a（b）", False, 0),
        ("(a\n", True, FLAG_START),
    ],
)
def test_where_a_template_is_called(before: str, blank: bool, flags: int) -> None:
    out = np.frombuffer(before.encode() + b"x", np.uint8).copy()
    assert where_called(out, 0, len(before.encode()), blank) == flags


@pytest.mark.parametrize(
    ("content", "arguments"),
    [
        ("nowrap|a", "|a"),
        (" Nowrap \n|a", "|a"),
        ("Template:nowrap|a", "|a"),
        ("subst:nowrap|a", "|a"),
        ("lc:A", ":A"),
        ("nowrap{{x}}y", "{{x}}y"),  # a name ends where other markup starts
    ],
)
def test_templates_that_have_a_rule(content: str, arguments: str) -> None:
    text = np.frombuffer(content.encode() + bytes(PADDING), np.uint8).copy()
    program, start, _, _ = find_template(text, 0, len(content), tables_of())
    assert program > 0
    assert content[start:] == arguments


@pytest.mark.parametrize("content", ["no such template|a", "a" * 1000, "", "per|a"])
def test_templates_that_have_none(content: str) -> None:
    text = np.frombuffer(content.encode() + bytes(PADDING), np.uint8).copy()
    program = find_template(text, 0, len(content), tables_of())[0]
    assert program == -1
