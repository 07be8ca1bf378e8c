"""Compiled byte-level BPE against `Tokenizer.encode` of `tokenizers`."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.tokenizers import CHARACTERS, byte_level_bpe
from properties import SEEDED, tries
from tokenizers import AddedToken, Tokenizer

from maskmill.errors import UnusableInputError
from maskmill.tokenization.byte_level import byte_characters
from maskmill.tokenization.tokenized_text import TextTokenizer, TokenizedText
from maskmill.tokenization.tokenizers import load_tokenizer


def compiled(tokenizer: Tokenizer) -> TextTokenizer:
    """The compiled tokenizer that does what a tokenizer of the library does."""
    loaded = load_tokenizer("tokenizer.json", tokenizer.to_str().encode())
    assert loaded.kernels == ("tokenization.kernels.byte_level",)
    return loaded.tokenizer()


def assert_encoded_as_the_library(text: TokenizedText, tokenizer: Tokenizer, lines: Sequence[str]) -> None:
    """Compares the segments of a text with its lines, none of which is blank; each is a document."""
    assert text.continues is not None
    ends = text.segment_ends.tolist()
    assert len(ends) == len(lines)
    words = 0
    for line, start, end in zip(lines, [0, *ends], ends, strict=False):
        encoding: Any = tokenizer.encode(line, add_special_tokens=False)
        number = encoding.word_ids
        assert text.ids[start:end].tolist() == encoding.ids, line
        continues = [k > 0 and word == number[k - 1] for k, word in enumerate(number)]
        assert text.continues[start:end].tolist() == continues, line
        words += len(set(number))
    assert (text.words, text.unknown) == (words, 0)
    assert (text.ids.dtype, text.continues.dtype) == (np.int32, np.uint8)


def made_up_lines(draw: random.Random, count: int, more: Sequence[str] = ()) -> list[str]:
    """Lines of CHARACTERS, a few of them long, with some of `more` in them."""
    lines = []
    for _ in range(count):
        characters = CHARACTERS if draw.random() < 0.5 else draw.sample(CHARACTERS, 3)
        size = int(draw.expovariate(1 / 30)) if draw.random() < 0.97 else 1500
        chosen = [draw.choice(more) if more and draw.random() < 0.02 else draw.choice(characters) for _ in range(size)]
        line = "".join(chosen)
        lines.append(line if line.strip() else f"x{line}")
    return lines


@tries(12, **SEEDED)
@given(st.integers(0, 2**32))
def test_ids_and_words_are_those_of_the_library(seed: int) -> None:
    draw = random.Random(seed)
    added: list[AddedToken | str] = []
    for _ in range(draw.choice([0, 0, 1, 4])):
        content = "".join(draw.choices("ab'st3.!é中 ", k=draw.randrange(1, 6)))
        strip = " " not in content  # else the library panics on overlaps
        added.append(
            AddedToken(
                content,
                single_word=draw.random() < 0.3,
                lstrip=strip and draw.random() < 0.3,
                rstrip=strip and draw.random() < 0.3,
                normalized=draw.random() < 0.5,
            )
        )
    made = byte_level_bpe(seed, merges=draw.choice([0, 60, 2000]), prefix_space=draw.random() < 0.5, added=added)
    tokenizer = Tokenizer.from_str(made.to_str())
    lines = made_up_lines(draw, 250, ["<mask>", "<s>", *(str(getattr(token, "content", token)) for token in added)])
    text = compiled(tokenizer).tokenize_bytes("\n\n".join(lines).encode())
    assert_encoded_as_the_library(text, tokenizer, lines)


@pytest.mark.parametrize("prefix_space", [False, True])
@pytest.mark.parametrize("part", ["a", "ab", "ab'", " ", "é", "中", "abcdefg", "\x00"])
def test_long_words_are_split_as_the_library_splits_them(part: str, prefix_space: bool) -> None:
    tokenizer = byte_level_bpe(5, merges=400, prefix_space=prefix_space)
    lines = ["x", "y" + part * 30_000, "z" + part * 17]
    text = compiled(tokenizer).tokenize_bytes("\n\n".join(lines).encode())
    assert_encoded_as_the_library(text, tokenizer, lines)


def test_blank_lines_end_documents_and_carriage_returns_are_spaces(tmp_path: Path) -> None:
    tokenizer = byte_level_bpe(7)
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"\n\none\r\ntw\ro\n \t\n\xc2\xa0\n\r\n<mask> three\n")
    second.write_bytes(b"four\n\n\nfive <mask>")
    text = compiled(tokenizer).tokenize_files([str(first), str(second)])
    assert_encoded_as_the_library(text, tokenizer, ["one", " tw o", "<mask> three", " four", "five <mask>"])
    assert text.document_ends.tolist() == [2, 4, 5]
    assert text.bytes == len(first.read_bytes().replace(b"\r\n", b"\n")) + len(second.read_bytes())


@pytest.mark.parametrize("content", [b"", b"\n", b" \n\n"])
def test_text_without_words_has_no_segments(content: bytes) -> None:
    text = compiled(byte_level_bpe(7)).tokenize_bytes(content)
    assert [len(part) for part in (text.ids, text.segment_ends, text.document_ends)] == [0, 0, 0]
    assert text.bytes == len(content)


def test_blocks_of_a_file_and_its_memory_change_nothing(tmp_path: Path) -> None:
    tokenizer = byte_level_bpe(9, prefix_space=True)
    draw = random.Random(9)
    lines = 12 * [*made_up_lines(draw, 1500), *made_up_lines(draw, 20, ["<mask>"])]
    lines[7000] = "ab" * 700_000  # longer than a block
    path = tmp_path / "text"
    path.write_text("\n".join(lines), encoding="utf-8", newline="\n")
    whole = compiled(tokenizer).tokenize_bytes(path.read_bytes())
    parts = compiled(tokenizer).tokenize_files([str(path)])
    assert path.stat().st_size > 3 << 20
    for field in ("ids", "continues", "segment_ends", "document_ends", "segment_lines"):
        assert np.array_equal(getattr(whole, field), getattr(parts, field)), field
    assert (whole.words, whole.bytes) == (parts.words, parts.bytes)


@pytest.mark.parametrize("prefix_space", [False, True])
@pytest.mark.parametrize("line", [b"ab\xff", b"\xe4\xb8", b"<mask> \xff", b" \xed\xa0\x80"])
@pytest.mark.parametrize("before", [b"one\n\n", b"one\ntwo\n"])
def test_text_that_is_not_utf_8_is_refused(before: bytes, line: bytes, prefix_space: bool) -> None:
    tokenizer = compiled(byte_level_bpe(7, prefix_space=prefix_space))
    bad = next(k for k in range(len(line)) if line[k] in b"\xff\xe4\xed")
    with pytest.raises(UnusableInputError, match=rf"^t, line 3: this text is not UTF-8 \(byte 0x.. after {bad} bytes"):
        tokenizer.tokenize_bytes(before + line + b"\nfour\n", "t")


def test_characters_for_bytes_are_those_of_the_library() -> None:
    from tokenizers.pre_tokenizers import ByteLevel

    assert sorted(byte_characters()) == sorted(ByteLevel.alphabet())
    assert [byte_characters()[byte] for byte in b"a \n"] == ["a", "Ġ", "Ċ"]
