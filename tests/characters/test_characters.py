"""Characters of UTF-8 bytes, against Python's own: validity, code points, properties, white space."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from properties import tries

from maskmill.characters.classes import CharacterRules, character_tables
from maskmill.characters.kernels import characters as kernels

RULES: list[CharacterRules] = ["nltk-3.4", "nltk-3.10.4"]
# The first and the last character of each length, and the neighbours of the surrogates.
EDGES = "\0\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"
characters = st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(EDGES))
texts = st.text(characters, max_size=40)
# Bytes that are almost UTF-8: characters, and bytes that start, continue or end one at the wrong place.
broken = st.lists(
    st.one_of(
        characters.map(str.encode),
        st.sampled_from(
            [b"\x80", b"\xbf", b"\xc0", b"\xc1", b"\xc2", b"\xe0", b"\xed", b"\xf0", b"\xf4", b"\xf5", b"\xff"]
        ),
        st.sampled_from([b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80"]),
        st.binary(max_size=3),
        st.just(b"ascii text"),
    ),
    max_size=12,
).map(b"".join)


def first_invalid(data: bytes) -> int:
    array = np.frombuffer(data, np.uint8)
    return int(kernels.first_invalid(array, array[: array.size // 8 * 8].view(np.uint64)))


def first_invalid_of_python(data: bytes) -> int:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def bytes_of(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


@tries(500)
@given(broken)
@example(b"")
@example(b"1234567\xc3")
@example(b"12345678\xc3\xa9\x80")
@example("é".encode() * 100 + b"\xed\xbf\xbf")
def test_the_first_invalid_byte_is_pythons(data: bytes) -> None:
    assert first_invalid(data) == first_invalid_of_python(data)


def test_every_pair_of_first_bytes_is_valid_where_python_says_so() -> None:
    for lead in range(256):
        for second in range(256):
            for rest in (b"", b"\x80", b"\x80\x80"):
                data = bytes((lead, second)) + rest
                assert first_invalid(data) == first_invalid_of_python(data), data


@tries(200)
@given(texts)
@example(EDGES)
def test_code_points_and_places_are_those_of_the_text(text: str) -> None:
    data = bytes_of(text)
    assert first_invalid(text.encode()) == -1
    codes, places = [], []
    at = 0
    while at < data.size:
        code, size = kernels.code_at(data, at)
        codes.append(code)
        places.append(at)
        at += size
    assert "".join(map(chr, codes)) == text
    assert at == data.size
    before = []
    while at > 0:
        at = kernels.character_before(data, at, 0)
        before.append(at)
    assert before == places[::-1]


@tries(200)
@given(texts)
@example(EDGES)
def test_code_points_are_written_as_python_encodes_them(text: str) -> None:
    out = np.zeros(4 * len(text), np.uint8)
    size = 0
    for character in text:
        size = kernels.put_code_point(out, size, ord(character))
    assert out[:size].tobytes() == text.encode()
    assert not out[size:].any()


@pytest.mark.parametrize("rules", RULES)
def test_the_tables_have_the_properties_of_python(rules: CharacterRules) -> None:
    tables = character_tables(rules)
    for character in "aZéÉßΣσ中0٣²_ \u00a0\u0301.'‘":
        found, size = kernels.character(tables, bytes_of(character), 0)
        assert size == len(character.encode())
        assert found == kernels.entry(tables, ord(character))
        assert bool(found & kernels.UPPER) == character.isupper()
        assert bool(found & kernels.LOWER) == character.islower()
        assert bool(found & kernels.DIGIT) == character.isdecimal()
        assert bool(found & kernels.STRIPPED) == (not character.strip())
        assert chr(ord(character) + (found >> kernels.DELTA_SHIFT)) == character.lower()


stripped_texts = st.text(st.sampled_from(" \t\x1c\x85\xa0\u2003\u3000\u200ba.é中"), max_size=12)


@tries(200)
@given(stripped_texts)
def test_white_space_is_stripped_as_str_strips_it(text: str) -> None:
    tables = character_tables("nltk-3.10.4")
    data = bytes_of(text)
    start = kernels.stripped_start(tables, data, 0, data.size)
    end = kernels.stripped_end(tables, data, 0, data.size)
    assert data[start:].tobytes().decode() == text.lstrip()
    assert data[:end].tobytes().decode() == text.rstrip()
