"""Records of data sets one after another, each with a hash, and what two of them differ in, shown as words.

Records are rows of examples, or documents of text shards. Two of one kind are the same if their hashes are (but for one
chance in 2^64), whatever format they are in.
"""

import abc
import dataclasses
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.inspection.decoding import DecodedPiece
from maskmill.inspection.shown_text import shown
from maskmill.reading.block_reader import Block, Rows
from maskmill.reading.byte_ranges import ByteRanges, forward, open_range_file
from maskmill.reading.data_set import DataSet, ReadColumn
from maskmill.reading.kernels.row_hashes import add_column
from maskmill.reading.opening import reader_of
from maskmill.records.features import OF_MASKS
from maskmill.records.tfrecord import unpacked
from maskmill.verification.compared_parts import Part

_READ_BYTES = 1 << 22
_BLANK_LINE = b"\n\n"
_BESIDE = 6  # pieces or words on each side of the difference that are shown
_MOST_CHARACTERS = 160


@dataclasses.dataclass(kw_only=True, eq=False)
class Batch(abc.ABC):
    """Neighbouring records; a slice of a batch is one, too.

    Attributes:
      first: the number of the first one in the stream, from 0.
      hashes: uint64[records].
      file: where they are.
      skip: how many records that were read with them stand in front of the first one.
    """

    first: int
    hashes: npt.NDArray[np.uint64]
    file: str
    skip: int = 0

    def __len__(self) -> int:
        return len(self.hashes)

    def __getitem__(self, part: slice) -> "Batch":
        start, _, _ = part.indices(len(self))
        return dataclasses.replace(self, first=self.first + start, hashes=self.hashes[part], skip=self.skip + start)

    @abc.abstractmethod
    def place(self, record: int) -> int:
        """Where record `record` of the batch, from 0, is in its file: as people count, from 1."""

    @abc.abstractmethod
    def text_hashes(self) -> npt.NDArray[np.uint64]:
        """The hashes of the records' text alone, masks undone."""


@dataclasses.dataclass(kw_only=True, eq=False)
class RowBatch(Batch):
    """Rows of a block. shared: the columns that are compared, by feature with their widths in the comparison."""

    block: Block
    rows: Rows
    columns: Mapping[str, ReadColumn]
    shared: Mapping[str, int]

    def place(self, record: int) -> int:
        return self.block.first + self.skip + record + 1

    def text_hashes(self) -> npt.NDArray[np.uint64]:
        hashes, which = np.zeros(len(self), np.uint64), slice(self.skip, self.skip + len(self))
        for feature in ("input_ids", "segment_ids", "next_sentence_labels"):
            if feature in self.shared:
                if feature == "input_ids":
                    values = self.rows.original_pieces(which)
                else:
                    values = _integers(self.rows.arrays[feature][which])
                _add(hashes, values, self.columns[feature], self.shared[feature])
        return hashes

    def values(self, record: int, feature: str) -> npt.NDArray[Any]:
        """The values of a record's column, filled up to the width in the comparison."""
        column, values = self.columns[feature], self.rows.arrays[feature][self.skip + record]
        fill: Any = values[-1] if column.fill is None and len(values) else column.fill or 0
        return np.concatenate([values, np.full(self.shared[feature] - len(values), fill, values.dtype)])


