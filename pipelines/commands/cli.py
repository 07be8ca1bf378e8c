"""The `maskmill` command, which `maskmill/command.py` calls.

It imports what a command needs when that command is called, its options included, so that `--help` and a mistake are
answered at once; a stage, and Beam with it, it imports only to run it.
"""

import dataclasses
import errno
import itertools
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maskmill import compilation
from maskmill.errors import RunFailedError, UnusableInputError
from pipelines.running import interruption
from pipelines.settings import help
from pipelines.terminal import console

if TYPE_CHECKING:
    from pipelines.settings.flags import CommandLine
    from pipelines.settings.options import Option

DONE, FAILED, UNUSABLE = 0, 1, 2
INTERRUPTED = interruption.SIGNAL_EXIT + signal.SIGINT

_HELP = ("-h", "-help", "--help")
_VERSION = ("-version", "--version")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Command:
    """A subcommand.

    Attributes:
      help: its line in --help.
      example: a whole command line.
      options: gives its own flags by name; called only for this command, because that imports their declarations.
      run: runs it; may return an exit code of its own (128 + the signal that ended a training, as shells do).
      usage: what follows its name in a command line; empty where its required flags do.
      beam: whether it runs on Beam: Beam's flags go through.
      prints_result: whether what it prints is what it is called for, which --quiet leaves.
      prints_with: flags with which it is.
      takes_names: whether it takes names of files that belong to no flag.
    """

    help: str
    example: str
    options: "Callable[[], Mapping[str, Option]]"
    run: "Callable[[CommandLine], int | None]"
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
        return dict(self.options()) | {
            name: dataclasses.replace(known, group="how the command runs") for name, known in shared.items()
        }


def _options(*classes: type) -> "dict[str, Option]":
    """The options of options classes by name."""
    from pipelines.settings.options import options_of

    return {name: known for options_class in classes for name, known in options_of(options_class).items()}


def _usage_of(known: "Mapping[str, Option]") -> str:
    required = [f"--{name} VALUE" for name, needed in known.items() if needed.is_required]
    return f"{' '.join(required)} [--flag VALUE …]"


# ---- commands that run one stage


def _options_of_extract() -> "Mapping[str, Option]":
    from pipelines.settings.stage_options import ExtractOptions

    return _options(ExtractOptions)


def _options_of_vocabulary() -> "Mapping[str, Option]":
    from pipelines.settings.stage_options import VocabularyStageOptions

    return _options(VocabularyStageOptions)


def _options_of_examples() -> "Mapping[str, Option]":
    from pipelines.settings.stage_options import ExamplesOptions

    return _options(ExamplesOptions)


def _run_stage(name: str, line: "CommandLine") -> None:
    from pipelines.settings import beam_flags, options
    from pipelines.stages.registry import STAGES

    entry = next(entry for entry in STAGES if entry.name == name)
    chosen: Any = options.from_flags(entry.options, line.values)
    beam_arguments = beam_flags.with_workers(line.beam, line.values.get("workers"))
    from pipelines.building import build

    manifests = build.run_entries([(entry, chosen)], beam_arguments)
    from pipelines.building import next_step
    from pipelines.terminal import summary

    summary.report(chosen.output, manifests.get(name, {}))
    if manifests:
        next_step.report([chosen.output], next_step.of({name: chosen}))


# ---- commands that take a build's file


def _options_of_build() -> "Mapping[str, Option]":
    from pipelines.building import build_options
    from pipelines.building.build_choices import BuildChoices
    from pipelines.settings.command_options import ConfigOptions

    return {**_options(BuildChoices, ConfigOptions), **build_options.flags()}


def _options_of_watch() -> "Mapping[str, Option]":
    from pipelines.building import build_options
    from pipelines.building.build_choices import BuildChoices
    from pipelines.releasing.watch_options import WatchFlags

    # A watch builds releases, and looks (--check) where a build plans (--dry_run).
    choices = {
        name: known for name, known in _options(BuildChoices).items() if name not in ("release", "dry_run", "json")
    }
    return {**_options(WatchFlags), **choices, **build_options.flags()}


