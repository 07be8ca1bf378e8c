"""The plan of text shards: boundaries, eval membership, names."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.errors import UnusableInputError
from transforms.shards import text_shards
from transforms.shards.fragments import TABLE, eval_hash, merge_ranges
from transforms.shards.text_shards import SplitOptions, choose_eval, cut_shards, shard_name

HASHES = np.array([eval_hash(12345, str(i)) for i in range(20000)], np.uint64)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=200), st.integers(1, 2000))
def test_shards_are_runs_of_documents_without_gaps(sizes: list[int], shard_bytes: int) -> None:
    numbers = cut_shards(np.array(sizes, np.int64), shard_bytes)
    assert numbers[0] == 0
    assert set(np.diff(numbers).tolist()) <= {0, 1}
    for number in range(int(numbers.max()) + 1):
        mine = np.array(sizes)[numbers == number]
        # A shard is over the size by less than its last document.
        assert mine[:-1].sum() <= shard_bytes
        assert len(mine)


def test_no_document_gives_no_shard() -> None:
    assert cut_shards(np.zeros(0, np.int64), 100).tolist() == []


def test_a_fraction_takes_about_its_share_and_the_same_documents_of_any_corpus() -> None:
    options = SplitOptions(eval_fraction=0.1)
    chosen = choose_eval(HASHES, options)
    assert 0.09 < chosen.mean() < 0.11
    some = np.arange(0, len(HASHES), 3)
    assert (choose_eval(HASHES[some], options) == chosen[some]).all()


def test_a_number_is_exact_and_takes_the_smallest_hashes() -> None:
    chosen = choose_eval(HASHES, SplitOptions(num_eval_articles=500))
    assert chosen.sum() == 500
    assert HASHES[chosen].max() < HASHES[~chosen].min()


def test_a_larger_corpus_changes_a_few_members_only() -> None:
    small = set(HASHES[:19000][choose_eval(HASHES[:19000], SplitOptions(num_eval_articles=500))].tolist())
    large = set(HASHES[choose_eval(HASHES, SplitOptions(num_eval_articles=500))].tolist())
    assert len(small & large) > 450


def test_more_eval_articles_than_there_are_is_one_sentence() -> None:
    with pytest.raises(UnusableInputError, match="--num_eval_articles 21 is more than the 20 articles"):
        choose_eval(HASHES[:20], SplitOptions(num_eval_articles=21))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"shard_size_mb": 0.0}, "--shard_size_mb must be positive"),
        ({"num_eval_articles": -1}, "--num_eval_articles must be 0 or more"),
        ({"eval_fraction": 1.0}, "--eval_fraction must be at least 0 and below 1"),
        ({"eval_fraction": 0.1, "num_eval_articles": 3}, "exclude each other"),
    ],
)
def test_unusable_options_are_one_sentence(values: dict[str, float], message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        SplitOptions(**values)  # type: ignore[arg-type]


def test_names_carry_the_true_count() -> None:
    assert shard_name("train", 3, 12) == "part-00003-of-00012"
    assert shard_name("eval", 0, 1) == "eval.txt"
    assert shard_name("eval", 1, 2) == "eval-00001-of-00002.txt"


def test_the_hash_of_an_empty_article_is_that_of_nothing() -> None:
    assert text_shards.article_md5(b"\n") == "d41d8cd98f00b204e9800998ecf8427e"


def test_neighbours_are_read_as_one_range() -> None:
    rows = np.array([(0, 0, 10, 1), (0, 10, 5, 1), (0, 20, 5, 1), (0, 25, 1, 1)], TABLE)
    assert merge_ranges(rows).tolist() == [[0, 15], [20, 26]]
