"""The Mersenne Twister kernel against Python's own generator."""

import random

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from transforms.kernels import kernel
from transforms.kernels import random as kernels
from transforms.kernels.memory import address
from transforms.kernels.random import USED, below, next_53_bits, next_word, shuffle_u16


@kernel
def draw(twister, kinds, sizes, results):  # type: ignore[no-untyped-def]
    """Draws one number of each kind; returns nothing but what it leaves in `results`."""
    place = address(twister)
    used = np.int64(twister[USED])
    for k in range(len(kinds)):
        if kinds[k] == 0:
            results[k], used = next_word(place, used)
        elif kinds[k] == 1:
            results[k], used = next_53_bits(place, used)
        else:
            results[k], used = below(place, used, sizes[k])
    twister[USED] = used


@kernel
def shuffled(twister, items, first):  # type: ignore[no-untyped-def]
    """Shuffles uint16 items."""
    used = np.int64(twister[USED])
    twister[USED] = shuffle_u16(address(twister), used, address(items), len(items), first)


seeds = st.one_of(st.integers(), st.integers(-(2**200), 2**200))
draws = st.lists(st.tuples(st.integers(0, 2), st.one_of(st.integers(1, 600), st.integers(1, 2**32 - 1))), max_size=40)


@hypothesis.settings(max_examples=200, deadline=None, derandomize=True)
@hypothesis.given(seed=seeds, skipped=st.integers(0, 1300), wanted=draws)
def test_draws_are_pythons(seed: int, skipped: int, wanted: list[tuple[int, int]]) -> None:
    wanted = [(0, 1)] * skipped + wanted
    twister = kernels.seeded(seed)
    results = np.empty(len(wanted), np.int64)
    draw(twister, np.array([k for k, _ in wanted], np.int64), np.array([n for _, n in wanted], np.int64), results)
    rng = random.Random(seed)
    for result, (kind, size) in zip(results.tolist(), wanted, strict=True):
        if kind == 0:
            assert result == rng.getrandbits(32)
        elif kind == 1:
            assert result * 2.0**-53 == rng.random()
        else:
            assert result == rng.randrange(size)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 31, 32, 33, 127, 128, 509, 511, 512, 513, 8189, 65533])
def test_shuffles_are_pythons(length: int) -> None:
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
