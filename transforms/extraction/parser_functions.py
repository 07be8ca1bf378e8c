"""MediaWiki's parser functions (`{{#if:…}}`, `{{lc:…}}`) and variables (`{{PAGENAME}}`), for the template expander.

Sources: https://www.mediawiki.org/wiki/Help:Magic_words,
https://www.mediawiki.org/wiki/Help:Extension:ParserFunctions. What a function cannot know from the dump alone (other
pages, the user, addresses) gives nothing, or what most pages of an encyclopedia would get.
"""

import datetime
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Protocol

from transforms.extraction.expressions import ExpressionError, evaluate, format_number

_ERROR = '<strong class="error"></strong>'
_ERROR_MARK = 'class="error"'  # by which #iferror knows an error
_MOST_PADDING = 500  # characters to which padleft and padright fill up
_DAY_SECONDS = 24 * 60 * 60
_EPOCH = datetime.date(1970, 1, 1)


class Arguments(Protocol):
    """A parser function's arguments, which are expanded when it asks for them. Argument 0 follows the colon.

    title: the page's.
    """

    title: str

    @property
    def date(self) -> datetime.date:
        """The dump's date; what asks for it depends on it."""

    def __len__(self) -> int:
        """The number of arguments, argument 0 included."""

    def __call__(self, number: int) -> str:
        """An argument, trimmed; empty if it is not given."""

    def key(self, number: int) -> str | None:
        """What stands before the equals sign of an argument from 1 on, trimmed; None if it has none."""

    def value(self, number: int) -> str:
        """What stands behind the equals sign of an argument from 1 on, or all of it, trimmed."""

    def work(self, characters: int = 0) -> None:
        """Counts a step, and characters that are about to be written, against the limits of the page."""


Function = Callable[[Arguments], str]


def clock_variables(date: datetime.date) -> dict[str, str]:
    """The variables of the clock: midnight of the dump's date."""
    clock = {
        "YEAR": str(date.year),
        "MONTH": f"{date.month:02}",
        "MONTH1": str(date.month),
        "DAY": str(date.day),
        "DAY2": f"{date.day:02}",
        "DOW": str(date.isoweekday() % 7),
        "WEEK": str(date.isocalendar()[1]),
        "TIME": "00:00",
        "HOUR": "00",
    }
    return {
        **{f"CURRENT{name}": value for name, value in clock.items()},
        **{f"LOCAL{name}": value for name, value in clock.items()},
        "CURRENTTIMESTAMP": f"{date:%Y%m%d}000000",
    }


def page_variables(title: str) -> dict[str, str]:
    """The variables of a page of the main namespace, and those that are the same on every page."""
    with_underscores = title.replace(" ", "_")
    return {
        "!": "|",
        "=": "=",
        "PAGENAME": title,
        "FULLPAGENAME": title,
        "BASEPAGENAME": _base_page(title),
        "SUBPAGENAME": _subpage(title),
        "ROOTPAGENAME": title.split("/", 1)[0],
        "ARTICLEPAGENAME": title,
        "SUBJECTPAGENAME": title,
        "PAGENAMEE": with_underscores,
        "FULLPAGENAMEE": with_underscores,
        "NAMESPACE": "",
        "NAMESPACEE": "",
        "NAMESPACENUMBER": "0",
        "ARTICLESPACE": "",
        "SUBJECTSPACE": "",
        "SITENAME": "Wikipedia",
    }


# Conditions


def _are_same(a: str, b: str) -> bool:
    """Whether two texts are equal, or are equal as numbers."""
    if a == b:
        return True
    try:
        return Decimal(a) == Decimal(b)
    except InvalidOperation:
        return False


def _if(arguments: Arguments) -> str:
    return arguments(1) if arguments(0) else arguments(2)


def _if_equal(arguments: Arguments) -> str:
    return arguments(2) if _are_same(arguments(0), arguments(1)) else arguments(3)


def _if_error(arguments: Arguments) -> str:
    return arguments(1) if _ERROR_MARK in arguments(0) else (arguments(2) or arguments(0))


def _if_expression(arguments: Arguments) -> str:
    try:
        value = evaluate(arguments(0)) if arguments(0) else 0.0
    except ExpressionError:
        return _ERROR
    return arguments(1) if value else arguments(2)


def _expression(arguments: Arguments) -> str:
    try:
        return format_number(evaluate(arguments(0))) if arguments(0) else ""
    except ExpressionError:
        return _ERROR


def _switch(arguments: Arguments) -> str:
    wanted = arguments(0)
    default: int | None = None
    falls_through = False  # a case without a value shares that of the next one that has one
    for number in range(1, len(arguments)):
        arguments.work()
        key = arguments.key(number)
        if key is not None:
            if falls_through or _are_same(key, wanted):
                return arguments.value(number)
            if key == "#default":
                default = number
        else:
            case = arguments.value(number)
            if number == len(arguments) - 1:
                return case  # a last one without an equals sign is the default
            if _are_same(case, wanted):
                falls_through = True
    return arguments.value(default) if default is not None else ""


# Dates

_FORMAT_CODES = re.compile(r'"[^"]*"|x[a-z]|.', re.DOTALL)
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ].*)?")


