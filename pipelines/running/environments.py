"""Settings for Flink and Dataflow, and checks before a job is submitted to them.

On every runner a process computes one shard at a time, so that a worker needs the memory of one shard, and CPU-bound
steps do not compete. `maskmill.storage.turns` enforces this within a process. This module makes the runner start as
many processes as it has slots, and give each of them one work item.

Runners guarantee little, so every step follows these rules. Elements arrive in any order and from any attempt: a step
that needs an order sorts by a number in the elements. A bundle can end anywhere: no step collects anything over a
bundle. The values of a key are iterated once; they are descriptions of shards, never text.
"""

import http.client
import importlib.util
import json
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Set

from apache_beam.options.pipeline_options import (
    DebugOptions,
    FlinkRunnerOptions,
    GoogleCloudOptions,
    JobServerOptions,
    PipelineOptions,
    PortableOptions,
    SetupOptions,
    StandardOptions,
    TestOptions,
    WorkerOptions,
)

from maskmill.errors import UnusableInputError
from maskmill.storage import files, network
from maskmill.storage.paths import is_web
from pipelines.settings.beam_flags import DATAFLOW, FLINK

_EMBEDDED = ("[local]", "[auto]")

# How long Python workers wait for another step of their job. It must be less than the cluster's delay before a restart:
# a worker that was killed is kept for so long, and a job that restarts meanwhile would get it.
_WORKERS_WAIT_MILLIS = 2_000

# Seconds to wait for the first answer of a service that should be running.
_PATIENCE_SECONDS = 5.0


def complete(options: PipelineOptions, user_flags: Set[str], paths: Iterable[str]) -> None:
    """Complete the options that the user left open, for a remote runner.

    options: Beam's, changed in place. user_flags: the user's flags, as `--name`. paths: every input and output.

    Raises:
      UnusableInputError: the runner does not support these options or paths.
    """
    if "--save_main_session" not in user_flags:
        # Workers import their code from installed packages; the submitting program defines none.
        options.view_as(SetupOptions).save_main_session = False
    runner = options.view_as(StandardOptions).runner
    _check_job_endpoint(options, user_flags)
    if runner == FLINK:
        _complete_flink(options, user_flags, paths)
    elif runner == DATAFLOW:
        _complete_dataflow(options, user_flags, paths)


def is_dry_run(options: PipelineOptions) -> bool:
    """Return whether the options request a dry run, which runs and changes nothing."""
    return bool(options.view_as(TestOptions).dry_run)


def only_describes(options: PipelineOptions) -> bool:
    """Return whether the options request the job's description rather than its execution."""
    return is_dry_run(options) or options.view_as(GoogleCloudOptions).template_location is not None


def is_dataflow(options: PipelineOptions) -> bool:
    """Return whether the options name Dataflow's runner."""
    return bool(options.view_as(StandardOptions).runner == DATAFLOW)


def goes_on_alone(options: PipelineOptions) -> bool:
    """Return whether the job goes on when this process ends."""
    master = options.view_as(FlinkRunnerOptions).flink_master.strip()
    runner, endpoint = options.view_as(StandardOptions).runner, options.view_as(PortableOptions).job_endpoint
    return runner == DATAFLOW or (runner == FLINK and (master not in _EMBEDDED or endpoint not in (None, "embed")))


def _check_job_endpoint(options: PipelineOptions, user_flags: Set[str]) -> None:
    """Wait for the job service at `--job_endpoint`: a few seconds, or for `--job_server_timeout`."""
    portable = options.view_as(PortableOptions)
    endpoint = portable.job_endpoint
    if endpoint in (None, "", "embed"):
        return
    host, port = _host_and_port(endpoint, "--job_endpoint")
    waits = user_flags & {"--job_server_timeout", "--job-server-timeout"}
    deadline = time.monotonic() + (float(portable.job_server_timeout) if waits else 0.0)
    while failure := network.connection_failure(host, port, _PATIENCE_SECONDS):
        if time.monotonic() >= deadline:
            raise UnusableInputError(
                f"{endpoint}: no job service answers there ({failure}); start it, correct --job_endpoint, or wait for "
                "it with --job_server_timeout SECONDS."
            )
        time.sleep(1)
    import grpc  # 0.1 s, and only a job service needs it

    with grpc.insecure_channel(endpoint) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_PATIENCE_SECONDS)
        except grpc.FutureTimeoutError:
            raise UnusableInputError(
                f"{endpoint}: what answers there is no job service (it does not speak gRPC); correct --job_endpoint."
            ) from None


