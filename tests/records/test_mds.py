"""MDS shards and their index, read by a plain reader. tests/records/test_readers.py reads them with the library."""

import hashlib
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from data_sets.full_disk import full_disk
from data_sets.mds_reader import read_mds, read_shard
from data_sets.row_blocks import SPECIAL_IDS, arrays_of, assert_same, blocks_of, columns_for
from made_up.rows import MadeUpRows, made_up_rows

from maskmill.errors import RunFailedError
from maskmill.records.columns import Column
from maskmill.records.kernels import mds as kernels
from maskmill.records.mds import MdsShard, mds_index, mds_shard_entry, part_sizes, write_mds

LIMIT = 5000


def write(
    made: MadeUpRows, columns: tuple[Column, ...], directory: Path, *, block: int = 7, limit: int = LIMIT
) -> list[MdsShard]:
    """Writes rows as shards with their index."""
    shards = write_mds(
        str(directory / "rows"),
        blocks_of(made.rows, block),
        columns,
        SPECIAL_IDS,
        made.masking.max_seq_length,
        checksum=True,
        size_limit=limit,
    )
    entries = [mds_shard_entry(columns, Path(s.path).name, s.size, s.sha256, s.samples, limit) for s in shards]
    (directory / "index.json").write_bytes(mds_index(json.loads(json.dumps(entries))))
    return shards


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_a_reader_finds_the_rows_again(seed: int, padded: bool, tmp_path: Path) -> None:
    made = made_up_rows(seed)
    columns = columns_for(made, padded=padded)
    shards = write(made, columns, tmp_path)
    assert_same(read_mds(tmp_path), arrays_of(made, columns))
    assert sorted(p.name for p in tmp_path.glob("*.mds")) == [f"rows.{n:05}.mds" for n in range(len(shards))]


def test_a_shard_is_as_full_as_it_can_be(tmp_path: Path) -> None:
    made = made_up_rows(3, count=200)
    columns = columns_for(made, padded=True)
    shards = write(made, columns, tmp_path)
    assert len(shards) > 2
    for shard, following in itertools.pairwise(shards):
        samples, _ = read_shard(Path(following.path).read_bytes())
        first = sum(4 + 2 + (len(a) > 255) + a.nbytes for a in samples[0].values())
        assert shard.size <= LIMIT < shard.size + first + 4


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_bytes_do_not_depend_on_blocks(block: int, tmp_path: Path) -> None:
    made = made_up_rows(5, count=50)
    columns = columns_for(made, padded=False)
    for name, size in (("one", 10), ("other", block)):
        (tmp_path / name).mkdir()
        write(made, columns, tmp_path / name, block=size)
    contents = [{p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("one", "other")]
    assert contents[0] == contents[1]


def test_a_sample_above_the_limit_has_a_shard_of_its_own(tmp_path: Path) -> None:
    made = made_up_rows(3, count=4)
    columns = columns_for(made, padded=True)
    shards = write(made, columns, tmp_path, limit=10)
    assert [shard.samples for shard in shards] == [1, 1, 1, 1]
    assert_same(read_mds(tmp_path), arrays_of(made, columns))


def test_no_rows_make_no_shard(tmp_path: Path) -> None:
    made = made_up_rows(3, count=0)
    assert write(made, columns_for(made, padded=True), tmp_path) == []
    assert read_mds(tmp_path) == []


def test_a_shard_is_described_as_it_is(tmp_path: Path) -> None:
    made = made_up_rows(3, count=5)
    (shard,) = write(made, columns_for(made, padded=True), tmp_path, limit=1 << 20)
    content = Path(shard.path).read_bytes()
    assert shard == MdsShard(
        path=str(tmp_path / "rows.00000.mds"), size=len(content), sha256=hashlib.sha256(content).hexdigest(), samples=5
    )


def test_without_checksum_there_is_no_hash(tmp_path: Path) -> None:
    made = made_up_rows(3, count=5)
    columns = columns_for(made, padded=True)
    width = made.masking.max_seq_length
    (shard,) = write_mds(str(tmp_path / "x"), blocks_of(made.rows, 2), columns, SPECIAL_IDS, width, checksum=False)
    assert shard.sha256 is None
    entry = mds_shard_entry(columns, "x.00000.mds", shard.size, None, 5)
    (tmp_path / "index.json").write_bytes(mds_index([entry]))
    assert (entry["hashes"], entry["raw_data"]["hashes"], entry["size_limit"]) == ([], {}, 1 << 26)
    assert_same(read_mds(tmp_path), arrays_of(made, columns))


@pytest.mark.parametrize("length", [1, 255, 256, 65_535, 65_536])
def test_a_length_has_the_smallest_type_that_fits(length: int) -> None:
    values = np.arange(length, dtype=np.uint16)
    size = int(part_sizes(np.array([length]), 2)[0])
    sample = np.zeros(4 + size, np.uint8)
    ends = np.array([4])
    kernels.put_column(values.view(np.uint8), 2, np.array([0, length]), 0, np.array([0]), ends, sample)
    code = 0 if length < 256 else 1 if length < 65_536 else 2
    head = bytes([4 + code]) + length.to_bytes(1 << code, "little")
    assert sample.tobytes() == size.to_bytes(4, "little") + head + values.tobytes()
    assert ends.tolist() == [len(sample)]


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    made = made_up_rows(3, count=500)
    with full_disk(10_000), pytest.raises(RunFailedError, match="cannot be written"):
        write(made, columns_for(made, padded=True), tmp_path, limit=1 << 20)
    assert list(tmp_path.iterdir()) == []
