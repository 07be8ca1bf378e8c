"""A simple bzip2 writer for the tests. It writes blocks of any size at any bit, and blocks that no real writer makes.

Bits are strings of "0" and "1". The writer is slow.
"""

import base64
import bz2
import json
import random
from collections.abc import Sequence

MARK = f"{0x314159265359:048b}"  # where a block starts
END = f"{0x177245385090:048b}"  # where a stream ends
_WRITTEN_RUN = 4  # equal bytes that are written before the rest of a run is counted
_LONGEST_RUN = _WRITTEN_RUN + 255
_GROUP_SIZE = 50  # symbols that one selector is for
_CODE_LENGTH = 9  # bits of every symbol's code: enough for bzip2's 258 symbols


def checksum(data: bytes) -> int:
    """bzip2's CRC-32."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = ((crc << 1) ^ 0x04C11DB7 if crc >> 31 else crc << 1) & 0xFFFFFFFF
    return crc ^ 0xFFFFFFFF


def _run_lengths(data: bytes) -> bytes:
    """bzip2's first step: a run of 4 to 259 equal bytes becomes 4 of them and the number of the others."""
    coded = bytearray()
    start = 0
    while start < len(data):
        length = 1
        while length < _LONGEST_RUN and start + length < len(data) and data[start + length] == data[start]:
            length += 1
        coded += data[start : start + 1] * min(length, _WRITTEN_RUN)
        if length >= _WRITTEN_RUN:
            coded.append(length - _WRITTEN_RUN)
        start += length
    return bytes(coded)


def _symbols(column: bytes, used: Sequence[int]) -> list[int]:
    """Move-to-front and run lengths: the symbols of a block, the end of the block included."""
    recent = list(used)
    symbols: list[int] = []
    run = 0
    for byte in [*column, None]:
        place = recent.index(byte) if byte is not None else None
        if place == 0:
            run += 1
            continue
        while run:
            symbols.append(1 if run % 2 == 0 else 0)
            run = (run - 1) // 2
        if place is not None:
            symbols.append(place + 1)
            recent.insert(0, recent.pop(place))
    return [*symbols, len(used) + 1]


def block(
    data: bytes,
    *,
    also_used: Sequence[int] = (),
    more_selectors: int = 0,
    randomised: bool = False,
    wrong_checksum: bool = False,
) -> tuple[str, int]:
    """The bits of a block that contains `data`, and its checksum.

    Args:
      data: the content; it must not be empty.
      also_used: bytes that the block declares as used although they do not occur.
      more_selectors: the number of selectors beyond those that the block needs.
      randomised: sets the block's flag for randomised data.
      wrong_checksum: writes a checksum that does not match the data.
    """
    coded = _run_lengths(data)
    rotations = sorted(range(len(coded)), key=lambda i: coded[i:] + coded[:i])
    column = bytes(coded[i - 1] for i in rotations)
    used = sorted({*coded, *also_used})
    symbols = _symbols(column, used)
    crc = checksum(data) ^ wrong_checksum
    bits = [MARK, f"{crc:032b}", "1" if randomised else "0", f"{rotations.index(0):024b}"]
    rows = [[f"{row * 16 + column in used:d}" for column in range(16)] for row in range(16)]
    bits.append("".join("1" if "1" in row else "0" for row in rows))
    bits += ["".join(row) for row in rows if "1" in row]
    selectors = -(-len(symbols) // _GROUP_SIZE)
    bits += ["010", f"{selectors + more_selectors:015b}", "0" * (selectors + more_selectors)]
    bits += [(f"{_CODE_LENGTH:05b}" + "0" * (len(used) + 2)) * 2]
    bits += [f"{symbol:0{_CODE_LENGTH}b}" for symbol in symbols]
    return "".join(bits), crc


def block_with_a_mark_in_it(data: bytes, mark: str = MARK) -> tuple[str, int]:
    """A block whose map of used bytes, one bit a byte, holds the bits of a mark; else as `block`."""
    offset = 53
    # A row of the map is written only where one of its 16 bytes is used.
    used = {*range(0, 256, 16), *data} - set(range(offset, offset + len(mark)))
    used |= {offset + i for i, bit in enumerate(mark) if bit == "1"}
    found = block(data, also_used=sorted(used))
    assert mark in found[0][len(MARK) :]
    return found


def with_wrong_checksum(whole: bytes) -> bytes:
    """A bzip2 stream whose own checksum is made wrong, while those of its blocks stay right."""
    # The checksum is the last 32 bits in front of the padding, which is less than a byte.
    return whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:]


def stream(blocks: Sequence[tuple[str, int]], *, level: int = 9) -> bytes:
    """A bzip2 stream of blocks as `block` returns them; there may be none."""
    combined = 0
    for _, crc in blocks:
        combined = ((combined << 1) | (combined >> 31)) & 0xFFFFFFFF ^ crc
    bits = "".join(bits for bits, _ in blocks) + END + f"{combined:032b}"
    bits += "0" * (-len(bits) % 8)
    return b"BZh" + str(level).encode() + int(bits, 2).to_bytes(len(bits) // 8, "big")


def large_bzip2_stream() -> bytes:
    """JSON lines in one stream of more than 4 MB, which several readers read; Python's library packs it."""
    rng = random.Random(1)
    lines = [json.dumps({"text": base64.b64encode(rng.randbytes(10_000)).decode()}) + "\n" for _ in range(440)]
    return bz2.compress("".join(lines).encode())
