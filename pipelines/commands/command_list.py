"""The commands of `maskmill`, in the order of its help.

Each function imports what a command needs when that command is called, its options included, so that `--help` and a
mistake are answered at once; a stage, and Beam with it, is imported only to run it.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from maskmill.errors import UnusableInputError

if TYPE_CHECKING:
    from pipelines.settings.flags import CommandLine
    from pipelines.settings.options import Option
    from pipelines.stages.stage import Stage

    _Loaded = tuple[dict[str, Option], Callable[[CommandLine], int | None]]

T = TypeVar("T")

COMMANDS: "dict[str, Command]" = {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """A subcommand.

    Attributes:
      help: its line in --help.
      example: a whole command line.
      load: imports the declarations of its own flags and gives them by name, with the function that runs it; called
        only for this command. The function may return an exit code of its own (128 + the signal that ended a training,
        as shells do).
      usage: what follows its name in a command line; empty if its required flags do.
      beam: whether it runs on Beam: Beam's flags go through.
      prints_result: whether what it prints is what it is called for, which --quiet leaves.
      prints_with: flags with which it is.
      takes_names: whether it takes names of files that belong to no flag.
    """

    help: str
    example: str
    load: "Callable[[], _Loaded]"
    usage: str = ""
    beam: bool = False
    prints_result: bool = False
    prints_with: tuple[str, ...] = ()
    takes_names: bool = False

    @property
    def flags(self) -> "dict[str, Option]":
        """All flags of ours by name."""
        from pipelines.settings.command_options import CommonOptions, WorkerOptions

        shared = _options(WorkerOptions, CommonOptions) if self.beam else _options(CommonOptions)
        return self.load()[0] | {
            name: dataclasses.replace(known, group="how the command runs") for name, known in shared.items()
        }


def _command(name: str, help: str, example: str, **more: Any) -> "Callable[[Callable[[], _Loaded]], None]":
    """Lists a function that loads a command; `more` are further attributes of Command."""

    def add(load: "Callable[[], _Loaded]") -> None:
        COMMANDS[name] = Command(help=help, example=example, load=load, **more)

    return add


def _options(*classes: type) -> "dict[str, Option]":
    """The options of options classes by name."""
    from pipelines.settings.options import options_of

    return {name: known for options_class in classes for name, known in options_of(options_class).items()}


def _loaded(options_class: type[T], run: "Callable[[CommandLine, T], int | None]") -> "_Loaded":
    """A command with the flags of one class, which `run` gets made of the command line."""
    from pipelines.settings import options

    return _options(options_class), lambda line: run(line, options.from_flags(options_class, line.values))


def _beam_arguments(line: "CommandLine") -> list[str]:
    from pipelines.settings import beam_flags

    return beam_flags.with_workers(line.beam, line.values.get("workers"))


# ---- commands that take a build's file


def _overrides(line: "CommandLine") -> dict[str, Any]:
    """The values of a command line that override those of a build's file."""
    from pipelines.building import build_options

    known = build_options.flags()
    return {name: value for name, value in line.values.items() if name in known}


def _config(line: "CommandLine", whose: str, what_to_do: str) -> str:
    """The one CONFIG.yaml that a command line names; raises UnusableInputError if it names none or several."""
    if not line.names:
        raise UnusableInputError(f"CONFIG.yaml is missing: {what_to_do}.")
    if len(line.names) > 1:
        raise UnusableInputError(f"{line.names[1]}: {whose} one YAML file, and {line.names[0]} is named already.")
    return line.names[0]


@_command(
    "build",
    "run all stages from one YAML file",
    "maskmill build build.yaml --examples.dupe_factor 3 --workers 4",
    usage="CONFIG.yaml [--SECTION.OPTION VALUE …]",
    beam=True,
    takes_names=True,
    prints_with=("dry_run",),
)
def _build() -> "_Loaded":
    from pipelines.building import build_options
    from pipelines.building.build_options import BuildChoices
    from pipelines.settings import options

    def run(line: "CommandLine") -> int:
        prints = line.values.get("print_config")
        config = ""
        if line.names or not prints:
            config = _config(line, "a build has", "`maskmill build --print_config` prints one to start from")
        overrides, beam_arguments = _overrides(line), _beam_arguments(line)
        if prints:
            read = build_options.read_build(config, overrides) if config else None
            print(build_options.print_config(read, overrides.get("preset")))
            return 0
        choices = options.from_flags(BuildChoices, line.values)
        chosen = build_options.read_build(config, overrides)
        from pipelines.releasing import releases

        return releases.run(chosen, choices, beam_arguments, config=config)

    return _options(BuildChoices) | build_options.flags(), run


