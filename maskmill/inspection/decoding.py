"""Ids to words: rows of examples as a person reads them, whatever their format, objective and vocabulary."""

import codecs
import collections
import dataclasses
import functools
import html
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
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

_WORDPIECE_MARK = "##"
_SENTENCEPIECE_MARK = "▁"
_LABELS: Mapping[str, tuple[str, str]] = {
    "nsp": ("next sentence", "random sentence"),
    "sop": ("in order", "swapped"),
}
_SPECIAL = ("cls_id", "sep_id", "mask_id")
_FEWEST_MASKS = 2  # from which on the most frequent piece that stands for others is taken for [MASK]

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
      text: the piece of this id ("##ing"); "id 17" if no vocabulary is known.
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

    def _repr_html_(self) -> str:
        """What a notebook shows: the row as words, its masks in colours."""
        groups = itertools.groupby(self.pieces, key=lambda piece: (piece.sequence, piece.segment))
        rows = "".join(f"<p dir='auto'>{marked(list(group))}</p>" for _, group in groups)
        place = f"Record {self.record:,} of {self.file}" + (f", label: {self.label}" if self.label else "")
        return f"<div class='maskmill'><style>{_MARKS}</style><p>{escaped(place)}</p>{rows}</div>"


def marked(pieces: Sequence[DecodedPiece], text: Callable[[str], str] = shown) -> str:
    """Neighbouring pieces as HTML: a `mark` around each that is to be predicted, with what stands there.

    text: makes foreign text harmless; it is escaped after that.
    """
    parts = []
    for place, piece in enumerate(pieces):
        word, seen = (html.escape(text(part)) for part in (piece.surface or piece.text, piece.text))
        parts.append(" " if place and not piece.goes_on else "")
        parts.append(_FORMS.get(piece.role, "{word}").format(word=word, seen=seen))
    return "".join(parts)


def running_text(pieces: Iterable[DecodedPiece], *, special: bool = False) -> str:
    """The text of pieces, masks undone. special: whether [CLS] and [SEP] are in it."""
    parts = [
        ("" if piece.goes_on else " ") + piece.surface
        for piece in pieces
        if special or piece.role not in ("special", "padding")
    ]
    return "".join(parts).strip()


