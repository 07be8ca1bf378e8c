"""The commands of `maskmill`, in the order of its help.

A command names its options and what runs it as `module:name`. They are imported when the command is called, so that
`--help` and a mistake are answered at once; a stage, and Beam with it, is imported only to run it.
"""

import dataclasses
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from maskmill.errors import UnusableInputError

if TYPE_CHECKING:
    from pipelines.settings.flags import CommandLine
    from pipelines.settings.options import Option

_COMMAND_OPTIONS = "pipelines.settings.command_options"
_STAGE_OPTIONS = "pipelines.settings.stage_options"


def _named(place: str) -> Any:
    """Return what a text `module:name` names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """A subcommand.

    Attributes:
      help: its line in --help.
      example: a whole command line.
      options: the class of its own flags, as `module:Class`, or a function that gives them by name; empty if it has
        none.
      work: what runs it: a function of the command line, or `module:function`, which is called with the names if it
        takes any, with its options, and with Beam's flags if it runs on Beam. Either may return an exit code of its own
        (128 + the signal that ended a training, as shells do); anything else is for maskmill/programs.py.
      usage: what follows its name in a command line; empty if its required flags do.
      beam: whether it runs on Beam: Beam's flags go through.
      prints_result: whether what it prints is what it is called for, which --quiet leaves.
      prints_with: flags with which it is.
      takes_names: whether it takes names of files that belong to no flag.
    """

    help: str
    example: str
    options: "str | Callable[[], dict[str, Option]]" = ""
    work: "str | Callable[[CommandLine], int | None]"
    usage: str = ""
    beam: bool = False
    prints_result: bool = False
    prints_with: tuple[str, ...] = ()
    takes_names: bool = False

    @property
    def flags(self) -> "dict[str, Option]":
        """All flags of ours by name."""
        from pipelines.settings.command_options import CommonOptions, WorkerOptions

        own = self.options() if callable(self.options) else _options(*map(_named, filter(None, [self.options])))
        shared = _options(WorkerOptions, CommonOptions) if self.beam else _options(CommonOptions)
        return own | {name: dataclasses.replace(known, group="how the command runs") for name, known in shared.items()}

    def run(self, line: "CommandLine", **more: Any) -> Any:
        """Run the command, with more arguments for what runs it; return what that returns."""
        if callable(self.work):
            return self.work(line)
        arguments: list[Any] = [line.names] if self.takes_names else []
        if isinstance(self.options, str) and self.options:
            arguments.append(_made(self.options, line))
        if self.beam:
            arguments.append(_beam_arguments(line))
        return _named(self.work)(*arguments, **more)


def _options(*classes: type) -> "dict[str, Option]":
    """Return the options of options classes by name."""
    from pipelines.settings.options import options_of

    return {name: known for options_class in classes for name, known in options_of(options_class).items()}


def _made(options_class: str, line: "CommandLine", **more: Any) -> Any:
    """Return the options of a class, as `module:Class`, that a command line gives; `more` are further values."""
    from pipelines.settings import options

    return options.from_flags(_named(options_class), {**line.values, **more})


def _beam_arguments(line: "CommandLine") -> list[str]:
    from pipelines.settings import beam_flags

    return beam_flags.with_workers(line.beam, line.values.get("workers"))


# ---- commands that take a build's file

_CHOICES = "pipelines.building.build_options:BuildChoices"


def _build_flags(*places: str, without: tuple[str, ...] = ()) -> "dict[str, Option]":
    """Return the flags of classes of options, as `module:Class`, and those of a build."""
    from pipelines.building import build_options

    own = _options(*map(_named, places))
    return {name: known for name, known in own.items() if name not in without} | build_options.flags()


def _watch_flags() -> "dict[str, Option]":
    """Return a watch builds releases, and looks (--check) where a build plans (--dry_run)."""
    return _build_flags(f"{_COMMAND_OPTIONS}:WatchFlags", _CHOICES, without=_named(_CHOICES).NOT_OF_A_WATCH)


def _overrides(line: "CommandLine") -> dict[str, Any]:
    """Return the values of a command line that override those of a build's file."""
    from pipelines.building import build_options

    known = build_options.flags()
    return {name: value for name, value in line.values.items() if name in known}


