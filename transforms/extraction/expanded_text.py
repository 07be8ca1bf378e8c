"""What of a call's expansion is text: the rest of it is a table, a box, an error, a category."""

import re
from collections.abc import Iterable

from transforms.inputs.site import Site

_FILE, _CATEGORY = 6, 14

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_STYLE = re.compile(r"<templatestyles\b[^<>]*(?:/>|>\s*</templatestyles\s*>)", re.IGNORECASE)
_ERROR = re.compile(r"""class\s*=\s*["']?[^"'<>=]*\b(?:scribunto-)?error\b""", re.IGNORECASE)
_MARKUP = re.compile(r"<[^<>]*>|[\[\]|'\s]")
# What begins a block of its own.
_BLOCK = re.compile(
    r"<(?:div|table|tr|td|th|ul|ol|li|dl|dt|dd|h[1-6]|hr|p|pre|gallery|center|blockquote|section|figure)\b"
    r"|\{\||(?:\A|\n)[*#:;=]|\n[ \t]*\n",
    re.IGNORECASE,
)


class TextFilter:
    """Tells text from other expansions; the names of a site's namespaces decide what a link to a category is."""

    def __init__(self, site: Site) -> None:
        names = [*site.namespaces.get(_FILE, ()), *site.namespaces.get(_CATEGORY, ()), "File", "Image", "Category"]
        self._unseen = re.compile(rf"\[\[\s*(?:{_alternatives(names)})\s*:[^\[\]]*\]\]", re.IGNORECASE)

    def text_of(self, expanded: str) -> str:
        """The wikitext on one line that shows as text; empty if there is none."""
        text = self._unseen.sub("", _STYLE.sub("", _COMMENT.sub("", expanded))).strip("\n")
        if not _MARKUP.sub("", text) or _ERROR.search(text) or _BLOCK.search(text):
            return ""
        return text.replace("\n", " ")


def _alternatives(names: Iterable[str]) -> str:
    return "|".join(re.escape(name).replace(r"\ ", "[ _]") for name in sorted(set(names)))
