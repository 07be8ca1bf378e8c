"""MediaWiki XML export, schemas 0.3 to 0.11: a dump's header and its pages.

No general XML parser reads the dump, on purpose: an export escapes every `<` of a page's content, so this module
finds tags by searching bytes, at several times the speed. It reads CDATA sections, which other programs write, and
passes over comments and processing instructions; it ignores what a parser would expand or load: document types,
entities, external files.

Source of the format: https://www.mediawiki.org/wiki/Help:Export, export-0.3.xsd to export-0.11.xsd.
"""

import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from maskmill.characters.utf8 import is_utf8
from maskmill.errors import UnusableInputError
from maskmill.inputs.formats import container_of_dump
from maskmill.inputs.items import HOLE, IS_HOLLOW, NOT_UTF8, OR_KEEP, CutOff, RejectedPage
from maskmill.inputs.kernels import xml as kernels
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.site import Site
from maskmill.inputs.sources import Source, Window, is_splittable
from maskmill.storage import files
from maskmill.text.file_kinds import BYTE_ORDER_MARK

_LARGEST_HEADER = 4 << 20
_TAIL_BYTES = 4096  # more than the closing tag and the comments that may follow it
# How far before its end a dump is entered to find its last bytes, until one of these finds a block of bz2.
_TAIL_ATTEMPTS = (1 << 16, 1 << 20, 1 << 24)
_MANY_REVISIONS = 16 << 20  # of bytes: a page that takes more is rid of its old revisions
_LONGEST_SHOWN_TITLE = 1000
_PAGE = b"<page>"
_REVISION = b"<revision>"
_CLOSING = b"</mediawiki>"
_UNKNOWN_REFERENCE = "the text has a reference (&…;) that XML does not know"
# A CDATA section, whose content is as it is, a comment, a processing instruction.
_SECTION = re.compile(rb"<!\[CDATA\[(.*?)\]\]>|<!--.*?-->|<\?.*?\?>", re.DOTALL)
_BEHIND_LAST = re.compile(rb"</mediawiki>(?:\s|<!--.*?-->|<\?.*?\?>)*$", re.DOTALL)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Page:
    """One page with its last revision.

    Texts are UTF-8, with XML's own references resolved and "\n" as line end. `is_redirect` is what the dump's
    <redirect/> says; schema 0.3 has none. `timestamp` is as in the dump (2006-03-03T01:02:03Z); `model` is b"wikitext"
    where the schema names none.
    """

    title: bytes
    namespace: int
    page_id: int
    revision_id: int
    is_redirect: bool
    timestamp: bytes
    model: bytes
    text: bytes


def check_closed(path: str, container: str, size: int) -> None:
    """Check the last bytes of a dump that can be entered at any byte: a cut is found before the run, not at its end.

    Raises:
      UnusableInputError: the dump does not end with </mediawiki>, or its end is damaged.
    """
    if not _is_closed(path, container, size, keep_truncated=False):
        raise _not_closed(path)


def _is_closed(path: str, container: str, size: int, keep_truncated: bool) -> bool:
    """Return whether a dump that can be entered at any byte ends with </mediawiki>."""
    tail = b""
    for back in (*_TAIL_ATTEMPTS, size):
        start = max(0, size - back)
        tail = b""
        with Source(path, container, start, size, keep_truncated=keep_truncated) as source:
            if source.own == 0:
                continue
            while chunk := source.read():
                tail = (tail + chunk).rstrip()[-_TAIL_BYTES:]
        if _BEHIND_LAST.search(tail) or len(tail) == _TAIL_BYTES:
            break
    return _BEHIND_LAST.search(tail) is not None


def _not_closed(path: str) -> UnusableInputError:
    return UnusableInputError(
        f"{path}: the XML is cut off: it does not end with {_CLOSING.decode()}; fetch the file again, {OR_KEEP}."
    )


