"""Checks of a text shard by itself: its characters, and what it is counted to have, article by article."""

import collections
import dataclasses
import hashlib
import unicodedata
from collections.abc import Iterator

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
_NEIGHBOUR = 20  # bytes of a line that is the same as the one before; shorter ones are refrains, marks of a dialogue
_CHUNK = 1 << 16  # bytes that are counted at a time: np.bincount makes eight of each
_LEAD, _FIRST_LEAD = 0xC3, 0xC0  # the first byte of À to ÿ, and the first that starts a character beyond ASCII
_CONTINUING, _CONTINUING_BITS = 0x80, 0xC0  # what other bytes of it have in common
_BEGINNING = 200  # characters of a document whose letters are counted
_MARKS = (b"[[", b"]]", b"{{", b"}}", b"'''", b"</", b"&amp;", b"&quot;", b"&nbsp;", b"&lt;", b"&gt;", b"&#")
_REPLACEMENT = "\ufffd".encode()
_C1 = (0xC2, 0x80, 0x9F)  # the first byte of a control character that no text has, and from where to where the second
_LEADS = (0x82, 0x83, 0x90, 0x91)  # of Â, Ã, Ð and Ñ the second byte; behind them none of U+00A0 to U+00BF stands
_EURO = "â€".encode()  # a quotation mark or a dash, read as Windows-1252
_ENDS = np.frombuffer(b".!?:;,)]}\"'*-", np.uint8)

_BLOCK_BYTES = 1 << 23
_SEPARATOR = b"\n\n"  # between two articles
_HOLE = bytes(512)  # so many NULs in a row are what a full disk leaves, or a crash


