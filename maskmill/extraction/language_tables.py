"""Names of languages, months, units and countries, and formats of numbers and dates, by language.

They come from the Unicode CLDR (data/cldr/README.md) and are in one file, data/cldr/tables.zip: a member for each
language, under the code of its Wikipedia, and one for all languages. Only the members of the requested language are
read. They become rule files (template_rules.py) with these tables:

    table           its keys
    month           1 to 12, names and abbreviations in English and in the language: the name on its own
    month_genitive  the same keys: the name beside a day
    language        codes of languages
    unit            codes of {{convert}}: the symbol
    country         codes of three letters: ISO 3166, and the Olympic ones
    territory       codes of two letters, and English names of countries

A member's tables hold only texts, one a line (a month's followed by more keys); the member `keys` has the keys of each
line. The forms `date` and `month_of_year` are the formats of a date with year, month and day as arguments 1, 2 and 3.
"""

import functools
import zipfile
from importlib import resources

# Members that are not languages.
KEYS = "keys"
INTERNATIONAL = "international"
LANGUAGES = "languages"  # lines of a language's code and its separators of numbers, separated by tabs

_FORMS = "[forms]"
_TABLES = tuple(f"[table {name}]" for name in ("month", "month_genitive", "language", "unit", "country", "territory"))
# The headings of a table's keys and texts, if it shares them with another table.
_KEYS_OF = {"[table month_genitive]": "[table month]"}
_TEXTS_OF = {"[table territory]": "[table country]"}

_NAME = "cldr"  # of the texts, for messages
_ENGLISH = "en"  # its own rules write units out

# Wikipedias in a language, or a variety of one, that CLDR has under the code of another Wikipedia.
_SAME_LANGUAGE = {
    "be-tarask": "be",
    "arz": "ar",
    "ary": "ar",
    "hyw": "hy",
    "gan": "zh",
    "wuu": "zh",
    "lzh": "zh",
    "bh": "bho",
}


def _read(*names: str) -> list[str]:
    """Return the texts of members of the zip file."""
    path = resources.files("maskmill.extraction") / "data" / "cldr" / "tables.zip"
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        return [archive.read(name).decode() for name in names]


@functools.cache
def number_separators() -> dict[str, tuple[str, str]]:
    """Return the separators of digit groups and of the fraction, by the codes of CLDR's languages."""
    (text,) = _read(LANGUAGES)
    rows = (line.split("\t") for line in text.splitlines())
    return {code: (group, decimal) for code, group, decimal in rows}


def separators_of(language: str) -> tuple[str, str]:
    """Return a language's separators of digit groups and of the fraction; English's if it is unknown."""
    return number_separators().get(find_code(language) or "", (",", "."))


def group_digits(digits: str, group: str) -> str:
    """Return digits with `group` between groups of three."""
    head = len(digits) % 3
    groups = [digits[start : start + 3] for start in range(head, len(digits), 3)]
    return group.join([digits[:head], *groups] if head else groups)


def find_code(language: str) -> str | None:
    """Return the code of a language in the file; None if it is missing."""
    for code in (language, _SAME_LANGUAGE.get(language), language.split("-")[0]):
        if code in number_separators():
            return code
    return None


def _sections(text: str) -> dict[str, list[str]]:
    """Return the lines of each section of a member, by its heading."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []  # lines before the first heading belong to no section
    for line in text.splitlines():
        if line.startswith("["):
            lines = sections.setdefault(line, [])
        else:
            lines.append(line)
    return sections


def _rule_file(member: str, keys: dict[str, list[str]]) -> str:
    """Return a member as a rule file, with the keys of the lines of its tables."""
    sections = _sections(member)
    lines: list[str] = []
    for heading in _TABLES:
        texts = sections.get(_TEXTS_OF.get(heading, heading))
        if texts is None:
            continue
        lines.append(heading)
        for names, value in zip(keys[_KEYS_OF.get(heading, heading)], texts, strict=True):
            text, *own = value.split("|")
            if text and (names or own):
                lines.append(f"{'|'.join([names, *own])} = {text}")
    return "\n".join([*lines, _FORMS, *sections.get(_FORMS, [])])


@functools.cache
def language_tables(language: str) -> tuple[tuple[str, str], ...]:
    """Return rule files for the code of a language, as (name, text), least specific first."""
    code = find_code(language)
    names = [name for name in (INTERNATIONAL, code) if name is not None and (name, code) != (INTERNATIONAL, _ENGLISH)]
    keys, *texts = _read(KEYS, *names)
    sections = _sections(keys)
    return tuple((f"{_NAME}/{name}", _rule_file(text, sections)) for name, text in zip(names, texts, strict=True))


@functools.cache
def _table(language: str, name: str) -> dict[str, str]:
    """Return the texts of a table of a language by their keys."""
    found: dict[str, str] = {}
    texts = [text for _, text in language_tables(language)]
    if language == _ENGLISH:  # its rules have its names of languages
        path = resources.files("maskmill.extraction") / "data" / "templates" / f"{_ENGLISH}.rules"
        texts.append(path.read_text(encoding="utf-8"))
    for text in texts:
        for line in _sections(text).get(f"[table {name}]", ()):
            keys, _, value = line.partition(" = ")
            found.update(dict.fromkeys(keys.split("|"), value))
    return found


def language_names(language: str) -> dict[str, str]:
    """Return names of languages by their codes, in a language."""
    return _table(find_code(language) or "", "language")


def month_names(language: str, table: str) -> dict[int, str]:
    """Return the names of the months by their numbers; table: `month`, or `month_genitive` for names beside a day."""
    texts = _table(find_code(language) or "", table)
    return {number: texts[str(number)] for number in range(1, 13) if str(number) in texts}
