"""Spans read by blocks: where their text is found, and what is said of damaged ones."""

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets.example_sets import setup_of, write_set
from hypothesis import given
from hypothesis import strategies as st
from made_up import trained_tokenizers
from properties import tries

import maskmill
from maskmill.errors import UnusableInputError
from maskmill.reading.block_reader import DamagedBlockError
from maskmill.reading.text_parts import line_runs_of
from maskmill.records.spans import SECOND, TEXT, Numbers, Spans, decode, encode, pack, unpack
from maskmill.verification.options import VerifyOptions
from maskmill.verification.verifying import verify

SHARD = "part-00000-of-00001"


@pytest.fixture(name="build", scope="module")
def fixture_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with text and examples of one shard, of several blocks."""
    folder = tmp_path_factory.mktemp("build")
    draw = random.Random(5)
    words = " ".join(trained_tokenizers.LINES).split()
    lines = [" ".join(draw.choices(words, k=12)) + "\n" * (1 + (n % 9 == 8)) for n in range(2400)]
    setup = setup_of(format="spans", objective="mlm", dynamic_masking=True, dupe_factor=1, max_seq_length=64)
    write_set(folder / "was", setup, texts={SHARD: "".join(lines)})
    return (folder / "was").rename(folder / "is")  # so that nothing is where it was


@pytest.fixture(name="copy")
def fixture_copy(build: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(build, tmp_path / "copy"))


def read_all(path: Path, **options: Any) -> int:
    with maskmill.open(path, batch_size=8, tail="pad", **options) as loader:
        return sum(1 for _ in loader)


def change(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))


@tries(100)
@given(st.lists(st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**32 - 1)), max_size=20), max_size=9))
def test_packed_numbers_come_back(columns: list[list[int]]) -> None:
    arrays = [np.array(column, np.int64) for column in columns]
    assert [numbers.tolist() for numbers in unpack(pack(arrays), len(columns))] == columns


@tries(100)
@given(st.integers(0, 1 << 30), st.booleans())
def test_spans_come_back(seed: int, has_labels: bool) -> None:
    draw = np.random.default_rng(seed)
    members = draw.integers(1, 4, draw.integers(1, 20))
    counts = draw.integers(1, 6, members.sum())
    kinds = draw.integers(0, 3, counts.sum()) + SECOND * draw.integers(0, 2, counts.sum())
    texts = np.count_nonzero(kinds % SECOND == TEXT)
    steps, *others = (draw.integers(0, 1 << bits, texts) for bits in (draw.integers(1, 25), 3, 9, 14))
    labels = draw.integers(0, 2, len(counts) * has_labels)
    spans = Spans(members, counts, labels, kinds, steps, *others)
    for one, other in zip(decode(encode(spans)), spans, strict=True):
        assert one.tolist() == other.tolist()


@tries(100)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), min_size=1, max_size=20))
def test_line_runs_are_the_lines_of_all_ranges(ranges: list[tuple[int, int]]) -> None:
    starts: Numbers = np.array([start for start, _ in ranges])
    stops: Numbers = np.array([start + size for start, size in ranges])
    found = line_runs_of(starts, stops)
    lines = [line for start, stop in zip(found.starts, found.stops, strict=True) for line in range(start, stop)]
    wanted = sorted({line for start, size in ranges for line in range(start, start + size)})
    assert lines == wanted
    assert found.place_of(np.array(wanted)).tolist() == list(range(len(wanted)))
    assert (found.starts[1:] > found.stops[:-1]).all()


def test_a_changed_bit_of_an_index_is_found(copy: Path) -> None:
    index = copy / "examples" / f"{SHARD}.spans"
    whole = index.read_bytes()
    for place in [*range(40), *range(40, len(whole), 61)]:
        change(index, place)
        with pytest.raises(DamagedBlockError, match=f"^{index}: .*(make or fetch it again|fetch the file again)"):
            read_all(copy / "examples")
        index.write_bytes(whole)


def test_a_changed_byte_of_the_text_is_found(copy: Path) -> None:
    text = copy / "text" / SHARD
    change(text, 70_000)
    with pytest.raises(DamagedBlockError, match=rf"^{text}: bytes [\d,]+ to [\d,]+ of this text are not those that"):
        read_all(copy / "examples")
    with pytest.raises(UnusableInputError, match=f"^{text}: the content of this file is not what was written"):
        maskmill.open(copy / "examples", batch_size=8, checksums=True)
    found = verify([str(copy / "examples")], VerifyOptions(remake=0))
    errors = [finding for finding in found.findings if finding.severity == "error"]
    (message,) = [finding.message for finding in errors if finding.check == "crc"]
    assert re.search(rf"{text}: bytes [\d,]+ to [\d,]+ of this text are not those that the rows were made of", message)


def test_verify_names_the_records_of_a_damaged_block(copy: Path) -> None:
    index = copy / "examples" / f"{SHARD}.spans"
    change(index, len(index.read_bytes()) - 10)
    found = verify([str(copy / "examples")], VerifyOptions(remake=0))
    messages = " ".join(finding.message for finding in found.findings)
    assert re.search(r"records [\d,]+ to [\d,]+ do not fit their checksum", messages)


def test_text_is_found_where_it_was_or_is_said_to_be(copy: Path, tmp_path: Path) -> None:
    count = read_all(copy / "examples")
    moved = shutil.move(copy, tmp_path / "moved")
    assert read_all(moved / "examples") == count
    elsewhere = shutil.move(moved / "text", tmp_path / "elsewhere")
    with pytest.raises(UnusableInputError, match=r"its rows are read from text, which is not there \(.*moved/text/"):
        read_all(moved / "examples")
    assert read_all(moved / "examples", text=elsewhere) == count
    with pytest.raises(UnusableInputError, match=r"which is not there \(.*nowhere/part-00000-of-00001\)"):
        read_all(moved / "examples", text=tmp_path / "nowhere")
    with (elsewhere / SHARD).open("a") as file:
        file.write("More.\n")
    with pytest.raises(UnusableInputError, match=r"this text has [\d,]+ bytes, but the examples were made of one of"):
        read_all(moved / "examples", text=elsewhere)


def test_verify_needs_the_text(copy: Path, tmp_path: Path) -> None:
    elsewhere = shutil.move(copy / "text", tmp_path / "elsewhere")
    messages = [f.message for f in verify([str(copy / "examples")]).findings if f.severity == "error"]
    assert "the text of its rows is not there; say where its shards are (text)" in " ".join(messages)
    found = verify([str(copy / "examples")], VerifyOptions(text=(str(elsewhere),)))
    assert [f.message for f in found.findings if f.severity == "error"] == []
    assert found.outcomes["seed"].looked_at


def test_another_index_than_the_manifests_is_refused(copy: Path) -> None:
    path = copy / "examples" / "manifest.json"
    made = json.loads(path.read_text())
    made["shards"][0]["records_sha256"] = "0" * 64
    path.write_text(json.dumps(made))
    with pytest.raises(DamagedBlockError, match="this index is of other rows than the manifest says"):
        read_all(copy / "examples")


def test_little_of_the_text_is_read_for_few_rows(build: Path) -> None:
    with maskmill.open(build, batch_size=4) as loader:
        loader.rows_of([300])  # the head of the index and the vocabulary are read once
        before = loader.stats().bytes_read
        loader.rows_of([310])
        assert loader.stats().bytes_read - before < (build / "text" / SHARD).stat().st_size / 10


def test_masks_are_not_stored_beside_spans(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="their masks are drawn by the reader"):
        write_set(tmp_path, setup_of(format="spans"))


def test_an_index_is_small(build: Path) -> None:
    shard = build / "examples" / f"{SHARD}.spans"
    assert shard.stat().st_size < 0.03 * (build / "text" / SHARD).stat().st_size
