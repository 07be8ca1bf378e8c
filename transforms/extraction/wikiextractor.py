"""Wikitext to text as WikiExtractor gives it (attardi/wikiextractor at commit 3162bb6, default options).

For those who must reproduce published data: MLPerf's BERT data was extracted with it. What it drops by design or by
mistake is dropped here too. Nothing of its code is in this module, which was written from its observed behaviour;
docs/wikiextractor-compat.md tells what still differs, and why.

With its default options templates are not expanded (it only does so with `--templates`): a transclusion gives
nothing, while variables and parser functions give their value.
"""

import ast
import datetime
import functools
import html.entities
import math
import operator
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transforms.characters.classes import character_tables
from transforms.extraction.kernels import wikiextractor as kernels

_UNICODE = "nltk-3.4"  # the tables of Python 3.7
_FILE_BYTES = 1 << 20
_FILES_A_FOLDER = 100
_DEEPEST = 40  # levels of nested functions; deeper ones give nothing

_SWITCHES = re.compile(
    rb"__(?:NOTOC|FORCETOC|TOC|NEWSECTIONLINK|NONEWSECTIONLINK|NOGALLERY|HIDDENCAT|NOCONTENTCONVERT|NOCC"
    rb"|NOTITLECONVERT|NOTC|START|END|INDEX|NOINDEX|STATICREDIRECT|DISAMBIG)__"
)
_HIGHLIGHT_OPEN, _HIGHLIGHT_CLOSE = b"<syntaxhighlight ", b"</syntaxhighlight>"
_MARKS = {kernels.QUOTE_MARK: '"', kernels.LESS_MARK: "<", kernels.GREATER_MARK: ">"}
_MARKED = bytes(ord(_MARKS.get(byte, chr(byte))) for byte in range(256))
_PLACEHOLDERS = (("math", "formula"), ("code", "codice"))
_MAYBE_PLACEHOLDER = re.compile(rb"<[^<>\w]*(?:math|code)", re.IGNORECASE)


def format_document(page_id: int, url_base: str, title: bytes, text: bytes) -> bytes:
    """A page as WikiExtractor writes it: its `<doc>` block.

    `url_base` is the address of the site's pages, https://en.wikipedia.org/wiki; `text` is what
    `WikiExtractorCompat.extract` gave. The title keeps the XML's references (`AT&amp;T`).
    """
    title = _escape_xml(title)
    head = b'<doc id="%d" url="%b?curid=%d" title="%b">\n' % (page_id, url_base.encode(), page_id, title)
    return b"".join((head, title, b"\n\n", text, b"\n</doc>\n"))


def pack_files(sizes: Sequence[int], limit: int = _FILE_BYTES) -> list[list[int]]:
    """Which documents go into which file, by their encoded sizes in bytes: the indexes for each file, in order.

    A file takes documents up to `limit` bytes, a larger document has one of its own; if it comes first, the first
    file stays empty.
    """
    packed: list[list[int]] = [[]]
    size = 0
    for index, document in enumerate(sizes):
        if size + document > limit:
            packed.append([])
            size = 0
        packed[-1].append(index)
        size += document
    return packed


def file_name(number: int) -> str:
    """The name of the file of this number, from 0: `AA/wiki_00` to `AA/wiki_99`, then `AB/wiki_00` and so on."""
    folder, file = divmod(number, _FILES_A_FOLDER)
    first, second = divmod(folder, 26)
    return f"{chr(ord('A') + first % 26)}{chr(ord('A') + second)}/wiki_{file:02d}"


def _escape_xml(text: bytes) -> bytes:
    """Text as MediaWiki's export writes it into XML."""
    for character, reference in ((b"&", b"&amp;"), (b"<", b"&lt;"), (b">", b"&gt;"), (b'"', b"&quot;")):
        text = text.replace(character, reference)
    return text


