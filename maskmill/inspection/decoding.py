"""Ids to words: rows of examples as a person reads them, whatever their format, objective and vocabulary."""

import codecs
import dataclasses
import functools
import html
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Literal

import numpy as np
import numpy.typing as npt

from maskmill.inspection.shown_text import shown
from maskmill.masking.row_masks import MaskedRows, RowMaskRules, draw_masks
from maskmill.notebooks import escaped
from maskmill.reading.block_reader import Rows
from maskmill.reading.data_set import DataSet
from maskmill.tokenization.byte_level import byte_characters
from maskmill.tokenization.vocabulary import Vocabulary

_WORDPIECE_MARK, _BYTES_MARK, _SENTENCEPIECE_MARK = "##", "Ġ", "▁"
_LABELS: Mapping[str, tuple[str, str]] = {
    "nsp": ("next sentence", "random sentence"),
    "sop": ("in order", "swapped"),
}

# What a piece is in a row. masked: predicted, and [MASK] stands there; kept: predicted, and unchanged; random:
# predicted, and another piece stands there.
PieceRole = Literal["text", "special", "masked", "kept", "random", "padding"]

# What notebooks and the report show of a piece by its role, and the colours of notebooks.
_FORMS = {
    "masked": "<mark><small>[MASK]</small>&nbsp;{word}</mark>",
    "kept": "<mark class='kept'>{word}<small>&nbsp;kept</small></mark>",
    "random": "<mark class='random'><span class='gone'>{seen}</span>&nbsp;{word}<small>&nbsp;random</small></mark>",
    "special": "<span class='special'>{seen}</span>",
}
_MARKS = (
    ".maskmill mark { background: #fde9b8; color: #4c3800; border-radius: .25em; padding: 0 .2em }"
    " .maskmill .random { background: #f8d9cf; color: #6a1f08 } .maskmill .gone { text-decoration: line-through }"
    " .maskmill .kept { background: #d9ecd8; color: #16431f } .maskmill .special { opacity: .6 }"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodedPiece:
    """A piece of a row.

    Attributes:
      position: in the row, from 0.
      id: as the model reads it.
      text: the piece of this id ("##ing").
      role: what it is.
      label: the piece to predict; None: it is not predicted.
      segment: 0 or 1.
      sequence: which sequence of a packed row it is in, from 0.
      goes_on: whether it goes on a word: no blank stands before it.
      surface: what the text has here, masks undone and without the vocabulary's marks: "ing" for "##ing". All pieces
        together, with a blank before each that does not go on a word, are the row as text. Raw: before it is printed,
        `text.shown` must escape it, as it must any text of a data set.
    """

    position: int
    id: int
    text: str
    role: PieceRole
    label: str | None = None
    segment: int = 0
    sequence: int = 0
    goes_on: bool = False
    surface: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodedExample:
    """A row of examples as a person reads it.

    Attributes:
      file: its path.
      record: number in the file, from 1.
      sample: number in the split, from 0, as maskmill.open counts.
      pieces: without padding.
      width: pieces of the row with padding.
      label: "next sentence" or "random sentence", "in order" or "swapped"; None: the objective has none. One for each
        sequence of a packed row, with " / " between.
      epoch: for which epoch of a reader its masks were drawn; None: they are stored.
    """

    file: str
    record: int
    sample: int
    pieces: tuple[DecodedPiece, ...]
    width: int
    label: str | None = None
    epoch: int | None = None

    @property
    def parts(self) -> list[tuple[str, list[DecodedPiece]]]:
        """Neighbouring pieces of one sequence and segment, with a title; empty if there is only one part."""
        several = len({piece.sequence for piece in self.pieces}) > 1
        is_pair = any(piece.segment for piece in self.pieces)
        groups = itertools.groupby(self.pieces, key=lambda piece: (piece.sequence, piece.segment))
        return [
            (
                ", ".join([f"sequence {sequence + 1}"] * several + [f"segment {'AB'[segment != 0]}"] * is_pair),
                list(part),
            )
            for (sequence, segment), part in groups
        ]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the row as words, its masks in colours."""
        rows = "".join(f"<p dir='auto'>{marked(part)}</p>" for _, part in self.parts)
        place = f"Record {self.record:,} of {self.file}" + (f", label: {self.label}" if self.label else "")
        return f"<div class='maskmill'><style>{_MARKS}</style><p>{escaped(place)}</p>{rows}</div>"


def marked(pieces: Sequence[DecodedPiece]) -> str:
    """Return neighbouring pieces as HTML: a `mark` around each that is to be predicted, with what stands there."""
    parts = []
    for place, piece in enumerate(pieces):
        word, seen = (html.escape(shown(part)) for part in (piece.surface or piece.text, piece.text))
        parts.append(" " if place and not piece.goes_on else "")
        parts.append(_FORMS.get(piece.role, "{word}").format(word=word, seen=seen))
    return "".join(parts)


def running_text(pieces: Iterable[DecodedPiece], *, special: bool = False) -> str:
    """Return the text of pieces, masks undone. special: whether [CLS] and [SEP] are in it."""
    parts = [
        ("" if piece.goes_on else " ") + piece.surface
        for piece in pieces
        if special or piece.role not in ("special", "padding")
    ]
    return "".join(parts).strip()


class Words:
    """The pieces of a vocabulary by their ids; an id that it lacks, as in damaged rows, is called "id 17".

    Attributes:
      mark: how pieces say whether they go on a word: "##", "Ġ" (byte-level BPE), "▁" (SentencePiece).
    """

    def __init__(self, pieces: Mapping[int, str], *, marks_words: bool) -> None:
        """pieces: by their ids. marks_words: they are of a vocab.txt; of a tokenizer.json they tell how they do so."""
        byte_of = {character: byte for byte, character in enumerate(byte_characters())}
        self.mark = _WORDPIECE_MARK
        if not marks_words and byte_of.keys() <= set(pieces.values()):
            self.mark = _BYTES_MARK
        elif not marks_words and any(piece.startswith(_SENTENCEPIECE_MARK) for piece in pieces.values()):
            self.mark = _SENTENCEPIECE_MARK
        self._pieces = pieces
        self._byte_of = byte_of
        self._added: dict[int, bytes] = {}

    def piece(self, id: int) -> str:
        """Return the piece of an id, as the vocabulary has it."""
        return self._pieces.get(id, f"id {id}")

    def added(self, id: int) -> bytes:
        """Return the text that a piece adds, with the blank before it if it starts a word."""
        if id not in self._added:
            self._added[id] = self._of_piece(self.piece(id), is_known=id in self._pieces)
        return self._added[id]

    def _of_piece(self, piece: str, *, is_known: bool) -> bytes:
        if is_known and self.mark == _BYTES_MARK:  # an added token stands for itself
            is_bytes = all(character in self._byte_of for character in piece)
            return bytes(map(self._byte_of.__getitem__, piece)) if is_bytes else piece.encode(errors="surrogatepass")
        if is_known and self.mark == _SENTENCEPIECE_MARK:
            return piece.replace(_SENTENCEPIECE_MARK, " ").encode(errors="surrogatepass")
        if is_known and piece.startswith(_WORDPIECE_MARK):
            return (piece.removeprefix(_WORDPIECE_MARK) or piece).encode(errors="surrogatepass")
        return f" {piece}".encode(errors="surrogatepass")

    def goes_on(self, id: int) -> bool:
        """Return whether no blank stands before a piece within a sentence."""
        return not self.added(id).startswith(b" ")

    def surfaces(self, ids: Sequence[int], special: Sequence[bool]) -> list[str]:
        """Return what each piece of a row adds to its text; a character that is cut across pieces is added by the last
        one.

        special: for each, whether it is not text.
        """
        surfaces = []
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        for id, is_special in zip(ids, special, strict=True):
            if is_special or id not in self._pieces:
                surfaces.append(decoder.decode(b"", True) + self.piece(id))
            else:
                added = self.added(id)
                surfaces.append(decoder.decode(added).removeprefix(" " if added.startswith(b" ") else ""))
        if surfaces:
            surfaces[-1] += decoder.decode(b"", True)
        return surfaces

    def joined(self, ids: Iterable[int], special_ids: Set[int]) -> str:
        """Return the text of pieces, with a blank for special ones."""
        added = (b" " if id in special_ids else self.added(id) for id in ids)
        return b"".join(added).decode(errors="backslashreplace").strip()


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowDecoder:
    """Decodes the rows of a data set.

    Attributes:
      data_set: that the rows are of.
      vocabulary: it was made with.
      objective: "nsp", "sop", "mlm" or "blocks"; None: not known, and labels are those of BERT's pairs.
      seed, epoch: of the masks that are drawn for rows without stored ones: those that `maskmill.open` with this seed
        gives in this epoch, from 0.
    """

    data_set: DataSet
    vocabulary: Vocabulary
    objective: str | None = None
    seed: int = 0
    epoch: int = 0

    @functools.cached_property
    def words(self) -> Words:
        """The pieces of the vocabulary."""
        pieces = dict(zip(self.vocabulary.ids.tolist(), self.vocabulary.pieces, strict=True))
        return Words(pieces, marks_words=self.vocabulary.marks_words)

    @functools.cached_property
    def special_ids(self) -> dict[str, int | None]:
        """The ids of the special pieces, by what they are."""
        return self.data_set.special_ids or self.vocabulary.special_ids

    def decode(self, rows: Rows, row: int, sample: int) -> DecodedExample:
        """Return a row.

        Args:
          rows: with the columns of the data set, as its reader filled them.
          row: which of them.
          sample: its number in the data set, from 0.
        """
        file, record = place_of(self.data_set, sample)
        arrays = {feature: array[row] for feature, array in rows.arrays.items()}
        counts = {feature: int(array[row]) for feature, array in rows.counts.items()}
        ids = arrays[_feature_of_ids(arrays)].astype(np.int32)
        is_piece = self._is_piece(ids, arrays, counts)
        length = int(np.flatnonzero(is_piece)[-1]) + 1 if is_piece.any() else 0
        masks = _stored_masks(arrays, length)
        if self.data_set.mask_rules is not None:
            ids, masks = self._drawn(self.data_set.mask_rules, ids, length, arrays.get("continuation_mask"), sample)
        segments = _of_width(arrays.get("segment_ids", ids[:0]), len(ids))
        sequences = _of_width(arrays["sequence_ids"], len(ids)) - 1 if "sequence_ids" in arrays else np.zeros_like(ids)
        labels = arrays.get("next_sentence_labels", ids[:0])
        return DecodedExample(
            file=self.data_set.files[file].path,
            record=record,
            sample=sample,
            pieces=tuple(self._pieces(ids[:length].tolist(), masks, is_piece, segments, sequences)),
            width=self.data_set.files[file].width,
            label=self._label(labels[: counts.get("next_sentence_labels", len(labels))].tolist()),
            epoch=None if self.data_set.mask_rules is None else self.epoch,
        )

    def texts(self, rows: Rows) -> list[str]:
        """Return the texts of rows, masks undone and without special pieces: faster than `decode`."""
        ids = rows.original_pieces(slice(None), _feature_of_ids(rows.arrays))
        special_ids = {*self._named_ids, self.special_ids.get("pad_id") or 0}
        return [self.words.joined(line, special_ids) for line in ids.tolist()]

    def runs(self, rows: Rows) -> list[npt.NDArray[np.int32]]:
        """Return the pieces of the first of some rows, masks undone, that stand between special ones."""
        ids = rows.original_pieces(slice(1), _feature_of_ids(rows.arrays))[0]
        is_text = ~np.isin(ids, [*self._named_ids, self.special_ids.get("pad_id") or 0])
        parts = np.split(np.where(is_text, ids, -1), np.flatnonzero(np.diff(is_text)) + 1)
        return [part for part in parts if part[0] >= 0]

    @functools.cached_property
    def _named_ids(self) -> set[int]:
        """The ids of the special pieces that stand in rows."""
        named = map(self.special_ids.get, ("cls_id", "sep_id", "mask_id"))
        return {id for id in named if id is not None}

    def _is_piece(
        self, ids: npt.NDArray[np.int32], arrays: Mapping[str, npt.NDArray[np.generic]], counts: Mapping[str, int]
    ) -> npt.NDArray[np.bool_]:
        """Return bool[width]: whether a piece stands there, and not padding."""
        if "input_mask" in arrays:
            return np.not_equal(_of_width(arrays["input_mask"], len(ids)), 0)
        if "input_ids" in counts:
            return np.less(np.arange(len(ids)), counts["input_ids"])
        return np.not_equal(ids, self.special_ids.get("pad_id") or 0)

    def _drawn(
        self,
        rules: RowMaskRules,
        ids: npt.NDArray[np.int32],
        length: int,
        continues: npt.NDArray[np.generic] | None,
        sample: int,
    ) -> tuple[npt.NDArray[np.int32], dict[int, int]]:
        """Return the ids of a row and the pieces to predict by position, as a reader draws them."""
        room = max(1, self.data_set.predictions)
        drawn = MaskedRows(
            input_ids=ids[None].copy(),
            lengths=np.array([length], np.int32),
            positions=np.zeros((1, room), np.int32),
            labels=np.zeros((1, room), np.int32),
            masked=np.zeros(1, np.int32),
            continues=np.zeros((0, 0), np.uint8) if continues is None else np.array(continues[None], np.uint8),
        )
        draw_masks(rules, self.seed, drawn, np.full(1, self.epoch, np.int64), np.full(1, sample, np.int64))
        count = int(drawn.masked[0])
        masks = dict(zip(drawn.positions[0, :count].tolist(), drawn.labels[0, :count].tolist(), strict=True))
        return drawn.input_ids[0], masks

    def _pieces(
        self,
        ids: Sequence[int],
        masks: Mapping[int, int],
        is_piece: npt.NDArray[np.bool_],
        segments: npt.NDArray[np.int32],
        sequences: npt.NDArray[np.int32],
    ) -> Iterator[DecodedPiece]:
        originals = [masks.get(position, id) for position, id in enumerate(ids)]
        special = [id in self._named_ids for id in originals]
        surfaces = self.words.surfaces(originals, special)
        for position, (id, original) in enumerate(zip(ids, originals, strict=True)):
            role: PieceRole = "text"
            if position in masks:
                role = "kept" if id == original else "masked" if id == self.special_ids.get("mask_id") else "random"
            elif special[position]:
                role = "special"
            elif not is_piece[position]:
                role = "padding"
            yield DecodedPiece(
                position=position,
                id=id,
                text=self.words.piece(id),
                role=role,
                label=self.words.piece(original) if position in masks else None,
                segment=int(segments[position]),
                sequence=int(sequences[position]),
                # A row may begin within a word.
                goes_on=self.words.goes_on(original) and not (special[position] or special[max(0, position - 1)]),
                surface=surfaces[position],
            )

    def _label(self, labels: Sequence[int]) -> str | None:
        names = _LABELS.get(self.objective or "nsp")
        if names is None or not labels:
            return None
        return " / ".join(names[label] if label in (0, 1) else f"label {label}" for label in labels)


def place_of(data_set: DataSet, sample: int) -> tuple[int, int]:
    """Return where a sample is: the place of its file in the data set's files, and its record there, from 1.

    Raises:
      IndexError: there are not so many samples.
    """
    left = sample
    for number, file in enumerate(data_set.files):
        if 0 <= left < file.samples:
            return number, left + 1
        left -= file.samples
    raise IndexError(f"sample {sample} of {data_set.samples}")


def _stored_masks(arrays: Mapping[str, npt.NDArray[np.generic]], length: int) -> dict[int, int]:
    """Return the piece that belongs at each predicted position; a place that the row lacks is left out."""
    if "masked_lm_positions" not in arrays or "masked_lm_ids" not in arrays:
        return {}
    positions, labels = arrays["masked_lm_positions"].tolist(), arrays["masked_lm_ids"].tolist()
    weights = arrays.get("masked_lm_weights", np.ones(len(positions))).tolist()
    both = zip(positions, labels, weights, strict=False)
    return {position: label for position, label, weight in both if weight and position < length}


def _feature_of_ids(arrays: Mapping[str, npt.NDArray[np.generic]]) -> str:
    """Return the column of the pieces; if another program calls it otherwise, the first with the most integers a
    row.
    """
    if "input_ids" in arrays:
        return "input_ids"
    return max((name for name in arrays if arrays[name].dtype.kind in "iu"), key=lambda name: arrays[name].shape[-1])


def _of_width(values: npt.NDArray[np.generic], width: int) -> npt.NDArray[np.int32]:
    """Return int32[width]: the values, and zeros after them if there are fewer."""
    filled = np.zeros(width, np.int32)
    filled[: len(values)] = values[:width]
    return filled
