"""Counts the pieces of a text that are in no instance: what truncation has cut off in every pass."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel

_WORD_BITS = 64
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def count_unused(spans, lengths, pieces):
    """Return how many of a text's `pieces` are in no instance.

    spans, lengths: int64 and int32[instances, 2], as InstanceArrays has them.
    """
    # A bit for each piece: whether it is in an instance. Those after the last piece count as used.
    used = np.zeros(pieces // _WORD_BITS + 1, np.uint64)
    used[-1] = _ALL << np.uint64(pieces % _WORD_BITS)
    for n in range(len(spans)):
        for part in range(2):
            if lengths[n, part] > 0:
                _mark(used, spans[n, part], spans[n, part] + lengths[n, part] - 1)
    unused = 0
    for word in used:
        left = ~word
        while left:
            left &= left - np.uint64(1)
            unused += 1
    return unused


@kernel
def _mark(used, first, last):
    """Set the bits from `first` to `last`."""
    start = first // _WORD_BITS
    end = last // _WORD_BITS
    from_first = _ALL << np.uint64(first % _WORD_BITS)
    to_last = _ALL >> np.uint64(_WORD_BITS - 1 - last % _WORD_BITS)
    if start == end:
        used[start] |= from_first & to_last
        return
    used[start] |= from_first
    for word in range(start + 1, end):
        used[word] = _ALL
    used[end] |= to_last


def warm_up() -> None:
    """Compile the entry kernel of this module."""
    count_unused(np.zeros((1, 2), np.int64), np.ones((1, 2), np.int32), 1)
