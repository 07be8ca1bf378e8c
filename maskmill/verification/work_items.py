"""The work items of a verification, one for each file, and their results. Both are small and can be pickled."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from maskmill.verification.findings import Checked, combined
from maskmill.verification.listed_shards import ListedFile

# text: a text shard or eval.txt. examples: a file of examples, picked ones too. other: a file of which only the bytes
# are checked. shard: the files of a shard, which is made again and compared.
ItemKind = Literal["text", "examples", "other", "shard"]
Counts = npt.NDArray[np.int64]


def _zeros(*shape: int) -> Any:
    return dataclasses.field(default_factory=lambda: np.zeros(shape, np.int64))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Remake:
    """The inputs and options with which a shard is made again.

    Attributes:
      text: the present path of the text shard.
      options: those of the examples, completed by the manifest's "decided".
      vocabulary: the present path of the vocabulary. is_tokenizer: whether that is a tokenizer.json.
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
class WorkItem:
    """A file to verify, or a shard to make again.

    Attributes:
      kind: of its content.
      path: local, gs:// or http(s)://.
      split: "train" or "eval".
      shard: its number in its split, from 0.
      directory: of its data set; of several files without a manifest, the path that the user named.
      expected: its entry in the manifest, with the path of its index; empty without a manifest.
      rules: of its rows (row_rules.RowRules); None for text. The only file of its data set is this one.
      unusable: a clause that says why it cannot be checked; None: it can.
      remake: of the kind "shard": how to make it again.
      eval_texts, train_texts: of training text: all text files of either split that are verified with it.
      scratch: a directory that all workers can use, for hashes.
    """

    kind: ItemKind
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
    """Statistics of the rows of a file; see `add_statistics`.

    Attributes:
      rows: their number.
      lengths: int64[width + 1], rows by their number of pieces, padding aside.
      pieces_at, masks_at: int64[width], pieces and masks at each position of a row.
      masked, masked_kept, masked_random: masked positions; of these, those that keep their piece, and those with
        another one than [MASK]. All are 0 if the reader draws masks.
      masks: int64[predictions + 1], rows by their number of masks.
      second_label: sequences (one a row, unless they are packed) whose next_sentence_label is 1.
      piece_counts: int64[vocabulary], the number of each id before masking.
      sequences: their number; more than rows if these are packed.
      halves: float64[2, 2]: for the first half of rows, and for their second and third quarter: the number of masks,
        and the number expected by chance.
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
    """Return the sum of one or more statistics; arrays of different lengths are padded with 0."""
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
    """Statistics of the text of a file.

    Attributes:
      documents, lines, characters, words, size: counts; size in bytes.
      one_line: documents of one line.
      line_lengths: int64[64], lines by the logarithm of their characters, in quarters.
      shared_lines: the longer lines that are in most documents: [(documents, start of the line)].
      markup: marks of wikitext, HTML and TeX, and entities.
      marked: documents with a mark, by its kind (text_checks.MARKS).
      replaced: characters U+FFFD. garbled: characters of UTF-8 that was read as Latin-1.
      unbroken: long lines of ASCII without a space.
      twofold: documents of which at least a third repeats their own text. first_twofold: the number of the first of
        these, from 1; 0: there is none.
      bytes: int64[256], the number of each byte.
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
        """The number of characters beyond ASCII."""
        return int(self.bytes[0xC0:].sum())


class Copy(NamedTuple):
    """An article of leak_checks.Articles, and the training document that has most of it.

    article: its number. path: the document's file. document: its number there, from 1. shingles: common to both.
    """

    article: int
    path: str
    document: int
    shingles: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class ItemResult(Checked):
    """The result of a work item.

    Attributes:
      item: the work item.
      counts: by the names of the manifest's counts of a shard (examples, documents, sentences …).
      size, sha256: of the present file; None if it cannot be read.
      rows: of examples. text: of text.
      hashes: the paths of tables in the scratch directory (scratch.py): "rows" and "documents".
      copies: of training text: articles of the eval text, and some training articles, that it has at least in part.
      is_remade: of a shard and of its files: whether it is equal to the shard made again; None: it was not made.
    """

    item: WorkItem
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    size: int | None = None
    sha256: str | None = None
    rows: RowStatistics | None = None
    text: TextStatistics | None = None
    hashes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    copies: tuple[Copy, ...] = ()
    is_remade: bool | None = None

    def plus(self, part: Checked) -> "ItemResult":
        """Return this result with that of another check of the same work item."""
        more = vars(combined([self, part]))
        if isinstance(part, ItemResult):
            others = {name: value for name, value in vars(part).items() if name not in more and value is not None}
            more |= others | {"counts": {**self.counts, **part.counts}, "hashes": {**self.hashes, **part.hashes}}
            more["copies"] = self.copies + part.copies
        return dataclasses.replace(self, **more)
