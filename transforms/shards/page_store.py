"""The texts of a dump's pages, kept for the build of the next dump: what has not changed is not extracted again.

A store belongs to a fragment: `<key>.pages` beside its table. It holds, of each page whose wikitext was looked at, the
text before filters and the splitting of sentences, or the name under which the page is left out, and what else the
extractor says of it. A page of another dump has this text where all that decides it is the same:

- its id, revision, title, namespace, content model and wikitext, and the options, site and code that read it: one
  digest over all of them (`Reading.digest`);
- the dump's date, for a page that asked for it: in its wikitext, or in a template that it used;
- what the titles of templates gave that it asked for, where templates are expanded.

Layout of a store: blocks of text, packed with LZ4; rows of ROW sorted by page, the numbers of the templates they asked
for (uint32) and the digests of what these gave, packed likewise; a JSON object that says where all this lies, with a
checksum of each part and the templates' titles; its length (8 bytes) and _MAGIC. A part that does not fit its checksum
counts as missing, and its pages are extracted.

The index of all stores of a build lies in its work directory, kind INDEX.
"""

import bisect
import collections
import dataclasses
import functools
import hashlib
import json
import logging
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import completions, files
from transforms.extraction import unknown_templates
from transforms.inputs.mediawiki import Page

INDEX = "pages"
_INDEX_KEY = "index"
# The version of what a store holds. Raise it when the same page gives another row; older stores are then not read.
VERSION = 2

_MAGIC = b"maskmill pages 1\n"
_LENGTH = struct.Struct("<Q")
_PAGE = struct.Struct("<qqq?qq")  # what precedes a page's title in its digest
_DIGEST = struct.Struct("<QQ")
_CODEC = "lz4_raw"
_BLOCK_BYTES = 1 << 20
_CHECKSUM_DIGITS = 32
_TEMPLATE_BYTES = 16

_IS_DATED, _IS_LIMITED = 1, 2
# start: the number of the block; offset, size: the text's bytes in it. left_out: the place of the name in LEFT_OUT,
# plus 1; 0: the page has a text. templates, templates_end: its part of the numbers of templates.
ROW = np.dtype(
    [
        ("page", "<i8"),
        ("digest", "<u8"),
        ("more_digest", "<u8"),
        ("block", "<u4"),
        ("offset", "<u4"),
        ("size", "<u4"),
        ("left_out", "u1"),
        ("flags", "u1"),
        *((name, "<u4") for name in unknown_templates.COUNTS),
        ("templates", "<u4"),
        ("templates_end", "<u4"),
    ]
)
# Stores that do not name their columns have these not: they were not counted, because nothing was expanded in this way.
_LATER = ("expanded_calls", "calls_expanded_to_nothing", "failed_modules")
_FIRST_COLUMNS = tuple(name for name in ROW.names or () if name not in _LATER)
LEFT_OUT = ("disambiguation_pages",)
# Places in a row of ROW.
_DIGESTS, _FIRST_OF_TEXT, _FLAGS = slice(1, 3), 3, 7

_MOST_STORES = 8  # that a process keeps open
_MOST_BLOCKS = 4  # of each that it keeps unpacked
_MOST_CANDIDATES = 8  # stores that are looked at for a page
# Where the pages come in no order, each may ask for another store. Past so many opened stores for the pages taken, the
# rest is extracted: that is faster.
_FREE_OPENINGS, _PAGES_AN_OPENING = 16, 64

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PageText:
    """What became of a page's wikitext.

    Attributes:
      text: the plain text; empty where the page is left out.
      left_out: the name under which it is counted, one of LEFT_OUT; empty where it has a text.
      counts: what the extractor counted of its templates, as WikitextExtractor.template_counts gives it.
      is_limited: whether its templates were expanded in part only, because of a limit.
      is_dated: whether it may depend on the dump's date.
      templates: what it asked of the dump's templates: a digest by title.
      is_kept: whether a store may keep it; not where the extractor found out more than stands here.
    """

    text: bytes = b""
    left_out: str = ""
    counts: tuple[int, ...] = (0,) * len(unknown_templates.COUNTS)
    is_limited: bool = False
    is_dated: bool = False
    templates: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    is_kept: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoreEntry:
    """What the index says of a store: its fragment (`key`), and what `PageWriter.finish` gave of it.

    first, last: pages. size: bytes. contexts: of its pages, see `Reading.context`.
    """

    key: str
    first: int
    last: int
    size: int
    contexts: Sequence[str]


def store_name(key: str) -> str:
    """The name of a fragment's store, beside its record."""
    return f"{key}.pages"


