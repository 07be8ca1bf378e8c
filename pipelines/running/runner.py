"""Runs a Beam graph, on the local runner by default, and turns a failure into one sentence."""

import contextlib
import logging
import os
import re
import shutil
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import psutil
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import files
from pipelines.running import environments, interruption
from pipelines.running.local_runner import STOPPED_WORKER, WORKER_LOG, local_runner, local_workers
from pipelines.settings import beam_flags
from pipelines.terminal import console
from pipelines.terminal.progress_display import Progress
from pipelines.terminal.progress_steps import ProgressLine

# Below this much input a second process costs more (2 s to start) than it saves.
_WORTH_PROCESSES = 24 << 20

_JOB_GOES_ON = "the job goes on where it was submitted; stop it there, or wait for its end before you run it again."


class _OptionsWithViews(PipelineOptions):
    """Beam's options that keep their views: a graph asks for hundreds, and Beam makes a parser of flags for each."""

    def view_as(self, cls: type[Any]) -> Any:
        # Beam's options refuse attributes that are not options.
        views = self.__dict__.setdefault("_views", {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]


def pipeline_options(
    beam_arguments: Sequence[str], *, input_bytes: int = 0, pieces: int | None = None, paths: Sequence[str] = ()
) -> PipelineOptions:
    """Beam's options from the flags that are Beam's, with our defaults for each runner. Changes nothing elsewhere.

    Args:
      beam_arguments: flags of Beam, as `flags.parse` gives them.
      input_bytes: how much there is to read; small jobs stay in this process.
      pieces: of how many pieces the work is, if that is known: more local processes than those are of no use.
      paths: every input and output: not every runner's workers see this machine's files.

    Raises:
      UnusableInputError: the runner cannot work with these flags or paths.
    """
    with beam_flags.one_sentence():
        options = _OptionsWithViews(list(beam_arguments))
        given = {a.partition("=")[0] for a in beam_arguments}
        if not is_local(options):
            environments.complete(options, given, paths)
        elif "--direct_running_mode" not in given:
            direct = options.view_as(DirectOptions)
            if "--direct_num_workers" not in given:
                workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
                useful = workers if pieces is None else min(workers, pieces)
                direct.direct_num_workers = useful if input_bytes >= _WORTH_PROCESSES else 1
            direct.direct_running_mode = "in_memory" if direct.direct_num_workers == 1 else "multi_processing"
        options.get_all_options()  # Beam reads most flags only when they are asked for
    return options


def is_local(options: PipelineOptions) -> bool:
    """Whether these options mean the local runner."""
    return options.view_as(StandardOptions).runner in beam_flags.LOCAL_RUNNERS


def run(
    build_graph: Callable[[beam.Pipeline], Any], options: PipelineOptions, lines: Sequence[ProgressLine] = ()
) -> bool:
    """Builds the graph and runs it to its end; returns False if the options ask only for the job's description.

    Raises:
      UnusableInputError, RunFailedError: what a step raised, whichever process it ran in; anything else that
        went wrong is a RunFailedError with the cause attached.
    """
    # Beam logs every attempt at a step that fails; the user gets one sentence instead (`_one_sentence`).
    if logging.getLogger("apache_beam").level == logging.NOTSET:
        logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    is_watched = bool(lines) and all(files.is_local(line.output) for line in lines)
    watched = Progress(lines, is_local=is_local(options)) if is_watched else None
    with _scratch_directory() as scratch, _one_sentence(scratch), watched or contextlib.nullcontext():
        runner: Any = local_runner(options, scratch) if is_local(options) else None
        pipeline = beam.Pipeline(runner=runner, options=options)
        # Beam's own directory would stay behind when the command is interrupted.
        shutil.rmtree(pipeline.local_tempdir)
        pipeline.local_tempdir = tempfile.mkdtemp(dir=scratch)
        build_graph(pipeline)
        result = pipeline.run()
        if environments.is_dataflow(options) and not environments.only_describes(options):
            # Airflow's operators for Beam know a job only by this line, which Beam itself does no more than log.
            console.tell(f"Created job with id: [{result.job_id()}]")
        goes_on_alone = not is_local(options) and environments.goes_on_alone(options)
        with interruption.going_on(_JOB_GOES_ON) if goes_on_alone else contextlib.nullcontext():
            state = result.wait_until_finish()
        if state not in (None, "DONE"):
            raise RunFailedError(f"The pipeline ended in state {state}; see the runner's log.")
    return not environments.only_describes(options)


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


_STEP_ERROR = re.compile(r"(UnusableInputError|RunFailedError): ([^\n]*)")
_WORKER_ENDED = re.compile(r"Worker subprocess exited with return code (-?\d+)")
_WHILE_RUNNING = re.compile(r" \[while running '[^']*'\]")


@contextlib.contextmanager
def _one_sentence(logs: str) -> Iterator[None]:
    """Finds the error that a step raised in what the runner made of it: an exception, or a text with a traceback.

    Any other error is a fault of ours or of the machine. Its traceback goes to a file, which the sentence names.
    """
    failed_threads: list[threading.ExceptHookArgs] = []

    def note(failure: threading.ExceptHookArgs) -> None:
        if failure.thread is not None and failure.thread.name == STOPPED_WORKER:
            return
        first = not any(_WORKER_ENDED.search(str(f.exc_value)) for f in failed_threads)
        failed_threads.append(failure)
        if first and _WORKER_ENDED.search(str(failure.exc_value)):
            # The runner would wait for ever: for the worker that ended before it answered, then for the others.
            for worker in local_workers():
                with contextlib.suppress(psutil.NoSuchProcess):
                    worker.kill()
            # Only a real signal wakes the main thread from the lock that it waits for.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    # SIGINT itself would be lost: a shell makes its background jobs ignore it.
    previous_handler = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    previous, threading.excepthook = threading.excepthook, note
    try:
        yield
    except (UnusableInputError, RunFailedError) as error:
        raise type(error)(_WHILE_RUNNING.sub("", str(error))) from error
    except Exception as error:
        found = _STEP_ERROR.findall(str(error))
        if found:
            name, message = found[-1]
            kind = UnusableInputError if name == "UnusableInputError" else RunFailedError
            raise kind(_WHILE_RUNNING.sub("", message).replace("\\n", "")) from error
        _raise_if_worker_ended(failed_threads, error)
        try:
            where = f"The whole story is in {_keep_story(error, failed_threads, logs)}"
        except OSError as full:
            where = f"The whole story could not be written ({full.strerror})"
        raise RunFailedError(f"The run failed: {_last_line(error)}. {where}.") from error
    except KeyboardInterrupt as error:
        _raise_if_worker_ended(failed_threads, error)
        raise
    finally:
        threading.excepthook = previous
        signal.signal(signal.SIGUSR1, previous_handler)


def _raise_if_worker_ended(failed_threads: Sequence[threading.ExceptHookArgs], error: BaseException) -> None:
    for thread in failed_threads:
        if ended := _WORKER_ENDED.search(str(thread.exc_value)):
            code = int(ended[1])
            cause = ", often for want of memory" if code == -signal.SIGKILL else ""
            how = f"was killed by signal {-code}{cause}" if code < 0 else f"ended with code {code}"
            raise RunFailedError(
                f"A worker process {how}; run the same command again, it goes on where this one stopped."
            ) from error


def _keep_story(error: Exception, failed_threads: Sequence[threading.ExceptHookArgs], logs: str) -> str:
    """Writes a traceback and what the workers printed to a file that stays; returns its name."""
    handle, kept = tempfile.mkstemp(prefix="maskmill-failure-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8") as story:
        traceback.print_exception(error, file=story)
        for thread in failed_threads:
            traceback.print_exception(thread.exc_type, thread.exc_value, thread.exc_traceback, file=story)
        log = Path(logs) / WORKER_LOG
        if log.exists():
            story.write("\nWhat the worker processes printed:\n" + log.read_text(errors="replace"))
    return kept


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1].rstrip('.') if lines else 'no message'}"
