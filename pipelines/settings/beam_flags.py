"""Beam's own flags, as its options declare them: Beam is imported where one of them is given."""

import argparse
import contextlib
import dataclasses
import functools
import importlib.util
import io
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from maskmill.errors import UnusableInputError
from pipelines.settings.options import nearest

LOCAL, FLINK, DATAFLOW = "LocalRunner", "FlinkRunner", "DataflowRunner"

# Flags of the Flink runner that only its Java part knows; each takes a value.
JAVA_FLAGS = ("number_of_execution_retries", "execution_retry_delay", "environment_expiration_millis")

# The flags that a runner uses, most by the class of Beam's options that declares them. Other runners take all.
_OF_ALL = {"TypeOptions", "AzureOptions", "HadoopFileSystemOptions", "runner"}
_OF_FLINK = {"FlinkRunnerOptions", "JobServerOptions", "PortableOptions"}
_OF_JOBS = {"DebugOptions", "ProfilingOptions", "SetupOptions", "WorkerOptions"}
_USED_BY = {
    LOCAL: {"direct_num_workers"},
    FLINK: {"job_name"} | _OF_FLINK | _OF_JOBS,
    DATAFLOW: {"GoogleCloudOptions", "TestDataflowOptions", "TestOptions"} | _OF_JOBS,
}
_USED_BY["FnApiRunner"] = {"DirectOptions", "DebugOptions", "ProfilingOptions"}
_USED_BY["DirectRunner"] = _USED_BY["FnApiRunner"] | {"PrismRunnerOptions"}
# Flags that name a file of this machine which the job takes along.
_FILES = ("requirements_file", "setup_file")

_WORKERS = "direct_num_workers"
_WORKERS_ANYWHERE, _WORKERS_A_CORE = 64, 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class BeamFlag:
    """A flag of Beam's. name: without dashes. takes_value: else it is a switch. group: the class of its options."""

    name: str
    takes_value: bool = True
    value_is_optional: bool = False
    group: str = "FlinkRunnerOptions"


# Where Beam declares its flags, and how.
_SOURCE = "options/pipeline_options.py"
_DECLARED = re.compile(r"""['"]--([a-z][\w-]*)['"]""")


@functools.lru_cache(maxsize=1)
def _names() -> Sequence[str]:
    spec = importlib.util.find_spec("apache_beam")
    if spec is None or spec.origin is None:
        raise UnusableInputError("Beam is not installed; install maskmill again with its dependencies.")
    source = (Path(spec.origin).parent / _SOURCE).read_text(encoding="utf-8")
    return list(dict.fromkeys([*_DECLARED.findall(source), *JAVA_FLAGS]))


class BeamFlags(Mapping[str, BeamFlag]):
    """Beam's flags by name; Beam is imported for what a flag takes, and not to tell which there are."""

    def __iter__(self) -> Iterator[str]:
        return iter(_names())

    def __len__(self) -> int:
        return len(_names())

    def __contains__(self, name: object) -> bool:
        return name in _names() and name in _read()  # an example in a docstring looks like a flag

    def __getitem__(self, name: str) -> BeamFlag:
        return _read()[name]


@functools.lru_cache(maxsize=1)
def _read() -> Mapping[str, BeamFlag]:
    """Return Beam's flags by name."""
    from apache_beam.options.pipeline_options import PipelineOptions

    known = {name: BeamFlag(name=name) for name in JAVA_FLAGS}
    for group in PipelineOptions.__subclasses__():
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        group._add_argparse_args(parser)
        for action in parser._actions:
            for name in (text[2:] for text in action.option_strings if text.startswith("--")):
                optional = action.nargs == "?"
                known[name] = BeamFlag(
                    name=name, takes_value=action.nargs != 0, value_is_optional=optional, group=group.__name__
                )
    return known


