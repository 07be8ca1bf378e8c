"""A data set as a loader sees it: its files, its columns, and what its rows need to be masked."""

import dataclasses

import numpy as np

from maskmill.masking.kernels.row_masks import RowMaskRules
from maskmill.notebooks import table

DIGEST_DIGITS = 32


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadColumn:
    """A column as it is read.

    Attributes:
      name: as the files have it.
      feature: what it is, by google's name or ours (records/features.py), whatever it is called.
      width: how many values each row has in memory.
      varies: whether rows have numbers of values of their own in the files. They are filled up to `width`.
      dtype: of the values in memory: uint8, uint16, int32 or float32.
      fill: what rows are filled up with; None: a row's last value (cu_seqlens).
      low, high: the smallest and the largest value allowed, both included; None: any.
      meaning: what an allowed value is, for "X is 7, but it must be …".
      optional: files may lack the column; its values are zeros then.
    """

    name: str
    feature: str
    width: int
    varies: bool
    dtype: np.dtype
    fill: int | None = 0
    low: float | None = None
    high: float | None = None
    meaning: str = ""
    optional: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataFile:
    """A file of a data set.

    Attributes:
      path: local, gs://, or http(s)://.
      samples: how many it has.
      size: bytes; None: not known before it is read.
      sha256: of its content, in hexadecimal; None: not known.
      index: the path of its index of records; None: none is known.
      width: most pieces of a row: max_seq_length, or the width of its bin.
      digest: tells its content from any other, in DIGEST_DIGITS hexadecimal digits.
      text: the path of the text shard that its rows are of, if it does not hold them; None: not known.
    """

    path: str
    samples: int
    size: int | None
    sha256: str | None
    index: str | None
    width: int
    digest: str = ""
    text: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataSet:
    """The samples of one split of a data set. A sample's number is its place in the files, in their order, from 0.

    Attributes:
      path: where it was opened, for messages.
      format: the name of its ShardFormat.
      files: those that have samples.
      columns: in the order of their features' names.
      width: most pieces of a row.
      fingerprint: tells the content apart from any other: hexadecimal.
      vocabulary_size: ids are below it; None: not known.
      special_ids: the ids by what they are (Vocabulary.special_ids); empty: not known.
      packed: whether rows have several sequences.
      mask_rules: how the reader draws masks; None: they are stored.
      predictions: most masks of a row.
      vocabulary: the path of its file, a vocab.txt or a tokenizer.json; None: not known.
      duplicates: Vocabulary.duplicates of a vocab.txt.
    """

    path: str
    format: str
    files: tuple[DataFile, ...]
    columns: tuple[ReadColumn, ...]
    width: int
    fingerprint: str
    vocabulary_size: int | None
    special_ids: dict[str, int | None]
    packed: bool
    mask_rules: RowMaskRules | None = dataclasses.field(compare=False)  # arrays; the fingerprint tells them apart
    predictions: int
    vocabulary: str | None = dataclasses.field(default=None, compare=False)
    duplicates: str = dataclasses.field(default="last", compare=False)

    @property
    def samples(self) -> int:
        """How many there are."""
        return sum(file.samples for file in self.files)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what the samples are, and where."""
        rows = [
            ("samples", f"{self.samples:,} in {len(self.files):,} file{'' if len(self.files) == 1 else 's'}"),
            ("format", self.format),
            ("pieces of a row", f"at most {self.width:,}{', several sequences' if self.packed else ''}"),
            ("masks", f"at most {self.predictions:,}, {'drawn by the reader' if self.mask_rules else 'stored'}"),
            ("vocabulary", "not known" if self.vocabulary_size is None else f"{self.vocabulary_size:,} ids"),
            ("columns", ", ".join(column.name for column in self.columns)),
            ("fingerprint", self.fingerprint[:DIGEST_DIGITS]),
        ]
        return table(self.path, rows)
