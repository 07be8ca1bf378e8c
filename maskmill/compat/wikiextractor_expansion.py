"""Expands a page's templates like WikiExtractor: variables and parser functions give their value.

See maskmill/compat/wikiextractor.py. Text keeps the XML's references, because functions are applied to them: `uc` turns
`&amp;` into `&AMP;`.
"""

import ast
import functools
import html.entities
import math
import operator
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskmill.compat.kernels.braces import drop_spans, template_spans
from maskmill.compat.kernels.bytes import GREATER_MARK, LESS_MARK, QUOTE_MARK

_DEEPEST = 40  # levels of nested functions; deeper ones give nothing
_LONGEST_EXPRESSION = 500  # characters; longer ones are errors
_SUBSTITUTION = re.compile(r"^(?:subst:|safesubst:)", re.IGNORECASE)
_BRACKET_RUNS = re.compile(r"\{\{+|\}\}+|\[\[+|\]\]+")
_REFERENCE = re.compile(r"&(#?)(\w+);")
_SURROGATES = range(0xD800, 0xE000)

# The kernels' marks, and the characters that they represent until references are resolved.
MARKS = {QUOTE_MARK: '"', LESS_MARK: "<", GREATER_MARK: ">"}
_MARK_OF = {ord(character): mark for mark, character in MARKS.items()}
_ERROR, _ERROR_END = (tag.translate(_MARK_OF) for tag in ('<span class="error">', "</span>"))


def escape_xml(text: bytes) -> bytes:
    """Return text escaped for XML as in MediaWiki's export."""
    for character, reference in ((b"&", b"&amp;"), (b"<", b"&lt;"), (b">", b"&gt;"), (b'"', b"&quot;")):
        text = text.replace(character, reference)
    return text


def resolve_xml_references(text: str) -> str:
    """Resolve the references of XML and of HTML, once."""
    return _REFERENCE.sub(_resolve_reference, text)


def _resolve_reference(match: re.Match[str]) -> str:
    numeric, name = match.groups()
    try:
        if not numeric:
            return chr(html.entities.name2codepoint[name])
        code = int(name[1:], 16) if name[0] == "x" else int(name)
        # UTF-8 cannot encode halves of surrogate pairs: WikiExtractor crashes on one.
        return match[0] if code in _SURROGATES else chr(code)
    except (KeyError, ValueError, OverflowError):
        return match[0]


def _bracket_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the outermost `{{…}}`, `{{{…}}}` and `[[…]]` of a template's body.

    Runs of braces are matched from the inside. A run of closing braces also closes open brackets on its way, and then
    ends that much earlier.
    """
    runs = _BRACKET_RUNS.finditer(text)
    for first in runs:
        if first[0][0] in "}]":
            continue
        start = first.start()
        # Lengths of the open runs, those of brackets negative.
        stack = [len(first[0]) if first[0][0] == "{" else -len(first[0])]
        for run in runs:
            kind = run[0][0]
            if kind in "{[":
                stack.append(len(run[0]) if kind == "{" else -len(run[0]))
                continue
            left = _close_braces(stack, len(run[0])) if kind == "}" else _close_brackets(stack, len(run[0]))
            if not stack:
                yield start, run.end() - left
                break
        else:
            return


def _close_braces(stack: list[int], length: int) -> int:
    """Close open runs with a run of closing braces; return how many of the closing braces remain."""
    while stack:
        opened = stack.pop()
        if length < opened:
            stack.append(opened - length)
            break
        length -= opened
        if length <= 1:
            break
    return length


def _close_brackets(stack: list[int], length: int) -> int:
    """Close open runs of brackets, up to the first run of braces; return how many of the closing brackets remain."""
    while stack and stack[-1] < 0:
        opened = -stack.pop()
        if length < opened:
            stack.append(length - opened)
            break
        length -= opened
        if length <= 1:
            break
    return length


def _split_parts(body: str) -> list[str]:
    """Split a template's body at the pipes that are outside all brackets."""
    parts = [""]
    at = 0
    for start, end in (*_bracket_spans(body), (len(body), len(body))):
        first, *rest = body[at:start].split("|")
        parts[-1] += first
        parts += rest
        parts[-1] += body[start:end]
        at = end
    return parts


def _replace_spans(text: bytes, spans: NDArray[np.int64], value: Callable[[bytes], str]) -> bytes:
    """Replace each span of `template_spans` by the `value` of its body, or by nothing if it needs no expansion."""
    parts = []
    at = 0
    for start, end, needs_expansion in spans.tolist():
        parts.append(text[at:start])
        if needs_expansion:
            parts.append(value(text[start + 2 : end - 2]).encode("utf-8"))
        at = end
    return b"".join([*parts, text[at:]])


