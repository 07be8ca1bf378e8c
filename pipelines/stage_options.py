"""The options of the stages: each field is a flag, a key in a build's YAML file and an entry in the manifest.

Nothing here imports Beam or a kernel, so that `--help` answers at once.
"""

import dataclasses
from typing import Any, Literal

from pipelines.options import option
from transforms.errors import UnusableInputError

Compat = Literal["none", "mlperf", "google"]

# The options of `extract` that drop documents or paragraphs for their quality.
_DROPPING = (
    "min_characters",
    "min_letter_share",
    "max_repeated_share",
    "max_list_share",
    "drop_stubs",
    "drop_duplicates",
    "near_duplicate_threshold",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractOptions:
    """The options of `maskmill extract`. What is None is decided by --compat."""

    input: tuple[str, ...] = option(help="dump or corpus: paths, globs, comma lists")
    output: str = option(help="directory of the text shards")
    compat: Compat = option("none", help="whose text shards to reproduce")
    extractor: Literal["maskmill", "wikiextractor"] | None = option(
        None, help="how wikitext becomes text; null: wikiextractor with mlperf, else maskmill"
    )
    input_format: Literal["auto", "mediawiki", "wikiextractor", "text", "jsonl", "parquet"] = option(
        "auto", help="what the input is; auto looks at its first bytes and its name"
    )
    text_documents: Literal["file", "blank_line"] = option(
        "blank_line", help="plain text: one document a file, or documents separated by blank lines"
    )
    text_column: str = option("text", help="JSON lines and Parquet: the column of the text")
    id_column: str | None = option(
        None, help="JSON lines and Parquet: a column of stable ids; null: a hash of the text"
    )
    language: str = option("english", help="language of the Punkt parameters that split sentences")
    namespaces: tuple[int, ...] = option((0,), help="numbers of the wiki's namespaces to take")
    keep_redirects: bool = option(False, help="keep redirect pages")
    keep_disambiguation: bool = option(False, help="keep disambiguation pages")
    keep_titles: bool = option(False, help="begin each document with its title as a sentence")
    headings: Literal["drop", "keep"] = option("drop", help="headings of sections")
    lists: Literal["sentences", "keep", "drop"] = option("sentences", help="items of lists: those that are sentences")
    expand_templates: bool = option(
        False,
        help="expand templates that have no rule with the dump's own definitions: takes a second pass over the dump",
    )
    min_characters: int | None = option(None, help="drop documents of less text than so many characters")
    min_letter_share: float | None = option(
        None, help="drop documents with a smaller share of letters among their characters, 0 to 1; prose has 0.9"
    )
    max_repeated_share: float | None = option(
        None, help="drop documents with more of their text in lines that repeat, 0 to 1"
    )
    max_list_share: float | None = option(
        None, help="drop list pages: by title, or with more of their lines short and without a sentence's end, 0 to 1"
    )
    drop_stubs: bool = option(False, help="drop pages of a dump that a template calls a stub")
    drop_duplicates: bool = option(
        False,
        help="drop paragraphs that stood in the input before, word for word; one process holds 60 bytes for each "
        "paragraph of the input",
    )
    near_duplicate_threshold: float | None = option(
        None,
        help="drop paragraphs as similar as this to one before (Jaccard similarity of word 5-grams, as 0.8); needs the "
        "extra [quality]; one process holds 130 bytes for each paragraph of the input, 4500 for each that has a like",
    )
    min_duplicate_words: int = option(10, help="paragraphs of fewer words are no duplicates")
    dump_date: str | None = option(
        None, help="date that clock words in pages give, as 2020-01-31; null: from the dump's name or its pages"
    )
    num_eval_articles: int | None = option(None, help="hold out exactly so many articles (mlperf: 10000 unless given)")
    eval_fraction: float | None = option(
        None, help="hold out this share of the articles, the same ones at each rebuild"
    )
    shard_size_mb: float | None = option(
        None, help="text of a shard in MB of 1024*1024 bytes; null: 27, with mlperf 26.92 of raw input"
    )
    max_documents: int | None = option(None, help="take only the first N documents, for a quick trial")
    random_seed: int = option(12345, help="seed of the eval set")

    def __post_init__(self) -> None:
        if self.max_documents is not None and self.max_documents < 1:
            raise UnusableInputError(f"--max_documents must be 1 or more, not {self.max_documents}.")
        if self.expand_templates and (self.extractor == "wikiextractor" or self.compat == "mlperf"):
            raise UnusableInputError("--expand_templates does not go with WikiExtractor's text: it expands none.")
        if self.compat == "mlperf":
            if self.eval_fraction is not None:
                raise UnusableInputError("--eval_fraction is not the reference's; with --compat mlperf give a number.")
            if self.extractor == "maskmill":
                raise UnusableInputError("--compat mlperf reproduces WikiExtractor's text; leave --extractor out.")
            if self.input_format not in ("auto", "mediawiki", "wikiextractor"):
                raise UnusableInputError("--compat mlperf takes a dump or WikiExtractor's files as input.")
            for name in _DROPPING:
                if getattr(self, name) not in (None, False):
                    raise UnusableInputError(f"--{name} drops what the reference keeps; leave out --compat mlperf.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskingFlags:
    """The reference's own options, shared by `examples` and `create-pretraining-data`."""

    vocab_file: str = option(help="WordPiece vocabulary, one piece a line")
    do_lower_case: bool = option(True, help="lower-case the text: True for uncased models")
    do_whole_word_mask: bool = option(False, help="mask all pieces of a word together")
    max_seq_length: int = option(128, help="longest sequence, in tokens")
    max_predictions_per_seq: int = option(20, help="most masked positions of a sequence")
    random_seed: int = option(12345, help="seed of all random decisions")
    dupe_factor: int = option(10, help="how often each document is used, with other masks each time")
    masked_lm_prob: float = option(0.15, help="share of the tokens to predict")
    short_seq_prob: float = option(0.1, help="share of the sequences that are made shorter than the longest")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesOptions(MaskingFlags):
    """The options of `maskmill examples`."""

    input: tuple[str, ...] = option(help="text shards: paths, globs, comma lists; or the directory that extract made")
    output: str = option(help="directory of the example shards")
    compat: Compat = option(
        "none", help="whose records to reproduce; none: a seed of its own for each shard, current Unicode tables"
    )
    packed: bool = option(False, help="gzip the TFRecords (they then have no index)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CreatePretrainingDataOptions(MaskingFlags):
    """The options of `maskmill create-pretraining-data`."""

    input_file: tuple[str, ...] = option(help="text files, read as one: paths, globs, comma lists")
    output_file: tuple[str, ...] = option(help="TFRecord files; records are dealt to them in turn; .gz ones are packed")
    compat: Literal["mlperf", "google"] = option("mlperf", help="whose script to reproduce")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PickEvalOptions:
    """The options of `maskmill pick-eval`."""

    input_tfrecord: tuple[str, ...] = option(help="TFRecord files of eval examples, in order")
    output_tfrecord: str = option(help="TFRecord file of the picked examples")
    num_examples_to_pick: int = option(10000, help="number of examples to pick, at even distance")
    max_seq_length: int | None = option(None, help="where given, records of another length are an error")
    max_predictions_per_seq: int | None = option(None, help="where given, another number of positions is an error")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvalOptions:
    """The eval section of a build."""

    num_examples_to_pick: int = option(
        10000,
        help="eval examples to pick at even distance; where there are fewer all are taken (with mlperf: an error)",
    )


def parameters(options: Any) -> dict[str, Any]:
    """What shapes the data, for the manifest: every option but the place of the output."""
    return {f.name: getattr(options, f.name) for f in dataclasses.fields(options) if f.name != "output"}
