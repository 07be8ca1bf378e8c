"""Tests of whether the texts of records are HTML, whose tags would become text."""

import re
from collections.abc import Iterable

from maskmill.errors import UnusableInputError

_NAMES = (
    "a|abbr|article|aside|b|blockquote|body|br|button|center|code|dd|div|dl|dt|em|figcaption|figure|font|footer|form|"
    "h[1-6]|head|header|hr|html|i|iframe|img|input|label|li|link|main|meta|nav|ol|option|p|pre|script|section|select|"
    "small|span|strong|style|sub|sup|table|tbody|td|th|thead|title|tr|u|ul|video"
)
_TAG = re.compile(rf"<(/?)({_NAMES})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_START = re.compile(rf"\s*(?:<!doctype html|<!--|<(?:{_NAMES})[\s/>])", re.IGNORECASE)
# A line break that ends a sentence or follows another tag; one that is spoken of stands between words.
_BREAK = re.compile(r"[.!?…:;,\"')\]>]\s*<(?:br|hr)\s*/?>", re.IGNORECASE)
_EMPTY = frozenset(("br", "hr", "img", "input", "link", "meta"))
_LOOKED_AT = 4_000  # characters of a text
_FEW = 5  # texts, in which one pair of tags may be spoken of
_MANY = 0.3  # the share of texts with tags from which on they are a column of HTML


def refuse_html(texts: Iterable[object], path: str, column: str, input_format: str) -> None:
    """Refuse a file whose first texts are HTML; what is no text among them does not count.

    column, input_format: of the texts; a user who names the format takes them as they are.

    Raises:
      UnusableInputError: many of them are.
    """
    found = [text for text in texts if isinstance(text, str) and text.strip()]
    least = 1 if len(found) >= _FEW else 2
    of_html = sum(is_html(text, least) for text in found)
    if of_html and of_html >= _MANY * len(found):
        raise UnusableInputError(
            f'{path}: the column "{column}" holds HTML (in {of_html:,} of its first {len(found):,} records), whose '
            f"tags would become text; extract its text first, or take it as it is with --input_format {input_format}."
        )


def is_html(text: str, least_pairs: int = 1) -> bool:
    """Return whether a text is marked up with HTML: it begins with a tag, has so many pairs of tags, or breaks its
    lines.
    """
    if "<" not in text:
        return False
    text = text[:_LOOKED_AT]
    open_tags: list[str] = []
    tags = pairs = 0
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        tags += 1
        if tag[1] and name in open_tags:
            del open_tags[len(open_tags) - 1 - open_tags[::-1].index(name) :]
            pairs += 1
        elif not tag[1] and name not in _EMPTY:
            open_tags.append(name)
    return (tags > 1 and _START.match(text) is not None) or pairs >= least_pairs or _BREAK.search(text) is not None
