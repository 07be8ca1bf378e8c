"""Reads a text shard once: what is wrong with its characters, and what it is counted to have, document by document."""

import collections
import dataclasses
import hashlib
import html.entities
import re
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.storage import files
from maskmill.verification import scratch
from maskmill.verification.findings import Finding, finding, makes_check
from maskmill.verification.pieces import Piece, PieceResult, TextStatistics

LONG_LINE = 10  # words; shorter lines are often the same: headings, names
_SHOWN = 200  # bytes of a repeated line that are kept
_MOST_LINES = 200_000  # distinct lines that are counted at a time
_REPEATED = 64  # most repeated lines of a file
_SPACE, _NEWLINE = 32, 10
_UNBROKEN = 60  # bytes of a line without a space, where it is ASCII: no script that has no spaces
_OWN_LINE = 20  # bytes of a line that is there before; shorter ones are refrains, marks of a dialogue
_TWOFOLD = 1 / 3  # of a document's text that is there before in it
_CHUNK = 1 << 16  # bytes that are counted at a time: np.bincount makes eight of each
_CONTINUING, _CONTINUING_BITS = 0x80, 0xC0  # what the bytes of a character but the first have in common
_ENDS = np.frombuffer(b".!?:;,)]}\"'*-", np.uint8)
_LENGTH_STEPS = 4  # of the logarithm of a line's length

_TEX = rb"begin|cdot|cdots|cos|displaystyle|end|frac|geq|hat|in|infty|int|ldots|left|leq|mathbb|mathbf|mathcal|mathrm"
_TEX += rb"|operatorname|overline|partial|pi|prod|quad|right|rightarrow|sin|sqrt|sum|text|textbf|textit|times|to|vec"
_TAGS = rb"br|p|div|span|table|tr|td|li|ul|sub|sup|math|nowiki|ref|small|center|gallery"
# By the kind of mark: what it has in common with others, without which a text has none, and what stands for it.
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
# What UTF-8 becomes that is read as Latin-1 or Windows-1252: a control character that no text has; Â, Ã, Ð and Ñ with a
# sign after it; a quotation mark or a dash.
_GARBLED = re.compile("[\x80-\x9f]|[ÂÃÐÑ][\xa0-\xbf]|â€")

_BLOCK_BYTES = 1 << 23
_SEPARATOR = b"\n\n"  # between two articles
_HOLE = bytes(512)  # so many NULs in a row are what a full disk leaves, or a crash


