"""JSON lines: every line once, whatever the cuts and the container."""

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.dump_files import CONTAINERS
from made_up.input_files import CUTTABLE, read_units, record, write_file
from properties import WITH_FOLDER, tries

from maskmill.errors import UnusableInputError
from maskmill.inputs.items import RejectedPage
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.units import plan_units
from maskmill.storage import files

records = st.lists(
    st.one_of(
        st.fixed_dictionaries({"text": st.text(max_size=40)}), st.just({"body": "x"}), st.just([1]), st.just(None)
    ),
    min_size=1,
    max_size=12,
)


@tries(150, **WITH_FOLDER)
@given(records, st.sampled_from(CUTTABLE), st.integers(1, 100), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_json_lines(tmp_path: Path, records: list[object], container: str, unit_bytes: int, end: str) -> None:
    raw = end.join(json.dumps(line) if line else "no JSON" for line in records)
    path = write_file(tmp_path, CONTAINERS[container](raw.encode()), "x.jsonl")
    found = read_units(path, unit_bytes, input_format="jsonl")
    assert len(found) == len(records)
    for item, line in zip(found, records, strict=True):
        text = line.get("text") if isinstance(line, dict) else None
        if text is not None and text.isprintable():
            assert item == record(text.replace("\r\n", "\n"))
        elif text is None:
            assert isinstance(item, RejectedPage)


def test_columns_of_json_lines(tmp_path: Path) -> None:
    """test_items.py has the other reasons for which a record is rejected."""
    lines = [{"body": "One.", "key": "a"}, {"body": "Two.", "key": 2}, {"body": None, "key": 4}]
    raw = "\ufeff" + "\n".join(map(json.dumps, lines)) + '\n{"body": \n[' + "[" * 100_000
    reading = ReadOptions(text_column="body", id_column="key")
    for pack in (bytes, gzip.compress, lzma.compress, bz2.compress):
        found = read_units(write_file(tmp_path, pack(raw.encode()), "x.jsonl"), reading=reading)
        assert found[:2] == [record("One.", "a"), record("Two.", "2")]
        reasons = [item.reason for item in found[2:] if isinstance(item, RejectedPage)]
        assert [reason.partition(" (")[0] for reason in reasons] == [
            'the column "body" is no text',
            *["the line is not JSON"] * 2,
        ]


def test_a_line_too_large_is_set_aside(tmp_path: Path) -> None:
    lines = [json.dumps({"text": text}) for text in ("a", "x" * 3_000_000, "b")]
    path = write_file(tmp_path, "\n".join(lines).encode(), "x.jsonl")
    first, large, last = read_units(path, reading=ReadOptions(largest_page=1 << 20))
    assert (first, last) == (record("a"), record("b"))
    assert isinstance(large, RejectedPage)
    assert large.reason == "the document is larger than 1,048,576 bytes"


def lines(*records: object) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            lines({"body": "a", "id": 1}, {"b": 2}),
            r'there is no column "text"; name one with --text_column; its columns are body, id, b\.',
        ),
        (
            lines({"text": 1, "id": 1}),
            r'the column "text" holds whole numbers, not text; name another with --text_column',
        ),
        (lines({"text": ["a"], "id": 1}, {"id": 2}), 'the column "text" holds lists, not text'),
        (lines({"text": {"en": "a"}, "id": 1}), 'the column "text" holds objects, not text'),
        (lines({"text": None, "id": 1}), r'the column "text" holds nothing \(null\), not text'),
        (lines({"text": "a", "key": 1}), r'there is no column "id"; name one with --id_column; .* text, key'),
        (lines({"text": "a", "id": 1.5}), 'the column "id" holds numbers, not text or whole numbers'),
        (lines({"text": "a", "id": True}), 'the column "id" holds true or false'),
        (lines({}), 'there is no column "text"; .* are none'),
        (b"Just text.\nMore.\n", "none of its first lines is a JSON object .* 'Just text.'.*--input_format text"),
    ],
)
def test_columns_that_no_line_has_are_seen_when_units_are_planned(content: bytes, message: str, tmp_path: Path) -> None:
    path = write_file(tmp_path, content, "x.jsonl")
    with pytest.raises(UnusableInputError, match=message):
        plan_units(files.match(path), input_format="jsonl", reading=ReadOptions(id_column="id"))


def test_a_single_bad_line_is_left_to_the_reader(tmp_path: Path) -> None:
    content = b"no JSON\n" + lines({"body": "a"}, {"text": None, "id": 1}, {"text": "a", "id": 1})
    path = write_file(tmp_path, content, "x.jsonl")
    assert plan_units(files.match(path), reading=ReadOptions(id_column="id"))
    long = lines(*[{"text": None, "id": 1}] * 60_000, {"text": "a", "id": 1})
    assert plan_units(files.match(write_file(tmp_path, long, "x.jsonl")), reading=ReadOptions(id_column="id"))
