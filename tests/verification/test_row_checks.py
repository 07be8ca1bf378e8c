"""Whole files of examples: right ones of every format, and damaged ones."""

import dataclasses
import functools
import gzip
from pathlib import Path
from typing import Any

import pytest
from data_sets.example_rows import read_tfrecord
from data_sets.example_sets import setup_of, write_set

from maskmill.reading.byte_ranges import LocalRanges
from maskmill.records.tfrecord import frame, read_records
from maskmill.storage import manifest
from maskmill.verification.options import VerifyOptions
from maskmill.verification.row_checks import check_rows
from maskmill.verification.verify_plan import plan
from maskmill.verification.verify_targets import find_targets
from maskmill.verification.work_items import ItemResult, WorkItem


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The pieces of a data set with options, written once."""

    @functools.cache
    def made(*options: tuple[str, Any]) -> tuple[WorkItem, ...]:
        directory = tmp_path_factory.mktemp("set")
        output = write_set(directory, setup_of(**dict(options)))
        targets = plan(find_targets([output]), VerifyOptions(), str(directory))
        return tuple(item for item in targets.items if item.kind == "examples")

    return lambda **options: made(*options.items())


def damaged(item: WorkItem, tmp_path: Path, content: bytes) -> WorkItem:
    """The piece of another file with this content."""
    path = tmp_path / Path(item.path).name
    path.write_bytes(content)
    data_set = item.rules.data_set
    files = (dataclasses.replace(data_set.files[0], path=str(path)),)
    rules = dataclasses.replace(item.rules, data_set=dataclasses.replace(data_set, files=files))
    return dataclasses.replace(item, path=str(path), rules=rules, scratch=None)


def check(item: WorkItem) -> ItemResult:
    return ItemResult(item=item).plus(check_rows(item, LocalRanges()))


def found(result: ItemResult) -> list[tuple[str, int | None, int]]:
    """The check, the first record and the count of each finding."""
    return sorted((finding.check, finding.record, finding.count) for finding in result.findings)


# ---- right ones


@pytest.mark.parametrize(
    "options",
    [
        {"format": "tfrecord"},
        {"format": "parquet", "objective": "mlm", "pack": True, "special_tokens_mask": True},
        {"format": "mds", "objective": "sop", "bins": 2, "mask_unit": "span"},
        {"format": "tfrecord", "objective": "blocks", "block_separators": "recipe", "dynamic_masking": True},
        {"format": "parquet", "objective": "sop", "pack": True, "dynamic_masking": True},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_nothing_is_wrong_with_what_was_written(pieces: Any, options: dict[str, Any]) -> None:
    for item in pieces(**options):
        result = check(item)
        assert result.findings == ()
        assert set(result.skipped) <= {"crc"}
        assert result.rows is not None
        assert result.rows.rows == result.counts["examples"] == result.looked_at["schema"]
    made = manifest.parse_manifest("manifest.json", (Path(item.directory) / "manifest.json").read_bytes())
    totals: dict[str, int] = {}
    for item in pieces(**options):
        for name, count in check(item).counts.items():
            totals[name] = totals.get(name, 0) + count
    expected = {name: sum(shard[name] for shard in made["shards"] if name in shard) for name in totals}
    assert totals == expected


# ---- TFRecords


def frames_of(item: WorkItem) -> list[bytes]:
    return [frame(record) for record in read_records(item.path)]


def flipped(content: bytes, place: int, bit: int = 0) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return bytes(changed)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
@pytest.mark.parametrize(
    ("place", "expected"),
    [(3, "framing"), (9, "framing"), (40, "crc"), (-2, "crc")],
    ids=["length", "its checksum", "data", "their checksum"],
)
def test_a_damaged_record_is_named(pieces: Any, tmp_path: Path, place: int, expected: str, packed: bool) -> None:
    item = pieces(format="tfrecord")[0]
    frames = frames_of(item)
    for number in (0, 7, len(frames) - 1):
        content = b"".join([*frames[:number], flipped(frames[number], place), *frames[number + 1 :]])
        result = check(damaged(item, tmp_path, gzip.compress(content) if packed else content))
        assert found(result) == [(expected, None, 1)]
        assert f"record {number + 1:,} at byte" in result.findings[0].message
        assert set(result.skipped) >= {"framing", "crc", "masks"}
        assert result.rows is not None
        assert result.rows.rows == number


def test_examples_that_cannot_be_read_are_counted_and_the_others_are_read(pieces: Any, tmp_path: Path) -> None:
    item = pieces(format="tfrecord")[0]
    frames = frames_of(item)
    for number in (3, 11):
        frames[number] = frame(b"\n\1")
    result = check(damaged(item, tmp_path, b"".join(frames)))
    assert found(result) == [("schema", 4, 2)]
    assert result.rows is not None
    assert (result.rows.rows, result.counts["examples"]) == (len(frames) - 2, len(frames))


@pytest.mark.parametrize(
    ("feature", "high", "check_name"), [("masked_lm_ids", 20000, "ids"), ("masked_lm_positions", 12, "masks")]
)
def test_values_that_are_not_allowed_are_told_by_their_column(
    pieces: Any, feature: str, high: int, check_name: str
) -> None:
    rows = read_tfrecord(pieces(format="tfrecord")[0].path)
    wrong = [number for number, row in enumerate(rows, 1) if max(row[feature]) > high]
    assert 0 < len(wrong) < len(rows)
    for format in ("tfrecord", "parquet", "mds"):
        item = pieces(format=format)[0]
        data_set = item.rules.data_set
        columns = tuple(
            dataclasses.replace(column, high=high) if column.feature == feature else column
            for column in data_set.columns
        )
        rules = dataclasses.replace(item.rules, data_set=dataclasses.replace(data_set, columns=columns))
        result = check(dataclasses.replace(item, rules=rules, scratch=None))
        assert found(result) == [(check_name, wrong[0], len(wrong))], format
        largest = data_set.vocabulary_size - 1 if high > 100 else 31
        assert f"must be from 0 to {largest}" in result.findings[0].message
        assert result.rows is not None
        assert result.rows.rows == len(rows) - len(wrong)
