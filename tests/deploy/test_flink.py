"""Flink gives the same bytes: embedded, on a cluster of processes at any parallelism, and when processes are killed.

The tests need Java, Flink and Beam's job server. The first run downloads Flink and the job server with pip and Maven
into a cache, which takes minutes. They are skipped if a registry does not answer.
"""

import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import skips
from command_runs import commands
from made_up import dump_files
from servers import cloud
from servers.slow_store import slow_store

sys.path.insert(0, str(commands.ROOT / "deploy" / "flink"))
import cluster as flink

pytestmark = pytest.mark.elsewhere

# With these options a shard takes a second or two, so that a test can kill a process in the middle of the stage.
SLOW = ("--dupe_factor=60", "--max_seq_length=128", "--max_predictions_per_seq=20")


@pytest.fixture(scope="module")
def download() -> None:
    """Flink and its job server."""
    try:
        flink.fetch()
    except flink.ClusterError as error:
        if error.out_of_reach:
            skips.skip_if_unreachable(str(error))
        raise


@pytest.fixture(scope="module")
def cluster(download: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[flink.Cluster]:
    """Runs a cluster of one JobManager and two TaskManagers with two slots each."""
    started = flink.Cluster(tmp_path_factory.mktemp("flink"))
    started.start(flink.Settings(taskmanagers=2, slots=2, rest_port=free_port()))
    try:
        yield started
    finally:
        started.stop()


def free_port() -> int:
    """A port on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port


def write_config(path: Path, output: Path | str, dump: Path | str = commands.DUMP) -> Path:
    """Writes the file of a small build of the sample dump."""
    path.write_text(
        f"output: {output}\nreport: off\n"
        f"extract:\n  input: {dump}\n  num_eval_articles: 7\n  shard_size_mb: 0.5\n"
        f"examples:\n  vocab_file: {commands.VOCAB}\n  dupe_factor: 2\n"
        "eval:\n  num_examples_to_pick: 50\n"
    )
    return path


def build(directory: Path, *flags: str) -> dict[str, str]:
    """Builds the sample data set. Returns the sha256 of each file."""
    done = commands.maskmill("build", write_config(directory / "build.yaml", directory / "out"), *flags)
    assert done.returncode == 0, done.stderr
    assert commands.leftovers(directory / "out") == []
    return commands.digests(directory / "out", manifests=False)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The sha256 of each file of the build on the local runner, in memory."""
    return build(tmp_path_factory.mktemp("expected"), *commands.IN_MEMORY)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of many small text shards."""
    output = tmp_path_factory.mktemp("texts") / "text"
    done = commands.maskmill("extract", f"--input={commands.DUMP}", f"--output={output}", "--shard_size_mb=0.2")
    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="module")
def expected_examples(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The sha256 of each file of examples that the local runner makes of `texts`."""
    output = tmp_path_factory.mktemp("expected") / "examples"
    done = commands.maskmill(*examples(texts, output), *commands.IN_MEMORY)
    assert done.returncode == 0, done.stderr
    return commands.digests(output, manifests=False)


def examples(texts: Path, output: Path) -> tuple[str, ...]:
    """The arguments of a command that makes examples slowly."""
    return ("examples", f"--input={texts}", f"--output={output}", f"--vocab_file={commands.VOCAB}", *SLOW)


def embedded() -> tuple[str, ...]:
    """The flags that run a build on Flink within its own processes."""
    flags = ("--runner=FlinkRunner", "--flink_master=[local]", f"--flink_version={flink.VERSION}")
    return (*flags, f"--flink_job_server_jar={flink.JOB_SERVER}")


def test_embedded(download: None, expected: dict[str, str], tmp_path: Path) -> None:
    assert build(tmp_path, *embedded()) == expected


@pytest.mark.exhaustive
def test_from_and_to_a_store_that_answers_late(download: None, expected: dict[str, str], tmp_path: Path) -> None:
    with cloud.storage(tmp_path, "flink") as environment, slow_store(environment) as (slow, store):
        cloud.upload(environment, "flink", commands.DUMP.name, commands.DUMP.read_bytes())
        config = write_config(tmp_path / "build.yaml", "gs://flink/out", f"gs://flink/{commands.DUMP.name}")
        done = commands.maskmill("build", config, *embedded(), **slow)
        assert done.returncode == 0, done.stderr
        found = {name: hashlib.sha256(cloud.content(environment, "flink", f"out/{name}")) for name in expected}
    assert {name: digest.hexdigest() for name, digest in found.items()} == expected
    assert {"read", "write"} <= {one.kind for one in store.asked}


@pytest.mark.exhaustive_but("2")
@pytest.mark.parametrize("parallelism", [1, 2, 4])
def test_cluster(cluster: flink.Cluster, expected: dict[str, str], parallelism: int, tmp_path: Path) -> None:
    assert build(tmp_path, *cluster.flags(), f"--parallelism={parallelism}") == expected
    logs = [log.read_text() for log in (cluster.directory / "log").glob("taskmanager-*.log")]
    assert any("Received task" in log for log in logs)
    assert not any("BlobClient" in log for log in logs), "the job brought Beam's classes, 157 MB"


def mix(directory: Path) -> str:
    """Packed rows in MDS of a dump and a book."""
    chapters = [f"Chapter {n}. " + f"It was day {n} of the long journey. " * (n % 9 + 20) for n in range(60)]
    (directory / "book.txt").write_text("\n\n".join(chapters))
    return (
        f"preset: modernbert\nsources:\n  wikipedia: {{input: {commands.DUMP}, weight: 9}}\n"
        f"  book: {{input: {directory / 'book.txt'}, weight: 1, max_epochs: 2}}\n"
        "extract: {num_eval_articles: 7, shard_size_mb: 0.2}\n"
        f"examples: {{vocab_file: {commands.VOCAB}, format: mds}}\n"
    )


def vocabulary(directory: Path) -> str:
    """A vocabulary and the examples that take it."""
    return (
        f"extract: {{input: {commands.DUMP}, num_eval_articles: 7, shard_size_mb: 0.2}}\n"
        "vocabulary: {kind: bpe, size: 2048}\nexamples: {dupe_factor: 1}\n"
    )


def templates(directory: Path) -> str:
    """A dump's own templates and modules."""
    pages = [dump_files.page(n, f"Town {n}", f"Town {n} has {{{{shout|river|{n}}}}}.") for n in range(1, 200)]
    module = "return { f = function(frame) return mw.ustring.upper(frame:getParent().args[1]) end }"
    pages += [
        dump_files.page(300, "Template:Shout", "{{#invoke:Shout|f}} {{{2}}}", namespace=10),
        dump_files.page(301, "Module:Shout", module, namespace=828, model="Scribunto"),
    ]
    (directory / "dump-20260301.xml").write_bytes(dump_files.dump(pages))
    return (
        f"extract: {{input: {directory}/dump-20260301.xml, num_eval_articles: 7, expand_templates: true}}\n"
        f"examples: {{vocab_file: {commands.VOCAB}, dupe_factor: 1}}\n"
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("sections", "made"),
    [(mix, "examples/train/index.json"), (vocabulary, "vocabulary/report.json"), (templates, "text/eval.txt")],
)
def test_other_builds_are_the_same_on_the_cluster(
    cluster: flink.Cluster, tmp_path: Path, sections: Callable[[Path], str], made: str
) -> None:
    text, given = sections(tmp_path), []
    for name, flags in (("here", commands.IN_MEMORY), ("cluster", (*cluster.flags(), "--parallelism=2"))):
        (tmp_path / f"{name}.yaml").write_text(f"output: {tmp_path / name}\nreport: off\n{text}")
        done = commands.maskmill("build", tmp_path / f"{name}.yaml", *flags)
        assert done.returncode == 0, done.stderr
        given.append(commands.digests(tmp_path / name, manifests=False))
    assert made in given[0]
    assert given[0] == given[1]


@pytest.mark.exhaustive
def test_a_verification_on_the_cluster(cluster: flink.Cluster, tmp_path: Path) -> None:
    build(tmp_path, *commands.IN_MEMORY)
    flags = (*cluster.flags(), "--parallelism=2", f"--scratch={tmp_path}")
    right = commands.maskmill("verify", tmp_path / "out", "--json", *flags)
    assert right.returncode == 0, right.stderr
    assert json.loads(right.stdout) == json.loads(commands.maskmill("verify", tmp_path / "out", "--json").stdout)
    (tmp_path / "out" / "text" / "eval.txt").unlink()
    wrong = commands.maskmill("verify", tmp_path / "out", "--json", *flags)
    assert (wrong.returncode, json.loads(wrong.stdout)["findings"][0]["check"]) == (1, "missing"), wrong.stderr


@contextlib.contextmanager
def running(cluster: flink.Cluster, texts: Path, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs `examples` on the cluster and gives the process when some shards are finished and others are not."""
    command = [sys.executable, "-m", "maskmill", *examples(texts, output), *cluster.flags(), "--parallelism=2"]
    with open(log_file(output), "wb") as file:
        process = subprocess.Popen(command, cwd=commands.ROOT, stdout=file, stderr=file, start_new_session=True)
    try:
        wait_until(lambda: len(finished(output)) >= 2 or process.poll() is not None)
        assert process.poll() is None, log_file(output).read_text()
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def log_file(output: Path) -> Path:
    """The file to which the output of a command goes."""
    return output.with_name("log.txt")


def finished(output: Path) -> list[Path]:
    """The completion records of example shards."""
    return list((output / ".maskmill" / "examples").glob("*.json"))


def wait_until(condition: Callable[[], bool]) -> None:
    """Waits for a condition. The limit ends a test that hangs."""
    deadline = time.monotonic() + 600
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the condition did not become true within 600 s")
        time.sleep(0.05)


def python_workers(cluster: flink.Cluster) -> dict[str, list[psutil.Process]]:
    """The Python workers of each TaskManager, by the TaskManager's name."""
    workers = {}
    for name, process in cluster.processes().items():
        if name.startswith("taskmanager") and process is not None:
            workers[name] = [c for c in process.children(recursive=True) if any("worker.py" in a for a in c.cmdline())]
    return workers


@pytest.mark.exhaustive
@pytest.mark.parametrize("victim", ["worker", "taskmanager"])
def test_a_killed_process(
    cluster: flink.Cluster, texts: Path, expected_examples: dict[str, str], tmp_path: Path, victim: str
) -> None:
    output = tmp_path / "examples"
    with running(cluster, texts, output) as process:
        by_manager = python_workers(cluster)
        assert max(map(len, by_manager.values())) <= 2, "a Python process for each slot"
        busy, workers = next((name, workers) for name, workers in by_manager.items() if workers)
        killed = workers[0] if victim == "worker" else cluster.processes()[busy]
        assert killed is not None
        assert len(finished(output)) < len(list(texts.glob("part-*")))
        killed.kill()
        assert process.wait() == 0, log_file(output).read_text()
    assert commands.digests(output, manifests=False) == expected_examples
    assert commands.leftovers(output) == []
    if victim == "taskmanager":
        cluster.start_taskmanager(int(busy.rpartition("-")[2]))


def test_a_killed_jobmanager(
    cluster: flink.Cluster, texts: Path, expected_examples: dict[str, str], tmp_path: Path
) -> None:
    output = tmp_path / "examples"
    with running(cluster, texts, output):
        manager = cluster.processes()["jobmanager"]
        assert manager is not None
        manager.kill()
    cluster.stop()
    modified = {}  # times of the finished shards
    for record in finished(output):
        for name, _, _ in json.loads(record.read_bytes())["record"]["files"]:
            modified[name] = (output / name).stat().st_mtime_ns
    assert 0 < len(modified) < len(expected_examples)
    cluster.start(flink.Settings(taskmanagers=2, slots=2, rest_port=free_port()))
    done = commands.maskmill(*examples(texts, output), *cluster.flags(), "--parallelism=2")
    assert done.returncode == 0, done.stderr
    assert commands.digests(output, manifests=False) == expected_examples
    assert commands.leftovers(output) == []
    assert {name: (output / name).stat().st_mtime_ns for name in modified} == modified, (
        "a finished shard was made again"
    )


def test_an_error_in_a_step_is_one_sentence(cluster: flink.Cluster, tmp_path: Path) -> None:
    broken = tmp_path / "broken.xml.bz2"
    broken.write_bytes(commands.DUMP.read_bytes()[:-5000])
    flags = (*cluster.flags(), "--parallelism=1")
    done = commands.maskmill("extract", f"--input={broken}", f"--output={tmp_path / 'out'}", *flags)
    assert done.returncode in (1, 2)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"maskmill extract: {broken}"), done.stderr
