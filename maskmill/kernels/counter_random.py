"""A counter-based generator of random numbers: the n-th number of a key is a function of the key and n alone.

It is SplitMix64: number n of a key is the mix of key + n * GAMMA, modulo 2**64. Whoever draws passes the state (the
counter so far, a uint64) and gets it back after the number, so that it lives in a register. Keys are hashed from what
names a stream of numbers, here seed, epoch and sample, so that each row can be drawn on its own, anywhere.

Sources: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014, with the mix of
S. Vigna's splitmix64.c (D. Stafford's mix 13); D. Lemire, "Fast Random Integer Generation in an Interval", ACM
TOMACS 29 (2019).
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel, wraps_around

FLOAT_BITS = 53

# Constants have their type: numba makes floats of the sum of a uint64 and an int64.
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
_27, _30, _31, _32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_DROPPED = np.uint64(64 - FLOAT_BITS)
_LOW_WORD = np.uint64(0xFFFFFFFF)


def seed_of(seed: int) -> np.uint64:
    """Return the lowest 64 bits of any integer, as two's complement: a seed from 0 to 2**64 - 1 is itself, -1 is 2**64
    - 1.
    """
    return np.uint64(seed & 0xFFFFFFFFFFFFFFFF)


@kernel
@wraps_around
def mix(word):
    """Return a bijection of uint64 in which each bit of the result depends on every bit of `word`."""
    word = (word ^ word >> _30) * _FIRST_FACTOR
    word = (word ^ word >> _27) * _SECOND_FACTOR
    return word ^ word >> _31


@kernel
@wraps_around
def key_of(seed, epoch, sample):
    """Return the state at which the numbers of a sample in an epoch start: uint64, from a uint64 and two int64."""
    key = mix(seed + _GAMMA)
    key = mix((key ^ np.uint64(epoch)) + _GAMMA)
    return mix((key ^ np.uint64(sample)) + _GAMMA)


@kernel
@wraps_around
def next_64_bits(state):
    """Return a uint64, and the state after it."""
    state += _GAMMA
    return mix(state), state


@kernel
def next_53_bits(state):
    """Return a number from 0 to 1, without 1, in units of 2**-53, as int64; and the state after it."""
    word, state = next_64_bits(state)
    return np.int64(word >> _DROPPED), state


@kernel
def below(state, n):
    """Return a number from 0 to n - 1, all equally likely, for 1 <= n < 2**32, as int64; and the state after it."""
    count = np.uint64(n)
    word, state = next_64_bits(state)
    product = (word >> _32) * count
    if product & _LOW_WORD < count:
        # The upper half of the product would be a little more likely to be some numbers than others.
        least = (_LOW_WORD - count + np.uint64(1)) % count  # 2**32 modulo n
        while product & _LOW_WORD < least:
            word, state = next_64_bits(state)
            product = (word >> _32) * count
    return np.int64(product >> _32), state
