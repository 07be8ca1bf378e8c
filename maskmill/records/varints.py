"""Numbers of variable length, as protocol buffers have them."""


def varint(number: int) -> bytes:
    """Return a number >= 0, seven bits a byte, the lowest first; each byte but the last has its top bit set."""
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
