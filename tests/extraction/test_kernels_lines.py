"""What a line of a page is taken for."""

import numpy as np
import pytest

from transforms.extraction.kernels.codes import (
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
from transforms.extraction.kernels.lines import classify_line, stray_bold


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
    [
        ("'''a'' b", 0),
        ("a '''b'' c", 2),
        ("of l'''a'' c", 4),
        ("dell'''a'' b", 4),
        ("'''a''' b", -1),
        ("''a'' b", -1),
    ],
)
def test_the_bold_mark_that_is_an_apostrophe(line: str, expected: int) -> None:
    text = np.frombuffer(line.encode() + bytes(PADDING), np.uint8).copy()
    assert stray_bold(text, 0, len(line)) == (len(line), expected)
