"""Whole commands with everybody listening: `maskmill build` and its releases."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import DUMP, IN_MEMORY, VOCAB, digests, maskmill
from servers.event_receiver import Receiver, receive

pytestmark = pytest.mark.releases


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receive() as one:
        yield one


def config(folder: Path, output: str, **events: str) -> Path:
    build: dict[str, Any] = {
        "output": str(folder / output),
        "report": "off",
        "extract": {"input": str(DUMP), "num_eval_articles": 1, "max_documents": 6},
        "examples": {"vocab_file": str(VOCAB), "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1},
        "release": {"wiki": "enwiki"},
        "events": events,
    }
    path = folder / f"{output}.yaml"
    path.write_text(json.dumps(build))  # JSON is YAML
    return path


def test_a_release_is_told_to_everybody(receiver: Receiver, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    told = {
        "summary": str(tmp_path / "last.json"),
        "webhook": receiver.url,
        "webhook_secret_file": str(tmp_path / "secret"),
        "openlineage": str(tmp_path / "events.jsonl"),
        "metrics": str(tmp_path / "maskmill.prom"),
    }
    path = config(tmp_path, "told", **told)
    done = maskmill("build", path, "--release", *IN_MEMORY)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    summary = json.loads((tmp_path / "last.json").read_text())
    (release,) = (tmp_path / "told" / "releases").glob("enwiki-*")
    assert (summary["release"], summary["complete"]) == (release.name, True)
    assert summary["fingerprint"] == json.loads((release / "release.json").read_text())["fingerprint"]
    assert set(summary["stages"]) == {"extract", "examples", "eval"}
    assert summary["stages"]["extract"]["seconds"] > 0
    kinds = ["build.started", *["stage.finished"] * 3, "build.finished"]
    assert [one.json["event"] for one in receiver.received] == kinds
    assert all("X-Maskmill-Signature-256" in one.headers for one in receiver.received)
    ended = [json.loads(line)["eventType"] for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert ended.count("START") == ended.count("COMPLETE") == 4

    # The release has the same bytes where nobody is told.
    silent = maskmill("build", config(tmp_path, "silent"), "--release", *IN_MEMORY)
    assert silent.returncode == 0, silent.stderr
    (other,) = (tmp_path / "silent" / "releases").glob("enwiki-*")
    assert other.name == release.name
    # Manifests and the record name the directories.
    made, made_silently = (
        {name: digest for name, digest in digests(one, manifests=False).items() if not name.endswith("json")}
        for one in (release, other)
    )
    assert made == made_silently
    assert len(made) > 5

    again = maskmill("build", path, "--release", *IN_MEMORY)
    assert again.returncode == 0, again.stderr
    assert receiver.received[-1].json["event"] == "nothing.new"


def test_a_stage_alone_is_told_and_the_last_one_completes(receiver: Receiver, tmp_path: Path) -> None:
    path = config(tmp_path, "parts", summary=str(tmp_path / "last.json"), webhook=receiver.url)
    for first, last, complete in (("extract", "extract", False), ("examples", "eval", True)):
        done = maskmill("build", path, "--release", "--from", first, "--until", last, *IN_MEMORY)
        assert done.returncode == 0, done.stderr
        summary = json.loads((tmp_path / "last.json").read_text())
        assert summary["complete"] == complete
        assert (summary["fingerprint"] is not None) == complete
    ran = {name: stage["ran"] for name, stage in summary["stages"].items()}
    assert ran == {"extract": False, "examples": True, "eval": True}


def test_nobody_who_fails_stops_a_build(receiver: Receiver, tmp_path: Path) -> None:
    receiver.statuses.extend([400] * 9)
    (tmp_path / "file").write_text("")
    told = {
        "summary": str(tmp_path / "file" / "last.json"),
        "webhook": receiver.url,
        "openlineage": receiver.url.removesuffix("/hook"),
        "metrics": str(tmp_path / "file" / "maskmill.prom"),
    }
    receiver.statuses.extend([400] * 20)
    done = maskmill("build", config(tmp_path, "build", **told), "--release", *IN_MEMORY)
    assert done.returncode == 0, done.stderr
    warnings = [line for line in done.stderr.splitlines() if line.startswith("maskmill: warning: events.")]
    assert sorted(line.split(": ")[2] for line in warnings) == [
        "events.metrics",
        "events.openlineage",
        "events.summary",
        "events.webhook",
    ]
    assert (tmp_path / "build" / "latest.json").exists()


def test_a_build_that_fails_is_told(receiver: Receiver, tmp_path: Path) -> None:
    path = config(tmp_path, "build", summary=str(tmp_path / "last.json"), webhook=receiver.url)
    dump = tmp_path / "enwiki-20160501-pages-articles.xml.bz2"
    content = DUMP.read_bytes()
    dump.write_bytes(content[: len(content) // 2])
    done = maskmill("build", path, "--release", "--extract.input", dump, "--extract.max_documents", 100000, *IN_MEMORY)
    assert done.returncode in (1, 2)
    summary = json.loads((tmp_path / "last.json").read_text())
    assert (summary["run"]["status"], summary["run"]["exit_status"]) == ("failed", done.returncode)
    assert str(dump) in summary["run"]["error"]
    assert summary["run"]["error"] in done.stderr
    assert receiver.received[-1].json["event"] == "build.failed"


@pytest.mark.parametrize("flags", [[], ["--release"]], ids=["plain", "release"])
def test_a_build_whose_dump_is_gone_is_told(flags: list[str], tmp_path: Path) -> None:
    path = config(tmp_path, "build", summary=str(tmp_path / "last.json"), metrics=str(tmp_path / "maskmill.prom"))
    done = maskmill("build", path, "--extract.input", tmp_path / "gone.xml.bz2", *flags, *IN_MEMORY)
    assert done.returncode == 2
    run = json.loads((tmp_path / "last.json").read_text())["run"]
    assert run["exit_status"] == 2
    assert "gone.xml.bz2" in run["error"]
    assert "maskmill_build_exit_status{" in (tmp_path / "maskmill.prom").read_text()
