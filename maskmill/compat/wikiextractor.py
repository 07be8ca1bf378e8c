"""Wikitext to text as WikiExtractor gives it (attardi/wikiextractor at commit 3162bb6, default options).

For users who must reproduce published data: MLPerf's BERT data was extracted with it. Text that WikiExtractor drops, by
design or by mistake, is dropped here too. This module was written from WikiExtractor's observed behaviour and has none
of its code; docs/wikiextractor-compat.md lists the remaining differences and their reasons.

Its default options do not expand templates (`--templates` does): a transclusion gives nothing, while variables and
parser functions give their value.
"""

import datetime
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskmill.characters.classes import character_tables
from maskmill.compat.kernels.braces import drop_pairs
from maskmill.compat.kernels.bytes import ODD_DIGITS, resolve_references
from maskmill.compat.kernels.lines import compact, replace_quotes, tidy_lines, tidy_spaces
from maskmill.compat.kernels.links import replace_addresses, replace_links
from maskmill.compat.kernels.tags import NUM_DROPPED, drop_element, drop_tags, opened_elements
from maskmill.compat.wikiextractor_expansion import MARKS, Expansion, escape_xml, resolve_xml_references

_UNICODE = "nltk-3.4"  # Unicode tables of Python 3.7
_FILE_BYTES = 1 << 20
# Replacing nested elements costs placeholders times text; nested ones are ignored above so many characters.
_REPLACED_CHARACTERS = 1 << 30

_SWITCHES = re.compile(
    rb"__(?:NOTOC|FORCETOC|TOC|NEWSECTIONLINK|NONEWSECTIONLINK|NOGALLERY|HIDDENCAT|NOCONTENTCONVERT|NOCC"
    rb"|NOTITLECONVERT|NOTC|START|END|INDEX|NOINDEX|STATICREDIRECT|DISAMBIG)__"
)
_HIGHLIGHT_OPEN, _HIGHLIGHT_CLOSE = b"<syntaxhighlight ", b"</syntaxhighlight>"
_MARKED = bytes(ord(MARKS.get(byte, chr(byte))) for byte in range(256))
_PLACEHOLDERS = (("math", "formula"), ("code", "codice"))
_MAYBE_PLACEHOLDER = re.compile(rb"<[^<>\w]*(?:math|code)", re.IGNORECASE)


def format_document(page_id: int, url_base: str, title: bytes, text: bytes) -> bytes:
    """Return a page's `<doc>` block in WikiExtractor's format.

    `url_base` is the address of the site's pages, such as https://en.wikipedia.org/wiki; `text` is the result of
    `WikiExtractorCompat.extract`. The title keeps the XML's references (`AT&amp;T`).
    """
    title = escape_xml(title)
    head = b'<doc id="%d" url="%b?curid=%d" title="%b">\n' % (page_id, url_base.encode(), page_id, title)
    return b"".join((head, title, b"\n\n", text, b"\n</doc>\n"))


def pack_files(sizes: Iterable[int], limit: int = _FILE_BYTES) -> list[int]:
    """Return the number of documents in each file, in order, from the documents' encoded sizes in bytes.

    A file holds documents of up to `limit` bytes in all; a larger document has a file of its own. If such a document
    comes first, the first file stays empty.
    """
    packed = [0]
    size = 0
    for document in sizes:
        if size + document > limit:
            packed.append(0)
            size = 0
        packed[-1] += 1
        size += document
    return packed


class WikiExtractorCompat:
    """Extracts the pages of one dump.

    date: the dump's (ISO). Variables of the clock have its midnight as their value; in WikiExtractor, the time of the
    run. NAMESPACENUMBER is always 0.
    """

    def __init__(self, date: str) -> None:
        self._date = datetime.datetime.fromisoformat(date)
        self._characters = character_tables(_UNICODE)

    def extract(self, title: bytes, text: bytes) -> bytes:
        """Return the lines that WikiExtractor writes for a page below its title, each with its newline.

        title, text: the page's, UTF-8, with the XML's references resolved. Takes time linear in the text.
        """
        text = Expansion(functools.partial(self._values, title), self._characters).expand_page(text)
        steps = _Steps(text, self._characters)
        if b"{{" in steps.text:
            steps.run(drop_pairs, ord("{"), ord("{"))
        if b"{|" in steps.text:
            steps.run(drop_pairs, ord("{"), ord("|"))
        steps.run(replace_quotes)
        steps.run_with_characters(replace_links)
        steps.run_with_characters(replace_addresses)
        if b"__" in steps.text:
            steps.text = _SWITCHES.sub(b"", steps.text)
        if _HIGHLIGHT_OPEN in steps.text:
            steps.text = _keep_highlighted(steps.text)
        steps.text = steps.text.translate(_MARKED)
        self._drop_markup(steps)
        return self._tidy(steps)

    def _drop_markup(self, steps: "_Steps") -> None:
        if b"<" in steps.text:
            steps.run_with_characters(drop_tags)
            opened = opened_elements(self._characters, np.frombuffer(steps.text, np.uint8))
            for number in range(NUM_DROPPED):
                if opened >> number & 1:
                    steps.run_with_characters(drop_element, number)
        if b"&" in steps.text:
            steps.resolve_references()
        if _MAYBE_PLACEHOLDER.search(steps.text):
            steps.text = _number_placeholders(steps.text)

    def _tidy(self, steps: "_Steps") -> bytes:
        steps.run(tidy_spaces)
        # WikiExtractor's author meant any of these marks, but the replacement only works if all occur in a row.
        if b"\xc2" in steps.text:
            text = steps.text.replace(b" ,:.)]\xc2\xbb", b",:.)]\xc2\xbb")
            steps.text = text.replace(b"[(\xc2\xab ", b"[(\xc2\xab")
        steps.run_with_characters(tidy_lines)
        steps.run(compact)
        return steps.text

    def _values(self, title: bytes) -> dict[str, str]:
        full = escape_xml(title).decode("utf-8")
        namespace, colon, name = full.partition(":")
        if not colon:
            namespace, name = "", full
        base, slash, sub = name.rpartition("/")
        return {
            "!": "|",
            "NAMESPACE": namespace,
            "NAMESPACENUMBER": "0",
            "PAGENAME": name,
            "FULLPAGENAME": full,
            "BASEPAGENAME": base if slash else name,
            "SUBPAGENAME": sub if slash else "",
            "ROOTPAGENAME": name.partition("/")[0],
            "CURRENTYEAR": self._date.strftime("%Y"),
            "CURRENTMONTH": self._date.strftime("%m"),
            "CURRENTDAY": self._date.strftime("%d"),
            "CURRENTHOUR": self._date.strftime("%H"),
            "CURRENTTIME": self._date.strftime("%H:%M:%S"),
        }


