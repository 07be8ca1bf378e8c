"""Read a text shard once, document by document, to find wrong characters and to count."""

import collections
import dataclasses
import hashlib
import html.entities
import re
from collections.abc import Iterator, Mapping

import numpy as np

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.verification import scratch
from maskmill.verification.findings import Finding, finding, makes_check
from maskmill.verification.work_items import ItemResult, TextStatistics, WorkItem

_SHOWN = 200  # bytes of a line that are kept
_MOST_LINES = 200_000  # distinct lines that are counted at a time
_SHARED = 64  # most lines of a file in its statistics
_SPACE, _NEWLINE = 32, 10
_UNBROKEN = 60  # bytes of an ASCII line without a space; other scripts may have no spaces
_LONG = 20  # bytes of a line; shorter ones are refrains, marks of a dialogue
_TWOFOLD = 1 / 3  # of a document's text that repeats earlier text of it
_CONTINUING, _CONTINUING_BITS = 0x80, 0xC0  # the common bits of a character's bytes after the first
_LENGTH_STEPS = 4  # of the logarithm of a line's length

_TEX = rb"begin|cdot|cdots|cos|displaystyle|end|frac|geq|hat|in|infty|int|ldots|left|leq|mathbb|mathbf|mathcal|mathrm"
_TEX += rb"|operatorname|overline|partial|pi|prod|quad|right|rightarrow|sin|sqrt|sum|text|textbf|textit|times|to|vec"
_TAGS = rb"br|p|div|span|table|tr|td|li|ul|sub|sup|math|nowiki|ref|small|center|gallery"
# By the kind of mark: strings without which a text has no such mark, and the pattern of the marks.
MARKS: Mapping[str, tuple[tuple[bytes, ...], re.Pattern[bytes]]] = {
    "wikitext": (
        (b"[[", b"]]", b"{{", b"}}", b"'''", b"{|", b"|-", b"==", b"__"),
        re.compile(rb"\[\[|\]\]|\{\{|\}\}|'''|^\{\||^\|-|^==+[^=\n]+==+$|__[A-Z]{4,}__", re.MULTILINE),
    ),
    "HTML": ((b"<",), re.compile(rb"<(?:/[a-zA-Z]|(?:" + _TAGS + rb")\b[^<>\n]*>|!--)")),
    "entities": ((b"&",), re.compile(rb"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")),
    "TeX": ((b"\\",), re.compile(rb"\\(?:" + _TEX + rb")(?![a-zA-Z])|\\[()\[\]]")),
}
_ENTITIES = frozenset(name.encode() for name in html.entities.html5)
# Characters of UTF-8 that was read as Latin-1 or Windows-1252: control characters, which text does not have; Â, Ã, Ð
# and Ñ before a sign; quotation marks or dashes.
_GARBLED = re.compile("[\x80-\x9f]|[ÂÃÐÑ][\xa0-\xbf]|â€")

_BLOCK_BYTES = 1 << 20
_SEPARATOR = b"\n\n"  # between two articles
_HOLE = bytes(512)  # NULs in a row, as a full disk or a crash leaves them


@makes_check("file", "text")
def check_text(item: WorkItem, ranges: ByteRanges) -> ItemResult:
    """Read and check a text shard; only a file that cannot be read stops this early.

    Returns:
      `hashes` has "documents", a table (scratch.py) of uint64[documents, 3]: the hash of each article's text without
      the white space around it, its number and its bytes.
    """
    reading = _Reading(item)
    skipped = {}
    try:
        reading.counted.size = ranges.size(item.path)
        for articles in read_articles(item.path, ranges):
            reading.add(articles)
    except (UnusableInputError, RunFailedError):
        # `check_file` has reported the error.
        skipped["documents"] = f"{item.path} cannot be read to its end"
    statistics = reading.statistics()
    return ItemResult(
        item=item,
        findings=tuple(reading.findings()),
        looked_at={"documents": statistics.lines},
        skipped=skipped,
        counts={"sentences": statistics.lines, "documents": statistics.documents},
        text=statistics,
        hashes=scratch.write_table(item, "documents", [*np.array(reading.documents, np.uint64).reshape(-1, 3).T]),
    )


def read_articles(path: str, ranges: ByteRanges, block_bytes: int = _BLOCK_BYTES) -> Iterator[list[bytes]]:
    """Yield the articles of a text shard, several at a time: the text between blank lines, with its white space.

    The text after the last blank line is an article if it is not empty.

    Raises:
      UnusableInputError: the file is missing, or shorter than it was.
      RunFailedError: it cannot be read.
    """
    size = ranges.size(path)
    pending = bytearray()
    for start in range(0, size, block_bytes):
        before = len(pending)
        pending += ranges.read(path, start, min(size, start + block_bytes)).tobytes()
        if pending.find(_SEPARATOR, max(0, before - 1)) < 0:
            continue
        # Separators are found from the left: of three newlines the first two are one.
        *articles, last = bytes(pending).split(_SEPARATOR)
        pending = bytearray(last)
        yield articles
    if pending:
        yield [bytes(pending)]


