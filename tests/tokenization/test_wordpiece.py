"""Tokenization against the reference's own ids, and against the oracle on any text."""

import itertools
import random
import unicodedata
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.texts import text_of, vocabulary_from, vocabulary_of, vocabulary_of_pieces
from oracles import pretraining as oracle
from properties import SEEDED, tries

from maskmill.errors import UnusableInputError
from maskmill.tokenization import text_blocks, unicode_tables
from maskmill.tokenization.vocabulary import load_vocabulary
from maskmill.tokenization.wordpiece import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# What has gone wrong somewhere before: white space, controls, marks, sigmas, punctuation that NFD makes, ideographs.
AWKWARD = (
    "\x00\t\x0b\x0c\r\x1c\x1f\x7f\x80\x85\xa0\xad\u034f\u1680\u180e\u2000\u200b\u200d\u2028\u2029\u202f\u205f\u3000"
    "\ufeff\ufffd\ufffe\uffff\ue000\U0001f600\U000e0001\U0010fffd"
    "ΣσςİıIẞßǅﬁÅÅéẹ̈\u0344\u0301\u0323\u1b44\u302e\u302f\u0e31\U0001d15e\U0001d165\U0001d16d\U0001d1bb"
    "\u037e\u1fef\u1ffd\u2260\u226e\u0387·'’.:-_^$`~¿–„\u2e3a\u061c"
    "漢㐀豈﨑𠀀𪜀丽⼀가힣각ᄀ、。"
    "aZ09#[]"
)


def tokenized(text: bytes, tokenizer: Tokenizer) -> list[list[list[int]]]:
    """Documents of segments of ids."""
    result = tokenizer.tokenize_bytes(text)
    segments = [ids.tolist() for ids in np.split(result.ids, result.segment_ends)[:-1]]
    starts = [0, *result.document_ends.tolist()]
    return [segments[start:end] for start, end in itertools.pairwise(starts)]


def expected(text: bytes, pieces: list[str], do_lower_case: bool, version: str) -> list[list[list[int]]]:
    vocab = {piece: number for number, piece in enumerate(pieces)}
    plain = oracle.Tokenizer(vocab, do_lower_case, oracle.unicode(version))
    documents = oracle.read_documents([text], plain, drops_returns=version == "11.0.0")
    return [[[vocab[piece] for piece in segment] for segment in document] for document in documents]


def of_version(version: str) -> dict[str, Any]:
    """The arguments of a tokenizer that reads as the references do, or as maskmill does without --compat."""
    return {"unicode": version, "drops_returns": version == "11.0.0"}


@pytest.mark.parametrize("case", ["uncased", "cased"])
def test_the_reference_ids_of_every_awkward_line(case: str) -> None:
    gold = oracle.DATA / "gold"
    tokenizer = Tokenizer(load_vocabulary(str(oracle.DATA / "vocab.txt")), do_lower_case=case == "uncased")
    result = tokenizer.tokenize_files([str(gold / "pretraining" / "torture.txt")])
    lines = (gold / "tokenization" / f"torture.{case}.ids").read_text().splitlines()
    got = [" ".join(map(str, ids)) for ids in np.split(result.ids, result.segment_ends)[:-1]]
    assert got == [line for line in lines if line]


characters = st.one_of(
    st.sampled_from(AWKWARD),
    st.sampled_from("abcdeABC 'é,."),
    st.characters(exclude_categories=["Cs"]),
    st.characters(categories=["Mn", "Mc", "Me"]),
    st.characters(categories=["Lm", "Lt", "Sk"]),
)
texts = st.one_of(st.text(characters, max_size=60), st.text(st.sampled_from(AWKWARD + "ab \n\n"), max_size=80))