class WikiExtractorCompat:
    """Extracts the pages of one dump.

    `date` (ISO, the dump's) is what variables of the clock give, where WikiExtractor takes the day of its run; the
    time of day is midnight. NAMESPACENUMBER is always 0.
    """

    def __init__(self, date: str) -> None:
        self._date = datetime.datetime.fromisoformat(date)
        self._characters = character_tables(_UNICODE)

    def extract(self, title: bytes, text: bytes) -> bytes:
        """The lines that WikiExtractor writes of a page below its title, each with its newline.

        `title` and `text` (wikitext) are UTF-8, the XML's references resolved. Takes time linear in the text.
        """
        text = _Expansion(functools.partial(self._values, title), self._characters).expand_page(text)
        steps = _Steps(text, self._characters)
        if b"{{" in steps.text:
            steps.run(kernels.drop_pairs, ord("{"), ord("{"))
        if b"{|" in steps.text:
            steps.run(kernels.drop_pairs, ord("{"), ord("|"))
        steps.run(kernels.replace_quotes)
        steps.run_with_characters(kernels.replace_links)
        steps.run_with_characters(kernels.replace_addresses)
        if b"__" in steps.text:
            steps.text = _SWITCHES.sub(b"", steps.text)
        if _HIGHLIGHT_OPEN in steps.text:
            steps.text = _keep_highlighted(steps.text)
        steps.text = steps.text.translate(_MARKED)
        self._drop_markup(steps)
        return self._tidy(steps)

    def _drop_markup(self, steps: "_Steps") -> None:
        if b"<" in steps.text:
            steps.run_with_characters(kernels.drop_tags)
            opened = kernels.opened_elements(self._characters, np.frombuffer(steps.text, np.uint8))
            for number in range(kernels.NUM_DROPPED):
                if opened >> number & 1:
                    steps.run_with_characters(kernels.drop_element, number)
        if b"&" in steps.text:
            steps.resolve_references()
        if _MAYBE_PLACEHOLDER.search(steps.text):
            steps.text = _number_placeholders(steps.text)

    def _tidy(self, steps: "_Steps") -> bytes:
        steps.run(kernels.tidy_spaces)
        # Meant for any of these marks, it only works where all stand in a row.
        if b"\xc2" in steps.text:
            text = steps.text.replace(b" ,:.)]\xc2\xbb", b",:.)]\xc2\xbb")
            steps.text = text.replace(b"[(\xc2\xab ", b"[(\xc2\xab")
        steps.run_with_characters(kernels.tidy_lines)
        steps.run(kernels.compact)
        return steps.text

    def _values(self, title: bytes) -> dict[str, str]:
        full = _escape_xml(title).decode("utf-8")
        namespace, colon, name = full.partition(":")
        if not colon:
            namespace, name = "", full
        base, slash, sub = name.rpartition("/")
        return {
            "!": "|",
            "NAMESPACE": namespace,
            "NAMESPACENUMBER": "0",
            "PAGENAME": name,
            "FULLPAGENAME": full,
            "BASEPAGENAME": base if slash else name,
            "SUBPAGENAME": sub if slash else "",
            "ROOTPAGENAME": name.partition("/")[0],
            "CURRENTYEAR": self._date.strftime("%Y"),
            "CURRENTMONTH": self._date.strftime("%m"),
            "CURRENTDAY": self._date.strftime("%d"),
            "CURRENTHOUR": self._date.strftime("%H"),
            "CURRENTTIME": self._date.strftime("%H:%M:%S"),
        }


class _Steps:
    """The text of a page, on its way through the kernels."""

    def __init__(self, text: bytes, characters: NDArray[np.int32]) -> None:
        self.text = text
        self._characters = characters
        self._out = np.empty(0, np.uint8)

    def run(self, kernel: Callable[..., int], *arguments: Any) -> int:
        """Puts what a kernel makes of the text in its place; returns what the kernel returned."""
        if self._out.size < len(self.text) + 2:
            self._out = np.empty(len(self.text) + 2, np.uint8)
        size = kernel(np.frombuffer(self.text, np.uint8), *arguments, self._out)
        if size >= 0:
            self.text = self._out[:size].tobytes()
        return size

    def resolve_references(self) -> None:
        """Resolves HTML's references; those in digits of other scripts, which nobody writes, the slow way."""
        if self.run(kernels.resolve_references) == kernels.ODD_DIGITS:
            self.text = _resolve(self.text.decode("utf-8")).encode("utf-8")

    def run_with_characters(self, kernel: Callable[..., int], *arguments: Any) -> None:
        """As `run`, for a kernel that asks what a character is."""
        self.run(functools.partial(kernel, self._characters), *arguments)