class _Reading:
    """The counts and findings of a text shard while it is read."""

    def __init__(self, item: WorkItem) -> None:
        self.counted = TextStatistics()
        self._item = item
        self._marked: collections.Counter[str] = collections.Counter()
        self._shared: collections.Counter[bytes] = collections.Counter()
        self._line = self._articles = self._empty = self._first_empty = self._bad_articles = self._hole = 0
        self.documents: list[tuple[int, int, int]] = []  # hash, number, bytes
        self._not_utf8: tuple[int, int] | None = None  # line and byte of the first
        self._is_unended = False  # whether the file ends without a blank line

    def add(self, articles: list[bytes]) -> None:
        """Check and count articles."""
        self._is_unended = sum(map(len, articles)) == self.counted.size
        for article in articles:
            self._articles += 1
            self._add_article(article)
            self._line += article.count(b"\n") + 2
        self._count_lines(b"\n\n".join(articles) + b"\n")

    def _add_article(self, article: bytes) -> None:
        counted = self.counted
        try:
            text = article.decode()
        except UnicodeDecodeError as error:
            self._bad_articles += 1
            line = self._line + article.count(b"\n", 0, error.start) + 1
            self._not_utf8 = self._not_utf8 or (line, article[error.start])
            text = article.decode("utf-8", "replace")
        hole = article.find(_HOLE)
        if hole >= 0 and not self._hole:
            self._hole = self._line + article.count(b"\n", 0, hole) + 1
        counted.characters += len(text) - text.count("\n")
        stripped = article.strip()
        if not stripped:
            self._empty += 1
            self._first_empty = self._first_empty or self._articles
            return
        digest = hashlib.md5(stripped).digest()
        self.documents.append((int.from_bytes(digest[:8], "big"), self._articles, len(stripped)))
        self._count_marks(stripped)
        self._count_own_lines(stripped)
        if not text.isascii():
            counted.garbled += len(_GARBLED.findall(text))
            counted.replaced += text.count("\ufffd")

    def _count_marks(self, article: bytes) -> None:
        for kind, (needles, pattern) in MARKS.items():
            if not any(needle in article for needle in needles):
                continue
            found = pattern.findall(article)
            if kind == "entities":
                found = [mark for mark in found if mark[1:2] == b"#" or mark[1:] in _ENTITIES]
            self.counted.markup += len(found)
            self._marked[kind] += bool(found)

    def _count_own_lines(self, article: bytes) -> None:
        """Count a document's repeated lines, and the documents that have each line.

        The halves of a document of one line are compared instead. The counts of documents are lower bounds if there are
        more than _MOST_LINES distinct lines: lines seen once so far are then dropped (Manku and Motwani, "Approximate
        Frequency Counts over Data Streams", VLDB 2002).
        """
        counted, lines = self.counted, article.split(b"\n")
        counted.documents += 1
        counted.one_line += len(lines) - lines.count(b"") == 1
        long = [line for line in lines if len(line) >= _LONG]
        different = set(long)
        own = sum(map(len, long)) - sum(map(len, different)) if len(different) < len(long) else 0
        if len(lines) == 1 and len(article) >= 2 * _LONG:
            half = len(article) // 2
            own = half if article[:half].strip() == article[-half:].strip() else 0
        if own >= _TWOFOLD * len(article):
            counted.twofold += 1
            counted.first_twofold = counted.first_twofold or self._articles
        self._shared.update([line[:_SHOWN] for line in different])
        if len(self._shared) > _MOST_LINES:
            kept = {line: count for line, count in self._shared.items() if count > 1}
            self._shared = collections.Counter(dict(collections.Counter(kept).most_common(_MOST_LINES // 2)))

    def _count_lines(self, text: bytes) -> None:
        """Count bytes, words and lines."""
        counted, data = self.counted, np.frombuffer(text, np.uint8)
        counted.bytes += np.bincount(data, minlength=256)
        ends = np.flatnonzero(data == _NEWLINE)
        starts = np.concatenate([[0], ends[:-1] + 1])
        begins_word = data > _SPACE
        begins_word[1:] &= data[:-1] <= _SPACE
        words = np.add.reduceat(begins_word, starts, dtype=np.int64)
        lines, sizes = text.split(b"\n"), ends - starts
        unbroken = np.flatnonzero((words == 1) & (sizes >= _UNBROKEN)).tolist()
        counted.unbroken += sum(lines[line].isascii() for line in unbroken)
        counted.words += int(words.sum())
        is_line = sizes > 0
        counted.lines += int(is_line.sum())
        before = np.concatenate([[0], np.cumsum((data & _CONTINUING_BITS) != _CONTINUING)])
        lengths = (before[ends] - before[starts])[is_line]
        steps = np.log2(np.maximum(lengths, 1)) * _LENGTH_STEPS
        counted.line_lengths += np.bincount(np.minimum(steps.astype(np.int64), 63), minlength=64)

    def statistics(self) -> TextStatistics:
        """Return the statistics of the text so far."""
        often = sorted((-count, line) for line, count in self._shared.items() if count > 1)
        return dataclasses.replace(
            self.counted,
            shared_lines=tuple((-count, line.decode("utf-8", "ignore")) for count, line in often[:_SHARED]),
            marked=dict(self._marked),
        )

    def findings(self) -> Iterator[Finding]:
        """Yield the faults that no text shard may have."""
        path, again = self._item.path, "make or fetch the file again"
        if self._not_utf8:
            line, byte = self._not_utf8
            what = f"this text is not UTF-8 (byte 0x{byte:02X}); {again}"
            yield finding("documents", path, what, at=("line", line), count=self._bad_articles)
        if self._hole:
            what = f"there are NUL bytes instead of text, as a full disk or a crash leaves them; {again}"
            yield finding("documents", path, what, at=("line", self._hole))
        if self._articles == 1 and self._is_unended and self._item.expected.size is None:
            what = (
                "no blank line ends a document, so this is no text shard (a sentence a line, and a blank line after "
                "each document); make shards of it with `maskmill extract`"
            )
            yield finding("documents", path, what)
        if self._empty:
            what = "this document is empty, as the reference's chain leaves some; it gives no example"
            yield finding("documents", path, what, "note", at=("document", self._first_empty), count=self._empty)
