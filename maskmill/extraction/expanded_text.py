"""Keeps the text of a call's expansion, and drops tables, boxes, errors and categories."""

import re
from collections.abc import Iterable

from maskmill.inputs.site import Site

_PROJECT, _FILE, _TEMPLATE, _HELP, _CATEGORY = 4, 6, 10, 12, 14

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_STYLE = re.compile(r"<templatestyles\b[^<>]*(?:/>|>\s*</templatestyles\s*>)", re.IGNORECASE)
_ERROR = re.compile(r"""class\s*=\s*["']?[^"'<>=]*\b(?:scribunto-)?error\b""", re.IGNORECASE)
_BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
_MARKUP = re.compile(r"<[^<>]*>|[\[\]|'\s]")
# The beginnings of blocks.
_BLOCK = re.compile(
    r"<(?:div|table|tr|td|th|ul|ol|li|dl|dt|dd|h[1-6]|hr|p|pre|gallery|center|blockquote|section|figure)\b"
    r"|\{\||(?:\A|\n)[*#:;=]|\n[ \t]*\n",
    re.IGNORECASE,
)


class TextFilter:
    """Separates text from other expansions; a site's names of namespaces identify links to categories."""

    def __init__(self, site: Site) -> None:
        names = [*site.namespaces.get(_FILE, ()), *site.namespaces.get(_CATEGORY, ()), "File", "Image", "Category"]
        self._unseen = re.compile(rf"\[\[\s*(?:{_alternatives(names)})\s*:[^\[\]]*\]\]", re.IGNORECASE)
        own = [name for key in (_PROJECT, _TEMPLATE, _HELP) for name in site.namespaces.get(key, ())]
        marks = _alternatives([*own, "Project", "Wikipedia", "Template", "Help"])
        # Superscripts in square brackets, or with a link to a page about the wiki itself: "?", "[citation needed]".
        # They are
        # limited in length, because without an end tag the search could take forever.
        within, around = r"(?:(?!</?sup\b).){0,300}?", r"(?:<(?!/?sup\b)[^<>]{0,300}>|['\s]){0,20}"
        self._mark = re.compile(
            rf"<sup\b[^<>]{{0,300}}>(?:{around}(?:\[(?!\[)|&#91;){within}(?:\]|&#93;){around}"
            rf"|{within}\[\[(?:[^\[\]|]{{0,30}}:)?\s*(?:{marks})\s*:{within})</sup\s*>",
            re.IGNORECASE | re.DOTALL,
        )

    def text_of(self, expanded: str) -> str | None:
        """Return the wikitext that shows as text, on one line: a break if there is nothing else, empty if nothing
        shows.

        None if something shows that is not text.
        """
        text = self._mark.sub("", _STYLE.sub("", _COMMENT.sub("", expanded)))
        text = self._unseen.sub("", text).strip("\n")
        if _ERROR.search(text) or _BLOCK.search(text):
            return None if _MARKUP.sub("", text) else ""
        if not _MARKUP.sub("", text):
            return "<br>" if _BREAK.search(text) else ""
        # The line of the call continues.
        return _BREAK.sub(" ", text).replace("\n", " ")


def _alternatives(names: Iterable[str]) -> str:
    return "|".join(re.escape(name).replace(r"\ ", "[ _]") for name in sorted(set(names)))
