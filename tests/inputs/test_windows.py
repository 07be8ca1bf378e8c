"""The sliding window: every byte in order, with its place in the source, whatever chunks it arrives in."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.dump_files import tiny_blocks
from made_up.input_files import write_file
from properties import WITH_FOLDER, tries

from maskmill.inputs.sources import END_OF_FILE, TOO_LARGE, Source, Window

LINE_END = re.compile(rb"\r?\n")
MARK = re.compile(rb"<>")


def beginning_of_mark(data: bytes) -> int:
    return len(data) - 1


def test_it_slides_over_all_bytes(tmp_path: Path) -> None:
    text = bytes(range(256)) * 4
    path = write_file(tmp_path, tiny_blocks(100)(text))
    with Source(path, "bz2", 0, Path(path).stat().st_size) as source:
        window = Window(source, b"##")
        assert window.data == b"##"
        assert window.slide(0)
        assert window.data == b"##" + text[:100]
        assert window.slide(102)
        assert window.data == text[100:200]
        assert window.slide(10)  # at least as much is read as is kept
        assert window.data == text[110:300]
        while window.slide(0):
            pass
        assert window.data == text[110:]
        assert not window.slide(900)
        assert window.data == text[1010:]


def test_it_knows_which_bytes_the_range_owns(tmp_path: Path) -> None:
    path = write_file(tmp_path, b"0123456789")
    with Source(path, "plain", 2, 7) as source:
        window = Window(source, b"\n")
        assert window.slide(0)
        assert window.data == b"\n23456789"
        assert [window.is_own(k) for k in (0, 1, 5, 6, 8)] == [True, True, True, False, False]
        window.cut(2, 4)
        assert window.data == b"\n256789"
        assert [window.is_own(window.data.index(byte)) for byte in b"67"] == [True, False]


@pytest.mark.parametrize(
    ("text", "largest", "line"),
    [
        (b"one\ntwo", 10, b"one"),
        (b"one\r\ntwo", 10, b"one"),
        (b"one", 10, END_OF_FILE),
        (b"1234567890\n", 10, b"1234567890"),
        (b"12345678901\n", 10, TOO_LARGE),
        (b"12345678901", 10, TOO_LARGE),
        (b"x" * 50 + b"\r\n", 60, b"x" * 50),
    ],
)
@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
def test_it_finds_the_end_of_a_record(text: bytes, largest: int, line: bytes | int, chunk: int, tmp_path: Path) -> None:
    path = write_file(tmp_path, tiny_blocks(chunk)(b"before " + text))
    with Source(path, "bz2", 0, Path(path).stat().st_size) as source:
        window = Window(source)
        while len(window.data) < 7:
            assert window.slide(0)
        end, start = window.find_end(7, LINE_END, unsure=beginning_of_mark, largest=largest)
        assert (window.data[start:end] if end >= 0 else end) == line
        if end >= 0:
            assert LINE_END.match(window.data, end)


@tries(60, **WITH_FOLDER)
@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 12))
def test_lines_of_any_length_in_chunks_of_any_size(tmp_path: Path, lengths: list[int], chunk: int) -> None:
    lines = [b"x" * length for length in lengths]
    path = write_file(tmp_path, tiny_blocks(chunk)(b"<>" + b"".join(line + b"<>" for line in lines)))
    found = []
    with Source(path, "bz2", 0, Path(path).stat().st_size) as source:
        window = Window(source)
        assert window.slide(0)
        end, start = window.find_end(0, MARK, unsure=beginning_of_mark, largest=100)
        while end != END_OF_FILE:
            found.append(window.data[start + 2 : end])
            end, start = window.find_end(end, MARK, unsure=beginning_of_mark, largest=100)
    assert found == lines
