"""The `maskmill` command, which `maskmill/command.py` calls. It imports a stage, and Beam with it, only to run it."""

import argparse
import dataclasses
import importlib.util
import logging
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipelines import build_options, interruption, options, stage_options, summary
from pipelines.stages import STAGES, StageEntry
from training.options import ConvertOptions, TrainOptions
from transforms.errors import RunFailedError, UnusableInputError

DONE, FAILED, UNUSABLE = 0, 1, 2


@dataclasses.dataclass(frozen=True)
class _Command:
    """A subcommand.

    Attributes:
      help: its line in --help.
      add_arguments: adds its arguments to a parser.
      run: runs it; may return an exit code of its own (128 + the signal that ended a training, as shells do).
      beam: whether Beam's flags go through.
    """

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, list[str]], int | None]
    beam: bool = False


def _add(options_class: type) -> Callable[[argparse.ArgumentParser], None]:
    return lambda parser: options.add_flags(parser, options_class)


def _run_stage(entry: StageEntry) -> Callable[[argparse.Namespace, list[str]], None]:
    def run(namespace: argparse.Namespace, beam_arguments: list[str]) -> None:
        chosen: Any = options.from_flags(entry.options, namespace)
        from pipelines.stage import run_stages

        manifests = run_stages([entry.load().check(chosen, is_first=True)], beam_arguments)
        summary.report(chosen.output, manifests.get(entry.name, {}))

    return run


def _create_pretraining_data(namespace: argparse.Namespace, _: list[str]) -> None:
    chosen = options.from_flags(stage_options.CreatePretrainingDataOptions, namespace)
    from pipelines import pretraining_data

    pretraining_data.run(chosen)


def _pick_eval(namespace: argparse.Namespace, _: list[str]) -> None:
    chosen = options.from_flags(stage_options.PickEvalOptions, namespace)
    from pipelines import record_files

    record_files.pick(chosen)


def _add_index(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="TFRecord files (globs and comma lists too)")
    parser.add_argument("--output", default=argparse.SUPPRESS, help="name of the index; only for a single file")


def _index(namespace: argparse.Namespace, _: list[str]) -> None:
    from pipelines import record_files

    record_files.index(namespace.files, getattr(namespace, "output", None))


def _add_build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", metavar="CONFIG.yaml", help="the build; --print_config shows one")
    parser.add_argument("--print_config", action="store_true", help="print every default with a comment, and stop")


def _build(namespace: argparse.Namespace, beam_arguments: list[str]) -> int:
    if namespace.print_config:
        print(build_options.print_config())
        return DONE
    if namespace.config is None:
        raise UnusableInputError("build: name a CONFIG.yaml; `maskmill build --print_config` prints one to start from.")
    chosen = build_options.read_build(namespace.config)
    training = chosen.stages.get("train")
    if training is not None:
        _check_training()
    from pipelines import build

    manifests = build.run(chosen, beam_arguments)
    if not manifests:
        summary.report(chosen.output, {})
        return DONE
    for name, made in manifests.items():
        summary.report(chosen.stages[name].output, made)
    if training is None:
        return DONE
    from training import command

    return command.run(training)


def _check_training() -> None:
    missing = [name for name in ("tensorflow", "keras", "keras_hub") if importlib.util.find_spec(name) is None]
    if missing:
        raise UnusableInputError(f"Training needs {missing[0]}; install maskmill with its extra: maskmill[tensorflow].")


def _train(namespace: argparse.Namespace, _: list[str]) -> int:
    chosen = options.from_flags(TrainOptions, namespace)
    if chosen.launcher is None:
        _check_training()
    from training import command

    return command.run(chosen)


def _convert_checkpoint(namespace: argparse.Namespace, _: list[str]) -> int:
    chosen = options.from_flags(ConvertOptions, namespace)
    _check_training()
    from training import command

    return command.convert_checkpoint(chosen)


COMMANDS: Mapping[str, _Command] = {
    "build": _Command("run all stages from one YAML file", _add_build, _build, beam=True),
    **{
        entry.name: _Command(entry.help, _add(entry.options), _run_stage(entry), beam=True)
        for entry in STAGES
        if entry.is_command
    },
    "create-pretraining-data": _Command(
        "drop-in for create_pretraining_data.py",
        _add(stage_options.CreatePretrainingDataOptions),
        _create_pretraining_data,
    ),
    "pick-eval": _Command("pick eval examples at even distance", _add(stage_options.PickEvalOptions), _pick_eval),
    "index": _Command("write DALI's index of TFRecord files", _add_index, _index),
    "train": _Command("pre-train or fine-tune an encoder on the examples", _add(TrainOptions), _train),
    "convert-checkpoint": _Command(
        "convert checkpoints: TensorFlow 1 and 2, Hugging Face", _add(ConvertOptions), _convert_checkpoint
    ),
}


def _usage() -> str:
    lines = ["usage: maskmill COMMAND [--flag VALUE …]", "", "Turns a Wikipedia dump, or any text corpus, into masked-"]
    lines[-1] += "language-model pre-training data."
    lines += ["", "commands:"]
    lines += [f"  {name:<24} {command.help}" for name, command in COMMANDS.items()]
    lines += ["", "maskmill COMMAND --help lists a command's flags. Beam's own flags (--runner, …) go through."]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line; returns its exit code: 0 done, 1 the run failed, 2 the command or its input is unusable."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_usage())
        return DONE if arguments else UNUSABLE
    name, rest = arguments[0], arguments[1:]
    # A retry either succeeds or ends in a sentence of ours, so its log lines are noise.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    try:
        if name not in COMMANDS:
            raise UnusableInputError(f"{name}: there is no such command{options.nearest(name, COMMANDS)}.")
        command = COMMANDS[name]
        parser = argparse.ArgumentParser(prog=f"maskmill {name}", description=command.help, allow_abbrev=False)
        command.add_arguments(parser)
        namespace, beam_arguments = options.parse(parser, rest, _beam_flags if command.beam else None)
        return command.run(namespace, beam_arguments) or DONE
    except UnusableInputError as error:
        _say(f"maskmill {name}: {error}")
        return UNUSABLE
    except RunFailedError as error:
        _say(f"maskmill {name}: {error}")
        return FAILED
    except KeyboardInterrupt:
        # In a process of the command's own, interruption.Watch ends it before this is reached.
        _say(f"maskmill {name}: interrupted; {interruption.HOW_TO_GO_ON}")
        return interruption.SIGNAL_EXIT + signal.SIGINT


def _say(sentence: str) -> None:
    # One write, so that a line that another thread logs meanwhile does not end up inside the sentence.
    sys.stderr.write(sentence + "\n")
    sys.stderr.flush()


def _beam_flags() -> Mapping[str, bool]:
    from pipelines import runner

    return runner.beam_flags()


if __name__ == "__main__":
    sys.exit(main())
