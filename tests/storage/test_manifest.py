"""Output directories: claims, manifests, sweeps."""

import os
import platform
from pathlib import Path

import numpy as np
import pytest

from transforms.errors import UnusableInputError
from transforms.storage import completions, files, manifest


def test_a_directory_keeps_its_parameters(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    manifest.prepare_output(output, "extract", {"seed": 1})
    manifest.prepare_output(output, "extract", {"seed": 1})
    with pytest.raises(UnusableInputError, match=r"made with other parameters \(seed=1, now 2\)"):
        manifest.prepare_output(output, "extract", {"seed": 2})
    with pytest.raises(UnusableInputError, match=r"made with other parameters \(names=None, now 'all'\)"):
        manifest.prepare_output(output, "extract", {"seed": 1, "names": "all"})
    with pytest.raises(UnusableInputError, match=r"made with other parameters \(seed=1, now None\)"):
        manifest.prepare_output(output, "extract", {})
    manifest.prepare_output(output, "extract", {"seed": 1, "names": None})  # as if it were not there
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


def test_a_sweep_keeps_files_that_somebody_writes_now(tmp_path: Path) -> None:
    output = str(tmp_path)
    completions.store(output, "text", "old", {})
    dead = tmp_path / ".maskmill" / "text" / f"new.json.0{files.TEMPORARY_SUFFIX}"
    dead.write_text("half")
    with files.new_file(str(tmp_path / "part-00000-of-00009")) as file:
        file.write(b"half")
        manifest.sweep(output, keep=[], patterns=("part-*",), records={"text": []})
        assert not dead.exists()
    assert (tmp_path / "part-00000-of-00009").read_bytes() == b"half"
    assert completions.load(output, "text", "old") is None


def test_a_manifest_has_the_versions_that_shape_the_data() -> None:
    versions = manifest.versions()
    assert versions["formats"] == dict(completions.FORMAT_VERSIONS)
    assert versions["python"] == platform.python_version()
    assert versions["numpy"] == np.__version__
    assert set(versions) == {"maskmill", "apache-beam", "numba", "numpy", "nltk", "python", "formats"}


def test_a_manifest_takes_dataclasses(tmp_path: Path) -> None:
    shard = files.FileInfo(path="part-0", size=7)
    written = manifest.write_manifest(
        str(tmp_path), stage="extract", parameters={}, inputs=[], shards=[shard], counts={"train": {"documents": 2}}
    )
    assert written["shards"] == [{"path": "part-0", "size": 7}]
    assert written["counts"] == {"train": {"documents": 2}}
