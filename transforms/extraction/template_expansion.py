"""Expansion of templates with a dump's own definitions, for extraction with `expand_templates`.

A page is parsed into text, template calls and parameters as MediaWiki's preprocessor does
(https://www.mediawiki.org/wiki/Preprocessor_ABNF), and the calls are replaced by what their definitions give. It is
plain Python and far slower than the rules of transforms.template_rules, which go before it: a template that has a
rule stays a call, with its arguments expanded. Scribunto modules (`#invoke`) give nothing.

What a page gives depends on the page and the definitions alone: its limits count calls, characters and steps, never
seconds, and are far from Python's own.
"""

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from transforms.extraction.expressions import evaluate, format_number

# Content that the preprocessor does not look into.
_OPAQUE = "nowiki|pre|math|ref|source|syntaxhighlight|gallery|timeline|score|chem|ce|hiero|imagemap|templatedata"
_TOKENS = re.compile(
    rf"\{{\{{+|\}}\}}+|\[\[|\]\]|\||=|<!--.*?(?:-->|\Z)|<({_OPAQUE})\b[^<>]*>", re.DOTALL | re.IGNORECASE
)
_CLOSERS = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in _OPAQUE.split("|")}
_EQUALS = object()
_MOST_PARSED = 4 << 20  # characters of definitions that are kept parsed
_STEP = 100  # characters of a definition that are a step of work


@dataclass
class _Call:
    """A template call or a parameter: the parts between its pipes, each a list of nodes."""

    parts: list[list[object]]
    parameter: bool = False


@dataclass
class _Open:
    """Braces that wait for their closer: how many are left, and the parts read since."""

    count: int
    parts: list[list[object]] = field(default_factory=lambda: [[]])


def parse(text: str) -> list[object]:
    """A page as a list of str, _Call and _EQUALS (an equals sign that may name an argument)."""
    root: list[object] = []
    braces: list[_Open] = []
    # For each of the braces and for the page: the links open in it, whose pipes and equals signs are its own.
    links = [0]
    current = root
    at = 0
    never_closed: set[str] = set()
    while token := _TOKENS.search(text, at):
        if token.start() > at:
            current.append(text[at : token.start()])
        at = token.end()
        piece = token[0]
        if piece.startswith("<!--"):
            continue
        if token[1] and not piece.endswith("/>"):
            # A tag that nothing closes is text, and so are all of its name behind it.
            name = token[1].lower()
            closer = None if name in never_closed else _CLOSERS[name].search(text, at)
            if closer is None:
                never_closed.add(name)
                at = token.start() + 1
            else:
                at = closer.end()
            current.append(text[token.start() : at])
        elif piece.startswith("{"):
            braces.append(_Open(len(piece)))
            links.append(0)
            current = braces[-1].parts[0]
        elif piece.startswith("}"):
            left = len(piece)
            while left >= 2 and braces:
                top = braces.pop()
                links.pop()
                count = 3 if top.count >= 3 and left >= 3 else 2
                top.count -= count
                left -= count
                call = _Call(top.parts, parameter=count == 3)
                if top.count >= 2:
                    braces.append(_Open(top.count, [[call]]))
                    links.append(0)
                    current = braces[-1].parts[0]
                else:
                    current = braces[-1].parts[-1] if braces else root
                    current += ["{" * top.count, call]
            current.append("}" * left)
        elif piece == "|" and braces and not links[-1]:
            current = []
            braces[-1].parts.append(current)
        elif piece == "=" and braces and not links[-1]:
            current.append(_EQUALS)
        else:
            if piece == "[[":
                links[-1] += 1
            elif piece == "]]" and links[-1]:
                links[-1] -= 1
            current.append(piece)
    current.append(text[at:])
    # What is never closed reads as it stands.
    for opener in braces:
        root.append("{" * opener.count)
        for number, part in enumerate(opener.parts):
            root += ["|", *part] if number else part
    return root


def _plain(node: object) -> str:
    return "=" if node is _EQUALS else str(node)


