"""What a dump says of its wiki: language, name, namespaces."""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# https://www.mediawiki.org/wiki/Help:Namespaces: the names every wiki understands.
CANONICAL_NAMESPACES = {
    -2: "Media",
    -1: "Special",
    1: "Talk",
    2: "User",
    3: "User talk",
    4: "Project",
    5: "Project talk",
    6: "File",
    7: "File talk",
    8: "MediaWiki",
    9: "MediaWiki talk",
    10: "Template",
    11: "Template talk",
    12: "Help",
    13: "Help talk",
    14: "Category",
    15: "Category talk",
}


@dataclass(frozen=True, kw_only=True)
class Site:
    """What a dump's `<siteinfo>` says of its wiki.

    language: the code its content is in (`xml:lang`, or the host's first label). namespaces: for each number the
    local name and, where there is one, the canonical English name. case: `first-letter` or `case-sensitive`.
    """

    language: str = "en"
    name: str = "Wikipedia"
    namespaces: Mapping[int, tuple[str, ...]] = field(
        default_factory=lambda: {key: (name,) for key, name in CANONICAL_NAMESPACES.items()}
    )
    case: Literal["first-letter", "case-sensitive"] = "first-letter"

    @classmethod
    def parse(cls, header: bytes) -> "Site":
        """Reads the XML before a dump's first `<page>` (export schemas 0.3 to 0.11); the default if it is empty."""
        text = header.decode("utf-8", "replace")
        found = re.search(r"<base>\s*https?://([a-z][a-z0-9-]*)\.(?:m\.)?wik", text)
        base = found[1] if found else ""
        found = re.search(r"<mediawiki\b[^>]*\bxml:lang=[\"']([A-Za-z0-9-]+)[\"']", text)
        language = found[1].lower() if found else ""
        if not language or (language == "en" and base not in ("", "en", "www", "simple", "species", "commons", "meta")):
            language = base or "en"
        namespaces: dict[int, tuple[str, ...]] = {key: (name,) for key, name in CANONICAL_NAMESPACES.items()}
        pattern = r"<namespace\b[^>]*?\bkey=[\"'](-?\d+)[\"'][^>]*?(?:/>|>([^<]*)</namespace>)"
        for key, name in re.findall(pattern, text):
            local = html.unescape(name).strip()
            if local:
                canonical = namespaces.get(int(key), ())
                namespaces[int(key)] = (local, *(other for other in canonical if other != local))
        sitename = re.search(r"<sitename>([^<]*)</sitename>", text)
        case = re.search(r"<case>\s*([a-z-]+)\s*</case>", text)
        return cls(
            language=language,
            name=html.unescape(sitename[1]).strip() if sitename else "Wikipedia",
            namespaces=namespaces,
            case="case-sensitive" if case and case[1] == "case-sensitive" else "first-letter",
        )
