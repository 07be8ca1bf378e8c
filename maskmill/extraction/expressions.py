"""The calculator of #expr and #ifexpr: MediaWiki's expressions, numbers and their format.

Source: the extension ParserFunctions, includes/ExprParser.php. Expressions are read once from left to right, by
Dijkstra's shunting yard.
"""

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

_SYMBOLS = re.compile(r"\s*(?:(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)|(<=|>=|<>|!=|[-+*/^()<>=−×÷])|([a-z]+))", re.IGNORECASE)
_MOST_SYMBOLS = 500
_MOST_ROUNDED_DIGITS = 15  # before or after the decimal point
_WHOLE_NUMBERS_BELOW = 1e15  # larger ones are written with an exponent

# How strongly operators bind; of equal ones the left one binds first.
_UNARY_STRENGTH = 10
_EXPONENT = 9
_POWER = 8
_PRODUCT = 7
_SUM = 6
_ROUND = 5
_COMPARISON = 4
_AND = 3
_OR = 2


class ExpressionError(ValueError):
    """A text is not an expression, or an expression has no value."""


class _Operator(NamedTuple):
    """An operator: how strongly it binds, the number of its operands, and the function to apply to them."""

    strength: int
    operands: int
    apply: Callable[..., float]


def round_half_up(value: float, digits: int) -> float:
    """Round as PHP does, halves away from zero; negative digits are places before the decimal point."""
    digits = max(-_MOST_ROUNDED_DIGITS, min(_MOST_ROUNDED_DIGITS, digits))
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


_UNARY_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "ln": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "not": lambda x: not x,
    "-": lambda x: -x,
    "+": lambda x: x,
}
_UNARY = {name: _Operator(_UNARY_STRENGTH, 1, function) for name, function in _UNARY_FUNCTIONS.items()}
_BINARY: dict[str, _Operator] = {
    "e": _Operator(_EXPONENT, 2, lambda a, b: a * 10**b),
    "^": _Operator(_POWER, 2, lambda a, b: a**b),
    "*": _Operator(_PRODUCT, 2, lambda a, b: a * b),
    "/": _Operator(_PRODUCT, 2, lambda a, b: a / b),
    "div": _Operator(_PRODUCT, 2, lambda a, b: a / b),
    "mod": _Operator(_PRODUCT, 2, lambda a, b: math.fmod(int(a), int(b))),
    "fmod": _Operator(_PRODUCT, 2, math.fmod),
    "+": _Operator(_SUM, 2, lambda a, b: a + b),
    "-": _Operator(_SUM, 2, lambda a, b: a - b),
    "round": _Operator(_ROUND, 2, lambda a, b: round_half_up(a, int(b))),
    "=": _Operator(_COMPARISON, 2, lambda a, b: a == b),
    "<>": _Operator(_COMPARISON, 2, lambda a, b: a != b),
    "!=": _Operator(_COMPARISON, 2, lambda a, b: a != b),
    "<": _Operator(_COMPARISON, 2, lambda a, b: a < b),
    ">": _Operator(_COMPARISON, 2, lambda a, b: a > b),
    "<=": _Operator(_COMPARISON, 2, lambda a, b: a <= b),
    ">=": _Operator(_COMPARISON, 2, lambda a, b: a >= b),
    "and": _Operator(_AND, 2, lambda a, b: 1.0 if a and b else 0.0),
    "or": _Operator(_OR, 2, lambda a, b: 1.0 if a or b else 0.0),
}
_CONSTANTS = {"pi": math.pi, "e": math.e}


def format_number(value: float) -> str:
    """Return a number in the format of `#expr`: without a fraction if it has none, at most 14 digits.

    Raises ExpressionError for infinity and NaN.
    """
    if math.isnan(value) or math.isinf(value):
        raise ExpressionError(f"{value} is not written as a number")
    if value == int(value) and abs(value) < _WHOLE_NUMBERS_BELOW:
        return str(int(value))
    return f"{value:.14G}"


def evaluate(expression: str) -> float:
    """Return the value of a `#expr` expression. Raises ExpressionError if it is not one, or has no value."""
    calculator = _Calculator()
    try:
        for symbol in _split(expression):
            calculator.take(symbol)
        return calculator.result()
    except (ArithmeticError, ValueError) as error:  # from Python: division by zero, overflow, roots of -1
        raise ExpressionError(f"{expression!r} has no value: {error}") from error


def _split(expression: str) -> list[str]:
    """Return an expression's symbols, in lower case: numbers, operators, words. Raise ExpressionError for others."""
    expression = expression.replace("&minus;", "-").replace("−", "-").replace("×", "*").replace("÷", "/")
    symbols: list[str] = []
    at = 0
    while expression[at:].strip():
        symbol = _SYMBOLS.match(expression, at)
        if not symbol:
            raise ExpressionError(f"no symbol starts with {expression[at:].lstrip()[0]!r}")
        if len(symbols) >= _MOST_SYMBOLS:
            raise ExpressionError(f"it has more than {_MOST_SYMBOLS} symbols")
        symbols.append(symbol[0].strip().lower())
        at = symbol.end()
    return symbols


class _Calculator:
    """Takes symbols one at a time. Raises ExpressionError for a misplaced one."""

    def __init__(self) -> None:
        self._numbers: list[float] = []
        # Operators whose right operand is incomplete; None for an open bracket.
        self._operators: list[_Operator | None] = []
        self._wants_value = True

    def take(self, symbol: str) -> None:
        """Take the next symbol."""
        if self._wants_value:
            self._take_value(symbol)
        elif symbol == ")":
            self._apply_down_to(-math.inf)
            if not self._operators:
                raise ExpressionError("a bracket is closed that is not open")
            self._operators.pop()
        elif symbol in _BINARY:
            operator = _BINARY[symbol]
            self._apply_down_to(operator.strength)
            self._operators.append(operator)
            self._wants_value = True
        else:
            raise ExpressionError(f"{symbol!r} stands where an operator should")

    def result(self) -> float:
        """Return the value of all symbols taken."""
        self._apply_down_to(-math.inf)
        if self._operators:
            raise ExpressionError("a bracket is not closed")
        if self._wants_value:
            raise ExpressionError("a value is missing at its end")
        return self._numbers[0]

    def _take_value(self, symbol: str) -> None:
        """Take the start of an operand: a number, a constant, a unary operator or an open bracket."""
        if symbol[0].isdigit() or symbol[0] == ".":
            self._numbers.append(float(symbol))
            self._wants_value = False
        elif symbol in _CONSTANTS:
            self._numbers.append(_CONSTANTS[symbol])
            self._wants_value = False
        elif symbol == "(" or symbol in _UNARY:
            self._operators.append(_UNARY.get(symbol))
        else:
            raise ExpressionError(f"{symbol!r} stands where a value should")

    def _apply_down_to(self, strength: float) -> None:
        """Apply the last operators that bind at least so strongly, back to the last open bracket."""
        while self._operators and (operator := self._operators[-1]) is not None and operator.strength >= strength:
            self._operators.pop()
            if len(self._numbers) < operator.operands:
                raise ExpressionError("a value is missing")
            operands = self._numbers[-operator.operands :]
            del self._numbers[-operator.operands :]
            value = operator.apply(*operands)
            if isinstance(value, complex):
                raise ExpressionError("it is not a real number")
            self._numbers.append(float(value))