def _config(line: "CommandLine", whose: str, what_to_do: str) -> str:
    """Return the one CONFIG.yaml that a command line names; raises UnusableInputError if it names none or several."""
    if not line.names:
        raise UnusableInputError(f"CONFIG.yaml is missing: {what_to_do}.")
    if len(line.names) > 1:
        raise UnusableInputError(f"{line.names[1]}: {whose} one YAML file, and {line.names[0]} is named already.")
    return line.names[0]


def _given(line: "CommandLine", without: tuple[str, ...]) -> list[str]:
    """Return the flags that a command for the later stages of a build needs, too, as arguments."""
    from pipelines.settings import flags

    return flags.written(line, without=("from", "until", *without))


def _warm_up(line: "CommandLine") -> None:
    from pipelines.stages import kernels

    only = None
    if line.names:
        from pipelines.building import build, build_options

        only = build.expected_kernels(build_options.read_build(_config(line, "a warm-up has", "name a build's"), {}))
    kernels.warm_up(only)


def _build(line: "CommandLine") -> int:
    from pipelines.building import build_options
    from pipelines.settings import beam_flags

    prints = line.values.get("print_config")
    config = ""
    if line.names or not prints:
        config = _config(line, "a build has", "`maskmill build --print_config` prints one to start from")
    overrides, beam_arguments = _overrides(line), _beam_arguments(line)
    if prints:
        read = build_options.read_build(config, overrides) if config else None
        print(build_options.print_config(read, overrides.get("preset")))
        return 0
    choices = _made(_CHOICES, line)
    chosen = build_options.read_build(config, overrides)
    if choices.dry_run and (choices.release or beam_flags.runner_of(beam_arguments) != beam_flags.DATAFLOW):
        from pipelines.releasing import dry_run

        dry_run.report(chosen, choices)
        return 0
    if choices.dry_run:
        beam_arguments.append("--dry_run=True")  # Beam's own flag: the job is described
    if choices.release:
        from pipelines.releasing import releases

        return releases.run(chosen, choices, beam_arguments, config=config, given=_given(line, ()))[0]
    from pipelines.building import build

    return build.build(chosen, choices, beam_arguments, config=config, given=_given(line, ()))[0]


def _watch(line: "CommandLine") -> int:
    from pipelines.building import build_options

    config = _config(line, "a watch has", "name the YAML file of a build with a section watch")
    if any(argument.startswith("--dry_run") for argument in line.beam):
        raise UnusableInputError("--dry_run: a watch only looks with --check.")
    flags_of_watch = _made(f"{_COMMAND_OPTIONS}:WatchFlags", line)
    choices = _made(_CHOICES, line, release=True)
    beam_arguments = _beam_arguments(line)
    chosen = build_options.read_build(config, _overrides(line))
    from pipelines.releasing import watch

    given = _given(line, ("check", "download_only"))
    return watch.watch(chosen, flags_of_watch, choices, beam_arguments, config=config, given=given)


def _estimate(line: "CommandLine") -> None:
    from pipelines.building import build_options

    config = _config(line, "an estimate is of", "name the YAML file of a build")
    chosen = _made(f"{_COMMAND_OPTIONS}:EstimateOptions", line)
    build = build_options.read_build(config, _overrides(line))
    from pipelines.building import downloads
    from pipelines.commands import estimate

    estimate.run(downloads.with_input(build)[0], chosen)


_VERIFY_OPTIONS = "maskmill.verification.options:VerifyOptions"


def _verify(line: "CommandLine") -> int:
    from maskmill.storage import paths

    chosen, beam_arguments = _made(_VERIFY_OPTIONS, line), _beam_arguments(line)
    for name in line.names:
        paths.refuse_missing(name)  # before kernels are imported
    from pipelines.verifying import verify

    return verify.run(line.names, chosen, beam_arguments, quiet=bool(line.values.get("quiet")))


