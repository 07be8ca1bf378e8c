"""The counter-based generator against its sources and the oracle."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import row_masks as oracle
from properties import tries

from maskmill.kernels.counter_random import below, key_of, next_53_bits, next_64_bits, seed_of

STATES = st.integers(0, 2**64 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


def test_numbers_are_those_of_splitmix64() -> None:
    """The first five numbers of splitmix64.c with the seed 1234567."""
    state, numbers = np.uint64(1234567), []
    for _ in range(5):
        number, state = next_64_bits(np.uint64(state))
        numbers.append(number)
    assert numbers == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@tries(200)
@given(seed=st.integers(-(2**70), 2**70), epoch=INT64, sample=INT64)
def test_keys_and_numbers_are_those_of_the_oracle(seed: int, epoch: int, sample: int) -> None:
    generator = oracle.Generator(*(part % 2**64 for part in (seed, epoch, sample)))
    state = np.uint64(key_of(seed_of(seed), np.int64(epoch), np.int64(sample)))
    assert state == generator.state
    for _ in range(3):
        drawn, state = next_53_bits(np.uint64(state))
        assert drawn == generator.bits(53)


@tries(300)
@given(state=STATES, n=st.integers(1, 2**32 - 1))
@example(state=0, n=1)
@example(state=0, n=2**32 - 1)
@example(state=0, n=2**31 + 1)  # half of all numbers are drawn again
def test_numbers_below_n_are_those_of_the_oracle(state: int, n: int) -> None:
    generator = oracle.Generator()
    generator.state = state
    after = np.uint64(state)
    for _ in range(8):
        drawn, after = below(np.uint64(after), np.int64(n))
        assert drawn == generator.below(n) < n
    assert after == generator.state


@pytest.mark.parametrize("n", [3, 10, 3 * 2**30])
def test_numbers_below_n_are_equally_likely(n: int) -> None:
    """In thirds of 0 to n - 1; without redrawing, the first third of 3 * 2**30 would get half of the numbers."""
    state, count, drawn = np.uint64(1), 30_000, []
    for _ in range(count):
        number, state = below(np.uint64(state), np.int64(n))
        drawn.append(number)
    for third in range(3):
        numbers = range(n * third // 3, n * (third + 1) // 3)
        share = len(numbers) / n
        within = 5 * (count * share * (1 - share)) ** 0.5
        assert abs(sum(number in numbers for number in drawn) - count * share) < within
