"""What a line of a page is taken for."""

import numpy as np
import pytest

from maskmill.extraction.kernels.codes import (
    LINE_ALONE,
    LINE_BLANK,
    LINE_DROPPED,
    LINE_HEADING,
    LINE_INDENTED,
    LINE_LIST,
    LINE_PROSE,
    LINE_QUOTED,
    PADDING,
)
from maskmill.extraction.kernels.lines import classify_line, stray_bold


@pytest.mark.parametrize(
    ("line", "kind", "content"),
    [
        ("a", LINE_PROSE, 0),
        ("", LINE_BLANK, 0),
        (" \t", LINE_BLANK, 2),
        (" a", LINE_INDENTED, 1),
        ("*# a", LINE_LIST, 3),
        (";a", LINE_LIST, 1),
        (":a", LINE_QUOTED, 1),
        (":*a", LINE_LIST, 2),
        ("|a", LINE_DROPPED, 0),
        ("!a!!b", LINE_DROPPED, 0),
        ("!a|b", LINE_DROPPED, 0),
        ("!a", LINE_PROSE, 0),
        ("-----a", LINE_ALONE, 5),
        ("---a", LINE_PROSE, 0),
        ("{|", LINE_ALONE, 0),
        ("=a", LINE_ALONE, 0),
    ],
)
def test_kinds_of_lines(line: str, kind: int, content: int) -> None:
    text = np.frombuffer(line.encode() + b"\nnext" + bytes(PADDING), np.uint8).copy()
    assert classify_line(text, 0, len(line) + 5, len(line))[:2] == (kind, content)


SENTENCES_WITH_BARS = [
    "|x + y| is at most |x| + |y| for all real numbers.",
    "|z|² is the square of the modulus.",
    "|a + b|<sup>2</sup> = |a|² + |b|² + 2ab holds here.",
    "||x|| is the norm of the vector in this space.",
    "||x + y|| ≤ ||x|| + ||y|| is the inequality:",
    "||f||_p is its norm in [[Lp space|such a space]].",
    "|Gui und ||Gana sind Sprachen in Botswana.",
    "||Gana ist eine Sprache in Botswana.",
    "!Kung and |Gui are names of languages.",
    "|Ая и ||Гана — языки жителей Ботсваны.",
]


@pytest.mark.parametrize("line", SENTENCES_WITH_BARS)
def test_sentences_that_begin_with_a_bar(line: str) -> None:
    encoded = line.encode()
    for before, after in (("", ""), ("Text.\n", "\nText."), ("Text.\n\n", "\n\n{|\n|a\n|}")):
        page = before.encode() + encoded + after.encode()
        text = np.frombuffer(page + bytes(PADDING), np.uint8).copy()
        assert classify_line(text, len(before), len(page), len(before) + len(encoded))[0] == LINE_PROSE


@pytest.mark.parametrize(
    ("before", "line", "after"),
    [
        ("", "|x||y is a cell. It has a sentence.", ""),
        ("", "|| x || is a cell. It has a sentence.", ""),
        ("", "| This is a cell with a sentence.", ""),
        ("", "|слово|это ячейка. В ней есть предложение.", ""),
        ("", "|Text = This is a value of a template.", ""),
        ("", "|align=left| This is a cell with a sentence.", ""),
        ("", "|a b| and c | is a row. It has a sentence.", ""),
        ("", "|Brown and his wife and their children", ""),
        ("", "|+ This is a caption. It has a sentence.", ""),
        ("", "!Name of it!!The text is a sentence.", ""),
        ("|a\n", "|This is a cell with a sentence.", ""),
        ("{{box\n", "|This is a value with a sentence.", ""),
        ("", "|This is a cell with a sentence.", "\n|-"),
        ("", "|This is a value with a sentence.", "\n}}"),
    ],
)
def test_rows_of_tables_with_sentences(before: str, line: str, after: str) -> None:
    page = (before + line + after).encode()
    text = np.frombuffer(page + bytes(PADDING), np.uint8).copy()
    assert classify_line(text, len(before), len(page), len(page))[0] == LINE_DROPPED


@pytest.mark.parametrize(
    ("line", "level", "content"),
    [
        ("==a==", 2, "a"),
        ("=== a ==", 2, "= a "),
        ("==a=== ", 2, "a="),
        ("=======a=======", 6, "=a="),
        ("===", 1, "="),
        ("====", 1, "=="),
        ("==a==<!-- b --> <!-- c -->", 2, "a"),
        ("== a <!-- b --> ==", 2, " a <!-- b --> "),
        ("== a <!-- b\nc --> == <!-- d\ne -->", 2, " a <!-- b\nc --> "),
    ],
)
def test_headings(line: str, level: int, content: str) -> None:
    text = np.frombuffer(line.encode() + b"\nnext" + bytes(PADDING), np.uint8).copy()
    kind, start, found, end, line_end = classify_line(text, 0, len(line) + 5, len(line))
    assert (kind, found, line[start:end], line_end) == (LINE_HEADING, level, content, len(line))


@pytest.mark.parametrize(
    ("line", "expected"),
    [("'''a'' b", 0), ("a '''b'' c", 2), ("of l'''a'' c", 4), ("dell'''a'' b", 4), ("'''a''' b", -1), ("''a'' b", -1)],
)
def test_the_bold_mark_that_is_an_apostrophe(line: str, expected: int) -> None:
    text = np.frombuffer(line.encode() + bytes(PADDING), np.uint8).copy()
    assert stray_bold(text, 0, len(line)) == (len(line), expected)