COMMANDS = {
    "build": Command(
        help="run all stages from one YAML file",
        example="maskmill build build.yaml --examples.dupe_factor 3 --workers 4",
        options=lambda: _build_flags(_CHOICES),
        work=_build,
        usage="CONFIG.yaml [--SECTION.OPTION VALUE …]",
        beam=True,
        takes_names=True,
        prints_with=("dry_run",),
    ),
    "watch": Command(
        help="build a release of the newest dump, if it is new",
        example="maskmill watch build.yaml --keep 3 --quiet",
        options=_watch_flags,
        work=_watch,
        usage="CONFIG.yaml [--check] [--SECTION.OPTION VALUE …]",
        beam=True,
        takes_names=True,
        prints_with=("check",),
    ),
    "estimate": Command(
        help="tell from a sample what a build will give and take",
        example="maskmill estimate build.yaml --examples.dupe_factor 3 --cores 32",
        options=lambda: _build_flags(f"{_COMMAND_OPTIONS}:EstimateOptions"),
        work=_estimate,
        usage="CONFIG.yaml [--SECTION.OPTION VALUE …]",
        takes_names=True,
    ),
    "extract": Command(
        help="dump or corpus → text shards and eval set",
        example="maskmill extract --input enwiki-latest-pages-articles.xml.bz2 --output text",
        options=f"{_STAGE_OPTIONS}:ExtractOptions",
        work="pipelines.building.build:run_alone",
        beam=True,
    ),
    "vocabulary": Command(
        help="text shards → a vocabulary for them: WordPiece or byte-level BPE",
        example="maskmill vocabulary --input text --output vocabulary --kind bpe --size 32000",
        options=f"{_STAGE_OPTIONS}:VocabularyStageOptions",
        work="pipelines.building.build:run_alone",
        beam=True,
    ),
    "examples": Command(
        help="text shards → training examples: TFRecords, Parquet or MDS",
        example="maskmill examples --input text --output examples --vocab_file vocab.txt",
        options=f"{_STAGE_OPTIONS}:ExamplesOptions",
        work="pipelines.building.build:run_alone",
        beam=True,
    ),
    "create-pretraining-data": Command(
        help="drop-in for create_pretraining_data.py",
        example="maskmill create-pretraining-data --input_file text/part-00000-of-00500 --output_file part-0.tfrecord "
        "--vocab_file vocab.txt",
        options=f"{_COMMAND_OPTIONS}:CreatePretrainingDataOptions",
        work="pipelines.commands.record_files:create",
    ),
    "pick-eval": Command(
        help="pick eval examples at even distance",
        example="maskmill pick-eval --input_tfrecord eval-all.tfrecord --output_tfrecord eval.tfrecord",
        options=f"{_COMMAND_OPTIONS}:PickEvalOptions",
        work="pipelines.commands.record_files:pick",
    ),
    "warm-up": Command(
        help="compile everything at once, or what a build runs",
        example="maskmill warm-up",
        work=_warm_up,
        usage="[CONFIG.yaml]",
        takes_names=True,
    ),
    "index": Command(
        help="write indexes of TFRecord files, which open faster with them",
        example="maskmill index examples/part-*.tfrecord",
        options=f"{_COMMAND_OPTIONS}:IndexOptions",
        work="pipelines.commands.record_files:index",
        usage="FILE … [--output INDEX]",
        takes_names=True,
    ),
    "inspect": Command(
        help="show what is in data, a vocabulary or a checkpoint",
        example="maskmill inspect examples --example search fox",
        options=f"{_COMMAND_OPTIONS}:InspectOptions",
        work="pipelines.commands.inspect:run",
        usage="PATH [--example N|random|search WORD] [--flag VALUE …]",
        prints_result=True,
        takes_names=True,
    ),
    "lineage": Command(
        help="follow data back to the dump; find data with a page",
        example="maskmill lineage run/step-0000001000.safetensors",
        options=f"{_COMMAND_OPTIONS}:LineageOptions",
        work="pipelines.commands.print_lineage:run",
        usage="CHECKPOINT|SHARD|RELEASE|BUILD [--page ID]",
        prints_result=True,
        takes_names=True,
    ),
    "verify": Command(
        help="find out whether a data set is right",
        example="maskmill verify build eval-test.txt",
        options=_VERIFY_OPTIONS,
        work=_verify,
        usage="PATH … [--flag VALUE …]",
        beam=True,
        prints_result=True,
        takes_names=True,
    ),
    "train": Command(
        help="pre-train or fine-tune an encoder on the examples",
        example="maskmill train --input_file examples --output_dir run --preset base",
        options="training.options:TrainOptions",
        work="pipelines.stages.train_stage:train",
    ),
    "convert-checkpoint": Command(
        help="convert checkpoints: TensorFlow 1 and 2, Hugging Face",
        example="maskmill convert-checkpoint --input run --output bert --format huggingface",
        options="training.options:ConvertOptions",
        work="pipelines.stages.train_stage:convert",
    ),
}
