"""<doc> files, plain text, JSON lines and Parquet: every document once, whatever the cuts and containers."""

import bz2
import gzip
import json
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from dump_files import CONTAINERS
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from transforms.errors import RunFailedError, UnusableInputError
from transforms.inputs.documents import Document, RejectedPage
from transforms.inputs.options import ReadOptions
from transforms.inputs.units import plan_units, read_unit
from transforms.storage import files

READING = ReadOptions()
CUTTABLE = ("plain", "tiny blocks", "many streams")
OTHERS = ("bz2", "gz", "gz members", "xz")
fixtures_are_fine = [HealthCheck.function_scoped_fixture]


def write(folder: Path, content: bytes, name: str = "x.txt") -> str:
    path = folder / name
    path.write_bytes(content)
    return str(path)


def read(
    path: str, unit_bytes: int = 4 << 20, reading: ReadOptions = READING, input_format: str = "auto"
) -> list[object]:
    units = plan_units(files.match(path), unit_bytes=unit_bytes, input_format=input_format)
    return [item for unit in units for item in read_unit(unit, reading)]


def document(text: str, title: str = "", document_id: str = "") -> Document:
    return Document(document_id=document_id, title=title.encode(), text=text.encode())


# ---- plain text


def split_at_blank_lines(text: bytes) -> list[object]:
    """The oracle: lines first, then documents."""
    documents: list[list[bytes]] = [[]]
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if line.strip(b" \t\r\f\v"):
            documents[-1].append(line)
        else:
            documents.append([])
    found = [b"\n".join(lines).strip().replace(b"\r\n", b"\n") for lines in documents]
    return [Document(document_id="", title=b"", text=text) for text in found if text]


lines = st.lists(st.sampled_from(["", "", " ", "\t\r", "a", "b b", "  word", "é\r", "x" * 30]), max_size=30)


@settings(deadline=None, max_examples=200, suppress_health_check=fixtures_are_fine)
@given(lines.map("\n".join), st.sampled_from(CUTTABLE), st.integers(1, 60))
@example("a", "plain", 1)
@example("\n\na\n\n\n", "plain", 1)
@example("\ufeffa\n\nb", "plain", 1)
@example("\ufeff\n\nb", "tiny blocks", 1)
def test_documents_between_blank_lines(tmp_path: Path, text: str, container: str, unit_bytes: int) -> None:
    if not text.strip():
        return
    path = write(tmp_path, CONTAINERS[container](text.encode()))
    assert read(path, unit_bytes, input_format="text") == split_at_blank_lines(text.encode())


@pytest.mark.parametrize("container", [*CUTTABLE, *OTHERS])
def test_text_in_every_container(container: str, tmp_path: Path) -> None:
    text = "\n\n".join(f"Document {k}.\nIts second line." * (k % 7) for k in range(200))
    path = write(tmp_path, CONTAINERS[container](text.encode()))
    for unit_bytes in (1000, 1 << 20):
        assert read(path, unit_bytes) == split_at_blank_lines(text.encode())


def test_blank_lines_without_end(tmp_path: Path) -> None:
    text = b"a\n" + b" \n" * 2_000_000 + b"b\n" + b"\n" * 3_000_000 + b"c" + b" " * 2_000_000
    path = write(tmp_path, text)
    assert read(path, 300_000) == [document("a"), document("b"), document("c")]


def test_one_document_a_file(tmp_path: Path) -> None:
    reading = ReadOptions(text_documents="file")
    text = "\ufeffOne.\r\n\r\nTwo.\n\n"
    for container in (*CUTTABLE, *OTHERS):
        path = write(tmp_path, CONTAINERS[container](text.encode()), "My essay.txt.x")
        assert read(path, 3, reading, "text") == [document("One.\n\nTwo.", "My essay")]
    path = write(tmp_path, b"abc \xff")
    assert read(path, reading=reading) == [RejectedPage(title="x.txt", reason="it is not valid UTF-8")]
    path = write(tmp_path, b"a" * 100)
    too_large = ReadOptions(text_documents="file", largest_page=50)
    assert read(path, reading=too_large) == [RejectedPage(title="x.txt", reason="the document is larger than 50 bytes")]


