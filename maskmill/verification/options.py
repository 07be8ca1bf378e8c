"""The options of a verification. This module imports neither NumPy nor Beam."""

import dataclasses
import re
from collections.abc import Mapping
from typing import ClassVar, Literal

from maskmill.arguments import check_at_least, check_fields
from maskmill.errors import UnusableInputError
from maskmill.options import option

_MOST_SHARDS = 1_000_000
_RANGE = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?")


@dataclasses.dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """The options of a verification.

    Raises:
      UnusableInputError: a value is out of its range.
    """

    shards: str | None = option(None, help="numbers of the shards of each split to verify, as 0-9,12 (default: all)")
    remake: int | None = option(
        None,
        help="how many shards to make again from their text, and compare: 0 for none (default: all of less than 1 GB "
        "of text, else so many that have as much)",
    )
    text: tuple[str, ...] = option(
        (), help="where the text shards lie now, if not where the examples were made from: files or directories"
    )
    scratch: str | None = option(
        None, help="directory for temporary files, which all workers reach (default: a temporary one of this machine)"
    )
    json: bool = option(False, help="print what was found as one JSON object")
    vocab_file: str | None = option(None, help="vocab.txt or tokenizer.json of data that has no copy of its vocabulary")
    split: Literal["train", "eval"] | None = option(
        None, help="split of the files (default: eval for names that begin with eval, train for others)"
    )
    max_seq_length: int | None = option(None, help="pieces of a row (default: those of the first record)")
    max_predictions_per_seq: int | None = option(None, help="most masks of a row (default: those of the first record)")
    masked_lm_prob: float | None = option(None, help="share of the pieces to predict, as 0.15")

    GROUPS: ClassVar[Mapping[str, str]] = {
        "shards": "what to verify",
        "scratch": "output and temporary files",
        "vocab_file": "properties of files without a manifest",
    }

    def __post_init__(self) -> None:
        check_fields(self)
        if self.shards is not None:
            shard_numbers(self.shards)
        check_at_least(0, self, "remake")
        check_at_least(1, self, "max_seq_length", "max_predictions_per_seq")
        if self.masked_lm_prob is not None and not 0 < self.masked_lm_prob <= 1:
            raise UnusableInputError(f"--masked_lm_prob must be above 0 and at most 1, not {self.masked_lm_prob}.")


def shard_numbers(text: str) -> tuple[range, ...]:
    """Return the ranges of numbers of shards in a text such as "0-9,12".

    Raises:
      UnusableInputError: the text is no list of numbers and ranges.
    """
    found = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last >= _MOST_SHARDS:
            raise UnusableInputError(f"--shards must be numbers and ranges such as 0-9,12, not {text!r}.")
        found.append(range(first, last + 1))
    return tuple(found)
