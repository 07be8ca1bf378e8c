"""Python's `random.Random`, draw for draw: the Mersenne Twister MT19937 and the methods that masking uses.

Arrays
  twister     uint32[TWISTER]: the 624 words of MT19937's state, then its next 624 outputs, then how many of those are
              used up. 32-bit words only, so that one array holds all.

The draws of CPython's `random()`, `_randbelow` and `shuffle` are the same from Python 3.6 to 3.13.
Source: M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998); CPython's Modules/_randommodule.c and
Lib/random.py for how draws become numbers.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import random

import numpy as np

from transforms.kernels import kernel

_WORDS = 624
_MIDDLE = 397
_OUTPUT = _WORDS  # where the outputs start
USED = 2 * _WORDS  # where their number is
TWISTER = 2 * _WORDS + 1

_UPPER = np.uint32(0x80000000)
_LOWER = np.uint32(0x7FFFFFFF)
_MATRIX = np.uint32(0x9908B0DF)
_ONE = np.uint32(1)


def seeded(seed: int) -> np.ndarray:
    """The state of `random.Random(seed)`, for any integer."""
    words = random.Random(seed).getstate()[1]
    twister = np.zeros(TWISTER, np.uint32)
    twister[:_WORDS] = words[:_WORDS]
    twister[USED] = _WORDS  # a fresh generator has no outputs yet
    return twister


@kernel
def refill(twister):
    """Makes the next 624 outputs."""
    for i in range(_WORDS - _MIDDLE):
        y = (twister[i] & _UPPER) | (twister[i + 1] & _LOWER)
        twister[i] = twister[i + _MIDDLE] ^ (y >> _ONE) ^ (_MATRIX * (y & _ONE))
    for i in range(_WORDS - _MIDDLE, _WORDS - 1):
        y = (twister[i] & _UPPER) | (twister[i + 1] & _LOWER)
        twister[i] = twister[i + _MIDDLE - _WORDS] ^ (y >> _ONE) ^ (_MATRIX * (y & _ONE))
    y = (twister[_WORDS - 1] & _UPPER) | (twister[0] & _LOWER)
    twister[_WORDS - 1] = twister[_MIDDLE - 1] ^ (y >> _ONE) ^ (_MATRIX * (y & _ONE))
    for i in range(_WORDS):
        y = twister[i]
        y ^= y >> np.uint32(11)
        y ^= (y << np.uint32(7)) & np.uint32(0x9D2C5680)
        y ^= (y << np.uint32(15)) & np.uint32(0xEFC60000)
        y ^= y >> np.uint32(18)
        twister[_OUTPUT + i] = y
    twister[USED] = 0


@kernel
def next_word(twister):
    """getrandbits(32), as int64."""
    used = np.int64(twister[USED])
    if used == _WORDS:
        refill(twister)
        used = np.int64(0)
    twister[USED] = used + 1
    return np.int64(twister[_OUTPUT + used])


@kernel
def next_53_bits(twister):
    """random() * 2**53, as int64."""
    high = next_word(twister) >> 5
    return high << 26 | next_word(twister) >> 6


@kernel
def below(twister, n):
    """_randbelow(n), for 1 <= n < 2**32. Draws for n = 1 too, as CPython does."""
    shift = 32 - bit_length(n)
    r = next_word(twister) >> shift
    while r >= n:
        r = next_word(twister) >> shift
    return r


@kernel
def bit_length(n):
    """The number of bits of a positive number below 2**32."""
    bits = 0
    while n:
        n >>= 1
        bits += 1
    return bits


@kernel
def shuffle(twister, items, first):
    """shuffle(items), of which only items[:first] must come out right; the rest is left in any state.

    items: any integer array of fewer than 2**32 elements.
    """
    i = len(items) - 1
    bits = bit_length(i + 1) if i > 0 else 1
    while i > 0:
        # Draws for n = i + 1 down to 2**(bits - 1) take the same number of bits.
        last = max((1 << (bits - 1)) - 1, 1)
        shift = 32 - bits
        # An item that moves up to a place at `first` or beyond is never looked at again.
        stop = max(last, first)
        while i >= stop:
            used = np.int64(twister[USED])
            if used == _WORDS:
                refill(twister)
                used = np.int64(0)
            while i >= stop and used < _WORDS:
                # No branch on whether the draw is accepted: it goes either way too often to be foreseen.
                j = np.int64(twister[_OUTPUT + used]) >> shift
                used += 1
                accepted = j <= i
                j = j if accepted else i
                items[j] = items[i]
                i -= accepted
            twister[USED] = used
        while i >= last:
            used = np.int64(twister[USED])
            if used == _WORDS:
                refill(twister)
                used = np.int64(0)
            while i >= last and used < _WORDS:
                j = np.int64(twister[_OUTPUT + used]) >> shift
                used += 1
                accepted = j <= i
                j = j if accepted else i
                item = items[j]
                items[j] = items[i]
                items[i] = item
                i -= accepted
            twister[USED] = used
        bits -= 1
