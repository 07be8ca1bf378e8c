"""MDS shards read by blocks, and what is said of damaged ones."""

import dataclasses
import hashlib
import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets.read_blocks import (
    assert_any_part,
    assert_row,
    blocks_of,
    data_set_of,
    float_column,
    int_column,
    read_all,
    read_columns,
)
from data_sets.row_blocks import SPECIAL_IDS, arrays_of, columns_for
from data_sets.row_blocks import blocks_of as row_blocks_of
from hypothesis import given
from hypothesis import strategies as st
from made_up.rows import MadeUpRows, made_up_rows
from properties import SEEDED, tries

from maskmill.errors import UnusableInputError
from maskmill.reading.block_reader import Block, DamagedBlockError, Rows
from maskmill.reading.byte_ranges import LocalRanges
from maskmill.reading.data_set import DataSet, ReadColumn
from maskmill.reading.kernels import mds_samples
from maskmill.reading.mds import MdsReader
from maskmill.records.columns import Column
from maskmill.records.mds import write_mds


def written(made: MadeUpRows, columns: tuple[Column, ...], folder: Path, *, limit: int = 1 << 20) -> dict[str, int]:
    """The shards of rows, by their paths, with their numbers of samples."""
    width = made.masking.max_seq_length
    blocks = row_blocks_of(made.rows, 64)
    shards = write_mds(str(folder / "x"), blocks, columns, SPECIAL_IDS, width, checksum=False, size_limit=limit)
    return {shard.path: shard.samples for shard in shards}


def mds_of(files: dict[str, int], columns: tuple[ReadColumn, ...]) -> tuple[DataSet, MdsReader]:
    data_set = data_set_of(files, columns, format="mds")
    return data_set, MdsReader(data_set, LocalRanges())


@pytest.mark.parametrize("padded", [True, False], ids=["padded", "not padded"])
@pytest.mark.parametrize("seed", range(12))
def test_rows_are_read_as_they_were_written(seed: int, padded: bool, tmp_path: Path) -> None:
    made = made_up_rows(seed, count=30)
    columns = columns_for(made, padded=padded)
    data_set, reader = mds_of(written(made, columns, tmp_path, limit=5000), read_columns(columns, made))
    rows = read_all(reader, data_set)
    for n, row in enumerate(arrays_of(made, columns)):
        assert_row(data_set.columns, rows, n, row)


@dataclasses.dataclass(frozen=True)
class Case:
    """A shard of 600 small samples, and what must be read from it."""

    path: str
    columns: tuple[ReadColumn, ...]
    expected: list[dict[str, Any]]


def is_small(seed: int) -> bool:
    """Whether these rows are short, packed pairs with masks."""
    made = made_up_rows(seed, count=0)
    objective = made.objective
    kind = (made.masking.max_seq_length, made.vocabulary_size, objective.objective)
    return kind == (5, 30_000, "nsp") and objective.pack and not objective.dynamic_masking


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    made = made_up_rows(next(filter(is_small, range(1000))), count=600)
    columns = columns_for(made, padded=False)
    ((path, samples),) = written(made, columns, tmp_path_factory.mktemp("mds")).items()
    assert samples == 600
    return Case(path, read_columns(columns, made), arrays_of(made, columns))


