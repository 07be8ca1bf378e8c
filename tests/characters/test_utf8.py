"""Validity of UTF-8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskmill.characters.utf8 import is_utf8


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_encoded_text_is_utf8(text: str) -> None:
    assert is_utf8(text.encode())


@pytest.mark.parametrize("data", [b"\xff", b"a\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80"])
def test_overlong_cut_off_and_surrogate_bytes_are_not(data: bytes) -> None:
    assert not is_utf8(data)
