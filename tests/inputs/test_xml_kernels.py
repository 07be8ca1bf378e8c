"""The kernels for MediaWiki XML: the parts of a page, and XML's escaping, against Python's own parser."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made_up.dump_files import page
from properties import tries

from maskmill.inputs.kernels import xml as kernels

ESCAPED_PIECES = st.one_of(
    st.sampled_from(["&lt;", "&gt;", "&amp;", "&quot;", "&apos;", "&#10;", "&#xA;", "&#x1F600;", "&#233;", "\r", "\n"]),
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="&<>\ufffe\uffff"), max_size=12),
)


def unescape(escaped: bytes, begin: int = 0, end: int | None = None) -> bytes | None:
    view, words = kernels.views_of(escaped)
    plain = np.empty(max(1, len(escaped)), np.uint8)
    size = kernels.unescape(view, words, begin, len(escaped) if end is None else end, plain)
    return plain[:size].tobytes() if size >= 0 else None


def scan(data: bytes, start: int = 0) -> tuple[int, list[int]]:
    view, words = kernels.views_of(data)
    marks = np.empty(kernels.N_MARKS, np.int64)
    return int(kernels.scan_page(view, words, start, marks)), marks.tolist()


@tries(300)
@given(st.lists(ESCAPED_PIECES, max_size=10).map("".join))
@example("\r\n\r\r\n" * 5)
@example("x" * 100 + "&amp;")
def test_unescaping_is_that_of_an_xml_parser(escaped: str) -> None:
    parsed = ElementTree.fromstring(f"<a>{escaped}</a>".encode()).text or ""
    assert unescape(escaped.encode()) == parsed.encode()


@pytest.mark.parametrize(
    "bad",
    [
        "&",
        "&;",
        "&lt",
        "&nbsp;",
        "&LT;",
        "&#;",
        "&#x;",
        "&#12a;",
        "&#xg;",
        "&#0;",
        "&#xD800;",
        "&#xdfff;",
        "&#1114112;",
    ],
)
def test_an_unknown_reference_is_reported(bad: str) -> None:
    assert unescape(bad.encode()) is None
    assert unescape(b"abc &amp; " + bad.encode() + b" &gt;") is None


def test_only_the_range_is_unescaped() -> None:
    assert unescape(b"&lt;&amp;&gt;", 4, 9) == b"&"
    assert unescape(b"&lt;\r\n", 4, 5) == b"\n"
    assert unescape(b"&lt;", 0, 3) is None  # the semicolon is not in the range


def test_the_marks_of_a_page() -> None:
    data = page(12, "A &amp; B", "Text &amp; é", namespace=10, redirect="C", older=["old"]).lstrip().encode()
    status, marks = scan(data)
    assert status == kernels.COMPLETE
    assert data[marks[kernels.END] :].startswith(b"</page>")
    assert data[marks[kernels.TITLE] : marks[kernels.TITLE_END]] == b"A &amp;amp; B"
    assert data[marks[kernels.TIMESTAMP] : marks[kernels.TIMESTAMP_END]] == b"2011-01-02T03:04:05Z"
    assert data[marks[kernels.MODEL] : marks[kernels.MODEL_END]] == b"wikitext"
    assert data[marks[kernels.TEXT_TAG] : marks[kernels.TEXT]] == b'<text xml:space="preserve">'
    assert data[marks[kernels.TEXT] : marks[kernels.TEXT_END]] == "Text &amp;amp; é".encode()
    assert data[marks[kernels.REVISION] :].count(b"<revision>") == 1
    assert (marks[kernels.PAGE_ID], marks[kernels.REVISION_ID]) == (12, 12001)
    assert (marks[kernels.NAMESPACE], marks[kernels.IS_REDIRECT]) == (10, 1)
    assert marks[kernels.TEXT_FLAGS] == kernels.IS_ESCAPED | kernels.NOT_ASCII


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("<ns>0</ns>", 0),
        ("<ns>-2</ns>", -2),
        ("<ns>828</ns>", 828),
        ("", kernels.NO_NAMESPACE),
        ("<ns></ns>", kernels.BAD_NAMESPACE),
        ("<ns>-</ns>", kernels.BAD_NAMESPACE),
        ("<ns>1x</ns>", kernels.BAD_NAMESPACE),
        (f"<ns>{1 << 40}</ns>", kernels.BAD_NAMESPACE),
        (f"<ns>{10**18}</ns>", kernels.BAD_NAMESPACE),
    ],
)
def test_the_namespace(written: str, value: int) -> None:
    _, marks = scan(f"<page><title>A</title>{written}<id>1</id></page>".encode())
    assert marks[kernels.NAMESPACE] == value


def test_a_page_that_is_cut_off_anywhere_needs_more() -> None:
    data = page(1, "A", "some text", older=["old"]).strip().encode()
    for size in range(len(b"<page>"), len(data) - len(b"</page>") + 1):
        assert scan(data[:size])[0] == kernels.NEED_MORE, size
    assert scan(data)[0] == kernels.COMPLETE


def test_a_page_inside_a_page_is_seen() -> None:
    data = b"<page><title>A</title><page><title>B</title></page>"
    status, marks = scan(data)
    assert (status, marks[kernels.END]) == (kernels.NOT_CLOSED, data.rindex(b"<page>"))
    assert scan(data, data.rindex(b"<page>"))[0] == kernels.COMPLETE
