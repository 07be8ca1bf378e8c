"""Plain text: every document once, whatever the cuts, the container and the line ends; what becomes of characters."""

import re
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made_up.dump_files import CONTAINERS
from made_up.input_files import CUTTABLE, OTHERS, document, read_units, write_file
from properties import WITH_FOLDER, tries

from maskmill.inputs.items import Document, RejectedPage
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.plain_text import plain_text


def oracle(text: str) -> str:
    """What `plain_text` writes, character by character."""
    text = re.sub("\r?\r?\n", "\n", text)
    ends, spaces = "\n\r\v\f\x85\u2028\u2029", "\x1c\x1d\x1e\x1f"
    kept = (
        character for character in text if character in ends + spaces + "\t" or unicodedata.category(character) != "Cc"
    )
    return "".join("\n" if character in ends else " " if character in spaces else character for character in kept)


@tries(300)
@given(st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.characters(categories=["Cc", "Zl", "Zp"]))))
@example("the sun\rset on the note\rbook")
@example("\r\r\r\n\r")
@example("na\x00ive \x7f\x85 \u2028\u2029\u2027\u202a caf\u00e9\u00a0\u009f")
def test_a_text_has_one_kind_of_line_end_and_no_control_characters(text: str) -> None:
    assert plain_text(text.encode()).decode() == oracle(text)
    assert len(plain_text(text.encode()).decode().splitlines()) <= plain_text(text.encode()).count(b"\n") + 1


def split_at_blank_lines(text: bytes) -> list[object]:
    """The oracle: lines first, then documents."""
    documents: list[list[bytes]] = [[]]
    text = text.removeprefix(b"\xef\xbb\xbf")
    for line in re.split(rb"\r?\r?\n|\r", text):
        if line.decode().strip():
            documents[-1].append(line)
        else:
            documents.append([])
    found = [plain_text(b"\n".join(lines).strip()) for lines in documents]
    return [Document(document_id="", title=b"", text=text) for text in found if text]


BLANKS = [*"\x1c\x1f\x85\xa0\u1680\u2003\u2028\u202f\u205f", "\u3000\u3000", "\xa0 \u2009\t"]
PARTS = ["", "", " ", "\t\f", *BLANKS, "\u3000word", "\u200b", "\u3001", "\xc2", "a", "b b", "  word", "é", "x" * 30]
lines = st.lists(
    st.tuples(st.sampled_from(PARTS), st.sampled_from(["\n", "\n", "\r", "\r\n", "\r\r\n"])).map("".join), max_size=30
)


@tries(200, **WITH_FOLDER)
@given(lines.map("".join), st.sampled_from(CUTTABLE), st.integers(1, 60))
@example("a", "plain", 1)
@example("\n\na\n\n\n", "plain", 1)
@example("\ufeffa\n\nb", "plain", 1)
@example("\ufeff\n\nb", "tiny blocks", 1)
@example("a\r\r\rb\r\r\n\r\r\nc\r", "plain", 1)
def test_documents_between_blank_lines(tmp_path: Path, text: str, container: str, unit_bytes: int) -> None:
    if not text.strip():
        return
    path = write_file(tmp_path, CONTAINERS[container](text.encode()))
    assert read_units(path, unit_bytes, input_format="text") == split_at_blank_lines(text.encode())


@pytest.mark.parametrize("container", [*CUTTABLE, *OTHERS])
def test_text_in_every_container(container: str, tmp_path: Path) -> None:
    text = "\n\n".join(f"Document {k}.\nIts second line." * (k % 7) for k in range(200))
    path = write_file(tmp_path, CONTAINERS[container](text.encode()))
    for unit_bytes in (1000, 1 << 20):
        assert read_units(path, unit_bytes) == split_at_blank_lines(text.encode())