class Expansion:
    """Expands the templates of one page.

    variables: returns the page's variables by name; it is called once at most.
    """

    def __init__(self, variables: Callable[[], dict[str, str]], characters: NDArray[np.int32]) -> None:
        self._values = variables
        self._characters = characters

    @functools.cached_property
    def _variables(self) -> dict[str, str]:
        return self._values()

    def expand_page(self, text: bytes) -> bytes:
        """Replace variables and functions by their values, and drop other templates."""
        if b"{{" not in text:
            return text
        data = np.frombuffer(text, np.uint8)
        spans = template_spans(self._characters, data)
        if not spans[:, 2].any():
            out = np.empty(data.size, np.uint8)
            return out[: drop_spans(data, spans, out)].tobytes()

        def value(body: bytes) -> str:
            return resolve_xml_references(self._value(escape_xml(body).decode("utf-8"), 0))

        return _replace_spans(text, spans, value)

    def _expand(self, text: str, depth: int) -> str:
        if "{{" not in text:
            return text
        encoded = text.encode("utf-8")
        spans = template_spans(self._characters, np.frombuffer(encoded, np.uint8))
        return _replace_spans(encoded, spans, lambda body: self._value(body.decode("utf-8"), depth)).decode("utf-8")

    def _value(self, body: str, depth: int) -> str:
        if depth >= _DEEPEST:
            return ""
        parts = _split_parts(body)
        title = self._expand(parts[0].strip(), depth + 1)
        title = _SUBSTITUTION.sub("", title)
        if title in self._variables:
            return self._variables[title]
        colon = title.find(":")
        if colon <= 1:
            return ""
        function = _FUNCTIONS.get(title[:colon].lower())
        arguments = [title[colon + 1 :].strip(), *parts[1:]]
        if function is None or len(arguments) < function.fewest or len(arguments) > function.most:
            return ""
        return function.value(lambda text: self._expand(text, depth + 1), arguments)


_Expand = Callable[[str], str]


def _if(expand: _Expand, arguments: Sequence[str]) -> str:
    if arguments[0].strip():
        return expand(arguments[1].strip())
    return expand(arguments[2].strip()) if len(arguments) > 2 else ""


def _if_equal(expand: _Expand, arguments: Sequence[str]) -> str:
    right = arguments[1].strip()
    if not right:
        return ""
    if arguments[0].strip() == right:
        return expand(arguments[2].strip())
    return expand(arguments[3].strip()) if len(arguments) > 3 else ""


def _if_error(expand: _Expand, arguments: Sequence[str]) -> str:
    # Tags of the page are references here: only `_calculate` makes one.
    if arguments[0].startswith(_ERROR):
        return expand(arguments[1].strip()) if len(arguments) > 1 else ""
    return expand(arguments[2].strip()) if len(arguments) > 2 else arguments[0].strip()


def _switch(expand: _Expand, arguments: Sequence[str]) -> str:
    value = arguments[0].strip()
    falls_through = False
    default = None
    case = ""
    for argument in arguments[1:]:
        left, equals, right = argument.partition("=")
        case = expand(left.strip())
        if equals:
            result = expand(right.strip())
            if falls_through or value in [alternative.strip() for alternative in case.split("|")]:
                return result
            if case == "#default":
                default = result
        elif case == value:
            falls_through = True
    return default or ""


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CONSTANTS = {"pi": math.pi, "e": math.e}


def _number(node: ast.AST) -> Any:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return _CONSTANTS[name]
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)](_number(operand))
        case ast.BinOp(op=op, left=left, right=right):
            return _OPERATORS[type(op)](_number(left), _number(right))
        case ast.Compare(ops=[op], left=left, comparators=[right]):
            return _OPERATORS[type(op)](_number(left), _number(right))
    raise ValueError("not arithmetic")


def _calculate(expand: _Expand, arguments: Sequence[str]) -> str:
    """Return the value of an expression. WikiExtractor lets Python run it; this accepts only arithmetic."""
    expression = expand(arguments[0])
    expression = re.sub(r"(?<![!<>])=", "==", expression).replace("mod", "%")
    try:
        if len(expression) > _LONGEST_EXPRESSION:
            raise ValueError("too long")
        return str(_number(ast.parse(expression.strip(), mode="eval").body))
    except (ValueError, SyntaxError, KeyError, TypeError, ArithmeticError, RecursionError, MemoryError):
        return f"{_ERROR}{expression}{_ERROR_END}"


def _integer(_expand: _Expand, arguments: Sequence[str]) -> str:
    try:
        return str(int(arguments[0]))
    except ValueError:
        return ""


class _Function(NamedTuple):
    """A parser function and the number of its arguments; with fewer or more, WikiExtractor fails and gives nothing."""

    value: Callable[[_Expand, Sequence[str]], str]
    fewest: int
    most: float = math.inf


# Other functions give nothing, whether WikiExtractor knows them by name (#ifexpr, #time, #language, …) or not.
_FUNCTIONS: Mapping[str, _Function] = {
    "#expr": _Function(_calculate, 1, 1),
    "#if": _Function(_if, 2),
    "#ifeq": _Function(_if_equal, 3),
    "#iferror": _Function(_if_error, 1),
    "#ifexist": _Function(lambda expand, arguments: expand(arguments[2]), 3, 3),  # no page exists
    "#switch": _Function(_switch, 1),
    "urlencode": _Function(lambda _, arguments: urllib.parse.quote(arguments[0].translate(MARKS)), 1),
    "lc": _Function(lambda _, arguments: arguments[0].lower(), 1),
    "uc": _Function(lambda _, arguments: arguments[0].upper(), 1),
    "lcfirst": _Function(lambda _, arguments: arguments[0][:1].lower() + arguments[0][1:], 1),
    "ucfirst": _Function(lambda _, arguments: arguments[0][:1].upper() + arguments[0][1:], 1),
    "int": _Function(_integer, 1),
}
