"""Output directories: claims, completion records, manifests, sweeps."""

import concurrent.futures
import os
import time
from pathlib import Path
from typing import Any

import pytest

from transforms.errors import UnusableInputError
from transforms.storage import completions, files, manifest


def test_a_directory_keeps_its_parameters(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    manifest.prepare_output(output, "extract", {"seed": 1})
    manifest.prepare_output(output, "extract", {"seed": 1})
    with pytest.raises(UnusableInputError, match=r"made with other parameters \(seed=1, now 2\)"):
        manifest.prepare_output(output, "extract", {"seed": 2})
    with pytest.raises(UnusableInputError, match="belongs to 'extract'"):
        manifest.prepare_output(output, "examples", {"seed": 1})


def test_a_directory_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(UnusableInputError, match=r"holds other files \(thesis.tex"):
        manifest.prepare_output(str(tmp_path), "extract", {})
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_output_that_cannot_be_written_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(UnusableInputError, match=r"this directory is not writable\.$"):
        manifest.prepare_output(str(tmp_path), "extract", {})
    assert list(tmp_path.iterdir()) == []


def test_fingerprints_depend_on_every_part() -> None:
    assert completions.fingerprint("a", 1) == completions.fingerprint("a", 1)
    assert len({completions.fingerprint(*p) for p in [("a", 1), ("a", 2), ("b", 1), ("a", "1")]}) == 4


def test_a_record_is_found_under_its_key(tmp_path: Path) -> None:
    output = str(tmp_path)
    assert completions.load(output, "text", "k") is None
    completions.store(output, "text", "k", {"size": 3})
    assert completions.load(output, "text", "k") == {"size": 3}


def test_a_process_makes_one_piece_at_a_time_whatever_threads_it_has(tmp_path: Path) -> None:
    at_once, most = 0, 0

    def make() -> dict[str, Any]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.02)  # the others' chance
        at_once -= 1
        return {}

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        made = [threads.submit(completions.once, str(tmp_path), "text", f"k{n}", make) for n in range(8)]
    assert [m.result() for m in made] == [{}] * 8
    assert most == 1


def test_a_changed_file_is_not_intact(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    files.write_bytes(path, b"abc")
    sha256 = files.sha256_of(path)
    assert completions.is_intact(path, 3, sha256)
    (tmp_path / "f").write_bytes(b"abd")
    assert not completions.is_intact(path, 3, sha256)
    assert not completions.is_intact(str(tmp_path / "none"), 3, sha256)


def test_a_sweep_leaves_what_belongs(tmp_path: Path) -> None:
    output = str(tmp_path)
    for name in ("part-00000-of-00001", "part-00000-of-00002", "notes.txt"):
        (tmp_path / name).write_text("x")
    completions.store(output, "text", "old", {})
    completions.store(output, "text", "new", {})
    manifest.sweep(output, keep=["part-00000-of-00001"], patterns=("part-*-of-*",), records={"text": ["new"]})
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["notes.txt", "part-00000-of-00001"]
    assert completions.load(output, "text", "old") is None
    assert completions.load(output, "text", "new") == {}


def test_a_manifest_reads_back_and_has_no_clock(tmp_path: Path) -> None:
    output = str(tmp_path)
    arguments = {"stage": "extract", "parameters": {"seed": 1}, "inputs": [], "shards": [], "counts": {}}
    written = manifest.write_manifest(output, **arguments, rejected=[{"title": "A", "reason": "bad"}])  # type: ignore[arg-type]
    first = (tmp_path / "manifest.json").read_bytes()
    assert manifest.read_manifest(output) == written
    assert (tmp_path / "rejected.jsonl").read_text() == '{"reason": "bad", "title": "A"}\n'
    manifest.write_manifest(output, **arguments)  # type: ignore[arg-type]
    assert (tmp_path / "manifest.json").read_bytes() == first
    assert not (tmp_path / "rejected.jsonl").exists()


def test_no_manifest_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match="not finished"):
        manifest.read_manifest(str(tmp_path))
