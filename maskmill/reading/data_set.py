"""The description of a data set for loaders: its files, its columns, and the rules of its masks."""

import dataclasses

import numpy as np

from maskmill.masking.kernels.row_masks import RowMaskRules
from maskmill.notebooks import table

DIGEST_DIGITS = 32


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadColumn:
    """A column as it is read.

    Attributes:
      name: in the files.
      feature: the feature that it holds, by google's name or ours (records/features.py), whatever its name.
      width: the number of values of each row in memory.
      varies: whether the number of values varies from row to row in the files. Rows are padded to `width`.
      dtype: of the values in memory: uint8, uint16, int32 or float32.
      fill: the value that pads rows; None: a row's last value (cu_seqlens).
      low, high: the smallest and the largest value allowed, both included; None: any.
      meaning: the allowed values in words, for "X is 7, but it must be …".
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
      samples: the number of its samples.
      size: in bytes; None: not known before it is read.
      sha256: of its content, in hexadecimal; None: not known.
      index: the path of its index of records, or None.
      width: most pieces of a row: max_seq_length, or the width of its bin.
      digest: identifies its content, in DIGEST_DIGITS hexadecimal digits.
      text: of a file of spans, the path of its text shard; None: not known.
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
    """The samples of one split of a data set. Samples are numbered from 0, file by file.

    Attributes:
      path: with which it was opened, for messages.
      format: the name of its ShardFormat.
      files: those with samples.
      columns: in the order of their features' names.
      width: most pieces of a row.
      fingerprint: identifies the content: hexadecimal.
      vocabulary_size: ids are below it; None: not known.
      special_ids: Vocabulary.special_ids; empty: not known.
      packed: whether rows have several sequences.
      mask_rules: the rules by which the reader draws masks; None: masks are stored.
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
        """The number of samples."""
        return sum(file.samples for file in self.files)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: a table of the properties."""
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
