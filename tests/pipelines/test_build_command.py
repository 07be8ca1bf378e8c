"""`maskmill build`: the whole chain, its re-runs after interruptions, two runs at once, and refusals."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml
from command_runs.commands import DUMP, IN_MEMORY, ROOT, TWO_PROCESSES, VOCAB, digests, leftovers
from data_sets.steps import STRICT

from maskmill.errors import UnusableInputError
from pipelines.building import build_options
from pipelines.commands import cli
from pipelines.settings import yaml_text

pytestmark = pytest.mark.long

SECTIONS = {
    "extract": {"input": str(DUMP), "num_eval_articles": 7, "shard_size_mb": 0.5},
    "examples": {"vocab_file": str(VOCAB), "max_seq_length": 128, "max_predictions_per_seq": 20, "dupe_factor": 2},
    "eval": {"num_examples_to_pick": 50},
}


def config(folder: Path, output: Path, **changes: dict[str, object]) -> Path:
    """Writes the file of a small build into `folder`; `changes` replace options of its sections."""
    sections = {name: values | changes.get(name, {}) for name, values in SECTIONS.items()}
    path = folder / f"{output.name}.yaml"
    path.write_text(yaml.safe_dump({"output": str(output), "report": "off", **sections}))
    return path


def command(path: Path, *flags: str) -> list[str]:
    """The command line that runs a build's file."""
    return [sys.executable, "-m", "maskmill", "build", str(path), *flags]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a finished build, which tests only read."""
    folder = tmp_path_factory.mktemp("build")
    assert cli.main(["build", str(config(folder, folder / "out")), *IN_MEMORY]) == 0
    return folder / "out"


@pytest.fixture(scope="module")
def expected(built: Path) -> dict[str, str]:
    """The sha256 of the build's files, without manifests, whose paths depend on the output directory."""
    return digests(built, manifests=False)


def test_every_stage_leaves_its_output(built: Path, expected: dict[str, str]) -> None:
    texts = sorted(p.name for p in (built / "text").glob("part-*"))
    assert len(texts) > 3
    examples = {f"examples/{t}.tfrecord{suffix}" for t in [*texts, "eval.txt"] for suffix in ("", ".idx")}
    assert examples <= set(expected)
    assert {"text/eval.txt", "text/eval.md5", "eval/eval.tfrecord"} <= set(expected)
    picked = json.loads((built / "eval" / "manifest.json").read_text())["counts"]["eval"]
    assert picked["picked"] == 50
    assert leftovers(built) == []


def test_manifests_describe_the_files(built: Path) -> None:
    import hashlib

    for stage in ("text", "examples", "eval"):
        manifest = json.loads((built / stage / "manifest.json").read_text())
        for shard in manifest["shards"]:
            content = (built / stage / shard["name"]).read_bytes()
            assert (len(content), hashlib.sha256(content).hexdigest()) == (shard["bytes"], shard["sha256"])
            assert all(len(sha256) == 64 for sha256 in shard.get("inputs", {}).values())
        assert all(len(entry["sha256"]) == 64 for entry in manifest["inputs"])


def test_counts_agree_from_stage_to_stage(built: Path) -> None:
    text = json.loads((built / "text" / "manifest.json").read_text())["counts"]
    examples = json.loads((built / "examples" / "manifest.json").read_text())["counts"]
    for kind in ("train", "eval"):
        assert text[kind]["documents"] == examples[kind]["documents"]
    assert text["extract"]["documents"] == text["train"]["documents"] + text["eval"]["documents"]