@tries(60, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_any_part_of_a_block_goes_to_any_rows(seed: int, case: Case) -> None:
    data_set, reader = mds_of({case.path: 600}, case.columns)
    assert_any_part(random.Random(seed), reader, data_set, lambda n: case.expected[n])


def test_columns_may_be_wider_and_of_larger_types_or_not_be_there(case: Case) -> None:
    """As in a mix of data sets, in which all have the same columns."""
    columns = [
        dataclasses.replace(
            column,
            width=column.width + 3,
            varies=True,
            dtype=np.dtype(np.int32) if column.dtype.kind == "u" else column.dtype,
        )
        for column in case.columns
        if column.feature != "segment_ids"
    ]
    lacking = (int_column("a", 3, 9, optional=True), float_column("z", 2, optional=True, varies=True))
    data_set, reader = mds_of({case.path: 600}, (lacking[0], *columns, lacking[1]))
    rows = read_all(reader, data_set)
    for n, row in enumerate(case.expected):
        assert_row(data_set.columns, rows, n, row | {"a": [0] * 3, "z": []})


def test_kernels_are_compiled_for_the_types_that_are_read(case: Case) -> None:
    mds_samples.warm_up()
    compiled = len(mds_samples.read_samples.signatures)
    data_set, reader = mds_of({case.path: 600}, case.columns)
    read_all(reader, data_set)
    assert len(mds_samples.read_samples.signatures) == compiled


# ---- damage


def read_changed(case: Case, content: bytes, folder: Path, **changes: dict[str, Any]) -> Rows:
    """The rows of a file with this content; changes: of columns, by their names."""
    path = folder / "x"
    path.write_bytes(content)
    columns = tuple(dataclasses.replace(column, **changes.get(column.name, {})) for column in case.columns)
    data_set, reader = mds_of({str(path): 600}, columns)
    return read_all(reader, data_set)


def config_of(content: bytes) -> tuple[int, int]:
    """Where a shard's description of itself starts and ends."""
    count, first = np.frombuffer(content[:8], "<u4").tolist()
    return 4 * (count + 2), first


def with_config(content: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The shard with a changed description of itself, that is as long."""
    start, end = config_of(content)
    config = json.loads(content[start:end])
    config["size_limit"] = "7"
    change(config)
    text = json.dumps(config).encode()
    assert len(text) <= end - start
    return content[:start] + text.ljust(end - start) + content[end:]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda content: content[:1000], "this shard is too short, but it must have 600; make or fetch it again"),
        (lambda content: b"", "this shard is too short, but it must have 600; make or fetch it again"),
        (lambda content: bytes(8000), "this shard says that it has 0 records, but it must have 600; make or fetch it"),
        (
            lambda content: content[:-1],
            "the places of this shard's records do not fit the file; make or fetch it again",
        ),
        (lambda content: content[:4] + bytes(4) + content[8:], "the places of this shard's records do not fit the fil"),
        (lambda content: content[:900] + b"\xff" * 4 + content[904:], "the places of this shard's records do not fit"),
        (
            lambda content: content[: config_of(content)[0]] + b"?" + content[config_of(content)[0] + 1 :],
            "this shard does not say what its columns are; make or fetch it again",
        ),
        (
            lambda content: with_config(content, lambda config: config.pop("column_sizes")),
            "this shard does not say what its columns are; make or fetch it again",
        ),
        (
            lambda content: with_config(content, lambda config: config["column_names"].__setitem__(2, "x")),
            "the column input_ids is missing; make or fetch the file again",
        ),
        (
            lambda content: with_config(content, lambda config: config["column_encodings"].__setitem__(2, "pkl")),
            "the values of input_ids are stored as pkl, which is not read; make the examples with maskmill",
        ),
    ],
    ids=["cut", "empty", "zeros", "a byte less", "first place", "a place", "no JSON", "a key", "a name", "an encoding"],
)
def test_a_head_that_does_not_fit_is_one_sentence(
    change: Callable[[bytes], bytes], sentence: str, case: Case, tmp_path: Path
) -> None:
    content = Path(case.path).read_bytes()
    names = json.loads(content[slice(*config_of(content))])["column_names"]
    assert names[2] == "input_ids"
    with pytest.raises(UnusableInputError, match=rf"x: {re.escape(sentence)}.*\.$"):
        read_changed(case, change(content), tmp_path)


@pytest.mark.parametrize(
    ("column", "changes", "sentence"),
    [
        ("input_ids", {"high": 20}, r"record \d+: input_ids is \d+, but it must be from 0 to 20\."),
        (
            "input_ids",
            {"high": 20, "meaning": "from 0 to 20: the vocabulary has 21 pieces"},
            r"record \d+: input_ids is \d+, but it must be from 0 to 20: the vocabulary has 21 pieces\.",
        ),
        ("cu_seqlens", {"low": 1}, r"record 1: cu_seqlens is 0, but it must be from 1 to 5\."),
        ("input_ids", {"width": 3}, r"record \d+: input_ids has length [45], but it must be at most 3\."),
        (
            "masked_lm_ids",
            {"width": 1000, "varies": False},
            r"record 1: masked_lm_ids has length \d, but it must be 1000\.",
        ),
        ("masked_lm_weights", {"high": 0.5}, r"record \d+: masked_lm_weights is 1\.0, but it must be from 0 to 0\.5\."),
    ],
    ids=["too high", "with a meaning", "too low", "too many", "too few", "a float"],
)
def test_a_value_that_is_not_allowed_is_one_sentence(
    column: str, changes: dict[str, Any], sentence: str, case: Case, tmp_path: Path
) -> None:
    content = Path(case.path).read_bytes()
    with pytest.raises(DamagedBlockError, match=rf"x, {sentence}$"):
        read_changed(case, content, tmp_path, **{column: changes})


@tries(150, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_damaged_samples_are_refused_or_within_the_limits(seed: int, case: Case, tmp_path: Path) -> None:
    draw = random.Random(seed)
    content = bytearray(Path(case.path).read_bytes())
    start = config_of(content)[1]
    for _ in range(draw.randint(1, 3)):
        content[draw.randrange(start, min(len(content), start + 400))] = draw.choice([0, 1, 4, 5, 6, 8, 255])
    try:
        rows = read_changed(case, content, tmp_path)
    except DamagedBlockError:
        return
    for column in case.columns:
        values = rows.arrays[column.feature]
        assert column.low is not None
        assert (values >= column.low).all()
        assert column.high is None or (values <= column.high).all()
        if column.varies:
            assert (rows.counts[column.feature] <= column.width).all()


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("part", [0, 2], ids=["the first", "the ids"])
def test_a_part_whose_length_is_not_its_size_is_refused(part: int, change: int, case: Case, tmp_path: Path) -> None:
    content = bytearray(Path(case.path).read_bytes())
    start = config_of(content)[1]
    sizes = np.frombuffer(content[start : start + 4 * len(case.columns)], "<u4")
    content[start + 4 * len(sizes) + int(sizes[:part].sum()) + 1] += change
    name = case.columns[part].name
    with pytest.raises(DamagedBlockError, match=rf"x, record 1: {name} cannot be read; make or fetch the file again\."):
        read_changed(case, content, tmp_path)


def test_a_block_is_refused_if_its_samples_do_not_end_where_they_must(case: Case, tmp_path: Path) -> None:
    content = bytearray(Path(case.path).read_bytes())
    place = 4 + 4 * 256  # where sample 256 starts
    offset = int.from_bytes(content[place : place + 4], "little")
    content[place : place + 4] = (offset + 1).to_bytes(4, "little")
    with pytest.raises(DamagedBlockError, match=r"x: records 1 to 256 do not end where they must: the file is damaged"):
        read_changed(case, content, tmp_path)


def test_a_head_is_read_anew_once_it_is_forgotten(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "x"
    content = Path(case.path).read_bytes()
    path.write_bytes(content)
    _, reader = mds_of({str(path): 600}, case.columns)
    block = Block(0, 256, 256)
    whole = reader.fetch(block)[1]
    written_at = path.stat().st_mtime_ns
    path.write_bytes(bytes(len(content)))
    os.utime(path, ns=(written_at, written_at))  # or it would not be read at all
    assert reader.fetch(block)[1].tobytes() == bytes(len(whole))
    assert not reader.forget(block)
    with pytest.raises(DamagedBlockError, match="says that it has 0 records"):
        reader.fetch(block)


class CountingRanges(LocalRanges):
    hashed = 0

    def sha256_of(self, path: str) -> str:
        self.hashed += 1
        return super().sha256_of(path)


def test_every_flipped_bit_is_found_by_the_shards_checksum_which_is_computed_once(case: Case, tmp_path: Path) -> None:
    content = Path(case.path).read_bytes()
    digest, path = hashlib.sha256(content).hexdigest(), tmp_path / "x"
    draw = random.Random(7)
    for flipped in [None, *draw.sample(range(8 * len(content)), 60)]:
        damaged = bytearray(content)
        if flipped is not None:
            damaged[flipped // 8] ^= 1 << flipped % 8
        path.write_bytes(damaged)
        data_set, _ = mds_of({str(path): 600}, case.columns)
        data_set = dataclasses.replace(data_set, files=(dataclasses.replace(data_set.files[0], sha256=digest),))
        ranges = CountingRanges()
        reader = MdsReader(data_set, ranges)
        if flipped is None:
            for _ in range(2):
                read_all(reader, data_set)
            assert ranges.hashed == 1
        else:
            with pytest.raises(DamagedBlockError):
                reader.fetch(blocks_of(data_set, reader.block_samples)[0])
