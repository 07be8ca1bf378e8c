"""UTF-8 by the address of its bytes, for kernels that check the text while they read it; ASCII eight bytes at once."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.ascii import NOT_ASCII
from maskmill.kernels.memory import load_u8

# Numbers for eight bytes at once.
HIGH_BITS = np.uint64(0x8080808080808080)
LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
CASE_BITS = np.uint64(0x2020202020202020)
_FROM_A = np.uint64(0x1F1F1F1F1F1F1F1F)  # 0x80 - "a" in each byte
_PAST_Z = np.uint64(0x0505050505050505)  # 0x80 - "{"


@kernel
def ascii_letters(word):
    """Return the high bits of those of eight bytes that are letters of ASCII."""
    lower = (word & LOW_BITS) | CASE_BITS
    return (lower + _FROM_A) & ~(lower + _PAST_Z) & ~word & HIGH_BITS


@kernel
def decode(text, i):
    """Return the code point at text[i] and its length in bytes, as point * 8 + length; -1 where it is not UTF-8 (RFC
    3629).
    """
    first = load_u8(text, i)
    if first < NOT_ASCII:
        return first << 3 | 1
    second = load_u8(text, i + 1)
    if first < 0xC2 or first > 0xF4 or second & 0xC0 != 0x80:
        return np.int64(-1)
    if first < 0xE0:
        return ((first & 0x1F) << 6 | second & 0x3F) << 3 | 2
    third = load_u8(text, i + 2)
    if third & 0xC0 != 0x80:
        return np.int64(-1)
    if first < 0xF0:
        point = (first & 0x0F) << 12 | (second & 0x3F) << 6 | third & 0x3F
        if point < 0x800 or point >> 11 == 0x1B:
            return np.int64(-1)
        return point << 3 | 3
    fourth = load_u8(text, i + 3)
    if fourth & 0xC0 != 0x80:
        return np.int64(-1)
    point = (first & 0x07) << 18 | (second & 0x3F) << 12 | (third & 0x3F) << 6 | fourth & 0x3F
    if point < 0x10000 or point > 0x10FFFF:
        return np.int64(-1)
    return point << 3 | 4
