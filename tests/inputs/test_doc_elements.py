"""WikiExtractor's <doc> files: every document once, whatever the cuts and the container."""

import gzip
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.dump_files import CONTAINERS
from made_up.input_files import CUTTABLE, document, read_units, write_file
from properties import WITH_FOLDER, tries

from maskmill.errors import UnusableInputError
from maskmill.inputs.items import Document, RejectedPage
from maskmill.inputs.options import ReadOptions


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
        assert read_units(str(packed)) == expected
        for container in ("plain", "bz2"):
            path = write_file(tmp_path, CONTAINERS[container](raw))
            assert read_units(path, 20_000) == expected


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="<>\x85\u2028"), max_size=60)


@tries(100, **WITH_FOLDER)
@given(st.lists(texts, min_size=1, max_size=8), st.sampled_from(CUTTABLE), st.integers(1, 300))
def test_doc_elements(tmp_path: Path, contents: list[str], container: str, unit_bytes: int) -> None:
    raw = "".join(doc(k, f'Title "{k}"', text) for k, text in enumerate(contents))
    path = write_file(tmp_path, CONTAINERS[container](raw.encode()))
    found = read_units(path, unit_bytes)
    assert [(d.document_id, d.title.decode()) for d in found if isinstance(d, Document)] == [
        (str(k), f'Title "{k}"') for k in range(len(contents))
    ]
    assert [d.text for d in found if isinstance(d, Document)] == [text.encode().strip() for text in contents]


def test_bad_doc_elements(tmp_path: Path) -> None:
    raw = doc(1, "A", "a").encode() + b"<doc 2>\nB\n</doc>\n" + doc(3, "C", "MARK").encode().replace(b"MARK", b"\xff")
    first, second, third = read_units(write_file(tmp_path, raw), 10)
    assert first == document("a", "A", "1")
    assert second == RejectedPage(title="<doc 2> B", reason="the <doc> tag has no id and title")
    assert isinstance(third, RejectedPage)
    assert third.reason == "it is not valid UTF-8"
    path = write_file(tmp_path, doc(1, "A", "a" * 3_000_000 + "\0" * 512).encode())
    (hollow,) = read_units(path)
    assert isinstance(hollow, RejectedPage)
    assert "hole of zero bytes" in hollow.reason
    path = write_file(tmp_path, (doc(1, "A", "a")[:-8] + doc(2, "B", "b")).encode())
    for unit_bytes in (1, 1000):
        assert read_units(path, unit_bytes) == [
            RejectedPage(
                title='<doc id="1" url="https://x.org/wiki?curid=1" title="A"> A a', reason="the <doc> is not closed"
            ),
            document("b", "B", "2"),
        ]
    path = write_file(tmp_path, (doc(1, "A", "a") + doc(2, "B", "b")[:-8]).encode())
    with pytest.raises(UnusableInputError, match=r"x\.txt: the file is cut off: its last <doc> is not closed"):
        read_units(path)
    path = write_file(tmp_path, (doc(1, "A", "a") + doc(2, "B", "b " * 1_500_000) + doc(3, "C", "c")).encode())
    _, large, last = read_units(path, reading=ReadOptions(largest_page=1 << 20))
    assert isinstance(large, RejectedPage)
    assert large.reason == "the document is larger than 1,048,576 bytes"
    assert last == document("c", "C", "3")
