"""Kernel that undoes what XML does to text: references and line ends."""

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel

_NAMED = (b"lt;", b"gt;", b"amp;", b"quot;", b"apos;")
# Packed for comparison, the first byte lowest.
_LT, _GT, _AMP, _QUOT, _APOS = (int.from_bytes(name, "little") for name in _NAMED)


@kernel
def unescape(source: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8]) -> int:
    """Resolves references (&lt; &gt; &amp; &quot; &apos; &#10; &#xA;), once, and makes all line ends "\\n".

    Args:
      source: uint8[n], the escaped UTF-8 text.
      out: uint8[n] at least; the result is never longer.

    Returns:
      The length of the result; -1 - i where the & at source[i] starts none of these references: XML knows no others
      unless a document declares them, and an export declares none.
    """
    n = source.size
    size = 0
    i = 0
    while i < n:
        byte = source[i]
        if byte == 13:
            # "\r\n" and "\r" are "\n".
            if i + 1 >= n or source[i + 1] != 10:
                out[size] = 10
                size += 1
            i += 1
            continue
        if byte != 38:
            out[size] = byte
            size += 1
            i += 1
            continue
        if i + 1 < n and source[i + 1] == 35:
            value, length = _number(source, i + 2)
            if length == 0:
                return -1 - i
            size = _put(out, size, value)
            i += 2 + length
            continue
        word = np.int64(0)
        length = 0
        while length < 5 and i + 1 + length < n:
            word |= np.int64(source[i + 1 + length]) << np.int64(8 * length)
            length += 1
            if source[i + length] == 59:
                break
        if word == _LT:
            out[size] = 60
        elif word == _GT:
            out[size] = 62
        elif word == _AMP:
            out[size] = 38
        elif word == _QUOT:
            out[size] = 34
        elif word == _APOS:
            out[size] = 39
        else:
            return -1 - i
        size += 1
        i += 1 + length
    return size


@kernel
def _number(source: npt.NDArray[np.uint8], start: int) -> tuple[int, int]:
    """The code point of the numeric reference whose digits (or x) start at `start`, and the bytes up to behind its
    semicolon; 0 bytes where it is none, or no character."""
    n = source.size
    i = start
    base = 10
    if i < n and source[i] == 120:
        base = 16
        i += 1
    first = i
    value = 0
    while i < n and source[i] != 59:
        byte = np.int64(source[i])
        if 48 <= byte <= 57:
            digit = int(byte) - 48
        elif base == 16 and 97 <= (byte | 32) <= 102:
            digit = int(byte | 32) - 87
        else:
            return 0, 0
        value = value * base + digit
        if value > 0x10FFFF:
            return 0, 0
        i += 1
    if i == first or i >= n or value == 0 or 0xD800 <= value <= 0xDFFF:
        return 0, 0
    return value, i + 1 - start


@kernel
def _put(out: npt.NDArray[np.uint8], size: int, value: int) -> int:
    """Writes a code point as UTF-8; returns the new size. A reference is never shorter than its character."""
    if value < 0x80:
        out[size] = value
        return size + 1
    if value < 0x800:
        out[size] = 0xC0 | (value >> 6)
        out[size + 1] = 0x80 | (value & 63)
        return size + 2
    if value < 0x10000:
        out[size] = 0xE0 | (value >> 12)
        out[size + 1] = 0x80 | ((value >> 6) & 63)
        out[size + 2] = 0x80 | (value & 63)
        return size + 3
    out[size] = 0xF0 | (value >> 18)
    out[size + 1] = 0x80 | ((value >> 12) & 63)
    out[size + 2] = 0x80 | ((value >> 6) & 63)
    out[size + 3] = 0x80 | (value & 63)
    return size + 4


def warm_up() -> None:
    """Compiles what this module's callers use."""
    # Texts come out of bytes objects, so that they are read-only.
    unescape(np.frombuffer(b"a&lt;", np.uint8), np.empty(5, np.uint8))
