"""The elements of pipelines: an article, the document of its sentences, and a page or record that cannot be used."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from maskmill.errors import UnusableInputError

HOLE = "\N{OBJECT REPLACEMENT CHARACTER}"

_WIKI = re.compile(rb"<dbname>\s*([^<\s]+)|<base>\s*https?://([^/<\s]+)")


class Article(NamedTuple):
    """The text of a page or record.

    wiki: the name of the dump's wiki, such as enwiki; empty where the input is not a dump.
    page_id: of the page or record; the sha256 of the text where the input has no ids.
    text: each line is a paragraph. U+FFFC stands where the page shows something that extraction made no text of;
    SplitSentences drops the sentences that lack it.
    metadata: the columns of a record of JSON lines or Parquet, without that of its text; where they are known, its
    `language`, and a page's `url` and the `date` of its dump; for elements `input`, the path of the file.
    """

    wiki: str
    page_id: str
    title: str
    text: str
    metadata: Mapping[str, Any]


class Document(NamedTuple):
    """The sentences of an article, in order; the other fields are the article's."""

    wiki: str
    page_id: str
    title: str
    sentences: Sequence[str]
    metadata: Mapping[str, Any]


class Rejected(NamedTuple):
    """A page or record that cannot be used: its file, its title or how it begins, and the reason."""

    input: str
    title: str
    reason: str


def check_fields(element: Article | Document) -> None:
    """Raise UnusableInputError if a field that is text is not: an element of somebody else's source."""
    for name in ("wiki", "page_id", "title"):
        if not isinstance(value := getattr(element, name), str):
            kind = type(value).__name__
            raise UnusableInputError(f"{name} of {type(element).__name__} is {kind}, {value!r}; it must be str.")


def wiki_of(header: bytes) -> str:
    """Return the name of the wiki of a dump's header, else its host; empty where it has neither."""
    found = _WIKI.search(header)
    return (found[1] or found[2]).decode(errors="replace") if found else ""


def marked(text: bytes, places: Sequence[int]) -> str:
    """Return a text with HOLE at these offsets."""
    bounds = itertools.pairwise((0, *places, len(text)))
    return HOLE.join(text[start:end].decode(errors="replace") for start, end in bounds)


def unmarked(text: str) -> tuple[bytes, tuple[int, ...]]:
    """Return a text without HOLE, UTF-8, and the offsets where it stood."""
    pieces = [piece.encode(errors="replace") for piece in text.split(HOLE)]
    return b"".join(pieces), tuple(itertools.accumulate(map(len, pieces[:-1])))
