"""Names of languages, months, units and countries, and how numbers and dates are written, by language.

They come from the Unicode CLDR (data/cldr/README.md) and stand in one file, data/cldr/tables.zip: a member for each
language, under the code of its Wikipedia, and one for what is the same in all languages. Only the members of the
language that is asked for are read. They become rule files (template_rules.py) with these tables:

    table           its keys
    month           1 to 12, names and abbreviations in English and in the language: the name as it stands alone
    month_genitive  the same keys: the name as it stands beside a day
    language        codes of languages
    unit            codes of {{convert}}: the symbol
    country         codes of three letters: ISO 3166, and the Olympic ones
    territory       codes of two letters, and English names of countries

A member's tables hold the texts alone, one a line (a month's with more keys after it); the member `keys` has the keys
of each line. The forms `date` and `month_of_year` say how a date is written whose year, month and day are the arguments
1, 2 and 3.
"""

import functools
import zipfile
from importlib import resources

# Members that are not languages.
KEYS = "keys"
INTERNATIONAL = "international"
LANGUAGES = "languages"  # lines of a language's code and its separators of numbers, with tabs between

_FORMS = "[forms]"
_TABLES = tuple(f"[table {name}]" for name in ("month", "month_genitive", "language", "unit", "country", "territory"))
# The headings over the keys and over the texts of a table, if they are not its own.
_KEYS_OF = {"[table month_genitive]": "[table month]"}
_TEXTS_OF = {"[table territory]": "[table country]"}

_NAME = "cldr"  # of the texts, for messages
_ENGLISH = "en"  # writes units out, in its own rules

# Wikipedias whose language, or whose variety of a language, CLDR has under the code of another Wikipedia.
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
    """Return the texts of members of the file."""
    path = resources.files("maskmill.extraction") / "data" / "cldr" / "tables.zip"
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        return [archive.read(name).decode() for name in names]


@functools.cache
def number_separators() -> dict[str, tuple[str, str]]:
    """Return what stands between groups of digits and before the fraction, by the codes of the languages that CLDR
    has.
    """
    (text,) = _read(LANGUAGES)
    rows = (line.split("\t") for line in text.splitlines())
    return {code: (group, decimal) for code, group, decimal in rows}


def separators_of(language: str) -> tuple[str, str]:
    """Return what stands between groups of digits and before the fraction in a language; English's if it is not
    known.
    """
    return number_separators().get(find_code(language) or "", (",", "."))


def group_digits(digits: str, group: str) -> str:
    """Return digits with what stands between groups of three of them."""
    head = len(digits) % 3
    groups = [digits[start : start + 3] for start in range(head, len(digits), 3)]
    return group.join([digits[:head], *groups] if head else groups)


def find_code(language: str) -> str | None:
    """Return the code under which the file has a language; None if it does not."""
    for code in (language, _SAME_LANGUAGE.get(language), language.split("-")[0]):
        if code in number_separators():
            return code
    return None


def _sections(text: str) -> dict[str, list[str]]:
    """Return the lines of each section of a member, by its heading."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []  # those before the first heading are no section's
    for line in text.splitlines():
        if line.startswith("["):
            lines = sections.setdefault(line, [])
        else:
            lines.append(line)
    return sections


def _rule_file(member: str, keys: dict[str, list[str]]) -> str:
    """Return the rule file that a member is, with the keys that the lines of its tables belong to."""
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
    """Rule files for the code of a language, as (name, text), least specific first."""
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
    if language == _ENGLISH:  # whose names of languages are in its rules
        path = resources.files("maskmill.extraction") / "data" / "templates" / f"{_ENGLISH}.rules"
        texts.append(path.read_text(encoding="utf-8"))
    for text in texts:
        for line in _sections(text).get(f"[table {name}]", ()):
            keys, _, value = line.partition(" = ")
            found.update(dict.fromkeys(keys.split("|"), value))
    return found


def language_names(language: str) -> dict[str, str]:
    """Return names of languages, as a language writes them, by their codes."""
    return _table(find_code(language) or "", "language")


def month_names(language: str, table: str) -> dict[int, str]:
    """Return the names of the months by their numbers; table: `month`, or `month_genitive` for those beside a day."""
    texts = _table(find_code(language) or "", table)
    return {number: texts[str(number)] for number in range(1, 13) if str(number) in texts}
