"""Data sets in Parquet, as records/parquet.py writes them, read block by block; the rows are the plain oracle's."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.parquet
import pytest
from data_sets.row_blocks import SPECIAL_IDS, arrays_of, blocks_of, columns_for
from hypothesis import given
from hypothesis import strategies as st
from made_up.rows import MadeUpRows, made_up_rows
from properties import SEEDED, tries

import maskmill
from maskmill.reading import parquet_files
from maskmill.reading.block_reader import Block, DamagedBlockError, Rows
from maskmill.reading.byte_ranges import LocalRanges
from maskmill.reading.data_set import DataFile, DataSet, ReadColumn
from maskmill.reading.parquet import ParquetReader
from maskmill.records import parquet
from maskmill.records.columns import Column
from maskmill.records.parquet import schema_of, sealed_writer, write_parquet

NOTHING = 77  # stands in rows that nobody has written
VERSION_2 = Path(__file__).parents[1] / "data" / "parquet-2"


def write(made: MadeUpRows, columns: tuple[Column, ...], path: Path) -> DataFile:
    """Writes a file."""
    width = made.masking.max_seq_length
    write_parquet(str(path), blocks_of(made.rows, 64), columns, SPECIAL_IDS, width, checksum=False)
    return data_file(path, len(made.rows.lengths), width)


def data_file(path: Path, samples: int, width: int) -> DataFile:
    return DataFile(path=str(path), samples=samples, size=None, sha256=None, index=None, width=width)


def read_column(column: Column, width: int, pad_id: int) -> ReadColumn:
    """A column as it is read."""
    fills = {"cu_seqlens": None, "input_ids": pad_id, "special_tokens_mask": 1}
    return ReadColumn(
        name=column.name,
        feature=column.feature,
        width=width + 1 if column.length is None else column.length,
        varies=column.length is None,
        dtype=column.dtype,
        fill=fills.get(column.feature, 0),
        low=0,
        high=column.largest,
    )


def data_set(files: list[DataFile], columns: tuple[ReadColumn, ...]) -> DataSet:
    return DataSet(
        path="made up",
        format="parquet",
        files=tuple(files),
        columns=columns,
        width=max(file.width for file in files),
        fingerprint="",
        vocabulary_size=None,
        special_ids={},
        packed=False,
        mask_rules=None,
        predictions=0,
    )


def rows_for(columns: tuple[ReadColumn, ...], count: int) -> Rows:
    rows = Rows(columns, count)
    for array in rows.arrays.values():
        array.fill(NOTHING)
    return rows


def read_block(
    reader: ParquetReader, columns: tuple[ReadColumn, ...], block: Block, wanted: npt.NDArray[np.int64]
) -> Rows:
    """The wanted rows of a block, written in reverse order behind an empty row."""
    rows = rows_for(columns, len(wanted) + 1)
    reader.decode(reader.fetch(block), block, wanted, np.arange(len(wanted), 0, -1), rows)
    return rows


def read_all(reader: ParquetReader, files: list[DataFile], columns: tuple[ReadColumn, ...]) -> dict[str, Any]:
    """All rows of all files in their order."""
    found: dict[str, list[npt.NDArray[Any]]] = {column.feature: [] for column in columns}
    for number, file in enumerate(files):
        for first in range(0, file.samples, reader.block_samples):
            block = Block(number, first, min(reader.block_samples, file.samples - first))
            rows = read_block(reader, columns, block, np.arange(block.count))
            for feature, array in rows.arrays.items():
                found[feature].append(array[:0:-1])
    return {feature: np.concatenate(arrays) for feature, arrays in found.items()}


def assert_rows(
    rows: Rows, columns: tuple[ReadColumn, ...], expected: list[dict[str, npt.NDArray[Any]]], places: list[int]
) -> None:
    """Holds rows, from the second on in reverse order, against those of the oracle at some places."""
    for column in columns:
        array = rows.arrays[column.feature]
        assert (array[0] == NOTHING).all()
        for row, place in zip(array[:0:-1], places, strict=True):
            values = expected[place][column.name]
            np.testing.assert_array_equal(row[: len(values)], values)
            assert (row[len(values) :] == (values[-1] if column.fill is None else column.fill)).all()
        if column.varies:
            lengths = [len(expected[place][column.name]) for place in places]
            assert rows.counts[column.feature][:0:-1].tolist() == lengths


@given(seed=st.integers(0, 2**32))
@tries(40, **SEEDED)
def test_any_rows_of_any_block_are_those_that_were_written(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("written") / "rows.parquet"
    made = made_up_rows(seed, count=int(rng.integers(1, 60)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_GROUP_ROWS", int(rng.choice([1, 8, 1000])))
        patch.setattr(parquet_files, "_END_BYTES", int(rng.choice([8, 100, 1 << 16])))
        stored = columns_for(made, padded=bool(rng.integers(2)))
        file = write(made, stored, path)
        # Some columns in some order; the file may lack those that are optional.
        columns = tuple(read_column(column, file.width, made.pad_id) for column in stored)
        columns = tuple(columns[n] for n in rng.permutation(len(columns))[: rng.integers(1, len(columns) + 1)])
        reader = ParquetReader(data_set([file], columns), LocalRanges())
    expected = arrays_of(made, stored)
    for first in range(0, file.samples, reader.block_samples):
        block = Block(0, first, min(reader.block_samples, file.samples - first))
        wanted = np.flatnonzero(rng.random(block.count) < rng.choice([0, 0.3, 1]))
        rows = read_block(reader, columns, block, wanted)
        assert_rows(rows, columns, expected, (wanted + first).tolist())


def one_column(path: Path, rows: list[Any], largest: int | None = 99) -> DataFile:
    """A file with the column `ids`, of as many values a row as there are, in row groups of 4."""
    schema = schema_of([Column(name="ids", feature="ids", length=None, largest=largest)])
    with path.open("wb") as file, sealed_writer(file, schema) as writer:
        for first in range(0, len(rows), 4):
            writer.write(pyarrow.table({"ids": rows[first : first + 4]}, schema))
    return data_file(path, len(rows), 3)


IDS = ReadColumn(name="ids", feature="ids", width=3, varies=True, dtype=np.dtype(np.uint8), low=0, high=99)


def read_ids(files: list[DataFile], column: ReadColumn = IDS) -> list[list[float]]:
    """The values of the rows of such files."""
    reader = ParquetReader(data_set(files, (column,)), LocalRanges())
    rows: list[list[float]] = read_all(reader, files, (column,))[column.feature].tolist()
    return rows


def test_blocks_may_span_row_groups_and_end_within_one(tmp_path: Path) -> None:
    # The files of a narrow bin have larger groups: blocks of 4 span them in the other file.
    rows = [[n, n + 1, n + 2] for n in range(11)]
    files = [one_column(tmp_path / "a", rows), one_column(tmp_path / "b", rows[:7])]
    reader = ParquetReader(data_set(files, (IDS,)), LocalRanges())
    assert reader.block_samples == 4
    for block, groups in ((Block(0, 3, 2), 2), (Block(0, 2, 8), 3), (Block(1, 4, 3), 1)):
        fetched = reader.fetch(block)
        assert len(fetched) == groups
        found = rows_for((IDS,), block.count)
        reader.decode(fetched, block, np.arange(block.count), np.arange(block.count), found)
        assert found.arrays["ids"].tolist() == rows[block.first : block.first + block.count]


def test_blocks_are_those_of_the_largest_bin(tmp_path: Path) -> None:
    wide, narrow = one_column(tmp_path / "a", [[1]] * 3), one_column(tmp_path / "b", [[1]] * 9)
    files = [wide, dataclasses.replace(narrow, width=2)]
    assert ParquetReader(data_set(files, (IDS,)), LocalRanges()).block_samples == 4


def test_a_first_file_that_is_smaller_than_a_group_does_not_decide_the_blocks(tmp_path: Path) -> None:
    files = [one_column(tmp_path / "a", [[1]] * 2), one_column(tmp_path / "b", [[1]] * 9)]
    assert ParquetReader(data_set(files, (IDS,)), LocalRanges()).block_samples == 4


@pytest.mark.parametrize("largest", [99, 300, 70_000], ids=["uint8", "uint16", "int32"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
def test_values_become_the_type_of_the_column(dtype: Any, largest: int, tmp_path: Path) -> None:
    """Data sets that are mixed have columns of one type."""
    file = one_column(tmp_path / "a", [[1, 2], [99, 98, 97], []], largest)
    column = dataclasses.replace(IDS, dtype=np.dtype(dtype), high=None)
    assert read_ids([file], column) == [[1, 2, 0], [99, 98, 97], [0, 0, 0]]


def test_a_column_that_is_missing_is_zeros_where_it_is_optional(tmp_path: Path) -> None:
    file = one_column(tmp_path / "a", [[1, 2], [3]])
    other = dataclasses.replace(IDS, name="others", feature="others", optional=True)
    reader = ParquetReader(data_set([file], (other, IDS)), LocalRanges())
    rows = read_block(reader, (other, IDS), Block(0, 0, 2), np.arange(2))
    assert rows.arrays["others"].tolist() == [[NOTHING] * 3, [0] * 3, [0] * 3]
    assert rows.counts["others"].tolist() == [0, 0, 0]
    assert rows.arrays["ids"].tolist() == [[NOTHING] * 3, [3, 0, 0], [1, 2, 0]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "other"}, "rows.parquet: the column other is missing; make the file again."),
        (
            {"dtype": np.dtype(np.float32)},
            "rows.parquet: the column ids has integers, but it must have floats.",
        ),
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
        read_ids([file], dataclasses.replace(IDS, **changes))
    assert str(failed.value) == f"{tmp_path}/{message}"


def test_values_beyond_the_type_in_memory_are_named(tmp_path: Path) -> None:
    file = one_column(tmp_path / "a", [[70_000]], 70_000)
    with pytest.raises(DamagedBlockError, match="record 1: ids is 70000, but it must be from 0 to 65535"):
        read_ids([file], dataclasses.replace(IDS, dtype=np.dtype(np.uint16), high=None))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_floats_that_are_not_allowed_are_named(value: float, tmp_path: Path) -> None:
    file = one_column(tmp_path / "a", [[1], [value]], None)
    floats = dataclasses.replace(IDS, width=1, varies=False, dtype=np.dtype(np.float32), high=3e38)
    with pytest.raises(DamagedBlockError, match=f"record 2: ids is {value}, but it must be"):
        read_ids([file], floats)
    anything = read_ids([file], dataclasses.replace(floats, low=None, high=None))
    np.testing.assert_array_equal(anything, [[1], [value]])


def test_a_file_with_other_rows_than_the_manifest_says_is_named(tmp_path: Path) -> None:
    file = dataclasses.replace(one_column(tmp_path / "a", [[1]] * 5), samples=6)
    with pytest.raises(DamagedBlockError, match=r"a: this file has 5 examples, but the manifest says 6; make or fetch"):
        read_ids([file])


def test_a_file_of_another_writer_is_read(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"ids": [[1], [2, 3]]}), tmp_path / "a", compression="zstd")
    assert [row[:2] for row in read_ids([data_file(tmp_path / "a", 2, 1)])] == [[1, 0], [2, 3]]


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
        read_ids([data_file(tmp_path / "a", 2, 1)])


def test_what_is_kept_of_a_file_is_forgotten(tmp_path: Path) -> None:
    file = one_column(tmp_path / "a", [[1]] * 5)
    ranges = LocalRanges()
    reader = ParquetReader(data_set([file], (IDS,)), ranges)
    one_column(tmp_path / "a", [[2]] * 4 + [[3, 3]])
    ranges.stamps.clear()  # as if the file had not been looked at
    block = Block(0, 4, 1)
    assert reader.forget(block) is False  # a local file is read as it is
    assert read_block(reader, (IDS,), block, np.arange(1)).arrays["ids"][1].tolist() == [3, 3, 0]


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
    assert ParquetReader(data_set([file], (IDS,)), DamagedAtFirst()).block_samples == 4
    (tmp_path / "a").write_bytes(b"PAR1, but no more")
    with pytest.raises(DamagedBlockError, match="a: the Parquet data is damaged or cut off"):
        ParquetReader(data_set([file], (IDS,)), DamagedAtFirst())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[DataFile, bytes, list[list[float]]]:
    """A file with several row groups, its bytes and its rows."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("whole") / "rows.parquet"
    rows = [rng.integers(0, 100, rng.integers(0, 4)).tolist() for _ in range(60)]
    file = one_column(path, rows)
    return file, path.read_bytes(), read_ids([file])


@given(seed=st.integers(0, 2**32))
@tries(100, **SEEDED)
def test_every_bit_of_a_file_counts(seed: int, whole: Any) -> None:
    file, content, _ = whole
    rng = np.random.default_rng(seed)
    damaged = bytearray(content)
    at = int(rng.integers(len(content)))
    if rng.integers(4):
        damaged[at] ^= 1 << int(rng.integers(8))
    else:
        del damaged[at : at + int(rng.integers(1, 1000))]
    Path(file.path).write_bytes(damaged)
    with pytest.raises(DamagedBlockError, match=f"^{file.path}: .*make or fetch [^\n]*$"):
        read_ids([file])


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
