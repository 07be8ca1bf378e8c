"""Data sets in Parquet, as records/parquet.py writes them, read block by block; the rows are the plain oracle's."""

import dataclasses
import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.parquet
import pytest
from data_sets.full_disk import full_disk
from data_sets.read_blocks import assert_any_part, assert_row, data_set_of, empty_rows, read_all, read_columns
from data_sets.row_blocks import SPECIAL_IDS, arrays_of, blocks_of, columns_for
from hypothesis import given
from hypothesis import strategies as st
from made_up.rows import made_up_rows
from properties import SEEDED, tries

import maskmill
from maskmill.errors import RunFailedError
from maskmill.reading import parquet_files
from maskmill.reading.block_reader import Block, DamagedBlockError
from maskmill.reading.byte_ranges import LocalRanges
from maskmill.reading.data_set import DataSet, ReadColumn
from maskmill.reading.parquet import ParquetReader
from maskmill.records import parquet
from maskmill.records.columns import Column
from maskmill.records.parquet import SealedWriter, schema_of, write_parquet

VERSION_2 = Path(__file__).parents[1] / "data" / "parquet-2"


def parquet_of(files: dict[str, int], columns: Sequence[ReadColumn]) -> tuple[DataSet, ParquetReader]:
    data_set = data_set_of(files, columns, format="parquet")
    return data_set, ParquetReader(data_set, LocalRanges())


