"""`maskmill.build` and the functions beside it: what the commands of these names do, for programs and notebooks.

This is the one module of the library, beside command.py, that imports `pipelines`. The options are those of the
commands: signatures and checks are made of their declarations.
"""

import contextlib
import inspect
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from maskmill.arguments import checked
from maskmill.command import foreign_package
from maskmill.errors import SIGNAL_EXIT, RunFailedError
from maskmill.results import BuildResult, StageResult
from maskmill.storage import files, manifest, paths

if TYPE_CHECKING:
    from maskmill.storage.outcomes import Result
    from pipelines.settings.options import Kind, Option

if (_sentence := foreign_package()) is not None:
    raise ImportError(_sentence)

_P = ParamSpec("_P")
_R = TypeVar("_R")
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def _program(command: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Give a function the signature of a command's options, and compare its arguments with that at each call."""

    def mark(function: Callable[_P, _R]) -> Callable[_P, _R]:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind != one.VAR_KEYWORD]
        options = _sections() if command == "build" else list(map(_parameter, _options(command).values()))
        options.sort(key=lambda one: one.default is not one.empty)
        place = next(place for place, one in enumerate(own) if one.kind == _KEYWORD)
        parameters = [*own[:place], *options, *own[place:]]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        function.__annotations__ = {one.name: one.annotation for one in parameters} | {
            "return": signature.return_annotation
        }
        return checked(function)

    return mark


def _options(command: str) -> "dict[str, Option]":
    """Return the options of a command by name, but for those of every command."""
    from pipelines.commands.command_list import COMMANDS
    from pipelines.settings.command_options import CommonOptions
    from pipelines.settings.options import names

    common = names(CommonOptions)
    return {name: option for name, option in COMMANDS[command].flags.items() if name not in common}


def _parameter(option: "Option") -> inspect.Parameter:
    default = inspect.Parameter.empty if option.is_required else option.default
    return inspect.Parameter(option.name, _KEYWORD, default=default, annotation=_annotation(option.kind))


def _annotation(kind: "Kind") -> Any:
    one: Any = str | os.PathLike[str] if kind.type is str else kind.type
    if kind.choices is not None:
        one = Literal[kind.choices + (("off", True, False) if kind.can_be_off else ())]
    one = one | Sequence[one] if kind.is_list else one
    return one | None if kind.optional else one


def _sections() -> list[inspect.Parameter]:
    """Return the keys of a build's file: those beside the sections, the sections as mappings, and the workers."""
    from pipelines.building.build_options import BuildKeys, flags
    from pipelines.settings.options import options_of

    keys = options_of(BuildKeys).values()
    sections = dict.fromkeys(name.partition(".")[0] for name in flags() if "." in name)
    kinds = {option.name: _annotation(option.kind) | None for option in keys} | dict.fromkeys(
        sections, Mapping[str, object] | None
    )
    kinds["workers"] = int | None
    return [inspect.Parameter(name, _KEYWORD, default=None, annotation=kind) for name, kind in kinds.items()]


def _plain(value: Any) -> Any:
    """Return a value as YAML would give it."""
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(map(_plain, value))
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _beam_arguments(beam: Mapping[str, object] | None, workers: int | None = None) -> list[str]:
    """Return Beam's flags as on a command line, with the number of workers."""
    from pipelines.settings import beam_flags, flags

    words = []
    for name, given in (beam or {}).items():
        for value in given if isinstance(given, list | tuple) else (given,):
            words.append(f"--{name}" if value is True else f"--{name}={value}")
    return beam_flags.with_workers(flags.parse(words, {}, beam_flags.BeamFlags).beam, workers)


@contextlib.contextmanager
def _running(progress: bool) -> Iterator[None]:
    """Show progress and notices in the block if they are asked for."""
    from pipelines.running import startup
    from pipelines.terminal import console

    startup.hide_bigquery_warning()
    with console.showing() if progress else contextlib.nullcontext():
        yield


def _result(stage: str, directory: str, result: "Result") -> StageResult:
    from pipelines.terminal import summary

    return StageResult(
        stage=stage,
        directory=directory,
        files=tuple(
            files.join(directory, file["name"])
            for shard in result.made["shards"]
            for file in manifest.files_of_shard(shard)
        ),
        counts=result.made["counts"],
        summary="\n".join(summary.lines_of(directory, result)),
    )


def _run(command: str, given: Mapping[str, Any], beam: Mapping[str, object] | None) -> tuple[Any, list[str]]:
    """Run a command with options by name; return what it returns, and the lines that it says."""
    from pipelines.commands.command_list import COMMANDS
    from pipelines.settings.flags import CommandLine

    known, lines, where = _options(command), list[str](), f"maskmill.{command.replace('-', '_')}"
    values = {name: known[name].kind.check(_plain(value), f"{where}: {name}") for name, value in given.items()}
    line = CommandLine(values=values, names=(), beam=tuple(_beam_arguments(beam)))
    return COMMANDS[command].run(line, say=lines.append), lines


def _run_stage(stage: str, given: Mapping[str, Any], progress: bool, beam: Mapping[str, object] | None) -> StageResult:
    with _running(progress):
        results, lines = _run(stage, given, beam)
    directory = paths.as_written(os.fspath(given["output"]))
    if not results:
        return StageResult(stage=stage, directory=directory, files=(), counts={}, summary="\n".join(lines))
    return _result(stage, directory, results[stage])


