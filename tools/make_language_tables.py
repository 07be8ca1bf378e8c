"""Makes the file of language_tables.py, data/cldr/tables.zip, from the CLDR data in the package Babel.

`python -m tools.make_language_tables TARGET.zip`, with Babel installed; it is not a dependency of
the package.
"""

import functools
import importlib
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from babel import Locale, localedata
from babel.core import get_cldr_version, get_global

from maskmill.extraction.language_tables import INTERNATIONAL, KEYS, LANGUAGES

_FEWEST_NAMES = 25  # of languages: a language for which CLDR has fewer is hardly translated
_MONTHS = 12
_UNTRANSLATED_MONTH = "M01"
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)

_DATA = Path(__file__).parents[1] / "maskmill/extraction/data"
_CHOICES = tomllib.loads((_DATA / "cldr" / "choices.toml").read_text(encoding="utf-8"))
_LANGUAGES = _CHOICES["languages"]
_COUNTRIES = _CHOICES["countries"]
_DATES = _CHOICES["dates"]


@functools.cache
def _units() -> list[tuple[str, str, str, str]]:
    """Return (dividend, divisor, codes, symbol) for each unit; dividend and divisor are CLDR's names, or empty."""
    units = []
    for line in _CHOICES["units"]["symbols"].splitlines():
        name, codes, symbol = line.split(":", 2)
        dividend, _, divisor = name.partition("/")
        units.append((dividend.strip(), divisor.strip(), codes, symbol.strip()))
    for line in _CHOICES["units"]["counted"].splitlines():
        codes, symbol = line.split(" : ")
        for prefix, power in _CHOICES["units"]["powers"].items():
            units.append(("", "", " ".join(prefix + code for code in codes.split()), f"{power} {symbol}"))
    return units


def _load(code: str) -> tuple[Locale, Mapping[str, Any]]:
    """Babel's locale, and all data of it."""
    importlib.reload(localedata)  # Babel mixes locales up once it has loaded several
    return Locale.parse(code), localedata.LocaleDataDict(dict[Any, Any](localedata.load(code)))


def _pattern(text: str) -> str:
    """Return a text as rule files write it: their own characters escaped, no-break spaces as the Wikipedias have
    spaces.
    """
    return re.sub(r"([\\\[\]{}])", r"\\\1", text.replace("\u00a0", " ").replace("\u202f", " "))


def _date_form(cldr: str) -> str:
    """Return a form of rule files for a date pattern of CLDR; its arguments are the year, the month and the day."""
    form = ""
    for quoted, field, other in re.findall(r"'([^']*)'|([a-zA-Z]+)|([^'a-zA-Z]+)", cldr):
        form += _DATES["fields"][field] if field else _pattern(quoted or other)
    return " ".join(form.split())


def _symbol(data: Any, unit: str, language: str) -> str:
    """Return the short symbol of a unit; empty if CLDR has none that follows the number."""
    forms = data["unit_patterns"].get(unit, {}).get("short", {})
    form = forms.get("many" if language in _LANGUAGES["with_many"] and "many" in forms else "other", "")
    # A symbol before the number has no place in {{convert}}'s order, and primes are not words.
    if str(form).endswith(("′", "″")):
        return ""
    return str(form).replace("{0}", "").strip("\u00a0\u202f \u200f\u200e") if str(form).startswith("{0}") else ""


def _unit_lines(data: Any, language: str) -> list[str]:
    """Return the symbols of units, one a line; an empty line if it is the international one."""
    lines = []
    for dividend, divisor, _, international in _units():
        symbols = [_symbol(data, unit, language) for unit in (dividend, divisor) if unit]
        text = "/".join(symbols) if dividend else "/" + "".join(symbols)
        lines.append(_pattern(text) if symbols and all(symbols) and text != international else "")
    return lines


def _month_lines(locale: Locale) -> dict[str, list[str]]:
    """Return lines of the tables of months, whose keys are numbers and the language's own names."""
    format_wide = locale.months["format"]["wide"]
    alone = locale.months["stand-alone"]["wide"]
    lines: dict[str, list[str]] = {"month": [], "month_genitive": []}
    for number in range(1, _MONTHS + 1):
        names = {alone[number]: None, format_wide[number]: None, locale.months["format"]["abbreviated"][number]: None}
        own = "".join(f"|{name}" for name in names if not re.search(r"[|=\[\]{}]|^\d+$", name))
        for table, months in (("month", alone), ("month_genitive", format_wide)):
            lines[table].append(f"{_pattern(months[number])}{own}")
    return lines


def _language_name(name: str, language: str) -> str:
    if not name:
        return ""
    if language in _LANGUAGES["lower_case_names"]:
        name = name[0].lower() + name[1:]
    return str(_LANGUAGES["name_prefixes"].get(language, "")) + name


