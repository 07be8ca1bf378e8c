"""Formulas: which are a line of text, and which."""

import numpy as np
import pytest
from made_up.extractors import tables_of

from transforms.extraction.kernels.codes import PADDING, ROOM
from transforms.extraction.kernels.formula import MAX_FORMULA, MAX_GROUPS, group_end, needs_brackets, put_formula

# Compiled by themselves, as no page calls them, they take half a minute.
pytestmark = pytest.mark.in_python


def formula(tex: str) -> str | None:
    """The text of a formula; None if it cannot be a line."""
    encoded = tex.encode()
    text = np.frombuffer(encoded + bytes(PADDING), np.uint8).copy()
    out = np.zeros(2 * len(text) + ROOM, np.uint8)
    end = put_formula(text, 0, len(encoded), out, 0, tables_of())
    return out[:end].tobytes().decode() if end >= 0 else None


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        ("", ""),
        ("a+b", "a + b"),
        ("-a", "-a"),
        ("a=-b", "a = -b"),
        ("f(-x)", "f(-x)"),
        ("a,b", "a, b"),
        ("a~b", "a b"),
        ("x^2", "x²"),
        ("x^{10}", "x¹⁰"),
        ("x^{-1}", "x⁻¹"),
        ("x^n", "xⁿ"),
        ("x^y", "x^y"),
        ("x^{a+b}", "x^(a + b)"),
        ("90^\\circ", "90°"),
        ("90^{\\circ}", "90°"),
        ("a_1", "a_1"),
        ("a_{12}", "a_12"),
        ("a_{i+1}", "a_(i + 1)"),
        ("\\frac{a}{b}", "a/b"),
        ("\\frac{a+b}{c-d}", "(a + b)/(c - d)"),
        ("\\sqrt{2}", "√2"),
        ("\\sqrt{a+b}", "√(a + b)"),
        ("\\text{if } x", "if x"),
        ("\\alpha", "α"),
        ("\\left( a \\right)", "(a)"),
        ("\\{a\\}", "{a}"),
        ("a\\,b", "a b"),
        ("a &lt; b", "a<b"),
    ],
)
def test_formulas_that_are_a_line(tex: str, expected: str) -> None:
    assert formula(tex) == expected


@pytest.mark.parametrize(
    "tex",
    [
        "{a",
        "a}",
        "\\unknowncommand",
        "\\sqrt[3]{a}",
        "\\frac12",
        "a & b",
        "a \\\\ b",
        "x^{2",
        "{" * (MAX_GROUPS + 1) + "}" * (MAX_GROUPS + 1),
        "a" * (MAX_FORMULA + 1),
    ],
)
def test_formulas_that_cannot_be_a_line(tex: str) -> None:
    assert formula(tex) is None


def test_commands_in_other_letters_are_other_commands() -> None:
    assert formula("90^\\Circ") is None


def test_groups_end_at_their_own_brace() -> None:
    text = np.frombuffer(b"{a{b}\\}c}d", np.uint8).copy()
    assert group_end(text, 0, len(text)) == 8
    assert group_end(text, 0, 8) == -1


@pytest.mark.parametrize(("tex", "expected"), [(b"ab1.5", False), (b"\\pi", False), (b"a+b", True), (b"a b", True)])
def test_a_single_name_or_number_needs_no_brackets(tex: bytes, expected: bool) -> None:
    assert needs_brackets(np.frombuffer(tex, np.uint8).copy(), 0, len(tex)) is expected
