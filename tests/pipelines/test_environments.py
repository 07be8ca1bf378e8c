"""The options that a command sets for each runner, and the commands that it refuses before it submits a job."""

import concurrent.futures
import contextlib
import os
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping

import grpc
import pytest
from apache_beam.options.pipeline_options import (
    DebugOptions,
    FlinkRunnerOptions,
    JobServerOptions,
    PipelineOptions,
    PortableOptions,
    SetupOptions,
)
from apache_beam.transforms.environments import python_sdk_dependencies
from servers import cloud

from maskmill.errors import UnusableInputError
from pipelines.running import beam_runner, environments, runner

DATAFLOW = ("--runner=DataflowRunner", "--project=project", "--region=r", "--temp_location=gs://bucket/temp")


@pytest.fixture
def flink() -> Iterator[str]:
    """A stand-in for the REST service of a cluster with two TaskManagers, one of two slots and one of three."""

    def answer(request: object, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        return cloud.json_answer({"taskmanagers": [{"slotsNumber": 2}, {"slotsNumber": 3}]})

    with cloud.server(answer) as url:
        yield url


@contextlib.contextmanager
def job_service() -> Iterator[str]:
    """Runs a gRPC server that knows no method, and gives its address."""
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop(None)


@pytest.fixture(autouse=True)
def java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretends that Java is installed; these tests do not run it."""
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


def options(*flags: str, paths: tuple[str, ...] = ()) -> PipelineOptions:
    """Beam's options as a command sets them."""
    return beam_runner.pipeline_options(flags, paths)


@pytest.mark.parametrize(
    ("flags", "megabytes", "pieces", "processes"),
    [
        ("", 1, None, 0),
        ("", 1000, None, 4),
        ("", 1000, 9, 4),
        ("", 1000, 2, 2),
        ("", 1000, 1, 0),
        ("--direct_num_workers=1", 1000, None, 0),
        ("--direct_num_workers=3", 1, 1, 3),
        ("--direct_num_workers=0", 1, 1, 4),
    ],
)
def test_a_local_run_starts_as_many_processes_as_are_useful(
    flags: str, megabytes: int, pieces: int | None, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    made = runner.choose(flags.split(), input_bytes=megabytes << 20, pieces=pieces)
    assert made == runner.LocalRun(processes=processes)


def test_local_pipelines_get_the_flags_of_beam_that_they_use() -> None:
    flags = ("--runner=LocalRunner", "--direct_num_workers=1", "--runtime_type_check")
    assert runner.choose(flags) == runner.LocalRun(0, ("--runtime_type_check",))


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_the_slots_of_a_cluster_set_parallelism_and_processes(flink: str, scheme: str) -> None:
    made = options("--runner=FlinkRunner", f"--flink_master={scheme}{flink.removeprefix('http://')}")
    assert made.view_as(FlinkRunnerOptions).parallelism == 5
    assert made.view_as(PortableOptions).sdk_worker_parallelism == 3
    assert made.view_as(PortableOptions).environment_cache_millis == 2_000
    assert "-XX:TieredStopAtLevel=1" in made.view_as(JobServerOptions).job_server_jvm_properties
    assert made.view_as(SetupOptions).save_main_session is False


def test_the_slots_of_a_cluster_count_behind_a_job_server_that_runs(flink: str) -> None:
    with job_service() as endpoint:
        made = options("--runner=FlinkRunner", f"--job_endpoint={endpoint}", f"--flink_master={flink}")
    assert made.view_as(FlinkRunnerOptions).parallelism == 5
    assert made.view_as(PortableOptions).sdk_worker_parallelism == 3


def test_options_of_the_user_take_precedence(flink: str) -> None:
    flags = ("--parallelism=2", "--sdk_worker_parallelism=1", "--save_main_session")
    flags += ("--environment_cache_millis=5", "--job_server_jvm_property=-Xmx1g")
    made = options("--runner=FlinkRunner", f"--flink_master={flink}", *flags)
    assert made.view_as(FlinkRunnerOptions).parallelism == 2
    assert int(made.view_as(PortableOptions).sdk_worker_parallelism) == 1
    assert int(made.view_as(PortableOptions).environment_cache_millis) == 5
    assert made.view_as(JobServerOptions).job_server_jvm_properties == ["-Xmx1g"]
    assert made.view_as(SetupOptions).save_main_session is True


def test_nothing_is_staged_for_workers_on_other_machines(flink: str) -> None:
    made = options("--runner=FlinkRunner", f"--flink_master={flink}")
    assert python_sdk_dependencies(made) == []


def test_embedded_flink_is_one_process(flink: str) -> None:
    made = options("--runner=FlinkRunner", "--flink_master=[local]", paths=("a/relative/path",))
    assert made.view_as(FlinkRunnerOptions).parallelism == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--flink_master=localhost:1", r"^http://localhost:1: Flink's REST service does not answer"),
        ("--job_endpoint=localhost:1", r"^localhost:1: no job service answers there \(Connection refused\); start it"),
        ("--flink_master=[local] --flink_job_server_jar=/no/such.jar", r"^/no/such\.jar: there is no such job server"),
    ],
    ids=["cluster", "job-service", "job-server"],
)
def test_what_is_not_there_is_refused_in_one_sentence(flags: str, message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        options("--runner=FlinkRunner", *flags.split())


def test_a_relative_path_is_refused_on_a_cluster(flink: str) -> None:
    with pytest.raises(UnusableInputError, match=r"^out/text: on Flink's workers a relative path is another place"):
        options("--runner=FlinkRunner", f"--flink_master={flink}", paths=("/data/in", "gs://b/in", "out/text"))


def test_flink_needs_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UnusableInputError, match=r"^java: --runner=FlinkRunner needs Java 11 or 17"):
        options("--runner=FlinkRunner", "--flink_master=[local]")
    with pytest.raises(UnusableInputError, match=r"^/opt/java: --runner=FlinkRunner needs Java 11 or 17"):
        options("--runner=FlinkRunner", "--flink_master=[local]", "--job_server_java_launcher=/opt/java")
    with job_service() as endpoint:
        options("--runner=FlinkRunner", f"--job_endpoint={endpoint}")  # the job server runs elsewhere