def test_bad_text_is_set_aside(tmp_path: Path) -> None:
    path = write(tmp_path, b"good\n\nbad \xff text\n\n" + b"large " * 500_000 + b"\n\ngood")
    first, bad, large, last = read(path, 100, ReadOptions(largest_page=1 << 21))
    assert first == last == document("good")
    assert bad == RejectedPage(title="bad \ufffd text", reason="it is not valid UTF-8")
    assert isinstance(large, RejectedPage)
    assert large.title.startswith("large large")
    assert large.reason == "the document is larger than 2097152 bytes"


# ---- WikiExtractor's files


def doc(number: int, title: str, text: str) -> str:
    return f'<doc id="{number}" url="https://x.org/wiki?curid={number}" title="{title}">\n{title}\n\n{text}\n\n</doc>\n'


def test_the_reference_files(data: Path, tmp_path: Path) -> None:
    folder = data / "gold" / "wikiextractor"
    for packed in sorted(folder.glob("wiki_0?.gz")):
        raw = gzip.decompress(packed.read_bytes())
        pattern = rb'<doc id="(\d+)" url="[^"\n]*" title="([^\n]*)">\n([^\n]*)\n(.*?)\n</doc>'
        expected = []
        for number, title, first, text in re.findall(pattern, raw, re.S):
            assert title == first
            expected.append(document(text.decode().strip(), title.decode(), number.decode()))
        assert len(expected) == raw.count(b"\n</doc>") > 10
        assert read(str(packed)) == expected
        for container in ("plain", "bz2"):
            path = write(tmp_path, CONTAINERS[container](raw))
            assert read(path, 20_000) == expected


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="<>\x85\u2028"), max_size=60)


@settings(deadline=None, max_examples=100, suppress_health_check=fixtures_are_fine)
@given(st.lists(texts, min_size=1, max_size=8), st.sampled_from(CUTTABLE), st.integers(1, 300))
def test_doc_elements(tmp_path: Path, contents: list[str], container: str, unit_bytes: int) -> None:
    raw = "".join(doc(k, f'Title "{k}"', text) for k, text in enumerate(contents))
    path = write(tmp_path, CONTAINERS[container](raw.encode()))
    found = read(path, unit_bytes)
    assert [(d.document_id, d.title.decode()) for d in found if isinstance(d, Document)] == [
        (str(k), f'Title "{k}"') for k in range(len(contents))
    ]
    assert [d.text for d in found if isinstance(d, Document)] == [text.encode().strip() for text in contents]


def test_bad_doc_elements(tmp_path: Path) -> None:
    raw = doc(1, "A", "a").encode() + b"<doc 2>\nB\n</doc>\n" + doc(3, "C", "MARK").encode().replace(b"MARK", b"\xff")
    first, second, third = read(write(tmp_path, raw), 10)
    assert first == document("a", "A", "1")
    assert second == RejectedPage(title="<doc 2> B", reason="the <doc> tag has no id and title")
    assert isinstance(third, RejectedPage)
    assert third.reason == "it is not valid UTF-8"
    path = write(tmp_path, (doc(1, "A", "a")[:-8] + doc(2, "B", "b")).encode())
    for unit_bytes in (1, 1000):
        assert read(path, unit_bytes) == [
            RejectedPage(
                title='<doc id="1" url="https://x.org/wiki?curid=1" title="A"> A a', reason="the <doc> is not closed"
            ),
            document("b", "B", "2"),
        ]
    path = write(tmp_path, (doc(1, "A", "a") + doc(2, "B", "b")[:-8]).encode())
    with pytest.raises(RunFailedError, match=r"x\.txt: the file is cut off: its last <doc> is not closed"):
        read(path)
    path = write(tmp_path, (doc(1, "A", "a") + doc(2, "B", "b " * 1_500_000) + doc(3, "C", "c")).encode())
    _, large, last = read(path, reading=ReadOptions(largest_page=1 << 20))
    assert isinstance(large, RejectedPage)
    assert large.reason == "the document is larger than 1048576 bytes"
    assert last == document("c", "C", "3")