@given(seed=st.integers(0, 2**32))
@tries(40, **SEEDED)
def test_any_rows_of_any_block_are_those_that_were_written(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    draw = random.Random(seed)
    path = str(tmp_path_factory.mktemp("written") / "rows.parquet")
    made = made_up_rows(seed, count=draw.randint(1, 60))
    stored = columns_for(made, padded=draw.random() < 0.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_GROUP_ROWS", draw.choice([1, 8, 1000]))
        patch.setattr(parquet_files, "_END_BYTES", draw.choice([8, 100, 1 << 16]))
        width = made.masking.max_seq_length
        write_parquet(path, blocks_of(made.rows, 64), stored, SPECIAL_IDS, width, checksum=False)
        # Some columns in some order; the file may lack those that are optional.
        columns = draw.sample(read_columns(stored, made), draw.randint(1, len(stored)))
        data_set, reader = parquet_of({path: len(made.rows.lengths)}, columns)
    expected = arrays_of(made, stored)
    for _ in range(3):
        assert_any_part(draw, reader, data_set, lambda n: expected[n])


def one_column(path: Path, rows: list[Any], largest: int | None = 99) -> dict[str, int]:
    """A file with the column `ids`, of as many values a row as there are, in row groups of 4; its number of rows."""
    schema = schema_of([Column(name="ids", feature="ids", length=None, largest=largest)])
    writer = SealedWriter(schema)
    groups = [pyarrow.table({"ids": rows[first : first + 4]}, schema) for first in range(0, len(rows), 4)]
    path.write_bytes(b"".join(map(writer.group, groups)) + writer.end())
    return {str(path): len(rows)}


IDS = ReadColumn(name="ids", feature="ids", width=3, varies=True, dtype=np.dtype(np.uint8), low=0, high=99)


def read_ids(files: dict[str, int], column: ReadColumn = IDS) -> list[list[float]]:
    """The values of the rows of such files."""
    data_set, reader = parquet_of(files, [column])
    rows: list[list[float]] = read_all(reader, data_set).arrays[column.feature].tolist()
    return rows


def test_blocks_may_span_row_groups_and_end_within_one(tmp_path: Path) -> None:
    # The files of a narrow bin have larger groups: blocks of 4 span them in the other file.
    rows = [[n, n + 1, n + 2] for n in range(11)]
    _, reader = parquet_of(one_column(tmp_path / "a", rows) | one_column(tmp_path / "b", rows[:7]), [IDS])
    assert reader.block_samples == 4
    for block, groups in ((Block(0, 3, 2), 2), (Block(0, 2, 8), 3), (Block(1, 4, 3), 1)):
        fetched = reader.fetch(block)
        assert len(fetched) == groups
        found = empty_rows([IDS], block.count)
        reader.decode(fetched, block, np.arange(block.count), np.arange(block.count), found)
        assert found.arrays["ids"].tolist() == rows[block.first : block.first + block.count]


@pytest.mark.parametrize(("first", "width"), [(3, 2), (2, 8)], ids=["the largest bin", "a first file below a group"])
def test_blocks_are_those_of_the_largest_bin_and_of_a_whole_group(first: int, width: int, tmp_path: Path) -> None:
    files = one_column(tmp_path / "a", [[1]] * first) | one_column(tmp_path / "b", [[1]] * 9)
    data_set, _ = parquet_of(files, [IDS])
    one, other = data_set.files
    data_set = dataclasses.replace(data_set, files=(one, dataclasses.replace(other, width=width)))
    assert ParquetReader(data_set, LocalRanges()).block_samples == 4


@pytest.mark.parametrize("largest", [99, 300, 70_000], ids=["uint8", "uint16", "int32"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
def test_values_become_the_type_of_the_column(dtype: Any, largest: int, tmp_path: Path) -> None:
    """Data sets that are mixed have columns of one type."""
    files = one_column(tmp_path / "a", [[1, 2], [99, 98, 97], []], largest)
    column = dataclasses.replace(IDS, dtype=np.dtype(dtype), high=None)
    assert read_ids(files, column) == [[1, 2, 0], [99, 98, 97], [0, 0, 0]]


def test_a_column_that_is_missing_is_zeros_where_it_is_optional(tmp_path: Path) -> None:
    other = dataclasses.replace(IDS, name="others", feature="others", optional=True)
    data_set, reader = parquet_of(one_column(tmp_path / "a", [[1, 2], [3]]), [other, IDS])
    rows = read_all(reader, data_set)
    for n, ids in enumerate(([1, 2], [3])):
        assert_row(data_set.columns, rows, n, {"others": [], "ids": ids})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "other"}, "rows.parquet: the column other is missing; make the file again."),
        ({"dtype": np.dtype(np.float32)}, "rows.parquet: the column ids has integers, but it must have floats."),
        ({"width": 2}, "rows.parquet, record 6: ids has length 3, but it must be at most 2."),
        ({"varies": False}, "rows.parquet, record 1: ids has length 1, but it must be 3."),
        (
            {"high": 69, "meaning": "from 0 to 69: the model has 70 pieces"},
            "rows.parquet, record 6: ids is 70, but it must be from 0 to 69: the model has 70 pieces.",
        ),
        ({"low": 1, "high": None}, "rows.parquet, record 3: ids is 0, but it must be from 1 to 255."),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_rows_that_are_not_what_the_column_says_are_named(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file = one_column(tmp_path / "rows.parquet", [[1], [2], [0], [4], [5], [6, 70, 1], [7]])
    with pytest.raises(DamagedBlockError) as failed:
        read_ids(file, dataclasses.replace(IDS, **changes))
    assert str(failed.value) == f"{tmp_path}/{message}"


def test_values_beyond_the_type_in_memory_are_named(tmp_path: Path) -> None:
    file = one_column(tmp_path / "a", [[70_000]], 70_000)
    with pytest.raises(DamagedBlockError, match="record 1: ids is 70000, but it must be from 0 to 65535"):
        read_ids(file, dataclasses.replace(IDS, dtype=np.dtype(np.uint16), high=None))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_floats_that_are_not_allowed_are_named(value: float, tmp_path: Path) -> None:
    file = one_column(tmp_path / "a", [[1], [value]], None)
    floats = dataclasses.replace(IDS, width=1, varies=False, dtype=np.dtype(np.float32), high=3e38)
    with pytest.raises(DamagedBlockError, match=f"record 2: ids is {value}, but it must be"):
        read_ids(file, floats)
    anything = read_ids(file, dataclasses.replace(floats, low=None, high=None))
    np.testing.assert_array_equal(anything, [[1], [value]])


def test_a_file_with_other_rows_than_the_manifest_says_is_named(tmp_path: Path) -> None:
    file = dict.fromkeys(one_column(tmp_path / "a", [[1]] * 5), 6)
    with pytest.raises(DamagedBlockError, match=r"a: this file has 5 examples, but the manifest says 6; make or fetch"):
        read_ids(file)


@pytest.mark.parametrize("kind", [pyarrow.list_, pyarrow.large_list, lambda values: pyarrow.list_(values, 2)])
@pytest.mark.parametrize("values", [pyarrow.int64(), pyarrow.uint8()])
def test_a_file_of_another_writer_is_read(kind: Any, values: pyarrow.DataType, tmp_path: Path) -> None:
    rows = [[n % 99, n % 98] for n in range(1030)]  # of two blocks
    table = pyarrow.table({"others": rows, "ids": pyarrow.array(rows, kind(values))})
    pyarrow.parquet.write_table(table, tmp_path / "a", compression="zstd", row_group_size=700)
    assert [row[:2] for row in read_ids({str(tmp_path / "a"): 1030})] == rows
    assert ParquetReader.count_samples(str(tmp_path / "a"), LocalRanges()) == 1030
    assert "another program" in str(ParquetReader.why_unchecked(str(tmp_path / "a"), LocalRanges()))


def test_a_copy_without_room_is_one_sentence(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"ids": [[1], [2, 3]]}), tmp_path / "a")
    with (
        full_disk(100),
        pytest.raises(RunFailedError, match=r"a: this file has no checksums, and there is no room for"),
    ):
        read_ids({str(tmp_path / "a"): 2})


@pytest.mark.parametrize(
    ("ids", "why"),
    [
        ([1, 2], "the column ids has int64, but it must have lists of numbers"),
        ([["a"], ["b"]], "the column ids has list<.*string>, but it must have lists of numbers"),
        ([[1], None], "values of the column ids are missing"),
        ([[1.5], [2.5]], "the column ids has floats, but it must have integers"),
    ],
)
def test_a_file_of_another_writer_with_other_columns_is_refused(ids: list[object], why: str, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"ids": ids}), tmp_path / "a")
    with pytest.raises(DamagedBlockError, match=why):
        read_ids({str(tmp_path / "a"): 2})


