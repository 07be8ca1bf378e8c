"""Signatures of paragraphs: the same for the same words, in every process."""

import sys

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskmill.errors import UnusableInputError
from maskmill.text_shards.options import QualityOptions
from maskmill.text_shards.signatures import (
    PARAGRAPHS,
    PERMUTATIONS,
    SIGNED_PARAGRAPHS,
    ParagraphSigner,
    paragraphs_type,
)

PROSE = "The quick brown fox jumps over the lazy dog near the old stone bridge every morning."
EXACT_ONLY = QualityOptions(drop_duplicates=True)
BOTH = QualityOptions(drop_duplicates=True, near_duplicate_threshold=0.8)


def sign(paragraph: str | bytes, options: QualityOptions = BOTH) -> npt.NDArray[np.void]:
    """The row of a paragraph, which must have words enough."""
    row = np.zeros(1, paragraphs_type(options))
    assert ParagraphSigner(options).sign(row, paragraph.encode() if isinstance(paragraph, str) else paragraph)
    return row[0]


def test_rows_have_a_minhash_where_near_duplicates_are_looked_for() -> None:
    assert paragraphs_type(EXACT_ONLY) == PARAGRAPHS
    assert paragraphs_type(BOTH) == SIGNED_PARAGRAPHS
    assert SIGNED_PARAGRAPHS["near"].shape == (PERMUTATIONS,)


def test_a_signature_is_the_same_in_every_process() -> None:
    # datasketch 2, affine32, seed 1: a change here changes what builds drop.
    row = sign(PROSE)
    assert row["exact"] == 3026167595382194493
    assert row["near"][[0, 1, 127]].tolist() == [42148951, 389258849, 852453523]


def test_a_signer_forgets_the_paragraph_before() -> None:
    signer = ParagraphSigner(BOTH)
    rows = np.zeros(2, paragraphs_type(BOTH))
    assert signer.sign(rows[:1], b"A slow green turtle walks under the busy road beside a new wooden fence.")
    assert signer.sign(rows[1:], PROSE.encode())
    assert rows[1] == sign(PROSE)
    assert rows[0] != rows[1]


@given(st.lists(st.sampled_from(["river", "Stone", "ÉTÉ", "straße", "漢字"]), min_size=10, max_size=30))
def test_case_punctuation_and_spaces_do_not_count(words: list[str]) -> None:
    row = sign(" ".join(words))
    assert sign("  " + ", ".join(words).upper() + "!") == row


def test_short_paragraphs_are_not_signed() -> None:
    row = np.zeros(1, paragraphs_type(BOTH))
    assert not ParagraphSigner(BOTH).sign(row, b"nine words are one word less than are wanted")
    assert not row[0]["exact"]
    assert not row[0]["near"].any()


def test_paragraphs_shorter_than_a_shingle_can_be_signed() -> None:
    options = QualityOptions(near_duplicate_threshold=0.8, min_duplicate_words=1)
    assert sign("one two", options) == sign("One, two.", options)
    assert sign("one two", options) != sign("one three", options)


def test_bytes_that_are_not_utf8_are_signed() -> None:
    assert sign(PROSE.encode() + b" \xff") == sign(PROSE)


def test_a_missing_datasketch_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketch", None)
    with pytest.raises(UnusableInputError, match=r"install it: pip install 'maskmill\[quality\]'\."):
        ParagraphSigner(BOTH)
    ParagraphSigner(EXACT_ONLY)
