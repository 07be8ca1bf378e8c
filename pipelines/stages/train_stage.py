"""train: a training at the end of a build, after the graph: in this process, by a launcher or by the user's program."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

from maskmill.storage import files
from pipelines.settings.stage_options import ExamplesOptions
from pipelines.stages.eval_stage import EVAL_NAME, EvalStage
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.stage import Build, Stage, check_extra
from training.options import ConvertOptions, TrainOptions, deciding_options

# Options of a training, beside those that decide the weights, of which its result depends.
_SHAPING = (
    "preset", "vocab_size", "bert_config_file", "vocab_file", "tokenizer_file", "next_sentence_prediction",
    "max_seq_length", "max_predictions_per_seq", "eval_every_samples", "max_eval_steps", "target_masked_lm_accuracy",
    "eval_only",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainStage(Stage[TrainOptions]):
    """A training on the examples of a build."""

    name = "train"
    options_class = TrainOptions
    after = EvalStage
    decides = ("output_dir", "input_file", "eval_file", "vocab_file", "tokenizer_file")
    is_optional = True
    purpose = "With this section the build ends with a training (extra [jax]), or with a program of yours."

    @classmethod
    def shaping(cls, options: TrainOptions) -> dict[str, Any]:
        """Return those that decide the weights, and what is measured of them."""
        from training import program

        shaping = deciding_options(options) | {name: getattr(options, name) for name in _SHAPING}
        return shaping | ({"program": program.identity(options.program)} if options.program else {})

    @classmethod
    def output_of(cls, options: TrainOptions) -> str:
        """Return the directory of the checkpoints."""
        return options.output_dir

    @classmethod
    def decisions(cls, build: Build) -> dict[str, Any]:
        """Return what it reads, and where it writes."""
        examples = build[ExamplesStage]
        return {
            "output_dir": build.folder("train"),
            "input_file": (examples.output,),
            "eval_file": eval_examples(build),
            "vocab_file": examples.vocab_file,
            "tokenizer_file": examples.tokenizer_file,
        }

    @classmethod
    def suggested(cls, build: Build) -> Mapping[str, Any]:
        """Return the option that full sentences and blocks need, which have no labels of pairs to learn."""
        return {} if has_pairs(build[ExamplesStage]) else {"next_sentence_prediction": False}

    @classmethod
    def clash(cls, build: Build) -> str | None:
        """Return why next sentence prediction cannot learn from examples without pairs; None if it can."""
        examples = build[ExamplesStage]
        if has_pairs(examples) or not build[TrainStage].next_sentence_prediction:
            return None
        return (
            f"next_sentence_prediction needs pairs, which examples of objective {examples.objective.objective} are "
            "not; leave it out"
        )

    @classmethod
    def check(cls, options: TrainOptions, *, is_first: bool) -> Self:
        """Check what a training needs; `is_first` tells whether the examples are there; raise as Stage.check."""
        from training import preflight

        preflight.check(options, has_input=is_first)
        if options.launcher is None and not options.program:
            check_installed(options.backend)
        return cls(options=options)

    @classmethod
    def check_ahead(cls, options: TrainOptions) -> None:
        """Check all but the size of the model's vocabulary, which comes from the file."""
        cls.check(dataclasses.replace(options, vocab_file=None, tokenizer_file=None), is_first=False)


def has_pairs(examples: ExamplesOptions) -> bool:
    """Return whether examples have labels of pairs to learn; full sentences and blocks have none."""
    return examples.objective.objective not in ("mlm", "blocks")


def eval_examples(build: Build) -> tuple[str, ...]:
    """Return the picked eval examples; if none are picked, or have no masks, all that the build makes."""
    examples, picked = build[ExamplesStage], build.get(EvalStage)
    if picked is None or examples.objective.dynamic_masking:
        return (examples.output,)
    return (files.join(picked.output, EVAL_NAME),)


def check_installed(backend: str) -> None:
    """Raise UnusableInputError if the libraries of a training on a backend are missing."""
    check_extra(backend, "Training", backend, "keras", "safetensors")


def train(options: TrainOptions) -> int:
    """Run `maskmill train`; return its exit code."""
    TrainStage.check(options, is_first=True)
    from training import command

    return command.run(options)


def convert(options: ConvertOptions) -> int:
    """Run `maskmill convert-checkpoint`; return its exit code."""
    from training import preflight

    preflight.check_conversion(options)
    check_installed("jax")
    from training import command

    return command.convert_checkpoint(options)