def test_what_is_kept_of_a_file_is_forgotten(tmp_path: Path) -> None:
    data_set, reader = parquet_of(one_column(tmp_path / "a", [[1]] * 5), [IDS])
    one_column(tmp_path / "a", [[2]] * 4 + [[3, 3]])
    reader._ranges.stamps.clear()  # as if the file had not been looked at
    assert reader.forget(Block(0, 4, 1)) is False  # a local file is read as it is
    assert read_all(reader, data_set).arrays["ids"].tolist() == [[2, 0, 0]] * 4 + [[3, 3, 0]]


class DamagedAtFirst(LocalRanges):
    """Files that arrive damaged until they are fetched again."""

    def __init__(self) -> None:
        super().__init__()
        self.is_damaged = True

    def read(self, path: str, start: int, end: int) -> npt.NDArray[np.uint8]:
        data = super().read(path, start, end)
        data[-1] ^= self.is_damaged
        return data

    def forget(self, path: str) -> bool:
        was_damaged, self.is_damaged = self.is_damaged, False
        return was_damaged


def test_a_footer_that_arrives_damaged_is_fetched_again_at_the_start(tmp_path: Path) -> None:
    file = one_column(tmp_path / "a", [[1]] * 5)
    assert ParquetReader(data_set_of(file, [IDS]), DamagedAtFirst()).block_samples == 4
    (tmp_path / "a").write_bytes(b"PAR1, but no more")
    with pytest.raises(DamagedBlockError, match="a: the Parquet data is damaged or cut off"):
        ParquetReader(data_set_of(file, [IDS]), DamagedAtFirst())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with several row groups."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("whole") / "rows.parquet"
    one_column(path, [rng.integers(0, 100, rng.integers(0, 4)).tolist() for _ in range(60)])
    return path


@given(seed=st.integers(0, 2**32))
@tries(100, **SEEDED)
def test_every_bit_of_a_file_counts(seed: int, whole: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    damaged = bytearray(whole.read_bytes())
    at = int(rng.integers(len(damaged)))
    if rng.integers(4):
        damaged[at] ^= 1 << int(rng.integers(8))
    else:
        del damaged[at : at + int(rng.integers(1, 1000))]
    path = tmp_path / "rows.parquet"
    path.write_bytes(damaged)
    with pytest.raises(DamagedBlockError, match=f"^{path}: .*make or fetch [^\n]*$"):
        read_ids({str(path): 60})


def test_a_data_set_of_version_2_is_read_as_it_was() -> None:
    """maskmill wrote these pages itself, and had no seal; the digests are those of the batches that it read then."""
    for shuffle, digest in (
        (True, "c36878b34d0124fe21949377d8ac9ae33381c4f9f454006fee920c4dfe8d74fd"),
        (False, "7d65a2e78dc127be8bd7b7148d6094ae18785667253ca77c172b20bb4bfcc1f5"),
    ):
        digests = []
        for batch in maskmill.open(VERSION_2, batch_size=64, seed=3, shuffle=shuffle):
            content = b"".join(name.encode() + array.tobytes() for name, array in sorted(batch.items()))
            digests.append(hashlib.sha256(content).hexdigest()[:16])
        assert hashlib.sha256("".join(digests).encode()).hexdigest() == digest
