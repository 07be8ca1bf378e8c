"""Pieces of work of a verification, and what they give. Both are small and can be pickled: a piece is one file."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from maskmill.verification.findings import Checked, joined
from maskmill.verification.listed_shards import ListedFile

# text: a text shard or eval.txt. examples: a file of examples, picked ones too. other: a file of which only the bytes
# are looked at. shard: the files of a shard, which is made again and compared.
PieceKind = Literal["text", "examples", "other", "shard"]
Counts = npt.NDArray[np.int64]


def _zeros(*shape: int) -> Any:
    return dataclasses.field(default_factory=lambda: np.zeros(shape, np.int64))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Remake:
    """What the files of a shard are made again of.

    Attributes:
      text: the path of the text shard, as it was found.
      options: those that they were made with, and what was decided where they leave it open.
      vocabulary: the path of the vocabulary, as it was found. is_tokenizer: whether that is a tokenizer.json.
      format: of the files.
      seed: the shard's own.
      files: the paths of the files, in the order of the manifest. digests: their sha256 there.
    """

    text: str
    options: Mapping[str, Any]
    vocabulary: str
    is_tokenizer: bool
    format: str
    seed: int | None
    files: tuple[str, ...]
    digests: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """A file to verify, or a shard to make again.

    Attributes:
      kind: what it holds.
      path: local, gs:// or http(s)://.
      split: "train" or "eval".
      shard: its number in its split, from 0.
      directory: of the data set that it belongs to; of several files without a manifest, what the user named.
      expected: what its manifest says of it, but with the path of its index; nothing without a manifest.
      rules: how its rows must look (row_rules.RowRules); None for text. The files of its data set are this one alone.
      unusable: why nothing of it can be looked at, as a clause; None: it may be.
      remake: of the kind "shard", what it is made of.
      eval_texts, train_texts: of training text, all files of text of either split that are verified with it.
      scratch: a directory that all workers reach, for hashes.
    """

    kind: PieceKind
    path: str
    split: str
    shard: int
    directory: str
    expected: ListedFile
    rules: Any = None
    unusable: str | None = None
    remake: Remake | None = None
    eval_texts: tuple[str, ...] = ()
    train_texts: tuple[str, ...] = ()
    scratch: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowStatistics:
    """What the rows of a file look like. Two can be added.

    Attributes:
      rows: how many.
      lengths: int64[width + 1], rows by their number of pieces, padding aside.
      pieces_at, masks_at: int64[width], pieces and masks at each position of a row.
      masked, masked_kept, masked_random: places that are predicted; of these, those that keep their piece, and those
        with another than [MASK]. All 0 where masks are drawn by the reader.
      masks: int64[predictions + 1], rows by their number of masks.
      second_label: sequences (one a row, unless they are packed) whose next_sentence_label is 1.
      piece_counts: int64[vocabulary], how often each id is there, masks undone.
      sequences: how many; more than rows where these are packed.
      halves: float64[2, 2], masks in the first half of their row, and in its second and third quarter; and as many as
        there are by chance.
    """

    rows: int
    lengths: Counts
    pieces_at: Counts
    masks_at: Counts
    masked: int
    masked_kept: int
    masked_random: int
    masks: Counts
    second_label: int
    piece_counts: Counts
    sequences: int = 0
    halves: npt.NDArray[np.float64] = dataclasses.field(default_factory=lambda: np.zeros((2, 2)))


def add_statistics(parts: Sequence[RowStatistics]) -> RowStatistics:
    """Return the sum of statistics, of which there is at least one; arrays of different lengths are filled up with
    0.
    """
    fields = [field.name for field in dataclasses.fields(RowStatistics)]
    return RowStatistics(**{name: _added([getattr(part, name) for part in parts]) for name in fields})


def _added(values: Sequence[Any]) -> Any:
    if isinstance(values[0], int):
        return sum(values)
    total = np.zeros([max(sizes) for sizes in zip(*(v.shape for v in values), strict=True)], values[0].dtype)
    for array in values:
        total[tuple(slice(size) for size in array.shape)] += array
    return total


@dataclasses.dataclass(kw_only=True)
class TextStatistics:
    """What the text of a file looks like.

    Attributes:
      documents, lines, characters, words, size: counts; size in bytes.
      one_line: documents of one line.
      line_lengths: int64[64], lines by the logarithm of their characters, in quarters.
      shared_lines: the longer lines that most documents have: [(documents, beginning of the line)].
      markup: marks of wikitext, HTML and TeX, and entities.
      marked: documents with a mark, by its kind (text_checks.MARKS).
      replaced: characters U+FFFD. garbled: what UTF-8 becomes if it is read as Latin-1.
      unbroken: long lines of ASCII without a space.
      twofold: documents of which at least a third is there before in themselves. first_twofold: the number of the
        first of these, from 1; 0: there is none.
      bytes: int64[256], how often each byte is there.
    """

    documents: int = 0
    lines: int = 0
    characters: int = 0
    words: int = 0
    size: int = 0
    one_line: int = 0
    line_lengths: Counts = _zeros(64)
    shared_lines: tuple[tuple[int, str], ...] = ()
    markup: int = 0
    marked: Mapping[str, int] = dataclasses.field(default_factory=dict)
    replaced: int = 0
    garbled: int = 0
    unbroken: int = 0
    twofold: int = 0
    first_twofold: int = 0
    bytes: Counts = _zeros(256)

    @property
    def foreign(self) -> int:
        """Characters beyond ASCII."""
        return int(self.bytes[0xC0:].sum())


class Copy(NamedTuple):
    """An article that is looked for (leak_checks.Articles), and the training document that has most of it.

    article: its place. path: the document's file. document: its number there, from 1. shingles: that both have.
    """

    article: int
    path: str
    document: int
    shingles: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class PieceResult(Checked):
    """What a piece gave.

    Attributes:
      piece: the piece.
      counts: what was counted, by the names of the manifest's counts of a shard (examples, documents, sentences …).
      size, sha256: of the file as it is; None if it cannot be read.
      rows: of examples. text: of text.
      hashes: tables in the scratch directory (scratch.py), by what they hold: "rows" and "documents".
      copies: of training text: articles of the eval text that are there, at least in part, and some training ones.
      is_remade: of a shard, and of a file of one: whether it was made again, and is equal; None: it was not.
    """

    piece: Piece
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    size: int | None = None
    sha256: str | None = None
    rows: RowStatistics | None = None
    text: TextStatistics | None = None
    hashes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    copies: tuple[Copy, ...] = ()
    is_remade: bool | None = None

    def plus(self, part: Checked) -> "PieceResult":
        """This and what one more check of the same piece gave."""
        more = vars(joined([self, part]))
        if isinstance(part, PieceResult):
            given = {name: value for name, value in vars(part).items() if name not in more and value is not None}
            more |= given | {"counts": {**self.counts, **part.counts}, "hashes": {**self.hashes, **part.hashes}}
            more["copies"] = self.copies + part.copies
        return dataclasses.replace(self, **more)
