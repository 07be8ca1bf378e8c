"""The options of the stages and of the commands beside them: each field is a flag, a YAML key and a manifest entry.

What a step decides is declared beside the step (transforms/STEP/options.py) and nested here. Nothing here imports Beam
or a kernel, so that `--help` answers at once.
"""

import dataclasses
import datetime
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from maskmill.arguments import check_at_least
from maskmill.errors import UnusableInputError
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.options import nested, option
from maskmill.records.options import FormatOptions
from maskmill.storage import files
from pipelines.settings import presets
from pipelines.settings.combinations import check_together
from transforms.shards.options import ExtractionOptions, MlperfOptions, SplitOptions
from transforms.vocabularies.options import VocabularyOptions

Compat = Literal["none", "mlperf", "google"]


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
        if not mlperf:
            return
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
        """What decides a document's text, with what --compat decides."""
        mlperf = self.compat == "mlperf"
        extractor = self.extraction.extractor or ("wikiextractor" if mlperf else "maskmill")
        language = self.extraction.language
        if language == "auto" and self.compat != "none":
            language = "english"
        return dataclasses.replace(self.extraction, extractor=extractor, language=language, doc_blocks=mlperf)

    @property
    def decided(self) -> "ExtractOptions":
        """These options with the values that were decided for what was left open, the date of the dump aside."""
        split = self.split.decided
        if self.compat == "mlperf":
            split = dataclasses.replace(
                self.split,
                num_eval_articles=self.mlperf.num_eval_articles,
                shard_size_mb=self.mlperf.shard_size_mb,
            )
        return dataclasses.replace(self, extraction=self.decided_extraction, split=split)

    @property
    def mlperf(self) -> MlperfOptions:
        """The parameters of the reference's chain."""
        articles, size = self.split.num_eval_articles, self.split.shard_size_mb
        return MlperfOptions(
            num_eval_articles=10000 if articles is None else articles,
            shard_size_mb=26.92 if size is None else size,
            seed=self.extraction.random_seed,
            language=self.decided_extraction.language,
        )


def decided_masking(masking: MaskingOptions, compat: str) -> MaskingOptions:
    """Masking options with what --compat decides: the Unicode tables, and the rule for duplicate vocabulary entries."""
    return dataclasses.replace(
        masking,
        unicode="15.1.0" if compat == "none" else "11.0.0",
        duplicate_pieces="last" if compat == "google" else "first",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesOptions:
    """The options of `maskmill examples`.

    Raises:
      UnusableInputError: options that do not go together.
    """

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
        """The given values with those of their preset, and with the defaults that depend on the objective.

        Raises:
          UnusableInputError: there is no such preset.
        """
        values = {**presets.values_of(values.get("preset"), presets.BUILD, "examples"), **values}
        follows: dict[str, Any] = {}
        if values.get("dynamic_masking"):
            follows["dupe_factor"] = 1
        if values.get("objective", "nsp") != "nsp":
            length = values.get("max_seq_length", MaskingOptions.max_seq_length)
            share = values.get("masked_lm_prob", MaskingOptions.masked_lm_prob)
            follows["max_predictions_per_seq"] = max(1, math.ceil(length * share))
        if values.get("objective") == "mlm" and values.get("pack"):
            follows["full_sentences"] = False
        if values.get("objective") in ("mlm", "blocks"):
            follows["short_seq_prob"] = 0.0
        return {**follows, **values}

    def __post_init__(self) -> None:
        check_together(self)

    @property
    def tokenizer(self) -> tuple[str, str]:
        """The option that names what text is tokenized with, and the file's path."""
        if self.tokenizer_file is not None:
            return "tokenizer_file", self.tokenizer_file
        return "vocab_file", self.vocab_file or ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyStageOptions:
    """The options of `maskmill vocabulary`.

    Raises:
      UnusableInputError: options that do not go together.
    """

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