class _Steps:
    """The text of a page while the kernels change it one after another."""

    def __init__(self, text: bytes, characters: NDArray[np.int32]) -> None:
        self.text = text
        self._characters = characters
        self._out = np.empty(0, np.uint8)

    def run(self, kernel: Callable[..., int], *arguments: Any) -> int:
        """Replace the text by a kernel's output; return the kernel's return value."""
        if self._out.size < len(self.text) + 2:
            self._out = np.empty(len(self.text) + 2, np.uint8)
        size = kernel(np.frombuffer(self.text, np.uint8), *arguments, self._out)
        if size >= 0:
            self.text = self._out[:size].tobytes()
        return size

    def resolve_references(self) -> None:
        """Resolve HTML's references; rare pages with references in digits of another script take the slow path."""
        if self.run(resolve_references) == ODD_DIGITS:
            self.text = resolve_xml_references(self.text.decode("utf-8")).encode("utf-8")

    def run_with_characters(self, kernel: Callable[..., int], *arguments: Any) -> None:
        """Run a kernel like `run`, but pass it the character tables as well."""
        self.run(functools.partial(kernel, self._characters), *arguments)


def _keep_highlighted(text: bytes) -> bytes:
    """Drop the tags around source code, and protect the code from the steps that follow."""
    parts = []
    at = 0
    while (start := text.find(_HIGHLIGHT_OPEN, at)) >= 0:
        inside = text.find(b">", start + len(_HIGHLIGHT_OPEN)) + 1
        end = text.find(_HIGHLIGHT_CLOSE, inside) if inside else -1
        if end < 0:
            break
        parts += [text[at:start], escape_xml(text[inside:end])]
        at = end + len(_HIGHLIGHT_CLOSE)
    return b"".join([*parts, text[at:]])


def _number_placeholders(text: bytes) -> bytes:
    """Replace formulas by `formula_1`, `formula_2`, … and code by `codice_1`, …; equal ones share a number."""
    page = text.decode("utf-8")
    for tag, word in _PLACEHOLDERS:
        opening = re.compile(rf"<\s*{tag}(?:\s*| [^>]+)>", re.IGNORECASE)
        closing = re.compile(rf"<\s*/\s*{tag}\s*>", re.IGNORECASE)
        spans = _element_spans(page, opening, closing)
        are_nested = any(opening.search(page, start + 1, end) for start, end in spans)
        if are_nested and len(spans) * len(page) < _REPLACED_CHARACTERS:
            page = _replace_each(page, spans, word)
        else:
            page = _replace_spans(page, spans, word)
    return page.encode("utf-8")


def _element_spans(page: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> list[tuple[int, int]]:
    spans = []
    at = 0
    while (first := opening.search(page, at)) and (last := closing.search(page, first.end())):
        at = last.end()
        spans.append((first.start(), at))
    return spans


def _replace_each(page: str, spans: Sequence[tuple[int, int]], word: str) -> str:
    """Replace the elements one after another, wherever they occur, also inside one another."""
    replaced = page
    for number, (start, end) in enumerate(spans, 1):
        replaced = replaced.replace(page[start:end], f"{word}_{number}")
    return replaced


def _replace_spans(page: str, spans: Sequence[tuple[int, int]], word: str) -> str:
    """Replace elements that do not contain one another, in one pass."""
    numbers: dict[str, int] = {}
    parts = []
    at = 0
    for number, (start, end) in enumerate(spans, 1):
        parts += [page[at:start], f"{word}_{numbers.setdefault(page[start:end], number)}"]
        at = end
    return "".join([*parts, page[at:]])
