"""Counts by name."""

from hypothesis import given
from hypothesis import strategies as st

from maskmill.storage.manifest import sum_counts

COUNTS = st.dictionaries(st.sampled_from(["read", "documents", "empty", "redirects"]), st.integers(0, 100))


def test_counts_of_a_name_are_added_and_the_names_sorted() -> None:
    total = sum_counts([{"read": 3, "empty": 1}, {}, {"documents": 2, "read": 2}])
    assert list(total.items()) == [("documents", 2), ("empty", 1), ("read", 5)]
    assert sum_counts([]) == {}


@given(st.lists(COUNTS), st.lists(COUNTS))
def test_a_sum_may_be_taken_in_any_parts(first: list[dict[str, int]], second: list[dict[str, int]]) -> None:
    assert sum_counts([*first, *second]) == sum_counts([sum_counts(second), sum_counts(first)])