def _integers(values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Values as int32[rows, width]; floats keep their bits."""
    if values.dtype == np.float32:
        values = (values + np.float32(0)).view(np.int32)  # -0.0 becomes 0.0
    return np.array(values, np.int32)


def _add(hashes: npt.NDArray[np.uint64], values: npt.NDArray[np.int32], column: ReadColumn, width: int) -> None:
    add_column(hashes, values, width, column.fill or 0, column.fill is None)


def rows_of(data_set: DataSet, ranges: ByteRanges, shared: Mapping[str, int]) -> Iterator[RowBatch]:
    """The rows of a data set, in order, a block at a time.

    Args:
      data_set: the data set.
      ranges: reads it.
      shared: which columns count, by feature, and how wide they are taken to be: as wide as in either data set.

    Raises:
      DamagedBlockError: a record is damaged.
      RunFailedError: a file cannot be read.
    """
    columns = {column.feature: column for column in data_set.columns}
    reader, first = reader_of(data_set, forward(ranges)), 0
    try:
        for number, file in enumerate(data_set.files):
            for at in range(0, file.samples, reader.block_samples):
                block = Block(number, at, min(reader.block_samples, file.samples - at))
                rows, every = Rows(data_set.columns, block.count), np.arange(block.count)
                reader.decode(reader.fetch(block), block, every, every, rows)
                hashes = np.zeros(block.count, np.uint64)
                for feature, width in shared.items():
                    _add(hashes, _integers(rows.arrays[feature]), columns[feature], width)
                batch = RowBatch(
                    first=first, hashes=hashes, file=file.path, block=block, rows=rows, columns=columns, shared=shared
                )
                yield batch
                first += block.count
    finally:
        reader.close()


@dataclasses.dataclass(kw_only=True, eq=False)
class DocumentBatch(Batch):
    """Documents of a text shard. documents: without the blank line behind each. line: where the first begins."""

    documents: Sequence[bytes]
    line: int

    def place(self, record: int) -> int:
        return self.line + sum(map(_lines_of, self.documents[: self.skip + record]))

    def text_hashes(self) -> npt.NDArray[np.uint64]:
        return self.hashes


def _lines_of(document: bytes) -> int:
    """The lines of a document with the blank one behind it."""
    return document.count(b"\n") + bool(document) + 1


def documents_of(paths: Sequence[str], ranges: ByteRanges) -> Iterator[DocumentBatch]:
    """The documents of text shards, gzipped or not, in order, a few megabytes at a time.

    A blank line ends a document; a second one is an empty document.

    Raises:
      UnusableInputError, RunFailedError: a file cannot be read.
    """
    first = 0
    for path in paths:
        line = 1
        for documents in _documents_of_file(path, ranges):
            digests = b"".join(hashlib.blake2b(document, digest_size=8).digest() for document in documents)
            hashes = np.frombuffer(digests, np.uint64)
            yield DocumentBatch(first=first, hashes=hashes, file=path, documents=documents, line=line)
            first += len(documents)
            line += sum(map(_lines_of, documents))


def _documents_of_file(path: str, ranges: ByteRanges) -> Iterator[list[bytes]]:
    content = unpacked(open_range_file(path, ranges), path)
    waiting: list[bytes] = []
    while block := content.read(_READ_BYTES):
        waiting.append(block)
        if _BLANK_LINE in (waiting[-2][-1:] + block if len(waiting) > 1 else block):
            *whole, rest = b"".join(waiting).split(_BLANK_LINE)
            waiting = [rest] if rest else []
            yield [document for piece in whole for document in _split_piece(piece)]
    rest = b"".join(waiting)
    if rest:
        text = rest.lstrip(b"\n")
        yield [*[b""] * (len(rest) - len(text)), *([text.removesuffix(b"\n")] if text else [])]


def _split_piece(piece: bytes) -> list[bytes]:
    """The documents of what stands before two line feeds: empty ones first."""
    text = piece.lstrip(b"\n")
    line_feeds = len(piece) - len(text)
    return [*[b""] * line_feeds, text] if text else [b""] * (line_feeds + len(_BLANK_LINE))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shown:
    """A record as a message shows it.

    Attributes:
      file: where it is.
      what: what its place counts: "record" or "line".
      record: its place in the file, from 1.
      words: those around the difference, in quotation marks.
    """

    file: str
    what: str
    record: int
    words: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """A place where two parts differ.

    Attributes:
      number: of the record in both parts, from 1.
      here, there: the record; None: the part has ended before.
      columns: those that differ; empty for text.
    """

    number: int
    here: Shown | None
    there: Shown | None
    columns: tuple[str, ...] = ()


def text_difference(number: int, here: tuple[Batch, int] | None, there: tuple[Batch, int] | None) -> Difference:
    """How two documents differ. here, there: each a batch and the document's place in it; None: there is none.

    number: of the document, from 1.
    """
    at = _common(*(None if place is None else _document(*place) for place in (here, there)))

    def show(place: tuple[Batch, int] | None) -> Shown | None:
        if place is None:
            return None
        batch, document = place[0], _document(*place)
        line = batch.place(place[1]) + document.count(b"\n", 0, at)
        words = _quoted(_around(document, at)) if document else "an empty document"
        return Shown(file=batch.file, what="line", record=line, words=words)

    return Difference(number=number, here=show(here), there=show(there))


def _common(here: bytes | None, there: bytes | None) -> int:
    """How many bytes two documents begin with alike."""
    if here is None or there is None:
        return 0
    count = min(len(here), len(there))
    differs = np.frombuffer(here, np.uint8, count) != np.frombuffer(there, np.uint8, count)
    return int(differs.argmax()) if differs.any() else count


def _document(batch: Batch, record: int) -> bytes:
    if not isinstance(batch, DocumentBatch):
        raise TypeError("these are no documents")
    return batch.documents[batch.skip + record]


def _around(document: bytes, at: int) -> str:
    """The words around a byte of a document, in its line."""
    start = document.rfind(b"\n", 0, at) + 1
    end = document.find(b"\n", at)
    line = document[start : len(document) if end < 0 else end]
    before = re.split(rb"(?<=\s)", line[: at - start])
    after = re.split(rb"(?<=\s)", line[at - start :])
    text = b"".join([*before[-_BESIDE - 1 :], *after[: _BESIDE + 1]]).decode(errors="backslashreplace").strip()
    return text or "the end of the document" if at >= len(document) else text


def row_difference(
    number: int, here: tuple[Batch, int] | None, there: tuple[Batch, int] | None, parts: tuple[Part, Part]
) -> Difference:
    """How two rows differ; as `text_difference`. parts: those that they are of."""
    vocabularies = [part.vocabulary() for part in parts]
    columns, at = ((), 0) if here is None or there is None else _where_rows_differ(here, there)

    def show(place: tuple[Batch, int] | None, part: Part) -> Shown | None:
        if place is None:
            return None
        batch, record = _row(place)
        own, other = vocabularies if part is parts[0] else vocabularies[::-1]
        decoded = part.decoder(own or other).decode(batch.rows, batch.skip + record, batch.first + record)
        near = [piece for piece in decoded.pieces if at - _BESIDE <= piece.position <= at + _BESIDE]
        label = f" ({decoded.label})" if "next_sentence_labels" in columns else ""
        words = _quoted(_sentence_of(near)) + label if near else "padding"
        return Shown(file=batch.file, what="record", record=batch.place(record), words=words)

    return Difference(number=number, here=show(here, parts[0]), there=show(there, parts[1]), columns=columns)


def _row(place: tuple[Batch, int]) -> tuple[RowBatch, int]:
    if not isinstance(place[0], RowBatch):
        raise TypeError("these are no rows")
    return place[0], place[1]


def _where_rows_differ(here: tuple[Batch, int], there: tuple[Batch, int]) -> tuple[tuple[str, ...], int]:
    """The columns in which two rows differ, and the first piece of the row at which they do."""
    ours, our_row = _row(here)
    theirs, their_row = _row(there)
    columns, first = [], []
    for feature in ours.shared:
        values = ours.values(our_row, feature), theirs.values(their_row, feature)
        differs = np.flatnonzero(values[0] != values[1])
        if not len(differs):
            continue
        columns.append(feature)
        if feature in OF_MASKS:
            positions = [batch.values(row, OF_MASKS[0]) for batch, row in ((ours, our_row), (theirs, their_row))]
            at = [int(position[differs[0]]) for position in positions if differs[0] < len(position)]
            first += [position for position in at if position] or [0]
        elif feature != "next_sentence_labels":
            first.append(int(differs[0]))
    return tuple(columns), min(first, default=0)


def _sentence_of(pieces: list[DecodedPiece]) -> str:
    """Pieces as text; a place that is predicted shows what stands and what belongs there: "the [MASK=cat] sat"."""
    text = ""
    for piece in pieces:
        there = piece.surface if piece.role == "text" else piece.text
        if piece.label is not None:
            stands = {"masked": "MASK", "kept": ""}.get(piece.role, piece.text)
            there = f"[{stands}={piece.label}]"
        text += ("" if piece.goes_on or not text else " ") + there
    return text


def _quoted(text: str) -> str:
    text = shown(text)
    return f"“{text[:_MOST_CHARACTERS]}{'…' if len(text) > _MOST_CHARACTERS else ''}”"
