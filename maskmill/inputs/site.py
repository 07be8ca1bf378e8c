"""The facts in a dump's header about its wiki: language, name, namespaces, and whether it is a Wikipedia."""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

# The names that every wiki understands: https://www.mediawiki.org/wiki/Help:Namespaces.
_NAMED = ("User", "Project", "File", "MediaWiki", "Template", "Help", "Category")  # 2, 4, …; after each is its talk
CANONICAL_NAMESPACES = {-2: "Media", -1: "Special", 1: "Talk"} | {
    number: name
    for place, of_pages in enumerate(_NAMED, 1)
    for number, name in ((2 * place, of_pages), (2 * place + 1, f"{of_pages} talk"))
}
# First labels of hosts whose wikis are in English.
_ENGLISH_HOST_LABELS = ("en", "www", "simple", "species", "commons", "meta")
# What hosts and databases of Wikimedia's other projects are called.
_OTHER_PROJECT = re.compile(
    r"wiktionary|wikisource|wikivoyage|wikibooks|wikinews|wikiquote|wikiversity|wikidata|wikifunctions|wikimedia"
    r"|mediawiki|(commons|incubator|meta|species)wiki"
)
_WIKIPEDIA_DATABASE = re.compile(r"[a-z_]+wiki")


@dataclass(frozen=True, kw_only=True)
class Site:
    """The facts in a dump's `<siteinfo>` about its wiki.

    language: the code of the content's language (`xml:lang`, or the host's first label). namespaces: for each number
    the local name and, where there is one, the canonical English name. case: whether the first letter of a title is
    always a capital (`first-letter`) or not (`case-sensitive`).
    """

    language: str = "en"
    name: str = "Wikipedia"
    namespaces: Mapping[int, tuple[str, ...]] = field(default_factory=lambda: _namespaces(""))
    case: Literal["first-letter", "case-sensitive"] = "first-letter"

    @cached_property
    def namespace_numbers(self) -> dict[bytes, int]:
        """The numbers of the namespaces by their names, UTF-8."""
        return {name.encode(): number for number, names in self.namespaces.items() for name in names}

    def namespace_of(self, title: bytes) -> int:
        """Return the namespace of a page by its title's prefix."""
        prefix, colon, _ = title.partition(b":")
        return self.namespace_numbers.get(prefix, 0) if colon else 0

    @classmethod
    def parse(cls, header: bytes) -> "Site":
        """Read the XML before a dump's first `<page>` (export schemas 0.3 to 0.11); the default for b""."""
        text = header.decode("utf-8", "replace")
        sitename = re.search(r"<sitename>([^<]*)</sitename>", text)
        case = re.search(r"<case>\s*([a-z-]+)\s*</case>", text)
        return cls(
            language=_language(text),
            name=html.unescape(sitename[1]).strip() if sitename else "Wikipedia",
            namespaces=_namespaces(text),
            case="case-sensitive" if case and case[1] == "case-sensitive" else "first-letter",
        )


def other_project(header: bytes) -> str:
    """Return the project that a dump's header names, with its host; empty for a Wikipedia, and where the header names
    none.
    """
    text = header.decode("utf-8", "replace")
    host, database, name = (
        match[1].strip() if (match := re.search(pattern, text)) else ""
        for pattern in (r"<base>\s*https?://([^/<]+)", r"<dbname>([^<]*)<", r"<sitename>([^<]*)<")
    )
    if "wikipedia" in host or not host + database + name:
        return ""
    is_other = _OTHER_PROJECT.search(f"{host} {database}") is not None
    if not is_other and ("wikipedia" in name.lower() or _WIKIPEDIA_DATABASE.fullmatch(database)):
        return ""
    name = html.unescape(name) or database or host
    return f"{name} ({host})" if host not in ("", name) else name


def _language(header: str) -> str:
    """Return the language by `xml:lang`, but by the host's first label where the former only repeats MediaWiki's
    default.
    """
    base = re.search(r"<base>\s*https?://([a-z][a-z0-9-]*)\.(?:m\.)?wik", header)
    host_label = base[1] if base else ""
    attribute = re.search(r"<mediawiki\b[^>]*\bxml:lang=[\"']([A-Za-z0-9-]+)[\"']", header)
    language = attribute[1].lower() if attribute else ""
    if not language or (language == "en" and host_label not in ("", *_ENGLISH_HOST_LABELS)):
        return host_label or "en"
    return language


def _namespaces(header: str) -> dict[int, tuple[str, ...]]:
    """Return the names of each namespace: the local one first, then the canonical one."""
    namespaces: dict[int, tuple[str, ...]] = {key: (name,) for key, name in CANONICAL_NAMESPACES.items()}
    pattern = r"<namespace\b[^>]*?\bkey=[\"'](-?\d+)[\"'][^>]*?(?:/>|>([^<]*)</namespace>)"
    for key, name in re.findall(pattern, header):
        local = html.unescape(name).strip()
        if local:
            canonical = namespaces.get(int(key), ())
            namespaces[int(key)] = (local, *(other for other in canonical if other != local))
    return namespaces
