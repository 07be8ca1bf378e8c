"""MediaWiki XML export, schemas 0.3 to 0.11: a dump's header, its pages, its date.

The XML is read by no general parser, on purpose: in an export every `<` of a page's content is escaped, so that
tags are found by searching bytes, at several times the speed. What a parser would expand or load (document types,
entities, external files) is never even looked at.

Source of the format: https://www.mediawiki.org/wiki/Help:Export, export-0.3.xsd to export-0.11.xsd.
"""

import contextlib
import dataclasses
import datetime
import itertools
import re
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from transforms.characters.utf8 import is_utf8
from transforms.errors import RunFailedError, UnusableInputError
from transforms.inputs.corpus import RejectedPage
from transforms.inputs.formats import BYTE_ORDER_MARK, detect, unusable_if_damaged
from transforms.inputs.kernels import xml as kernels
from transforms.inputs.options import ReadOptions
from transforms.inputs.site import Site
from transforms.inputs.sources import Source, Window
from transforms.storage import files

_LARGEST_HEADER = 4 << 20
_TAIL_BYTES = 64
_DATE_PAGES = 200
_MANY_REVISIONS = 16 << 20
_PAGE = b"<page>"
_CLOSING = b"</mediawiki>"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Page:
    """One page with its last revision.

    Texts are UTF-8, XML's own references resolved, line ends "\n". `is_redirect` is what the dump's <redirect/> says;
    schema 0.3 has none. `timestamp` is as in the dump (2006-03-03T01:02:03Z); `model` is b"wikitext" where the
    schema names none.
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
    """Looks at a dump's last bytes: a download that was cut off is found before the run, not at its end."""
    tail = b""
    for back in (1 << 16, 1 << 20, 1 << 24, size):
        start = max(0, size - back)
        tail = b""
        with unusable_if_damaged(), Source(path, container, start, size) as source:
            if source.own == 0:
                continue
            while chunk := source.read():
                tail = (tail + chunk).rstrip()[-_TAIL_BYTES:]
        if tail.endswith(_CLOSING) or len(tail) == _TAIL_BYTES:
            break
    if not tail.endswith(_CLOSING):
        raise UnusableInputError(_not_closed(path))


def _not_closed(path: str) -> str:
    return f"{path}: the XML is cut off: it does not end with {_CLOSING.decode()}; fetch the file again."


def read_header(path: str) -> bytes:
    """The XML of a dump in front of its first page (<mediawiki>, <siteinfo>); b"" for other inputs.

    Raises:
      UnusableInputError: the file cannot be read, or has no page.
    """
    found, container = detect(path, "auto")
    if found != "mediawiki":
        return b""
    header = b""
    with unusable_if_damaged(), Source(path, container, 0, files.size(path)) as source:
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
    """The address under which a dump's pages are found: https://en.wikipedia.org/wiki; empty where it has none."""
    return _element(header, b"base").decode("utf-8", "replace").rpartition("/")[0]