def read_header(path: str) -> bytes:
    """Return the header of a file, as `header_of`."""
    with files.open_input(path) as raw:
        return header_of(raw, path)


def header_of(raw: BinaryIO, path: str) -> bytes:
    """Return the XML of a dump in front of its first page (<mediawiki>, <siteinfo>); b"" for other inputs.

    raw: the file, open at its start.

    Raises:
      UnusableInputError: the file cannot be read, or has neither a page nor an end in its first 4 MB.
    """
    header = b""
    container = container_of_dump(raw, path)
    if container is None:
        return b""
    source = Source(path, container, 0, None, keep_truncated=True, raw=raw)
    while len(header) < _LARGEST_HEADER:
        chunk = source.read()
        header += chunk
        end = header.find(_PAGE)
        if end < 0:
            end = header.find(_CLOSING)
        if end >= 0:
            return header[:end].removeprefix(BYTE_ORDER_MARK)
        if not chunk:
            break
    raise UnusableInputError(f"{path}: no <page> was found in the first {len(header)} bytes of this dump.")


def site_base(header: bytes) -> str:
    """Return the address in front of a page's title: https://en.wikipedia.org/wiki; empty where the header has none."""
    return _element(header, b"base").decode("utf-8", "replace").rpartition("/")[0]


def read_pages(
    source: Source, path: str, is_first: bool, reading: ReadOptions, header: bytes = b""
) -> Iterator[Page | RejectedPage | CutOff]:
    """Return the pages that start in a source's range, in order; one that cannot be used is rejected, never left out.

    Where `reading.keep_truncated` takes a dump up to its cut, the last item is a CutOff.

    header: the dump's; empty: it is read where it is needed.

    Raises:
      UnusableInputError: the file is damaged or cut off; the message names the byte.
    """
    return _PageReader(source, path, is_first, reading, header).pages()


