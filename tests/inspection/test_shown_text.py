"""Texts of data sets are shown, and change nothing around them."""

import json
import unicodedata

import hypothesis.strategies as st
import pytest
from hypothesis import given
from properties import tries

from maskmill.inspection.shown_text import as_json, columns_of, shown

# What may not reach a terminal or a page as it is.
HOSTILE = {"Cc", "Cs", "Zl", "Zp"}
DIRECTIONS = {*"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"}


def is_safe(text: str) -> bool:
    return not any(unicodedata.category(c) in HOSTILE or c in DIRECTIONS for c in text)


@given(st.text(st.characters(exclude_categories=[])))
@tries(150)
def test_shown_is_safe_and_one_line(text: str) -> None:
    assert is_safe(shown(text))
    assert shown(shown(text)) == shown(text)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
@tries(100)
def test_letters_of_all_scripts_stay(text: str) -> None:
    invisible = {"\u115f", "\u1160", "\u3164"}  # fillers of Hangul, which count as letters
    assert shown(text) == "".join(f"\\u{ord(c):04x}" if c in invisible else c for c in text)


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda values: st.lists(values) | st.dictionaries(st.text(), values)
    )
)
@tries(30)
def test_json_is_the_value_and_safe(value: object) -> None:
    for indent in (None, 1):
        text = as_json(value, indent=indent)
        assert json.loads(text) == value
        assert is_safe(text.replace("\n", ""))
    assert "\n" not in as_json(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("abc\u202etxt.exe", "abc\\u202etxt.exe"),
        ("a\tb\r\nc", "a\\tb\\r\\nc"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\ud800", "\\ud800"),
        ("e" + "\u0301" * 500, "e" + "\u0301" * 8 + "…"),
        ("\U000e0041", "\\U000e0041"),
    ],
    ids=["escape", "direction", "lines", "joiner", "surrogate", "accents", "tag"],
)
def test_what_becomes_of(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_long_texts_are_cut_and_columns_counted() -> None:
    assert shown("x" * 1_000_000, 5) == "xxxxx… (999,995 more characters)"
    assert shown("12345", 5) == "12345"
    assert [columns_of(text) for text in ("abc", "日本", "é", "e\u0301")] == [3, 4, 1, 1]
