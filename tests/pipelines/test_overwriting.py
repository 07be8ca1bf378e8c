"""Commands that would write over what they read, or over what is no file, refuse and leave everything as it was."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command_runs.commands import VOCAB

from pipelines.commands import cli

TEXT = "The first sentence.\nThe second sentence.\n\nAnother document.\nIts end.\n"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def records(text: Path, tmp_path: Path) -> Path:
    path = tmp_path / "examples.tfrecord"
    assert create(text, path) == 0
    return path


def create(text: Path, output: object, vocab: Path = VOCAB) -> int:
    return cli.main(
        ["create-pretraining-data", f"--input_file={text}", f"--output_file={output}", f"--vocab_file={vocab}"]
    )


def itself(path: Path) -> Path:
    return path


def by_another_path(path: Path) -> Path:
    return path.parent / "." / ".." / path.parent.name / path.name


def by_symbolic_link(path: Path) -> Path:
    link = path.with_name("link")
    link.symlink_to(path)
    return link


def by_hard_link(path: Path) -> Path:
    link = path.with_name("hard")
    os.link(path, link)
    return link


NAMES = [itself, by_another_path, by_symbolic_link, by_hard_link]


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_not_written_over_their_text(
    name: Callable[[Path], Path], text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(text, name(text)) == 2
    assert "this output is also the input" in capsys.readouterr().err
    assert text.read_text() == TEXT


def test_examples_are_not_written_over_their_vocabulary(text: Path, tmp_path: Path) -> None:
    vocab = tmp_path / "vocab.txt"
    vocab.write_bytes(VOCAB.read_bytes())
    assert create(text, vocab, vocab) == 2
    assert vocab.read_bytes() == VOCAB.read_bytes()


def test_an_index_is_not_written_over_the_text(text: Path, tmp_path: Path) -> None:
    named_as_index = text.rename(tmp_path / "x.idx")
    assert create(named_as_index, tmp_path / "x") == 2
    assert named_as_index.read_text() == TEXT
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.idx"]


@pytest.mark.parametrize("name", NAMES)
def test_picked_examples_are_not_written_over_all_of_them(name: Callable[[Path], Path], records: Path) -> None:
    before = records.read_bytes()
    flags = [f"--input_tfrecord={records}", f"--output_tfrecord={name(records)}", "--num_examples_to_pick=1"]
    assert cli.main(["pick-eval", *flags]) == 2
    assert records.read_bytes() == before


def test_an_index_is_not_written_over_its_records(records: Path) -> None:
    before = records.read_bytes()
    assert cli.main(["index", str(records), f"--output={records}"]) == 2
    assert records.read_bytes() == before


def test_a_fifo_stays_a_fifo(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert create(text, fifo) == 2
    assert f"{fifo}: this output is no regular file" in capsys.readouterr().err
    assert fifo.is_fifo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fifo", "text.txt"]


def test_a_device_stays_a_device(text: Path) -> None:
    assert create(text, "/dev/null") == 2
    assert Path("/dev/null").is_char_device()
    assert not Path("/dev/null.idx").exists()


def test_a_directory_is_no_output(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    assert create(text, tmp_path / "out") == 2
    assert "this output is a directory; name a file." in capsys.readouterr().err


def test_a_link_keeps_its_place(text: Path, tmp_path: Path) -> None:
    target, link = tmp_path / "elsewhere" / "records", tmp_path / "records"
    target.parent.mkdir()
    target.write_text("old")
    link.symlink_to(target)
    assert create(text, link) == 0
    assert link.is_symlink()
    assert target.stat().st_size > 1000
    assert [p.name for p in target.parent.iterdir()] == ["records"]
