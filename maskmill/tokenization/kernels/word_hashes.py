"""The parts that kernels share which hash words: the hash, and the tables of a word's normalisation."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from maskmill.kernels import kernel, wraps_around
from maskmill.kernels.memory import load_u64

MIX_1 = np.uint64(0x9E3779B97F4A7C15)
MIX_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_HALF = np.uint64(32)


class CodePointArrays(NamedTuple):
    """The tables of a word's normalisation, and its scratch memory; see tokenization/kernels/wordpiece.py."""

    pages: np.ndarray
    blocks: np.ndarray
    pool: np.ndarray
    scratch: np.ndarray
    do_lower_case: bool


@kernel
def last_bits(count):
    """Return how far to shift a word of eight bytes to the left so that its first `count` bytes remain; count is 1 to
    7.
    """
    return np.uint64(64 - 8 * count)


@kernel
@wraps_around
def hash_bytes(source, size):
    """Return the hash of source[:size]; seven bytes after it must be readable."""
    hashed = np.uint64(size) * MIX_2
    k = np.int64(0)
    while k + 8 <= size:
        hashed = (hashed ^ load_u64(source, k)) * MIX_1
        hashed ^= hashed >> _HALF
        k += 8
    if k < size:
        hashed = (hashed ^ (load_u64(source, k) << last_bits(size - k))) * MIX_1
        hashed ^= hashed >> _HALF
    hashed *= MIX_2
    return hashed ^ (hashed >> np.uint64(29))