class _PageReader:
    """Reads the pages of one range: it slides a window over the XML and lets a kernel find each page's parts."""

    def __init__(self, source: Source, path: str, is_first: bool, reading: ReadOptions, header: bytes) -> None:
        self._window = Window(source)
        self._source = source
        self._path = path
        self._is_first = is_first
        self._header = header
        self._largest_page = reading.largest_page
        self._keep_truncated = reading.keep_truncated
        self._is_last = self._keep_truncated and source.end >= source.size
        self._is_cut = False
        self._marks = np.empty(kernels.N_MARKS, np.int64)
        self._view, self._words = kernels.views_of(self._window.data)

    def pages(self) -> Iterator[Page | RejectedPage | CutOff]:
        """Yield the pages that start in the range."""
        at = 0
        while (start := self._find_page(at)) is not None:
            status, start = self._scan(start)
            marks = self._marks.tolist()
            if self._is_cut:
                yield CutOff(title=_title_for_people(self._window.data, marks))
                return
            yield self._page(status, marks)
            # A page that is too large was not scanned to its end: the search for the next one begins inside it.
            at = start + len(_PAGE) if status == kernels.NEED_MORE else marks[kernels.END]
        if self._is_cut:
            yield CutOff(title=None)

    def _find_page(self, at: int) -> int | None:
        """Return the index of the first page at or after `at`; None where the range has no further page."""
        is_closed = False
        while True:
            data = self._window.data
            start = data.find(_PAGE, at)
            if start >= 0:
                return start if self._window.is_own(start) else None
            is_closed |= data.find(_CLOSING, at) >= 0
            keep = _start_of_cut_tag(data, at)
            is_own = self._window.is_own(keep)
            if is_own and self._slide(keep):
                at = 0
                continue
            self._is_cut = self._is_last and not is_closed and not self._ends_closed()
            # Planning looks at the ends of files that are read in several units.
            if is_own and self._is_first and not is_closed and not self._keep_truncated:
                raise _not_closed(self._path)
            return None

    def _ends_closed(self) -> bool:
        """Return whether the file ends with its closing tag, of which the range may hold only a part."""
        source = self._source
        return is_splittable(source.container) and _is_closed(self._path, source.container, source.end, True)

    def _slide(self, keep: int) -> bool:
        is_more = self._window.slide(keep)
        self._view, self._words = kernels.views_of(self._window.data)
        return is_more

    def _scan(self, start: int) -> tuple[int, int]:
        """Fill the marks of the page at `start`, and read more until the page is complete or too large.

        Returns:
          What `scan_page` returned last, and where the page starts now.
        """
        status = kernels.scan_page(self._view, self._words, start, self._marks)
        while status == kernels.NEED_MORE:
            if len(self._window.data) - start > min(_MANY_REVISIONS, self._largest_page):
                _drop_old_revisions(self._window, start)
            if len(self._window.data) - start > self._largest_page:
                break
            if not self._slide(start):
                if not self._keep_truncated:
                    raise _not_closed(self._path)
                self._is_cut = True
                return kernels.scan_page(self._view, self._words, 0, self._marks), 0
            start = 0
            status = kernels.scan_page(self._view, self._words, start, self._marks)
        return status, start

    def _namespace_of(self, title: bytes) -> int:
        """Return the namespace of a page in a schema without <ns>; only this needs the header."""
        return self._site.namespace_of(title) if b":" in title else 0

    @functools.cached_property
    def _site(self) -> Site:
        return Site.parse(self._header or read_header(self._path))

    def _page(self, status: int, marks: list[int]) -> Page | RejectedPage:
        """Return the page that the marks describe, or why it cannot be used."""
        try:
            if status == kernels.NOT_CLOSED:
                raise _UnusablePageError("the page is not closed")
            if status == kernels.NEED_MORE or marks[kernels.END] - marks[kernels.REVISION] > self._largest_page:
                raise _UnusablePageError(f"the page is larger than {self._largest_page:,} bytes")
            return self._usable_page(marks)
        except _UnusablePageError as error:
            return RejectedPage(title=_title_for_people(self._window.data, marks), reason=str(error))

    def _usable_page(self, marks: list[int]) -> Page:
        """Return the page that the marks describe; raises _UnusablePageError where it cannot be used."""
        data = self._window.data
        _check_parts(data, marks)
        title = data[marks[kernels.TITLE] : marks[kernels.TITLE_END]].strip()
        if b"&" in title or b"<" in title:
            title = (_plain(title) or b"").strip()
        if not title:
            raise _UnusablePageError("the page has no title")
        flags = marks[kernels.TEXT_FLAGS]
        text = self._text(marks[kernels.TEXT], marks[kernels.TEXT_END], flags)
        if not is_utf8(title) or (flags & kernels.NOT_ASCII and not is_utf8(text)):
            raise _UnusablePageError(NOT_UTF8)
        namespace = marks[kernels.NAMESPACE]
        return Page(
            title=title,
            namespace=namespace if namespace != kernels.NO_NAMESPACE else self._namespace_of(title),
            page_id=marks[kernels.PAGE_ID],
            revision_id=marks[kernels.REVISION_ID],
            is_redirect=bool(marks[kernels.IS_REDIRECT]),
            timestamp=_slice(data, marks, kernels.TIMESTAMP, kernels.TIMESTAMP_END),
            model=_slice(data, marks, kernels.MODEL, kernels.MODEL_END) or b"wikitext",
            text=text,
        )

    def _text(self, begin: int, end: int, flags: int) -> bytes:
        if flags & kernels.HAS_SECTIONS:
            text = _plain(self._window.data[begin:end])
            if text is None:
                raise _UnusablePageError(_UNKNOWN_REFERENCE)
            return text
        if not flags & kernels.IS_ESCAPED:
            return self._window.data[begin:end]
        plain = np.empty(end - begin, np.uint8)
        size = kernels.unescape(self._view, self._words, begin, end, plain)
        if size < 0:
            raise _UnusablePageError(_UNKNOWN_REFERENCE)
        return plain[:size].tobytes()


