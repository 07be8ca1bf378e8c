"""Bounds of the binomial and the Poisson law, for numbers that are too far off to be chance.

The terms of a tail fall faster than those of a geometric series, whose sum is therefore an upper bound.
"""

import math

# The probability of a false alarm, for all numbers of a data set together.
FALSE_ALARM = 1e-12


def upper_tail(successes: int, trials: int, probability: float) -> float:
    """Return an upper bound of P(X >= successes) of the binomial law."""
    if successes <= trials * probability or probability >= 1:
        return 1.0
    if successes > trials or probability <= 0:
        return 0.0
    failed, odds = trials - successes, probability / (1 - probability)
    ways = math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(failed + 1)
    first = math.exp(ways + successes * math.log(probability) + failed * math.log1p(-probability))
    return min(1.0, first / (1 - failed * odds / (successes + 1)))


def poisson_tail(events: int, expected: float) -> float:
    """Return an upper bound of P(X >= events) of the Poisson law."""
    if events <= expected:
        return 1.0
    if expected <= 0:
        return 0.0
    first = math.exp(events * math.log(expected) - expected - math.lgamma(events + 1))
    return min(1.0, first / (1 - expected / (events + 1)))


def is_too_many(successes: int, trials: int, probability: float, tests: int = 1) -> bool:
    """Return whether there are too many successes to be chance, among `tests` numbers that are tested."""
    return upper_tail(successes, trials, probability) < FALSE_ALARM / max(1, tests)


def is_unlikely(successes: int, trials: int, least: float, most: float, tests: int = 1) -> bool:
    """Return whether this number of successes cannot be chance for any probability from least to most."""
    return is_too_many(successes, trials, min(1.0, most), tests) or is_too_many(
        trials - successes, trials, 1 - max(0.0, least), tests
    )
