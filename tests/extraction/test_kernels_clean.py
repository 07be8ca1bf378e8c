"""The third pass: white space, and the punctuation around what was dropped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskmill.extraction.kernels.clean import clean
from maskmill.extraction.kernels.codes import COUNT_BRACKETS, COUNTS

# Compiled by themselves, as no page calls them, they take half a minute.
pytestmark = pytest.mark.in_python


def cleaned_and_counted(text: str) -> tuple[str, int]:
    """The text after the pass, and the brackets that went; `%` stands for something dropped, `^` for a hole."""
    encoded = text.replace("%", "\x01").replace("^", "\x03").encode()
    out = np.frombuffer(encoded + b"\0", np.uint8).copy()  # the pass ends the last line with a newline, too
    counts = np.zeros(COUNTS, np.int64)
    length = clean(out, len(encoded), counts, True)
    return out[:length].tobytes().decode().replace("\x03", "^"), int(counts[COUNT_BRACKETS])


def cleaned(text: str) -> str:
    """The text after the pass; `%` stands for something dropped."""
    return cleaned_and_counted(text)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("  a  b \n", "a b"),
        ("a\n\n \n%\nb", "a\nb"),
        ("a\n...\nb", "a\nb"),
        ("a\u00a0\u2009b", "a b"),
        ("a\u2028b\u3000c", "a b\u3000c"),
        ("a\u00ad\u200b\u200eb\ufeff", "ab"),
        ("“a” — é", "“a” — é"),
        ("नदी ,नगर", "नदी, नगर"),
        ("a (%) b", "a b"),
        ("a (%; b) c", "a (b) c"),
        ("a (b, %) c", "a (b) c"),
        ("a [%] b", "a b"),
        ("a（%）b", "ab"),
        ("a %, b", "a, b"),
        ("a, %, b", "a, b"),
        ("a, %. B", "a. B"),
        ("a %: b", "a : b"),
        ("a%: b", "a: b"),
        ("(%.5 a)", "(.5 a)"),
        ("a , b", "a, b"),
        ("a ,b", "a ,b"),
        ("a . . . b", "a ... b"),
        ("etc. .NET", "etc. .NET"),
        ("（%):", ""),
        # Brackets and quotation marks that held nothing else.
        ("a 「%」の", "a の"),
        ("語『%』の", "語の"),
        ("a « % » b", "a b"),
        ("a «%» b", "a b"),
        ("a “%” b", "a b"),
        ("a „%“ b", "a b"),
        ('a "%" b', "a b"),
        ('a ("%") b', "a b"),
        ("a (%; %) b", "a b"),
        ("a (%/%) b", "a b"),
        ("a (% – %) b", "a b"),
        ("語（%、%）は", "語は"),
        ("語（%，%；）は", "語は"),
        ("語（%、京）は", "語（京）は"),
        ("語（京、%）は", "語（京）は"),
        # Those that hold more, and those of two quotations.
        ("a «b %» c", "a «b » c"),
        ("a « b » % « c » d", "a « b » « c » d"),
        ('a "b" % "c" d', 'a "b" "c" d'),
        ('a "b"%"c" d', 'a "b""c" d'),
        ("a “b”%“c” d", "a “b”“c” d"),
        ("a (b/%) c", "a (b/) c"),
        ("a（%):", "a:"),
        # A line keeps nothing but a bracket once the wide comma before it is gone.
        ("a\n、%)\nb", "a\nb"),
    ],
)
def test_white_space_and_punctuation(text: str, expected: str) -> None:
    assert cleaned(text) == expected


@given(st.text(alphabet='ab1 \n\t%(),;:.!?[]（）、「」«»é“”„"/\u00a0\u2009\u200b\ufeff', max_size=60))
def test_what_is_left_is_tidy(text: str) -> None:
    result = cleaned(text)
    assert "\x01" not in result
    assert "  " not in result
    assert len(result.encode()) <= len(text.encode())
    for line in result.split("\n") if result else ():
        assert line == line.strip(" ")
        assert any(c.isalnum() or c > "\x7f" for c in line)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a ^ b", "a ^b"),
        ("a^ b", "a b"),
        ("a^b", "a^b"),
        ("a ^, b", "a^, b"),
        ("a ^. B", "a^. B"),
        ("a ^ \nb ^", "a^\nb^"),
        ("^ a\n^, a", "^a\n^a"),
        ("語^は語^、語^。", "語^は語、語。"),
        ("a “^” b", "a ^b"),
        ("語「^」。", "語^。"),
        ("a (^) b", "a b"),
        ("a (^; b) c", "a (b) c"),
        ("a (b, ^) c", "a (b) c"),
        ("a (b c ^) d", "a (b c) d"),
        ("a (b ^) d", "a (b^) d"),
        ("a (b 5 ^) d", "a (b 5) d"),
        ("a (b ^ c) d", "a (b ^c) d"),
        ("a (B: ^; c) d", "a (c) d"),
        ("a (% b %) c", "a (b^) c"),
        ("a (% b% ) c", "a (b) c"),
        ("a (% b c %) d", "a (b c) d"),
        ("a (% b 5 %) c", "a (b 5) c"),
        ("a (% b % c %) d", "a (b c^) d"),
        ("a % b", "a b"),
    ],
)
def test_holes_stay_where_a_sentence_may_need_what_is_missing(text: str, expected: str) -> None:
    assert cleaned(text) == expected


@pytest.mark.parametrize(
    ("text", "count"), [("a (%) b「%」 (c %) %, d", 2), ("a (b) «c»", 0), ("a (%; b) c", 0), ("a（%、%）« % »", 2)]
)
def test_brackets_that_go_are_counted(text: str, count: int) -> None:
    assert cleaned_and_counted(text)[1] == count
