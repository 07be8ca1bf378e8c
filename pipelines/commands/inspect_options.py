"""The options of `maskmill inspect`. Nothing here imports a reader, so that `--help` answers at once."""

import dataclasses
from typing import ClassVar, Literal

from maskmill.arguments import check_fields
from maskmill.errors import UnusableInputError
from maskmill.options import option

RANDOM, SEARCH = "random", "search"
_MOST_HEAD = 1_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """The flags of `maskmill inspect`.

    Raises:
      UnusableInputError: a value is out of its range, or two flags exclude each other.
    """

    example: str | None = option(
        None,
        help="show one example as words, or one document of text: its number in PATH, from 1; random; or search and a "
        "WORD behind it, for the first one with this word",
    )
    head: int | None = option(None, help="show the first N; with --example search, the first N with the word")
    document: str | None = option(
        None, help="follow the article with this title or page id from the dump to the masked examples"
    )
    diff: str | None = option(None, help="say what is different in this other path")
    html: str | None = option(None, help="write the report on PATH to this file, one page without scripts or requests")
    verified: Literal["auto", "all", "none"] = option(
        "auto",
        help="how much is verified for the report: auto (all if it is less than 1 GB, else some shards), all, none",
    )
    format: Literal["text", "json"] = option("text", help="text for people, or JSON: of --head one object a line")
    split: Literal["train", "eval"] | None = option(
        None, help="which examples of a data set are shown (default: the one that PATH is in, else train)"
    )
    vocab_file: str | None = option(
        None, help="the vocabulary, for examples without a copy of it; a tokenizer.json, too"
    )
    epoch: int = option(0, help="of data whose masks the reader draws: in which epoch, from 0")
    seed: int = option(0, help="of such data: the reader's seed")

    GROUPS: ClassVar = {"example": "what is shown", "format": "how it is shown"}

    def __post_init__(self) -> None:
        check_fields(self)
        if self.head is not None and not 1 <= self.head <= _MOST_HEAD:
            raise UnusableInputError(f"--head must be from 1 to {_MOST_HEAD:,}, not {self.head}.")
        if self.epoch < 0:
            raise UnusableInputError(f"--epoch must be 0 or more, not {self.epoch}.")
        if self.example not in (None, RANDOM, SEARCH) and not _is_number(self.example):
            raise UnusableInputError(
                f"--example must be a number from 1 on, random, or search and a word, not {self.example!r}."
            )
        shown = [name for name in ("example", "head", "document", "diff") if getattr(self, name) is not None]
        if len(shown) > 1 and not (shown == ["example", "head"] and self.example == SEARCH):
            raise UnusableInputError(f"--{shown[0]} and --{shown[1]} exclude each other; give one of them.")
        if self.html is not None and shown not in ([], ["diff"]):
            raise UnusableInputError(f"--{shown[0]} and --html exclude each other; give one of them.")
        if self.html is not None and self.format == "json":
            raise UnusableInputError("--html and --format json exclude each other; give one of them.")


def _is_number(text: str | None) -> bool:
    return text is not None and text.isascii() and text.isdecimal() and int(text) >= 1
