"""Inputs that vanish, change or appear once a command has looked at them: it ends, and leaves nothing half-made."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command_runs.commands import VOCAB, once_claimed

from pipelines.commands import cli

Change = Callable[[Path], object]

CHANGES: dict[str, tuple[Change, str]] = {
    "gone": (lambda folder: (folder / "c.txt").unlink(), "c.txt: this input was removed while"),
    "all-gone": (lambda folder: [path.unlink() for path in folder.glob("*.txt")], "a.txt: this input was removed"),
    "longer": (lambda folder: (folder / "b.txt").write_text("More.\n" * 9), "b.txt: this input was changed while"),
    "as-long": (lambda folder: (folder / "b.txt").write_text("N" + TEXT[1:]), "b.txt: this input was changed while"),
    "new": (lambda folder: (folder / "bb.txt").write_text(TEXT), "bb.txt: this input appeared while"),
}
IN_SHORT = [("extract", "gone"), ("extract", "as-long"), ("extract", "new")]
TEXT = "Once there was a text. It had two sentences.\n\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three texts, that say when they were changed: a day ago."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(TEXT)
        os.utime(folder / f"{name}.txt", (1_700_000_000, 1_700_000_000))
    return folder


def command(stage: str, folder: Path, output: Path) -> list[str]:
    flags = {
        "extract": ["--num_eval_articles=1"],
        "examples": [f"--vocab_file={VOCAB}"],
        "vocabulary": ["--kind=wordpiece", "--size=64"],
    }[stage]
    return [stage, f"--input={folder}/*.txt", f"--output={output}", *flags, "--quiet"]


@pytest.mark.parametrize(
    ("stage", "change"),
    [
        pytest.param(stage, change, marks=() if (stage, change) in IN_SHORT else pytest.mark.builds)
        for stage in ("extract", "examples", "vocabulary")
        for change in CHANGES
    ],
)
def test_an_input_that_is_not_as_it_was_ends_the_run(
    stage: str,
    change: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make, sentence = CHANGES[change]
    with monkeypatch.context() as patches:
        once_claimed(patches, lambda: make(folder))
        assert cli.main(command(stage, folder, tmp_path / "out")) == cli.FAILED
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") <= 3  # what it reads, and the sentence
    assert not (tmp_path / "out" / "manifest.json").exists()
    if change != "all-gone":
        assert cli.main(command(stage, folder, tmp_path / "out")) == 0
        made = json.loads((tmp_path / "out" / "manifest.json").read_text())
        listed = [Path(entry["path"]) for entry in made["inputs"]]
        assert sorted(path for path in listed if path.parent == folder) == sorted(folder.glob("*.txt"))