def _codec() -> Any:
    """What packs the texts of pages."""
    import pyarrow  # here, because only builds of releases keep pages

    return pyarrow.Codec(_CODEC)


class PageWriter:
    """Writes the pages of a fragment to its store."""

    def __init__(self, file: files.OutputFile) -> None:
        self._file = file
        self._codec = _codec()
        self._rows: list[tuple[Any, ...]] = []
        self._pending: list[bytes] = []
        self._size = 0  # of what is pending
        self._blocks: list[tuple[int, int, int, str]] = []
        self._titles: dict[tuple[str, bytes], int] = {}
        self._used: list[int] = []
        self._contexts: set[str] = set()

    def add(self, page: int, context: str, digest: tuple[int, int], given: PageText) -> None:
        """Adds a page, with the digest of all that decides its text."""
        templates = len(self._used)
        for template in given.templates.items():
            self._used.append(self._titles.setdefault(template, len(self._titles)))
        left_out = LEFT_OUT.index(given.left_out) + 1 if given.left_out else 0
        flags = _IS_DATED * given.is_dated + _IS_LIMITED * given.is_limited
        place = (len(self._blocks), self._size, len(given.text))
        self._rows.append((page, *digest, *place, left_out, flags, *given.counts, templates, len(self._used)))
        self._contexts.add(context)
        if given.text:
            self._pending.append(given.text)
            self._size += len(given.text)
            if self._size >= _BLOCK_BYTES:
                self._end_block()

    def _end_block(self) -> None:
        self._blocks.append(self._part(b"".join(self._pending)))
        self._pending = []
        self._size = 0

    def _part(self, content: bytes) -> tuple[int, int, int, str]:
        """Writes a part; where it lies, its bytes, those of its content, and its checksum."""
        offset = self._file.size
        packed = self._codec.compress(content, asbytes=True) if content else b""
        self._file.write(packed)
        return offset, len(packed), len(content), _checksum(packed)

    def finish(self) -> dict[str, Any]:
        """Writes the rest of the store; what its fragment's record says of it."""
        if self._pending:
            self._end_block()
        rows = np.array(self._rows, ROW)
        rows = rows[np.argsort(rows["page"], kind="stable")]
        ending = {
            "blocks": self._blocks,
            "rows": self._part(rows.tobytes()),
            "columns": ROW.names,
            "used": self._part(np.array(self._used, "<u4").tobytes()),
            "digests": self._part(b"".join(digest for _, digest in self._titles)),
            "titles": [title for title, _ in self._titles],
        }
        described = json.dumps(ending).encode()
        described = _checksum(described).encode() + described
        self._file.write(described + _LENGTH.pack(len(described)) + _MAGIC)
        first, last = (int(rows["page"][0]), int(rows["page"][-1])) if len(rows) else (0, -1)
        return {"first": first, "last": last, "size": self._file.size, "contexts": sorted(self._contexts)}


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_CHECKSUM_DIGITS]


def _rows_of(content: bytes, columns: Sequence[str]) -> Any:
    """The rows of a store that has these columns, as ROW; those that it has not are 0."""
    stored = np.frombuffer(content, np.dtype([column for column in ROW.descr if column[0] in columns]))
    if stored.dtype == ROW:
        return stored
    rows = np.zeros(len(stored), ROW)
    for name in stored.dtype.names or ():
        rows[name] = stored[name]
    return rows


class _UnusableStoreError(Exception):
    """Why a store, or a part of it, cannot be used; never leaves this module."""


_DAMAGED = "it is damaged"