def _keep_highlighted(text: bytes) -> bytes:
    """Takes the tags of source code away, and protects what is in it from the steps that follow."""
    pieces = []
    at = 0
    while (start := text.find(_HIGHLIGHT_OPEN, at)) >= 0:
        inside = text.find(b">", start + len(_HIGHLIGHT_OPEN)) + 1
        end = text.find(_HIGHLIGHT_CLOSE, inside) if inside else -1
        if end < 0:
            break
        pieces += [text[at:start], _escape_xml(text[inside:end])]
        at = end + len(_HIGHLIGHT_CLOSE)
    return b"".join([*pieces, text[at:]])


_REPLACED_BYTES = 1 << 30


def _number_placeholders(text: bytes) -> bytes:
    """Puts `formula_1`, `formula_2`, … in place of formulas, `codice_1`, … in place of code; equal ones share one."""
    page = text.decode("utf-8")
    for tag, word in _PLACEHOLDERS:
        opening = re.compile(rf"<\s*{tag}(?:\s*| [^>]+)>", re.IGNORECASE)
        closing = re.compile(rf"<\s*/\s*{tag}\s*>", re.IGNORECASE)
        found = []
        at = 0
        while (first := opening.search(page, at)) and (last := closing.search(page, first.end())):
            at = last.end()
            found.append((first.start(), at))
        if (
            any(opening.search(page, start + 1, end) for start, end in found)
            and len(found) * len(page) < _REPLACED_BYTES
        ):
            # One formula may stand within another, whose replacement changes it.
            replaced = page
            for number, (start, end) in enumerate(found, 1):
                replaced = replaced.replace(page[start:end], f"{word}_{number}")
            page = replaced
            continue
        numbers: dict[str, int] = {}
        pieces = []
        at = 0
        for number, (start, end) in enumerate(found, 1):
            pieces += [page[at:start], f"{word}_{numbers.setdefault(page[start:end], number)}"]
            at = end
        page = "".join([*pieces, page[at:]])
    return page.encode("utf-8")


# Variables and parser functions

_RUNS = re.compile(r"\{\{+|\}\}+|\[\[+|\]\]+")


def _bracket_spans(text: str) -> Iterator[tuple[int, int]]:
    """The outermost `{{…}}`, `{{{…}}}` and `[[…]]` of a template's body.

    Runs of braces are matched from the inside. A run of closing braces also closes the brackets it meets open, and
    then ends that much earlier.
    """
    runs = _RUNS.finditer(text)
    for first in runs:
        if first[0][0] in "}]":
            continue
        start = first.start()
        # Lengths of the open runs, those of brackets negative.
        stack = [len(first[0]) if first[0][0] == "{" else -len(first[0])]
        for run in runs:
            length = len(run[0])
            kind = run[0][0]
            if kind in "{[":
                stack.append(length if kind == "{" else -length)
                continue
            if kind == "}":
                while stack:
                    opened = stack.pop()
                    if length < opened:
                        stack.append(opened - length)
                        break
                    length -= opened
                    if length <= 1:
                        break
            else:
                while stack and stack[-1] < 0:
                    opened = -stack.pop()
                    if length < opened:
                        stack.append(length - opened)
                        break
                    length -= opened
                    if length <= 1:
                        break
            if not stack:
                yield start, run.end() - length
                break
        else:
            return


def _split_parts(body: str) -> list[str]:
    """Splits a template's body at the pipes that are in no brackets."""
    parts = [""]
    at = 0
    for start, end in (*_bracket_spans(body), (len(body), len(body))):
        first, *rest = body[at:start].split("|")
        parts[-1] += first
        parts += rest
        parts[-1] += body[start:end]
        at = end
    return parts


def _resolve(text: str) -> str:
    """Resolves the references of the XML, and HTML's, once."""

    def character(match: re.Match[str]) -> str:
        numeric, name = match.groups()
        try:
            if not numeric:
                return chr(html.entities.name2codepoint[name])
            code = int(name[1:], 16) if name[0] == "x" else int(name)
            # Half of a surrogate pair is in no UTF-8: WikiExtractor dies of it.
            return match[0] if 0xD800 <= code < 0xE000 else chr(code)
        except (KeyError, ValueError, OverflowError):
            return match[0]

    return re.sub(r"&(#?)(\w+);", character, text)


