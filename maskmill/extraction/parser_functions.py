"""MediaWiki's parser functions (`{{#if:…}}`, `{{lc:…}}`) and variables (`{{PAGENAME}}`), for the template expander.

Sources: https://www.mediawiki.org/wiki/Help:Magic_words,
https://www.mediawiki.org/wiki/Help:Extension:ParserFunctions. A function that needs facts beyond the dump (other pages,
the user, addresses) gives nothing, or the result for most pages of an encyclopedia.
"""

import calendar
import datetime
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from maskmill.extraction import language_tables
from maskmill.extraction.expressions import ExpressionError, evaluate, format_number
from maskmill.extraction.preprocessor import Node, Separator

if TYPE_CHECKING:
    from maskmill.extraction.template_expansion import PageExpansion

_ERROR = '<strong class="error"></strong>'
_ERROR_MARK = 'class="error"'  # #iferror recognizes errors by it
_MOST_PADDING = 500  # characters up to which padleft and padright fill
_DAY_SECONDS = 24 * 60 * 60
_EPOCH = datetime.date(1970, 1, 1)


class Arguments:
    """A parser function's arguments, which are expanded on access. Argument 0 follows the colon.

    page: that calls the function. frame: of the template call that contains it. first: argument 0, expanded. parts: the
    nodes of the others.
    """

    def __init__(self, page: "PageExpansion", frame: Any, first: str, parts: list[list[Node]]) -> None:
        self.page = page
        self._frame = frame
        self._first = first
        self._parts = parts

    def __len__(self) -> int:
        """Return the number of arguments, argument 0 included."""
        return 1 + len(self._parts)

    def __call__(self, number: int) -> str:
        """Return an argument, trimmed; empty if it is missing."""
        if number == 0:
            return self._first
        return self.page.expand_nodes(self._parts[number - 1], self._frame).strip() if number < len(self) else ""

    def key(self, number: int) -> str | None:
        """Return the text before the equals sign of an argument from 1 on, trimmed; None if it has none."""
        part = self._parts[number - 1]
        if Separator.EQUALS not in part:
            return None
        return self.page.expand_nodes(part[: part.index(Separator.EQUALS)], self._frame).strip()

    def value(self, number: int) -> str:
        """Return the text after the equals sign of an argument from 1 on, or all of it, trimmed."""
        part = self._parts[number - 1]
        start = part.index(Separator.EQUALS) + 1 if Separator.EQUALS in part else 0
        return self.page.expand_nodes(part[start:], self._frame).strip()


Function = Callable[[Arguments], str]


def clock_variables(date: datetime.date) -> dict[str, str]:
    """Return the variables of the clock: midnight of the dump's date."""
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
        **{f"{place}{name}": value for place in ("CURRENT", "LOCAL") for name, value in clock.items()},
        "CURRENTTIMESTAMP": f"{date:%Y%m%d}000000",
    }


# The variables of a page that do not depend on it.
SAME_EVERYWHERE = frozenset(
    ("!", "=", "NAMESPACE", "NAMESPACEE", "ARTICLESPACE", "SUBJECTSPACE", "NAMESPACENUMBER", "SITENAME")
)


def page_variables(title: str) -> dict[str, str]:
    """Return the variables of a page of the main namespace, and those that are the same on every page."""
    return {
        "!": "|",
        "=": "=",
        **dict.fromkeys(("PAGENAME", "FULLPAGENAME", "ARTICLEPAGENAME", "SUBJECTPAGENAME"), title),
        **dict.fromkeys(("PAGENAMEE", "FULLPAGENAMEE"), title.replace(" ", "_")),
        "BASEPAGENAME": _base_page(title),
        "SUBPAGENAME": _subpage(title),
        "ROOTPAGENAME": title.split("/", 1)[0],
        **dict.fromkeys(("NAMESPACE", "NAMESPACEE", "ARTICLESPACE", "SUBJECTSPACE"), ""),
        "NAMESPACENUMBER": "0",
        "SITENAME": "Wikipedia",
    }


# Conditions


