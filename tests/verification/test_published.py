"""`verify --published`: sizes and counts beside those that were published."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from data_sets.example_sets import setup_of, texts_of, write_set
from data_sets.gold_examples import VOCABULARY

from maskmill.verification import published_checks
from maskmill.verification.findings import Finding
from maskmill.verification.options import VerifyOptions
from maskmill.verification.verifying import verify

NAMES = ("part-00000-of-00002", "part-00001-of-00002", "eval.txt")


def _findings(path: str, **options: Any) -> list[Finding]:
    found = verify([path], VerifyOptions(published="mlperf", remake=0, **options))
    return [finding for finding in found.findings if finding.check == "published"]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build, and as what is published what it has."""
    setup = setup_of(max_seq_length=64, max_predictions_per_seq=10)
    write_set(tmp_path, setup, texts=texts_of(NAMES), picked=5)
    hashes = "".join(f"{number:032x}\n" for number in range(3))
    (tmp_path / "text" / "eval.md5").write_text(hashes)
    of_text = [_entry("text", tmp_path / "text" / name) for name in NAMES]
    examples = [tmp_path / "examples" / f"{name}.tfrecord" for name in NAMES]
    train = [path.stat().st_size for path in examples[:2]]
    known: Mapping[str, Any] = {
        "title": "Somebody's data: for a test",
        "options": {"max_seq_length": 64, "dupe_factor": 2},
        "vocabulary": {"bytes": Path(VOCABULARY).stat().st_size, "md5": _md5(Path(VOCABULARY))},
        "files": [
            *of_text,
            {"where": "text", "name": "eval.md5", "bytes": 99, "lines": 3, "md5": _md5(tmp_path / "text" / "eval.md5")},
            {"where": "examples", "name": "eval_intermediate", "ours": "eval.txt", "bytes": examples[2].stat().st_size},
            {
                "where": "picked",
                "name": "eval_10k",
                "ours": "eval",
                "samples": 5,
                "bytes": (tmp_path / "eval" / "eval.tfrecord").stat().st_size,
            },
        ],
        "groups": [{"where": "text", "files": 2}, {"where": "examples", "files": 2, "bytes": sum(train)}],
    }
    monkeypatch.setattr(published_checks, "published", lambda name: known)
    return tmp_path


def _entry(where: str, path: Path) -> dict[str, Any]:
    return {"where": where, "name": path.name, "bytes": path.stat().st_size, "md5": _md5(path)}


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def test_the_published_data_itself_has_nothing_that_differs(build: Path) -> None:
    assert _findings(str(build)) == []
    assert _findings(f"{build}/text/*") == []
    found = verify([str(build)], VerifyOptions(published="mlperf", remake=0))
    assert found.outcomes["published"].looked_at > 10


def test_what_differs_is_told_with_by_how_much(build: Path) -> None:
    text = build / "text" / "part-00001-of-00002"
    text.write_text(text.read_text() + "One sentence more .\n\n")
    changed = build / "text" / "part-00000-of-00002"
    changed.write_text(changed.read_text().replace("Sentence 1 ", "Sentence 9 "))
    messages = [finding.message for finding in _findings(f"{build}/text/*")]
    size = text.stat().st_size
    assert (
        f"{text} has {size:,} bytes, 21 ({21 / (size - 21):.2%}) more than the {size - 21:,} published of"
        in messages[1]
    )
    assert f"{changed} has the md5 {_md5(changed)}, but " in messages[0]
    assert all(message.endswith(" of Somebody's data.") for message in messages)
    assert len(messages) == 2


def test_options_and_totals_are_compared(build: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    path = write_set(other, setup_of(max_seq_length=32), texts=texts_of(["part-00000-of-00001"]))
    messages = "\n".join(finding.message for finding in _findings(path))
    assert "has max_seq_length 32, but 64 is published" in messages
    assert "has 1 training shards, 1 (50.00%) fewer than the 2 published" in messages
    assert "dupe_factor" not in messages


def test_chosen_shards_are_not_held_against_totals(build: Path) -> None:
    assert _findings(str(build), shards="0") == []


def test_the_published_figures_have_sources_and_fit_each_other() -> None:
    known = published_checks.published("mlperf")
    assert known["sources"]
    entries = {(entry["where"], entry["name"]): entry for entry in known["files"]}
    assert entries["text", "eval.md5"]["bytes"] == 33 * entries["text", "eval.md5"]["lines"]
    assert entries["picked", "eval_10k"]["samples"] == entries["text", "eval.md5"]["lines"]
    assert all(len(entry.get("md5", "0" * 32)) == 32 for entry in known["files"])
    assert known["vocabulary"] == {"bytes": Path(VOCABULARY).stat().st_size, "md5": _md5(Path(VOCABULARY))}
