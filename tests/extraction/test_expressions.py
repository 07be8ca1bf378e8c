"""#expr's calculator, against the results that MediaWiki documents and that its extension's own tests expect.

https://www.mediawiki.org/wiki/Help:Extension:ParserFunctions##expr and tests/phpunit/unit/ExpressionTest.php there.
"""

import math
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from maskmill.extraction.expressions import ExpressionError, evaluate, format_number, round_half_up


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # Numbers, signs, brackets.
        ("1", "1"),
        (" .5 ", "0.5"),
        ("1e4", "10000"),
        ("1e-2", "0.01"),
        ("2 e 3", "2000"),
        ("e", "2.718281828459"),
        ("pi + 1", "4.1415926535898"),
        ("--1", "1"),
        ("2 - -1", "3"),
        ("-4 * -4 = 4 * 4", "1"),
        ("((7))", "7"),
        ("1/3", "0.33333333333333"),
        ("3 / ( 2.0 * 0.1 )", "15"),
        ("3 / (- 0.2 )", "-15"),
        ("10^16", "1E+16"),
        # Operators that bind equally are applied from the left, powers too; a sign binds more strongly than a power.
        ("2 - 3 - 4", "-5"),
        ("2 ^ 3 ^ 2", "64"),
        ("-2 ^ 2", "4"),
        ("2 + 3 * 4", "14"),
        ("2 * 3 ^ 2", "18"),
        ("1 + 1 round 0 = 2", "1"),
        ("1 or 0 and 0", "1"),
        ("not 0 * 4", "4"),
        ("not (0 * 4)", "1"),
        # Division: mod is of whole numbers and has the dividend's sign.
        ("30 div 7", "4.2857142857143"),
        ("30 mod 7", "2"),
        ("-8 mod 3", "-2"),
        ("8 mod -3", "2"),
        ("8.9 mod 3", "2"),
        ("8 mod 2.7", "0"),
        ("5.7 mod 1.3", "0"),
        ("5.7 fmod 1.3", "0.5"),
        ("123 fmod (2^64-1)", "123"),
        # Rounding: halves go away from zero, digits may be negative, and are truncated.
        ("4.5 round 0", "5"),
        ("-4.5 round 0", "-5"),
        ("9.876 round 2", "9.88"),
        ("1234 round -2", "1200"),
        ("46.857 round 1.8", "46.9"),
        ("46.857 round -1.8", "50"),
        ("trunc 1.2", "1"),
        ("trunc -1.2", "-1"),
        ("floor -1.2", "-2"),
        ("ceil -1.2", "-1"),
        # Comparisons and logic give 1 and 0.
        ("3 <= 3", "1"),
        ("3 < 3", "0"),
        ("3 >= 4", "0"),
        ("4 > -3", "1"),
        ("1 != 2", "1"),
        ("1 <> 1", "0"),
        ("3 and 4", "1"),
        ("2 and 0", "0"),
        ("0 or 0", "0"),
        ("not (1 != 1)", "1"),
        # Functions, in any case.
        ("ABS(-2)", "2"),
        ("ln(exp(1))", "1"),
        ("sqrt(4)", "2"),
        ("sin(0) + cos 0 + tan 0", "1"),
        ("asin 0 + acos 1 + atan 0", "0"),
        # What editors write for minus, times and divided by.
        ("5 − 3", "2"),
        ("5 &minus; 3", "2"),
        ("2 × 6 ÷ 3", "4"),
    ],
)
def test_value_of_an_expression(expression: str, expected: str) -> None:
    assert format_number(evaluate(expression)) == expected


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "a value is missing"),
        (" ", "a value is missing"),
        ("-", "a value is missing"),
        ("1*", "a value is missing"),
        ("1 mod", "a value is missing"),
        ("1 round", "a value is missing"),
        ("floor", "a value is missing"),
        ("sin()", "'\\)' stands where a value should"),
        ("()", "'\\)' stands where a value should"),
        ("<1", "'<' stands where a value should"),
        ("1 == 1", "'=' stands where a value should"),
        ("foo", "'foo' stands where a value should"),
        ("1 2", "'2' stands where an operator should"),
        ("1 pi", "'pi' stands where an operator should"),
        ("1 sin", "'sin' stands where an operator should"),
        ("1 (", "'\\(' stands where an operator should"),
        ("1.2.3", "'.3' stands where an operator should"),
        ("1 + 1)", "a bracket is closed that is not open"),
        ("((1)", "a bracket is not closed"),
        ("1, 2", "no symbol starts with ','"),
        ("1 $", "no symbol starts with '\\$'"),
        ("1/0", "division by zero"),
        ("1 mod 0", "has no value"),
        ("1 fmod 0", "has no value"),
        ("0 ^ -1", "has no value"),
        ("asin(3)", "has no value"),
        ("acos(-1.1)", "has no value"),
        ("ln(-1)", "has no value"),
        ("ln 0", "has no value"),
        ("sqrt(-1)", "has no value"),
        ("(-8) ^ (1/3)", "not a real number"),
        ("10 ^ 400", "has no value"),
        ("exp 1000", "has no value"),
    ],
)
def test_what_has_no_value_is_an_error(expression: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason):
        evaluate(expression)