@_command(
    "watch",
    "build a release of the newest dump, if it is new",
    "maskmill watch build.yaml --keep 3 --quiet",
    usage="CONFIG.yaml [--check] [--SECTION.OPTION VALUE …]",
    beam=True,
    prints_with=("check",),
    takes_names=True,
)
def _watch() -> "_Loaded":
    from pipelines.building import build_options
    from pipelines.building.build_options import BuildChoices
    from pipelines.settings import options
    from pipelines.settings.command_options import WatchFlags

    def run(line: "CommandLine") -> int:
        config = _config(line, "a watch has", "name the YAML file of a build with a section watch")
        if any(argument.startswith("--dry_run") for argument in line.beam):
            raise UnusableInputError("--dry_run: a watch only looks with --check.")
        flags_of_watch = options.from_flags(WatchFlags, line.values)
        choices = options.from_flags(BuildChoices, {**line.values, "release": True})
        beam_arguments = _beam_arguments(line)
        chosen = build_options.read_build(config, _overrides(line))
        from pipelines.releasing import watch

        return watch.watch(chosen, flags_of_watch, choices, beam_arguments, config=config)

    # A watch builds releases, and looks (--check) where a build plans (--dry_run).
    choices = {name: known for name, known in _options(BuildChoices).items() if name not in BuildChoices.NOT_OF_A_WATCH}
    return _options(WatchFlags) | choices | build_options.flags(), run


@_command(
    "estimate",
    "tell from a sample what a build will give and take",
    "maskmill estimate build.yaml --examples.dupe_factor 3 --cores 32",
    usage="CONFIG.yaml [--SECTION.OPTION VALUE …]",
    takes_names=True,
)
def _estimate() -> "_Loaded":
    from pipelines.building import build_options
    from pipelines.settings import options
    from pipelines.settings.command_options import EstimateOptions

    def run(line: "CommandLine") -> None:
        config = _config(line, "an estimate is of", "name the YAML file of a build")
        chosen = options.from_flags(EstimateOptions, line.values)
        build = build_options.read_build(config, _overrides(line))
        from pipelines.commands import estimate
        from pipelines.releasing import release_inputs

        estimate.run(release_inputs.with_input(build)[0], chosen)

    return _options(EstimateOptions) | build_options.flags(), run


# ---- commands that run one stage


def _loaded_stage(stage: "type[Stage[Any]]") -> "_Loaded":
    def run(line: "CommandLine", chosen: Any) -> None:
        beam_arguments = _beam_arguments(line)
        from pipelines.building import build, next_step
        from pipelines.terminal import printed_summary

        manifests = build.run_chosen([(stage, chosen)], beam_arguments)
        printed_summary.report(chosen.output, manifests.get(stage.name, {}))
        if manifests:
            next_step.report([chosen.output], next_step.of({stage: chosen}))

    return _loaded(stage.options_class, run)


@_command(
    "extract",
    "dump or corpus → text shards and eval set",
    "maskmill extract --input enwiki-latest-pages-articles.xml.bz2 --output text",
    beam=True,
)
def _extract() -> "_Loaded":
    from pipelines.stages.extract_stage import ExtractStage

    return _loaded_stage(ExtractStage)


@_command(
    "vocabulary",
    "text shards → a vocabulary for them: WordPiece or byte-level BPE",
    "maskmill vocabulary --input text --output vocabulary --kind bpe --size 32000",
    beam=True,
)
def _vocabulary() -> "_Loaded":
    from pipelines.stages.vocabulary_stage import VocabularyStage

    return _loaded_stage(VocabularyStage)


@_command(
    "examples",
    "text shards → training examples: TFRecords, Parquet or MDS",
    "maskmill examples --input text --output examples --vocab_file vocab.txt",
    beam=True,
)
def _examples() -> "_Loaded":
    from pipelines.stages.examples_stage import ExamplesStage

    return _loaded_stage(ExamplesStage)


# ---- all other commands


@_command(
    "create-pretraining-data",
    "drop-in for create_pretraining_data.py",
    "maskmill create-pretraining-data --input_file text/part-00000-of-00500 --output_file part-0.tfrecord "
    "--vocab_file vocab.txt",
)
def _create_pretraining_data() -> "_Loaded":
    from pipelines.settings.command_options import CreatePretrainingDataOptions

    def run(line: "CommandLine", chosen: CreatePretrainingDataOptions) -> None:
        from pipelines.commands import record_files

        record_files.create(chosen)

    return _loaded(CreatePretrainingDataOptions, run)


