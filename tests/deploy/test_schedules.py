"""The commands of cron, systemd and Kubernetes, as their files have them, on a directory with the sample dump."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_runs import commands
from release_runs.watches import mirrored

from pipelines.building import build_options

pytestmark = pytest.mark.builds

DEPLOY = commands.ROOT / "deploy"


def of_cron() -> list[str]:
    (line,) = (line for line in (DEPLOY / "cron" / "maskmill").read_text().splitlines() if line[:1].isdigit())
    *_, command = line.split(None, 6)
    return shlex.split(command)


def of_systemd() -> list[str]:
    lines = (DEPLOY / "systemd" / "maskmill-watch.service").read_text().splitlines()
    (command,) = (line.partition("=")[2] for line in lines if line.startswith("ExecStart="))
    return shlex.split(command)


def of_kubernetes() -> list[str]:
    manifests = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "watch.yaml").read_text()))
    (job,) = (manifest["spec"]["jobTemplate"] for manifest in manifests if manifest["kind"] == "CronJob")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    command: list[str] = container["command"]
    return command


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """deploy/watch.yaml with places of this machine, and a directory as its mirror."""
    directory = tmp_path_factory.mktemp("schedules")
    mirror = directory / "mirror"
    for name, data in mirrored("2026-11-01").items():
        (mirror / name).parent.mkdir(parents=True, exist_ok=True)
        (mirror / name).write_bytes(data)
    content: dict[str, Any] = yaml.safe_load((DEPLOY / "watch.yaml").read_text())
    content |= {"output": str(directory / "enwiki"), "report": "off"}
    content["watch"] |= {"source": str(mirror), "layout": "content"}
    content["examples"] |= {"vocab_file": str(commands.VOCAB), "dupe_factor": 1}
    content["extract"] |= {"num_eval_articles": 7, "shard_size_mb": 0.5}
    content["eval"] = {"num_examples_to_pick": 50}
    path = directory / "watch.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def run(command: Sequence[str], config: Path, bin_directory: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command of a file with the build's file of the test, and `maskmill` of this checkout."""
    program = bin_directory / "maskmill"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m maskmill "$@"\n')
    program.chmod(0o755)
    words = [str(program) if word.endswith("bin/maskmill") else word for word in command]
    words = [str(config) if word == "/etc/maskmill/watch.yaml" else word for word in words]
    assert str(config) in words
    environment = os.environ | {"PATH": f"{bin_directory}:{os.environ['PATH']}"}
    return subprocess.run(words, cwd=commands.ROOT, env=environment, capture_output=True, text=True, check=False)


def test_each_command_builds_what_is_new_and_then_finds_nothing_new(config: Path, tmp_path: Path) -> None:
    built = run(of_kubernetes(), config, tmp_path)
    assert built.returncode == 0, built.stderr
    root = config.parent / "enwiki"
    latest = json.loads((root / "latest.json").read_text())
    assert "enwiki-2026-11-01-" in json.dumps(latest)
    before = commands.digests(root)
    for command in (of_systemd(), of_kubernetes(), of_cron()):
        again = run(command, config, tmp_path)
        assert (again.returncode, again.stderr) == (0, "")
        assert again.stdout == "" if "--quiet" in command else "nothing new" in again.stdout
    assert commands.digests(root) == before


def test_an_unusable_file_ends_with_the_code_that_nobody_tries_again(config: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(config.read_text().replace("num_eval_articles", "num_evil_articles"))
    for command in (of_systemd(), of_kubernetes(), of_cron()):
        done = run(command, broken, tmp_path)
        assert done.returncode == 2
        assert "num_evil_articles" in done.stderr, "cron mails it"
    unit = (DEPLOY / "systemd" / "maskmill-watch.service").read_text()
    assert "RestartPreventExitStatus=2 " in unit
    manifests = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "watch.yaml").read_text()))
    (policy,) = (m["spec"]["jobTemplate"]["spec"]["podFailurePolicy"] for m in manifests if m["kind"] == "CronJob")
    assert {"action": "FailJob", "onExitCodes": {"containerName": "watch", "operator": "In", "values": [2]}} in policy[
        "rules"
    ]


def test_the_example_is_a_build_with_a_watch(tmp_path: Path) -> None:
    text = (DEPLOY / "watch.yaml").read_text().replace("/etc/maskmill/vocab.txt", str(commands.VOCAB))
    path = tmp_path / "watch.yaml"
    path.write_text(text)
    options = build_options.read_build(str(path))
    assert options.watch is not None
    assert options.watch.contact
    assert options.release.keep == 3
