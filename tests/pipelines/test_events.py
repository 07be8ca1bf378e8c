"""Events of builds: what a command gets, and that a command that fails ends no build."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import DUMP, IN_MEMORY, VOCAB, digests, maskmill

from maskmill.errors import RunFailedError, UnusableInputError
from pipelines.building import events
from pipelines.building.events import Run
from pipelines.terminal import console


def run_of(folder: Path, command: str | None) -> Run:
    return Run(command=command, output=str(folder), directory=str(folder), config="build.yaml", stages=("extract",))


def sent(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def config(folder: Path, output: str, command: str | None) -> Path:
    build = {
        "output": str(folder / output),
        "report": "off",
        "on_event": command,
        "extract": {"input": str(DUMP), "num_eval_articles": 1, "max_documents": 6},
        "examples": {"vocab_file": str(VOCAB), "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1},
        "release": {"wiki": "enwiki"},
    }
    path = folder / f"{output}.yaml"
    path.write_text(json.dumps(build))  # JSON is YAML
    return path


def to_file(path: Path) -> str:
    return f"cat >> '{path}'; echo >> '{path}'"


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (UnusableInputError("dump.xml: cut off."), 2, "dump.xml: cut off."),
        (RunFailedError("The disk is full."), 1, "The disk is full."),
        (KeyError("x"), 1, "KeyError: 'x'"),
    ],
)
def test_a_failure_is_sent_with_its_sentence_and_exit_status(
    error: Exception, status: int, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    with pytest.raises(type(error)), run_of(tmp_path, to_file(path)).sending_failures(type(error)):
        raise error
    (event,) = sent(path)
    assert (event["event"], event["complete"], event["fingerprint"]) == ("failed", False, None)
    assert (event["run"]["exit_status"], event["run"]["error"]) == (status, sentence)


@pytest.mark.parametrize(
    ("command", "warning"),
    [
        ("echo no such host >&2; exit 22", "its command ended with 22 (no such host)"),
        ("cat > /dev/null; exit 1", "its command ended with 1"),
        ("no-such-program-of-ours", "its command ended with 127"),
    ],
)
def test_a_command_that_fails_is_one_warning(
    command: str, warning: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with console.showing():
        run_of(tmp_path, command).send("started")
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"warning: on_event: the event started was not sent: {warning}")
    assert printed.err.count("\n") == 1


def test_a_command_that_reads_nothing_is_no_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_of(tmp_path, "exec <&-; echo printed").send("started")
    assert capfd.readouterr() == ("", "")


def test_a_command_that_does_not_end_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(events, "MOST_SECONDS", 0.5)
    with console.showing():
        run_of(tmp_path, f"sleep 600 & echo $! > '{tmp_path}/pid'; wait").send("started")
    assert "its command was ended after 0.5 seconds" in capfd.readouterr().err
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 60
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    """Say whether a process runs; one that has ended and is not reaped yet does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_build_without_a_command_calls_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_call", lambda *_: pytest.fail("a command was called"))
    run_of(tmp_path, None).send("started")


@pytest.mark.builds
def test_a_release_sends_its_events_and_has_the_bytes_of_one_that_sends_none(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    config_path = config(tmp_path, "sending", to_file(path))
    done = maskmill("build", config_path, "--release", *IN_MEMORY)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    started, finished = sent(path)
    (release,) = (tmp_path / "sending" / "releases").glob("enwiki-*")
    assert (started["event"], started["complete"], started["stages"]) == ("started", False, {})
    assert (finished["event"], finished["release"], finished["complete"]) == ("finished", release.name, True)
    assert finished["fingerprint"] == json.loads((release / "release.json").read_text())["fingerprint"]
    assert set(finished["stages"]) == {"extract", "examples", "eval"}
    assert finished["stages"]["examples"]["counts"]["train"]["examples"] > 0
    assert started["run"]["id"] == finished["run"]["id"]

    silent = maskmill("build", config(tmp_path, "silent", "exit 9"), "--release", *IN_MEMORY)
    assert silent.returncode == 0, silent.stderr
    assert silent.stderr.count("warning: on_event") == 2
    (other,) = (tmp_path / "silent" / "releases").glob("enwiki-*")
    assert other.name == release.name
    made, made_silently = (
        {name: digest for name, digest in digests(one, manifests=False).items() if not name.endswith("json")}
        for one in (release, other)
    )  # manifests and the record name the directories
    assert made == made_silently
    assert len(made) > 5

    again = maskmill("build", config_path, "--release", *IN_MEMORY)
    assert again.returncode == 0, again.stderr
    event = sent(path)[-1]
    assert (event["event"], event["new"], event["complete"]) == ("finished", False, True)


@pytest.mark.builds
def test_only_the_run_of_the_last_stage_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    for flags, complete in ((["--until", "extract"], False), (["--from", "examples"], True)):
        done = maskmill("build", config(tmp_path, "parts", to_file(path)), *flags, *IN_MEMORY)
        assert done.returncode == 0, done.stderr
        event = sent(path)[-1]
        assert (event["complete"], event["fingerprint"] is not None) == (complete, complete)


@pytest.mark.builds
@pytest.mark.parametrize("flags", [[], ["--release"]], ids=["plain", "release"])
def test_a_build_whose_dump_is_gone_sends_that(flags: list[str], tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    build = config(tmp_path, "build", to_file(path))
    done = maskmill("build", build, "--extract.input", tmp_path / "gone.xml.bz2", *flags, *IN_MEMORY)
    assert done.returncode == 2
    event = sent(path)[-1]
    assert (event["event"], event["run"]["exit_status"]) == ("failed", 2)
    assert event["run"]["error"] in done.stderr
    assert "gone.xml.bz2" in event["run"]["error"]


@pytest.mark.builds
def test_a_build_that_is_told_to_stop_sends_no_end(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    build = config(tmp_path, "build", f"{to_file(path)}; kill -INT $PPID")
    done = maskmill("build", build, *IN_MEMORY)
    assert done.returncode in (130, -signal.SIGINT)
    assert [event["event"] for event in sent(path)] == ["started"]