@_command(
    "pick-eval",
    "pick eval examples at even distance",
    "maskmill pick-eval --input_tfrecord eval-all.tfrecord --output_tfrecord eval.tfrecord",
)
def _pick_eval() -> "_Loaded":
    from pipelines.settings.command_options import PickEvalOptions

    def run(line: "CommandLine", chosen: PickEvalOptions) -> None:
        from pipelines.commands import record_files

        record_files.pick(chosen)

    return _loaded(PickEvalOptions, run)


@_command("warm-up", "compile everything at once, for an image", "maskmill warm-up", usage="[--quiet]")
def _warm_up() -> "_Loaded":
    def run(line: "CommandLine") -> None:
        from pipelines.stages import kernels

        kernels.warm_up()

    return {}, run


@_command(
    "index",
    "write DALI's index of TFRecord files",
    "maskmill index examples/part-*.tfrecord",
    usage="FILE … [--output INDEX]",
    takes_names=True,
)
def _index() -> "_Loaded":
    from pipelines.settings.command_options import IndexOptions

    def run(line: "CommandLine", chosen: IndexOptions) -> None:
        if not line.names:
            raise UnusableInputError("FILE is missing: name TFRecord files (globs and comma lists too).")
        from pipelines.commands import record_files

        record_files.index(line.names, chosen.output)

    return _loaded(IndexOptions, run)


@_command(
    "inspect",
    "show what is in data, a vocabulary or a checkpoint",
    "maskmill inspect examples --example search fox",
    usage="PATH [--example N|random|search WORD] [--flag VALUE …]",
    prints_result=True,
    takes_names=True,
)
def _inspect() -> "_Loaded":
    from pipelines.settings.command_options import InspectOptions

    def run(line: "CommandLine", chosen: InspectOptions) -> None:
        from pipelines.commands import inspect

        inspect.run(line.names, chosen)

    return _loaded(InspectOptions, run)


@_command(
    "lineage",
    "follow data back to the dump, and forward to checkpoints",
    "maskmill lineage run/step-0000001000.safetensors",
    usage="CHECKPOINT|SHARD|RELEASE|BUILD|DUMP [--root DIR]",
    prints_result=True,
    takes_names=True,
)
def _lineage() -> "_Loaded":
    from pipelines.settings.command_options import LineageOptions

    def run(line: "CommandLine", chosen: LineageOptions) -> int:
        from pipelines.commands import print_lineage

        return print_lineage.run(line.names, chosen)

    return _loaded(LineageOptions, run)


@_command(
    "verify",
    "find out whether a data set is right",
    "maskmill verify build --contamination test.txt",
    usage="PATH … [--flag VALUE …]",
    beam=True,
    prints_result=True,
    takes_names=True,
)
def _verify() -> "_Loaded":
    from maskmill.verification.options import VerifyOptions

    def run(line: "CommandLine", chosen: VerifyOptions) -> int:
        from maskmill.storage import paths

        beam_arguments = _beam_arguments(line)
        for name in line.names:
            paths.refuse_missing(name)  # before kernels are imported
        from pipelines.verifying import verify

        return verify.run(line.names, chosen, beam_arguments, quiet=bool(line.values.get("quiet")))

    return _loaded(VerifyOptions, run)


@_command(
    "train",
    "pre-train or fine-tune an encoder on the examples",
    "maskmill train --input_file examples --output_dir run --preset base",
)
def _train() -> "_Loaded":
    from training.options import TrainOptions

    def run(line: "CommandLine", chosen: TrainOptions) -> int:
        from pipelines.stages.train_stage import TrainStage

        TrainStage.check(chosen, is_first=True)
        from training import command

        return command.run(chosen)

    return _loaded(TrainOptions, run)


@_command(
    "convert-checkpoint",
    "convert checkpoints: TensorFlow 1 and 2, Hugging Face",
    "maskmill convert-checkpoint --input run --output bert --format huggingface",
)
def _convert_checkpoint() -> "_Loaded":
    from training.options import ConvertOptions

    def run(line: "CommandLine", chosen: ConvertOptions) -> int:
        from pipelines.stages import train_stage
        from training import preflight

        preflight.check_conversion(chosen)
        train_stage.check_training_installed()
        from training import command

        return command.convert_checkpoint(chosen)

    return _loaded(ConvertOptions, run)
