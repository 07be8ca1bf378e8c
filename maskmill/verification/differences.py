"""What two records differ in, shown as words."""

import dataclasses
import re

import numpy as np

from maskmill.inspection.decoding import DecodedPiece
from maskmill.inspection.shown_text import shown
from maskmill.records.features import OF_MASKS
from maskmill.verification.compared_parts import Part
from maskmill.verification.record_streams import Batch, DocumentBatch, RowBatch

_BESIDE = 6  # pieces or words on each side of the difference that are shown
_MOST_CHARACTERS = 160


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
    documents = [_document(*place) if place is not None else None for place in (here, there)]
    at = _common(*documents)
    sides: list[Shown | None] = []
    for place, document in zip((here, there), documents, strict=True):
        if place is None or document is None:
            sides.append(None)
            continue
        batch, record = place
        line = batch.place(record) + document.count(b"\n", 0, at)
        words = _quoted(_around(document, at)) if document else "an empty document"
        sides.append(Shown(file=batch.file, what="line", record=line, words=words))
    return Difference(number=number, here=sides[0], there=sides[1])


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
    return batch.documents[record]


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
    sides: list[Shown | None] = []
    for place, part, vocabulary, other in zip((here, there), parts, vocabularies, vocabularies[::-1], strict=True):
        if place is None:
            sides.append(None)
            continue
        batch, record = _row(place)
        decoded = part.decoder(vocabulary or other).decode(batch.rows, record, batch.first + record)
        near = [piece for piece in decoded.pieces if at - _BESIDE <= piece.position <= at + _BESIDE]
        label = f" ({decoded.label})" if "next_sentence_labels" in columns else ""
        words = _quoted(sentence_of(near)) + label if near else "padding"
        sides.append(Shown(file=batch.file, what="record", record=batch.place(record), words=words))
    return Difference(number=number, here=sides[0], there=sides[1], columns=columns)


def _row(place: tuple[Batch, int] | None) -> tuple[RowBatch, int]:
    if place is None or not isinstance(place[0], RowBatch):
        raise TypeError("these are no rows")
    return place[0], place[1]


def _where_rows_differ(here: tuple[Batch, int] | None, there: tuple[Batch, int] | None) -> tuple[tuple[str, ...], int]:
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


def sentence_of(pieces: list[DecodedPiece]) -> str:
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
