"""Thirteen words in a row are found again, whatever case and marks they have, within a document."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from properties import tries

from maskmill.verification.shingles import WORDS, hash_shingles

SAID = "one two three four five six seven eight nine ten eleven twelve thirteen"


@pytest.mark.parametrize(
    ("said", "written", "is_found"),
    [
        (SAID, SAID, True),
        (SAID, SAID.rpartition(" ")[0], False),
        (SAID.upper(), SAID.replace(" ", "\n"), True),
        (SAID.replace(" ", ", ") + "!", f"“{SAID}” – «so»", True),
        (f"café {SAID}", f"CAFÉ {SAID}", True),
        (SAID, SAID.replace("six ", "six\n\n"), False),
        ("東京は日本の首都であり世界最大の都市である", "東京は、日本の首都であり。世界最大の都市である", True),
        ("東京は日本の首都であり世界最大の都市である", "東京は日本の首府であり世界最大の村である", False),
    ],
    ids=["the_same", "too_few", "case_and_lines", "marks", "accents", "two_documents", "ideographs", "others"],
)
def test_thirteen_words_in_a_row_are_found(said: str, written: str, is_found: bool) -> None:
    hashes, _ = hash_shingles([b"Something else.", said.encode()])
    found, _ = hash_shingles([text.encode() for text in written.split("\n\n")])
    assert bool(np.isin(hashes, found).any()) is is_found


@tries(60)
@hypothesis.given(st.lists(st.lists(st.sampled_from(["a", "bc", "b", "cab", "ß", "я"]), max_size=30), max_size=4))
def test_hashes_are_equal_where_the_words_are(documents: list[list[str]]) -> None:
    hashes, owners = hash_shingles([" ".join(words).encode() for words in documents])
    wanted = [
        (place, tuple(words[n : n + WORDS]))
        for place, words in enumerate(documents)
        for n in range(len(words) - WORDS + 1)
    ]
    assert owners.tolist() == [place for place, _ in wanted]
    by_hash = dict(zip(hashes.tolist(), (words for _, words in wanted), strict=True))
    assert len(by_hash) == len({words for _, words in wanted})
    assert [by_hash[value] for value in hashes.tolist()] == [words for _, words in wanted]
