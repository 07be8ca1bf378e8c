"""Parquet: every row once, whatever the cuts between row groups; bad files in one sentence."""

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pyarrow
import pyarrow.parquet
import pytest
from made_up.input_files import READING, record, write_file

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.inputs import parquet
from maskmill.inputs.items import NOT_UTF8, RejectedPage
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.units import plan_units, read_unit
from maskmill.reading import parquet_process
from maskmill.storage import files


def write_parquet(folder: Path, columns: dict[str, Any], **options: object) -> str:
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
    assert found == [record(str(text), str(k)) for k, text in enumerate(texts)]


def test_a_column_that_is_missing_or_holds_something_else_is_one_sentence(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"body": ["a", None], "number": [1, 2], "share": [0.5, 1.5]})
    columns = r"its columns are body \(string\), number \(int64\), share \(double\)\."
    for reading, sentence in (
        (READING, 'there is no column "text"; name one with --text_column; '),
        (ReadOptions(text_column="number"), 'the column "number" holds int64 values, not text; name another with '),
        (ReadOptions(text_column="body", id_column="x"), 'there is no column "x"; name one with --id_column; '),
        (
            ReadOptions(text_column="body", id_column="share"),
            'the column "share" holds double values, not text or whole numbers; name another with --id_column; ',
        ),
    ):
        with pytest.raises(UnusableInputError, match=rf"x\.parquet: {sentence}.*{columns}"):
            plan_units(files.match(path), reading=reading)
        (unit,) = plan_units(files.match(path))
        with pytest.raises(UnusableInputError, match=sentence):
            list(read_unit(unit, reading))
    found = list(read_unit(unit, ReadOptions(text_column="body")))
    assert found == [record("a"), RejectedPage(title="{'body': None}", reason='the column "body" is no text')]


@pytest.mark.parametrize("kind", [pyarrow.large_string(), pyarrow.string_view(), pyarrow.dictionary("int8", "string")])
def test_every_kind_of_text_is_read(kind: pyarrow.DataType, tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"text": pyarrow.array(["a", "b", "a"]).cast(kind)})
    assert read(path) == [record(text) for text in "aba"]


def read(path: str, reading: ReadOptions = READING) -> list[object]:
    return [item for unit in plan_units(files.match(path)) for item in read_unit(unit, reading)]


def test_text_that_is_not_utf8_is_rejected_as_in_every_format(tmp_path: Path) -> None:
    texts = pyarrow.array([b"good", b"b\xffd", None, b"fine"], pyarrow.binary())
    path = write_parquet(
        tmp_path, {"text": pyarrow.StringArray.from_buffers(4, *texts.buffers()[1:], texts.buffers()[0])}
    )
    assert read(path) == [
        record("good"),
        RejectedPage(title="b\ufffdd", reason=NOT_UTF8),
        RejectedPage(title="{'text': None}", reason='the column "text" is no text'),
        record("fine"),
    ]


def test_a_document_that_is_too_large_is_rejected(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"text": ["x" * 100, "y" * 101, "z"]})
    assert read(path, ReadOptions(largest_page=100)) == [
        record("x" * 100),
        RejectedPage(title="y" * 60, reason="the document is larger than 100 bytes"),
        record("z"),
    ]


def test_damage_is_one_sentence(tmp_path: Path) -> None:
    content = Path(write_parquet(tmp_path, {"text": ["a", None]})).read_bytes()
    sentence = (
        r"x\.parquet: the Parquet data{} is damaged or cut off \(.*\); make or fetch the file again, for nothing can be"
    )
    with pytest.raises(UnusableInputError, match=sentence.format("")):
        plan_units(files.match(write_file(tmp_path, content[:-20], "x.parquet")))
    damaged = write_file(tmp_path, b"PAR1" + b"\0" * 40 + content[44:], "x.parquet")
    with pytest.raises(UnusableInputError, match=sentence.format(" of row group 0")):
        read(damaged)


def processes() -> list[psutil.Process]:
    return [p for p in psutil.Process().children() if any("parquet_process" in part for part in p.cmdline())]


@pytest.fixture
def no_processes() -> None:
    parquet_process._kill_idle_processes()
    assert processes() == []


@pytest.mark.usefixtures("no_processes")
def test_one_process_reads_one_file_after_another(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"text": ["a", "b"]})
    assert read(path) == [record("a"), record("b")]
    (process,) = processes()
    assert len(read(path)) == 2
    assert processes() == [process]
    process.kill()
    process.wait()
    assert len(read(path)) == 2


@pytest.mark.usefixtures("no_processes")
def test_a_reader_that_stops_early_leaves_no_process(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"text": ["a", "b"]})
    items = parquet.read_documents(path, 0, files.size(path), READING)
    assert next(items) == record("a")
    items.close()
    assert processes() == []


@pytest.mark.usefixtures("no_processes")
@pytest.mark.parametrize(
    ("signal_number", "error", "sentence"),
    [
        (signal.SIGABRT, UnusableInputError, r"the Parquet data is damaged: reading it crashed a process \(SIGABRT\)"),
        (
            signal.SIGSEGV,
            UnusableInputError,
            r"reading it crashed a process \(SIGSEGV\); make or fetch the file again\.",
        ),
        (signal.SIGKILL, RunFailedError, r"something killed the process that reads this file \(SIGKILL\), often for"),
    ],
)
def test_a_crash_of_the_process_is_one_sentence(
    signal_number: signal.Signals, error: type[Exception], sentence: str, tmp_path: Path
) -> None:
    texts: list[object] = ["text " * 100] * 20_000  # more than the pipe holds
    path = write_parquet(tmp_path, {"text": texts})
    items = parquet.read_documents(path, 0, files.size(path), READING)
    next(items)
    (process,) = processes()
    process.send_signal(signal_number)
    with pytest.raises(error, match=rf"x\.parquet: .*{sentence}"):
        list(items)
    assert processes() == []


def test_a_file_that_loses_its_end_meanwhile_is_damaged(tmp_path: Path) -> None:
    texts: list[object] = ["text " * 100] * 20_000
    path = write_parquet(tmp_path, {"text": texts}, use_dictionary=False, compression="none", row_group_size=1000)
    items = parquet.read_documents(path, 0, files.size(path), READING)
    next(items)
    os.truncate(path, 1 << 20)
    with pytest.raises(
        UnusableInputError, match=r"x\.parquet: the Parquet data of row group \d+ is damaged or cut off"
    ):
        list(items)
