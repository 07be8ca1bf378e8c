"""Runs a pipeline, on LocalRunner by default, and turns a failure into one sentence."""

import contextlib
import dataclasses
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import files
from pipelines.running.local_worker import StepError, last_line
from pipelines.settings import beam_flags
from pipelines.terminal.progress import Progress, ProgressLine

if TYPE_CHECKING:
    import apache_beam as beam

    from pipelines.running.beam_runner import BeamRun


# Below this much input a second process, which costs 0.1 s, saves next to nothing.
_WORTH_PROCESSES = 4 << 20

# Of a worker that writes into a store: two are begun (storage/turns.py), one looks for its record or writes it.
_THREADS_IN_STORE = 3

# Where worker processes print to, in the directory of a run.
_WORKER_LOG = "workers.log"


@dataclasses.dataclass(frozen=True)
class LocalRun:
    """A run by LocalRunner.

    processes: how many workers are forked; 0 to do everything in this process. flags: Beam's others, as of types.
    """

    processes: int
    flags: tuple[str, ...] = ()
    is_local = True
    is_dry_run = False


Run = Union[LocalRun, "BeamRun"]


def choose(
    beam_arguments: Sequence[str], *, input_bytes: int = 0, pieces: int | None = None, paths: Sequence[str] = ()
) -> Run:
    """Return the runner that Beam's flags name, with our defaults for it. Changes nothing elsewhere.

    Args:
      beam_arguments: flags of Beam, as `flags.parse` gives them.
      input_bytes: how much there is to read; small jobs stay in this process.
      pieces: of how many pieces the work is, if that is known: more local processes than those are of no use.
      paths: every input and output: not every runner's workers see this machine's files.

    Raises:
      UnusableInputError: the runner cannot work with these flags or paths.
    """
    if not beam_flags.is_local(beam_arguments):
        from pipelines.running import beam_runner

        return beam_runner.BeamRun(beam_runner.pipeline_options(beam_arguments, paths))
    given = beam_flags.values(beam_arguments)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = int(given.get("direct_num_workers", 1)) or cores
    if "direct_num_workers" not in given and input_bytes >= _WORTH_PROCESSES:
        workers = cores if pieces is None else min(cores, pieces)
    flags = tuple(a for a in beam_arguments if a.partition("=")[0] not in ("--runner", "--direct_num_workers"))
    return LocalRun(workers if workers > 1 else 0, flags)


def run(
    build: Callable[["beam.Pipeline"], None],
    chosen: Run,
    lines: Sequence[ProgressLine] = (),
    meanwhile: Callable[[], object] | None = None,
) -> bool:
    """Build a pipeline and run it to its end; return False if Beam's flags ask only for the job's description.

    meanwhile: prepares what comes next, in a thread, while local workers leave this process idle; called later, it says
    what went wrong.

    Raises:
      UnusableInputError, RunFailedError: what a step raised, whichever process it ran in; anything else that
        went wrong is a RunFailedError with the cause attached.
    """
    is_watched = bool(lines) and all(files.is_local(line.output) for line in lines)
    watched = Progress(lines) if is_watched else contextlib.nullcontext()
    with _scratch_directory() as scratch, _one_sentence(scratch):
        if not isinstance(chosen, LocalRun):
            with watched:
                return chosen.run(build, scratch)
        from pipelines.running import built_pipeline
        from pipelines.running.local_runner import LocalRunner

        is_in_store = any(not files.is_local(line.output) for line in lines)
        runner = LocalRunner(
            # Threads that wait for a store must not delay the main thread, which takes signals.
            chosen.processes or int(is_in_store),
            threads=_THREADS_IN_STORE if is_in_store else 1,
            log=os.path.join(scratch, _WORKER_LOG),
            forked=_beside(watched, meanwhile if chosen.processes else None),
        )
        with built_pipeline.errors_of_steps():
            built_pipeline.built(build, runner, built_pipeline.OptionsWithViews(list(chosen.flags)), scratch).run()
    return True


@contextlib.contextmanager
def _beside(watched: contextlib.AbstractContextManager[Any], meanwhile: Callable[[], object] | None) -> Iterator[None]:
    """Show the progress, and prepare what comes next: these have threads, so no worker may be forked after them."""
    with watched:
        if meanwhile is None:
            yield
        else:
            with ThreadPoolExecutor(1) as thread:
                thread.submit(meanwhile)
                yield


@contextlib.contextmanager
def _scratch_directory() -> Iterator[str]:
    """Return a directory for this run's temporary files, which goes with it."""
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
    """Make one sentence of an error that no step meant: a fault of ours, or of the machine.

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
    """Write a traceback and what the workers printed to a file that stays; return its name."""
    handle, kept = tempfile.mkstemp(prefix="maskmill-failure-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8") as story:
        traceback.print_exception(error, file=story)
        log = Path(logs) / _WORKER_LOG
        if log.exists():
            story.write("\nWhat the worker processes printed:\n" + log.read_text(errors="replace"))
    return kept
