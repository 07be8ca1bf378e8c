"""The options of the stages and of the commands beside them: each field is a flag, a YAML key and a manifest entry.

What a step decides is declared beside the step (maskmill/ROOM/options.py) and nested here. Nothing here imports Beam
or a kernel, so that `--help` answers at once.
"""

import dataclasses
import datetime
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from maskmill.arguments import check_at_least
from maskmill.errors import UnusableInputError
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.option_rules import conflicts, defaults_of
from maskmill.masking.options import MaskingOptions
from maskmill.options import nested, option
from maskmill.records.options import FormatOptions
from maskmill.storage import files
from maskmill.text_shards.options import ExtractionOptions, SplitOptions
from maskmill.vocabularies.options import VocabularyOptions
from pipelines.settings import presets

Compat = Literal["none", "mlperf", "google"]

_MOST_SECONDS = 1_000_000
_OBJECTIVE_DEFAULTS = ObjectiveOptions()

# What the reference's records do not have, and the value that is theirs.
_NOT_OF_THE_REFERENCE = (
    "strict_labels", "mask_share", "random_share", "keep_share", "dynamic_masking", "pack", "bins",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractOptions:
    """The options of `maskmill extract`. What is None is decided by --compat."""

    input: tuple[str, ...] = option(help="dump or corpus: paths, globs, comma lists")
    output: str = option(help="directory of the text shards")
    compat: Compat = option("none", help="whose text shards to reproduce")
    input_format: Literal["auto", "mediawiki", "wikiextractor", "text", "jsonl", "parquet"] = option(
        "auto", help="what the input is; auto looks at its first bytes and its name"
    )
    dump_date: str | None = option(
        None, help="date that clock words in pages give, as 2020-01-31; null: from the dump's name or its pages"
    )
    extraction: ExtractionOptions = nested(ExtractionOptions)
    split: SplitOptions = nested(SplitOptions)

    GROUPS: ClassVar[Mapping[str, str]] = {"dump_date": "how wikitext becomes text"}

    def __post_init__(self) -> None:
        if self.dump_date is not None:
            try:
                datetime.date.fromisoformat(self.dump_date)
            except ValueError:
                raise UnusableInputError(
                    f"--dump_date is {self.dump_date!r}; it must be a day such as 2024-05-01."
                ) from None
        mlperf = self.compat == "mlperf"
        wikitext = self.extraction.wikitext
        if self.extraction.extractor == "wikiextractor" or mlperf:
            if wikitext.expand_templates:
                raise UnusableInputError("--expand_templates does not go with WikiExtractor's text: it expands none.")
            for name in ("template_rules", "report_templates"):
                if getattr(wikitext, name):
                    raise UnusableInputError(f"--{name} does not go with WikiExtractor's text, which has no rules.")
        if self.compat != "none" and self.extraction.reading.language_column is not None:
            raise UnusableInputError("--language_column does not go with --compat: the reference knows no languages.")
        if wikitext.holes == "drop" and (self.decided_extraction.extractor != "maskmill" or self.compat != "none"):
            raise UnusableInputError("--holes drop drops what the reference and WikiExtractor keep; leave it out.")
        if not 0 <= self.extraction.max_rejected_share <= 1:
            raise UnusableInputError(
                f"--max_rejected_share is {self.extraction.max_rejected_share}; it must be between 0 and 1."
            )
        if not 0 < self.extraction.page_seconds <= _MOST_SECONDS:
            raise UnusableInputError(
                f"--page_seconds is {self.extraction.page_seconds}; it must be above 0 and at most {_MOST_SECONDS}."
            )
        if not mlperf:
            return
        if self.extraction.reading.metadata_columns:
            raise UnusableInputError("--metadata_columns keeps nothing with --compat mlperf; leave it out.")
        if self.extraction.steps:
            raise UnusableInputError("--steps change the reference's text; leave out --compat mlperf.")
        if self.split.eval_fraction is not None:
            raise UnusableInputError("--eval_fraction is not the reference's; with --compat mlperf give a number.")
        if self.extraction.extractor == "maskmill":
            raise UnusableInputError("--compat mlperf reproduces WikiExtractor's text; leave --extractor out.")
        if self.input_format not in ("auto", "mediawiki", "wikiextractor"):
            raise UnusableInputError("--compat mlperf takes a dump or WikiExtractor's files as input.")
        for field in dataclasses.fields(self.extraction.quality):
            if field.default in (None, False) and getattr(self.extraction.quality, field.name) != field.default:
                raise UnusableInputError(f"--{field.name} drops what the reference keeps; leave out --compat mlperf.")

    @property
    def decided_extraction(self) -> ExtractionOptions:
        """Return the options that decide a document's text, with what --compat decides."""
        mlperf = self.compat == "mlperf"
        extractor = self.extraction.extractor or ("wikiextractor" if mlperf else "maskmill")
        language = self.extraction.language
        if language == "auto" and self.compat != "none":
            language = "english"
        wikitext = self.extraction.wikitext
        if wikitext.holes is None:
            is_ours = self.compat == "none" and extractor == "maskmill"
            wikitext = dataclasses.replace(wikitext, holes="drop" if is_ours else "keep")
        reading = dataclasses.replace(self.extraction.reading, all_columns=bool(self.extraction.steps))
        return dataclasses.replace(
            self.extraction,
            extractor=extractor,
            language=language,
            wikitext=wikitext,
            doc_blocks=mlperf,
            reading=reading,
        )

    @property
    def decided(self) -> "ExtractOptions":
        """These options with the values that were decided for what was left open, the date of the dump aside."""
        split = self.split.decided_by_mlperf if self.compat == "mlperf" else self.split.decided
        return dataclasses.replace(self, extraction=self.decided_extraction, split=split)


def decided_masking(masking: MaskingOptions, compat: str) -> MaskingOptions:
    """Masking options with what --compat decides: the Unicode tables, and the rule for duplicate vocabulary entries."""
    return dataclasses.replace(
        masking,
        unicode="15.1.0" if compat == "none" else "11.0.0",
        duplicate_pieces="first" if compat == "mlperf" else "last",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesOptions:
    """The options of `maskmill examples`; raises UnusableInputError if some do not go together."""

    input: tuple[str, ...] = option(help="text shards: paths, globs, comma lists; or the directory that extract made")
    output: str = option(help="directory of the example shards")
    vocab_file: str | None = option(
        None, help="WordPiece vocabulary, one piece a line; of it and tokenizer_file give one"
    )
    tokenizer_file: str | None = option(
        None, help="any other tokenizer: the tokenizer.json of Hugging Face's tokenizers, with a mask token"
    )
    preset: str | None = option(None, help=f"values of a recipe, where none are given: {', '.join(presets.names())}")
    masking: MaskingOptions = nested(MaskingOptions)
    objective: ObjectiveOptions = nested(ObjectiveOptions)
    format: FormatOptions = nested(FormatOptions)
    compat: Compat = option(
        "none", help="whose records to reproduce; none: a seed of its own for each shard, current Unicode tables"
    )
    packed: bool = option(False, help="gzip the TFRecords (they then have no index)")

    GROUPS: ClassVar[Mapping[str, str]] = {"compat": "whose records, and how they are packed"}

    @classmethod
    def completed(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the given values with those of their preset, and with the defaults that depend on the objective.

        Raises:
          UnusableInputError: there is no such preset.
        """
        values = {**presets.values_of(values.get("preset"), presets.BUILD, "examples"), **values}
        if values.get("format") == "spans":
            values = {"dynamic_masking": True, **values}
        return {**defaults_of(values), **values}

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise UnusableInputError(problem)

    @property
    def tokenizer(self) -> tuple[str, str]:
        """The option that names what text is tokenized with, and the file's path."""
        if self.tokenizer_file is not None:
            return "tokenizer_file", self.tokenizer_file
        return "vocab_file", self.vocab_file or ""


def _problems(options: ExamplesOptions) -> Iterator[str]:
    """Yield what does not go together in options that are right alone: a sentence each."""
    yield from _problems_of_the_vocabulary(options)
    yield from _problems_of_the_reference(options)
    yield from conflicts(options.masking, options.objective)
    yield from _problems_of_formats(options)


def _problems_of_the_vocabulary(options: ExamplesOptions) -> Iterator[str]:
    if options.vocab_file is None and options.tokenizer_file is None:
        yield (
            "--vocab_file is missing: name a WordPiece vocabulary, one piece a line; or give --tokenizer_file, the "
            "tokenizer.json of another tokenizer."
        )
    if options.vocab_file is not None and options.tokenizer_file is not None:
        yield "--vocab_file does not go with --tokenizer_file, because text is tokenized by one of them; leave one out."
    if options.tokenizer_file is not None and not options.masking.do_lower_case:
        yield (
            "--do_lower_case belongs to --vocab_file, and a tokenizer.json says itself whether text is lower-cased; "
            "leave it out."
        )


def _problems_of_the_reference(options: ExamplesOptions) -> Iterator[str]:
    """Yield what --compat mlperf and google do not go with: they reproduce the records of a script."""
    if options.compat == "none":
        return
    why = f"does not go with --compat {options.compat}, which reproduces the reference's records; leave one of them out"
    if options.tokenizer_file is not None:
        yield f"--tokenizer_file {why}."
    if options.objective.objective != "nsp":
        yield f"--objective {options.objective.objective} {why}."
    if options.format.format == "spans":
        yield f"--format spans {why}."
    if options.objective.mask_unit not in (None, "piece", "whole_word"):
        yield f"--mask_unit {options.objective.mask_unit} {why}."
    for name in _NOT_OF_THE_REFERENCE:
        if getattr(options.objective, name) != getattr(_OBJECTIVE_DEFAULTS, name):
            yield f"--{name} {why}."
    if options.format.special_tokens_mask:
        yield f"--special_tokens_mask {why}."


def _problems_of_formats(options: ExamplesOptions) -> Iterator[str]:
    if options.packed and options.format.format != "tfrecord":
        yield (
            f"--packed gzips TFRecords, and --format {options.format.format} is compressed or read in place by itself; "
            "leave it out."
        )
    if options.format.format == "spans" and not options.objective.dynamic_masking:
        yield "--format spans stores no masks, so it does not go with --nodynamic_masking; leave one of them out."


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyStageOptions:
    """The options of `maskmill vocabulary`; raises UnusableInputError if some do not go together."""

    input: tuple[str, ...] = option(help="text shards: paths, globs, comma lists; or the directory that extract made")
    output: str = option(help="directory of the vocabulary")
    vocabulary: VocabularyOptions = nested(VocabularyOptions)
    compare: tuple[str, ...] = option(
        (), help="other vocabularies, vocab.txt or tokenizer.json, which the report measures on the same text"
    )
    model_dir: str | None = option(
        None, help="directory of the files that transformers' AutoTokenizer.from_pretrained reads, with config.json"
    )
    transform_fn: bool = option(
        False, help="add a SavedModel that turns text into ids inside TensorFlow (extra [tensorflow])"
    )

    GROUPS: ClassVar[Mapping[str, str]] = {"compare": "what is written beside the vocabulary"}

    # What adds to a vocabulary and does not shape it: a directory may be run again with other values of these.
    ADDITIONS: ClassVar[tuple[str, ...]] = ("compare", "model_dir", "transform_fn")

    def __post_init__(self) -> None:
        if self.model_dir is not None and self.model_dir.rstrip("/") == self.output.rstrip("/"):
            raise UnusableInputError(
                f"{self.model_dir}: --model_dir and --output are one directory; name two, because both have a "
                "tokenizer.json."
            )

    @property
    def tokenizer(self) -> tuple[str, str]:
        """The option of examples that takes this vocabulary, and its file's path."""
        if self.vocabulary.kind == "wordpiece":
            return "vocab_file", files.join(self.output, "vocab.txt")
        return "tokenizer_file", files.join(self.output, "tokenizer.json")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvalOptions:
    """The options of a build's eval stage."""

    output: str = option(help="directory of the picked eval examples")
    compat: Compat = option("none", help="with mlperf and google fewer eval examples than that are an error")
    num_examples_to_pick: int = option(
        10000,
        help="eval examples to pick at even distance; where there are fewer all are taken (with mlperf: an error)",
    )

    def __post_init__(self) -> None:
        check_at_least(1, self, "num_examples_to_pick")
