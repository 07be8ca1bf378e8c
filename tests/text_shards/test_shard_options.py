"""The options of the shards' steps: each check with a value that fails it, and what holds where nothing is given."""

import pytest

from maskmill.errors import UnusableInputError
from maskmill.text_shards.options import DEFAULT_EVAL_FRACTION, QualityOptions, SplitOptions


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"min_characters": 0}, "--min_characters must be 1 or more, not 0."),
        ({"min_letter_share": 1.5}, "--min_letter_share must be between 0 and 1, not 1.5."),
        ({"max_repeated_share": -0.1}, "--max_repeated_share must be between 0 and 1"),
        ({"max_list_share": 2}, "--max_list_share must be between 0 and 1"),
        ({"near_duplicate_threshold": 0}, "--near_duplicate_threshold must be above 0 and at most 1"),
        ({"near_duplicate_threshold": 1.1}, "--near_duplicate_threshold must be above 0 and at most 1, not 1.1."),
        ({"min_duplicate_words": 0}, "--min_duplicate_words must be 1 or more"),
    ],
)
def test_quality_options_are_checked(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        QualityOptions(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shard_size_mb": 0.0}, "--shard_size_mb must be positive"),
        ({"shard_size_mb": float("nan")}, "--shard_size_mb must be positive, a finite number of MB, not nan"),
        ({"shard_size_mb": float("inf")}, "--shard_size_mb must be positive, a finite number of MB, not inf"),
        ({"shard_size_mb": 1e-300}, "--shard_size_mb must be positive"),
        ({"shard_size_mb": 0}, "--shard_size_mb must be positive, a finite number of MB, not 0."),
        ({"num_eval_articles": -1}, "--num_eval_articles must be 0 or more, not -1."),
        ({"eval_fraction": 1.0}, "--eval_fraction must be at least 0 and below 1"),
        ({"eval_fraction": -0.1}, "--eval_fraction must be at least 0 and below 1, not -0.1."),
        ({"eval_fraction": 0.1, "num_eval_articles": 3}, "exclude each other"),
        ({"max_documents": 0}, "--max_documents must be 1 or more, not 0."),
    ],
)
def test_split_options_are_checked(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        SplitOptions(**wrong)  # type: ignore[arg-type]


def test_the_ends_of_the_ranges_are_allowed() -> None:
    QualityOptions(min_letter_share=0, max_repeated_share=1, near_duplicate_threshold=1, min_duplicate_words=1)
    SplitOptions(eval_fraction=0, max_documents=1)
    SplitOptions(num_eval_articles=0)


@pytest.mark.parametrize(
    ("options", "filters_documents", "finds_duplicates"),
    [
        (QualityOptions(), False, False),
        (QualityOptions(min_characters=1), True, False),
        (QualityOptions(min_letter_share=0.0), True, False),
        (QualityOptions(max_repeated_share=0.0), True, False),
        (QualityOptions(max_list_share=0.0), True, False),
        (QualityOptions(drop_stubs=True), True, False),
        (QualityOptions(drop_duplicates=True), False, True),
        (QualityOptions(near_duplicate_threshold=0.8), False, True),
    ],
)
def test_which_filters_are_on(options: QualityOptions, filters_documents: bool, finds_duplicates: bool) -> None:
    assert (options.filters_documents, options.finds_duplicates) == (filters_documents, finds_duplicates)


def test_defaults_stand_in_for_what_is_not_given() -> None:
    decided = SplitOptions().decided
    assert (decided.eval_fraction, decided.num_eval_articles, decided.shard_size_mb) == (
        DEFAULT_EVAL_FRACTION,
        None,
        27,
    )
    counted = SplitOptions(num_eval_articles=5, shard_size_mb=1, max_documents=9).decided
    assert counted == SplitOptions(num_eval_articles=5, shard_size_mb=1, max_documents=9)
    assert SplitOptions(eval_fraction=0.2).decided.eval_fraction == 0.2
    assert counted.decided_by_mlperf == counted
    assert SplitOptions().decided_by_mlperf == SplitOptions(num_eval_articles=10000, shard_size_mb=26.92)
