"""Eval membership: the order of the hashes, the share, the count."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskmill.errors import UnusableInputError
from maskmill.text_shards.eval_membership import choose_eval, eval_hash
from maskmill.text_shards.options import SplitOptions

HASHES = np.array([eval_hash(12345, str(i)) for i in range(20000)], np.uint64)

ANY_HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=50).map(lambda hashes: np.array(hashes, np.uint64))


def test_a_hash_is_of_the_seed_and_the_id_alone() -> None:
    # The first 8 bytes of sha256("12345:eval:1"): another value changes the eval set of every build.
    assert eval_hash(12345, "1") == 5567945275249446971
    assert eval_hash(12345, "2") != eval_hash(12345, "1")
    assert eval_hash(12346, "1") != eval_hash(12345, "1")


def test_a_fraction_takes_about_its_share() -> None:
    assert 0.09 < choose_eval(HASHES, SplitOptions(eval_fraction=0.1)).mean() < 0.11
    assert not choose_eval(HASHES, SplitOptions(eval_fraction=0)).any()
    assert choose_eval(HASHES, SplitOptions(eval_fraction=math.nextafter(1, 0))).all()


@given(ANY_HASHES, st.floats(0, 1, exclude_max=True))
def test_a_fraction_decides_on_each_document_alone(hashes: npt.NDArray[np.uint64], fraction: float) -> None:
    options = SplitOptions(eval_fraction=fraction)
    is_eval = choose_eval(hashes, options)
    assert is_eval.tolist() == [bool(choose_eval(hashes[i : i + 1], options)[0]) for i in range(len(hashes))]
    # A smaller eval set is part of a larger one.
    assert not (choose_eval(hashes, SplitOptions(eval_fraction=fraction / 2)) & ~is_eval).any()


@given(ANY_HASHES, st.integers(0, 60))
def test_a_count_is_exact_and_takes_the_smallest_hashes(hashes: npt.NDArray[np.uint64], count: int) -> None:
    options = SplitOptions(num_eval_articles=count)
    if count > len(hashes):
        with pytest.raises(UnusableInputError, match=f"{count} is more than the {len(hashes)} articles"):
            choose_eval(hashes, options)
        return
    is_eval = choose_eval(hashes, options)
    assert is_eval.sum() == count
    assert sorted(hashes[is_eval].tolist()) == sorted(hashes.tolist())[:count]


def test_of_equal_hashes_the_earlier_document_is_taken() -> None:
    hashes = np.array([5, 3] * 500, np.uint64)
    is_eval = choose_eval(hashes, SplitOptions(num_eval_articles=300))
    assert np.flatnonzero(is_eval).tolist() == list(range(1, 600, 2))


def test_a_larger_corpus_changes_a_few_members_only() -> None:
    small = set(HASHES[:19000][choose_eval(HASHES[:19000], SplitOptions(num_eval_articles=500))].tolist())
    large = set(HASHES[choose_eval(HASHES, SplitOptions(num_eval_articles=500))].tolist())
    assert len(small & large) > 450
