"""The `maskmill` command, which `maskmill/command.py` calls. It imports a stage, and Beam with it, only to run it."""

import dataclasses
import itertools
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pipelines import (
    beam_flags,
    build_options,
    checks,
    console,
    flags,
    help,
    interruption,
    next_step,
    options,
    stage_options,
    summary,
)
from pipelines.build_choices import BuildChoices
from pipelines.estimate_options import EstimateOptions
from pipelines.flags import CommandLine
from pipelines.inspect_options import InspectOptions
from pipelines.lineage_options import LineageOptions
from pipelines.options import Option
from pipelines.stages import STAGES, StageEntry
from pipelines.watch_options import WatchFlags
from training.options import ConvertOptions, TrainOptions
from transforms.errors import RunFailedError, UnusableInputError
from transforms.options import option
from transforms.verification.options import VerifyOptions

DONE, FAILED, UNUSABLE = 0, 1, 2
INTERRUPTED = interruption.SIGNAL_EXIT + signal.SIGINT

_HELP = ("-h", "-help", "--help")
_VERSION = ("-version", "--version")


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
class ConfigOptions:
    """The flag of `maskmill build` that no section has."""

    print_config: bool = option(
        False, help="print the build with a comment for each option, every default without CONFIG.yaml, and stop"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Command:
    """A subcommand.

    Attributes:
      help: its line in --help.
      usage: what follows its name in a command line.
      example: a whole command line.
      options: its own flags by name.
      run: runs it; may return an exit code of its own (128 + the signal that ended a training, as shells do).
      beam: whether it runs on Beam: Beam's flags go through.
      prints_result: whether what it prints is what it is called for, which --quiet leaves.
      prints_with: flags with which it is.
      takes_names: whether it takes names of files that belong to no flag.
    """

    help: str
    usage: str
    example: str
    options: Mapping[str, Option]
    run: Callable[[CommandLine], int | None]
    beam: bool = False
    prints_result: bool = False
    prints_with: tuple[str, ...] = ()
    takes_names: bool = False

    @property
    def flags(self) -> dict[str, Option]:
        """All flags of ours by name."""
        shared = [WorkerOptions, CommonOptions] if self.beam else [CommonOptions]
        return dict(self.options) | {
            name: dataclasses.replace(known, group="how the command runs")
            for shared_class in shared
            for name, known in options.options_of(shared_class).items()
        }


def _run_stage(entry: StageEntry) -> Callable[[CommandLine], None]:
    def run(line: CommandLine) -> None:
        chosen: Any = options.from_flags(entry.options, line.values)
        beam_arguments = beam_flags.with_workers(line.beam, line.values.get("workers"))
        from pipelines import build

        manifests = build.run_entries([(entry, chosen)], beam_arguments)
        summary.report(chosen.output, manifests.get(entry.name, {}))
        if manifests:
            next_step.report([chosen.output], next_step.of({entry.name: chosen}))

    return run


def _create_pretraining_data(line: CommandLine) -> None:
    chosen = options.from_flags(stage_options.CreatePretrainingDataOptions, line.values)
    from pipelines import pretraining_data

    pretraining_data.run(chosen)


def _pick_eval(line: CommandLine) -> None:
    chosen = options.from_flags(stage_options.PickEvalOptions, line.values)
    from pipelines import record_files

    record_files.pick(chosen)


def _index(line: CommandLine) -> None:
    chosen = options.from_flags(IndexOptions, line.values)
    if not line.names:
        raise UnusableInputError("FILE is missing: name TFRecord files (globs and comma lists too).")
    from pipelines import record_files

    record_files.index(line.names, chosen.output)


def _build(line: CommandLine) -> int:
    if len(line.names) > 1:
        raise UnusableInputError(f"{line.names[1]}: a build has one YAML file, and {line.names[0]} is named already.")
    known = build_options.flags()
    overrides = {name: value for name, value in line.values.items() if name in known}
    beam_arguments = beam_flags.with_workers(line.beam, line.values.get("workers"))
    if line.values.get("print_config"):
        read = build_options.read_build(line.names[0], overrides) if line.names else None
        print(build_options.print_config(read, overrides.get("preset")))
        return DONE
    if not line.names:
        raise UnusableInputError("CONFIG.yaml is missing: `maskmill build --print_config` prints one to start from.")
    choices = options.from_flags(BuildChoices, line.values)
    chosen = build_options.read_build(line.names[0], overrides)
    from pipelines import releases

    return releases.run(chosen, choices, beam_arguments, config=line.names[0])


def _watch(line: CommandLine) -> int:
    if len(line.names) != 1:
        raise UnusableInputError(
            "CONFIG.yaml is missing: name the YAML file of a build with a section watch."
            if not line.names
            else f"{line.names[1]}: a watch has one YAML file, and {line.names[0]} is named already."
        )
    if any(argument.startswith("--dry_run") for argument in line.beam):
        raise UnusableInputError("--dry_run: a watch only looks with --check.")
    known = build_options.flags()
    flags_of_watch = options.from_flags(WatchFlags, line.values)
    choices = options.from_flags(BuildChoices, {**line.values, "release": True})
    beam_arguments = beam_flags.with_workers(line.beam, line.values.get("workers"))
    overrides = {name: value for name, value in line.values.items() if name in known}
    chosen = build_options.read_build(line.names[0], overrides)
    from pipelines import watch

    return watch.watch(chosen, flags_of_watch, choices, beam_arguments, config=line.names[0])


def _estimate(line: CommandLine) -> None:
    if len(line.names) != 1:
        raise UnusableInputError(
            "CONFIG.yaml is missing: name the YAML file of a build."
            if not line.names
            else f"{line.names[1]}: an estimate is of one YAML file, and {line.names[0]} is named already."
        )
    known = build_options.flags()
    chosen = options.from_flags(EstimateOptions, line.values)
    overrides = {name: value for name, value in line.values.items() if name in known}
    build = build_options.read_build(line.names[0], overrides)
    from pipelines import estimate, release_inputs

    estimate.run(release_inputs.with_input(build)[0], chosen)


def _inspect(line: CommandLine) -> None:
    chosen = options.from_flags(InspectOptions, line.values)
    from pipelines import inspect

    inspect.run(line.names, chosen)


def _lineage(line: CommandLine) -> int:
    chosen = options.from_flags(LineageOptions, line.values)
    from pipelines import lineage

    return lineage.run(line.names, chosen)


def _verify(line: CommandLine) -> int:
    chosen = options.from_flags(VerifyOptions, line.values)
    beam_arguments = beam_flags.with_workers(line.beam, line.values.get("workers"))
    from pipelines import verify

    return verify.run(line.names, chosen, beam_arguments, quiet=bool(line.values.get("quiet")))


def _train(line: CommandLine) -> int:
    chosen = options.from_flags(TrainOptions, line.values)
    from training import preflight

    preflight.check(chosen)
    if chosen.launcher is None:
        checks.check_training_installed()
    from training import command

    return command.run(chosen)


def _convert_checkpoint(line: CommandLine) -> int:
    chosen = options.from_flags(ConvertOptions, line.values)
    from training import preflight

    preflight.check_conversion(chosen)
    checks.check_training_installed()
    from training import command

    return command.convert_checkpoint(chosen)


def _usage_of(known: Mapping[str, Option]) -> str:
    required = [f"--{name} VALUE" for name, needed in known.items() if needed.is_required]
    return f"{' '.join(required)} [--flag VALUE …]"


def _of_stage(entry: StageEntry) -> _Command:
    known = options.options_of(entry.options)
    return _Command(
        help=entry.help,
        usage=_usage_of(known),
        example=entry.example,
        options=known,
        run=_run_stage(entry),
        beam=True,
    )


def _of_options(help: str, example: str, options_class: type, run: Callable[[CommandLine], int | None]) -> _Command:
    known = options.options_of(options_class)
    return _Command(help=help, usage=_usage_of(known), example=example, options=known, run=run)


# A watch builds releases, and looks (--check) where a build plans (--dry_run).
_NOT_OF_A_WATCH = ("release", "dry_run", "json")
_CHOICES_OF_A_WATCH = {
    name: known for name, known in options.options_of(BuildChoices).items() if name not in _NOT_OF_A_WATCH
}

COMMANDS: Mapping[str, _Command] = {
    "build": _Command(
        help="run all stages from one YAML file",
        usage="CONFIG.yaml [--SECTION.OPTION VALUE …]",
        example="maskmill build build.yaml --examples.dupe_factor 3 --workers 4",
        options={**options.options_of(BuildChoices), **options.options_of(ConfigOptions), **build_options.flags()},
        run=_build,
        beam=True,
        takes_names=True,
        prints_with=("dry_run",),
    ),
    "watch": _Command(
        help="build a release of the newest dump, if it is new",
        usage="CONFIG.yaml [--check] [--SECTION.OPTION VALUE …]",
        example="maskmill watch build.yaml --keep 3 --quiet",
        options={**options.options_of(WatchFlags), **_CHOICES_OF_A_WATCH, **build_options.flags()},
        run=_watch,
        beam=True,
        prints_with=("check",),
        takes_names=True,
    ),
    "estimate": _Command(
        help="tell from a sample what a build will give and take",
        usage="CONFIG.yaml [--SECTION.OPTION VALUE …]",
        example="maskmill estimate build.yaml --examples.dupe_factor 3 --cores 32",
        options={**options.options_of(EstimateOptions), **build_options.flags()},
        run=_estimate,
        takes_names=True,
    ),
    **{entry.name: _of_stage(entry) for entry in STAGES if entry.is_command},
    "create-pretraining-data": _of_options(
        "drop-in for create_pretraining_data.py",
        "maskmill create-pretraining-data --input_file text/part-00000-of-00500 --output_file part-0.tfrecord "
        "--vocab_file vocab.txt",
        stage_options.CreatePretrainingDataOptions,
        _create_pretraining_data,
    ),
    "pick-eval": _of_options(
        "pick eval examples at even distance",
        "maskmill pick-eval --input_tfrecord eval-all.tfrecord --output_tfrecord eval.tfrecord",
        stage_options.PickEvalOptions,
        _pick_eval,
    ),
    "index": _Command(
        help="write DALI's index of TFRecord files",
        usage="FILE … [--output INDEX]",
        example="maskmill index examples/part-*.tfrecord",
        options=options.options_of(IndexOptions),
        run=_index,
        takes_names=True,
    ),
    "inspect": _Command(
        help="show what is in data, a vocabulary or a checkpoint",
        usage="PATH [--example N|random|search WORD] [--flag VALUE …]",
        example="maskmill inspect examples --example search fox",
        options=options.options_of(InspectOptions),
        run=_inspect,
        prints_result=True,
        takes_names=True,
    ),
    "lineage": _Command(
        help="follow data back to the dump, and forward to checkpoints",
        usage="CHECKPOINT|SHARD|RELEASE|BUILD|DUMP [--root DIR]",
        example="maskmill lineage run/step-0000001000.safetensors",
        options=options.options_of(LineageOptions),
        run=_lineage,
        prints_result=True,
        takes_names=True,
    ),
    "verify": _Command(
        help="find out whether a data set is right",
        usage="PATH … [--flag VALUE …]",
        example="maskmill verify build --contamination test.txt",
        options=options.options_of(VerifyOptions),
        run=_verify,
        beam=True,
        prints_result=True,
        takes_names=True,
    ),
    "train": _of_options(
        "pre-train or fine-tune an encoder on the examples",
        "maskmill train --input_file examples --output_dir run --preset base",
        TrainOptions,
        _train,
    ),
    "convert-checkpoint": _of_options(
        "convert checkpoints: TensorFlow 1 and 2, Hugging Face",
        "maskmill convert-checkpoint --input run --output bert --format huggingface",
        ConvertOptions,
        _convert_checkpoint,
    ),
}


def _split(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """The command's name, and its arguments: flags in front of the name are the command's, too."""
    place = 0
    while place < len(arguments) and arguments[place].startswith("-"):
        place += 2 if arguments[place].lstrip("-") in ("log_level", "log_format") else 1
    if place >= len(arguments):
        return None, list(arguments)
    return arguments[place], [*arguments[:place], *arguments[place + 1 :]]


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether --log_format json is among the arguments: a command line that cannot be read is refused as JSON, too."""
    flags_given = [argument.replace("--", "-", 1) for argument in arguments]
    return "-log_format=json" in flags_given or ("-log_format", "json") in itertools.pairwise(flags_given)


def _help_of(name: str) -> str:
    command = COMMANDS[name]
    return help.of_command(
        name,
        command.help,
        usage=command.usage,
        example=command.example,
        groups=help.in_groups(command.flags),
        takes_beam_flags=command.beam,
    )


def _run(name: str | None, arguments: list[str], prints: console.Console, version: str) -> int:
    """Runs a command; returns its exit code."""
    asked = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if name == "help":
        name, asked = next((a for a in arguments if a in COMMANDS), None), ["--help"]
    if name is not None and name not in COMMANDS:
        hint = options.nearest(name, COMMANDS) or "; see maskmill --help"
        raise UnusableInputError(f"{name}: there is no such command{hint}.")
    if any(argument in _VERSION for argument in asked):
        print(f"maskmill {version}")
        return DONE
    if any(argument in _HELP for argument in asked) or (name is None and not arguments):
        print(help.of_program({name: c.help for name, c in COMMANDS.items()}) if name is None else _help_of(name))
        return DONE if asked else UNUSABLE
    if name is None:
        raise UnusableInputError(f"{arguments[0]}: a command is missing in front of it; see maskmill --help.")
    command = COMMANDS[name]
    line = flags.parse(
        arguments, command.flags, beam_flags.read if command.beam else None, takes_names=command.takes_names
    )
    common = options.from_flags(CommonOptions, line.values)
    keeps_output = command.prints_result or any(line.values.get(flag) for flag in command.prints_with)
    with prints.listening(quiet=common.quiet, level=common.log_level, keeps_output=keeps_output):
        return command.run(line) or DONE


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
        except KeyboardInterrupt:
            # In a process of the command's own, interruption.Watch ends it before this is reached.
            prints.say(f"{said}: interrupted; {interruption.HOW_TO_GO_ON}")
            return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
