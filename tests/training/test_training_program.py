"""A program of the user's that trains: what it is told, when it is started again, and how its end is told."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from release_runs.builds import Root, config, release
from release_runs.watches import FIRST, first_dump, publish, write_config
from servers.mirror_server import serve

from maskmill.releases import fingerprints
from pipelines.commands import cli

PROGRAM = """
import json, os, signal, sys, time
folder = os.environ["MASKMILL_CHECKPOINTS"]
told = {name: value for name, value in os.environ.items() if name.startswith("MASKMILL_")}
told["json"] = json.load(open(told.pop("MASKMILL_TRAIN_JSON")))
with open(os.path.join(folder, "starts.jsonl"), "a") as file:
    print(json.dumps(told), file=file)
if os.path.exists("stop"):
    os.kill(os.getpid(), signal.SIGKILL)
if os.path.exists("wait"):
    signal.signal(signal.SIGINT, lambda *_: (open(os.path.join(folder, "saved"), "a").write("x"), sys.exit(0)))
    open("waiting", "w").close()
    time.sleep(300)
sys.exit(3 if os.path.exists("fail") else 0)
"""
COMMAND = [sys.executable, "train.py"]


class Scene:
    """A folder with a program and examples for it, and what it was told each time it was started."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        (folder / "train.py").write_text(PROGRAM)
        (folder / "vocab.txt").write_text("one\n")
        self.write_examples("first")

    def write_examples(self, content: str) -> None:
        (self.folder / "examples").mkdir(exist_ok=True)
        manifest = {"stage": "examples", "content": content}
        (self.folder / "examples" / "manifest.json").write_text(json.dumps(manifest))

    def train(self, *flags: str, program: Sequence[str] = COMMAND, code: int = 0) -> str:
        """Trains, which ends with this code; returns what is printed of it."""
        found = cli.main([*arguments(program), *flags])
        told = self.capsys.readouterr().err
        assert found == code, told
        return told

    @property
    def starts(self) -> list[dict[str, Any]]:
        return starts_in(self.folder / "run")


def arguments(program: Sequence[str] = COMMAND) -> list[str]:
    paths = ["--input_file=examples", "--output_dir=run", "--vocab_file=vocab.txt"]
    return ["train", *paths, f"--program={','.join(program)}"]


def starts_in(folder: Path) -> list[dict[str, Any]]:
    """What the program was told each time."""
    path = folder / "starts.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def scene(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MASKMILL_CI", raising=False)
    return Scene(tmp_path, capsys)


def test_it_is_told_paths_and_options(scene: Scene) -> None:
    scene.train("--seed=7")
    (told,) = scene.starts
    made = told["json"].pop("manifests")
    assert [(one["directory"], one["stage"]) for one in made] == [(str(scene.folder / "examples"), "examples")]
    examples, vocabulary, run = (str(scene.folder / name) for name in ("examples", "vocab.txt", "run"))
    assert told == {
        "MASKMILL_EXAMPLES": examples,
        "MASKMILL_EVAL_EXAMPLES": "",
        "MASKMILL_VOCABULARY": vocabulary,
        "MASKMILL_CHECKPOINTS": run,
        "MASKMILL_RELEASE": "",
        "MASKMILL_RELEASE_FINGERPRINT": "",
        "json": {
            "examples": [examples],
            "eval_examples": [],
            "vocabulary": vocabulary,
            "checkpoints": run,
            "release": None,
            "release_fingerprint": None,
            "options": {"seed": 7},
        },
    }


def test_a_finished_one_is_started_again_only_if_it_is_another(scene: Scene) -> None:
    for flags, starts in (([], 1), ([], 1), (["--seed=7"], 2), (["--seed=7"], 2)):
        scene.train(*flags)
        assert len(scene.starts) == starts, flags
    (scene.folder / "train.py").write_text(PROGRAM + "# changed\n")
    scene.train("--seed=7")
    assert len(scene.starts) == 3
    assert "nothing is left to do" in scene.train("--seed=7")


