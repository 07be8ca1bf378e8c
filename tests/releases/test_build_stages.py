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

pytestmark = pytest.mark.releases

LEARNT = {"vocabulary": {"kind": "wordpiece", "size": 512}, "examples": {"vocab_file": None}}


def build(path: Path, *flags: str) -> int:
    return cli.main(["build", str(path), "--direct_num_workers=1", *flags])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain build, which tests only read or copy."""
    folder = tmp_path_factory.mktemp("plain")
    assert build(config(folder, folder / "out")) == 0
    return folder / "out"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The file of a build of this test's own, which is finished."""
    path = config(tmp_path, tmp_path / "out")
    assert build(path) == 0
    return path


# ---- one stage after the other


def test_stage_after_stage_gives_the_same(built: Path, tmp_path: Path) -> None:
    path = config(tmp_path, tmp_path / "out")
    for stage in ("extract", "examples", "eval"):
        assert build(path, f"--from={stage}", f"--until={stage}") == 0
        made = sorted(p.name for p in (tmp_path / "out").iterdir())
        assert made == sorted({"extract": ["text"], "examples": ["examples", "text"]}.get(stage, os.listdir(built)))
    assert contents(tmp_path / "out") == contents(built)


def test_stage_after_stage_gives_the_same_release(built: Path, tmp_path: Path) -> None:
    path, root = config(tmp_path, tmp_path / "out"), Root(tmp_path / "out")
    for stage in ("extract", "examples", "eval"):
        assert root.latest is None
        assert release(path, f"--from={stage}", f"--until={stage}") == 0
    assert root.latest == root.names[0]
    assert contents(root.release()) == contents(built)


def test_stages_with_a_vocabulary_of_the_build(tmp_path: Path) -> None:
    whole, staged = tmp_path / "whole", tmp_path / "staged"
    assert build(config(tmp_path, whole, **LEARNT)) == 0
    path = config(tmp_path, staged, **LEARNT)
    for flags in (["--until=extract"], ["--from=vocabulary", "--until=vocabulary"], ["--from=examples"]):
        assert build(path, *flags) == 0
    assert contents(staged) == contents(whole)


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


def test_earlier_stages_are_not_run(own: Path) -> None:
    out = own.parent / "out"
    before = {part: state_of(out / part) for part in ("text", "examples")}
    assert build(own, "--from=eval") == 0
    assert {part: state_of(out / part) for part in before} == before


# ---- refused


def _nothing(out: Path) -> None:
    shutil.rmtree(out / "text")


def _no_manifest(out: Path) -> None:
    (out / "text" / "manifest.json").unlink()


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
        (_no_manifest, ["--from=examples"], "the stage extract is not finished here"),
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
        (None, ["--dump=2026-01-01"], "--dump chooses a downloaded dump"),
        (None, ["--release", "--template_location=gs://b/t"], "only describes a job"),
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


def reason(told: dict[str, Any], stage: str) -> str:
    (found,) = (entry["reason"] for entry in told["stages"] if entry["name"] == stage)
    assert isinstance(found, str)
    return found


def test_of_nothing_everything_would_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = config(tmp_path, tmp_path / "out")
    told = looked(path, capsys)
    assert actions(told) == {"extract": "run", "examples": "run", "eval": "run"}
    assert reason(told, "extract") == "no manifest"
    assert (told["release"], told["inputs"]) == (None, [str(DUMP)])
    told = looked(path, capsys, "--release", "--until=extract")
    assert actions(told) == {"extract": "run"}
    assert (told["latest"], told["becomes_latest"], told["complete"]) == (None, True, False)
    assert not (tmp_path / "out").exists()


def test_what_is_complete_would_be_reused(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = looked(own, capsys)
    assert set(actions(told).values()) == {"reuse"}
    assert reason(told, "eval") == "complete"


def test_other_parameters_are_named(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = looked(own, capsys, "--examples.dupe_factor=2")
    assert actions(told) == {"extract": "reuse", "examples": "refuse", "eval": "reuse"}
    assert reason(told, "examples") == "parameters differ: dupe_factor 1, now 2"


def test_another_vocabulary_under_the_same_name_is_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_bytes(VOCAB.read_bytes())
    path = config(tmp_path, tmp_path / "out", examples={"vocab_file": str(vocabulary)})
    assert build(path) == 0
    vocabulary.write_bytes(VOCAB.read_bytes() + b"further\n")
    told = looked(path, capsys)
    assert actions(told)["examples"] == "refuse"
    assert "vocab_file: its content changed" in reason(told, "examples")


def test_what_is_missing_would_be_made_again(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    next((own.parent / "out" / "examples").glob("part-00000*.tfrecord")).unlink()
    told = looked(own, capsys)
    assert actions(told) == {"extract": "reuse", "examples": "resume", "eval": "run"}
    assert "files are missing or changed" in reason(told, "examples")
    assert reason(told, "eval") == "examples runs before it"


def test_other_inputs_are_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "enwiki-20260301-pages-articles.xml.bz2"
    shutil.copyfile(DUMP, dump)
    path = config(tmp_path, tmp_path / "out", extract={"input": str(dump)})
    assert build(path) == 0
    with open(dump, "ab") as file:
        file.write(b"\0")
    told = looked(path, capsys)
    assert actions(told) == {"extract": "run", "examples": "run", "eval": "run"}
    assert reason(told, "extract") == f"inputs changed: {dump}"


def test_an_unfinished_stage_would_go_on(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own.parent / "out" / "examples" / "manifest.json").unlink()
    told = looked(own, capsys)
    assert actions(told)["examples"] == "resume"
    assert reason(told, "examples") == "no manifest; 3 pieces are finished"


def test_a_look_at_a_second_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, root = config(tmp_path, tmp_path / "out"), Root(tmp_path / "out")
    assert release(path) == 0
    first = root.latest
    told = looked(path, capsys, "--release")
    assert (told["release"], told["complete"]) == (first, True)
    assert set(actions(told).values()) == {"reuse"}
    flags = ["--release", "--release.date=2016-06-01", "--examples.dupe_factor=2", "--keep=1", "--release.keep_days=0"]
    told = looked(path, capsys, *flags)
    assert (told["complete"], told["latest"]) == (False, first)
    assert told["removes"] == [first]
    assert release(path, *flags[1:]) == 0
    assert root.names == [told["release"]]


def test_a_look_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = config(tmp_path, tmp_path / "out")
    assert build(path, "--dry_run", "--release", "--quiet") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"release: {tmp_path / 'out' / 'releases' / 'enwiki-2016-05-01-'}")
    assert "  extract   would run: no manifest" in lines
    assert lines[-1] == "nothing was run or written."
