"""Orders drawn by key, against a plain Fisher-Yates loop."""

import random

import numpy as np
import pytest
from oracles.row_masks import Generator

from maskmill.loading.kernels.shuffling import shuffle


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000])
def test_an_order_is_that_of_a_plain_loop(count: int) -> None:
    rng = random.Random(count)
    seed, epoch, part = rng.getrandbits(64), rng.randrange(2**40), rng.randrange(2**40)
    values = np.arange(count)
    shuffle(values, np.uint64(seed), epoch, part)
    expected = list(range(count))
    generator = Generator(seed, epoch, part)
    for last in range(count - 1, 0, -1):
        place = generator.below(last + 1)
        expected[last], expected[place] = expected[place], expected[last]
    assert values.tolist() == expected