def check_any(data: st.DataObject) -> None:
    """Text and vocabulary are drawn; the pieces are those of the oracle."""
    text = data.draw(texts)
    do_lower_case = data.draw(st.booleans())
    version = data.draw(st.sampled_from(unicode_tables.VERSIONS))
    # Pieces are cut from the text as it is normalised, so that they occur.
    table = oracle.unicode(version)
    source = table.nfd(table.lower(text)) if do_lower_case else text
    source = "".join(c for c in source if table.category(c) != "Mn" or not do_lower_case) or "a"
    pieces = dict.fromkeys(SPECIAL + data.draw(st.lists(st.sampled_from(["##", "#", "a", "##a", ",", ""]))))
    for _ in range(data.draw(st.integers(0, 12))):
        start = data.draw(st.integers(0, len(source) - 1))
        piece = source[start : start + data.draw(st.integers(1, 6))]
        pieces[data.draw(st.sampled_from(["", "##"])) + piece] = None
    for char in set(source) if data.draw(st.booleans()) else ():
        pieces |= {char: None, "##" + char: None}
    names = list(pieces)
    tokenizer = Tokenizer(vocabulary_of_pieces(names), do_lower_case=do_lower_case, **of_version(version))
    encoded = text.encode()
    first = tokenized(encoded, tokenizer)
    assert first == expected(encoded, names, do_lower_case, version)
    assert tokenized(encoded, tokenizer) == first  # now from the word cache


@tries(200)
@given(data=st.data())
def test_any_text_and_vocabulary(data: st.DataObject) -> None:
    check_any(data)


@pytest.mark.builds
@pytest.mark.long
@tries(1500)
@given(data=st.data())
def test_many_texts_and_vocabularies(data: st.DataObject) -> None:
    check_any(data)


def points_of(version: str, do_lower_case: bool) -> tuple[list[int], list[int]]:
    """The code points that text can have: those that become something else, and those that are kept or ideographs."""
    table = unicode_tables.load(version, do_lower_case)
    kinds = table.blocks.reshape(-1, 128)[table.pages].ravel() & unicode_tables.KIND_MASK
    plain = np.isin(kinds, (unicode_tables.KEEP, unicode_tables.IDEOGRAPH))
    points = np.arange(0x110000)
    allowed = ((points < 0xD800) | (points >= 0xE000)) & (points != ord("\n"))
    return np.flatnonzero(allowed & ~plain).tolist(), np.flatnonzero(allowed & plain).tolist()


def check_points(points: list[int], version: str, do_lower_case: bool) -> None:
    """Code points come out as from the oracle, within a word and around a capital sigma."""
    table = oracle.unicode(version)
    lines = "\n".join(f"a{chr(p)}b AΣ{chr(p)} AΣ{chr(p)}a A{chr(p)}Σ" for p in points)
    parts = {c for p in points for c in table.nfd(table.lower(chr(p)) + chr(p))}
    names = [*SPECIAL, *dict.fromkeys(x for c in sorted(parts | set("abAΣσς")) for x in (c, "##" + c))]
    tokenizer = Tokenizer(vocabulary_of_pieces(names), do_lower_case=do_lower_case, **of_version(version))
    assert tokenized(lines.encode(), tokenizer) == expected(lines.encode(), names, do_lower_case, version)


@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize("version", unicode_tables.VERSIONS)
def test_some_code_points_of_every_block(version: str, do_lower_case: bool) -> None:
    special, plain = points_of(version, do_lower_case)
    # Odd steps, so that over the cases most code points of a block have their turn.
    check_points(special[:: 5 if do_lower_case else 9] + plain[::401], version, do_lower_case)


@pytest.mark.builds
@pytest.mark.long
@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize("version", unicode_tables.VERSIONS)
def test_every_code_point_that_is_not_simply_kept(version: str, do_lower_case: bool) -> None:
    special, plain = points_of(version, do_lower_case)
    check_points(special + plain[::40], version, do_lower_case)


