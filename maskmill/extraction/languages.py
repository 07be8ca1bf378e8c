"""Facts about the languages of Wikipedia beyond a dump's `<siteinfo>` (data/languages.toml)."""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from maskmill.extraction import language_tables

_ENGLISH = "en"
_VARIANT_SEPARATOR = "-"  # in codes such as zh-hans, whose language is zh

WordKind = Literal[
    "redirect",
    "file",
    "category",
    "disambiguation",
    "disambiguation_title",
    "appendix",
    "literature",
    "list_title",
    "list_title_end",
    "stub",
    "stub_start",
    "switch",
    "works",
]


@functools.cache
def _data() -> Mapping[str, Any]:
    path = resources.files("maskmill.extraction") / "data" / "languages.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def interlanguage_prefixes() -> tuple[str, ...]:
    """Return the prefixes of links to other languages' Wikipedias."""
    return tuple(_data()["interlanguage"])


def interwiki_prefixes() -> tuple[str, ...]:
    """Return the prefixes of links to other sites."""
    return tuple(_data()["interwiki"])


def hidden_classes() -> tuple[str, ...]:
    """Return the CSS classes of elements that are not prose."""
    return tuple(_data()["hidden_classes"])


def tags() -> list[tuple[str, str]]:
    """Return the tags of HTML and of extensions, each with its effect: `codes.TAG_*` in lower case."""
    return [(name, kind) for kind, names in _data()["tags"].items() for name in names.split()]


@dataclass(frozen=True)
class Language:
    """Facts about one language.

    code: the code of its data and rules; aliases such as `simple` are resolved.
    """

    code: str
    _own: Mapping[str, Any]
    _english: Mapping[str, Any]

    def words(self, kind: WordKind) -> tuple[str, ...]:
        """Return the language's words of a kind, then those of English, valid on every wiki; some may be repeated."""
        return (*self._own.get(kind, ()), *self._english.get(kind, ()))

    @property
    def variants(self) -> tuple[str, ...]:
        """The codes of its variants (scripts, countries), the preferred one first; empty if it has none."""
        return tuple(self._own.get("variants", ()))

    @property
    def _separators(self) -> tuple[str, str]:
        code = language_tables.find_code(self.code)
        return language_tables.number_separators()[code] if code is not None else (",", ".")

    @property
    def group_separator(self) -> str:
        """The separator of groups of three digits."""
        return str(self._own.get("group_separator", self._separators[0]))

    @property
    def decimal_separator(self) -> str:
        """The separator of a number's fraction."""
        return str(self._own.get("decimal_separator", self._separators[1]))

    @property
    def group_from(self) -> int:
        """The least number of digits of a number that is grouped."""
        return int(self._own.get("group_from", 4))


def find_language(code: str) -> Language:
    """Return the language for the code of a dump or a site.

    A code without data takes that of its language (`zh-hans` that of `zh`); a language without data has only the
    English words.
    """
    code = _data()["aliases"].get(code, code)
    languages = _data()["language"]
    own = languages.get(code) or languages.get(code.split(_VARIANT_SEPARATOR)[0], {})
    return Language(code, own, languages[_ENGLISH])
