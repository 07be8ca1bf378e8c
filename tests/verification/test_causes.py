"""What a shard that is made again says of one that differs from it."""

import numpy as np
import pytest

from maskmill.verification.remaking_checks import _cause

ROWS = np.arange(20, dtype=np.uint64).reshape(10, 2)
MASKED_ELSEWHERE = ROWS + np.array([0, 1000], np.uint64)


@pytest.mark.parametrize(
    ("found", "cause"),
    [
        (ROWS[::-1], "the same records stand in another order"),
        (ROWS[:-3], "3 of 10 records are missing"),
        (ROWS[::2], "5 of 10 records are missing"),
        (MASKED_ELSEWHERE, "the text is the same, and other places of it are masked"),
        (ROWS + np.uint64(1000), "no record has text of this shard"),
        (np.concatenate([ROWS[:5], ROWS[5:] + np.uint64(1000)]), "50.0% of its records have text of this shard"),
        (np.zeros((0, 2), np.uint64), "10 of 10 records are missing"),
    ],
)
def test_the_cause_is_named(found: np.ndarray, cause: str) -> None:
    assert _cause(ROWS, found).startswith(cause)