@pytest.mark.parametrize("expression", ["1" + "+1" * 250, "ln(" * 400 + "1" + ")" * 400, "-" * 501 + "1"])
def test_expressions_that_are_too_long_are_errors(expression: str) -> None:
    with pytest.raises(ExpressionError, match="more than 500 symbols"):
        evaluate(expression)


def test_an_expression_of_many_symbols_has_a_value() -> None:
    assert evaluate("1" + "+1" * 249) == 250
    assert evaluate("(" * 249 + "1" + ")" * 249) == 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (-3.0, "-3"),
        (0.1 + 0.2, "0.3"),
        (1e15 - 1, "999999999999999"),
        (1e15, "1E+15"),
        (2.5e20, "2.5E+20"),
        (0.0001, "0.0001"),
    ],
)
def test_how_numbers_are_written(value: float, expected: str) -> None:
    assert format_number(value) == expected


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_is_not_written(value: float) -> None:
    with pytest.raises(ExpressionError, match=f"{value} is not written as a number"):
        format_number(value)


whole_numbers = st.integers(-1000, 1000)


@given(a=whole_numbers, b=whole_numbers, c=whole_numbers)
@tries(200)
def test_sums_and_products_are_those_of_arithmetic(a: int, b: int, c: int) -> None:
    assert evaluate(f"{a} + {b} * {c} - ({a} - {c})") == a + b * c - (a - c)
    assert evaluate(f"({a} < {b}) + ({a} = {b}) + ({a} > {b})") == 1


@given(value=st.floats(-1e9, 1e9), digits=st.integers(-3, 6))
@tries(200)
def test_rounding_gives_the_nearest_number_of_that_many_digits(value: float, digits: int) -> None:
    rounded = Decimal(repr(round_half_up(value, digits)))
    unit = Decimal(1).scaleb(-digits)
    assert abs(rounded - Decimal(repr(value))) <= unit / 2 + Decimal(1).scaleb(-7)
    assert round_half_up(-value, digits) == -round_half_up(value, digits)
    assert rounded == rounded.quantize(unit, ROUND_HALF_UP)


@given(value=st.floats(allow_nan=False, allow_infinity=False))
@tries(200)
def test_a_number_that_is_written_reads_as_itself_to_14_digits(value: float) -> None:
    assert math.isclose(float(format_number(value)), value, rel_tol=1e-13)


PIECES = (
    *("1", "2.5", ".5", "0", "9e9", "e", "pi", "x", "é", ".", "(", ")", "-", "+", "*", "/", "^", "=", "<", ">=", "<>"),
    *("sin", "ln", "sqrt", "not", "and", "mod", "fmod", "round"),
)


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=15))
@tries(500)
def test_any_text_gives_a_real_number_or_an_expression_error(pieces: list[str]) -> None:
    try:
        value = evaluate(" ".join(pieces))
    except ExpressionError:
        return
    assert type(value) is float