def _options_of_estimate() -> "Mapping[str, Option]":
    from pipelines.building import build_options
    from pipelines.commands.estimate_options import EstimateOptions

    return {**_options(EstimateOptions), **build_options.flags()}


def _overrides(line: "CommandLine") -> dict[str, Any]:
    """The values of a command line that override those of a build's file."""
    from pipelines.building import build_options

    known = build_options.flags()
    return {name: value for name, value in line.values.items() if name in known}


def _config(line: "CommandLine", whose: str, what_to_do: str) -> str:
    """The one CONFIG.yaml that a command line names; raises UnusableInputError where it names none or several."""
    if not line.names:
        raise UnusableInputError(f"CONFIG.yaml is missing: {what_to_do}.")
    if len(line.names) > 1:
        raise UnusableInputError(f"{line.names[1]}: {whose} one YAML file, and {line.names[0]} is named already.")
    return line.names[0]


def _build(line: "CommandLine") -> int:
    from pipelines.building import build_options
    from pipelines.building.build_choices import BuildChoices
    from pipelines.settings import beam_flags, options

    prints = line.values.get("print_config")
    config = ""
    if line.names or not prints:
        config = _config(line, "a build has", "`maskmill build --print_config` prints one to start from")
    overrides = _overrides(line)
    beam_arguments = beam_flags.with_workers(line.beam, line.values.get("workers"))
    if prints:
        read = build_options.read_build(config, overrides) if config else None
        print(build_options.print_config(read, overrides.get("preset")))
        return DONE
    choices = options.from_flags(BuildChoices, line.values)
    chosen = build_options.read_build(config, overrides)
    from pipelines.releasing import releases

    return releases.run(chosen, choices, beam_arguments, config=config)


def _watch(line: "CommandLine") -> int:
    from pipelines.building import build_options
    from pipelines.building.build_choices import BuildChoices
    from pipelines.releasing.watch_options import WatchFlags
    from pipelines.settings import beam_flags, options

    config = _config(line, "a watch has", "name the YAML file of a build with a section watch")
    if any(argument.startswith("--dry_run") for argument in line.beam):
        raise UnusableInputError("--dry_run: a watch only looks with --check.")
    flags_of_watch = options.from_flags(WatchFlags, line.values)
    choices = options.from_flags(BuildChoices, {**line.values, "release": True})
    beam_arguments = beam_flags.with_workers(line.beam, line.values.get("workers"))
    chosen = build_options.read_build(config, _overrides(line))
    from pipelines.releasing import watch

    return watch.watch(chosen, flags_of_watch, choices, beam_arguments, config=config)


def _estimate(line: "CommandLine") -> None:
    from pipelines.building import build_options
    from pipelines.commands.estimate_options import EstimateOptions
    from pipelines.settings import options

    config = _config(line, "an estimate is of", "name the YAML file of a build")
    chosen = options.from_flags(EstimateOptions, line.values)
    build = build_options.read_build(config, _overrides(line))
    from pipelines.commands import estimate
    from pipelines.releasing import release_inputs

    estimate.run(release_inputs.with_input(build)[0], chosen)


# ---- all other commands


def _options_of_pretraining_data() -> "Mapping[str, Option]":
    from pipelines.settings.stage_options import CreatePretrainingDataOptions

    return _options(CreatePretrainingDataOptions)


def _create_pretraining_data(line: "CommandLine") -> None:
    from pipelines.settings import options
    from pipelines.settings.stage_options import CreatePretrainingDataOptions

    chosen = options.from_flags(CreatePretrainingDataOptions, line.values)
    from pipelines.commands import pretraining_data

    pretraining_data.run(chosen)


def _options_of_pick_eval() -> "Mapping[str, Option]":
    from pipelines.settings.stage_options import PickEvalOptions

    return _options(PickEvalOptions)


def _pick_eval(line: "CommandLine") -> None:
    from pipelines.settings import options
    from pipelines.settings.stage_options import PickEvalOptions

    chosen = options.from_flags(PickEvalOptions, line.values)
    from pipelines.commands import record_files

    record_files.pick(chosen)


