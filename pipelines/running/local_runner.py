"""The local runner: Beam's own, with worker processes of ours."""

import contextlib
import os
import resource

import psutil
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.portability import python_urns
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.portability.fn_api_runner.worker_handlers import SubprocessSdkWorkerHandler, WorkerHandler
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from maskmill.errors import RunFailedError
from pipelines.running import local_worker

WORKER_LOG = "workers.log"

# The name of the thread that waits for a worker, once the worker was asked to end: its exit code means nothing then.
STOPPED_WORKER = "stopped worker"

# How long a worker may take to finish once the run is over.
_GRACE_SECONDS = 5.0

# What two workers need, with a margin.
_LEAST_OPEN_FILES = 32


def local_workers() -> list[psutil.Process]:
    """The worker processes of this process."""
    workers = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if local_worker.is_worker(child.cmdline()):
                workers.append(child)
    return workers


class LocalWorkerHandler(SubprocessSdkWorkerHandler):
    """Beam's handler of a worker process, which does not wait for ever for a worker to end.

    When a piece of work fails in one worker, another may still wait for input that nobody sends any more, or be in the
    middle of a long piece. Beam would wait for it, and the command would hang.
    """

    def stop_worker(self) -> None:
        """Waits a moment for the worker to end by itself, then asks it to."""
        self.worker_thread.join(_GRACE_SECONDS)
        if self.worker_thread.is_alive():
            # A worker that is still starting has no handler for the signal yet, and ends with an error.
            self.worker_thread.name = STOPPED_WORKER
            for worker in local_workers():
                with contextlib.suppress(psutil.NoSuchProcess):
                    if worker.environ().get("WORKER_ID") == self.worker_id:
                        worker.terminate()
        super().stop_worker()


def _check_limits() -> None:
    """Raises RunFailedError if too few files may be open for gRPC, which aborts the process instead of failing."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < _LEAST_OPEN_FILES:
        raise RunFailedError(
            f"Too few files may be open at once for worker processes ({limit}); raise the limit, as in "
            "`ulimit -n 1024`, or take --workers 1."
        )


def local_runner(options: PipelineOptions, logs: str) -> FnApiRunner:
    """The local runner for these options. Its worker processes write what they print to WORKER_LOG in `logs`."""
    direct = options.view_as(DirectOptions)
    if direct.direct_running_mode != "multi_processing":
        return FnApiRunner()
    _check_limits()
    # The runner finds the handler of an environment by its URN; the last one that was registered counts.
    WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)(LocalWorkerHandler)
    command = local_worker.command(os.path.join(logs, WORKER_LOG))
    # In this mode the runner would choose Beam's own command.
    direct.direct_running_mode = "in_memory"
    return FnApiRunner(default_environment=SubprocessSDKEnvironment.from_command_string(command))
