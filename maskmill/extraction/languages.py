"""What is known of the languages of Wikipedia beyond what a dump's `<siteinfo>` says (data/languages.toml)."""

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
    """Return the tags of HTML and of extensions, each with what it does: `codes.TAG_*` in lower case."""
    return [(name, kind) for kind, names in _data()["tags"].items() for name in names.split()]


@dataclass(frozen=True)
class Language:
    """What is known of one language.

    code: the code under which its data and its rules stand; an alias such as `simple` is resolved.
    """

    code: str
    _own: Mapping[str, Any]
    _english: Mapping[str, Any]

    def words(self, kind: WordKind) -> tuple[str, ...]:
        """Return the language's words of a kind, then those of English, which hold on every wiki; some may occur
        twice.
        """
        return (*self._own.get(kind, ()), *self._english.get(kind, ()))

    @property
    def variants(self) -> tuple[str, ...]:
        """The codes of its variants (scripts, countries), the one to show first; empty if it has none."""
        return tuple(self._own.get("variants", ()))

    @property
    def _separators(self) -> tuple[str, str]:
        code = language_tables.find_code(self.code)
        return language_tables.number_separators()[code] if code is not None else (",", ".")

    @property
    def group_separator(self) -> str:
        """What stands between groups of three digits."""
        return str(self._own.get("group_separator", self._separators[0]))

    @property
    def decimal_separator(self) -> str:
        """What stands before the fraction of a number."""
        return str(self._own.get("decimal_separator", self._separators[1]))

    @property
    def group_from(self) -> int:
        """The number of digits from which on a number is grouped."""
        return int(self._own.get("group_from", 4))


def find_language(code: str) -> Language:
    """Return the language of a code that a dump or a site goes by.

    A code that has no data takes those of its language (`zh-hans` those of `zh`); a language that has none is known by
    English words alone.
    """
    code = _data()["aliases"].get(code, code)
    languages = _data()["language"]
    own = languages.get(code) or languages.get(code.split(_VARIANT_SEPARATOR)[0], {})
    return Language(code, own, languages[_ENGLISH])