def _date_codes(date: datetime.date) -> dict[str, str]:
    """What each code of #time's formats gives; the time of day is midnight."""
    return {
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
        "U": str((date - _EPOCH).days * _DAY_SECONDS),
        **dict.fromkeys("Hhis", "00"),
        **dict.fromkeys("Gg", "0"),
    }


def _time(arguments: Arguments) -> str:
    given = arguments(1)
    if given:
        day = _DAY.fullmatch(given)
        if day is None:
            return ""
        try:
            date = datetime.date(int(day[1]), int(day[2]), int(day[3]))
        except ValueError:
            return ""
    else:
        date = arguments.date
    codes = _date_codes(date)
    pieces = _FORMAT_CODES.findall(arguments(0))
    return "".join(piece.strip('"') if len(piece) > 1 else codes.get(piece, piece) for piece in pieces)


# Titles


def _base_page(title: str) -> str:
    return title.rsplit("/", 1)[0]


def _subpage(title: str) -> str:
    return title.rsplit("/", 1)[-1]


def _title_parts(arguments: Arguments) -> str:
    parts = arguments(0).split("/")
    try:
        count, first = int(arguments(1) or 0), int(arguments(2) or 1)
    except ValueError:
        return arguments(0)
    parts = parts[first - 1 if first > 0 else first :]
    return "/".join(parts[:count] if count else parts)


def _namespace_name(arguments: Arguments) -> str:
    return "" if arguments(0) in ("", "0") else arguments(0)


# Text


def _integer(text: str, default: int) -> int:
    try:
        return int(text)
    except ValueError:
        return default


def _padding(text: str, filling: str, width: str) -> str:
    """What padleft and padright add to a text."""
    missing = min(_integer(width, 0), _MOST_PADDING) - len(text)
    return (filling * (missing // len(filling) + 1))[:missing] if missing > 0 else ""


def _substring(arguments: Arguments) -> str:
    start, length = _integer(arguments(1), 0), _integer(arguments(2), 0)
    text = arguments(0)[start:] if start >= 0 or -start <= len(arguments(0)) else arguments(0)
    return text[:length] if length else text


def _position(arguments: Arguments) -> str:
    return str(arguments(0).find(arguments(1))) if arguments(1) in arguments(0) else ""


def _replace(arguments: Arguments) -> str:
    text, old, new = arguments(0), arguments(1), arguments(2)
    if not old:
        return text
    # Counted before it is made: every letter of a long text could become a long text.
    arguments.work(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _tag(arguments: Arguments) -> str:
    return f"<{arguments(0)}>{arguments(1)}</{arguments(0)}>"


def _plural(arguments: Arguments) -> str:
    # With one form alone, that form is for every number.
    return arguments(1) if _are_same(arguments(0), "1") or len(arguments) <= 2 else arguments(2)


def _format_number(arguments: Arguments) -> str:
    if arguments(1).lower() in ("r", "nosep"):
        return arguments(0).replace(",", "")
    # The rule of the site's language groups the digits.
    return "{{formatnum:" + arguments(0) + "}}"


def _nothing(arguments: Arguments) -> str:
    return ""


def _first(arguments: Arguments) -> str:
    return arguments(0)


# By name in lower case, with its # where it has one.
FUNCTIONS: Mapping[str, Function] = {
    "#if": _if,
    "#ifeq": _if_equal,
    "#iferror": _if_error,
    "#ifexist": lambda a: a(1),
    "#ifexpr": _if_expression,
    "#expr": _expression,
    "#switch": _switch,
    "#time": _time,
    "#timel": _time,
    "#titleparts": _title_parts,
    "#tag": _tag,
    "#invoke": _nothing,
    "#rel2abs": _first,
    "#len": lambda a: str(len(a(0))),
    "#pos": _position,
    "#sub": _substring,
    "#replace": _replace,
    "lc": lambda a: a(0).lower(),
    "uc": lambda a: a(0).upper(),
    "lcfirst": lambda a: a(0)[:1].lower() + a(0)[1:],
    "ucfirst": lambda a: a(0)[:1].upper() + a(0)[1:],
    "formatnum": _format_number,
    "padleft": lambda a: _padding(a(0), a(2) or "0", a(1)) + a(0),
    "padright": lambda a: a(0) + _padding(a(0), a(2) or "0", a(1)),
    "plural": _plural,
    "grammar": lambda a: a(1),
    "gender": lambda a: a(3) or a(1),
    "urlencode": _first,
    "anchorencode": _first,
    "fullurl": _nothing,
    "localurl": _nothing,
    "canonicalurl": _nothing,
    "filepath": _nothing,
    "int": _nothing,
    "ns": _namespace_name,
    "nse": _namespace_name,
    "pagename": _first,
    "fullpagename": _first,
    "pagenamee": _first,
    "fullpagenamee": _first,
    "namespace": _nothing,
    "basepagename": lambda a: _base_page(a(0)),
    "subpagename": lambda a: _subpage(a(0)),
    "defaultsort": _nothing,
    "displaytitle": _nothing,
    "#language": _first,
    "#special": _nothing,
    "#statements": _nothing,
    "#property": _nothing,
    "#coordinates": _nothing,
    "#related": _nothing,
    "pagesincategory": lambda a: "0",
    "pagesize": lambda a: "0",
    "protectionlevel": _nothing,
}
