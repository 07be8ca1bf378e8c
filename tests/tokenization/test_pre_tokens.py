"""Pre-tokens of byte-level BPE against the ByteLevel of `tokenizers`."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.tokenizers import CHARACTERS
from properties import tries
from tokenizers.pre_tokenizers import ByteLevel

from maskmill.kernels import kernel
from maskmill.kernels.ascii import NEWLINE
from maskmill.kernels.memory import address, load_u8
from maskmill.tokenization import pre_token_classes
from maskmill.tokenization.kernels.pre_tokens import pre_token_end
from maskmill.tokenization.text_blocks import PaddedText

LINES = st.one_of(
    st.lists(st.sampled_from(CHARACTERS)).map("".join),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])),
)


@kernel
def pre_token_ends(text: Any, size: Any, classes: Any, ends: Any) -> Any:
    """Cuts the lines of text[:size] into pre-tokens; where each ends goes to `ends`, room for `size` numbers (int64).

    A newline is no part of a pre-token: one that starts where a newline is starts after it (and after those that
    follow it). Returns how many pre-tokens there are; -1 less the place of the first byte that is not UTF-8.
    """
    source = address(text)
    table = address(classes)
    count = np.int64(0)
    i = np.int64(0)
    while i < size:
        if load_u8(source, i) == NEWLINE:
            i += 1
            continue
        i = pre_token_end(table, source, i)
        if i < 0:
            return i
        ends[count] = i
        count += 1
    return count


def pre_tokens(text: bytes) -> list[bytes]:
    """The pre-tokens of all lines of a text that is not empty."""
    padded = PaddedText()
    size = padded.load(text)
    ends = np.empty(size, np.int64)
    count = pre_token_ends(padded.text, size, pre_token_classes.load(), ends)
    if count < 0:
        raise ValueError(f"not UTF-8 at {-1 - count}")
    found = []
    end = 0
    for stop in ends[:count].tolist():
        start = end + len(text[end:stop]) - len(text[end:stop].lstrip(b"\n"))
        found.append(text[start:stop])
        end = stop
    return found


def expected(line: str) -> list[bytes]:
    """The pre-tokens that `tokenizers` gives for a line."""
    return [line[start:end].encode() for _, (start, end) in ByteLevel(add_prefix_space=False).pre_tokenize_str(line)]


@pytest.mark.builds
def test_each_code_point_has_the_class_that_the_library_gives_it() -> None:
    classes = pre_token_classes.library_classes()
    classes[ord("\n")] = pre_token_classes.LINE_END
    assert np.flatnonzero(classes != pre_token_classes.load()).tolist() == []


@tries(300)
@given(st.lists(LINES, min_size=1))
def test_lines_are_cut_as_the_library_cuts_them(lines: list[str]) -> None:
    found = pre_tokens("\n".join([*lines, ""]).encode())
    assert found == list(itertools.chain.from_iterable(map(expected, lines)))


@tries(200)
@given(
    st.lists(st.sampled_from([b"a", b" ", b"\n", "é".encode(), "中".encode(), b"\xe4\xb8", b"\xff", b"\xed\xa0\x80"]))
)
def test_the_first_byte_that_is_not_utf_8_is_told(parts: list[bytes]) -> None:
    text = b"x" + b"".join(parts)
    try:
        text.decode()
    except UnicodeDecodeError as error:
        with pytest.raises(ValueError, match=f"not UTF-8 at {error.start}$"):
            pre_tokens(text)
    else:
        assert b"".join(pre_tokens(text)) == text.replace(b"\n", b"")
