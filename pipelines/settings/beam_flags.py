"""Beam's own flags, read from the source of its options: a misspelt flag is refused at once, without importing Beam.

What Beam's options refuse that is not seen here is turned into one sentence when they are made (`one_sentence`).
"""

import ast
import contextlib
import dataclasses
import importlib.util
import io
import json
import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from maskmill.errors import UnusableInputError
from pipelines.settings.options import nearest

# Flags of the Flink runner that only its Java part knows; each takes a value.
JAVA_FLAGS = ("number_of_execution_retries", "execution_retry_delay", "environment_expiration_millis")

LOCAL_RUNNERS = (None, "", "DirectRunner", "FnApiRunner", "local")

# Where Beam declares its flags, in its package.
_SOURCE = "options/pipeline_options.py"
_SWITCHES = ("store_true", "store_false")
_WANTED = {"int": "a whole number", "float": "a number", "json.loads": "JSON"}
# The flag that counts the processes of the local runner.
_WORKERS = "direct_num_workers"
_WORKERS_ANYWHERE, _WORKERS_A_CORE = 64, 4
_RUNNER = "runner"
# The variable of Beam's source that lists the full names of its runners.
_RUNNERS = "ALL_KNOWN_RUNNERS"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BeamFlag:
    """A flag of Beam's.

    Attributes:
      name: without dashes.
      takes_value: whether it takes a value; otherwise it is a switch.
      value_is_optional: whether the value may be left out.
      type: what makes a value of the text, as Beam's source names it, like `int`; empty for text.
      choices: the values that it takes; empty if any will do.
    """

    name: str
    takes_value: bool = True
    value_is_optional: bool = False
    type: str = ""
    choices: tuple[str, ...] = ()

    @property
    def wanted(self) -> str:
        """The values that it takes, as a sentence names them."""
        return f"one of {', '.join(self.choices)}" if self.choices else _WANTED.get(self.type, "a value")

    def check(self, text: str) -> None:
        """Raises UnusableInputError if Beam would refuse the value, or the local runner could not use it."""
        try:
            text.encode()
            number: float = {"int": int, "float": float}.get(self.type, lambda _: 0)(text)
            if self.type == "json.loads":
                json.loads(text)
        except ValueError:
            raise UnusableInputError(f"--{self.name} must be {self.wanted}, not {text!r}.") from None
        if not math.isfinite(number):
            raise UnusableInputError(f"--{self.name} must be a finite number, not {text}.")
        if self.choices and not self._is_choice(text):
            hint = nearest(text, self.choices)
            raise UnusableInputError(f"--{self.name} must be {self.wanted}, not {text!r}{hint}")
        if self.name == _WORKERS:
            if number < 0:
                raise UnusableInputError(f"--{self.name} must be 1 or more, or 0 for one process a core, not {text}.")
            _check_fits(self.name, int(number))

    def _is_choice(self, text: str) -> bool:
        if self.name != _RUNNER:
            return text in self.choices
        # Beam takes any case, leaves "Runner" off, and imports a class by its full name.
        names = {name.lower() for name in (*self.choices, *filter(None, LOCAL_RUNNERS))}
        return "." in text or text.lower() in names | {name.removesuffix("runner") for name in names}


def read() -> Mapping[str, BeamFlag]:
    """Beam's flags by name, without importing Beam."""
    spec = importlib.util.find_spec("apache_beam")
    if spec is None or spec.origin is None:
        raise UnusableInputError("Beam is not installed; install maskmill again with its dependencies.")
    tree = ast.parse((Path(spec.origin).parent / _SOURCE).read_text(encoding="utf-8"))
    flags = [
        flag
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and "add_" in node.func.attr
        for flag in _declared(node)
    ]
    known = {flag.name: flag for flag in [*flags, *(BeamFlag(name=name) for name in JAVA_FLAGS)]}
    return known | {_RUNNER: dataclasses.replace(known[_RUNNER], choices=tuple(_runners(tree)))}


def _runners(tree: ast.AST) -> Iterator[str]:
    """The names of Beam's runners."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == _RUNNERS:
                yield from (path.rpartition(".")[2] for path in _literal(value) or ())


def _declared(call: ast.Call) -> Iterator[BeamFlag]:
    """The flags that a call of argparse's add_argument declares, or nothing if it is another call."""
    arguments = {keyword.arg: keyword.value for keyword in call.keywords}
    choices = _literal(arguments.get("choices")) or ()
    for argument in call.args:
        name = _literal(argument)
        if isinstance(name, str) and name.startswith("--"):
            yield BeamFlag(
                name=name[2:],
                takes_value=_literal(arguments.get("action")) not in _SWITCHES,
                value_is_optional=_literal(arguments.get("nargs")) == "?",
                type=ast.unparse(arguments["type"]) if "type" in arguments else "",
                choices=tuple(map(str, choices)),
            )


def _literal(node: ast.expr | None) -> Any:
    """The value of a constant or of a list of constants; None for anything else."""
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def with_workers(beam_arguments: Sequence[str], workers: int | None) -> list[str]:
    """Beam's flags with `--workers` among them, as the local runner's own flag.

    Raises:
      UnusableInputError: there are too few, the runner's own flag is given, too, or the runner is not the local one.
    """
    if workers is None:
        return list(beam_arguments)
    if workers < 1:
        raise UnusableInputError(f"--workers must be 1 or more, not {workers}.")
    _check_fits("workers", workers)
    given = values(beam_arguments)
    if _WORKERS in given:
        raise UnusableInputError(f"--workers and --{_WORKERS} both give the number of processes; give one of them.")
    runner = given.get("runner")
    if runner not in LOCAL_RUNNERS:
        raise UnusableInputError(
            f"--workers counts the processes of the local runner; with --runner={runner} give --parallelism (Flink) or "
            "--max_num_workers (Dataflow)."
        )
    return [*beam_arguments, f"--{_WORKERS}={workers}"]


def values(beam_arguments: Sequence[str]) -> dict[str, str]:
    """The values of Beam's flags by name, that of a switch empty."""
    return dict(argument.removeprefix("--").partition("=")[::2] for argument in beam_arguments)


def names_other_runner(beam_arguments: Sequence[str]) -> bool:
    """Whether Beam's flags name another runner than the local one."""
    return values(beam_arguments).get(_RUNNER) not in LOCAL_RUNNERS


def _check_fits(flag: str, workers: int) -> None:
    """Raises UnusableInputError for a number of processes that would stop the machine: a typing error."""
    cores = os.cpu_count() or 1
    most = max(_WORKERS_ANYWHERE, _WORKERS_A_CORE * cores)
    if workers > most:
        raise UnusableInputError(f"--{flag} {workers}: this machine has {cores} cores; give {most} at most.")


@contextlib.contextmanager
def one_sentence() -> Iterator[None]:
    """Turns Beam's refusal of a flag, which prints its usage and exits, into one sentence.

    Raises:
      UnusableInputError: Beam refuses a flag.
    """
    import argparse

    printed = io.StringIO()
    logging.basicConfig()  # Beam does so, too, and would log to the stream below for ever
    try:
        with contextlib.redirect_stderr(printed):
            yield
    except SystemExit:
        last = printed.getvalue().strip().rpartition("\n")[2]
        raise UnusableInputError(f"Beam refuses a flag: {last.rpartition(': error: ')[2]}.") from None
    except (argparse.ArgumentError, ValueError) as error:
        raise UnusableInputError(f"Beam refuses a flag: {error}.") from error
