"""The third pass: white space, and the punctuation around what was dropped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.extraction.kernels.clean import clean


def cleaned(text: str) -> str:
    """The text after the pass; `%` stands for something dropped."""
    out = np.frombuffer(text.replace("%", "\x01").encode(), np.uint8).copy()
    return out[: clean(out, len(out))].tobytes().decode()


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
        ("a（%):", "a:"),
    ],
)
def test_white_space_and_punctuation(text: str, expected: str) -> None:
    assert cleaned(text) == expected


@given(st.text(alphabet="ab1 \n\t%(),;:.!?[]（）é“\u00a0\u2009\u200b\ufeff", max_size=60))
def test_what_is_left_is_tidy(text: str) -> None:
    result = cleaned(text)
    assert "\x01" not in result
    assert "  " not in result
    assert len(result.encode()) <= len(text.encode())
    for line in result.split("\n") if result else ():
        assert line == line.strip(" ")
        assert any(c.isalnum() or c > "\x7f" for c in line)