def checked(beam_arguments: Sequence[str]) -> list[str]:
    """Return Beam's flags with the runner's name as Beam spells it.

    Raises:
      UnusableInputError: Beam refuses a value, there is no such runner, or the runner does not use a flag.
    """
    from apache_beam.options.pipeline_options import PipelineOptions

    given = values(beam_arguments)
    runner = _named_runner(given["runner"]) if given.get("runner") else LOCAL
    arguments = [f"--runner={runner}" if a.partition("=")[0] == "--runner" else a for a in beam_arguments]
    with one_sentence():
        PipelineOptions(arguments).get_all_options()
    known = _read()
    for name, value in given.items():
        if name == "streaming":
            raise UnusableInputError("--streaming has no use: every pipeline here is bounded; leave it out.")
        is_others = name.startswith("dataflow_") and runner != DATAFLOW
        if runner in _USED_BY and (is_others or not {name, known[name].group} & (_OF_ALL | _USED_BY[runner])):
            raise UnusableInputError(f"--{name} has no use with {runner}; leave it out, or name another --runner.")
        if name in _FILES and not os.path.isfile(value):
            raise UnusableInputError(f"{value}: there is no such file; correct --{name}.")
    if _WORKERS in given:
        if int(given[_WORKERS]) < 0:
            raise UnusableInputError(f"--{_WORKERS} must be 1 or more, or 0 for one process a core.")
        _check_fits(_WORKERS, int(given[_WORKERS]))
    return arguments


def _named_runner(name: str) -> str:
    """Return a runner's name as Beam spells it; Beam takes any case, without "Runner", and a class by its full name."""
    from apache_beam.options.pipeline_options import StandardOptions

    names = [*StandardOptions.KNOWN_RUNNER_NAMES, LOCAL]
    spelt = {short: full for full in names for short in (full.lower(), full.lower().removesuffix("runner"))}
    if "." not in name and name.lower() not in spelt:
        raise UnusableInputError(f"--runner must be one of {', '.join(names)}, not {name!r}{nearest(name, names)}")
    if "." in name:
        module, _, of_class = name.rpartition(".")
        try:
            getattr(importlib.import_module(module), of_class)
        except (ImportError, AttributeError) as error:
            raise UnusableInputError(f"--runner={name}: it cannot be imported ({error}); correct the name.") from error
    return str(spelt.get(name.lower(), name))


def with_workers(beam_arguments: Sequence[str], workers: int | None) -> list[str]:
    """Return Beam's flags with `--workers` among them, as the flag of Beam's that LocalRunner takes.

    Raises:
      UnusableInputError: there are too few, Beam's own flag is given, too, or the runner is not LocalRunner.
    """
    if workers is None:
        return list(beam_arguments)
    if workers < 1:
        raise UnusableInputError(f"--workers must be 1 or more, not {workers}.")
    _check_fits("workers", workers)
    given = values(beam_arguments)
    if _WORKERS in given:
        raise UnusableInputError(f"--workers and --{_WORKERS} both give the number of processes; give one of them.")
    if not is_local(beam_arguments):
        raise UnusableInputError(
            f"--workers counts the processes of LocalRunner; with --runner={given['runner']} give --parallelism "
            "(Flink) or --max_num_workers (Dataflow)."
        )
    return [*beam_arguments, f"--{_WORKERS}={workers}"]


def values(beam_arguments: Sequence[str]) -> dict[str, str]:
    """Return the values of Beam's flags by name, that of a switch empty."""
    return dict(argument.removeprefix("--").partition("=")[::2] for argument in beam_arguments)


def runner_of(beam_arguments: Sequence[str]) -> str:
    """Return the runner that Beam's flags name, which were checked; LocalRunner by default."""
    return values(beam_arguments).get("runner") or LOCAL


def is_local(beam_arguments: Sequence[str]) -> bool:
    """Return True if Beam's flags, which were checked, ask for LocalRunner."""
    return runner_of(beam_arguments) == LOCAL


def _check_fits(flag: str, workers: int) -> None:
    """Raise UnusableInputError for a number of processes that would stop the machine: a typing error."""
    cores = os.cpu_count() or 1
    most = max(_WORKERS_ANYWHERE, _WORKERS_A_CORE * cores)
    if workers > most:
        raise UnusableInputError(f"--{flag} {workers}: this machine has {cores} cores; give {most} at most.")


@contextlib.contextmanager
def one_sentence() -> Iterator[None]:
    """Turn Beam's refusal of a flag, which prints its usage and exits, into one sentence.

    Raises:
      UnusableInputError: Beam refuses a flag.
    """
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
