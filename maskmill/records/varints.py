"""Numbers of variable length, as protocol buffers have them."""

from collections.abc import Sequence

_MOST_BYTES = 10  # of a number of 64 bits


def varint(number: int) -> bytes:
    """A number, not negative, seven bits a byte and the lowest first; each byte but the last has its top bit set."""
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: Sequence[int] | memoryview, at: int) -> tuple[int, int]:
    """The number that `varint` has written at a place of some bytes, and where it ends.

    Raises:
      IndexError: it is cut off.
      ValueError: it has more than 70 bits.
    """
    number = 0
    for shift in range(0, 7 * _MOST_BYTES, 7):
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise ValueError("a number is too long")
