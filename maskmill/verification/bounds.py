"""Bounds of the binomial law: is a number so far off that it cannot be chance?"""

import math

# How likely a false alarm may be, for all numbers of a data set together.
FALSE_ALARM = 1e-12
_NEGLIGIBLE = 1e-17  # of a sum


def upper_tail(successes: int, trials: int, probability: float) -> float:
    """P(X >= successes) of the binomial law, to some 10 digits."""
    if successes <= 0 or probability >= 1:
        return 1.0
    if successes > trials or probability <= 0:
        return 0.0
    if successes <= trials * probability:
        return 1.0 - _sum_up(trials - successes + 1, trials, 1 - probability)
    return _sum_up(successes, trials, probability)


def poisson_tail(events: int, expected: float) -> float:
    """P(X >= events) of the Poisson law, a sum; 1 for fewer events than expected."""
    if events <= expected or events <= 0:
        return 1.0
    if expected <= 0:
        return 0.0
    term = math.exp(-expected + events * math.log(expected) - math.lgamma(events + 1))
    total, k = term, events
    while term > total * _NEGLIGIBLE:
        k += 1
        term *= expected / k
        total += term
    return min(1.0, total)


def _sum_up(successes: int, trials: int, probability: float) -> float:
    """P(X >= successes), summed from there upwards; the terms fall once past the mean."""
    k = successes
    logarithm = (
        math.lgamma(trials + 1)
        - math.lgamma(k + 1)
        - math.lgamma(trials - k + 1)
        + k * math.log(probability)
        + (trials - k) * math.log1p(-probability)
    )
    term = math.exp(logarithm)
    total = term
    odds = probability / (1 - probability)
    while k < trials and term > total * _NEGLIGIBLE:
        term *= (trials - k) / (k + 1) * odds
        k += 1
        total += term
    return min(1.0, total)


def is_too_many(successes: int, trials: int, probability: float, tests: int = 1) -> bool:
    """Whether so many successes cannot be chance, where `tests` numbers are looked at."""
    return upper_tail(successes, trials, probability) < FALSE_ALARM / max(1, tests)


def is_unlikely(successes: int, trials: int, least: float, most: float, tests: int = 1) -> bool:
    """Whether so many successes cannot be chance, whichever probability from least to most is the right one."""
    return is_too_many(successes, trials, min(1.0, most), tests) or is_too_many(
        trials - successes, trials, 1 - max(0.0, least), tests
    )