def test_the_oracle_normalises_as_python_does() -> None:
    # Where this Python's tables say the same of a code point as a version of ours, text of such code points must come
    # out the same: canonical ordering and final sigmas are what is tested.
    version = "15.1.0"
    table = oracle.unicode(version)
    pool = [c for c in AWKWARD if unicodedata.category(c) == table.category(c)]
    pool += [chr(p) for p in range(0x300, 0x370)] + list("abΣΑς'’")
    rng = np.random.default_rng(0)
    for _ in range(3000):
        text = "".join(rng.choice(pool, rng.integers(1, 12)))
        assert table.nfd(text) == unicodedata.normalize("NFD", text)
        assert table.lower(text) == text.lower()


@pytest.mark.parametrize("points", [199, 200, 201, 300])
def test_a_word_of_more_than_200_code_points_is_unknown(points: int) -> None:
    names = [*SPECIAL, "é", "##é", "e", "##e", "a", "##a"]
    tokenizer = Tokenizer(vocabulary_of_pieces(names))
    for word in ("a" * points, "é" * points, "e\u0301" * points, "é" * points + "\u0301" * 300):
        text = word.encode()
        (((*ids,),),) = tokenized(text, tokenizer)
        assert len(ids) == (1 if points > 200 else points)
        assert [[ids]] == expected(text, names, True, "11.0.0")


def test_marks_of_a_long_word_are_ordered() -> None:
    names = [*SPECIAL, *(x for c in "a\u302e\u1b44\U0001d165" for x in (c, "##" + c))]
    # An accent of class 0 (U+0E31) ends a run of marks, though it is taken away; others (U+0301) do not.
    for between in ("", "\u0301", "\u0e31", "a"):
        for times in (1, 60):
            text = ("a" + f"\u302e{between}\u1b44\U0001d165" * times).encode()
            assert tokenized(text, Tokenizer(vocabulary_of_pieces(names))) == expected(text, names, True, "15.1.0")


def test_lines_are_read_as_tensorflow_reads_them(tmp_path: Path) -> None:
    names = [*SPECIAL, "a", "b", "##b", "é"]
    vocabulary = vocabulary_of_pieces(names)
    contents = [
        b"a\r\n\r\nb\r",  # a carriage return is no character at all
        b"a\n\n\n\nb\n \t\x0b\x1c\xc2\x85\xe2\x80\xa8\nb",  # white space alone is a blank line
        b"a\n\x00\nb\n\xe2\x80\x8b\nb",  # what is deleted makes no blank line
        b"a\r b\na\rb",
        b"",
        b"\n\n",
        b"a\n\r",
    ]
    for number, content in enumerate(contents):
        path = tmp_path / str(number)
        path.write_bytes(content)
        result = Tokenizer(vocabulary, do_lower_case=False, **of_version("11.0.0")).tokenize_files([str(path)])
        plain = oracle.Tokenizer({p: i for i, p in enumerate(names)}, False, oracle.unicode("11.0.0"))
        documents = oracle.read_documents([content], plain)
        assert np.diff(result.document_ends, prepend=0).tolist() == [len(d) for d in documents], content
        assert np.diff(result.segment_ends, prepend=0).tolist() == [len(s) for d in documents for s in d], content
        lines = enumerate(content.replace(b"\r", b"").split(b"\n"))
        has_pieces = [line for line, text in lines if len(Tokenizer(vocabulary).tokenize_bytes(text).ids)]
        assert result.segment_lines.tolist() == has_pieces, content


