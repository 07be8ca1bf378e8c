"""Python's `random.Random`, draw for draw: the Mersenne Twister MT19937 and the methods that masking uses.

Arrays
  twister     uint32[TWISTER]: the 624 words of MT19937's state, then its next 624 outputs, then how many of those are
              used up. 32-bit words only, so that one array holds all.

Functions that draw take the address of `twister` and the number of outputs used, and return the number used after
them: a count that lives in a register, not in memory, is worth a third of the time. Whoever calls them loads it from
`twister` first and stores it there last.

The draws of CPython's `random()`, `_randbelow` and `shuffle` are the same from Python 3.6 to 3.13.
Source: M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998); CPython's Modules/_randommodule.c and
Lib/random.py for how draws become numbers.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import random

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.memory import address, get_u16, get_u32, leading_zeros, put_u16, put_u32

_WORDS = 624
_MIDDLE = 397
_OUTPUT = _WORDS  # where the outputs start
USED = 2 * _WORDS  # where their number is
TWISTER = 2 * _WORDS + 1

_UPPER = 0x80000000
_LOWER = 0x7FFFFFFF
_MATRIX = 0x9908B0DF


def seeded(seed: int) -> np.ndarray:
    """Return the state of `random.Random(seed)`, for any integer."""
    words = random.Random(seed).getstate()[1]
    twister = np.zeros(TWISTER, np.uint32)
    twister[:_WORDS] = words[:_WORDS]
    twister[USED] = _WORDS  # a fresh generator has no outputs yet
    return twister


@kernel
def refill(twister):
    """Make the next 624 outputs."""
    for i in range(_WORDS - _MIDDLE):
        y = (get_u32(twister, i) & _UPPER) | (get_u32(twister, i + 1) & _LOWER)
        put_u32(twister, i, get_u32(twister, i + _MIDDLE) ^ (y >> 1) ^ (_MATRIX * (y & 1)))
    for i in range(_WORDS - _MIDDLE, _WORDS - 1):
        y = (get_u32(twister, i) & _UPPER) | (get_u32(twister, i + 1) & _LOWER)
        put_u32(twister, i, get_u32(twister, i + _MIDDLE - _WORDS) ^ (y >> 1) ^ (_MATRIX * (y & 1)))
    y = (get_u32(twister, _WORDS - 1) & _UPPER) | (get_u32(twister, 0) & _LOWER)
    put_u32(twister, _WORDS - 1, get_u32(twister, _MIDDLE - 1) ^ (y >> 1) ^ (_MATRIX * (y & 1)))
    for i in range(_WORDS):
        y = get_u32(twister, i)
        y ^= y >> 11
        y ^= (y << 7) & 0x9D2C5680
        y ^= (y << 15) & 0xEFC60000
        y ^= y >> 18
        put_u32(twister, _OUTPUT + i, y)


@kernel
def next_word(twister, used):
    """Return getrandbits(32), as int64."""
    if used == _WORDS:
        refill(twister)
        used = np.int64(0)
    return get_u32(twister, _OUTPUT + used), used + 1


@kernel
def next_53_bits(twister, used):
    """Return random() * 2**53, as int64."""
    high, used = next_word(twister, used)
    low, used = next_word(twister, used)
    return high >> 5 << 26 | low >> 6, used


@kernel
def below(twister, used, n):
    """_randbelow(n), for 1 <= n < 2**32. Draws for n = 1 too, as CPython does."""
    shift = leading_zeros(np.uint64(n)) - 32
    word, used = next_word(twister, used)
    while word >> shift >= n:
        word, used = next_word(twister, used)
    return word >> shift, used


@kernel
def shuffle_u16(twister, used, items, length, first):
    """Return shuffle(items) of uint16[length] at an address, of which only items[:first] must come out right.

    The rest is left in any state.
    """
    i = length - 1
    while i > 0:
        # Draws for i + 1 down to the next power of two take the same number of bits.
        zeros = leading_zeros(np.uint64(i + 1))
        last = max((np.int64(1) << (63 - zeros)) - 1, 1)
        shift = zeros - 32
        # An item that moves up to a place at `first` or beyond is never looked at again.
        stop = max(last, first)
        while i >= stop:
            if used == _WORDS:
                refill(twister)
                used = np.int64(0)
            for draw in range(used, used + min(_WORDS - used, i - stop + 1)):
                # No branch on whether the draw is accepted: it goes either way too often to be foreseen.
                j = get_u32(twister, _OUTPUT + draw) >> shift
                used += 1
                accepted = j <= i
                put_u16(items, j if accepted else i, get_u16(items, i))
                i -= accepted
        while i >= last:
            if used == _WORDS:
                refill(twister)
                used = np.int64(0)
            for draw in range(used, used + min(_WORDS - used, i - last + 1)):
                j = get_u32(twister, _OUTPUT + draw) >> shift
                used += 1
                accepted = j <= i
                j = j if accepted else i
                item = get_u16(items, j)
                put_u16(items, j, get_u16(items, i))
                put_u16(items, i, item)
                i -= accepted
    return used


@kernel
def shuffle(twister, items):
    """shuffle(items), for int64 arrays of fewer than 2**32 elements."""
    place = address(twister)
    used = np.int64(twister[USED])
    for i in range(len(items) - 1, 0, -1):
        j, used = below(place, used, i + 1)
        item = items[j]
        items[j] = items[i]
        items[i] = item
    twister[USED] = used


def warm_up() -> None:
    """Compile the entry kernel of this module."""
    shuffle(seeded(0), np.arange(2, dtype=np.int64))