class _UnusablePageError(Exception):
    """The reason why a page cannot be used; never leaves this module."""


def _check_parts(data: bytes, marks: list[int]) -> None:
    """Raise _UnusablePageError for the first part that a page lacks, or that cannot be used."""
    for is_wrong, reason in (
        (marks[kernels.TITLE] < 0, "the page has no title"),
        (marks[kernels.PAGE_ID] < 0, "the page's id is missing, or no number"),
        (marks[kernels.NAMESPACE] == kernels.BAD_NAMESPACE, "the namespace is no number"),
        (marks[kernels.REVISION] < 0, "the page has no revision"),
        (marks[kernels.REVISION_ID] < 0, "the revision's id is missing, or no number"),
        (marks[kernels.TEXT] < 0, "the revision has no text"),
        (b"deleted=" in data[marks[kernels.TEXT_TAG] : marks[kernels.TEXT]], "the text was deleted from the wiki"),
        (marks[kernels.TEXT_FLAGS] & kernels.HAS_MARKUP, "the text has markup of XML in it"),
        (marks[kernels.TEXT_END] < 0, "the text is not closed"),
    ):
        if is_wrong:
            raise _UnusablePageError(reason)
    if data.find(HOLE, marks[kernels.REVISION], marks[kernels.TEXT_END]) >= 0:
        raise _UnusablePageError(IS_HOLLOW)


def _start_of_cut_tag(data: bytes, at: int) -> int:
    """Return the first index after `at` from which on `data` may be the beginning of a tag that its end cuts off."""
    begin = data.rfind(b"<", max(at, len(data) - len(_CLOSING)))
    if begin >= 0 and (_PAGE.startswith(data[begin:]) or _CLOSING.startswith(data[begin:])):
        return begin
    return len(data)


def _drop_old_revisions(window: Window, start: int) -> None:
    """Drop all revisions but the last one of those read so far: a page's history can be far larger than memory."""
    first = window.data.find(_REVISION, start)
    last = window.data.rfind(_REVISION, start)
    if first < last:
        window.cut(first, last)


def _slice(data: bytes, marks: list[int], begin: int, end: int) -> bytes:
    """Return the bytes between two marks; b"" where the part is missing."""
    return data[marks[begin] : marks[end]] if marks[begin] >= 0 else b""


def _title_for_people(data: bytes, marks: list[int]) -> str:
    """Return a page's title as a message shows it, whatever is wrong with the page."""
    if marks[kernels.TITLE] < 0:
        return "(no title)"
    title = data[marks[kernels.TITLE] : marks[kernels.TITLE_END]][:_LONGEST_SHOWN_TITLE]
    return (_plain(title) or title).decode("utf-8", "replace").strip()


def _element(data: bytes, name: bytes) -> bytes:
    """Return the content of the first element of a name, still escaped; b"" if there is none."""
    begin = data.find(b"<" + name + b">")
    end = data.find(b"</" + name + b">", begin)
    return data[begin + len(name) + 2 : end].strip() if 0 <= begin < end else b""


def _plain(text: bytes) -> bytes | None:
    """Return what text with CDATA sections, comments and processing instructions says; None where it cannot be
    resolved.
    """
    parts = []
    at = 0
    for section in _SECTION.finditer(text):
        parts.append(_unescaped(text[at : section.start()]))
        parts.append((section[1] or b"").replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
        at = section.end()
    parts.append(_unescaped(text[at:]))
    return b"".join(part for part in parts if part is not None) if None not in parts else None


def _unescaped(text: bytes) -> bytes | None:
    """Resolve XML's references and line ends; None where XML does not know a reference."""
    plain = np.empty(len(text), np.uint8)
    view, words = kernels.views_of(text)
    size = kernels.unescape(view, words, 0, len(text), plain)
    return plain[:size].tobytes() if size >= 0 else None