def test_no_document_ends_where_a_file_ends(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(b"a\na")
    (tmp_path / "2").write_bytes(b"a\n\na")
    tokenizer = Tokenizer(vocabulary_of_pieces([*SPECIAL, "a"]))
    result = tokenizer.tokenize_files([str(tmp_path / "1"), str(tmp_path / "2")])
    assert result.document_ends.tolist() == [3, 4]
    assert result.segment_ends.tolist() == [1, 2, 3, 4]
    assert result.segment_lines.tolist() == [0, 1, 2, 4]


@pytest.mark.parametrize("block", [1, 2, 7, 64])
def test_where_blocks_end_makes_no_difference(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = oracle.DATA / "gold" / "pretraining" / "torture.txt"
    content = path.read_bytes()[: 300 * block] if block < 64 else path.read_bytes()
    (tmp_path / "text").write_bytes(content[: content.rindex(b"\n")])
    tokenizer = Tokenizer(load_vocabulary(str(oracle.DATA / "vocab.txt")))
    whole = tokenizer.tokenize_files([str(tmp_path / "text")])
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", block)
    parts = tokenizer.tokenize_files([str(tmp_path / "text")])
    assert parts.ids.tolist() == whole.ids.tolist()
    assert parts.segment_ends.tolist() == whole.segment_ends.tolist()
    assert parts.document_ends.tolist() == whole.document_ends.tolist()
    assert parts.segment_lines.tolist() == whole.segment_lines.tolist()
    assert (parts.unknown, parts.bytes) == (whole.unknown, whole.bytes)


def test_unknown_words_are_counted() -> None:
    tokenizer = Tokenizer(vocabulary_of_pieces([*SPECIAL, "a", ","]))
    text = b"a b, b! \xe6\xbc\xa2 " + b"c" * 20 + b" " + b"a" * 300
    for _ in range(2):  # the second time from the word cache
        tokenized = tokenizer.tokenize_bytes(text)
        assert (tokenized.words, tokenized.unknown) == (8, 6)


@tries(100, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_the_words_are_the_pieces_that_go_on_no_word(seed: int) -> None:
    rng = random.Random(seed)
    vocabulary = vocabulary_from(vocabulary_of(rng))
    goes_on = {number for piece, number in zip(vocabulary.pieces, vocabulary.ids, strict=True) if piece[:2] == "##"}
    text = Tokenizer(vocabulary, do_lower_case=rng.random() < 0.5).tokenize_bytes(text_of(rng, 30))
    assert text.words == sum(number not in goes_on for number in text.ids.tolist())
    assert text.unknown == np.count_nonzero(text.ids == vocabulary.id_of("[UNK]"))


BAD = [b"\xff", b"\xc0\xaf", b"\xc3", b"\xe2\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf0\x80\x80\x80", b"\x80"]
BAD += [b"\xe0\x80\x80", b"\xf0\x9f\x98", b"\xf5\x80\x80\x80", b"a\xcc", b"\xce\xa3\xff"]


@pytest.mark.parametrize("bad", BAD)
def test_what_is_not_utf8_is_one_sentence(bad: bytes, tmp_path: Path) -> None:
    with pytest.raises(UnicodeDecodeError):
        bad.decode()
    tokenizer = Tokenizer(vocabulary_of_pieces([*SPECIAL, "a"]))
    for content in (b"a\na\r\n\na " + bad + b"\na", b"a\na\n\na " + bad):
        (tmp_path / "text").write_bytes(content)
        with pytest.raises(
            UnusableInputError, match=r"text, line 4: this text is not UTF-8 \(byte 0x.. after \d+ bytes"
        ):
            tokenizer.tokenize_files([str(tmp_path / "text")])
    assert tokenizer.tokenize_bytes(b"a").ids.tolist() == [5]  # it still works


@tries(300)
@hypothesis.given(st.binary(max_size=12), st.booleans())
def test_any_bytes_are_refused_where_python_refuses_them(content: bytes, do_lower_case: bool) -> None:
    tokenizer = _SHARED[do_lower_case]
    try:
        content.replace(b"\r", b"").decode()
    except UnicodeDecodeError:
        with pytest.raises(UnusableInputError, match="not UTF-8"):
            tokenizer.tokenize_bytes(content)
    else:
        tokenizer.tokenize_bytes(content)


_SHARED = [Tokenizer(vocabulary_of_pieces([*SPECIAL, "a"]), do_lower_case=lower) for lower in (False, True)]


def test_a_vocabulary_that_is_too_large_is_one_sentence() -> None:
    with pytest.raises(UnusableInputError, match=r"have 17,000,\d+ bytes; the tokenizer takes up to 16,777,214\."):
        Tokenizer(vocabulary_of_pieces([*SPECIAL, "a" * 17_000_000]))