@pytest.mark.builds
def test_two_processes_give_the_same_bytes(expected: dict[str, str], tmp_path: Path) -> None:
    output = tmp_path / "out"
    done = subprocess.run(command(config(tmp_path, output), *TWO_PROCESSES), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert digests(output, manifests=False) == expected


# ---- again, interrupted, doubled


def mtimes(output: Path) -> dict[str, int]:
    """When each text and example file was last written, in nanoseconds."""
    return {
        str(p): p.stat().st_mtime_ns for p in output.rglob("*") if p.suffix in (".tfrecord", ".txt") or "part" in p.name
    }


@pytest.mark.builds
def test_a_runner_of_beams_gives_the_same_bytes(expected: dict[str, str], tmp_path: Path) -> None:
    on_beam = "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"
    assert cli.main(["build", str(config(tmp_path, tmp_path / "out")), on_beam, *STRICT]) == 0
    assert digests(tmp_path / "out", manifests=False) == expected


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A finished build that the test may change."""
    assert cli.main(["build", str(config(tmp_path, tmp_path / "out")), *IN_MEMORY]) == 0
    return tmp_path / "out"


def test_a_rerun_makes_only_what_is_missing_or_stale(copy: Path, expected: dict[str, str], tmp_path: Path) -> None:
    before = mtimes(copy)
    changed = copy / "examples" / "part-00001-of-00005.tfrecord"
    missing = copy / "text" / "part-00002-of-00005"
    changed.write_bytes(b"x" + changed.read_bytes()[1:])
    missing.unlink()
    assert cli.main(["build", str(config(tmp_path, copy)), *IN_MEMORY]) == 0
    assert digests(copy, manifests=False) == expected
    after = mtimes(copy)
    remade = {Path(p).name for p in before if before[p] != after[p]}
    assert remade - {"eval.tfrecord"} == {changed.name, f"{changed.name}.idx", missing.name}


@pytest.mark.builds
def test_a_build_that_is_killed_at_any_moment_can_run_again(expected: dict[str, str], tmp_path: Path) -> None:
    output = tmp_path / "out"
    path = config(tmp_path, output)
    expected_by_name = {name.split("/")[-1]: digest for name, digest in expected.items()}
    for finished_pieces in (1, 8, 12):
        process = subprocess.Popen(
            command(path, *TWO_PROCESSES), cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while process.poll() is None and len(list(output.rglob(".maskmill/*/*.json"))) < finished_pieces:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for name, digest in digests(output, manifests=False).items():
            if not name.endswith(".maskmill-tmp"):
                assert digest == expected_by_name[name.split("/")[-1]], f"{name} exists with wrong bytes"
    assert cli.main(["build", str(path), *IN_MEMORY]) == 0
    assert digests(output, manifests=False) == expected
    assert leftovers(output) == []


@pytest.mark.builds
def test_two_builds_into_one_output_at_once(expected: dict[str, str], tmp_path: Path) -> None:
    output = tmp_path / "out"
    path = config(tmp_path, output)
    processes = [
        subprocess.Popen(
            command(path, *IN_MEMORY), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    assert digests(output, manifests=False) == expected
    assert leftovers(output) == []


# ---- refused


def test_the_printed_config_is_a_build_once_it_is_filled_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", "--print_config"]) == 0
    content = yaml_text.parse(capsys.readouterr().out.encode(), where="x")
    with pytest.raises(UnusableInputError, match="x, line 2: output is missing"):
        build_options.make_build(content, where="x")
    content["output"], content["extract"]["input"], content["examples"]["vocab_file"] = "o", "i", "v"
    filled_in = build_options.make_build(content, where="x")
    minimal = {"output": "o", "extract": {"input": "i"}, "examples": {"vocab_file": "v"}}
    assert filled_in == build_options.make_build(minimal, where="x")


def limit_file_size() -> None:
    """Forbids this process files above 300,000 bytes, in place of a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))


@pytest.mark.builds
@pytest.mark.parametrize("workers", [IN_MEMORY, TWO_PROCESSES])
@pytest.mark.exhaustive_but("workers1")
def test_a_full_disk_fails_with_one_sentence(workers: tuple[str, ...], tmp_path: Path) -> None:
    output = tmp_path / "out"
    done = subprocess.run(
        command(config(tmp_path, output), *workers), cwd=ROOT, capture_output=True, text=True,
        preexec_fn=limit_file_size,
    )  # fmt: skip
    assert done.returncode == 1
    sentences = [line for line in done.stderr.splitlines() if line.startswith("maskmill")]
    assert len(sentences) == 1
    assert "cannot be written (File too large)" in sentences[0]
    assert "Traceback" not in done.stderr
    for path in output.rglob("part-*"):
        assert path.stat().st_size < 300_000
    assert not list(output.rglob("manifest.json"))


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The worker processes of a command."""
    return psutil.Process(process.pid).children()


@pytest.mark.builds
def test_a_killed_worker_ends_the_build_with_one_sentence_and_a_killed_build_leaves_no_worker(tmp_path: Path) -> None:
    path = config(tmp_path, tmp_path / "out")
    for victim in ("worker", "build"):
        # SIGINT is ignored, as in a background job of a shell.
        process = subprocess.Popen(
            command(path, *TWO_PROCESSES), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )  # fmt: skip
        while len(workers := workers_of(process)) < 2:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        (workers[0] if victim == "worker" else process).kill()
        errors = process.communicate(timeout=600)[1]
        if victim == "worker":
            assert process.returncode == 1
            assert [line for line in errors.splitlines() if line.startswith("maskmill")] == errors.splitlines()[-1:]
            assert "A worker process was killed by signal 9, often for want of memory; run the same command" in errors
            assert "Traceback" not in errors
        gone, alive = psutil.wait_procs(workers, timeout=300)
        assert len(gone) == 2, alive