def dump_date(path: str) -> str | None:
    """The date of a dump (2020-01-31), by which {{CURRENTDAY}} and the like are resolved; None for other inputs.

    It is the date in the file's name (enwiki-20200131-pages-articles…), else that of the newest revision among the
    first 200 pages: they are a wiki's oldest, and the most edited. So it does not depend on when or where one asks.

    Raises:
      UnusableInputError: neither the name nor the pages give a date.
    """
    found, container = detect(path, "auto")
    if found != "mediawiki":
        return None
    for digits in re.findall(r"(?<!\d)\d{8}(?!\d)", files.base_name(path)):
        with contextlib.suppress(ValueError):
            return datetime.datetime.strptime(digits, "%Y%m%d").date().isoformat()
    newest = b""
    with unusable_if_damaged(), Source(path, container, 0, files.size(path)) as source:
        for page in itertools.islice(read_pages(source, path, True, ReadOptions()), _DATE_PAGES):
            if isinstance(page, Page) and re.fullmatch(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", page.timestamp):
                newest = max(newest, page.timestamp)
    if not newest:
        raise UnusableInputError(
            f"{path}: neither its name nor its first pages give the dump's date; name it with --dump_date."
        )
    return newest[:10].decode("ascii")


def read_pages(source: Source, path: str, is_first: bool, reading: ReadOptions) -> Iterator[Page | RejectedPage]:
    """The pages that start in a source's range, in order; a bad one is rejected, never left out.

    Args:
      source: the plain bytes.
      path: the file's name, for messages.
      is_first: whether the range is the file's first.

    Raises:
      RunFailedError: the file is damaged or cut off; the message names the byte.
    """
    window = Window(source)
    namespaces = _LazyNamespaces(path)
    marks = np.empty(kernels.N_MARKS, np.int64)
    view, words = kernels.views_of(window.data)
    is_closed = False
    at = 0
    while True:
        start = window.data.find(_PAGE, at)
        if start < 0:
            is_closed |= window.data.find(_CLOSING, at) >= 0
            keep = _behind_tags(window.data, at)
            if not window.is_own(keep):
                return
            if not window.slide(keep):
                # The ends of files that are read in several units are looked at when they are planned.
                if is_first and not is_closed:
                    raise RunFailedError(_not_closed(path))
                return
            view, words = kernels.views_of(window.data)
            at = 0
            continue
        if not window.is_own(start):
            return
        status = kernels.scan_page(view, words, start, marks)
        while status == kernels.NEED_MORE:
            if len(window.data) - start > min(_MANY_REVISIONS, reading.largest_page):
                _forget_old_revisions(window, start)
            if len(window.data) - start > reading.largest_page:
                break
            if not window.slide(start):
                raise RunFailedError(_not_closed(path))
            start = 0
            view, words = kernels.views_of(window.data)
            status = kernels.scan_page(view, words, start, marks)
        found = marks.tolist()
        if status == kernels.NOT_CLOSED:
            yield RejectedPage(title=_title_of(window.data, found), reason="the page is not closed")
        elif status == kernels.COMPLETE and found[kernels.END] - found[kernels.REVISION] <= reading.largest_page:
            yield _page_of(window.data, view, words, found, namespaces)
        else:
            reason = f"the page is larger than {reading.largest_page} bytes"
            yield RejectedPage(title=_title_of(window.data, found), reason=reason)
        # What is left of a page too large is passed over in search of the next one.
        at = start + len(_PAGE) if status == kernels.NEED_MORE else found[kernels.END]


def _behind_tags(data: bytes, at: int) -> int:
    """How much of `data` cannot be the beginning of a tag that is looked for and reaches over its end."""
    begin = data.rfind(b"<", max(at, len(data) - len(_CLOSING)))
    if begin >= 0 and (_PAGE.startswith(data[begin:]) or _CLOSING.startswith(data[begin:])):
        return begin
    return len(data)


def _forget_old_revisions(window: Window, start: int) -> None:
    """A page's whole history can be far larger than memory; only its last revision is wanted."""
    first = window.data.find(b"<revision>", start)
    last = window.data.rfind(b"<revision>", start)
    if first < last:
        window.cut(first, last)


class _LazyNamespaces:
    """The numbers of a dump's namespaces by name; its header is read only where a schema without <ns> needs it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._numbers: Mapping[bytes, int] | None = None

    def of(self, title: bytes) -> int:
        """The namespace of a page by its title's prefix."""
        prefix, colon, _ = title.partition(b":")
        if not colon:
            return 0
        if self._numbers is None:
            names = Site.parse(read_header(self._path)).namespaces.items()
            self._numbers = {name.encode(): number for number, some in names for name in some}
        return self._numbers.get(prefix, 0)


def _title_of(data: bytes, marks: list[int]) -> str:
    """A page's title for people to read, whatever is wrong with the page."""
    if marks[kernels.TITLE] < 0:
        return "(no title)"
    title = data[marks[kernels.TITLE] : marks[kernels.TITLE_END]][:1000]
    return (_unescaped(title) or title).decode("utf-8", "replace").strip()


def _page_of(
    data: bytes,
    view: npt.NDArray[np.uint8],
    words: npt.NDArray[np.uint64],
    marks: list[int],
    namespaces: _LazyNamespaces,
) -> Page | RejectedPage:
    reason = _what_is_wrong(data, marks)
    if reason is None:
        title: bytes | None = data[marks[kernels.TITLE] : marks[kernels.TITLE_END]].strip()
        if title and b"&" in title:
            title = _unescaped(title)
        begin, end, flags = marks[kernels.TEXT], marks[kernels.TEXT_END], marks[kernels.TEXT_FLAGS]
        text: bytes | None
        if flags & kernels.IS_ESCAPED:
            out = np.empty(end - begin, np.uint8)
            size = kernels.unescape(view, words, begin, end, out)
            text = out[:size].tobytes() if size >= 0 else None
        else:
            text = data[begin:end]
        if not title:
            reason = "the page has no title"
        elif text is None:
            reason = "the text has a reference (&…;) that XML does not know"
        elif not (is_utf8(title) and (not flags & kernels.NOT_ASCII or is_utf8(text))):
            reason = "it is not valid UTF-8"
        else:
            number = marks[kernels.NAMESPACE]
            model = data[marks[kernels.MODEL] : marks[kernels.MODEL_END]] if marks[kernels.MODEL] >= 0 else b""
            timestamp = marks[kernels.TIMESTAMP]
            return Page(
                title=title,
                namespace=number if number != kernels.NO_NAMESPACE else namespaces.of(title),
                page_id=marks[kernels.PAGE_ID],
                revision_id=marks[kernels.REVISION_ID],
                is_redirect=bool(marks[kernels.IS_REDIRECT]),
                timestamp=data[timestamp : marks[kernels.TIMESTAMP_END]] if timestamp >= 0 else b"",
                model=model or b"wikitext",
                text=text,
            )
    return RejectedPage(title=_title_of(data, marks), reason=reason)


def _what_is_wrong(data: bytes, marks: list[int]) -> str | None:
    if marks[kernels.TITLE] < 0:
        return "the page has no title"
    if marks[kernels.PAGE_ID] < 0:
        return "the page's id is missing, or no number"
    if marks[kernels.NAMESPACE] == kernels.BAD_NAMESPACE:
        return "the namespace is no number"
    if marks[kernels.REVISION] < 0:
        return "the page has no revision"
    if marks[kernels.REVISION_ID] < 0:
        return "the revision's id is missing, or no number"
    if marks[kernels.TEXT] < 0:
        return "the revision has no text"
    if b"deleted=" in data[marks[kernels.TEXT_TAG] : marks[kernels.TEXT]]:
        return "the text was deleted from the wiki"
    if marks[kernels.TEXT_FLAGS] & kernels.HAS_MARKUP:
        return "the text has markup of XML in it"
    if marks[kernels.TEXT_END] < 0:
        return "the text is not closed"
    return None


def _element(data: bytes, name: bytes) -> bytes:
    """The content of the first element of that name, as it stands; b"" where there is none."""
    begin = data.find(b"<" + name + b">")
    end = data.find(b"</" + name + b">", begin)
    return data[begin + len(name) + 2 : end].strip() if 0 <= begin < end else b""


def _unescaped(text: bytes) -> bytes | None:
    """Resolves XML's references and line ends; None where there is one that XML does not know."""
    out = np.empty(len(text), np.uint8)
    view, words = kernels.views_of(text)
    size = kernels.unescape(view, words, 0, len(text), out)
    return out[:size].tobytes() if size >= 0 else None