def _compile_what_reads() -> None:
    from pipelines.stages import kernels

    kernels.prepare(kernels.OF_READING)


def _warm_up(line: "CommandLine") -> None:
    from pipelines.stages import kernels

    kernels.warm_up()


def _options_of_index() -> "Mapping[str, Option]":
    from pipelines.settings.command_options import IndexOptions

    return _options(IndexOptions)


def _index(line: "CommandLine") -> None:
    from pipelines.settings import options
    from pipelines.settings.command_options import IndexOptions

    chosen = options.from_flags(IndexOptions, line.values)
    if not line.names:
        raise UnusableInputError("FILE is missing: name TFRecord files (globs and comma lists too).")
    from pipelines.commands import record_files

    record_files.index(line.names, chosen.output)


def _options_of_inspect() -> "Mapping[str, Option]":
    from pipelines.commands.inspect_options import InspectOptions

    return _options(InspectOptions)


def _inspect(line: "CommandLine") -> None:
    from pipelines.commands.inspect_options import InspectOptions
    from pipelines.settings import options

    chosen = options.from_flags(InspectOptions, line.values)
    from pipelines.commands import inspect

    inspect.run(line.names, chosen)


def _options_of_lineage() -> "Mapping[str, Option]":
    from pipelines.commands.lineage_options import LineageOptions

    return _options(LineageOptions)


def _lineage(line: "CommandLine") -> int:
    from pipelines.commands.lineage_options import LineageOptions
    from pipelines.settings import options

    chosen = options.from_flags(LineageOptions, line.values)
    from pipelines.commands import lineage

    return lineage.run(line.names, chosen)


def _options_of_verify() -> "Mapping[str, Option]":
    from maskmill.verification.options import VerifyOptions

    return _options(VerifyOptions)


def _verify(line: "CommandLine") -> int:
    from maskmill.storage import paths
    from maskmill.verification.options import VerifyOptions
    from pipelines.settings import beam_flags, options

    chosen = options.from_flags(VerifyOptions, line.values)
    beam_arguments = beam_flags.with_workers(line.beam, line.values.get("workers"))
    for name in line.names:
        paths.refuse_missing(name)  # before kernels are imported
    from pipelines.verifying import verify

    return verify.run(line.names, chosen, beam_arguments, quiet=bool(line.values.get("quiet")))


def _options_of_train() -> "Mapping[str, Option]":
    from training.options import TrainOptions

    return _options(TrainOptions)


def _train(line: "CommandLine") -> int:
    from pipelines.settings import options
    from training.options import TrainOptions

    chosen = options.from_flags(TrainOptions, line.values)
    from pipelines.stages import checks
    from training import preflight

    preflight.check(chosen)
    if chosen.launcher is None:
        checks.check_training_installed()
    from training import command

    return command.run(chosen)


def _options_of_convert() -> "Mapping[str, Option]":
    from training.options import ConvertOptions

    return _options(ConvertOptions)


def _convert_checkpoint(line: "CommandLine") -> int:
    from pipelines.settings import options
    from training.options import ConvertOptions

    chosen = options.from_flags(ConvertOptions, line.values)
    from pipelines.stages import checks
    from training import preflight

    preflight.check_conversion(chosen)
    checks.check_training_installed()
    from training import command

    return command.convert_checkpoint(chosen)


