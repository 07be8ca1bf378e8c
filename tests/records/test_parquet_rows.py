"""Parquet files of rows, read by pyarrow. tests/records/test_readers.py reads them with other libraries."""

import hashlib
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from data_sets.row_blocks import SPECIAL_IDS, arrays_of, assert_same, blocks_of, columns_for
from made_up.rows import MadeUpRows, made_up_rows

from maskmill.records import parquet
from maskmill.records.columns import Column
from maskmill.records.parquet import write_parquet
from maskmill.records.tfrecord import WrittenFile


def write(made: MadeUpRows, columns: tuple[Column, ...], path: Path, *, block: int = 7) -> list[WrittenFile]:
    """Writes rows in blocks of `block` rows."""
    width = made.masking.max_seq_length
    return write_parquet(str(path), blocks_of(made.rows, block), columns, SPECIAL_IDS, width, checksum=True)


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file."""
    table = pyarrow.parquet.read_table(path, page_checksum_verification=True)
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    return [
        {name: column[n].values.to_numpy(zero_copy_only=False) for name, column in columns.items()}
        for n in range(len(table))
    ]


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_a_reader_finds_the_rows_again(
    seed: int, padded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 4)
    made = made_up_rows(seed)
    columns = columns_for(made, padded=padded)
    write(made, columns, tmp_path / "rows.parquet")
    assert_same(read(tmp_path / "rows.parquet"), arrays_of(made, columns))


@pytest.mark.parametrize("block", [1, 4, 5, 1000])
def test_bytes_do_not_depend_on_blocks(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 23)
    made = made_up_rows(5, count=50)
    columns = columns_for(made, padded=False)
    write(made, columns, tmp_path / "one", block=10)
    write(made, columns, tmp_path / "other", block=block)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    metadata = pyarrow.parquet.read_metadata(tmp_path / "one")
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [16, 16, 16, 2]


def test_a_row_group_has_a_bound_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_up_rows(3, count=50)
    columns = columns_for(made, padded=True)
    row_bytes = sum(a.nbytes for a in arrays_of(made, columns)[0].values() if a is not None)
    monkeypatch.setattr(parquet, "_GROUP_BYTES", row_bytes * 11)
    write(made, columns, tmp_path / "rows")
    metadata = pyarrow.parquet.read_metadata(tmp_path / "rows")
    assert metadata.row_group(0).num_rows == 8


def test_no_rows_make_a_file_without_rows(tmp_path: Path) -> None:
    made = made_up_rows(3, count=0)
    columns = columns_for(made, padded=True)
    write(made, columns, tmp_path / "rows")
    assert read(tmp_path / "rows") == []
    assert pyarrow.parquet.read_schema(tmp_path / "rows").names == [column.name for column in columns]


def test_a_file_is_described_as_it_is(tmp_path: Path) -> None:
    made = made_up_rows(3, count=5)
    path = tmp_path / "rows"
    written = write(made, columns_for(made, padded=True), path)
    content = path.read_bytes()
    assert written == [WrittenFile(path=str(path), size=len(content), sha256=hashlib.sha256(content).hexdigest())]