class _Expansion:
    """The templates of one page. Text is kept as the XML has it, because functions see it so (`uc` makes `&AMP;`)."""

    def __init__(self, variables: Callable[[], dict[str, str]], characters: NDArray[np.int32]) -> None:
        self._values = variables
        self._characters = characters

    @functools.cached_property
    def _variables(self) -> dict[str, str]:
        return self._values()

    def expand_page(self, text: bytes) -> bytes:
        """Puts values in place of variables and functions, and nothing in place of other templates."""
        if b"{{" not in text:
            return text
        data = np.frombuffer(text, np.uint8)
        spans = kernels.template_spans(self._characters, data)
        if not spans[:, 2].any():
            out = np.empty(data.size, np.uint8)
            return out[: kernels.drop_spans(data, spans, out)].tobytes()
        pieces = []
        at = 0
        for start, end, needs_expansion in spans.tolist():
            pieces.append(text[at:start])
            if needs_expansion:
                body = _escape_xml(text[start + 2 : end - 2]).decode("utf-8")
                pieces.append(_resolve(self._value(body, 0)).encode("utf-8"))
            at = end
        return b"".join([*pieces, text[at:]])

    def _expand(self, text: str, depth: int) -> str:
        if "{{" not in text:
            return text
        encoded = text.encode("utf-8")
        spans = kernels.template_spans(self._characters, np.frombuffer(encoded, np.uint8))
        pieces = []
        at = 0
        for start, end, needs_expansion in spans.tolist():
            pieces.append(encoded[at:start].decode("utf-8"))
            if needs_expansion:
                pieces.append(self._value(encoded[start + 2 : end - 2].decode("utf-8"), depth))
            at = end
        return "".join([*pieces, encoded[at:].decode("utf-8")])

    def _value(self, body: str, depth: int) -> str:
        if depth >= _DEEPEST:
            return ""
        parts = _split_parts(body)
        title = self._expand(parts[0].strip(), depth + 1)
        title = re.sub(r"^(?:subst:|safesubst:)", "", title, count=1, flags=re.IGNORECASE)
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


_ERROR, _ERROR_END = (
    tag.translate({ord(of): mark for mark, of in _MARKS.items()}) for tag in ('<span class="error">', "</span>")
)


def _if_error(expand: _Expand, arguments: Sequence[str]) -> str:
    # Only `_calculate` makes a tag, the page's own are references here.
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
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg, ast.UAdd: operator.pos,
    ast.Not: operator.not_, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_CONSTANTS = {"pi": math.pi, "e": math.e}
_LONGEST_EXPRESSION = 500


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
    """WikiExtractor hands the expression to Python; here only arithmetic is calculated."""
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


class _Function:
    """A parser function, and how many arguments it takes: with fewer or more WikiExtractor fails, and gives nothing."""

    def __init__(self, value: Callable[[_Expand, Sequence[str]], str], fewest: int, most: float) -> None:
        self.value = value
        self.fewest = fewest
        self.most = most


# Others that it knows by name (#ifexpr, #time, #language, …) give nothing, as do those it does not know.
_FUNCTIONS: Mapping[str, _Function] = {
    "#expr": _Function(_calculate, 1, 1),
    "#if": _Function(_if, 2, math.inf),
    "#ifeq": _Function(_if_equal, 3, math.inf),
    "#iferror": _Function(_if_error, 1, math.inf),
    "#ifexist": _Function(lambda expand, arguments: expand(arguments[2]), 3, 3),  # no page exists
    "#switch": _Function(_switch, 1, math.inf),
    "urlencode": _Function(lambda _, arguments: urllib.parse.quote(arguments[0].translate(_MARKS)), 1, math.inf),
    "lc": _Function(lambda _, arguments: arguments[0].lower(), 1, math.inf),
    "uc": _Function(lambda _, arguments: arguments[0].upper(), 1, math.inf),
    "lcfirst": _Function(lambda _, arguments: arguments[0][:1].lower() + arguments[0][1:], 1, math.inf),
    "ucfirst": _Function(lambda _, arguments: arguments[0][:1].upper() + arguments[0][1:], 1, math.inf),
    "int": _Function(_integer, 1, math.inf),
}
