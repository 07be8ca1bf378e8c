"""The options of examples. Names and defaults are those of the reference's flags."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Literal

from maskmill.arguments import check_fields
from maskmill.errors import UnusableInputError
from maskmill.options import option

MIN_SEQ_LENGTH = 5  # [CLS], a piece, [SEP], a piece, [SEP]
MAX_SEQ_LENGTH = 1 << 14  # kernels/masks.py packs a position into 14 bits
MAX_DUPE_FACTOR = 10_000  # the instances of all passes are in memory at once


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskingOptions:
    """The options that, with the vocabulary, decide the examples of a text.

    unicode: version of the Unicode tables, see tokenization/unicode_tables.py. duplicate_pieces: which id counts if
    the vocabulary lists a piece twice, see tokenization/vocabulary.py; the vocabulary must have been loaded with it.

    Raises:
      UnusableInputError: a value is out of its range.
    """

    do_lower_case: bool = option(True, help="lower-case the text: True for uncased models")
    do_whole_word_mask: bool = option(False, help="mask all pieces of a word together")
    max_seq_length: int = option(128, help="longest sequence, in tokens")
    max_predictions_per_seq: int = option(20, help="most masked positions of a sequence")
    random_seed: int = option(12345, help="seed of all random decisions")
    dupe_factor: int = option(10, help="how often each document is used, with other masks each time")
    masked_lm_prob: float = option(0.15, help="share of the tokens to predict")
    short_seq_prob: float = option(0.1, help="share of the sequences that are made shorter than the longest")
    unicode: Literal["11.0.0", "15.1.0"] = "11.0.0"
    duplicate_pieces: Literal["first", "last"] = "last"

    GROUPS: ClassVar[Mapping[str, str]] = {"random_seed": "how examples are drawn"}

    @property
    def follows_reference(self) -> bool:
        """True if text is read as the references read it (--compat), which the version of the Unicode tables shows."""
        return self.unicode == "11.0.0"

    def __post_init__(self) -> None:
        check_fields(self)
        if not MIN_SEQ_LENGTH <= self.max_seq_length <= MAX_SEQ_LENGTH:
            raise UnusableInputError(
                f"max_seq_length {self.max_seq_length}: an example has {MIN_SEQ_LENGTH} to {MAX_SEQ_LENGTH:,} pieces "
                "([CLS], a first part, [SEP], a second part, [SEP]); choose a length between them."
            )
        if self.max_predictions_per_seq < 1:
            raise UnusableInputError(
                f"max_predictions_per_seq {self.max_predictions_per_seq}: without a masked position there is nothing "
                "to predict; set it to 1 or more."
            )
        if self.max_predictions_per_seq > MAX_SEQ_LENGTH:
            raise UnusableInputError(
                f"max_predictions_per_seq {self.max_predictions_per_seq}: the longest sequence has {MAX_SEQ_LENGTH:,} "
                "positions; set it to that or less (some 0.15 of max_seq_length)."
            )
        if not 0 < self.masked_lm_prob <= 1:
            raise UnusableInputError(f"masked_lm_prob {self.masked_lm_prob}: this share must be above 0 and at most 1.")
        if not 0 <= self.short_seq_prob <= 1:
            raise UnusableInputError(f"short_seq_prob {self.short_seq_prob}: this share must be from 0 to 1.")
        if self.dupe_factor < 1:
            raise UnusableInputError(
                f"dupe_factor {self.dupe_factor}: each document must be used at least once; set it to 1 or more."
            )
        if self.dupe_factor > MAX_DUPE_FACTOR:
            raise UnusableInputError(
                f"dupe_factor {self.dupe_factor}: this is how often each document is used, up to {MAX_DUPE_FACTOR:,} "
                "times; set it to 10 or so."
            )