class LineCounts:
    """Counts lines, in bounded memory.

    Where there are more than _MOST_LINES distinct ones at a time, those that were there once so far are forgotten, so
    the counts of rare repetitions are lower bounds (Manku and Motwani, "Approximate Frequency Counts over Data
    Streams", VLDB 2002).
    """

    def __init__(self) -> None:
        self._counts: collections.Counter[bytes] = collections.Counter()

    def add(self, lines: list[bytes]) -> None:
        """Counts lines once more."""
        self._counts.update(lines)
        if len(self._counts) > _MOST_LINES:
            self._counts = collections.Counter({line: count for line, count in self._counts.items() if count > 1})
            if len(self._counts) > _MOST_LINES:
                self._counts = collections.Counter(dict(self._counts.most_common(_MOST_LINES // 2)))

    def most(self) -> tuple[tuple[int, str], ...]:
        """The lines that are there most often, at least twice, and how often."""
        repeated = [(count, line) for line, count in self._counts.items() if count > 1]
        repeated.sort(key=lambda entry: (-entry[0], entry[1]))
        return tuple((count, line.decode("utf-8", "ignore")) for count, line in repeated[:_REPEATED])


@makes_check("file", "text")
def check_text(piece: Piece, ranges: ByteRanges) -> PieceResult:
    """Reads a text shard once; nothing that is wrong with it stops that, but a file that cannot be read.

    Returns:
      `hashes` has "documents", a table (scratch.py) of uint64[documents, 3]: the hash of each article's text without
      the white space around it, its number and its bytes. Of eval text "md5", too: the hashes of the articles as
      eval.md5 has them, a line each.
    """
    reading = _Reading(piece)
    skipped = {}
    try:
        reading.size = ranges.size(piece.path)
        for articles in read_articles(piece.path, ranges):
            reading.add(articles)
    except (UnusableInputError, RunFailedError):
        # Whoever looked at the file's size has said what is wrong with it.
        skipped["documents"] = f"{piece.path} cannot be read to its end"
    statistics = reading.statistics()
    return PieceResult(
        piece=piece,
        findings=tuple(reading.findings()),
        looked_at={"documents": statistics.lines},
        skipped=skipped,
        counts={"sentences": statistics.lines},
        text=statistics,
        hashes=reading.write_hashes(),
    )


def read_articles(path: str, ranges: ByteRanges, block_bytes: int = _BLOCK_BYTES) -> Iterator[list[bytes]]:
    """Yields the articles of a text shard, several at a time: what stands between blank lines, white space and all.

    What stands behind the last blank line is an article if it is not empty.

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
    """What is known of a text shard while it is read."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self.size = 0
        self._counted, self._marked = TextStatistics(), collections.Counter[str]()
        self._lines, self._shared = LineCounts(), LineCounts()
        self._unended: npt.NDArray[np.int64] = np.zeros(1024, np.int64)  # lines that end within a sentence
        self._line = self._articles = self._empty = self._first_empty = self._bad_articles = self._hole = 0
        self._documents: list[tuple[int, int, int]] = []  # hash, number, bytes
        self._md5: list[str] = []
        self._not_utf8: tuple[int, int] | None = None  # line and byte of the first
        self._is_unended = False  # whether no blank line stands behind the last articles

    def add(self, articles: list[bytes]) -> None:
        """Takes articles in."""
        self._is_unended = sum(map(len, articles)) == self.size
        for article in articles:
            self._articles += 1
            self._add_article(article)
            self._line += article.count(b"\n") + 2
        self._count_block(b"\n\n".join(articles) + b"\n")

    def _add_article(self, article: bytes) -> None:
        counted = self._counted
        try:
            text = article.decode()
        except UnicodeDecodeError as error:
            self._bad_articles += 1
            self._not_utf8 = self._not_utf8 or (
                self._line + article.count(b"\n", 0, error.start) + 1,
                article[error.start],
            )
            text = article.decode("utf-8", "replace")
        hole = article.find(_HOLE)
        if hole >= 0 and not self._hole:
            self._hole = self._line + article.count(b"\n", 0, hole) + 1
        if self._piece.split == "eval":
            self._md5.append(hashlib.md5(text.rstrip().encode("utf-8", "replace")).hexdigest())
        counted.characters += len(text) - text.count("\n")
        stripped = article.strip()
        if not stripped:
            self._empty += 1
            self._first_empty = self._first_empty or self._articles
            return
        digest = hashlib.md5(stripped).digest()
        self._documents.append((int.from_bytes(digest[:8], "big"), self._articles, len(stripped)))
        self._count_document(stripped)
        if not text.isascii():
            counted.garbled += len(_GARBLED.findall(text))
            counted.replaced += text.count("\ufffd")

    def _count_document(self, article: bytes) -> None:
        """Counts marks, and lines that the document has before; a text of one line is halved for that."""
        counted = self._counted
        counted.documents += 1
        for kind, (needles, pattern) in MARKS.items():
            if not any(needle in article for needle in needles):
                continue
            found = pattern.findall(article)
            if kind == "entities":
                found = [mark for mark in found if mark[1:2] == b"#" or mark[1:] in _ENTITIES]
            if found:
                counted.markup += len(found)
                self._marked[kind] += 1
        lines = article.split(b"\n")
        counted.document_lines[min(63, (len(lines) - lines.count(b"")).bit_length() - 1)] += 1
        long = [line for line in lines if len(line) >= _OWN_LINE]
        different = set(long)
        own = sum(map(len, long)) - sum(map(len, different)) if len(different) < len(long) else 0
        if len(lines) == 1 and len(article) >= 2 * _OWN_LINE:
            half = len(article) // 2
            own = half if article[:half].strip() == article[-half:].strip() else 0
        counted.own += own
        if own >= _TWOFOLD * len(article):
            counted.twofold += 1
            counted.first_twofold = counted.first_twofold or self._articles
        self._shared.add([line[:_SHOWN] for line in different])

    def _count_block(self, text: bytes) -> None:
        """Counts bytes, words and lines."""
        counted, data = self._counted, np.frombuffer(text, np.uint8)
        for start in range(0, len(data), _CHUNK):
            counted.bytes += np.bincount(data[start : start + _CHUNK], minlength=256)
        ends = np.flatnonzero(data == _NEWLINE)
        starts = np.concatenate([[0], ends[:-1] + 1])
        begins_word = data > _SPACE
        begins_word[1:] &= data[:-1] <= _SPACE
        words = np.add.reduceat(begins_word, starts, dtype=np.int64)
        lines, sizes = text.split(b"\n"), ends - starts
        self._lines.add([lines[line][:_SHOWN] for line in np.flatnonzero(words >= LONG_LINE).tolist()])
        unbroken = np.flatnonzero((words == 1) & (sizes >= _UNBROKEN)).tolist()
        same_size = np.flatnonzero((sizes[1:] == sizes[:-1]) & (sizes[1:] >= _OWN_LINE)).tolist()
        counted.unbroken += sum(lines[line].isascii() for line in unbroken)
        counted.doubled += sum(lines[line] == lines[line + 1] for line in same_size)
        counted.words += int(words.sum())
        is_line = sizes > 0
        counted.lines += int(is_line.sum())
        if not is_line.any():
            return
        before = np.concatenate([[0], np.cumsum((data & _CONTINUING_BITS) != _CONTINUING)])
        lengths, last = (before[ends] - before[starts])[is_line], data[ends[is_line] - 1]
        steps = np.log2(np.maximum(lengths, 1)) * _LENGTH_STEPS
        counted.line_lengths += np.bincount(np.minimum(steps.astype(np.int64), 63), minlength=64)
        is_within = (last < _CONTINUING) & ~np.isin(last, _ENDS) & (lengths < len(self._unended))
        self._unended += np.bincount(lengths[is_within], minlength=len(self._unended))
        counted.longest = max(counted.longest, int(lengths.max()))

    def statistics(self) -> TextStatistics:
        """What was counted."""
        longest = self._counted.longest
        cut = int(self._unended[longest]) if longest < len(self._unended) else 0
        return dataclasses.replace(
            self._counted,
            size=self.size,
            repeated_lines=self._lines.most(),
            shared_lines=self._shared.most(),
            marked=dict(self._marked),
            cut=cut,
        )

    def write_hashes(self) -> dict[str, str]:
        """Writes the hashes to the scratch directory; returns the paths by what they hold."""
        hashes, numbers, sizes = np.array(self._documents, np.uint64).reshape(-1, 3).T
        written = scratch.write_table(self._piece, "documents", [hashes, numbers, sizes])
        if not written or self._piece.split != "eval":
            return written
        listed = f"{written['documents']}.md5"
        files.write_bytes(listed, "".join(f"{md5}\n" for md5 in self._md5).encode())
        return written | {"md5": listed}

    def findings(self) -> Iterator[Finding]:
        """What is wrong with the text, whoever made it."""
        path, again = self._piece.path, "make or fetch the file again"
        if self._not_utf8:
            line, byte = self._not_utf8
            what, count = f"this text is not UTF-8 (byte 0x{byte:02X}); {again}", self._bad_articles
            yield finding("documents", path, "UTF-8", f"byte 0x{byte:02X}", what, at=("line", line), count=count)
        if self._hole:
            found = f"{len(_HOLE)} NUL bytes or more"
            what = f"there are NUL bytes instead of text, as a full disk or a crash leaves them; {again}"
            yield finding("documents", path, "text", found, what, at=("line", self._hole))
        if self._articles == 1 and self._is_unended and self._piece.expected.size is None:
            what = (
                "no blank line ends a document, so this is no text shard (a sentence a line, and a blank line behind "
                "each document); make shards of it with `maskmill extract`"
            )
            yield finding("documents", path, "a blank line behind each document", "none", what)
        if self._empty:
            expected, found, at = "documents with text", f"{self._empty:,} without", ("document", self._first_empty)
            what = "this document is empty, as the reference's chain leaves some; it gives no example"
            yield finding("documents", path, expected, found, what, "note", at=at, count=self._empty)