def _are_same(a: str, b: str) -> bool:
    """Return whether two texts are equal, or are equal as numbers."""
    if a == b:
        return True
    try:
        return Decimal(a) == Decimal(b)
    except InvalidOperation:
        return False


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
    value = arguments(0)
    default: int | None = None
    falls_through = False  # a case without a value shares that of the next case with one
    for number in range(1, len(arguments)):
        arguments.page.work()
        key = arguments.key(number)
        if key is not None:
            if falls_through or _are_same(key, value):
                return arguments.value(number)
            if key == "#default":
                default = number
        else:
            case = arguments.value(number)
            if number == len(arguments) - 1:
                return case  # a last case without an equals sign is the default
            if _are_same(case, value):
                falls_through = True
    return arguments.value(default) if default is not None else ""


# Dates

_FORMAT_CODES = re.compile(r'"[^"]*"|\\.|x[a-z]|.', re.DOTALL)
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?:[T ].*)?",
        r"(?P<y>\d{4})(?P<m>\d\d)(?P<d>\d\d)(?:\d{6})?",
        r"(?P<y>\d{4})-(?P<m>\d{1,2})",
        r"(?P<d>\d{1,2})\.? +(?P<n>[a-z]{3,9})\.?,? +(?P<y>\d{4})",
        r"(?P<n>[a-z]{3,9})\.? +(?P<d>\d{1,2}), *(?P<y>\d{4})",
        r"(?P<n>[a-z]{3,9})\.? +(?P<y>\d{4})",
        r"(?P<d>\d{1,2}) +(?P<n>[a-z]{3,9})",
    )
)
_NOW = ("", "now", "today")
_NAMES = frozenset("lDM")  # codes whose words CLDR's tables lack


def _date_codes(date: datetime.date, language: str) -> dict[str, str]:
    """Return the text of each code in #time's formats; the time of day is midnight."""
    months, genitives = (language_tables.month_names(language, table) for table in ("month", "month_genitive"))
    return {
        "Y": str(date.year),
        "y": f"{date.year % 100:02}",
        "n": str(date.month),
        "m": f"{date.month:02}",
        "j": str(date.day),
        "d": f"{date.day:02}",
        "F": months.get(date.month) or date.strftime("%B"),
        "xg": genitives.get(date.month) or date.strftime("%B"),
        "M": date.strftime("%b"),
        "l": date.strftime("%A"),
        "D": date.strftime("%a"),
        "w": str(date.isoweekday() % 7),
        "N": str(date.isoweekday()),
        "z": str(date.timetuple().tm_yday - 1),
        "t": str(calendar.monthrange(date.year, date.month)[1]),
        "L": str(int(calendar.isleap(date.year))),
        "W": f"{date.isocalendar()[1]:02}",
        "U": str((date - _EPOCH).days * _DAY_SECONDS),
        **dict.fromkeys("Hhis", "00"),
        **dict.fromkeys("Gg", "0"),
        **dict.fromkeys(("xn", "xN", "xr", "xh"), ""),
    }


def _day(page: "PageExpansion", text: str) -> datetime.date | None:
    """Return the day that a text stands for; None if it is not recognized."""
    text = text.strip()
    if text.lower() in _NOW:
        return page.use_date()
    if text.startswith("@") and text[1:].isdigit():
        return _EPOCH + datetime.timedelta(days=int(text[1:]) // _DAY_SECONDS)
    for pattern in _DATES:
        found = pattern.fullmatch(text)
        if found is None:
            continue
        parts = found.groupdict()
        month = int(parts["m"]) if parts.get("m") else _ENGLISH_MONTHS.get(parts.get("n", "")[:3].lower(), 0)
        year = int(parts["y"]) if parts.get("y") else page.use_date().year
        return datetime.date(year, month, int(parts.get("d") or 1))
    return None


_ENGLISH_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}


def format_time(page: "PageExpansion", form: str, text: str) -> str:
    """Return a date in #time's format; "" if the date, or a word that the format needs, is unknown."""
    try:
        date = _day(page, text)
    except (ValueError, OverflowError):
        date = None
    language = page.expander.site.language
    parts = _FORMAT_CODES.findall(form)
    if date is None or (language != "en" and not _NAMES.isdisjoint(parts)):
        return ""
    codes = _date_codes(date, language)
    return "".join(
        part[1:] if part[0] == "\\" else part.strip('"') if part[0] == '"' else codes.get(part, part) for part in parts
    )


def _time(arguments: Arguments) -> str:
    return format_time(arguments.page, arguments(0), arguments(1))


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


# Text


def _integer(text: str, default: int) -> int:
    try:
        return int(text)
    except ValueError:
        return default


