"""`maskmill build --release`: what a release is, when it becomes the latest, and what is removed."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import DUMP, ROOT
from release_runs.builds import Root, config, contents, release, state_of

from maskmill.errors import RunFailedError
from maskmill.releases import locks
from maskmill.releases.names import ReleaseName
from pipelines.commands import cli
from pipelines.releasing import releases

pytestmark = pytest.mark.builds


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Root:
    """A root with one release, which tests only read or copy."""
    folder = tmp_path_factory.mktemp("built")
    assert release(config(folder, folder / "out")) == 0
    return Root(folder / "out")


class Copy:
    """A copy of that root, and the file of its build."""

    def __init__(self, built: Root, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = Root(Path(shutil.copytree(built.path, folder / "out", symlinks=True)))
        self.folder = folder
        self.first = str(built.latest)
        self._capsys = capsys

    def build(self, *flags: str, code: int = 0, **sections: Any) -> str:
        """Builds a release; returns what was printed."""
        self._capsys.readouterr()
        assert release(config(self.folder, self.root.path, **sections), *flags) == code
        return "".join(self._capsys.readouterr())


@pytest.fixture
def copy(built: Root, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Copy:
    return Copy(built, tmp_path, capsys)


# ---- what a release is


def test_a_release_is_a_plain_build_with_a_record(built: Root, tmp_path: Path) -> None:
    assert cli.main(["build", str(config(tmp_path, tmp_path / "plain")), "--workers=1"]) == 0
    assert contents(built.release()) == contents(tmp_path / "plain")
    record = built.record()
    assert built.latest == record["release"] == built.names[0]
    sha256 = hashlib.sha256(DUMP.read_bytes()).hexdigest()
    assert record["inputs"] == [{"path": str(DUMP), "bytes": DUMP.stat().st_size, "sha256": sha256}]
    assert record["config"]["examples"]["dupe_factor"] == 1
    folders = {"extract": "text", "examples": "examples", "eval": "eval"}
    assert {stage: facts["directory"] for stage, facts in record["stages"].items()} == folders
    for facts in record["stages"].values():
        manifest = (built.release() / facts["directory"] / "manifest.json").read_bytes()
        assert facts["manifest_sha256"] == hashlib.sha256(manifest).hexdigest()
    assert json.loads((built.path / "latest.json").read_text())["fingerprint"] == record["fingerprint"]


def test_a_complete_release_never_changes_and_its_pointers_are_made_again(copy: Copy) -> None:
    before = state_of(copy.root.release())
    for lost in (None, "latest", "latest.json"):
        if lost is not None:
            (copy.root.path / lost).unlink()
        assert "is complete; nothing to do" in copy.build()
        assert state_of(copy.root.release()) == before
        assert copy.root.latest == copy.first


def test_a_release_whose_removal_was_killed_is_built_anew(built: Root, copy: Copy) -> None:
    directory = copy.root.release()
    (directory / "release.json").unlink()
    shutil.rmtree(directory / "examples")
    next((directory / "text").glob("part-*")).unlink()
    copy.build()
    assert contents(directory) == contents(built.release())
    assert copy.root.latest == copy.first


# ---- which one is the latest


def test_the_newer_dump_is_the_latest_and_has_the_same_bytes(built: Root, copy: Copy) -> None:
    copy.build("--release.date=2016-06-01")
    second = copy.root.latest
    assert second != copy.first
    assert contents(copy.root.release(second)) == contents(built.release())
    assert f"{second} stays the latest, because it is newer" in copy.build("--release.date=2015-01-01")
    assert copy.root.latest == second
    assert len(copy.root.names) == 3  # nothing is removed without keep


def test_of_one_date_the_one_made_last_is_the_latest(copy: Copy) -> None:
    other = "--eval.num_examples_to_pick=5"
    copy.build(other)
    second = copy.root.latest
    assert second != copy.first
    assert f"{second} stays the latest" in copy.build()  # the first one is complete
    assert copy.root.latest == second
    # The run that made the second one may have been killed after its record.
    latest = json.loads((copy.root.path / "latest.json").read_text())
    fingerprint = copy.root.record(copy.first)["fingerprint"]
    latest |= {"release": copy.first, "path": f"releases/{copy.first}", "fingerprint": fingerprint}
    (copy.root.path / "latest.json").write_text(json.dumps(latest))
    copy.build(other)
    assert copy.root.latest == second


# ---- inputs that change


TEXT = "Once there was a text. It had two sentences.\n\n" * 9


@pytest.mark.parametrize("content", [None, TEXT.replace("Once", "Here")])
def test_an_input_that_changes_after_the_plan_ends_the_build(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [tmp_path / f"enwiki-20260301-part{k}.txt" for k in range(3)]
    for number, text in enumerate(texts):
        text.write_text(TEXT + f"This is text {number}.\n")
    given = {"input": f"{tmp_path}/enwiki-*.txt", "max_documents": None, "num_eval_articles": 1}
    path, root = config(tmp_path, tmp_path / "out", extract=given), Root(tmp_path / "out")
    before = texts[2].read_text()
    with monkeypatch.context() as patches:
        held = releases.locks.hold

        def hold(*given: Any, **named: Any) -> Any:
            texts[2].unlink() if content is None else texts[2].write_text(content)  # the plan is made
            return held(*given, **named)

        patches.setattr(releases.locks, "hold", hold)
        assert release(path) == cli.FAILED
    sentence = f"{texts[2]}: the release names this input, but {root.release()}/text was not made from it: the inputs"
    assert sentence in capsys.readouterr().err
    assert root.latest is None
    assert not (root.release() / "release.json").exists()
    texts[2].write_text(before)
    assert release(path) == 0
    made = json.loads((root.release() / "text" / "manifest.json").read_text())
    assert [entry["path"] for entry in made["inputs"]] == [entry["path"] for entry in root.record()["inputs"]]


# ---- clean-up


def test_keep_leaves_the_newest_and_what_is_pinned_or_young(copy: Copy) -> None:
    copy.build("--release.date=2016-06-01", "--keep=1")  # the first one is young
    old = {"keep": 1, "keep_days": 0}
    (copy.root.release(copy.first) / "keep").write_text("the paper's data")
    copy.build("--release.date=2016-07-01", "--until=examples", release=old)
    assert len(copy.root.names) == 3  # what is not complete removes nothing
    copy.build("--release.date=2016-07-01", "--from=eval", release=old)
    assert copy.root.names == [copy.first, copy.root.latest]
    (copy.root.release(copy.first) / "keep").unlink()
    copy.build("--release.date=2016-07-01", release=old)  # complete; but what was pinned is removed now
    assert copy.root.names == [copy.root.latest]


# ---- two at once


def name_of(root: Root) -> ReleaseName:
    name = ReleaseName.parse(root.names[0])
    assert name is not None
    return name


def command(path: Path, *flags: str) -> list[str]:
    return [sys.executable, "-m", "maskmill", "build", str(path), "--release", "--workers=1", *flags]


def test_a_second_build_says_who_builds_waits_or_takes_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, root = config(tmp_path, tmp_path / "out"), Root(tmp_path / "out")
    assert release(path, "--until=extract") == 0
    with locks.hold(str(root.path), name_of(root), owner="the night shift"):
        before = state_of(root.release())
        capsys.readouterr()
        assert release(path) == cli.FAILED
        (line,) = capsys.readouterr().err.splitlines()
        assert "is held by the night shift since" in line
        assert state_of(root.release()) == before
        waiting = subprocess.Popen(
            command(path, "--release.wait=5", "--until=examples"), cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        assert waiting.stderr is not None
        assert "held by the night shift" in waiting.stderr.readline()
    waiting.communicate()
    assert waiting.returncode == 0
    assert (root.release() / "examples" / "manifest.json").exists()
    # An attempt of the same step that the scheduler gave up, and that still lives.
    with locks.hold(str(root.path), name_of(root), owner="dag run 1") as lock:
        assert release(path, "--owner=dag run 2") == cli.FAILED
        assert root.latest is None
        assert release(path, "--owner=dag run 1") == 0
        with pytest.raises(RunFailedError, match="taken over"):
            lock.check()
    assert root.latest == root.names[0]


def test_a_killed_build_goes_on(built: Root, tmp_path: Path) -> None:
    root, path = Root(tmp_path / "out"), config(tmp_path, tmp_path / "out")
    process = subprocess.Popen(
        command(path), cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and len(list(root.path.rglob(".maskmill/*/*.json"))) < 3:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert root.latest is None
    assert release(path) == 0  # the lock of a dead process does not count
    assert contents(root.release()) == contents(built.release())
    assert root.latest == built.latest