# ---- JSON lines

records = st.lists(
    st.one_of(
        st.fixed_dictionaries({"text": st.text(max_size=40)}),
        st.just({"body": "x"}),
        st.just([1]),
        st.just(None),
    ),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=150, suppress_health_check=fixtures_are_fine)
@given(records, st.sampled_from(CUTTABLE), st.integers(1, 100), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_json_lines(tmp_path: Path, records: list[object], container: str, unit_bytes: int, end: str) -> None:
    raw = end.join(json.dumps(record) if record else "no JSON" for record in records)
    path = write(tmp_path, CONTAINERS[container](raw.encode()), "x.jsonl")
    found = read(path, unit_bytes, input_format="jsonl")
    assert len(found) == len(records)
    for item, record in zip(found, records, strict=True):
        text = record.get("text") if isinstance(record, dict) else None
        if text is not None and text.isprintable():
            assert item == document(text.replace("\r\n", "\n"))
        elif text is None:
            assert isinstance(item, RejectedPage)


def test_columns_of_json_lines(tmp_path: Path) -> None:
    lines = [
        {"body": "One.", "key": "a", "name": "First"},
        {"body": "Two.", "key": 2, "name": "Second"},
        {"body": "Three.", "name": "Third"},
        {"body": None, "key": 4, "name": "Fourth"},
        {"key": 5, "name": "Fifth"},
        {"body": "Six.", "key": 1.5, "name": "Sixth"},
        {"body": "\ud800", "key": 7, "name": "Seventh"},
    ]
    raw = "\ufeff" + "\n".join(map(json.dumps, lines)) + '\n{"body": \n[' + "[" * 100_000
    reading = ReadOptions(text_column="body", id_column="key", title_column="name")
    for pack in (bytes, gzip.compress, lzma.compress, bz2.compress):
        found = read(write(tmp_path, pack(raw.encode()), "x.jsonl"), reading=reading)
        assert found[:2] == [document("One.", "First", "a"), document("Two.", "Second", "2")]
        reasons = [item.reason for item in found[2:] if isinstance(item, RejectedPage)]
        assert reasons[:5] == [
            'the column "key" is missing, or neither text nor a whole number',
            'the column "body" is no text',
            'the column "body" is missing',
            'the column "key" is missing, or neither text nor a whole number',
            "it holds half a surrogate pair, which is no character",
        ]
        assert reasons[5].startswith("the line is not JSON (")
        assert reasons[6].startswith("the line is not JSON (")
        assert len(reasons) == 7


def test_a_line_too_large_is_set_aside(tmp_path: Path) -> None:
    lines = [json.dumps({"text": text}) for text in ("a", "x" * 3_000_000, "b")]
    path = write(tmp_path, "\n".join(lines).encode(), "x.jsonl")
    first, large, last = read(path, reading=ReadOptions(largest_page=1 << 20))
    assert (first, last) == (document("a"), document("b"))
    assert isinstance(large, RejectedPage)
    assert large.reason == "the document is larger than 1048576 bytes"


# ---- Parquet


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
        plan_units(files.match(write(tmp_path, content[:-20], "x.parquet")))
    damaged = write(tmp_path, b"PAR1" + b"\0" * 40 + content[44:], "x.parquet")
    (unit,) = plan_units(files.match(damaged))
    with pytest.raises(RunFailedError, match=r"x\.parquet: the Parquet data of row group 0 is damaged"):
        list(read_unit(unit, ReadOptions(text_column="body")))


# ---- options


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ReadOptions(text_documents="page"), "text_documents"),  # type: ignore[arg-type]
        (lambda: ReadOptions(text_column=""), "text_column is empty"),
        (lambda: ReadOptions(largest_page=0), "largest_page must be 1 byte or more, not 0"),
    ],
)
def test_options_are_checked(make: Callable[[], ReadOptions], message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        make()
