"""The bounds of the laws by which shares are judged, held against exact sums."""

import math
from fractions import Fraction

import hypothesis
from hypothesis import strategies as st
from properties import tries

from maskmill.verification.bounds import is_too_many, is_unlikely, poisson_tail, upper_tail


def exact_tail(successes: int, trials: int, probability: Fraction) -> float:
    """P(X >= successes), in whole numbers."""
    return float(
        sum(
            math.comb(trials, k) * probability**k * (1 - probability) ** (trials - k)
            for k in range(max(0, successes), trials + 1)
        )
    )


@tries(60)
@hypothesis.given(st.data())
def test_no_binomial_tail_is_more_likely_than_its_bound(data: st.DataObject) -> None:
    trials = data.draw(st.integers(1, 60))
    successes = data.draw(st.integers(0, trials))
    probability = data.draw(st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100))
    wanted = exact_tail(successes, trials, probability)
    bound = upper_tail(successes, trials, float(probability))
    assert wanted <= bound * (1 + 1e-9)
    assert bound <= 2 * wanted * math.sqrt(trials) or bound == 1.0


def test_poisson_tails() -> None:
    assert poisson_tail(0, 3.0) == 1.0
    assert poisson_tail(1, 0.0) == 0.0
    exact = 1 - math.exp(-0.01) * (1 + 0.01 + 0.01**2 / 2)
    assert exact <= poisson_tail(3, 0.01) < 1.01 * exact


def test_only_what_cannot_be_chance_is_too_much() -> None:
    assert not is_too_many(5300, 10_000, 0.5)
    assert is_too_many(5400, 10_000, 0.5)
    assert is_unlikely(4600, 10_000, 0.5, 0.5)
    assert is_unlikely(5400, 10_000, 0.5, 0.5)
    assert not is_unlikely(4600, 10_000, 0.46, 0.5)
    assert not is_too_many(8, 10, 0.5)
    assert is_too_many(1, 10, 0.0)
    assert not is_too_many(5350, 10_000, 0.5, tests=1000)
    # What one number cannot have by chance, one of a thousand can.
    assert is_too_many(5360, 10_000, 0.5)
    assert not is_too_many(5360, 10_000, 0.5, tests=1000)
    assert is_unlikely(4640, 10_000, 0.5, 0.5)
    assert not is_unlikely(4640, 10_000, 0.5, 0.5, tests=1000)
