"""Output directories: claims, manifests, sweeps."""

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskmill.errors import UnusableInputError
from maskmill.storage import completions, files, manifest, progress


def claim_output(
    output: str, stage: str, parameters: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> None:
    """Claims an output directory, as a run does once all directories are checked, and puts data into it."""
    manifest.check_output(output, stage, parameters, defaults).write()
    Path(output, "part-00000-of-00001").touch()


def test_a_directory_keeps_its_parameters(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    claim_output(output, "extract", {"seed": 1})
    claim_output(output, "extract", {"seed": 1})
    with pytest.raises(UnusableInputError, match=r"made with other parameters \(seed=1, now 2\)"):
        claim_output(output, "extract", {"seed": 2})
    with pytest.raises(UnusableInputError, match=r"made with other parameters \(names=None, now 'all'\)"):
        claim_output(output, "extract", {"seed": 1, "names": "all"})
    with pytest.raises(UnusableInputError, match=r"made with other parameters \(seed=1, now None\)"):
        claim_output(output, "extract", {})
    claim_output(output, "extract", {"seed": 1, "names": None})  # as if it were not there
    with pytest.raises(UnusableInputError, match="belongs to 'extract'"):
        claim_output(output, "examples", {"seed": 1})


def test_a_directory_without_data_is_free_for_other_options_once_its_run_has_ended(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    with manifest.check_output(output, "extract", {"seed": 1}).held():
        with manifest.check_output(output, "extract", {"seed": 1}).held():
            pass
        with pytest.raises(UnusableInputError, match=r"made with other parameters \(seed=1, now 2\)"):
            claim_output(output, "extract", {"seed": 2})
    completions.store(output, "extract", "piece", {})
    manifest.check_output(output, "extract", {"seed": 2}).write()
    with pytest.raises(UnusableInputError, match="belongs to 'extract'"):
        claim_output(output, "examples", {"seed": 2})
    claim_output(output, "extract", {"seed": 2})
    with pytest.raises(UnusableInputError, match="made with other parameters"):
        claim_output(output, "extract", {"seed": 3})


@pytest.mark.parametrize("freed", [False, True])
def test_of_two_runs_that_look_at_a_free_directory_at_once_one_gets_it(freed: bool, tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    if freed:
        manifest.check_output(output, "extract", {"seed": 1}).write()
    one, other = (manifest.check_output(output, "extract", {"seed": seed}) for seed in (1, 2))
    same = manifest.check_output(output, "extract", {"seed": 1})
    with one.held(), same.held():
        with (
            pytest.raises(UnusableInputError, match="another run with other parameters has just claimed"),
            other.held(),
        ):
            pass
        assert Path(one.path).read_bytes() == one.content


def test_a_directory_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(UnusableInputError, match=r"holds other files \(thesis.tex"):
        claim_output(str(tmp_path), "extract", {})
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_other_files_are_left_alone_in_folders_that_the_stage_writes_to(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "index.json").write_text("x")
    with pytest.raises(UnusableInputError, match=r"holds other files \(index.json"):
        manifest.check_output(str(tmp_path), "examples", {}, folders=["train", "eval"])
    manifest.check_output(str(tmp_path), "examples", {}, folders=["eval"]).write()
    manifest.check_output(str(tmp_path), "examples", {}, folders=["train"])  # it is claimed


def test_an_output_that_cannot_be_written_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(UnusableInputError, match=r"this directory is not writable\.$"):
        claim_output(str(tmp_path), "extract", {})
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


def test_a_sweep_looks_into_the_folders_that_it_is_told(tmp_path: Path) -> None:
    names = ["a.mds", "train/a.mds", "train/b.mds", "train/notes.txt", "eval/a.mds"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    progress.announce(str(tmp_path), "examples", pieces=1, size=1)
    unfinished = [f"{name}.0{files.TEMPORARY_SUFFIX}" for name in ("train/c.mds", ".maskmill/plan/examples.json")]
    for name in unfinished:
        (tmp_path / name).write_text("half")
    manifest.sweep(str(tmp_path), keep=["train/a.mds", "b.mds"], patterns=("train/*.mds",), records={})
    assert [name for name in names if not (tmp_path / name).exists()] == ["train/b.mds"]
    assert not [name for name in unfinished if (tmp_path / name).exists()]


def test_the_files_of_a_shard() -> None:
    one = {"name": "a.tfrecord", "bytes": 3, "sha256": "x", "examples": 2}
    assert manifest.files_of_shard(one) == [one]
    assert manifest.files_of_shard({"name": "a", "files": [one, one]}) == [one, one]
    assert manifest.files_of_shard({"name": "a", "files": []}) == []


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
    packages = {"maskmill", "apache-beam", "numba", "numpy", "nltk", "lupa", "wikitextprocessor"}
    assert set(versions) == {*packages, "python", "formats"}


def test_a_manifest_takes_dataclasses(tmp_path: Path) -> None:
    shard = files.FileInfo(path="part-0", size=7)
    written = manifest.write_manifest(
        str(tmp_path), stage="extract", parameters={}, inputs=[], shards=[shard], counts={"train": {"documents": 2}}
    )
    assert written["shards"] == [{"path": "part-0", "size": 7}]
    assert written["counts"] == {"train": {"documents": 2}}


CLAIM = {"seed": 1, "language": "english"}
DEFAULTS = {"seed": 12345, "language": "english"}


def claim_path(output: str) -> Path:
    return Path(completions.work_path(output, "", "parameters.json"))


@pytest.mark.parametrize("default", [None, False, True, 0, 0.5, "keep", (1, 2), ()])
def test_an_option_that_is_new_counts_as_its_default(default: object, tmp_path: Path) -> None:
    output = str(tmp_path)
    claim_output(output, "extract", CLAIM, DEFAULTS)
    defaults = DEFAULTS | {"newer": default}
    with pytest.raises(UnusableInputError, match=r"other parameters \(newer=.*, now 'other'\)"):
        claim_output(output, "extract", CLAIM | {"newer": "other"}, defaults)
    claim_output(output, "extract", CLAIM | {"newer": default}, defaults)
    # From now on the directory is one of this option, whatever its default becomes.
    with pytest.raises(UnusableInputError, match=r"other parameters \(newer=.*, now 'other'\)"):
        claim_output(output, "extract", CLAIM | {"newer": "other"}, DEFAULTS | {"newer": "other"})


def test_an_option_that_is_new_and_required_refuses_older_directories(tmp_path: Path) -> None:
    claim_output(str(tmp_path), "extract", CLAIM, DEFAULTS)
    with pytest.raises(UnusableInputError, match=r"other parameters \(newer=None, now 'x'\)"):
        claim_output(str(tmp_path), "extract", CLAIM | {"newer": "x"}, DEFAULTS)


@pytest.mark.parametrize("value", [None, False, "keep"])
def test_an_option_that_is_gone_must_have_been_at_its_default(value: object, tmp_path: Path) -> None:
    output = str(tmp_path)
    older = DEFAULTS | {"older": "keep"}
    claim_output(output, "extract", CLAIM | {"older": value}, older)
    claim_output(output, "extract", CLAIM, DEFAULTS)
    claim_output(output, "extract", CLAIM | {"older": "keep"}, older)


def test_an_option_that_is_gone_and_was_in_use_refuses(tmp_path: Path) -> None:
    claim_output(str(tmp_path), "extract", CLAIM | {"older": "drop"}, DEFAULTS | {"older": "keep"})
    with pytest.raises(UnusableInputError, match=r"other parameters \(older='drop', now 'keep'\)"):
        claim_output(str(tmp_path), "extract", CLAIM, DEFAULTS)


def test_what_an_option_names_counts_by_its_content(tmp_path: Path) -> None:
    output = str(tmp_path)

    def claim(vocab_file: str, checksum: str) -> None:
        parameters = CLAIM | {"vocab_file": vocab_file, "vocab_file_sha256": checksum}
        claim_output(output, "examples", parameters, DEFAULTS | {"vocab_file_sha256": checksum})

    claim_output(output, "examples", CLAIM | {"vocab_file": "a"}, DEFAULTS)  # by an older version
    with pytest.raises(UnusableInputError, match=r"vocab_file='a', now 'b'"):
        claim_output(output, "examples", CLAIM | {"vocab_file": "b"}, DEFAULTS)
    claim("a", "12")
    claim("b", "12")
    with pytest.raises(UnusableInputError, match=r"the data of vocab_file \(b\) has changed since this directory"):
        claim("b", "34")


DAMAGED_CLAIMS = [b"", b"{", b"[]", b"{}", b'{"stage": "extract"}', b'{"stage": "extract", "parameters": {}}', b"\xff"]


@pytest.mark.parametrize("content", [*DAMAGED_CLAIMS, None], ids=str)
def test_a_damaged_claim_is_made_from_the_manifest(content: bytes | None, tmp_path: Path) -> None:
    output = str(tmp_path)
    older = CLAIM | {"unicode": "15.1.0"}  # manifests of older versions had more in them than options
    manifest.write_manifest(output, stage="extract", parameters=older, inputs=[], shards=[], counts={})
    if content is not None:
        files.write_bytes(str(claim_path(output)), content)
    with pytest.raises(UnusableInputError, match=r"\(seed=1, now 2\)"):
        claim_output(output, "extract", CLAIM | {"seed": 2}, DEFAULTS)
    assert not Path(completions.work_path(output, completions.REMADE, "")).exists()
    if content is not None:
        with pytest.raises(UnusableInputError, match="belongs to 'extract'"):
            claim_output(output, "examples", CLAIM, DEFAULTS)
    claim_output(output, "extract", CLAIM, DEFAULTS)
    (note,) = completions.keys(output, completions.REMADE)
    what = "it was gone" if content is None else "it was damaged"
    record = completions.finished(output, completions.REMADE, note)
    assert (record["name"], record["reason"]) == (
        ".maskmill/parameters.json", f"{what} and was made from manifest.json"
    )  # fmt: skip


@pytest.mark.parametrize("content", DAMAGED_CLAIMS, ids=str)
def test_a_damaged_claim_without_manifest_is_made_anew(content: bytes, tmp_path: Path) -> None:
    output = str(tmp_path)
    files.write_bytes(str(claim_path(output)), content)
    (tmp_path / "part-00000-of-00001").write_text("x")
    claim_output(output, "extract", CLAIM, DEFAULTS)
    assert len(completions.keys(output, completions.REMADE)) == 1
    with pytest.raises(UnusableInputError, match=r"\(seed=1, now 2\)"):
        claim_output(output, "extract", CLAIM | {"seed": 2}, DEFAULTS)


def test_a_claim_that_was_copied_from_another_stage_is_made_again(tmp_path: Path) -> None:
    text, examples = str(tmp_path / "text"), str(tmp_path / "examples")
    claim_output(text, "extract", CLAIM, DEFAULTS)
    claim_output(examples, "examples", CLAIM, DEFAULTS)
    manifest.write_manifest(text, stage="extract", parameters=CLAIM, inputs=[], shards=[], counts={})
    claim_path(text).write_bytes(claim_path(examples).read_bytes())
    claim_output(text, "extract", CLAIM, DEFAULTS)
    assert len(completions.keys(text, completions.REMADE)) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b'{"name": "an app"}', b"\xff", b"[" * 100_000,
        b'{"stage": "extract", "parameters": {}, "counts": {}, "inputs": [], "shards": [{"name": "part"}]}',
        b'{"stage": "extract", "parameters": {}, "counts": {}, "inputs": ["a"], "shards": []}',
    ],
    ids=[str(number) for number in range(9)],
)  # fmt: skip
def test_what_is_no_manifest_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(UnusableInputError, match="this is no manifest of maskmill, or it is damaged; run the command"):
        manifest.read_manifest(str(tmp_path))
    assert manifest.find_manifest(str(tmp_path)) is None
