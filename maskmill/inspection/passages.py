"""Finds where a text is in text shards and the rows of examples that hold it: what became of an article."""

import collections
import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.inspection.decoding import DecodedExample
from maskmill.inspection.opened_examples import OpenedExamples
from maskmill.inspection.opened_texts import OpenedTexts, TextDocument
from maskmill.reading.byte_ranges import forward
from maskmill.reading.kernels.row_hashes import add_column

_PROBES = 8  # lines of a document that are looked for
_ENOUGH = 3  # of them in one document: no other shard is searched
_FEWEST = 2
_PLACES = 8  # documents that may have the same line
_ROWS = 1024  # read at a time
_GRAM = 8  # pieces in a row that tell a text from others


def find_text(opened: OpenedTexts, lines: Sequence[bytes]) -> TextDocument | None:
    """The document in text shards that has these lines, or most of the longest of them; None if none has two.

    Shards are searched as bytes, about 1 GB a second.
    """
    probes = sorted(dict.fromkeys(line for line in lines if line), key=len, reverse=True)[:_PROBES]
    wanted = tuple(_text(line) for line in lines)
    best, best_votes = None, min(_FEWEST, len(probes)) - 1
    for file in opened.files:
        content = bytes(forward(opened.ranges).read(file.path, 0, file.size).data)
        votes = collections.Counter(start for probe in probes for start in _documents_with(content, probe))
        for start, count in votes.most_common(_PLACES):
            document = _document(file.path, content, start)
            if document.lines == wanted:
                return document
            if count > best_votes:
                best, best_votes = document, count
        if best_votes >= min(_ENOUGH, len(probes)):
            break
    return best


def _documents_with(content: bytes, probe: bytes) -> set[int]:
    """Where documents start that have a line, or a part of one: the first few."""
    starts: set[int] = set()
    at = content.find(probe)
    while at >= 0 and len(starts) < _PLACES:
        blank = content.rfind(b"\n\n", 0, at)
        starts.add(blank + 2 if blank >= 0 else 0)
        end = content.find(b"\n\n", at)
        at = content.find(probe, end) if end >= 0 else -1
    return starts


def _document(path: str, content: bytes, start: int) -> TextDocument:
    start += len(content[start:]) - len(content[start:].lstrip(b"\n"))
    end = content.find(b"\n\n", start)
    text = content[start : len(content) if end < 0 else end].removesuffix(b"\n")
    before = content[:start]
    return TextDocument(
        file=path,
        document=sum(1 for part in before.split(b"\n\n") if part.strip()) + 1,
        line=before.count(b"\n") + 1,
        lines=tuple(_text(line) for line in text.split(b"\n")),
    )


def _text(line: bytes) -> str:
    return line.decode(errors="backslashreplace")


@dataclasses.dataclass(frozen=True, kw_only=True)
class HoldingRows:
    """The rows that hold a text.

    files: that were searched. searched: rows in them. count: rows that hold a part of the text. examples: those that
    hold most of it.
    """

    files: tuple[str, ...]
    searched: int
    count: int
    examples: tuple[DecodedExample, ...]


def find_rows(opened: OpenedExamples, files: Sequence[str], ids: npt.NDArray[np.int32], most: int) -> HoldingRows:
    """The rows of some files of a data set that hold a part of a text, masks undone: some 16 of its pieces, or all.

    Args:
      opened: the data set.
      files: of it, by their paths.
      ids: the pieces of the text, int32[n].
      most: how many rows are decoded: those that hold most of it, the earlier one of two that hold as much.
    """
    gram = min(_GRAM, len(ids))
    if gram == 0:
        return HoldingRows(files=tuple(files), searched=0, count=0, examples=())
    wanted = np.unique(_grams(ids[None], gram))
    best: list[tuple[int, int]] = []
    count = searched = 0
    for first, ids_of_rows in _rows_of(opened, files):
        held = _counts_among(_grams(ids_of_rows, gram), wanted)
        holds = np.flatnonzero(held >= min(_GRAM, len(wanted)))
        searched += len(held)
        count += len(holds)
        best = sorted([*best, *((-int(held[row]), first + int(row)) for row in holds)])[:most]
    examples = tuple(opened.decoded(sample) for _, sample in best)
    return HoldingRows(files=tuple(files), searched=searched, count=count, examples=examples)


def _rows_of(opened: OpenedExamples, files: Sequence[str]) -> Iterator[tuple[int, npt.NDArray[np.int32]]]:
    """The pieces of rows, masks undone: the number of the first sample, and int32[rows, width]."""
    at = 0
    for file in opened.data_set.files:
        if file.path in files:
            for first in range(at, at + file.samples, _ROWS):
                count = min(_ROWS, at + file.samples - first)
                yield first, opened.rows(first, count).original_pieces(slice(count))
        at += file.samples


def _grams(ids: npt.NDArray[np.int32], gram: int) -> npt.NDArray[np.uint64]:
    """Hashes of so many pieces in a row, at each place of rows: uint64[rows, width - gram + 1]."""
    rows, width = len(ids), max(0, ids.shape[1] - gram + 1)
    windows = np.lib.stride_tricks.sliding_window_view(ids, gram, axis=1) if width else ids[:, :0]
    hashes = np.zeros(rows * width, np.uint64)
    # A copy: a view may be of a type that the kernel is not compiled for.
    add_column(hashes, np.array(windows).reshape(rows * width, gram), gram, 0, False)
    return hashes.reshape(rows, width)


def _counts_among(hashes: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """How many hashes of each row are among the wanted: int64[rows]."""
    # Nearly none is, and a table of the last bits tells that 20 times as fast as a search.
    may_be = np.zeros(1 << 16, bool)
    may_be[wanted.astype(np.uint16)] = True
    rows, places = np.nonzero(may_be[hashes.astype(np.uint16)])
    return np.bincount(rows[np.isin(hashes[rows, places], wanted)], minlength=len(hashes))


@dataclasses.dataclass(frozen=True, kw_only=True)
class FoundDocument:
    """What became of an article at every stage. Texts are raw: `text.shown` makes them safe to print.

    Attributes:
      name: the title or id that was asked for.
      title, id: as the input has them; the id may be empty.
      input: the path of the input that has it.
      wikitext: of the page; empty for documents that are not wikitext.
      text: what the extraction made of it, a paragraph a line; empty if it was left out before.
      outcome: "train" or "eval": the split that it is in; else what it was counted as: "redirects",
        "disambiguation_pages", "empty" …, or why it was rejected; "absent": it is in no text shard.
      document: its place in the text shards, with its sentences as they stand there; None: it is in none.
      pieces: of each sentence, as the vocabulary of the examples has them; empty if there are no examples.
      rows: the rows that hold it, the first of them decoded; None: there are no examples.
      skipped: what could not be looked at, a sentence each.
    """

    name: str
    title: str
    id: str
    input: str
    wikitext: str
    text: str
    outcome: str
    document: TextDocument | None = None
    pieces: tuple[tuple[str, ...], ...] = ()
    rows: HoldingRows | None = None
    skipped: tuple[str, ...] = ()

    @property
    def examples(self) -> tuple[DecodedExample, ...]:
        """The first rows that hold it."""
        return () if self.rows is None else self.rows.examples