def _padding(text: str, filling: str, width: str) -> str:
    """Return the text that padleft and padright add."""
    missing = min(_integer(width, 0), _MOST_PADDING) - len(text)
    return (filling * (missing // len(filling) + 1))[:missing] if missing > 0 else ""


def _substring(arguments: Arguments) -> str:
    start, length = _integer(arguments(1), 0), _integer(arguments(2), 0)
    text = arguments(0)[start:] if start >= 0 or -start <= len(arguments(0)) else arguments(0)
    return text[:length] if length else text


def _replace(arguments: Arguments) -> str:
    text, old, new = arguments(0), arguments(1), arguments(2)
    if not old:
        return text
    # Counted before the replacement: every letter of a long text could become a long text.
    arguments.page.work(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _grouped(text: str, language: str) -> str:
    group, decimal = language_tables.separators_of(language)
    number = re.fullmatch(r"([-+−]?)(\d+)(?:\.(\d+))?", text)
    if number is None:
        return text
    return number[1] + language_tables.group_digits(number[2], group) + (decimal + number[3] if number[3] else "")


def _format_number(arguments: Arguments) -> str:
    if arguments(1).lower() in ("r", "nosep"):
        return arguments(0).replace(",", "")
    if arguments.page.is_in_module:
        return _grouped(arguments(0), arguments.page.expander.site.language)
    # The rule of the site's language groups the digits.
    return "{{formatnum:" + arguments(0) + "}}"


def _define(arguments: Arguments) -> str:
    """Set a variable of the extension Variables, which lives as long as the page's call; return its value."""
    value = arguments(1)
    arguments.page.defined[arguments(0)] = value
    return value


# Functions that give nothing, and those that give their first argument.
_NOTHING = (
    "#invoke fullurl localurl canonicalurl filepath int namespace defaultsort displaytitle #special #statements "
    "#property #coordinates #related protectionlevel"
)
_FIRST = "#rel2abs urlencode anchorencode pagename fullpagename pagenamee fullpagenamee"

# By name in lower case, with its # if it has one.
FUNCTIONS: Mapping[str, Function] = {
    "#if": lambda a: a(1) if a(0) else a(2),
    "#ifeq": lambda a: a(2) if _are_same(a(0), a(1)) else a(3),
    "#iferror": lambda a: a(1) if _ERROR_MARK in a(0) else (a(2) or a(0)),
    "#ifexist": lambda a: a(1) if a.page.expander.definitions.exists(a(0)) else a(2),
    "#ifexpr": _if_expression,
    "#expr": _expression,
    "#switch": _switch,
    "#time": _time,
    "#timel": _time,
    "#titleparts": _title_parts,
    "#language": lambda a: language_tables.language_names(a(1) or a(0)).get(a(0).lower(), a(0)),
    "#vardefine": lambda a: _define(a)[:0],
    "#vardefineecho": _define,
    "#var": lambda a: a.page.defined.get(a(0)) or a(1),
    "#tag": lambda a: f"<{a(0)}>{a(1)}</{a(0)}>",
    "#len": lambda a: str(len(a(0))),
    "#pos": lambda a: str(a(0).find(a(1))) if a(1) in a(0) else "",
    "#sub": _substring,
    "#replace": _replace,
    "lc": lambda a: a(0).lower(),
    "uc": lambda a: a(0).upper(),
    "lcfirst": lambda a: a(0)[:1].lower() + a(0)[1:],
    "ucfirst": lambda a: a(0)[:1].upper() + a(0)[1:],
    "formatnum": _format_number,
    "padleft": lambda a: _padding(a(0), a(2) or "0", a(1)) + a(0),
    "padright": lambda a: a(0) + _padding(a(0), a(2) or "0", a(1)),
    # If there is only one form, it is for every number.
    "plural": lambda a: a(1) if _are_same(a(0), "1") or len(a) <= 2 else a(2),
    "grammar": lambda a: a(1),
    "gender": lambda a: a(3) or a(1),
    **dict.fromkeys(("ns", "nse"), lambda a: "" if a(0) in ("", "0") else a(0)),
    "basepagename": lambda a: _base_page(a(0)),
    "subpagename": lambda a: _subpage(a(0)),
    "pagesincategory": lambda a: "0",
    "pagesize": lambda a: "0",
    **dict.fromkeys(_FIRST.split(), lambda a: a(0)),
    **dict.fromkeys(_NOTHING.split(), lambda a: ""),
}