class Words:
    """The pieces of a vocabulary by their ids.

    Without a vocabulary, every piece is called "id 17".
    """

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        self._pieces: dict[int, str] = {}
        self._bytes: dict[str, int] | None = None
        self._mark = ""
        self._joints: _Joints | None = None
        if vocabulary is None:
            return
        self._pieces = dict(zip(vocabulary.ids.tolist(), vocabulary.pieces, strict=True))
        if vocabulary.marks_words:
            self._mark = _WORDPIECE_MARK
            return
        # A tokenizer.json: what its pieces look like tells how they mark words.
        known = set(vocabulary.pieces)
        characters = byte_characters()
        if known.issuperset(characters):
            self._bytes = {character: byte for byte, character in enumerate(characters)}
        elif any(piece.startswith(_SENTENCEPIECE_MARK) for piece in known):
            self._mark = _SENTENCEPIECE_MARK
        else:
            self._mark = _WORDPIECE_MARK

    def piece(self, id: int) -> str:
        """The piece of an id, as the vocabulary has it."""
        return self._pieces.get(id, f"id {id}")

    def goes_on(self, id: int) -> bool:
        """Whether no blank stands before a piece within a sentence."""
        piece = self._pieces.get(id)
        if piece is None:
            return False
        if self._bytes is not None:
            return not self._raw(piece, self._bytes).startswith(b" ")
        starts = piece.startswith(self._mark)
        return starts if self._mark == _WORDPIECE_MARK else not starts

    def surfaces(self, ids: Sequence[int], special: Sequence[bool]) -> list[str]:
        """What each piece of a row adds to its text; a character that is cut across pieces is added by the last one.

        special: for each, whether it is not text.
        """
        surfaces = []
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        for id, is_special in zip(ids, special, strict=True):
            piece = self.piece(id)
            if self._bytes is None or is_special or id not in self._pieces:
                surfaces.append(decoder.decode(b"", True) + (piece if is_special else self._without_mark(piece)))
            else:
                raw = self._raw(piece, self._bytes)
                surfaces.append(decoder.decode(raw).removeprefix(" " if raw.startswith(b" ") else ""))
        if surfaces:
            surfaces[-1] += decoder.decode(b"", True)
        return surfaces

    def joined(self, ids: Sequence[int], special_ids: Set[int]) -> str:
        """The text of pieces, with a blank for special ones, which are the same at each call."""
        if self._joints is None:
            self._joints = _Joints(self, special_ids)
        return b"".join(map(self._joints.__getitem__, ids)).decode(errors="backslashreplace").strip()

    def joint(self, id: int) -> bytes:
        """What a piece adds to a text, with the blank before it."""
        if self._bytes is not None:
            return self._raw(self.piece(id), self._bytes)
        text = ("" if self.goes_on(id) else " ") + self._without_mark(self.piece(id))
        return text.encode(errors="surrogatepass")

    def _raw(self, piece: str, byte_of: Mapping[str, int]) -> bytes:
        """The bytes of a piece of byte-level BPE; an added token stands for itself."""
        if all(character in byte_of for character in piece):
            return bytes(byte_of[character] for character in piece)
        return piece.encode(errors="surrogatepass")

    def _without_mark(self, piece: str) -> str:
        if self._mark == _SENTENCEPIECE_MARK:
            return piece.removeprefix(self._mark).replace(self._mark, " ")
        return piece.removeprefix(self._mark) if len(piece) > len(self._mark) else piece


