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


# Below so much input, a second process, which costs 0.1 s, saves next to nothing.
_WORTH_PROCESSES = 4 << 20

# Threads of a worker that writes to a store: two compute in turns (storage/turns.py), one reads or writes records.
_THREADS_IN_STORE = 3

# The file for the output of worker processes, in the directory of a run.
_WORKER_LOG = "workers.log"


@dataclasses.dataclass(frozen=True)
class LocalRun:
    """A run on LocalRunner.

    processes: the number of forked workers; 0 to do everything in this process. flags: Beam's other flags.
    """

    processes: int
    flags: tuple[str, ...] = ()
    is_local = True
    is_dry_run = False


Run = Union[LocalRun, "BeamRun"]


def choose(
    beam_arguments: Sequence[str], *, input_bytes: int = 0, pieces: int | None = None, paths: Sequence[str] = ()
) -> Run:
    """Return the runner that Beam's flags name, with our defaults for it; change nothing elsewhere.

    Args:
      beam_arguments: flags of Beam, as returned by `flags.parse`.
      input_bytes: the size of the input; small jobs stay in this process.
      pieces: the number of work items, if known; more local processes than that are useless.
      paths: every input and output; the workers of some runners do not see this machine's files.

    Raises:
      UnusableInputError: the runner does not support these flags or paths.
    """
    if not beam_flags.is_local(beam_arguments):
        from pipelines.running import beam_runner

        return beam_runner.BeamRun(beam_runner.pipeline_options(beam_arguments, paths))
    flags_by_name = beam_flags.values(beam_arguments)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = int(flags_by_name.get("direct_num_workers", 1)) or cores
    if "direct_num_workers" not in flags_by_name and input_bytes >= _WORTH_PROCESSES:
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

    meanwhile: prepares the next steps in a thread while local workers leave this process idle; its errors appear when
    it is called again later.

    Raises:
      UnusableInputError, RunFailedError: raised by a step in any process; every other error becomes a RunFailedError
        with the cause attached.
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
    """Show the progress, and prepare the next steps: both have threads, so no worker may be forked after them."""
    with watched:
        if meanwhile is None:
            yield
        else:
            with ThreadPoolExecutor(1) as thread:
                thread.submit(meanwhile)
                yield


@contextlib.contextmanager
def _scratch_directory() -> Iterator[str]:
    """Yield a directory for this run's temporary files, and delete it after the block."""
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
    """Turn an unexpected error into one sentence: a bug, or a failure of the machine.

    Its traceback goes to a file that the sentence names.
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
    """Write a traceback and the output of the workers to a permanent file; return its name."""
    handle, kept = tempfile.mkstemp(prefix="maskmill-failure-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8") as story:
        traceback.print_exception(error, file=story)
        log = Path(logs) / _WORKER_LOG
        if log.exists():
            story.write("\nWhat the worker processes printed:\n" + log.read_text(errors="replace"))
    return kept
