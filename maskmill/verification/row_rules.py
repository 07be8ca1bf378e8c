"""What rows of examples must look like, whatever format they are in."""

import dataclasses

import numpy as np
import numpy.typing as npt

from maskmill.reading.data_set import DataSet


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowRules:
    """How the rows of a data set must look. None: not known, so nothing is held against it.

    Attributes:
      data_set: its columns, special ids and vocabulary size; its files are all files of the split.
      objective: "nsp", "sop", "mlm" or "blocks".
      is_packed, is_dynamic: whether rows have several sequences; whether the reader draws the masks.
      mask_unit: "piece", "whole_word", "whole_entity" …, as the options name it.
      masked_lm_prob, mask_share, keep_share, random_share, short_seq_prob: as the options have them.
      max_seq_length, max_predictions_per_seq, dupe_factor: as the options have them.
      piece_kinds: uint8[vocabulary], what each piece is: bits of CONTINUES, ALONE and CLOSES of kernels/rows.py.
      continues_word: whether it says which pieces go on a word.
      drawn_from: int32[pieces], the ids that random pieces are drawn from.
      is_exact: whether the number of masks of a row follows from its length (BERT's way), or is only bounded by it.
      separators: what stands between documents within a sequence of mlm or blocks: "none", "sep" (a [SEP]) or "recipe"
        (each document has its [CLS] and [SEP], and is cut anywhere).
      bins: how many bins there are; None: there are none.
      never_in_text: which of the special ids ("cls_id", "sep_id", "mask_id", "pad_id") no text gives: all but "pad_id"
        of a vocab.txt, "pad_id" too where that piece is in brackets; none of a tokenizer.json, which finds its special
        tokens in the text.
      vocabulary_file: the path of the vocabulary, as it was found; is_tokenizer: whether that is a tokenizer.json.
    """

    data_set: DataSet
    objective: str | None = None
    is_packed: bool = False
    is_dynamic: bool = False
    mask_unit: str | None = None
    masked_lm_prob: float | None = None
    mask_share: float | None = None
    keep_share: float | None = None
    random_share: float | None = None
    short_seq_prob: float | None = None
    max_seq_length: int | None = None
    max_predictions_per_seq: int | None = None
    dupe_factor: int | None = None
    piece_kinds: npt.NDArray[np.uint8] | None = dataclasses.field(default=None, compare=False)
    continues_word: bool = False
    drawn_from: npt.NDArray[np.int32] | None = dataclasses.field(default=None, compare=False)
    is_exact: bool = False
    separators: str | None = None
    bins: int | None = None
    never_in_text: tuple[str, ...] = ()
    vocabulary_file: str | None = None
    is_tokenizer: bool = False