def _definition(text: str) -> str:
    """What of a template's page is transcluded."""
    # A comment can hide tags.
    text = re.sub(r"<!--.*?(?:-->|\Z)", "", text, flags=re.DOTALL)
    only = re.findall(r"<onlyinclude>(.*?)(?:</onlyinclude>|\Z)", text, re.DOTALL | re.IGNORECASE)
    if only:
        text = "".join(only)
    text = re.sub(r"<noinclude>.*?(?:</noinclude\s*>|\Z)", "", text, flags=re.DOTALL | re.IGNORECASE)
    return re.sub(r"</?(?:includeonly|onlyinclude|noinclude)\s*/?>", "", text, flags=re.IGNORECASE)


class _Limit(Exception):
    """A page's limit of work or size is reached."""


@dataclass
class _Frame:
    """A call being expanded: its arguments' nodes by name, and the frame they are expanded in."""

    arguments: dict[str, list[object]]
    parent: "_Frame | None"
    title: str
    values: dict[str, str] = field(default_factory=dict)


class TemplateExpander:
    """Expands the templates of pages.

    find: gives a template's page by its title without the namespace, or None. has_rule: whether a name has a rule
    and stays a call. prefixes: the names of the template namespace. first_letter: whether titles begin with a capital.
    date: the dump's. depth, size, steps: the limits a page: calls within one another (templates, parser functions,
    parameters), characters that expansion writes, nodes that it looks at. A call that is too deep gives nothing; past
    the other limits the calls that are left give nothing. `limited` counts the pages that met a limit.
    """

    def __init__(
        self,
        find: Callable[[bytes], bytes | None],
        *,
        has_rule: Callable[[str], bool],
        prefixes: tuple[str, ...] = ("Template",),
        first_letter: bool = True,
        date: datetime.date,
        depth: int,
        size: int,
        steps: int,
    ) -> None:
        self._find_page = find
        self._has_rule = has_rule
        self._prefixes = tuple(prefix.lower() for prefix in prefixes)
        self._first_letter = first_letter
        self._date = date
        self._most_depth = depth
        self._most_size = size
        self._most_steps = steps
        # By name: the nodes of a definition and the steps that reading it takes.
        self._parsed: dict[str, tuple[list[object], int] | None] = {}
        self._parsed_size = 0
        self.limited = 0

    def expand(self, title: str, text: str) -> str:
        """The wikitext of a page with its templates expanded."""
        self._size = 0
        self._steps = 0
        self._met_limit = False
        frame = _Frame({}, None, title)
        out = []
        reached = False
        for node in parse(text):
            if isinstance(node, _Call):
                if reached:
                    continue
                self._depth = 0
                try:
                    # A comment leaves its mark on the extracted text, so that brackets around nothing are repaired.
                    out.append(self._call(node, frame) or "<!-- -->")
                except _Limit:
                    reached = self._met_limit = True
            else:
                out.append(_plain(node))
        self.limited += self._met_limit
        return "".join(out)

    def _work(self, size: int = 0, steps: int = 1) -> None:
        self._steps += steps
        self._size += size
        if self._steps > self._most_steps or self._size > self._most_size:
            raise _Limit

    def _text(self, nodes: list[object], frame: _Frame) -> str:
        out = []
        for node in nodes:
            self._work()
            out.append(self._call(node, frame) if isinstance(node, _Call) else _plain(node))
        text = "".join(out)
        self._work(len(text))
        return text

    def _call(self, call: _Call, frame: _Frame) -> str:
        if self._depth >= self._most_depth:
            self._met_limit = True
            return ""
        self._depth += 1
        text = self._expand_call(call, frame)
        self._depth -= 1
        return text

    def _expand_call(self, call: _Call, frame: _Frame) -> str:
        if call.parameter:
            name = self._text(call.parts[0], frame).strip()
            value = self._argument(name, frame)
            if value is None:
                return self._text(call.parts[1], frame) if len(call.parts) > 1 else ""
            return value
        name = self._text(call.parts[0], frame).strip()
        for prefix in ("subst:", "safesubst:", "msg:", "raw:"):
            if name.lower().startswith(prefix):
                name = name[len(prefix) :].strip()
        head, colon, first = name.partition(":")
        if colon:
            function = _FUNCTIONS.get(head.strip().lower())
            if function is not None:
                return function(self, _Arguments(self, first.strip(), call.parts[1:], frame))
            if head.strip().lower() in self._prefixes:
                name = first.strip()
        if len(call.parts) == 1:
            variable = self._variable(name, frame)
            if variable is not None:
                return variable
        if self._has_rule(name):
            parts = [self._text(part, frame) for part in call.parts[1:]]
            return "{{" + "|".join([name, *parts]) + "}}"
        nodes = self._template(name)
        if nodes is None:
            return ""
        inner = _Frame({}, frame, frame.title)
        number = 0
        for part in call.parts[1:]:
            if _EQUALS in part:
                at = part.index(_EQUALS)
                key = self._text(part[:at], frame).strip()
                inner.arguments[key] = part[at + 1 :]
                inner.values.pop(key, None)
                # Named arguments are trimmed, numbered ones are not.
                inner.values[key] = self._text(part[at + 1 :], frame).strip()
            else:
                number += 1
                inner.arguments[str(number)] = part
                inner.values.pop(str(number), None)
        return self._text(nodes, inner)

    def _argument(self, name: str, frame: _Frame) -> str | None:
        if name in frame.values:
            return frame.values[name]
        if name not in frame.arguments or frame.parent is None:
            return None
        frame.values[name] = self._text(frame.arguments[name], frame.parent)
        return frame.values[name]

    def _title(self, name: str) -> str:
        name = re.sub(r"[ _]+", " ", name).strip()
        return name[:1].upper() + name[1:] if self._first_letter else name

    def _template(self, name: str) -> list[object] | None:
        name = self._title(name)
        if name not in self._parsed:
            text = self._find(name)
            self._parsed_size += len(name) + len(text or "")
            if self._parsed_size > _MOST_PARSED:
                self._parsed.clear()
                self._parsed_size = len(name) + len(text or "")
            self._parsed[name] = None if text is None else (parse(_definition(text)), len(text) // _STEP)
        found = self._parsed[name]
        if found is None:
            return None
        # Counted each time, parsed before or not: a page's limits do not depend on other pages.
        self._work(steps=found[1])
        return found[0]

    def _find(self, name: str) -> str | None:
        for _ in range(4):
            found = self._find_page(name.encode())
            if found is None:
                return None
            text = found.decode("utf-8", "replace")
            redirect = re.match(r"\s*#[^\W\d]+\s*:?\s*\[\[\s*([^\]|#]+)", text)
            if not redirect:
                return text
            prefix, colon, rest = redirect[1].partition(":")
            name = self._title(rest if colon and prefix.strip().lower() in self._prefixes else redirect[1])
        return None

    def _variable(self, name: str, frame: _Frame) -> str | None:
        date = self._date
        title = frame.title
        values: dict[str, str] = {
            "!": "|",
            "=": "=",
            "PAGENAME": title,
            "FULLPAGENAME": title,
            "BASEPAGENAME": title.rsplit("/", 1)[0],
            "SUBPAGENAME": title.rsplit("/", 1)[-1],
            "ROOTPAGENAME": title.split("/", 1)[0],
            "ARTICLEPAGENAME": title,
            "SUBJECTPAGENAME": title,
            "PAGENAMEE": title.replace(" ", "_"),
            "FULLPAGENAMEE": title.replace(" ", "_"),
            "NAMESPACE": "",
            "NAMESPACEE": "",
            "NAMESPACENUMBER": "0",
            "ARTICLESPACE": "",
            "SUBJECTSPACE": "",
            "CURRENTYEAR": str(date.year),
            "CURRENTMONTH": f"{date.month:02}",
            "CURRENTMONTH1": str(date.month),
            "CURRENTDAY": str(date.day),
            "CURRENTDAY2": f"{date.day:02}",
            "CURRENTDOW": str(date.isoweekday() % 7),
            "CURRENTWEEK": str(date.isocalendar()[1]),
            "CURRENTTIME": "00:00",
            "CURRENTHOUR": "00",
            "CURRENTTIMESTAMP": f"{date:%Y%m%d}000000",
            "SITENAME": "Wikipedia",
        }
        for key in ("YEAR", "MONTH", "MONTH1", "DAY", "DAY2", "DOW", "WEEK", "TIME", "HOUR"):
            values[f"LOCAL{key}"] = values[f"CURRENT{key}"]
        return values.get(name)


@dataclass
class _Arguments:
    """A parser function's arguments, expanded when they are asked for."""

    expander: TemplateExpander
    first: str
    parts: list[list[object]]
    frame: _Frame

    def __call__(self, number: int) -> str:
        """Argument `number` from 0, trimmed; empty if it is not given."""
        if number == 0:
            return self.first
        if number > len(self.parts):
            return ""
        return self.expander._text(self.parts[number - 1], self.frame).strip()

    def pair(self, number: int) -> tuple[str, list[object]] | list[object]:
        """(key, nodes of the value) of argument `number` from 1, or its nodes if it has no equals sign."""
        part = self.parts[number - 1]
        if _EQUALS not in part:
            return part
        at = part.index(_EQUALS)
        return self.expander._text(part[:at], self.frame).strip(), part[at + 1 :]

    @property
    def title(self) -> str:
        """The page's title."""
        return self.frame.title


_Function = Callable[[TemplateExpander, _Arguments], str]


def _same(a: str, b: str) -> bool:
    if a == b:
        return True
    try:
        return Decimal(a) == Decimal(b)
    except InvalidOperation:
        return False


def _switch(expander: TemplateExpander, arguments: _Arguments) -> str:
    wanted = arguments(0)
    default: list[object] | None = None
    falls_through = False
    for number in range(1, len(arguments.parts) + 1):
        expander._work()
        found = arguments.pair(number)
        if isinstance(found, tuple):
            key, value = found
            if falls_through or _same(key, wanted):
                return expander._text(value, arguments.frame).strip()
            if key == "#default":
                default = value
        else:
            key = expander._text(found, arguments.frame).strip()
            if number == len(arguments.parts):
                return key
            if _same(key, wanted):
                falls_through = True
    return expander._text(default, arguments.frame).strip() if default is not None else ""


def _if_expression(expander: TemplateExpander, arguments: _Arguments) -> str:
    try:
        value = evaluate(arguments(0)) if arguments(0) else 0.0
    except ValueError:
        return '<strong class="error"></strong>'
    return arguments(1) if value else arguments(2)


def _expression(expander: TemplateExpander, arguments: _Arguments) -> str:
    try:
        return format_number(evaluate(arguments(0))) if arguments(0) else ""
    except ValueError:
        return '<strong class="error"></strong>'


def _time(expander: TemplateExpander, arguments: _Arguments) -> str:
    date = expander._date
    given = arguments(1)
    if given:
        found = re.fullmatch(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ].*)?", given)
        try:
            date = datetime.date(int(found[1]), int(found[2]), int(found[3])) if found else date
        except ValueError:
            return ""
        if not found:
            return ""
    codes = {
        "Y": str(date.year),
        "y": f"{date.year % 100:02}",
        "n": str(date.month),
        "m": f"{date.month:02}",
        "j": str(date.day),
        "d": f"{date.day:02}",
        "F": date.strftime("%B"),
        "M": date.strftime("%b"),
        "l": date.strftime("%A"),
        "D": date.strftime("%a"),
        "w": str(date.isoweekday() % 7),
        "N": str(date.isoweekday()),
        "z": str(date.timetuple().tm_yday - 1),
        "U": str((date - datetime.date(1970, 1, 1)).days * 86400),
        **dict.fromkeys("Hhis", "00"),
        **dict.fromkeys("Gg", "0"),
    }
    pieces = re.findall(r'"[^"]*"|x[a-z]|.', arguments(0), re.DOTALL)
    return "".join(piece.strip('"') if len(piece) > 1 else codes.get(piece, piece) for piece in pieces)


