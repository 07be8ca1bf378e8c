"""The parts of the Airflow package that need no Airflow: command lines and processes."""

import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from airflow_package import PACKAGE, commands, processes


def installation(program: str, **environment: str) -> Any:
    """An installation whose command is a program of Python's."""
    return commands.Installation(command=(sys.executable, "-c", program), environment=environment)


def test_a_connection_names_the_command_in_one_text_or_in_parts() -> None:
    assert commands.Installation.of({}) == commands.Installation()
    text = commands.Installation.of({"command": "/opt/my maskmill".replace(" ", "\\ ") + " -x", "directory": "/srv"})
    assert (text.command, text.directory) == (("/opt/my maskmill", "-x"), "/srv")
    parts = commands.Installation.of({"command": ["python", "-m", "maskmill"], "environment": {"WORKERS": 2}})
    assert (parts.command, parts.environment) == (("python", "-m", "maskmill"), {"WORKERS": "2"})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"comand": "maskmill"},
            "A maskmill connection has no field 'comand'; it has command, directory, environment.",
        ),
        ({"environment": "A=1"}, "The field environment of a maskmill connection must be an object"),
    ],
)
def test_a_connection_that_cannot_be_used_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        commands.Installation.of(settings)


def test_a_stage_is_built_alone_and_for_its_dump() -> None:
    line = commands.build_stage(
        "b.yaml", stage="examples", dump="2026-03-01", owner="o", summary="s.json", flags=["--runner=FlinkRunner"]
    )
    assert line[:3] == ["build", "b.yaml", "--release"]
    assert line[line.index("--from") + 1] == line[line.index("--until") + 1] == "examples"
    assert line[line.index("--dump") + 1] == "2026-03-01"
    assert line[-1] == "--runner=FlinkRunner"
    newest = commands.build_stage("b.yaml", stage="examples", dump=None, owner="o", summary="s.json")
    assert "--dump" not in newest


def test_the_json_that_a_command_printed_is_found_among_its_other_lines() -> None:
    assert commands.last_object('{\n "a": 1\n}\n') == {"a": 1}
    assert commands.last_object('text\n{"a": 1}\n{"b": 2}\n[3]\n') == {"b": 2}
    assert commands.last_object("nothing new\n") is None


def test_the_last_event_of_a_build_is_read(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    assert commands.read_summary(str(path)) is None
    path.write_text(json.dumps({"release": "enwiki-…", "complete": True}))
    assert commands.read_summary(str(path)) == {"release": "enwiki-…", "complete": True}


def test_a_command_passes_its_lines_on_with_their_levels() -> None:
    record = {"level": "WARNING", "message": "the text is short", "time": "…", "logger": "maskmill"}
    program = (
        f"import sys; print('a result'); print({json.dumps(record)!r}, file=sys.stderr); print('x', file=sys.stderr)"
    )
    said: list[tuple[int, str]] = []
    assert (
        processes.Command(installation(program), []).run(lambda level, text: said.append((level, text))) == "a result\n"
    )
    assert sorted(said) == [
        (logging.INFO, "a result"),
        (logging.INFO, "x"),
        (logging.WARNING, "the text is short"),
    ]


@pytest.mark.parametrize(
    ("program", "code", "sentence"),
    [
        (
            """raise SystemExit('{"level": "ERROR", "message": "maskmill build: the disk is full."}')""",
            1,
            "maskmill build: ",
        ),
        ("import sys; sys.exit(2)", 2, " ended with exit code 2 without a sentence"),
        ("import os; os.kill(os.getpid(), 9)", -9, " was killed by signal 9 without a sentence"),
    ],
)
def test_a_failure_is_the_command_s_own_sentence(program: str, code: int, sentence: str) -> None:
    with pytest.raises(processes.CommandFailedError, match=re.escape(sentence)) as failed:
        processes.Command(installation(program), []).run(lambda level, text: None)
    assert failed.value.code == code


def test_a_command_that_is_not_there_is_named() -> None:
    nowhere = commands.Installation(command=("/nowhere/maskmill",))
    with pytest.raises(processes.CommandFailedError, match="/nowhere/maskmill cannot be started"):
        processes.Command(nowhere, ["build"]).run(lambda level, text: None)


def test_the_end_of_a_command_is_the_end_of_what_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    child = "import time; time.sleep(600)"
    program = (
        "import subprocess, sys, os, pathlib\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        f"pathlib.Path({str(pids)!r}).write_text(f'{{os.getpid()}} {{child.pid}}')\n"
        "child.wait()\n"
    )
    command = processes.Command(installation(program), [])
    failures: list[BaseException] = []

    def run() -> None:
        try:
            command.run(lambda level, text: None)
        except processes.CommandFailedError as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not pids.exists() or len(pids.read_text().split()) < 2:
        time.sleep(0.02)
    command.end()
    thread.join(60)
    assert not thread.is_alive()
    assert len(failures) == 1
    for pid in map(int, pids.read_text().split()):
        assert has_ended(pid), f"process {pid} goes on"


def has_ended(pid: int) -> bool:
    """Whether a process ends within a minute; one that nobody has waited for yet has."""
    for _ in range(600):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def test_every_pinned_version_is_one() -> None:
    pins = [line for line in (PACKAGE / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9._+!-]+", pin) for pin in pins), pins
    names = {pin.partition("==")[0].lower() for pin in pins}
    wanted = (PACKAGE / "requirements.txt").read_text().splitlines()
    asked = {re.split("[<>=]", line)[0] for line in wanted if line and not line.startswith(("#", "-"))}
    assert asked <= names


@pytest.mark.parametrize("arguments", [[], ["--unknown"], ["one", "two"]])
def test_the_install_script_says_how_it_is_called(arguments: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", PACKAGE / "install.sh", *arguments],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "deploy/airflow/install.sh DIRECTORY" in done.stderr
    assert list(tmp_path.iterdir()) == []