class _Store:
    """An opened store. `path` and `size` are its file's."""

    def __init__(self, path: str, size: int) -> None:
        self._path = path
        self._codec = _codec()
        tail = _LENGTH.size + len(_MAGIC)
        ending = self._read_range(size - tail, size)
        if len(ending) != tail or not ending.endswith(_MAGIC):
            raise _UnusableStoreError(_DAMAGED)
        (length,) = _LENGTH.unpack_from(ending)
        described = self._read_range(max(0, size - tail - length), size - tail)
        checksum, described = described[:_CHECKSUM_DIGITS], described[_CHECKSUM_DIGITS:]
        if checksum != _checksum(described).encode():
            raise _UnusableStoreError(_DAMAGED)
        parts = json.loads(described)
        self._parts: list[tuple[int, int, int, str]] = parts["blocks"]
        self._rows = _rows_of(self._read(parts["rows"]), parts.get("columns", _FIRST_COLUMNS))
        self._used = np.frombuffer(self._read(parts["used"]), "<u4")
        self._digests = self._read(parts["digests"])
        self._titles: list[str] = parts["titles"]
        # Of pages that are there twice the first.
        self._places = dict(zip(self._rows["page"][::-1].tolist(), range(len(self._rows) - 1, -1, -1), strict=True))
        self._content = functools.lru_cache(_MOST_BLOCKS)(lambda block: self._read(self._parts[block]))

    def rows_of(self, page: int) -> list[tuple[Any, ...]]:
        """The rows of a page: none or one, or several if the input has it several times."""
        first = end = self._places.get(page, len(self._rows))
        while end < len(self._rows) and self._rows["page"][end] == page:
            end += 1
        rows: list[tuple[Any, ...]] = self._rows[first:end].tolist()
        return rows

    def templates(self, start: int, end: int) -> Iterator[tuple[int, str, bytes]]:
        """The numbers of templates in a part of the list, their titles, and the digests of what they gave."""
        for number in self._used[start:end].tolist():
            at = number * _TEMPLATE_BYTES
            yield number, self._titles[number], self._digests[at : at + _TEMPLATE_BYTES]

    def text(self, block: int, offset: int, size: int) -> bytes:
        """The text at a place."""
        return self._content(block)[offset : offset + size] if size else b""

    def _read(self, part: Sequence[Any]) -> bytes:
        offset, packed_size, size, checksum = part
        packed = self._read_range(offset, offset + packed_size)
        if _checksum(packed) != checksum:
            raise _UnusableStoreError(_DAMAGED)
        content: bytes = self._codec.decompress(packed, size, asbytes=True) if size else b""
        return content

    def _read_range(self, start: int, end: int) -> bytes:
        try:
            return files.read_range(self._path, max(0, start), end)
        except (UnusableInputError, RunFailedError) as error:
            raise _UnusableStoreError(str(error)) from error


class PageReader:
    """Finds the pages of a build by their ids. A process keeps the stores that it used last open."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._entries = sorted(read_index(output), key=lambda entry: (entry.first, entry.last, entry.key))
        self._firsts = [entry.first for entry in self._entries]
        self._highest: list[int] = []  # the last page of all stores up to each
        for entry in self._entries:
            self._highest.append(max(entry.last, self._highest[-1] if self._highest else entry.last))
        self._open: collections.OrderedDict[int, _Store] = collections.OrderedDict()
        self._lost: set[int] = set()
        self.opened = 0

    def has_context(self, context: str) -> bool:
        """Whether any store has pages that were read with these options, site and code."""
        return any(context in entry.contexts for entry in self._entries)

    def stores_of(self, page: int, context: str) -> list[int]:
        """The numbers of stores that may have a page; not all where many may."""
        found: list[int] = []
        number = bisect.bisect_right(self._firsts, page) - 1
        lowest = max(-1, number - _MOST_CANDIDATES)
        while number > lowest and self._highest[number] >= page:
            entry = self._entries[number]
            if entry.last >= page and number not in self._lost and context in entry.contexts:
                found.append(number)
            number -= 1
        return found

    def is_open(self, number: int) -> bool:
        """Whether a store is open."""
        return number in self._open

    def store(self, number: int) -> _Store | None:
        """An opened store; None where it cannot be used."""
        store = self._open.get(number)
        if store is not None:
            self._open.move_to_end(number)
            return store
        if number in self._lost:
            return None
        entry = self._entries[number]
        path = completions.work_path(self._output, "extract", store_name(entry.key))
        self.opened += 1
        try:
            store = _Store(path, entry.size)
        except _UnusableStoreError as error:
            self.lose(number, str(error))
            return None
        self._open[number] = store
        if len(self._open) > _MOST_STORES:
            self._open.popitem(last=False)
        return store

    def lose(self, number: int, reason: str) -> None:
        """Reads no more of a store, which cannot be used: its pages are extracted."""
        self._lost.add(number)
        self._open.pop(number, None)
        path = completions.work_path(self._output, "extract", store_name(self._entries[number].key))
        _log.warning("%s: this page store cannot be used (%s); its pages are extracted again.", path, reason)


@functools.lru_cache(maxsize=2)
def page_reader(output: str, seal: str) -> PageReader:
    """The reader of a finished build, which the process keeps; another index, with another seal, has another reader."""
    return PageReader(output)


def write_index(output: str, entries: Sequence[StoreEntry]) -> None:
    """Keeps which stores a build has."""
    completions.store(output, INDEX, _INDEX_KEY, {"version": VERSION, "stores": list(entries)})


def read_index(output: str) -> list[StoreEntry]:
    """The stores of a build; none where it kept no pages, or its index is damaged or of another version."""
    record = completions.load(output, INDEX, _INDEX_KEY)
    if record is None or record["version"] != VERSION:
        return []
    return [StoreEntry(**entry) for entry in record["stores"]]


def index_seal(output: str) -> str:
    """The checksum of a build's index; empty if there is none."""
    path = completions.work_path(output, INDEX, f"{_INDEX_KEY}.json")
    return files.sha256_of(path) if files.exists(path) else ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """What decides the texts of an input's pages, besides the pages.

    context: a digest of the options, of what is known of the site, of the code's formats. date: the dump's.
    template_digest: what a title of a template gives in this dump, as PageText.templates has it.
    """

    context: str
    date: str
    template_digest: Callable[[str], bytes]

    @functools.cached_property
    def _prefix(self) -> bytes:
        return f"{VERSION} {self.context}\n".encode()

    @functools.cached_property
    def _date(self) -> bytes:
        return self.date.encode()

    def digests(self, page: Page) -> tuple[tuple[int, int], Callable[[], tuple[int, int]]]:
        """The digest of all that decides a page's text; and a function for that of a page that asks for the date."""
        digest = hashlib.sha256(self._prefix)
        sizes = (len(page.title), len(page.model))
        digest.update(_PAGE.pack(page.page_id, page.revision_id, page.namespace, page.is_redirect, *sizes))
        digest.update(page.title + page.model)
        digest.update(page.text)
        return _DIGEST.unpack_from(digest.digest()), lambda: _dated(digest, self._date)


