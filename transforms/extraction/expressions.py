"""The calculator behind #expr and #ifexpr: MediaWiki's expressions, their numbers and how these are written.

Source: the extension ParserFunctions, includes/ExprParser.php.
"""

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

_SYMBOLS = re.compile(r"\s*(?:(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)|(<=|>=|<>|!=|[-+*/^()<>=−×÷])|([a-z]+))", re.IGNORECASE)
_UNARY: dict[str, Callable[[float], float]] = {
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
    "not": lambda x: float(not x),
    "-": lambda x: -x,
    "+": lambda x: x,
}
_BINARY: dict[str, tuple[int, Callable[[float, float], float]]] = {
    "e": (9, lambda a, b: a * 10**b),
    "^": (8, lambda a, b: a**b),
    "*": (7, lambda a, b: a * b),
    "/": (7, lambda a, b: a / b),
    "div": (7, lambda a, b: a / b),
    "mod": (7, lambda a, b: math.fmod(int(a), int(b))),
    "fmod": (7, math.fmod),
    "+": (6, lambda a, b: a + b),
    "-": (6, lambda a, b: a - b),
    "round": (5, lambda a, b: round_half_up(a, int(b))),
    "=": (4, lambda a, b: float(a == b)),
    "<>": (4, lambda a, b: float(a != b)),
    "!=": (4, lambda a, b: float(a != b)),
    "<": (4, lambda a, b: float(a < b)),
    ">": (4, lambda a, b: float(a > b)),
    "<=": (4, lambda a, b: float(a <= b)),
    ">=": (4, lambda a, b: float(a >= b)),
    "and": (3, lambda a, b: float(bool(a) and bool(b))),
    "or": (2, lambda a, b: float(bool(a) or bool(b))),
}
_UNARY_STRENGTH = 10
_MOST_SYMBOLS = 500


def round_half_up(value: float, digits: int) -> float:
    """Rounds as PHP does, halves away from zero."""
    digits = max(-15, min(15, digits))
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def format_number(value: float) -> str:
    """A number as `#expr` prints it: without a fraction if it has none, at most 14 digits."""
    if math.isnan(value) or math.isinf(value):
        raise ValueError(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.14G}"


def evaluate(expression: str) -> float:
    """The value of a `#expr` expression. Raises ValueError if it is not one."""
    expression = expression.replace("&minus;", "-").replace("−", "-").replace("×", "*").replace("÷", "/")
    symbols: list[str] = []
    at = 0
    while expression[at:].strip():
        found = _SYMBOLS.match(expression, at)
        if not found or len(symbols) >= _MOST_SYMBOLS:
            raise ValueError(expression)
        symbols.append(found[0].strip().lower())
        at = found.end()
    numbers: list[float] = []
    operators: list[tuple[str, bool]] = []

    def apply() -> None:
        name, unary = operators.pop()
        if unary:
            if not numbers:
                raise ValueError(expression)
            numbers.append(float(_UNARY[name](numbers.pop())))
        else:
            if len(numbers) < 2:
                raise ValueError(expression)
            right = numbers.pop()
            result = _BINARY[name][1](numbers.pop(), right)
            if isinstance(result, complex):
                raise ValueError(expression)
            numbers.append(float(result))

    wants_value = True
    try:
        for symbol in symbols:
            if wants_value:
                if symbol[0].isdigit() or symbol[0] == ".":
                    numbers.append(float(symbol))
                    wants_value = False
                elif symbol in ("pi", "e"):
                    numbers.append(math.pi if symbol == "pi" else math.e)
                    wants_value = False
                elif symbol == "(" or symbol in _UNARY:
                    operators.append((symbol, symbol != "("))
                else:
                    raise ValueError(expression)
            elif symbol == ")":
                while operators and operators[-1][0] != "(":
                    apply()
                if not operators:
                    raise ValueError(expression)
                operators.pop()
            elif symbol in _BINARY:
                strength = _BINARY[symbol][0]
                while operators and operators[-1][0] != "(":
                    name, unary = operators[-1]
                    if (_UNARY_STRENGTH if unary else _BINARY[name][0]) < strength:
                        break
                    apply()
                operators.append((symbol, False))
                wants_value = True
            else:
                raise ValueError(expression)
        while operators:
            if operators[-1][0] == "(":
                raise ValueError(expression)
            apply()
    except (OverflowError, ZeroDivisionError, InvalidOperation) as error:
        raise ValueError(expression) from error
    if len(numbers) != 1 or wants_value:
        raise ValueError(expression)
    return numbers[0]
