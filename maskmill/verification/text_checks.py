"""Checks of a text shard by itself: its characters, and what it is counted to have."""

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping

import numpy as np

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.storage import files
from maskmill.verification import scratch
from maskmill.verification.findings import Finding
from maskmill.verification.pieces import Piece, TextStatistics
from maskmill.verification.text_statistics import TextCounter

_BLOCK_BYTES = 1 << 23
_SEPARATOR = b"\n\n"  # between two articles
_HOLE = bytes(512)  # so many NULs in a row are what a full disk leaves, or a crash


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextResult:
    """What a text shard gave; the fields are those of pieces.PieceResult.

    hashes: "documents", a table (scratch.py) of uint64[documents, 2]: the hash of each article's text without the white
    space around it; and its number with its words, packed. Of eval text "md5", too: the hashes of the articles as
    eval.md5 has them, a line each.
    """

    findings: tuple[Finding, ...] = ()
    looked_at: Mapping[str, int] = dataclasses.field(default_factory=dict)
    skipped: Mapping[str, str] = dataclasses.field(default_factory=dict)
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    statistics: TextStatistics | None = None
    hashes: Mapping[str, str] = dataclasses.field(default_factory=dict)


def check_text(piece: Piece, ranges: ByteRanges) -> TextResult:
    """Reads a text shard once; nothing that is wrong with it stops that, but a file that cannot be read."""
    reading = _Reading(piece)
    skipped = {}
    try:
        reading.size = ranges.size(piece.path)
        for articles in read_articles(piece.path, ranges):
            reading.add(articles)
    except (UnusableInputError, RunFailedError):
        # Whoever looked at the file's size has said what is wrong with it.
        skipped["documents"] = f"{piece.path} cannot be read to its end"
    statistics = reading.counter.statistics(empty=reading.empty, size=reading.size)
    return TextResult(
        findings=tuple(reading.findings()),
        looked_at={"documents": statistics.lines},
        skipped=skipped,
        counts={"sentences": statistics.lines},
        statistics=statistics,
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
            yield Finding(
                check="documents",
                file=path,
                record=line,
                expected="UTF-8",
                found=f"byte 0x{byte:02X}",
                message=f"{path}, line {line:,}: this text is not UTF-8 (byte 0x{byte:02X}); make or fetch the file "
                "again.",
                count=self._bad_articles,
            )
        if self._hole:
            yield Finding(
                check="documents",
                file=path,
                record=self._hole,
                expected="text",
                found=f"{len(_HOLE)} NUL bytes or more",
                message=f"{path}, line {self._hole:,}: there are NUL bytes instead of text, as a full disk or a crash "
                "leaves them; make or fetch the file again.",
            )
        if self._articles == 1 and self._is_unended and self._piece.expected.size is None:
            yield Finding(
                check="documents",
                file=path,
                expected="a blank line behind each document",
                found="none",
                message=f"{path}: no blank line ends a document, so this is no text shard (a sentence a line, and a "
                "blank line behind each document); make shards of it with `maskmill extract`.",
            )
        if self.empty:
            yield Finding(
                check="documents",
                severity="note",
                file=path,
                record=self._first_empty,
                expected="documents with text",
                found=f"{self.empty:,} without",
                message=f"{path}, document {self._first_empty:,}: this document is empty, as the reference's chain "
                "leaves some; it gives no example.",
                count=self.empty,
            )
