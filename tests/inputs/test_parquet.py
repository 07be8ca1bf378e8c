"""Parquet: every row once, whatever the cuts between row groups; bad files in one sentence."""

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from input_files import READING, document, write_file

from transforms.errors import RunFailedError, UnusableInputError
from transforms.inputs.documents import RejectedPage
from transforms.inputs.options import ReadOptions
from transforms.inputs.units import plan_units, read_unit
from transforms.storage import files


def write_parquet(folder: Path, columns: dict[str, list[object]], **options: object) -> str:
    path = folder / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    return str(path)


@pytest.mark.parametrize("unit_bytes", [1, 3000, 1 << 20])
@pytest.mark.parametrize("dictionary", [True, False])
def test_parquet_by_row_groups(unit_bytes: int, dictionary: bool, tmp_path: Path) -> None:
    texts: list[object] = [f"Text {k} " * (k % 9 + 1) for k in range(500)]
    ids: list[object] = list(range(500))
    path = write_parquet(tmp_path, {"id": ids, "text": texts}, row_group_size=60, use_dictionary=dictionary)
    units = plan_units(files.match(path), reading=READING, unit_bytes=unit_bytes)
    assert len(units) == {1: 9, 3000: len(units), 1 << 20: 1}[unit_bytes]
    assert [u.start for u in units] == [0, *(u.end for u in units[:-1])]
    reading = ReadOptions(id_column="id")
    found = [item for unit in units for item in read_unit(unit, reading)]
    assert found == [document(str(text), "", str(k)) for k, text in enumerate(texts)]


def test_bad_parquet(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"body": ["a", None], "number": [1, 2]})
    message = r'x\.parquet: there is no column "text"; its columns are body, number\.'
    with pytest.raises(UnusableInputError, match=message):
        plan_units(files.match(path), reading=READING)
    (unit,) = plan_units(files.match(path))
    with pytest.raises(UnusableInputError, match=message):
        list(read_unit(unit, READING))
    found = list(read_unit(unit, ReadOptions(text_column="body")))
    assert found[0] == document("a")
    assert found[1:] == [RejectedPage(title="{'body': None}", reason='the column "body" is no text')]
    assert [type(item) for item in read_unit(unit, ReadOptions(text_column="number"))] == [RejectedPage] * 2

    content = Path(path).read_bytes()
    with pytest.raises(UnusableInputError, match=r"x\.parquet: this Parquet file is damaged or cut off"):
        plan_units(files.match(write_file(tmp_path, content[:-20], "x.parquet")))
    damaged = write_file(tmp_path, b"PAR1" + b"\0" * 40 + content[44:], "x.parquet")
    (unit,) = plan_units(files.match(damaged))
    with pytest.raises(RunFailedError, match=r"x\.parquet: the Parquet data of row group 0 is damaged"):
        list(read_unit(unit, ReadOptions(text_column="body")))