class _Joints(dict[int, bytes]):
    """What each piece adds to a text: made when it is first met, because texts have the same pieces again."""

    def __init__(self, words: Words, special_ids: Set[int]) -> None:
        super().__init__(dict.fromkeys(special_ids, b" "))
        self._words = words

    def __missing__(self, id: int) -> bytes:
        joint = self[id] = self._words.joint(id)
        return joint


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowDecoder:
    """Decodes the rows of a data set.

    Attributes:
      data_set: that the rows are of.
      vocabulary: it was made with; None: not known, and pieces are called "id 17".
      objective: "nsp", "sop", "mlm" or "blocks"; None: not known, and labels are those of BERT's pairs.
      seed, epoch: of the masks that are drawn for rows without stored ones: those that `maskmill.open` with this seed
        gives in this epoch, from 0.
    """

    data_set: DataSet
    vocabulary: Vocabulary | None = None
    objective: str | None = None
    seed: int = 0
    epoch: int = 0

    @functools.cached_property
    def words(self) -> Words:
        """The pieces of the vocabulary."""
        return Words(self.vocabulary)

    @functools.cached_property
    def special_ids(self) -> dict[str, int | None]:
        """The ids of the special pieces, by what they are; empty: not known."""
        if self.data_set.special_ids or self.vocabulary is None:
            return self.data_set.special_ids
        return self.vocabulary.special_ids

    def decode(self, rows: Rows, row: int, sample: int) -> DecodedExample:
        """A row.

        Args:
          rows: with the columns of the data set, as its reader filled them.
          row: which of them.
          sample: its number in the data set, from 0.
        """
        file, record = place_of(self.data_set, sample)
        values = _RowValues(self.data_set, rows, row, self.special_ids.get("pad_id") or 0)
        ids, masks = values.ids[: values.length].tolist(), values.masks
        if self.data_set.mask_rules is not None:
            ids, masks = self._drawn(self.data_set.mask_rules, values, sample)
        return DecodedExample(
            file=self.data_set.files[file].path,
            record=record,
            sample=sample,
            pieces=tuple(self._pieces(ids, masks, values)),
            width=self.data_set.files[file].width,
            label=self._label(values),
            epoch=None if self.data_set.mask_rules is None else self.epoch,
        )

    def lengths(self, rows: Rows) -> npt.NDArray[np.int64]:
        """int64[rows]: how many pieces each row has, without padding."""
        arrays = rows.arrays
        if "input_mask" not in arrays and "input_ids" in rows.counts:
            return rows.counts["input_ids"].astype(np.int64)
        is_piece = (
            np.not_equal(arrays["input_mask"], 0)
            if "input_mask" in arrays
            else np.not_equal(arrays[_feature_of_ids(arrays)], self.special_ids.get("pad_id") or 0)
        )
        lengths: npt.NDArray[np.int64] = is_piece.sum(axis=1)
        return lengths

    def texts(self, rows: Rows, places: npt.NDArray[np.int64]) -> list[str]:
        """The texts of rows, masks undone and without special pieces: faster than `decode`.

        places: int64[n], which rows.
        """
        ids = rows.original_pieces(places, _feature_of_ids(rows.arrays))
        special = (*(self.special_ids.get(name) for name in _SPECIAL), self.special_ids.get("pad_id") or 0)
        special_ids = {id for id in special if id is not None}
        return [self.words.joined(line, special_ids) for line in ids.tolist()]

    def _drawn(self, rules: RowMaskRules, values: "_RowValues", sample: int) -> tuple[list[int], dict[int, int]]:
        """The ids of a row and the pieces to predict by position, as a reader draws them."""
        room = max(1, self.data_set.predictions)
        drawn = MaskedRows(
            input_ids=np.array(values.ids[None], np.int32),
            lengths=np.array([values.length], np.int32),
            positions=np.zeros((1, room), np.int32),
            labels=np.zeros((1, room), np.int32),
            masked=np.zeros(1, np.int32),
            continues=values.continues,
        )
        keys = (np.full(1, self.epoch, np.int64), np.full(1, sample, np.int64))
        draw_masks(rules, self.seed, drawn, *keys)
        count = int(drawn.masked[0])
        masks = dict(zip(drawn.positions[0, :count].tolist(), drawn.labels[0, :count].tolist(), strict=True))
        return drawn.input_ids[0, : values.length].tolist(), masks

    def _pieces(self, ids: Sequence[int], masks: Mapping[int, int], values: "_RowValues") -> Iterator[DecodedPiece]:
        originals = [masks.get(position, id) for position, id in enumerate(ids)]
        special_ids = {self.special_ids[name] for name in _SPECIAL if self.special_ids.get(name) is not None}
        special = [id in special_ids for id in originals]
        mask_id = self.special_ids.get("mask_id")
        if mask_id is None:
            mask_id = _most_frequent([ids[position] for position, label in masks.items() if ids[position] != label])
        surfaces = self.words.surfaces(originals, special)
        for position, (id, original) in enumerate(zip(ids, originals, strict=True)):
            role: PieceRole = "text"
            if position in masks:
                role = "kept" if id == original else "masked" if id == mask_id else "random"
            elif special[position]:
                role = "special"
            elif not values.is_piece[position]:
                role = "padding"
            yield DecodedPiece(
                position=position,
                id=id,
                text=self.words.piece(id),
                role=role,
                label=self.words.piece(original) if position in masks else None,
                segment=int(values.segments[position]),
                sequence=int(values.sequences[position]),
                # A row may begin within a word.
                goes_on=self.words.goes_on(original) and not (special[position] or special[max(0, position - 1)]),
                surface=surfaces[position],
            )

    def _label(self, values: "_RowValues") -> str | None:
        names = _LABELS.get(self.objective or "nsp")
        if names is None or not values.labels:
            return None
        return " / ".join(names[label] if label in (0, 1) else f"label {label}" for label in values.labels)