def _dated(digest: Any, date: bytes) -> tuple[int, int]:
    dated = digest.copy()
    dated.update(b"\0date " + date)
    return _DIGEST.unpack_from(dated.digest())


class PageExchange:
    """Takes the texts of an input's pages from an earlier build's stores, and keeps them in a new one.

    extracted, reused: the pages that were asked for; how many of them were taken.
    """

    def __init__(self, reading: Reading, reader: PageReader | None, writer: PageWriter | None) -> None:
        self._reading = reading
        self._reader = reader if reader is not None and reader.has_context(reading.context) else None
        self._writer = writer
        self._opened_before = 0 if reader is None else reader.opened
        self._fits: dict[tuple[int, int], bool] = {}
        self.extracted = 0
        self.reused = 0

    def page_text(self, page: Page, extract: Callable[[Page], PageText]) -> tuple[PageText, bool]:
        """What an earlier build made of a page, if all that decides it is the same, or else what `extract` makes of it.

        Returns:
          The text, and whether it was taken.
        """
        digest, dated_digest = self._reading.digests(page)
        self.extracted += 1
        known = None if self._reader is None else self._take(self._reader, page.page_id, digest, dated_digest)
        self.reused += known is not None
        given = extract(page) if known is None else known
        if self._writer is not None and given.is_kept:
            kept = dated_digest() if given.is_dated else digest
            self._writer.add(page.page_id, self._reading.context, kept, given)
        return given, known is not None

    def _take(
        self, reader: PageReader, page: int, digest: tuple[int, int], dated_digest: Callable[[], tuple[int, int]]
    ) -> PageText | None:
        for number in reader.stores_of(page, self._reading.context):
            opened = reader.opened - self._opened_before
            if not reader.is_open(number) and opened >= _FREE_OPENINGS + self.reused // _PAGES_AN_OPENING:
                return None
            store = reader.store(number)
            if store is None:
                continue
            try:
                for row in store.rows_of(page):
                    wanted = dated_digest() if row[_FLAGS] & _IS_DATED else digest
                    if row[_DIGESTS] == wanted and (given := self._given(number, store, row)) is not None:
                        return given
            except _UnusableStoreError as error:
                reader.lose(number, str(error))
        return None

    def _given(self, number: int, store: "_Store", row: tuple[Any, ...]) -> PageText | None:
        """What a row says became of its page; None where a template that it used has changed."""
        block, offset, size, left_out, flags, *counts, used, used_end = row[_FIRST_OF_TEXT:]
        templates = {}
        for place, title, digest in store.templates(used, used_end):
            fits = self._fits.get((number, place))
            if fits is None:
                fits = self._fits[number, place] = self._reading.template_digest(title) == digest
            if not fits:
                return None
            templates[title] = digest
        return PageText(
            text=store.text(block, offset, size),
            left_out=LEFT_OUT[left_out - 1] if left_out else "",
            counts=tuple(counts),
            is_limited=bool(flags & _IS_LIMITED),
            is_dated=bool(flags & _IS_DATED),
            templates=templates,
        )