COMMANDS: Mapping[str, _Command] = {
    "build": _Command(
        help="run all stages from one YAML file",
        usage="CONFIG.yaml [--SECTION.OPTION VALUE …]",
        example="maskmill build build.yaml --examples.dupe_factor 3 --workers 4",
        options=_options_of_build,
        run=_build,
        beam=True,
        takes_names=True,
        prints_with=("dry_run",),
    ),
    "watch": _Command(
        help="build a release of the newest dump, if it is new",
        usage="CONFIG.yaml [--check] [--SECTION.OPTION VALUE …]",
        example="maskmill watch build.yaml --keep 3 --quiet",
        options=_options_of_watch,
        run=_watch,
        beam=True,
        prints_with=("check",),
        takes_names=True,
    ),
    "estimate": _Command(
        help="tell from a sample what a build will give and take",
        usage="CONFIG.yaml [--SECTION.OPTION VALUE …]",
        example="maskmill estimate build.yaml --examples.dupe_factor 3 --cores 32",
        options=_options_of_estimate,
        run=_estimate,
        takes_names=True,
    ),
    "extract": _Command(
        help="dump or corpus → text shards and eval set",
        example="maskmill extract --input enwiki-latest-pages-articles.xml.bz2 --output text",
        options=_options_of_extract,
        run=lambda line: _run_stage("extract", line),
        beam=True,
    ),
    "vocabulary": _Command(
        help="text shards → a vocabulary for them: WordPiece or byte-level BPE",
        example="maskmill vocabulary --input text --output vocabulary --kind bpe --size 32000",
        options=_options_of_vocabulary,
        run=lambda line: _run_stage("vocabulary", line),
        beam=True,
    ),
    "examples": _Command(
        help="text shards → training examples: TFRecords, Parquet or MDS",
        example="maskmill examples --input text --output examples --vocab_file vocab.txt",
        options=_options_of_examples,
        run=lambda line: _run_stage("examples", line),
        beam=True,
    ),
    "create-pretraining-data": _Command(
        help="drop-in for create_pretraining_data.py",
        example="maskmill create-pretraining-data --input_file text/part-00000-of-00500 --output_file part-0.tfrecord "
        "--vocab_file vocab.txt",
        options=_options_of_pretraining_data,
        run=_create_pretraining_data,
    ),
    "pick-eval": _Command(
        help="pick eval examples at even distance",
        example="maskmill pick-eval --input_tfrecord eval-all.tfrecord --output_tfrecord eval.tfrecord",
        options=_options_of_pick_eval,
        run=_pick_eval,
    ),
    "warm-up": _Command(
        help="compile everything at once, for an image",
        example="maskmill warm-up",
        options=dict,
        run=_warm_up,
        usage="[--quiet]",
    ),
    "index": _Command(
        help="write DALI's index of TFRecord files",
        usage="FILE … [--output INDEX]",
        example="maskmill index examples/part-*.tfrecord",
        options=_options_of_index,
        run=_index,
        takes_names=True,
    ),
    "inspect": _Command(
        help="show what is in data, a vocabulary or a checkpoint",
        usage="PATH [--example N|random|search WORD] [--flag VALUE …]",
        example="maskmill inspect examples --example search fox",
        options=_options_of_inspect,
        run=_inspect,
        prints_result=True,
        takes_names=True,
    ),
    "lineage": _Command(
        help="follow data back to the dump, and forward to checkpoints",
        usage="CHECKPOINT|SHARD|RELEASE|BUILD|DUMP [--root DIR]",
        example="maskmill lineage run/step-0000001000.safetensors",
        options=_options_of_lineage,
        run=_lineage,
        prints_result=True,
        takes_names=True,
    ),
    "verify": _Command(
        help="find out whether a data set is right",
        usage="PATH … [--flag VALUE …]",
        example="maskmill verify build --contamination test.txt",
        options=_options_of_verify,
        run=_verify,
        beam=True,
        prints_result=True,
        takes_names=True,
    ),
    "train": _Command(
        help="pre-train or fine-tune an encoder on the examples",
        example="maskmill train --input_file examples --output_dir run --preset base",
        options=_options_of_train,
        run=_train,
    ),
    "convert-checkpoint": _Command(
        help="convert checkpoints: TensorFlow 1 and 2, Hugging Face",
        example="maskmill convert-checkpoint --input run --output bert --format huggingface",
        options=_options_of_convert,
        run=_convert_checkpoint,
    ),
}


