"""Orders that are drawn by key, for windows of samples and chunks of a mix."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.counter_random import below, key_of


@kernel
def shuffle(values, seed, epoch, part):
    """Shuffle int64 values in place (Fisher and Yates); fewer than 2**32.

    seed: uint64. epoch, part: ints. The order is a function of these three and of the number of values.
    """
    state = key_of(seed, epoch, part)
    for last in range(len(values) - 1, 0, -1):
        place, state = below(state, last + 1)
        values[last], values[place] = values[place], values[last]


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    shuffle(np.arange(2), np.uint64(1), 0, 0)