def _host_and_port(address: str, flag: str) -> tuple[str, int]:
    """Return the host and the port in `HOST:PORT`."""
    try:
        parts = urllib.parse.urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port or "/" in address:
        raise UnusableInputError(f"{flag} is {address}: it must be HOST:PORT, as in localhost:8099.")
    return host, port


def _complete_flink(options: PipelineOptions, user_flags: Set[str], paths: Iterable[str]) -> None:
    flink, portable = options.view_as(FlinkRunnerOptions), options.view_as(PortableOptions)
    if "--job_endpoint" not in user_flags:
        _complete_job_server(options, user_flags)
    # Otherwise Beam stages a list of this machine's packages in a directory that other machines do not see.
    options.view_as(DebugOptions).add_experiment("disable_logging_submission_environment")
    master = flink.flink_master.strip()
    if master in _EMBEDDED:
        if "--parallelism" not in user_flags:
            # Embedded Flink runs the Python steps in this one process, unless the user provides workers.
            flink.parallelism = 1
        return
    for path in paths:
        if files.is_local(path) and not path.startswith("/"):
            raise UnusableInputError(
                f"{path}: on Flink's workers a relative path is another place; give an absolute path that all of them "
                "share, or an object store's (gs://bucket/…)."
            )
    if "--environment_cache_millis" not in user_flags:
        # Beam's default stops a TaskManager's workers whenever no step of the job is running there.
        portable.environment_cache_millis = _WORKERS_WAIT_MILLIS
    slots = _task_slots(master)
    if "--parallelism" not in user_flags:
        flink.parallelism = max(1, sum(slots))
    if "--sdk_worker_parallelism" not in user_flags:
        # A Python process for each slot of a TaskManager.
        portable.sdk_worker_parallelism = max(slots, default=1)


def _complete_job_server(options: PipelineOptions, user_flags: Set[str]) -> None:
    """Check and complete the options with which Beam starts its job server as a process of this command."""
    server = options.view_as(JobServerOptions)
    if shutil.which(server.job_server_java_launcher) is None:
        raise UnusableInputError(
            f"{server.job_server_java_launcher}: --runner=FlinkRunner needs Java 11 or 17, for Beam's job server; "
            "put it on the PATH, or name it with --job_server_java_launcher."
        )
    jar = options.view_as(FlinkRunnerOptions).flink_job_server_jar
    if jar and files.is_local(jar) and not files.exists(jar):
        raise UnusableInputError(f"{jar}: there is no such job server; correct --flink_job_server_jar.")
    if not user_flags & {"--job_server_jvm_properties", "--job_server_jvm_property"}:
        # The job server only forwards descriptions. Half of its CPU time went into its just-in-time compiler.
        server.job_server_jvm_properties = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


def _task_slots(master: str) -> list[int]:
    """Return the number of task slots of each TaskManager of the cluster at `host:port` or a URL."""
    url = master if is_web(master) else f"http://{master}"
    try:
        with urllib.request.urlopen(f"{url}/taskmanagers", timeout=_PATIENCE_SECONDS) as answer:
            found = json.load(answer)["taskmanagers"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "reason", error)
        raise UnusableInputError(
            f"{url}: Flink's REST service does not answer ({reason}); start the cluster or correct --flink_master."
        ) from error
    return [int(manager["slotsNumber"]) for manager in found]


def _complete_dataflow(options: PipelineOptions, user_flags: Set[str], paths: Iterable[str]) -> None:
    if importlib.util.find_spec("apitools") is None:
        raise UnusableInputError("Dataflow needs Google's libraries; install it: pip install 'maskmill[gcp]'.")
    debug, worker, setup = (options.view_as(c) for c in (DebugOptions, WorkerOptions, SetupOptions))
    for path in paths:
        if files.is_local(path):
            raise UnusableInputError(f"{path}: Dataflow's workers do not see this machine's files; give a gs:// path.")
    if worker.sdk_container_image is None and setup.setup_file is None:
        raise UnusableInputError(
            "Dataflow's workers need maskmill: give --sdk_container_image (see deploy/dataflow/) or "
            "--setup_file ./setup.py."
        )
    if "--number_of_worker_harness_threads" not in user_flags:
        # Dataflow starts a process for each CPU of a worker. With one thread, each process works on one shard.
        debug.number_of_worker_harness_threads = 1
    if worker.sdk_container_image is not None and "--sdk_location" not in user_flags:
        setup.sdk_location = "container"