def _member(locale: Locale, data: Mapping[str, Any], language: str) -> str:
    """Return the text of a language's member."""
    tables = _month_lines(locale)
    if language != "en":  # whose rules have tables of their own, and units written out
        tables |= _name_lines(locale, data, language)
    text = ""
    for table, lines in tables.items():
        text += "\n".join([f"[table {table}]", *lines, ""])
    date = _DATES["date"].get(language, str(locale.date_formats["long"].pattern))
    month = _DATES["month_of_year"].get(language, str(data["datetime_skeletons"].get("yMMMM", "LLLL y")))
    forms = [f"date = {_date_form(date)}", f"month_of_year = {_date_form(month)}"]
    if language in _LANGUAGES["unspaced"]:
        forms.append("quantity = {$1:number}{$2@unit}")
    return text + "\n".join(["[forms]", *forms, ""])


def _name_lines(locale: Locale, data: Mapping[str, Any], language: str) -> dict[str, list[str]]:
    """Return lines of the tables of languages, units and countries."""
    names = [locale.languages.get(code, "") for code in _language_codes()]
    countries = [locale.territories.get(code, "") for code in _country_codes()]
    if language in _LANGUAGES["with_english_names"]:
        english = {*_load("en")[0].languages.values(), *_load("en")[0].territories.values()}
        names, countries = (["" if name in english else name for name in texts] for texts in (names, countries))
    return {
        "language": [_pattern(_language_name(name, language)) for name in names],
        "unit": _unit_lines(data, language),
        "country": [_pattern(re.sub(r"\s*[(（].*?[)）]", "", name)) for name in countries],
    }


@functools.cache
def _language_codes() -> list[str]:
    """Return the codes that templates for languages take: those of Wikipedias, and more that CLDR knows."""
    english = _load("en")[0].languages
    return [code for code in _LANGUAGES["named"].split() if code in english]


def _wikipedias() -> list[str]:
    return list(tomllib.loads((_DATA / "languages.toml").read_text(encoding="utf-8"))["interlanguage"])


def _keys() -> str:
    """Return the member of keys: tables whose lines are the keys of a row."""
    english, _ = _load("en")
    text = "[table month]\n"
    for number in range(1, _MONTHS + 1):
        names = [english.months["format"][width][number] for width in ("wide", "abbreviated")]
        text += "|".join(dict.fromkeys([str(number), f"{number:02}", *(name.lower() for name in names)])) + "\n"
    text += "[table language]\n"
    for code in _language_codes():
        text += "|".join([code, *_LANGUAGES["aliases"].get(code, "").split()]) + "\n"
    text += "[table unit]\n"
    for _, _, codes, _ in _units():
        text += "|".join(code.replace("_", " ") for code in codes.split()) + "\n"
    return text + _country_keys(english.territories)


@functools.cache
def _country_codes() -> list[str]:
    """Return the codes of ISO 3166 whose countries CLDR names."""
    english = _load("en")[0].territories
    codes = map(str, english)
    return sorted(code for code in codes if re.fullmatch("[A-Z]{2}", code) and code not in _COUNTRIES["left_out"])


def _country_keys(english: Mapping[str, str]) -> str:
    """Return the keys of countries: codes of three letters for `country`, of two and English names for `territory`."""
    three: dict[str, list[str]] = {}
    for alias, codes in get_global("territory_aliases").items():
        if re.fullmatch("[A-Z]{3}", alias) and len(codes) == 1 and alias not in _COUNTRIES["former"]:
            three.setdefault(codes[0], []).append(alias)
    country = territory = ""
    for code in _country_codes():
        more = _COUNTRIES["more_codes"].get(code, "").split()
        longs = dict.fromkeys([*sorted(three.get(code, [])), *(name for name in more if len(name) == len("ISO"))])
        country += "|".join(longs) + "\n"
        shorts = [code, *(name for name in more if len(name) < len("ISO")), english[code]]
        territory += "|".join(dict.fromkeys(shorts)) + "\n"
    return f"[table country]\n{country}[table territory]\n{territory}"


def _international() -> str:
    """Return the member for every language but English: the symbols of units."""
    text = "[table unit]\n"
    for *_, symbol in _units():
        text += _pattern(symbol) + "\n"
    return text


def _languages() -> Iterable[tuple[str, Locale, Mapping[str, Any]]]:
    """Yield the Wikipedias' languages for which CLDR has enough, with what `_load` gives."""
    for code in sorted({*_wikipedias(), *_CHOICES["locales"]} - {*_LANGUAGES["left_out"]}):
        name = _CHOICES["locales"].get(code, code)
        if "-" in code or not localedata.exists(name):
            continue
        loaded, data = _load(name)
        months = loaded.months["format"]["wide"]
        if len(loaded.languages) >= _FEWEST_NAMES and months[1] != _UNTRANSLATED_MONTH:
            yield code, loaded, data


def main(target: str) -> None:
    """Write the file."""
    members = {KEYS: _keys(), INTERNATIONAL: _international()}
    members[LANGUAGES] = ""
    for code, locale, data in _languages():
        members[code] = _member(locale, data, code)
        symbols = data["number_symbols"]["latn"]
        members[LANGUAGES] += f"{code}\t{symbols['group']}\t{symbols['decimal']}\n".replace("\u202f", "\u00a0")
    with zipfile.ZipFile(target, "w") as archive:
        archive.comment = f"Unicode CLDR {get_cldr_version()}".encode()
        for name, text in members.items():
            info = zipfile.ZipInfo(name, _ZIP_DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text, compresslevel=9)


if __name__ == "__main__":
    main(sys.argv[1])
