"""Pieces of the release before: taken where they are intact and fit, made otherwise, and counted as what they are."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_runs.commands import DUMP, digests
from data_sets.whole_builds import extract_text, make_examples

from maskmill.storage import completions, files, outcomes
from maskmill.storage.completions import PieceFiles, once
from maskmill.storage.reuse import Reuse, Reused, account, read_reuse, read_reused, write_reuse

KIND, KEY = "text", "0123"


class Maker:
    """Makes a piece of a file, a cached file and a table, and counts how often."""

    def __init__(self, output: Path, previous: Path | str = "") -> None:
        self.output = output
        self.previous = str(previous)
        self.calls = 0

    def __call__(self) -> dict[str, Any]:
        self.calls += 1
        written, cached = [], []
        for name, listed in (("part", written), (f"{completions.WORK_DIRECTORY}/{KIND}/{KEY}.cache", cached)):
            with files.new_file(str(self.output / name)) as file:
                file.write(f"content of {name}".encode())
            listed.append((name, file.size, file.sha256))
        completions.write_table(str(self.output), KIND, KEY, np.arange(3))
        return {"written": written, "cached": cached, "paths": ["here"]}

    def make_once(self, **options: Any) -> dict[str, Any]:
        return once(str(self.output), KIND, KEY, self, files_of, name="part", previous=self.previous, **options)


def files_of(record: dict[str, Any]) -> PieceFiles:
    return PieceFiles(
        written=[tuple(file) for file in record["written"]],
        cached=[tuple(file) for file in record["cached"]],
        has_table=True,
    )


@pytest.fixture
def first(tmp_path: Path) -> Path:
    Maker(tmp_path / "first").make_once()
    return tmp_path / "first"


@pytest.fixture
def maker(tmp_path: Path, first: Path) -> Maker:
    write_reuse(str(tmp_path / "second"), Reuse(previous=str(first)))
    return Maker(tmp_path / "second", first)


def table_of(output: Path) -> list[int]:
    numbers: list[int] = completions.read_table(str(output), KIND, KEY).tolist()
    return numbers


def test_a_piece_is_taken_with_all_its_files(first: Path, maker: Maker) -> None:
    before = outcomes.look(str(maker.output))
    assert maker.make_once() == completions.load(str(first), KIND, KEY)
    assert maker.calls == 0
    assert table_of(maker.output) == [0, 1, 2]
    for name in ("part", f".maskmill/{KIND}/{KEY}.cache"):
        assert (maker.output / name).stat().st_ino == (first / name).stat().st_ino
    assert completions.taken_keys(str(maker.output), KIND) == {KEY}
    outcome = outcomes.conclude(str(maker.output), before)
    assert (outcome.taken, outcome.made, outcome.reused) == ({KIND: 1}, {}, {})
    assert outcomes.last_outcome(str(maker.output)) == outcome


def test_the_next_run_finds_it_finished(maker: Maker) -> None:
    maker.make_once()
    before = outcomes.look(str(maker.output))
    maker.make_once()
    outcome = outcomes.conclude(str(maker.output), before)
    assert (maker.calls, outcome.taken, outcome.made, outcome.reused) == (0, {}, {}, {KIND: 1})


def test_what_is_damaged_after_it_was_taken_is_made_and_not_counted_as_taken(first: Path, maker: Maker) -> None:
    maker.make_once()
    content = (first / "part").read_bytes()
    for path in (maker.output / "part", maker.output / ".maskmill" / KIND / f"{KEY}.json"):
        path.unlink()
    (maker.output / ".maskmill" / KIND / f"{KEY}.json").write_text("damaged")
    (first / "part").write_bytes(b"damaged, too")
    maker.make_once()
    assert maker.calls == 1
    assert (maker.output / "part").read_bytes() == content
    assert completions.taken_keys(str(maker.output), KIND) == frozenset()


@pytest.mark.parametrize("damaged", ["part", f".maskmill/{KIND}/{KEY}.npy", f".maskmill/{KIND}/{KEY}.json"])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_damaged_piece_is_not_taken(damaged: str, is_gone: bool, first: Path, maker: Maker) -> None:
    if is_gone:
        (first / damaged).unlink()
    else:
        (first / damaged).write_bytes((first / damaged).read_bytes()[:-2] + b"xx")
    maker.make_once()
    assert maker.calls == 1
    assert (maker.output / "part").read_bytes() == b"content of part"
    assert completions.keys(str(maker.output), completions.TAKEN) == []
    assert completions.keys(str(maker.output), completions.REMADE) == []  # nothing was wrong with this build


def test_a_cache_may_be_gone_but_not_damaged(first: Path, maker: Maker) -> None:
    cache = first / ".maskmill" / KIND / f"{KEY}.cache"
    cache.write_bytes(b"damaged")
    maker.make_once()
    assert maker.calls == 1
    cache.unlink()
    third = Maker(first.parent / "third", first)
    third.make_once()
    assert third.calls == 0
    assert not (third.output / ".maskmill" / KIND / f"{KEY}.cache").exists()


def test_a_record_that_does_not_fit_is_not_taken(maker: Maker) -> None:
    record = maker.make_once(fits=lambda record: record["paths"] == ["there"])
    assert (maker.calls, record["paths"]) == (1, ["here"])


def test_a_piece_is_copied_where_there_can_be_no_link(first: Path, maker: Maker, monkeypatch: Any) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    maker.make_once()
    assert maker.calls == 0
    assert (maker.output / "part").read_bytes() == (first / "part").read_bytes()
    assert (maker.output / "part").stat().st_ino != (first / "part").stat().st_ino
    assert not list(maker.output.rglob("*.maskmill-tmp"))


def test_a_copy_that_came_out_wrong_is_made_anew(maker: Maker, monkeypatch: Any) -> None:
    def copy_wrongly(source: str, target: str) -> bool:
        files.write_bytes(target, b"cut")
        return False

    monkeypatch.setattr(files, "link_or_copy", copy_wrongly)
    maker.make_once()
    assert (maker.calls, (maker.output / "part").read_bytes()) == (1, b"content of part")


def test_a_link_replaces_a_file_that_is_there(first: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("other")
    assert files.link_or_copy(str(first / "part"), str(target))
    assert files.link_or_copy(str(first / "part"), str(target))  # two names of one file
    assert target.read_bytes() == (first / "part").read_bytes()
    assert not list(tmp_path.rglob("*.maskmill-tmp"))


def test_nothing_is_taken_where_nobody_said_so(first: Path, tmp_path: Path) -> None:
    maker = Maker(tmp_path / "second")
    maker.make_once()
    assert maker.calls == 1
    account(str(maker.output), KIND, [KEY], files.Listing(str(maker.output)))
    assert read_reused(str(maker.output)) is None
    assert read_reuse(str(maker.output)) == Reuse()


def test_the_account_counts_what_was_taken(first: Path, maker: Maker) -> None:
    maker.make_once()
    account(str(maker.output), KIND, [KEY, "4567"], files.Listing(str(maker.output)), pages=10, reused_pages=4)
    assert read_reused(str(maker.output)) == Reused(
        previous=str(first), pages=10, reused_pages=4, shards=2, reused_shards=1
    )


@pytest.mark.releases
@pytest.mark.parametrize("options", [{}, {"objective": "mlm"}, {"format": "parquet"}, {"format": "mds"}])
def test_examples_are_taken_where_text_and_options_are_the_same(options: dict[str, str], tmp_path: Path) -> None:
    """Of two builds at the same path, one of which takes all shards of a build that lies elsewhere."""
    text = extract_text(tmp_path / "text", dump=DUMP, documents=20)
    root = tmp_path / "build"
    found = []
    for previous in ("", str(tmp_path / "first" / "examples")):
        root.mkdir()
        os.symlink(text, root / "text")
        write_reuse(str(root / "examples"), Reuse(previous=previous, keeps_pages=True))
        make_examples(root, **options)
        reused = read_reused(str(root / "examples"))
        assert reused is not None
        assert reused.reused_shards == (reused.shards if previous else 0)
        found.append(digests(root / "examples"))
        if not previous:
            root.rename(tmp_path / "first")
    assert found[0] == found[1]
    assert len(found[0]) > 3