def place_of(data_set: DataSet, sample: int) -> tuple[int, int]:
    """Where a sample is: the place of its file in the data set's files, and its record there, from 1.

    Raises:
      IndexError: there are not so many samples.
    """
    left = sample
    for number, file in enumerate(data_set.files):
        if 0 <= left < file.samples:
            return number, left + 1
        left -= file.samples
    raise IndexError(f"sample {sample} of {data_set.samples}")


class _RowValues:
    """The values of one row.

    Attributes:
      ids: int32[width], as the file has them.
      length: where the last piece ends that is not padding.
      is_piece: bool[width], whether a piece stands there, and not padding.
      segments, sequences: int[width].
      masks: the stored masks: position to the piece that belongs there.
      labels: of the row's pairs.
      continues: uint8[1, width] or [0, 0], for the drawing of masks.
    """

    def __init__(self, data_set: DataSet, rows: Rows, row: int, pad_id: int) -> None:
        arrays = {feature: array[row] for feature, array in rows.arrays.items()}
        counts = {feature: int(array[row]) for feature, array in rows.counts.items()}
        self.ids: npt.NDArray[np.int32] = arrays[_feature_of_ids(arrays)].astype(np.int32)
        width = len(self.ids)
        self.is_piece = self._pieces(arrays, counts, pad_id)
        self.length = int(np.flatnonzero(self.is_piece)[-1]) + 1 if self.is_piece.any() else 0
        nothing = np.zeros(width, np.int32)
        self.segments = _of_width(arrays.get("segment_ids", nothing), width)
        self.sequences = _of_width(arrays.get("sequence_ids", nothing + 1), width) - 1
        self.masks = self._masks(arrays)
        labels = arrays.get("next_sentence_labels", nothing[:0])
        self.labels: list[int] = labels[: counts.get("next_sentence_labels", len(labels))].tolist()
        self.continues = np.zeros((0, 0), np.uint8)
        if "continuation_mask" in arrays:
            self.continues = np.array(arrays["continuation_mask"][None], np.uint8)

    def _pieces(
        self, arrays: Mapping[str, npt.NDArray[np.generic]], counts: Mapping[str, int], pad_id: int
    ) -> npt.NDArray[np.bool_]:
        width = len(self.ids)
        if "input_mask" in arrays:
            return np.not_equal(_of_width(arrays["input_mask"], width), 0)
        if "input_ids" in counts:
            return np.less(np.arange(width), counts["input_ids"])
        return np.not_equal(self.ids, pad_id)

    def _masks(self, arrays: Mapping[str, npt.NDArray[np.generic]]) -> dict[int, int]:
        """Damaged rows may name a place that no row has: it is left out."""
        if "masked_lm_positions" not in arrays or "masked_lm_ids" not in arrays:
            return {}
        positions, labels = arrays["masked_lm_positions"].tolist(), arrays["masked_lm_ids"].tolist()
        weights = arrays.get("masked_lm_weights", np.ones(len(positions))).tolist()
        return {
            position: label
            for position, label, weight in zip(positions, labels, weights, strict=False)
            if weight and position < self.length
        }


def _feature_of_ids(arrays: Mapping[str, npt.NDArray[np.generic]]) -> str:
    """The column of the pieces; if another program calls it otherwise, the first with the most integers a row."""
    if "input_ids" in arrays:
        return "input_ids"
    return max((name for name in arrays if arrays[name].dtype.kind in "iu"), key=lambda name: arrays[name].shape[-1])


def _of_width(values: npt.NDArray[np.generic], width: int) -> npt.NDArray[np.int32]:
    """int32[width]: the values, with zeros behind them if there are fewer."""
    filled = np.zeros(width, np.int32)
    filled[: len(values)] = values[:width]
    return filled


def _most_frequent(ids: Sequence[int]) -> int | None:
    """The id that stands at most of the predicted places, if it stands at more than one, or there is only one."""
    if not ids:
        return None
    id, count = collections.Counter(ids).most_common(1)[0]
    return id if count >= _FEWEST_MASKS or len(ids) < _FEWEST_MASKS else None
