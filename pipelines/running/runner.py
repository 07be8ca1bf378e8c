"""Runs a graph, on the local runner by default, and turns a failure into one sentence."""

import contextlib
import dataclasses
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Union

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import files
from pipelines.running import local_runner
from pipelines.running.local_worker import StepError, Workers, last_line
from pipelines.settings import beam_flags
from pipelines.terminal.progress import Progress, ProgressLine
from transforms.collection import Graph

if TYPE_CHECKING:
    from pipelines.running.beam_runner import BeamRunner

# Below this much input a second process, which costs 0.1 s, saves next to nothing.
_WORTH_PROCESSES = 4 << 20

# Of a worker that writes into a store: two are begun (storage/turns.py), one looks for its record or writes it.
_PIECES_IN_STORE = 3

# Where worker processes print to, in the directory of a run.
_WORKER_LOG = "workers.log"


@dataclasses.dataclass(frozen=True)
class LocalRunner:
    """The local runner. processes: how many workers are forked; 0 to do everything in this process."""

    processes: int
    is_local = True
    is_dry_run = False


Runner = Union[LocalRunner, "BeamRunner"]


def choose(
    beam_arguments: Sequence[str], *, input_bytes: int = 0, pieces: int | None = None, paths: Sequence[str] = ()
) -> Runner:
    """The runner that Beam's flags name, with our defaults for it. Changes nothing elsewhere.

    Args:
      beam_arguments: flags of Beam, as `flags.parse` gives them.
      input_bytes: how much there is to read; small jobs stay in this process.
      pieces: of how many pieces the work is, if that is known: more local processes than those are of no use.
      paths: every input and output: not every runner's workers see this machine's files.

    Raises:
      UnusableInputError: the runner cannot work with these flags or paths.
    """
    if beam_flags.names_other_runner(beam_arguments):
        from pipelines.running import beam_runner

        return beam_runner.BeamRunner(beam_runner.pipeline_options(beam_arguments, paths))
    given = beam_flags.values(beam_arguments)
    if describes := sorted(given.keys() & {"dry_run", "template_location"}):
        raise UnusableInputError(f"--{describes[0]} describes a job for another runner; name that with --runner.")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = int(given.get("direct_num_workers", 1)) or cores
    if "direct_running_mode" in given:
        return LocalRunner(workers if given["direct_running_mode"] == "multi_processing" else 0)
    if "direct_num_workers" not in given and input_bytes >= _WORTH_PROCESSES:
        workers = cores if pieces is None else min(cores, pieces)
    return LocalRunner(workers if workers > 1 else 0)


def run(
    build_graph: Callable[[Graph], None],
    runner: Runner,
    lines: Sequence[ProgressLine] = (),
    meanwhile: Callable[[], object] | None = None,
) -> bool:
    """Builds the graph and runs it to its end; returns False if Beam's flags ask only for the job's description.

    meanwhile: prepares what comes next, in a thread, while local workers leave this process idle; called later, it says
    what went wrong.

    Raises:
      UnusableInputError, RunFailedError: what a step raised, whichever process it ran in; anything else that
        went wrong is a RunFailedError with the cause attached.
    """
    is_watched = bool(lines) and all(files.is_local(line.output) for line in lines)
    watched = Progress(lines) if is_watched else contextlib.nullcontext()
    with _scratch_directory() as scratch, _one_sentence(scratch):
        if not isinstance(runner, LocalRunner):
            with watched:
                return runner.run(build_graph, scratch)
        graph = local_runner.LocalGraph()
        build_graph(graph)
        with contextlib.ExitStack() as ending:
            spread: local_runner.Spread = local_runner.one_by_one
            place = next((line.output for line in lines if not files.is_local(line.output)), "")
            pieces = _PIECES_IN_STORE if place else 1
            if runner.processes:
                workers = Workers(runner.processes, os.path.join(scratch, _WORKER_LOG), pieces)
                spread = ending.enter_context(workers).spread
            elif pieces > 1:
                spread = local_runner.in_threads(pieces)
            # These have threads, so there must be no fork behind them.
            ending.enter_context(watched)
            if runner.processes and meanwhile is not None:
                ending.enter_context(ThreadPoolExecutor(1)).submit(meanwhile)
            # On a disk nothing is waited for, and each step shows how far it is and how long it has taken.
            graph.run(spread, beside=bool(runner.processes or place), goes_on=bool(place))
    return True


@contextlib.contextmanager
def _scratch_directory() -> Iterator[str]:
    """A directory for this run's temporary files, which goes with it."""
    try:
        directory = tempfile.TemporaryDirectory(prefix=files.scratch_prefix())
    except OSError as error:
        raise RunFailedError(
            f"There is no directory for temporary files ({error.strerror or error}); make room, or name another one in "
            "TMPDIR."
        ) from error
    with directory as path:
        yield path


@contextlib.contextmanager
def _one_sentence(logs: str) -> Iterator[None]:
    """Makes one sentence of an error that no step meant: a fault of ours, or of the machine.

    Its traceback goes to a file, which the sentence names.
    """
    try:
        yield
    except (UnusableInputError, RunFailedError):
        raise
    except Exception as error:
        try:
            where = f"The whole story is in {_keep_story(error, logs)}"
        except OSError as full:
            where = f"The whole story could not be written ({full.strerror})"
        cause = str(error) if isinstance(error, StepError) else last_line(error)
        raise RunFailedError(f"The run failed: {cause}. {where}.") from error


def _keep_story(error: Exception, logs: str) -> str:
    """Writes a traceback and what the workers printed to a file that stays; returns its name."""
    handle, kept = tempfile.mkstemp(prefix="maskmill-failure-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8") as story:
        traceback.print_exception(error, file=story)
        log = Path(logs) / _WORKER_LOG
        if log.exists():
            story.write("\nWhat the worker processes printed:\n" + log.read_text(errors="replace"))
    return kept
