"""What of a call's expansion is text: the rest of it is a table, a box, an error, a category."""

import re
from collections.abc import Iterable

from maskmill.inputs.site import Site

_PROJECT, _FILE, _TEMPLATE, _HELP, _CATEGORY = 4, 6, 10, 12, 14

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_STYLE = re.compile(r"<templatestyles\b[^<>]*(?:/>|>\s*</templatestyles\s*>)", re.IGNORECASE)
_ERROR = re.compile(r"""class\s*=\s*["']?[^"'<>=]*\b(?:scribunto-)?error\b""", re.IGNORECASE)
_BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
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
        own = [name for key in (_PROJECT, _TEMPLATE, _HELP) for name in site.namespaces.get(key, ())]
        marks = _alternatives([*own, "Project", "Wikipedia", "Template", "Help"])
        # What is raised and stands in square brackets, or links to a page on the wiki itself: "?", "[citation needed]".
        # Marks are short; without an end, text could take forever.
        within, around = r"(?:(?!</?sup\b).){0,300}?", r"(?:<(?!/?sup\b)[^<>]{0,300}>|['\s]){0,20}"
        self._mark = re.compile(
            rf"<sup\b[^<>]{{0,300}}>(?:{around}(?:\[(?!\[)|&#91;){within}(?:\]|&#93;){around}"
            rf"|{within}\[\[(?:[^\[\]|]{{0,30}}:)?\s*(?:{marks})\s*:{within})</sup\s*>",
            re.IGNORECASE | re.DOTALL,
        )

    def text_of(self, expanded: str) -> str | None:
        """Return the wikitext on one line that shows as text; a break if that is all there is, empty if nothing shows.

        None if something shows that is no text.
        """
        text = self._mark.sub("", _STYLE.sub("", _COMMENT.sub("", expanded)))
        text = self._unseen.sub("", text).strip("\n")
        if _ERROR.search(text) or _BLOCK.search(text):
            return None if _MARKUP.sub("", text) else ""
        if not _MARKUP.sub("", text):
            return "<br>" if _BREAK.search(text) else ""
        # The line that the call stands in goes on.
        return _BREAK.sub(" ", text).replace("\n", " ")


def _alternatives(names: Iterable[str]) -> str:
    return "|".join(re.escape(name).replace(r"\ ", "[ _]") for name in sorted(set(names)))