def _titleparts(expander: TemplateExpander, arguments: _Arguments) -> str:
    parts = arguments(0).split("/")
    try:
        count, first = int(arguments(1) or 0), int(arguments(2) or 1)
    except ValueError:
        return arguments(0)
    parts = parts[first - 1 if first > 0 else first :]
    return "/".join(parts[:count] if count else parts)


def _pad(left: bool) -> _Function:
    def pad(expander: TemplateExpander, arguments: _Arguments) -> str:
        text, filling = arguments(0), arguments(2) or "0"
        try:
            missing = min(int(arguments(1) or 0), 500) - len(text)
        except ValueError:
            return text
        if missing <= 0:
            return text
        padding = (filling * (missing // len(filling) + 1))[:missing]
        return padding + text if left else text + padding

    return pad


def _tag(expander: TemplateExpander, arguments: _Arguments) -> str:
    return f"<{arguments(0)}>{arguments(1)}</{arguments(0)}>"


def _integer(text: str, default: int) -> int:
    try:
        return int(text)
    except ValueError:
        return default


def _sub(expander: TemplateExpander, arguments: _Arguments) -> str:
    start, length = _integer(arguments(1), 0), _integer(arguments(2), 0)
    text = arguments(0)[start:] if start >= 0 or -start <= len(arguments(0)) else arguments(0)
    return text[:length] if length else text


def _replace(expander: TemplateExpander, arguments: _Arguments) -> str:
    text, old, new = arguments(0), arguments(1), arguments(2)
    if not old:
        return text
    # Counted before it is made: every letter of a long text could become a long text.
    expander._work(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _plural(expander: TemplateExpander, arguments: _Arguments) -> str:
    return arguments(1) if _same(arguments(0), "1") or len(arguments.parts) < 2 else arguments(2)


def _format(expander: TemplateExpander, arguments: _Arguments) -> str:
    if arguments(1).lower() in ("r", "nosep"):
        return arguments(0).replace(",", "")
    # The rule of the site's language groups the digits.
    return "{{formatnum:" + arguments(0) + "}}"


def _nothing(expander: TemplateExpander, arguments: _Arguments) -> str:
    return ""


def _first(expander: TemplateExpander, arguments: _Arguments) -> str:
    return arguments(0)


# https://www.mediawiki.org/wiki/Help:Magic_words, https://www.mediawiki.org/wiki/Help:Extension:ParserFunctions
_FUNCTIONS: dict[str, _Function] = {
    "#if": lambda expander, a: a(1) if a(0) else a(2),
    "#ifeq": lambda expander, a: a(2) if _same(a(0), a(1)) else a(3),
    "#iferror": lambda expander, a: a(1) if 'class="error"' in a(0) else (a(2) or a(0)),
    "#ifexist": lambda expander, a: a(1),
    "#ifexpr": _if_expression,
    "#expr": _expression,
    "#switch": _switch,
    "#time": _time,
    "#timel": _time,
    "#titleparts": _titleparts,
    "#tag": _tag,
    "#invoke": _nothing,
    "#rel2abs": _first,
    "#len": lambda expander, a: str(len(a(0))),
    "#pos": lambda expander, a: str(a(0).find(a(1))) if a(1) in a(0) else "",
    "#sub": _sub,
    "#replace": _replace,
    "lc": lambda expander, a: a(0).lower(),
    "uc": lambda expander, a: a(0).upper(),
    "lcfirst": lambda expander, a: a(0)[:1].lower() + a(0)[1:],
    "ucfirst": lambda expander, a: a(0)[:1].upper() + a(0)[1:],
    "formatnum": _format,
    "padleft": _pad(True),
    "padright": _pad(False),
    "plural": _plural,
    "grammar": lambda expander, a: a(1),
    "gender": lambda expander, a: a(3) or a(1),
    "urlencode": _first,
    "anchorencode": _first,
    "fullurl": _nothing,
    "localurl": _nothing,
    "canonicalurl": _nothing,
    "filepath": _nothing,
    "int": _nothing,
    "ns": lambda expander, a: "" if a(0) in ("", "0") else a(0),
    "nse": lambda expander, a: "" if a(0) in ("", "0") else a(0),
    "pagename": _first,
    "fullpagename": _first,
    "pagenamee": _first,
    "fullpagenamee": _first,
    "namespace": _nothing,
    "basepagename": lambda expander, a: a(0).rsplit("/", 1)[0],
    "subpagename": lambda expander, a: a(0).rsplit("/", 1)[-1],
    "defaultsort": _nothing,
    "displaytitle": _nothing,
    "#language": _first,
    "#special": _nothing,
    "#statements": _nothing,
    "#property": _nothing,
    "#coordinates": _nothing,
    "#related": _nothing,
    "pagesincategory": lambda expander, a: "0",
    "pagesize": lambda expander, a: "0",
    "protectionlevel": _nothing,
}
