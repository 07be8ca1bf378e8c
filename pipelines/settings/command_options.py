"""The flags that belong to commands and not to stages. As stage_options.py, this imports neither Beam nor a kernel."""

import dataclasses
from typing import ClassVar, Literal

from maskmill.arguments import check_at_least, check_fields
from maskmill.errors import UnusableInputError
from maskmill.masking.options import MaskingOptions
from maskmill.options import nested, option

RANDOM, SEARCH = "random", "search"
_MOST_HEAD = 1_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The flags of every command."""

    quiet: bool = option(False, help="print nothing but errors")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] | None = option(
        None, help="log to standard error from this level on, what Beam does included"
    )
    log_format: Literal["text", "json"] = option(
        "text", help="how standard error is written: with json each line is an object, progress and failures included"
    )

    def __post_init__(self) -> None:
        if self.quiet and self.log_level is not None:
            raise UnusableInputError("--quiet and --log_level exclude each other; give one of them.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """The flag of the commands that run on Beam."""

    workers: int | None = option(
        None, help="processes of the local runner (default: one a core, and one for little input, as 24 MB of a dump)"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """The flags of `maskmill index`."""

    output: str | None = option(None, help="name of the index; only for a single file")


@dataclasses.dataclass(frozen=True, kw_only=True)
class WatchFlags:
    """Flags that limit the work of a watch; raises UnusableInputError if they exclude each other."""

    check: bool = option(False, help="only look: print the newest complete dump, and whether it is new, as JSON")
    download_only: bool = option(False, help="download a new dump, and leave the rest to maskmill build --release")

    def __post_init__(self) -> None:
        if self.check and self.download_only:
            raise UnusableInputError("--check downloads nothing; leave it or --download_only out.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """The flags of `maskmill estimate` beside those of a build.

    Raises:
      UnusableInputError: a value is out of its range.
    """

    sample_share: float | None = option(
        None, help="share of the input's bytes to read; null: 0.02, but at least 4 MB and at most 16 MB"
    )
    cores: int | None = option(None, help="cores that the build will have (default: this machine's)")
    json: bool = option(False, help="print the estimate as JSON")

    def __post_init__(self) -> None:
        if self.sample_share is not None and not 0 < self.sample_share <= 1:
            raise UnusableInputError(f"--sample_share must be above 0 and at most 1, not {self.sample_share}.")
        check_at_least(1, self, "cores")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CreatePretrainingDataOptions:
    """The options of `maskmill create-pretraining-data`."""

    input_file: tuple[str, ...] = option(help="text files, read as one: paths, globs, comma lists")
    output_file: tuple[str, ...] = option(help="TFRecord files; records are dealt to them in turn; .gz ones are packed")
    vocab_file: str = option(help="WordPiece vocabulary, one piece a line")
    masking: MaskingOptions = nested(MaskingOptions)
    compat: Literal["mlperf", "google"] = option("mlperf", help="whose script to reproduce")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PickEvalOptions:
    """The options of `maskmill pick-eval`."""

    input_tfrecord: tuple[str, ...] = option(help="TFRecord files of eval examples, in order")
    output_tfrecord: str = option(help="TFRecord file of the picked examples")
    num_examples_to_pick: int = option(10000, help="number of examples to pick, at even distance")
    max_seq_length: int | None = option(None, help="where given, records of another length are an error")
    max_predictions_per_seq: int | None = option(None, help="where given, another number of positions is an error")

    def __post_init__(self) -> None:
        check_at_least(1, self, "num_examples_to_pick", "max_seq_length", "max_predictions_per_seq")


@dataclasses.dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """The flags of `maskmill inspect`.

    Raises:
      UnusableInputError: a value is out of its range, or two flags exclude each other.
    """

    example: str | None = option(
        None,
        help="show one example as words, or one document of text: its number in PATH, from 1; random; or search and a "
        "WORD after it, for the first one with this word",
    )
    head: int | None = option(None, help="show the first N; with --example search, the first N with the word")
    diff: str | None = option(None, help="with --html: a second path, whose report stands beside")
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
        shown = [name for name in ("example", "head", "diff") if getattr(self, name) is not None]
        if len(shown) > 1 and not (shown == ["example", "head"] and self.example == SEARCH):
            raise UnusableInputError(f"--{shown[0]} and --{shown[1]} exclude each other; give one of them.")
        if self.html is not None and shown not in ([], ["diff"]):
            raise UnusableInputError(f"--{shown[0]} and --html exclude each other; give one of them.")
        if self.diff is not None and self.html is None:
            raise UnusableInputError("--diff puts two reports side by side and needs --html FILE; name the file.")
        if self.html is not None and self.format == "json":
            raise UnusableInputError("--html and --format json exclude each other; give one of them.")


def _is_number(text: str | None) -> bool:
    return text is not None and text.isascii() and text.isdecimal() and int(text) >= 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class LineageOptions:
    """The flags of `maskmill lineage`.

    Raises:
      UnusableInputError: a value is out of its range.
    """

    page: int | None = option(None, help="print which data sets below PATH may hold the page of a wiki with this id")
    json: bool = option(False, help="print one JSON object")

    def __post_init__(self) -> None:
        check_at_least(1, self, "page")
