"""Folders and files whose names hold what patterns are made of: for every command the name comes before the pattern."""

import json
from pathlib import Path

import pytest
from conftest import DATA

import maskmill
from pipelines.commands import cli

pytestmark = pytest.mark.builds

SHORT = ("--vocab_file", str(DATA / "vocab.txt"), "--max_seq_length", "32", "--max_predictions_per_seq", "5", "--quiet")


def run(*command: str) -> None:
    assert cli.main(list(command)) == 0, command


def test_a_folder_may_be_called_like_a_pattern(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Each of these patterns matches the name of the folder beside it, which holds other text.
    here, beside = tmp_path / "[1] a*b?", tmp_path / "1 axbx"
    for folder, word in ((here, "river"), (beside, "wrong")):
        folder.mkdir()
        texts = [f"Number {k} is a {word}. It runs to the sea. A zero\0 is in it." for k in range(40)]
        (folder / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    made = {name: str(here / name) for name in ("text", "examples", "files", "one.tfrecord")}
    run("extract", "--input", f"{here}/*.jsonl", "--output", made["text"], "--num_eval_articles", "4", "--quiet")
    run("examples", "--input", made["text"], "--output", made["examples"], *SHORT)
    run("examples", "--input", f"{made['text']}/part-*,{made['text']}/eval*", "--output", made["files"], *SHORT)
    run(
        "create-pretraining-data", "--input_file", f"{made['text']}/*-0*", "--output_file", made["one.tfrecord"], *SHORT
    )
    run("index", f"{here}/*.tfrecord")
    one, other = (sorted(Path(made[name]).glob("part-*.tfrecord")) for name in ("examples", "files"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other] != []
    run("verify", f"{made['examples']}/part-*")
    capsys.readouterr()
    for path in ("text", "text/part-*", "examples", "examples/part-*.tfrecord", "one.tfrecord"):
        run("inspect", str(here / path))
        assert "part-" in capsys.readouterr().out or path == "one.tfrecord"
    run("inspect", made["examples"], "--example", "1")
    assert "river" in capsys.readouterr().out
    assert maskmill.open(made["examples"], batch_size=8).steps_per_epoch
    assert maskmill.open(f"{made['files']}/part-*.tfrecord", batch_size=8).steps_per_epoch
    assert b"wrong" not in b"".join(path.read_bytes() for path in (here / "text").glob("part-*"))