def _split(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """The command's name, and its arguments: flags in front of the name are the command's, too."""
    place = 0
    while place < len(arguments) and arguments[place].startswith("-"):
        place += 2 if arguments[place].lstrip("-") in ("log_level", "log_format") else 1
    if place >= len(arguments):
        return None, list(arguments)
    # The programs of the reference have underscores in their names.
    name = arguments[place].removesuffix(".py").replace("_", "-")
    return name if name in COMMANDS else arguments[place], [*arguments[:place], *arguments[place + 1 :]]


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether --log_format json is among the arguments: a command line that cannot be read is refused as JSON, too."""
    flags_given = [argument.replace("--", "-", 1) for argument in arguments]
    return "-log_format=json" in flags_given or ("-log_format", "json") in itertools.pairwise(flags_given)


def _help_of(name: str) -> str:
    command, flags = COMMANDS[name], COMMANDS[name].flags
    return help.of_command(
        name,
        command.help,
        usage=command.usage or _usage_of(flags),
        example=command.example,
        groups=help.in_groups(flags),
        takes_beam_flags=command.beam,
    )


def _run(name: str | None, arguments: list[str], prints: console.Console, version: str) -> int:
    """Runs a command; returns its exit code."""
    asked = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if name == "help":
        name, asked = next((a for a in arguments if a in COMMANDS), None), ["--help"]
    if name is not None and name not in COMMANDS:
        from pipelines.settings.options import nearest

        hint = nearest(name, COMMANDS, otherwise="; see maskmill --help")
        raise UnusableInputError(f"{name}: there is no such command{hint}")
    if any(argument in _VERSION for argument in asked):
        print(f"maskmill {version}")
        return DONE
    if any(argument in _HELP for argument in asked) or (name is None and not arguments):
        print(help.of_program({name: c.help for name, c in COMMANDS.items()}) if name is None else _help_of(name))
        return DONE if asked else UNUSABLE
    if name is None:
        raise UnusableInputError(f"{arguments[0]}: a command is missing in front of it; see maskmill --help.")
    from pipelines.settings import beam_flags, flags, options
    from pipelines.settings.command_options import CommonOptions

    command = COMMANDS[name]
    line = flags.parse(
        arguments, command.flags, beam_flags.read if command.beam else None, takes_names=command.takes_names
    )
    common = options.from_flags(CommonOptions, line.values)
    keeps_output = command.prints_result or any(line.values.get(flag) for flag in command.prints_with)
    with prints.listening(quiet=common.quiet, level=common.log_level, keeps_output=keeps_output):
        # What runs stages says more exactly what it runs.
        compilation.before_first(_compile_what_reads)
        return command.run(line) or DONE


def _shortage(error: OSError | ImportError) -> str:
    """The sentence for an error by which the machine says that it has too little of something; empty for any other."""
    if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
        return f"Too few files may be open at once ({error}); raise the limit, as in `ulimit -n 1024`."
    # A library cannot be loaded: the linker tells the reason in words alone.
    if getattr(error, "errno", None) in (errno.ENOMEM, errno.EAGAIN) or re.search(
        "failed to map|annot allocate", str(error)
    ):
        return f"There is not enough memory ({error}); free some, or raise the limit (`ulimit -v`)."
    return ""


def main(argv: Sequence[str] | None = None, *, version: str = "of a checkout") -> int:
    """Runs a command line; returns its exit code. `version` is what --version prints.

    0: done; 1: the run failed; 2: the command or its input is unusable; 130: interrupted by Ctrl-C.
    """
    name, arguments = _split(sys.argv[1:] if argv is None else argv)
    with console.opened(as_json=_wants_json(arguments)) as prints:
        said = f"maskmill {name}" if name in COMMANDS else "maskmill"
        try:
            code = _run(name, arguments, prints, version)
            prints.finish()
            return code
        except UnusableInputError as error:
            prints.say(f"{said}: {error}")
            return UNUSABLE
        except RunFailedError as error:
            prints.say(f"{said}: {error}")
            return FAILED
        except MemoryError as error:
            detail = f" ({error})" if str(error) else ""
            prints.say(f"{said}: There is not enough memory{detail}; free some, or take smaller pieces of input.")
            return FAILED
        except (OSError, ImportError) as error:
            if not (shortage := _shortage(error)):
                raise
            prints.say(f"{said}: {shortage}")
            return FAILED
        except KeyboardInterrupt:
            # In a process of the command's own, interruption.Watch ends it before this is reached.
            prints.say(f"{said}: interrupted; {interruption.HOW_TO_GO_ON}")
            return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