class TextCounter:
    """Counts what is in whole articles of text.

    Where a file has more than _MOST_LINES distinct lines at a time, those that were there once so far are forgotten, so
    the counts of rare repetitions are lower bounds (Manku and Motwani, "Approximate Frequency Counts over Data
    Streams", VLDB 2002).
    """

    def __init__(self) -> None:
        self._counted = TextStatistics()
        self._lines: collections.Counter[bytes] = collections.Counter()

    def add(self, articles: list[bytes], characters: int) -> None:
        """Adds articles, as they stand between blank lines; `characters` is how many they have, newlines aside."""
        text = b"\n\n".join(articles) + b"\n"
        data = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(data == _NEWLINE)
        starts = np.concatenate([[0], ends[:-1] + 1])
        is_text = data > _SPACE
        begins_word = is_text.copy()
        begins_word[1:] &= ~is_text[:-1]
        words = np.add.reduceat(begins_word, starts, dtype=np.int64)
        is_line = ends > starts
        lines = text.split(b"\n")
        self._lines.update(lines[line][:_SHOWN] for line in np.flatnonzero(words >= LONG_LINE).tolist())
        self._forget()
        lengths = ends - starts
        unbroken = np.flatnonzero((words == 1) & (lengths >= _UNBROKEN)).tolist()
        same_length = np.flatnonzero((lengths[1:] == lengths[:-1]) & (lengths[1:] >= _NEIGHBOUR)).tolist()
        counted = self._counted
        counted.unbroken += sum(lines[line].isascii() for line in unbroken)
        counted.doubled += sum(lines[line] == lines[line + 1] for line in same_length)
        sizes = np.array([sum(map(bool, article.split(b"\n"))) for article in articles], np.int64)
        sizes = sizes[sizes > 0]
        counted.document_lines += np.bincount(np.log2(sizes).astype(np.int64), minlength=len(counted.document_lines))
        self._count_characters(text, data)
        self._count_letters(articles)
        self._count_lines(data, starts[is_line], ends[is_line])
        counted.documents += len(sizes)
        counted.lines += int(is_line.sum())
        counted.characters += characters
        counted.words += int(words.sum())

    def _count_characters(self, text: bytes, data: npt.NDArray[np.uint8]) -> None:
        """Counts bytes, characters that are broken, and marks."""
        for start in range(0, len(data), _CHUNK):
            self._counted.bytes += np.bincount(data[start : start + _CHUNK], minlength=256)
        first, low, high = _C1
        garbled = np.count_nonzero((data[:-1] == first) & (data[1:] >= low) & (data[1:] <= high))
        places = np.flatnonzero(data[:-3] == _LEAD)
        behind = data[places + 1], data[places + 2], data[places + 3]
        garbled += np.count_nonzero(np.isin(behind[0], _LEADS) & (behind[1] == first) & (behind[2] > high))
        self._counted.replaced += text.count(_REPLACEMENT)
        self._counted.garbled += int(garbled) + text.count(_EURO)
        self._counted.markup += sum(map(text.count, _MARKS))

    def _count_letters(self, articles: list[bytes]) -> None:
        """Counts letters at the beginnings of documents, of scripts that have capitals."""
        for article in articles:
            beginning = article[:_BEGINNING].decode("utf-8", "ignore")
            capitals = sum(map(str.isupper, beginning))
            self._counted.capitals += capitals
            self._counted.letters += capitals + sum(map(str.islower, beginning))

    def _count_lines(
        self, data: npt.NDArray[np.uint8], starts: npt.NDArray[np.intp], ends: npt.NDArray[np.intp]
    ) -> None:
        """Counts lines that end within a sentence, by their characters."""
        if not len(starts):
            return
        before = np.concatenate([[0], np.cumsum((data & _CONTINUING_BITS) != _CONTINUING)])
        lengths = before[ends] - before[starts]
        last, unended = data[ends - 1], self._counted.unended
        is_within = ~np.isin(last, _ENDS) & (lengths < len(unended))
        for line in np.flatnonzero(is_within & (last >= _CONTINUING)).tolist():
            character = data[ends[line] - min(4, ends[line]) : ends[line]].tobytes().decode("utf-8", "ignore")[-1:]
            is_within[line] = not character or unicodedata.category(character)[0] != "P"
        unended += np.bincount(lengths[is_within], minlength=len(unended))
        self._counted.longest_characters = max(self._counted.longest_characters, int(lengths.max()))

    def _forget(self) -> None:
        """Forgets lines that were there once, where there are too many."""
        if len(self._lines) > _MOST_LINES:
            self._lines = collections.Counter({line: count for line, count in self._lines.items() if count > 1})
            if len(self._lines) > _MOST_LINES:
                self._lines = collections.Counter(dict(self._lines.most_common(_MOST_LINES // 2)))

    def statistics(self, size: int) -> TextStatistics:
        """What was counted so far, of `size` bytes."""
        repeated = [(count, line) for line, count in self._lines.items() if count > 1]
        repeated.sort(key=lambda entry: (-entry[0], entry[1]))
        shown = tuple((count, line.decode("utf-8", "ignore")) for count, line in repeated[:_REPEATED])
        return dataclasses.replace(self._counted, size=size, repeated_lines=shown)


@makes_check("file", "text")
def check_text(piece: Piece, ranges: ByteRanges) -> PieceResult:
    """Reads a text shard once; nothing that is wrong with it stops that, but a file that cannot be read.

    Returns:
      `hashes` has "documents", a table (scratch.py) of uint64[documents, 2]: the hash of each article's text without
      the white space around it; and its number with its words, packed. Of eval text "md5", too: the hashes of the
      articles as eval.md5 has them, a line each.
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
    statistics = reading.counter.statistics(reading.size)
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
        self.counter = TextCounter()
        self.size = self.empty = 0
        self._lines = self._articles = 0
        self._documents: list[tuple[int, int, int]] = []  # hash, number, words
        self._md5: list[str] = []
        self._first_empty = 0
        self._not_utf8: list[tuple[int, int]] = []  # line and byte of the first, then none
        self._bad_articles = 0
        self._hole = 0  # the line
        self._is_unended = False  # whether no blank line stands behind the last articles

    def add(self, articles: list[bytes]) -> None:
        """Takes articles in."""
        characters = 0
        self._is_unended = sum(map(len, articles)) == self.size
        for article in articles:
            self._articles += 1
            characters += self._add_article(article)
            self._lines += article.count(b"\n") + 2
        self.counter.add(articles, characters)

    def _add_article(self, article: bytes) -> int:
        """Takes an article in; returns how many characters it has, newlines aside."""
        try:
            text = article.decode()
        except UnicodeDecodeError as error:
            self._bad_articles += 1
            if not self._not_utf8:
                line = self._lines + article.count(b"\n", 0, error.start) + 1
                self._not_utf8.append((line, article[error.start]))
            text = article.decode("utf-8", "replace")
        hole = article.find(_HOLE)
        if hole >= 0 and not self._hole:
            self._hole = self._lines + article.count(b"\n", 0, hole) + 1
        stripped = article.strip()
        if self._piece.split == "eval":
            self._md5.append(hashlib.md5(text.rstrip().encode("utf-8", "replace")).hexdigest())
        if stripped:
            digest = hashlib.md5(stripped).digest()
            self._documents.append((int.from_bytes(digest[:8], "big"), self._articles, len(stripped.split())))
        else:
            self.empty += 1
            self._first_empty = self._first_empty or self._articles
        return len(text) - text.count("\n")

    def write_hashes(self) -> dict[str, str]:
        """Writes the hashes to the scratch directory; returns the paths by what they hold."""
        hashes, numbers, words = np.array(self._documents, np.uint64).reshape(-1, 3).T
        packed = scratch.pack_row(numbers, words.astype(np.int64), np.zeros(len(words), np.int64))
        path = scratch.write_table(self._piece, "documents", np.stack([hashes, packed], axis=1))
        if path is None:
            return {}
        if self._piece.split != "eval":
            return {"documents": path}
        listed = f"{path}.md5"
        files.write_bytes(listed, "".join(f"{md5}\n" for md5 in self._md5).encode())
        return {"documents": path, "md5": listed}

    def findings(self) -> Iterator[Finding]:
        """What is wrong with the text, whoever made it."""
        path = self._piece.path
        if self._not_utf8:
            line, byte = self._not_utf8[0]
            what = f"this text is not UTF-8 (byte 0x{byte:02X}); make or fetch the file again"
            count = self._bad_articles
            yield finding("documents", path, "UTF-8", f"byte 0x{byte:02X}", what, at=("line", line), count=count)
        if self._hole:
            found = f"{len(_HOLE)} NUL bytes or more"
            why = "as a full disk or a crash leaves them"
            what = f"there are NUL bytes instead of text, {why}; make or fetch the file again"
            yield finding("documents", path, "text", found, what, at=("line", self._hole))
        if self._articles == 1 and self._is_unended and self._piece.expected.size is None:
            what = (
                "no blank line ends a document, so this is no text shard (a sentence a line, and a blank line behind "
                "each document); make shards of it with `maskmill extract`"
            )
            yield finding("documents", path, "a blank line behind each document", "none", what)
        if self.empty:
            expected, found, at = "documents with text", f"{self.empty:,} without", ("document", self._first_empty)
            what = "this document is empty, as the reference's chain leaves some; it gives no example"
            yield finding("documents", path, expected, found, what, "note", at=at, count=self.empty)