@pytest.mark.builds
def test_a_process_on_dataflow_works_on_one_shard_at_a_time() -> None:
    made = options(*DATAFLOW, "--sdk_container_image=image", paths=("gs://b/in",))
    assert made.view_as(DebugOptions).number_of_worker_harness_threads == 1
    assert made.view_as(SetupOptions).sdk_location == "container"
    made = options(*DATAFLOW, "--setup_file=./setup.py", "--number_of_worker_harness_threads=4")
    assert made.view_as(DebugOptions).number_of_worker_harness_threads == 4
    assert made.view_as(SetupOptions).sdk_location == "default"


def test_a_job_service_that_is_slow_to_start_is_waited_for() -> None:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        endpoint = f"localhost:{free.getsockname()[1]}"
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))

    def start() -> None:
        server.add_insecure_port(endpoint)
        server.start()

    threading.Timer(0.5, start).start()
    options("--runner=FlinkRunner", f"--job_endpoint={endpoint}", "--job_server_timeout=60")
    server.stop(None)


def test_a_web_server_is_no_job_service(flink: str) -> None:
    endpoint = flink.removeprefix("http://")
    with pytest.raises(UnusableInputError, match=rf"^{endpoint}: what answers there is no job service"):
        options("--runner=FlinkRunner", f"--job_endpoint={endpoint}")


@pytest.mark.parametrize("address", ["localhost", "localhost:", ":8099", "localhost:x", "http://localhost:8099"])
def test_a_job_endpoint_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(UnusableInputError, match=f"^--job_endpoint is {address}: it must be HOST:PORT"):
        options("--runner=FlinkRunner", f"--job_endpoint={address}")


@pytest.mark.parametrize(
    ("flags", "goes_on_alone"),
    [
        (("--runner=DataflowRunner",), True),
        (("--runner=FlinkRunner",), False),
        (("--runner=FlinkRunner", "--flink_master=[local]"), False),
        (("--runner=FlinkRunner", "--flink_master=host:8081"), True),
        (("--runner=FlinkRunner", "--job_endpoint=host:8099"), True),
    ],
)
def test_a_job_on_a_cluster_goes_on_when_the_command_is_interrupted(
    flags: tuple[str, ...], goes_on_alone: bool
) -> None:
    assert environments.goes_on_alone(PipelineOptions(list(flags))) is goes_on_alone


@pytest.mark.builds
@pytest.mark.parametrize(
    ("flag", "only_describes"),
    [("--dry_run=True", True), ("--template_location=gs://b/t", True), ("--job_name=x", False)],
)
def test_a_job_that_is_only_described_is_recognised(flag: str, only_describes: bool) -> None:
    made = options(*DATAFLOW, "--sdk_container_image=image", flag)
    assert environments.only_describes(made) is only_describes
