"""`maskmill build --release`: what a release is, when it becomes the latest, and what is removed."""

import bz2
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

pytestmark = pytest.mark.releases


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Root:
    """A root with one release, which tests only read or copy."""
    folder = tmp_path_factory.mktemp("built")
    assert release(config(folder, folder / "out")) == 0
    return Root(folder / "out")


@pytest.fixture
def copied(built: Root, tmp_path: Path) -> Root:
    """A copy of it, whose build file is in tmp_path."""
    shutil.copytree(built.path, tmp_path / "out", symlinks=True)
    return Root(tmp_path / "out")


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed, as one text."""
    captured = capsys.readouterr()
    return captured.out + captured.err


# ---- what a release is


def test_a_release_has_the_bytes_of_a_plain_build(built: Root, tmp_path: Path) -> None:
    assert cli.main(["build", str(config(tmp_path, tmp_path / "plain")), "--direct_num_workers=1"]) == 0
    assert contents(built.release()) == contents(tmp_path / "plain")


def test_its_record_tells_what_it_was_made_of(built: Root) -> None:
    record = built.record()
    name = record["release"]
    assert built.latest == name == built.names[0]
    assert record["inputs"] == [
        {"path": str(DUMP), "bytes": DUMP.stat().st_size, "sha256": record["inputs"][0]["sha256"]}
    ]
    assert record["config"]["examples"]["dupe_factor"] == 1
    assert {stage: facts["directory"] for stage, facts in record["stages"].items()} == {
        "extract": "text", "examples": "examples", "eval": "eval"
    }  # fmt: skip
    for facts in record["stages"].values():
        manifest = (built.release() / facts["directory"] / "manifest.json").read_bytes()
        assert facts["manifest_sha256"] == hashlib.sha256(manifest).hexdigest()
    assert json.loads((built.path / "latest.json").read_text())["fingerprint"] == record["fingerprint"]


def test_a_complete_release_never_changes(copied: Root, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state_of(copied.release())
    assert release(config(tmp_path, copied.path)) == 0
    assert "is complete; nothing to do" in said(capsys)
    assert state_of(copied.release()) == before


def test_a_lost_pointer_and_a_lost_link_are_made_again(copied: Root, tmp_path: Path) -> None:
    name = copied.latest
    path = config(tmp_path, copied.path)
    for lost in ("latest", "latest.json"):
        (copied.path / lost).unlink()
        assert release(path) == 0
        assert copied.latest == name


def test_a_second_release_has_the_same_bytes(built: Root, copied: Root, tmp_path: Path) -> None:
    first = copied.latest
    assert release(config(tmp_path, copied.path), "--release.date=2016-06-01") == 0
    second = copied.latest
    assert second != first
    assert contents(copied.release(second)) == contents(built.release())


# ---- which one is the latest


def test_an_older_dump_does_not_become_the_latest(
    copied: Root, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    latest = copied.latest
    assert latest is not None
    assert release(config(tmp_path, copied.path), "--release.date=2015-01-01") == 0
    assert f"{latest} stays the latest, because it is newer" in said(capsys)
    assert copied.latest == latest
    assert len(copied.names) == 2


def test_of_one_date_the_one_made_last_is_the_latest(
    copied: Root, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, first = config(tmp_path, copied.path), copied.latest
    assert release(path, "--eval.num_examples_to_pick=5") == 0
    second = copied.latest
    assert second != first
    capsys.readouterr()
    assert release(path) == 0  # the first one is complete
    assert f"{second} stays the latest" in said(capsys)
    assert copied.latest == second
    # The run that made the second one may have been killed behind its record.
    latest = json.loads((copied.path / "latest.json").read_text())
    latest |= {"release": first, "path": f"releases/{first}", "fingerprint": copied.record(first)["fingerprint"]}
    (copied.path / "latest.json").write_text(json.dumps(latest))
    assert release(path, "--eval.num_examples_to_pick=5") == 0
    assert copied.latest == second


def test_a_dump_that_was_replaced_is_another_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "enwiki-20260301-pages-articles.xml.bz2"
    shutil.copyfile(DUMP, dump)
    root, path = Root(tmp_path / "out"), config(tmp_path, tmp_path / "out", extract={"input": str(dump)})
    assert release(path, "--until=extract") == 0
    with open(dump, "ab") as file:
        file.write(b"\0" * 8)  # behind the last stream
    (first,) = root.names
    capsys.readouterr()
    assert cli.main(["build", str(path), "--release", "--dry_run", "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["release"] != first
    assert told["release"][:-8] == first[:-8]


def test_a_dump_that_is_replaced_meanwhile_does_not_bear_the_old_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "enwiki-20260301-pages-articles.xml"
    dump.write_bytes(bz2.decompress(DUMP.read_bytes()))
    path, root = config(tmp_path, tmp_path / "out", extract={"input": str(dump)}), Root(tmp_path / "out")
    assert release(path, "--until=extract") == 0
    before = dump.stat()
    shutil.rmtree(root.release())
    dump.write_bytes(dump.read_bytes().replace(b"the ", b"teh "))
    os.utime(dump, ns=(before.st_atime_ns, before.st_mtime_ns))  # so that it looks as it did
    assert release(path) == cli.FAILED
    assert "was not made of it: the inputs changed while" in capsys.readouterr().err
    assert root.latest is None
    (wrong,) = root.names
    assert release(path) == 0
    assert root.latest != wrong


def test_a_part_that_vanishes_behind_the_plan_ends_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [tmp_path / f"enwiki-20260301-part{k}.txt" for k in range(3)]
    for text in texts:
        text.write_text("Once there was a text. It had two sentences.\n\n" * 9)
    given = {"input": f"{tmp_path}/enwiki-*.txt", "max_documents": None, "num_eval_articles": 1}
    path, root = config(tmp_path, tmp_path / "out", extract=given), Root(tmp_path / "out")
    with monkeypatch.context() as patches:
        held = releases.locks.hold

        def hold(*given: Any, **named: Any) -> Any:
            texts[2].unlink()  # the plan is made
            return held(*given, **named)

        patches.setattr(releases.locks, "hold", hold)
        assert release(path) == cli.FAILED
    sentence = f"{texts[2]}: the release names this input, but {root.release()}/text was not made of it: the inputs"
    assert sentence in capsys.readouterr().err
    assert root.latest is None
    assert not (root.release() / "release.json").exists()
    texts[2].write_text("Once there was a text. It had two sentences.\n\n" * 9)
    assert release(path) == 0
    made = json.loads((root.release() / "text" / "manifest.json").read_text())
    assert [entry["path"] for entry in made["inputs"]] == [entry["path"] for entry in root.record()["inputs"]]


# ---- clean-up


def test_keep_leaves_the_newest_and_what_is_pinned(copied: Root, tmp_path: Path) -> None:
    path, first = config(tmp_path, copied.path, release={"keep": 1, "keep_days": 0}), copied.latest
    assert first is not None
    (copied.release(first) / "keep").write_text("the paper's data")
    assert release(path, "--release.date=2016-06-01") == 0
    assert release(path, "--release.date=2016-07-01") == 0
    assert copied.names == [first, copied.latest]
    (copied.release(first) / "keep").unlink()
    assert release(path, "--release.date=2016-07-01") == 0  # complete; but what was pinned is removed now
    assert copied.names == [copied.latest]


def test_a_young_release_stays(copied: Root, tmp_path: Path) -> None:
    path, first = config(tmp_path, copied.path), copied.latest
    assert release(path, "--release.date=2016-06-01", "--keep=1") == 0
    assert copied.names == [first, copied.latest]


def test_nothing_is_removed_without_keep(copied: Root, tmp_path: Path) -> None:
    assert release(config(tmp_path, copied.path), "--release.date=2016-06-01") == 0
    assert len(copied.names) == 2


def test_a_release_that_is_not_complete_removes_nothing(copied: Root, tmp_path: Path) -> None:
    path = config(tmp_path, copied.path, release={"keep": 1, "keep_days": 0})
    assert release(path, "--release.date=2016-06-01", "--until=examples") == 0
    assert len(copied.names) == 2
    assert release(path, "--release.date=2016-06-01", "--from=eval") == 0
    assert copied.names == [copied.latest]


# ---- two at once


def name_of(root: Root) -> ReleaseName:
    name = ReleaseName.parse(root.names[0])
    assert name is not None
    return name


@pytest.fixture
def unfinished(tmp_path: Path) -> Root:
    """A root with a release that lacks its last stage; its build file is in tmp_path."""
    assert release(config(tmp_path, tmp_path / "out"), "--until=examples") == 0
    return Root(tmp_path / "out")


def test_a_second_build_says_who_builds(unfinished: Root, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = config(tmp_path, unfinished.path)
    with locks.hold(str(unfinished.path), name_of(unfinished), owner="the night shift"):
        before = state_of(unfinished.release())
        capsys.readouterr()
        assert release(path) == cli.FAILED
        (line,) = capsys.readouterr().err.splitlines()
        assert "is held by the night shift since" in line
        assert state_of(unfinished.release()) == before
    assert release(path) == 0


def test_a_second_build_waits(unfinished: Root, tmp_path: Path) -> None:
    path = config(tmp_path, unfinished.path)
    with locks.hold(str(unfinished.path), name_of(unfinished), owner="the night shift"):
        waiting = subprocess.Popen(command(path, "--release.wait=5"), cwd=ROOT, stderr=subprocess.PIPE, text=True)
        assert waiting.stderr is not None
        assert "held by the night shift" in waiting.stderr.readline()
        assert unfinished.latest is None
    waiting.communicate()
    assert waiting.returncode == 0
    assert unfinished.latest == unfinished.names[0]


def test_the_same_owner_takes_over(unfinished: Root, tmp_path: Path) -> None:
    path = config(tmp_path, unfinished.path)
    # An attempt of the same step that the scheduler gave up, and that still lives.
    with locks.hold(str(unfinished.path), name_of(unfinished), owner="dag run 1") as lock:
        assert release(path, "--owner=dag run 2") == cli.FAILED
        assert unfinished.latest is None
        assert release(path, "--owner=dag run 1") == 0
        with pytest.raises(RunFailedError, match="taken over"):
            lock.check()


def command(path: Path, *flags: str) -> list[str]:
    return [sys.executable, "-m", "maskmill", "build", str(path), "--release", "--direct_num_workers=1", *flags]


def test_two_processes_build_one_release(built: Root, tmp_path: Path) -> None:
    root, path = Root(tmp_path / "out"), config(tmp_path, tmp_path / "out")
    processes = [
        subprocess.Popen(
            command(path, "--release.wait=5"), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert sum("nothing to do" in out for out, _ in outputs) == 1
    assert contents(root.release()) == contents(built.release())
    assert root.latest == built.latest


@pytest.mark.parametrize("pieces", [1, 6])
def test_a_killed_build_goes_on(pieces: int, built: Root, tmp_path: Path) -> None:
    root, path = Root(tmp_path / "out"), config(tmp_path, tmp_path / "out")
    process = subprocess.Popen(
        command(path), cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and len(list(root.path.rglob(".maskmill/*/*.json"))) < pieces:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert root.latest is None
    assert release(path) == 0  # the lock of a dead process does not count
    assert contents(root.release()) == contents(built.release())
    assert root.latest == built.latest


def test_a_release_whose_removal_was_killed_is_built_anew(built: Root, copied: Root, tmp_path: Path) -> None:
    directory = copied.release()
    (directory / "release.json").unlink()
    shutil.rmtree(directory / "examples")
    next((directory / "text").glob("part-*")).unlink()
    assert release(config(tmp_path, copied.path)) == 0
    assert contents(directory) == contents(built.release())
    assert copied.latest == built.latest
