"""What is seen across the examples of a data set, and by making a shard again: without the text, too."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_runs.commands import VOCAB
from data_sets.whole_builds import Made, extract_text, make_build
from regenerating import regenerate

from maskmill.records.tfrecord import frame, read_records
from maskmill.verification.findings import Finding
from maskmill.verification.options import VerifyOptions
from maskmill.verification.verifying import verify

Record = bytes
SHARD = "part-00000-of-"


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("build")
    text = extract_text(folder / "text", documents=12, eval_articles=2, shard_mb=0.1)
    return make_build(folder / "build", text, max_seq_length=64, max_predictions_per_seq=10, dupe_factor=5)


def shards(directory: Path) -> list[Path]:
    return sorted(path for path in directory.glob("part-*.tfrecord"))


def alone(build: Made, folder: Path, edit: Callable[[list[Record]], list[Record]]) -> list[Finding]:
    """What is found of the records of a shard, edited, as a file of another program: no manifest, no text."""
    folder.mkdir(exist_ok=True)
    (path, *_) = shards(build.root / "examples")
    records = edit(list(read_records(str(path))))
    (folder / "part-00000-of-00001.tfrecord").write_bytes(b"".join(frame(record) for record in records))
    found = verify([str(folder)], VerifyOptions(vocab_file=str(VOCAB), masked_lm_prob=0.15))
    return [finding for finding in found.findings if finding.severity != "note"]


def test_a_shard_by_itself_is_right(build: Made, tmp_path: Path) -> None:
    assert alone(build, tmp_path / "alone", lambda records: records) == []


def test_a_single_record_that_is_there_twice_is_found(build: Made, tmp_path: Path) -> None:
    (finding,) = alone(build, tmp_path / "twice", lambda records: [*records[:20], records[7], *records[20:]])
    assert (finding.check, finding.record) == ("repeated_records", 21)
    assert "this is record 8 of " in finding.message


def test_examples_of_the_eval_set_are_found_without_the_text(build: Made, tmp_path: Path) -> None:
    folder = tmp_path / "leak"
    folder.mkdir()
    shutil.copy(build.root / "examples" / "eval.txt.tfrecord", folder / "eval.tfrecord")
    held_out = list(read_records(str(folder / "eval.tfrecord")))
    findings = alone(build, folder, lambda records: [*records, *held_out[:30]])
    assert "repeated_records" in {finding.check for finding in findings}


def test_the_first_record_that_differs_is_named(build: Made, tmp_path: Path) -> None:
    copy = build.copy(tmp_path / "build").root
    (path, *_) = shards(copy / "examples")
    records = list(read_records(str(path)))
    path.write_bytes(b"".join(frame(record) for record in [*records[:4], *records[5:]]))
    regenerate(copy)
    (finding,) = [finding for finding in verify([str(copy)]).findings if finding.severity != "note"]
    assert (finding.check, finding.record) == ("seed", 5)
    assert f"of the {len(records):,} records that they give {len(records) - 1:,} are here" in finding.message


def test_a_seed_that_does_not_belong_is_found(build: Made, tmp_path: Path) -> None:
    copy = build.copy(tmp_path / "build").root
    path = copy / "examples" / "manifest.json"
    made = json.loads(path.read_text())
    made["shards"][0]["random_seed"] += 1
    path.write_text(json.dumps(made))
    found = {finding.check for finding in verify([str(copy)]).findings}
    assert found == {"seed"}
