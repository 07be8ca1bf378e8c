"""`maskmill build --from STAGE --until STAGE` and `--dry_run`, with and without a release."""

import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import DUMP, VOCAB
from release_runs.builds import Root, config, contents, release, state_of

from pipelines.commands import cli

pytestmark = pytest.mark.builds

LEARNT = {"vocabulary": {"kind": "wordpiece", "size": 512}, "examples": {"vocab_file": None}}


def build(path: Path, *flags: str) -> int:
    return cli.main(["build", str(path), "--workers=1", *flags])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain build, which tests only read or copy."""
    folder = tmp_path_factory.mktemp("plain")
    assert build(config(folder, folder / "out")) == 0
    return folder / "out"


# ---- one stage after the other


def test_stage_after_stage_gives_the_same(built: Path, tmp_path: Path) -> None:
    path = config(tmp_path, tmp_path / "out")
    for stage in ("extract", "examples", "eval"):
        assert build(path, f"--from={stage}", f"--until={stage}") == 0
        made = sorted(p.name for p in (tmp_path / "out").iterdir())
        assert made == sorted({"extract": ["text"], "examples": ["examples", "text"]}.get(stage, os.listdir(built)))
    assert contents(tmp_path / "out") == contents(built)
    before = {part: state_of(tmp_path / "out" / part) for part in ("text", "examples")}
    assert build(path, "--from=eval") == 0
    assert {part: state_of(tmp_path / "out" / part) for part in before} == before  # earlier stages are not run


def test_stage_after_stage_gives_the_same_release_with_a_vocabulary_of_its_own(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    assert build(config(tmp_path, whole, **LEARNT)) == 0
    path, root = config(tmp_path, tmp_path / "out", **LEARNT), Root(tmp_path / "out")
    for flags in (["--until=extract"], ["--from=vocabulary", "--until=vocabulary"], ["--from=examples"]):
        assert root.latest is None
        assert release(path, *flags) == 0
    assert root.latest == root.names[0]
    assert contents(root.release()) == contents(whole)


def test_examples_follow_a_vocabulary_that_was_learnt_anew(tmp_path: Path) -> None:
    path = config(tmp_path, tmp_path / "out", **LEARNT)
    assert build(path) == 0
    before = contents(tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "vocabulary")
    other = config(tmp_path, tmp_path / "out", **LEARNT | {"vocabulary": {"kind": "wordpiece", "size": 576}})
    assert build(other, "--until=vocabulary") == 0
    assert build(other, "--from=eval") == cli.UNUSABLE  # the examples are of the vocabulary before
    assert build(other, "--from=examples") == 0
    assert contents(tmp_path / "out")["examples/vocab.txt"] != before["examples/vocab.txt"]


def test_stages_of_a_build_from_text_that_exists(built: Path, tmp_path: Path) -> None:
    extract = {"input": None, "num_eval_articles": None, "shard_size_mb": None, "max_documents": None}
    path = config(tmp_path, tmp_path / "out", extract=extract)
    text = path.read_text()
    start = text.index("extract:")
    path.write_text(text[:start] + f"extract:\n  from: {built / 'text'}\n" + text[text.index("output:") :])
    assert build(path, "--until=examples") == 0
    assert build(path, "--from=eval") == 0
    eval_file = Path("eval") / "eval.tfrecord"
    assert (tmp_path / "out" / eval_file).read_bytes() == (built / eval_file).read_bytes()


# ---- refused


def _nothing(out: Path) -> None:
    shutil.rmtree(out / "text")


def _no_shard(out: Path) -> None:
    next((out / "text").glob("part-*")).unlink()


def _other_text(out: Path) -> None:
    """As if the text had been extracted anew since the examples were made."""
    path = out / "text" / "manifest.json"
    made = json.loads(path.read_text())
    for shard in made["shards"]:
        shard["sha256"] = "0" * 64
    path.write_text(json.dumps(made))


@pytest.mark.parametrize(
    ("damage", "flags", "told"),
    [
        (_nothing, ["--from=examples"], "the stage extract is not finished here; leave --from out"),
        (_no_shard, ["--from=examples"], "1 of 3 files are missing or changed; begin with --from extract"),
        (_other_text, ["--from=eval"], "changed since it was made; begin with --from examples"),
        (None, ["--from=examples", "--extract.lists=drop"], r"made with other parameters \(lists 'sentences', now"),
        (None, ["--from=eval", "--examples.dupe_factor=2"], r"made with other parameters \(dupe_factor 1, now 2"),
        (None, ["--from=vocabulary"], "this build has no stage vocabulary; it has extract, examples, eval"),
        (None, ["--until=train"], "this build has no stage train"),
        (None, ["--from=eval", "--until=extract"], "--from eval comes after --until extract"),
        (None, ["--from=text"], "--from must be one of extract, vocabulary, examples, eval, train"),
        (None, ["--keep=2"], "--keep goes with --release"),
        (None, ["--release", "--keep=0"], "--keep must be 1 or more"),
        (None, ["--owner=me"], "--owner goes with --release"),
        (None, ["--json"], "--json goes with --dry_run"),
        (None, ["--release", "--template_location=gs://b/t"], "has no use with LocalRunner"),
    ],
)
def test_what_does_not_fit_is_refused(
    damage: Callable[[Path], None] | None,
    flags: Sequence[str],
    told: str,
    built: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    path = config(tmp_path, out)
    if damage is None:
        # Nothing is looked at but manifests and sizes, which a copy has, too.
        shutil.copytree(built, out)
    else:
        assert build(path) == 0
        damage(out)
    before = state_of(out)
    capsys.readouterr()
    assert build(path, *flags) == cli.UNUSABLE
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(told, line), line
    assert state_of(out) == before


# ---- a look without work


def looked(path: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, Any]:
    """What --dry_run says of a build, which must not change anything."""
    before = state_of(path.parent)
    capsys.readouterr()
    assert build(path, "--dry_run", "--json", *flags) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert state_of(path.parent) == before
    return told


def actions(told: dict[str, Any]) -> dict[str, str]:
    return {stage["name"]: stage["action"] for stage in told["stages"]}


def test_of_nothing_everything_would_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = config(tmp_path, tmp_path / "out")
    told = looked(path, capsys)
    assert actions(told) == {"extract": "run", "examples": "run", "eval": "run"}
    assert told["stages"][0]["reason"] == "no manifest"
    assert (told["release"], told["inputs"]) == (None, [str(DUMP)])
    told = looked(path, capsys, "--release", "--until=extract")
    assert actions(told) == {"extract": "run"}
    assert (told["latest"], told["becomes_latest"], told["complete"]) == (None, True, False)
    assert build(path, "--dry_run", "--release", "--quiet") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"release: {tmp_path / 'out' / 'releases' / 'enwiki-2016-05-01-'}")
    assert "  extract   would run: no manifest" in lines
    assert lines[-1] == "nothing was run or written."
    assert not (tmp_path / "out").exists()


def _other_dump(folder: Path) -> None:
    with open(folder / "enwiki-20260301-pages-articles.xml.bz2", "ab") as file:
        file.write(b"\0")


def _other_words(folder: Path) -> None:
    (folder / "vocab.txt").write_bytes(VOCAB.read_bytes() + b"further\n")


def _no_examples_shard(folder: Path) -> None:
    next((folder / "out" / "examples").glob("part-00000*.tfrecord")).unlink()


def _no_examples_manifest(folder: Path) -> None:
    (folder / "out" / "examples" / "manifest.json").unlink()


@pytest.mark.parametrize(
    ("change", "flags", "expected", "stage", "reason"),
    [
        (None, [], "reuse reuse reuse", "eval", "complete"),
        (None, ["--examples.dupe_factor=2"], "reuse refuse reuse", "examples", "differ: dupe_factor 1, now 2"),
        (_other_words, [], "reuse refuse reuse", "examples", r"vocab_file: its content changed"),
        (_no_examples_shard, [], "reuse resume run", "examples", "files are missing or changed"),
        (_no_examples_shard, [], "reuse resume run", "eval", "examples runs before it"),
        (_no_examples_manifest, [], "reuse resume run", "examples", "no manifest; 3 pieces are finished"),
        (_other_dump, [], "run run run", "extract", "inputs changed: .*/enwiki-20260301-pages-articles.xml.bz2"),
    ],
)  # fmt: skip
def test_a_look_at_what_is_there_says_why(
    looked_at: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Path], None] | None,
    flags: Sequence[str],
    expected: str,
    stage: str,
    reason: str,
) -> None:
    here = looked_at.parent / "here"
    shutil.rmtree(here, ignore_errors=True)
    shutil.copytree(looked_at, here)  # at one place, because manifests name the paths of inputs
    if change is not None:
        change(here)
    told = looked(here / "build.yaml", capsys, *flags)
    assert actions(told) == dict(zip(("extract", "examples", "eval"), expected.split(), strict=True))
    (found,) = (entry["reason"] for entry in told["stages"] if entry["name"] == stage)
    assert re.search(reason, found), found


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a folder with a dump, a vocabulary, a build's file and its output, which lay at `here` beside it."""
    here = tmp_path_factory.mktemp("looked") / "here"
    here.mkdir()
    dump, vocabulary = here / "enwiki-20260301-pages-articles.xml.bz2", here / "vocab.txt"
    shutil.copyfile(DUMP, dump)
    shutil.copyfile(VOCAB, vocabulary)
    path = config(here, here / "out", extract={"input": str(dump)}, examples={"vocab_file": str(vocabulary)})
    assert build(path) == 0
    return here.rename(here.parent / "kept")
