"""The Mersenne Twister kernel draws the same numbers as Python's generator."""

import random

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from properties import tries

from maskmill.kernels import kernel
from maskmill.kernels import random as kernels
from maskmill.kernels.memory import address
from maskmill.kernels.random import USED, below, next_53_bits, next_word, shuffle_u16

# The kinds of draws: a word of 32 bits, 53 bits of a float, and a number below a size.
WORD, FRACTION, BELOW = 0, 1, 2


@kernel
def draw(twister, kinds, sizes, results):  # type: ignore[no-untyped-def]
    """Draws a number of each kind into `results`."""
    place = address(twister)
    used = np.int64(twister[USED])
    for k in range(len(kinds)):
        if kinds[k] == WORD:
            results[k], used = next_word(place, used)
        elif kinds[k] == FRACTION:
            results[k], used = next_53_bits(place, used)
        else:
            results[k], used = below(place, used, sizes[k])
    twister[USED] = used


@kernel
def shuffled(twister, items, first):  # type: ignore[no-untyped-def]
    """Shuffles uint16 items in place, so that the first `first` of them are final."""
    used = np.int64(twister[USED])
    twister[USED] = shuffle_u16(address(twister), used, address(items), len(items), first)


seeds = st.one_of(st.integers(), st.integers(-(2**200), 2**200))
draws = st.lists(
    st.tuples(st.sampled_from([WORD, FRACTION, BELOW]), st.one_of(st.integers(1, 600), st.integers(1, 2**32 - 1))),
    max_size=40,
)


@tries(200)
@hypothesis.given(seed=seeds, skipped=st.integers(0, 1300), kinds_and_sizes=draws)
def test_draws_are_those_of_python(seed: int, skipped: int, kinds_and_sizes: list[tuple[int, int]]) -> None:
    kinds_and_sizes = [(WORD, 1)] * skipped + kinds_and_sizes
    twister = kernels.seeded(seed)
    results = np.empty(len(kinds_and_sizes), np.int64)
    kinds, sizes = np.array(kinds_and_sizes, np.int64).reshape(-1, 2).T.copy()
    draw(twister, kinds, sizes, results)
    rng = random.Random(seed)
    for result, (kind, size) in zip(results.tolist(), kinds_and_sizes, strict=True):
        if kind == WORD:
            assert result == rng.getrandbits(32)
        elif kind == FRACTION:
            assert result * 2.0**-53 == rng.random()
        else:
            assert result == rng.randrange(size)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 31, 32, 33, 127, 128, 509, 511, 512, 513, 8189, 65533])
def test_shuffles_are_those_of_python(length: int) -> None:
    for seed in range(3):
        for first in {length, min(length, 1), min(length, 76), min(length, 500)}:
            twister = kernels.seeded(seed)
            rng = random.Random(seed)
            for _ in range(2):
                items = np.arange(length, dtype=np.uint16)
                shuffled(twister, items, first)
                expected = list(range(length))
                rng.shuffle(expected)
                assert items[:first].tolist() == expected[:first]
        twister = kernels.seeded(seed)
        rng = random.Random(seed)
        many = np.arange(length, dtype=np.int64)
        kernels.shuffle(twister, many)
        expected = list(range(length))
        rng.shuffle(expected)
        assert many.tolist() == expected
