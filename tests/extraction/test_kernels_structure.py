"""The first pass: which constructs a page has, and how their marks are paired."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.extractors import tables_of

from maskmill.extraction.kernels.codes import (
    EVENT_COMMENT,
    EVENT_EXTERNAL,
    EVENT_LINK,
    EVENT_PARAMETER,
    EVENT_RAW,
    EVENT_TABLE,
    EVENT_TEMPLATE,
    EVENT_VARIANT,
    PADDING,
)
from maskmill.extraction.kernels.structure import starts_line, starts_url, structure
from maskmill.extraction.kernels.tags import closing_tag, is_hidden, same_name, tag_end

# Compiled by themselves, as no page calls them, they take half a minute.
pytestmark = pytest.mark.in_python

MARKS = [
    "{{",
    "}}",
    "{{{",
    "}}}",
    "[[",
    "]]",
    "[http://a",
    "]",
    "\n{|",
    "\n|}",
    "<!--",
    "-->",
    "<ref>",
    "</ref>",
    "-{",
    "}-",
    "a",
    "|",
    "\n",
]


def padded(page: bytes) -> npt.NDArray[np.uint8]:
    """A page as the kernels take it, with zeros after it."""
    return np.frombuffer(page + bytes(PADDING), np.uint8).copy()


def constructs(page: bytes, language: str = "en") -> list[tuple[str, int]]:
    """The closed constructs of a page, as (text, kind)."""
    events, used = structure(padded(page), len(page), tables_of(language))
    return [(page[e["start"] : e["end"]].decode(), int(e["kind"])) for e in events[:used] if e["end"] >= 0]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("{{a}}", [("{{a}}", EVENT_TEMPLATE)]),
        ("{{{a}}}", [("{{{a}}}", EVENT_PARAMETER)]),
        ("{{{{{a}}}}}", [("{{{{{a}}}}}", EVENT_TEMPLATE), ("{{{a}}}", EVENT_PARAMETER)]),
        ("{{a", []),
        ("{{a}", []),
        ("[[a]]", [("[[a]]", EVENT_LINK)]),
        ("[[a|[[b]]]]", [("[[a|[[b]]]]", EVENT_LINK), ("[[b]]", EVENT_LINK)]),
        ("{{a|[[b}}", [("{{a|[[b}}", EVENT_TEMPLATE)]),
        ("[http://a b]", [("[http://a b]", EVENT_EXTERNAL)]),
        ("[http://a\nb]", []),
        ("[a b]", []),
        ("[[a|[http://b]]", [("[[a|[http://b]]", EVENT_LINK)]),
        ("{|\n|a\n|}", [("{|\n|a\n|}", EVENT_TABLE)]),
        ("a {|\n|a\n|}", []),
        ("<!-- a -->", [("<!-- a -->", EVENT_COMMENT)]),
        ("<!--->", []),
        ("<nowiki>{{a}}</nowiki>", [("<nowiki>{{a}}</nowiki>", EVENT_RAW)]),
        ("<nowiki>{{a}}", [("{{a}}", EVENT_TEMPLATE)]),
        ("<ref>a<ref>b</ref>", [("<ref>b</ref>", EVENT_RAW)]),
        ('<b style="display:none">a<b>b</b></b>c', [('<b style="display:none">a<b>b</b></b>', EVENT_TABLE)]),
    ],
)
def test_marks_are_paired(page: str, expected: list[tuple[str, int]]) -> None:
    assert constructs(page.encode()) == expected


def test_variants_are_constructs_only_of_languages_that_have_them() -> None:
    assert constructs(b"-{a}-", "zh") == [("-{a}-", EVENT_VARIANT)]
    assert constructs(b"-{a}-") == []


@given(st.lists(st.sampled_from(MARKS)))
def test_constructs_are_nested_in_the_order_of_their_starts(pieces: list[str]) -> None:
    page = "".join(pieces).encode()
    events, used = structure(padded(page), len(page), tables_of("zh"))
    closed = [(int(e["start"]), int(e["end"])) for e in events[:used] if e["end"] >= 0]
    assert closed == sorted(closed)
    ends: list[int] = []
    for start, end in closed:
        assert 0 <= start < end <= len(page)
        while ends and ends[-1] <= start:
            ends.pop()
        assert not ends or end <= ends[-1]
        ends.append(end)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"http://a", True),
        (b"HTTPS://a", True),
        (b"//a", True),
        (b"ftp://a", True),
        (b"mailto:a", True),
        (b"irc://a", True),
        (b"gopher://a", True),
        (b"irc:a", False),
        (b"http:// a", False),
        (b'http://"a', False),
        (b"news:a", True),
        (b"http:/a", False),
        (b"http://", False),
        (b"http://]", False),
        (b"htt", False),
        (b"/a", False),
        (b"gopher:a", False),
        (b"", False),
    ],
)
def test_external_links_start_with_a_protocol(text: bytes, expected: bool) -> None:
    assert starts_url(padded(text), 0) is expected


@pytest.mark.parametrize(("line", "expected"), [(b"", True), (b" :*#\t", True), (b"a\n ", True), (b"a ", False)])
def test_a_line_starts_behind_its_indentation(line: bytes, expected: bool) -> None:
    assert starts_line(padded(line + b"{|"), len(line)) is expected


def test_a_tag_ends_before_the_next_one_starts() -> None:
    assert tag_end(padded(b"<a b>c"), 0, 6) == 4
    assert tag_end(padded(b"<a <b>"), 0, 6) == -1
    assert tag_end(padded(b"<a b"), 0, 4) == -1


def test_names_are_compared_in_any_case_and_to_their_end() -> None:
    assert same_name(padded(b"ref REF>"), 4, 0, 3)
    assert not same_name(padded(b"ref refs"), 4, 0, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"ref a</REF>", (5, False)),
        (b"ref a</refs>", (-1, False)),
        (b"ref a<ref>b</ref>", (-1, True)),
        (b"ref a\n==b==</ref>", (-1, True)),
    ],
)
def test_a_reference_is_cut_short_by_the_next_one_and_by_a_heading(text: bytes, expected: tuple[int, bool]) -> None:
    assert closing_tag(padded(text), 3, len(text), 0, 3, True) == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (b'style="display:none"', True),
        (b'style="DISPLAY : None;"', True),
        (b'style="display:block"', False),
        (b'class="plain navbox"', True),
        (b"class=navbox", False),
        (b'class="prose"', False),
        (b'style="displa', False),
        (b"", False),
    ],
)
def test_what_attributes_hide(attributes: bytes, expected: bool) -> None:
    assert is_hidden(padded(attributes), 0, len(attributes), tables_of()) is expected