def test_other_examples_and_another_vocabulary_are_refused(scene: Scene) -> None:
    scene.train()
    scene.write_examples("second")
    refused = "run: the program was started here on other examples or another vocabulary; name another directory"
    assert refused in scene.train(code=2)
    scene.write_examples("first")
    (scene.folder / "vocab.txt").write_text("two\n")
    assert refused in scene.train(code=2)
    assert len(scene.starts) == 1


@pytest.mark.parametrize(("file", "how"), [("fail", "ended with code 3"), ("stop", "was ended by SIGKILL")])
def test_a_failure_is_one_sentence_and_the_next_run_starts_it_again(scene: Scene, file: str, how: str) -> None:
    (scene.folder / file).touch()
    sentence = f"maskmill train: The program {how}: {' '.join(COMMAND)}; see what it printed.\n"
    assert scene.train(code=1) == sentence
    (scene.folder / file).unlink()
    scene.train()
    first, second = scene.starts
    assert first == second


def test_ctrl_c_reaches_it_once_and_the_command_ends_after_it(scene: Scene) -> None:
    (scene.folder / "wait").touch()
    process = subprocess.Popen([sys.executable, "-m", "maskmill", *arguments()], start_new_session=True)
    until = time.monotonic() + 300
    while not (scene.folder / "waiting").exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of the command's group
    assert process.wait() == 128 + signal.SIGINT
    assert (scene.folder / "run" / "saved").read_text() == "x"
    (scene.folder / "wait").unlink()
    scene.train()
    assert len(scene.starts) == 2


@pytest.mark.parametrize(
    ("program", "flags", "sentence"),
    [
        (["no-such-program"], [], "--program no-such-program: nothing of this name can be run"),
        ([sys.executable, "gone.py"], [], "--program: there is no file gone.py in "),
        (COMMAND, ["--launcher=local"], "--launcher is of maskmill's own trainer, not of a --program"),
        (COMMAND, ["--eval_only", "--eval_file=examples"], "--eval_only is of maskmill's own trainer"),
    ],
)
def test_a_mistake_is_found_before_it_starts(scene: Scene, program: list[str], flags: list[str], sentence: str) -> None:
    assert sentence in scene.train(*flags, program=program, code=2)
    assert scene.starts == []


@pytest.mark.builds
def test_it_ends_a_release(scene: Scene) -> None:
    root = Root(scene.folder / "out")
    path = config(scene.folder, root.path, train={"program": COMMAND}, on_event="cat >> events; echo >> events")
    (scene.folder / "fail").touch()
    assert release(path) == 1
    assert not (root.path / "latest.json").exists()
    (scene.folder / "fail").unlink()
    assert [release(path), release(path)] == [0, 0]
    made = root.path / "releases" / str(root.latest)
    first, second = starts_in(made / "train")
    assert first == second
    assert (second["MASKMILL_RELEASE"], second["MASKMILL_EXAMPLES"]) == (str(made), str(made / "examples"))
    digests = fingerprints.manifest_digests(str(made))
    assert second["MASKMILL_RELEASE_FINGERPRINT"] == fingerprints.fingerprint_of(digests)
    (scene.folder / "train.py").write_text(PROGRAM + "# changed\n")
    assert release(path) == 0
    assert len(list((root.path / "releases").glob("enwiki-*"))) == 2, "another script makes another release"
    events = [json.loads(line)["event"] for line in (scene.folder / "events").read_text().splitlines()]
    assert events == ["started", "failed", "started", "finished", "finished", "started", "finished"]


@pytest.mark.builds
def test_a_watch_starts_it_for_a_new_dump(scene: Scene) -> None:
    with serve() as mirror:
        publish(mirror, FIRST, first_dump())
        path = write_config(scene.folder / "build.yaml", "out", mirror.url, train={"program": COMMAND})
        assert [cli.main(["watch", str(path), "--workers=1"]) for _ in range(2)] == [0, 0]
    (told,) = starts_in(next((scene.folder / "out" / "releases").glob("enwiki-*")) / "train")
    assert told["MASKMILL_RELEASE"]