@_program("extract")
def extract(*, progress: bool = False, beam: Mapping[str, object] | None = None, **options: Any) -> StageResult:
    """Make text shards and an eval set of a dump or a corpus, as `maskmill extract` does.

        text = maskmill.extract(input="enwiki-latest-pages-articles.xml.bz2", output="text", num_eval_articles=100)
        print(text.counts["extract"]["documents"], text.files)

    Args:
      options: the flags of the command by name; lists may be Python's, and paths PathLike.
      workers: processes of LocalRunner, which are forked; 1: everything happens in this one.
      progress: whether bars and notices are shown on standard error; warnings always are.
      beam: Beam's flags by name, such as {"runner": "FlinkRunner", "parallelism": 8}.

    Returns:
      What was made. What an earlier call has finished is not made again.

    Raises:
      UnusableInputError: options or input cannot be used; the message is what the command prints.
      RunFailedError: the run began and could not be finished.
    """
    return _run_stage("extract", options, progress, beam)


@_program("vocabulary")
def vocabulary(*, progress: bool = False, beam: Mapping[str, object] | None = None, **options: Any) -> StageResult:
    """Learn a vocabulary from text shards, as `maskmill vocabulary` does.

        maskmill.vocabulary(input="text", output="vocabulary", size=32768)

    Args:
      options: the flags of the command by name; `workers`, `progress` and `beam` are as of `extract`.

    Returns:
      What was made.

    Raises:
      UnusableInputError, RunFailedError: as `extract`.
    """
    return _run_stage("vocabulary", options, progress, beam)


@_program("examples")
def examples(*, progress: bool = False, beam: Mapping[str, object] | None = None, **options: Any) -> StageResult:
    """Make training examples of text shards, as `maskmill examples` does.

        maskmill.examples(input="text", output="examples", vocab_file="vocabulary/vocab.txt", dupe_factor=10)

    Args:
      options: the flags of the command by name; `workers`, `progress` and `beam` are as of `extract`.

    Returns:
      What was made.

    Raises:
      UnusableInputError, RunFailedError: as `extract`.
    """
    return _run_stage("examples", options, progress, beam)


@_program("create-pretraining-data")
def create_pretraining_data(*, progress: bool = False, **options: Any) -> StageResult:
    """Write the records of create_pretraining_data.py, as `maskmill create-pretraining-data` does, in this process.

        maskmill.create_pretraining_data(
            input_file="part-00000-of-00500", output_file="part-0.tfrecord", vocab_file="vocab.txt"
        )

    Args:
      options: the flags of the command by name; `progress` is as of `extract`.

    Returns:
      What was made; `counts` has one step, `examples`.

    Raises:
      UnusableInputError, RunFailedError: as `extract`.
    """
    with _running(progress):
        (written, counts), lines = _run("create-pretraining-data", options, None)
    return StageResult(
        stage="create-pretraining-data",
        directory=None,
        files=written,
        counts={"examples": counts},
        summary="\n".join(lines),
    )


@_program("build")
def build(
    config: str | os.PathLike[str] | Mapping[str, object],
    *,
    progress: bool = False,
    beam: Mapping[str, object] | None = None,
    **keys: Any,
) -> BuildResult:
    """Run all stages of a build, and its training if it has one, as `maskmill build` does.

        made = maskmill.build("build.yaml", output="trial", examples={"dupe_factor": 1})
        print(made.report, made.stages["examples"].counts)

    Args:
      config: the build's YAML file, or a mapping of the same keys and sections.
      keys: keys and sections that count instead of those of `config`; of a section only the options that are given.
      workers, progress, beam: as of `extract`.

    Returns:
      What was made.

    Raises:
      UnusableInputError, RunFailedError: as `extract`.
    """
    from pipelines.building import build as builds
    from pipelines.building import build_options, build_report, stage_states

    workers = keys.pop("workers", None)
    overrides: dict[str, Any] = {}
    for key, value in keys.items():
        if isinstance(value, Mapping):
            overrides |= {f"{key}.{name}": _plain(one) for name, one in value.items()}
        elif value is not None:
            overrides[key] = _plain(value)
    lines: list[str] = []
    with _running(progress):
        beam_arguments = _beam_arguments(beam, workers)
        if isinstance(config, Mapping):
            path, chosen = "", build_options.make_build(_plain(config), where="maskmill.build", overrides=overrides)
        else:
            path = os.fspath(config)
            chosen = build_options.read_build(path, overrides)
        choices = build_options.BuildChoices()
        code, results = builds.build(chosen, choices, beam_arguments, config=path, say=lines.append)
    if code == SIGNAL_EXIT + signal.SIGINT:
        raise KeyboardInterrupt
    if code:
        raise RunFailedError(f"{chosen.output}: the training ended with exit code {code}.")
    return BuildResult(
        directory=chosen.output,
        stages={
            name: _result(name, stage_states.directory_of(chosen, name), result) for name, result in results.items()
        },
        report=files.join(chosen.output, build_report.REPORT) if results and chosen.report != "off" else None,
        summary="\n".join(lines),
    )
