"""Formulas: which are a line of text, and which."""

import numpy as np
import pytest
from made_up.extractors import tables_of

from maskmill.extraction.kernels.codes import PADDING, ROOM
from maskmill.extraction.kernels.formula import (
    MAX_FORMULA,
    MAX_FRAMES,
    PLACE_DENOMINATOR,
    PLACE_LOOSE,
    PLACE_POWER,
    group_end,
    needs_brackets,
    put_formula,
)

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
        # A sign alone in braces is an ordinary one, without spaces.
        ("3{,}14", "3,14"),
        ("10{,}000{,}000\\,\\mathrm{m}", "10,000,000 m"),
        ("x = 0{,}5", "x = 0,5"),
        ("\\frac{1{,}5}{2{,}5}", "1,5/2,5"),
        ("10^{-3{,}5}", "10^(-3,5)"),
        ("\\text{from }1{,}5", "from 1,5"),
        ("10,\\!000", "10,000"),
        ("10{,\\!}000", "10,000"),
        ("f(a,\\!b)", "f(a,b)"),
        ("a{=}b", "a=b"),
        ("1{:}2", "1:2"),
        ("1{.}5", "1.5"),
        ("a{+}b{-}c", "a+b-c"),
        ("a \\mathrel{=} b", "a = b"),
        ("x_{+}", "x_+"),
        ("({,})", "(,)"),
        ("\\frac{a,\\!b}{2}", "(a,b)/2"),
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
        # Fractions of all forms, and what binds closer than they do.
        ("{a \\over b}", "a/b"),
        ("1 + {a+1 \\over 2b} + c", "1 + (a + 1)/(2b) + c"),
        ("f = \\left( a \\over b \\right)^2", "f = (a/b)²"),
        ("\\frac12", "1/2"),
        ("\\frac ab", "a/b"),
        ("\\tfrac12 a", "1/2 a"),
        ("\\frac{1}2\\pi", "1/2 π"),
        ("\\frac\\pi{2a}", "π/(2a)"),
        ("x^\\frac12", "x^(1/2)"),
        ("\\sqrt\\frac ab", "√(a/b)"),
        ("\\frac{\\frac{a}{b}}{c}", "(a/b)/c"),
        ("\\frac{-a}{b}", "(-a)/b"),
        ("2\\frac{-a}{b}", "2(-a)/b"),
        ("\\frac{\\partial f}{\\partial t}", "∂f/∂t"),
        ("\\binom{n}{k}", "C(n, k)"),
        ("\\binom nk", "C(n, k)"),
        ("{n+1 \\choose k} = 1", "C(n + 1, k) = 1"),
        # Roots, negations, labels.
        ("\\sqrt[3]{x}", "³√x"),
        ("\\sqrt[n+1]{ax}", "ⁿ⁺¹√ax"),
        ("a \\not= b", "a ≠ b"),
        ("a \\not\\in B", "a ∉ B"),
        ("a \\not \\equiv b", "a ≢ b"),
        ("\\overset{d}{\\to} x", "→^d x"),
        ("a \\stackrel{f}{\\to} b", "a →^f b"),
        ("\\underset{x}{\\operatorname{arg\\,max}} f", "arg max_x f"),
        ("A \\xrightarrow{f+g} B", "A →^(f + g) B"),
        ("\\lim_{x\\to0} f", "lim_(x → 0) f"),
        ("\\sin^2 x", "sin² x"),
        ("f^\\prime", "f′"),
        ("f^{\\prime\\prime}", "f′′"),
        ("a_\\text{max}", "a_max"),
        ("\\operatorname{lcm} a", "lcm a"),
        ("\\operatorname*{lcm}(a)", "lcm(a)"),
        ("\\text{cost in $x$}", "cost in x"),
        ("\\left<a\\right>", "⟨a⟩"),
        ("\\left\\{ a \\right.", "{a"),
        ("a \\hspace{1em} b", "ab"),
        ("e^{i\\pi}", "e^(iπ)"),
        ("é", "é"),
        # Lines and cases.
        ("|a| = \\begin{cases} a, & a \\ge 0 \\\\ -a, & a < 0. \\end{cases}", "|a| = {a, a ≥ 0; -a, a < 0}."),
        ("\\left\\{\\begin{array}{ll} 1 & x \\\\ 2 & y \\end{array}\\right.", "{1, x; 2, y}"),
        ("\\begin{align} a &= b \\\\ &= c \\end{align}", "a = b = c"),
        ("\\begin{aligned} a &= b, \\\\[2pt] d &= c \\end{aligned}", "a = b, d = c"),
        ("\\begin{matrix} \\frac{1}{2} \\end{matrix}y", "1/2y"),
        ("a \\\\ b", "a; b"),
        # Chemistry.
        ("\\ce{SO4^2-}", "SO4²⁻"),
        ("\\ce{2H2 + O2 -> 2H2O}", "2H2 + O2 → 2H2O"),
        ("\\ce{A ->[H2O] B v}", "A → B ↓"),
        ("\\ce{^{14}_{6}C}", "¹⁴₆C"),
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
        "\\sqrt[\\pi]{a}",
        "\\frac{1}",
        "x^",
        "{a \\over b \\over c}",
        "a & b",
        "\\begin{pmatrix} a & b \\end{pmatrix}",
        "\\begin{array}{l} a \\\\ b \\end{array}",
        "\\begin{tikzcd} a \\end{tikzcd}",
        "\\begin{cases} a",
        "a \\end{cases}",
        "\\left( a",
        "a \\right)",
        "\\not x",
        "\\ce{\\Delta}",
        "x^{2",
        "{" * (MAX_FRAMES + 1) + "}" * (MAX_FRAMES + 1),
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


@pytest.mark.parametrize(
    ("written", "loose", "denominator", "power"),
    [
        ("ab1.5", False, False, False),
        ("π", False, False, False),
        ("⊥", False, False, False),
        ("2a", False, True, True),
        ("∂t", False, False, True),
        ("2π", False, True, True),
        ("a+b", True, True, True),
        ("a b", True, True, True),
        ("x²", True, True, True),
        ("a∈b", True, True, True),
    ],
)
def test_a_single_name_or_number_needs_no_brackets(written: str, loose: bool, denominator: bool, power: bool) -> None:
    out = np.frombuffer(written.encode() + bytes(4), np.uint8).copy()
    found = [
        needs_brackets(out, 0, len(written.encode()), place) for place in (PLACE_LOOSE, PLACE_DENOMINATOR, PLACE_POWER)
    ]
    assert found == [loose, denominator, power]