def test_every_line_of_which_strip_leaves_nothing_separates_documents(tmp_path: Path) -> None:
    for character in filter(str.isspace, map(chr, range(sys.maxunicode + 1))):
        path = write_file(tmp_path, f"a\n{character}\nb".encode())
        for unit_bytes in (1, 100):
            assert read_units(path, unit_bytes, input_format="text") == [document("a"), document("b")], character
    for character in "\u200b\u2060\ufeff\u3001\u180e":
        path = write_file(tmp_path, f"a\n{character}\nb".encode())
        assert read_units(path, input_format="text") == [document(f"a\n{character}\nb")]


@pytest.mark.parametrize("blank", ["\n", " \n", "\xa0\n", "\u3000\n", "\r\n"])
@pytest.mark.parametrize("container", ["plain", "bz2", "gz"])
def test_any_number_of_blank_lines_before_the_text_is_no_empty_file(blank: str, container: str, tmp_path: Path) -> None:
    path = write_file(tmp_path, CONTAINERS[container](blank.encode() * 300_000 + b"A text.\n\nAnother.\n"))
    assert read_units(path) == [document("A text."), document("Another.")]


@pytest.mark.parametrize("end", [b"\n", b"\r"])
def test_blank_lines_without_end(end: bytes, tmp_path: Path) -> None:
    text = b"a\n" + b" \n" * 2_000_000 + b"b\n" + b"\n" * 3_000_000 + b"c" + b" " * 2_000_000
    text = text.replace(b"\n", end)
    path = write_file(tmp_path, text)
    assert read_units(path, 300_000) == [document("a"), document("b"), document("c")]


def test_one_document_a_file(tmp_path: Path) -> None:
    reading = ReadOptions(text_documents="file")
    text = "\ufeffOne.\r\n\r\nTwo.\n\n"
    for container in (*CUTTABLE, *OTHERS):
        path = write_file(tmp_path, CONTAINERS[container](text.encode()), "My essay.txt.x")
        assert read_units(path, 3, reading, "text") == [document("One.\n\nTwo.", "My essay")]
    path = write_file(tmp_path, b"abc \xff")
    assert read_units(path, reading=reading) == [RejectedPage(title="x.txt", reason="it is not valid UTF-8")]
    path = write_file(tmp_path, b"Whole. " * 400_000 + bytes(512) + b"end")
    (hollow,) = read_units(path, reading=reading)
    assert isinstance(hollow, RejectedPage)
    assert "hole of zero bytes" in hollow.reason
    path = write_file(tmp_path, b"a" * 100)
    too_large = ReadOptions(text_documents="file", largest_page=50)
    assert read_units(path, reading=too_large) == [
        RejectedPage(title="x.txt", reason="the document is larger than 50 bytes")
    ]


@pytest.mark.parametrize("zeros", [1, 511, 512, 5000])
def test_text_with_a_hole_is_set_aside(zeros: int, tmp_path: Path) -> None:
    """What a hole has swallowed is lost; some zeros may be a text's own, and tokenizers drop them.

    A file that has zeros in the bytes that are read first is refused.
    """
    long = "good " * 500_000 + "text"
    path = write_file(tmp_path, f"{long}\n\nbad".encode() + bytes(zeros) + f" text\n\n{long}".encode())
    first, bad, last = read_units(path)
    assert first == last == document(long)
    assert isinstance(bad, RejectedPage) == (zeros >= 512)


def test_bad_text_is_set_aside(tmp_path: Path) -> None:
    path = write_file(tmp_path, b"good\n\nbad \xff text\n\n" + b"large " * 500_000 + b"\n\ngood")
    first, bad, large, last = read_units(path, 2000, ReadOptions(largest_page=1 << 21))
    assert first == last == document("good")
    assert bad == RejectedPage(title="bad \ufffd text", reason="it is not valid UTF-8")
    assert isinstance(large, RejectedPage)
    assert large.title.startswith("large large")
    assert large.reason == "the document is larger than 2,097,152 bytes"
