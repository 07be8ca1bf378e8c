"""A plain bzip2 writer for the tests: blocks of any size at any bit, and what real writers never write.

Bits are strings of "0" and "1". Nothing here is fast.
"""

from collections.abc import Sequence

MARK = f"{0x314159265359:048b}"
_END = f"{0x177245385090:048b}"
_CODE_LENGTH = 9  # of every symbol: 258 of them fit


def checksum(data: bytes) -> int:
    """bzip2's CRC-32."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = ((crc << 1) ^ 0x04C11DB7 if crc >> 31 else crc << 1) & 0xFFFFFFFF
    return crc ^ 0xFFFFFFFF


def _run_lengths(data: bytes) -> bytes:
    out = bytearray()
    i = 0
    while i < len(data):
        n = 1
        while n < 259 and i + n < len(data) and data[i + n] == data[i]:
            n += 1
        out += data[i : i + 1] * min(n, 4)
        if n >= 4:
            out.append(n - 4)
        i += n
    return bytes(out)


def _symbols(column: bytes, used: Sequence[int]) -> list[int]:
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
    """The bits of a block that holds `data` (not empty), and its checksum.

    Args:
      also_used: bytes that the block's map says occur, though they do not.
      more_selectors: how many selectors too many are written.
      randomised, wrong_checksum: the block says so, or has that.
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
    selectors = -(-len(symbols) // 50)
    bits += ["010", f"{selectors + more_selectors:015b}", "0" * (selectors + more_selectors)]
    bits += [(f"{_CODE_LENGTH:05b}" + "0" * (len(used) + 2)) * 2]
    bits += [f"{symbol:0{_CODE_LENGTH}b}" for symbol in symbols]
    return "".join(bits), crc


def stream(blocks: Sequence[tuple[str, int]], *, level: int = 9) -> bytes:
    """One stream of blocks as `block` gives them, or none."""
    combined = 0
    for _, crc in blocks:
        combined = ((combined << 1) | (combined >> 31)) & 0xFFFFFFFF ^ crc
    bits = "".join(bits for bits, _ in blocks) + _END + f"{combined:032b}"
    bits += "0" * (-len(bits) % 8)
    return b"BZh" + str(level).encode() + int(bits, 2).to_bytes(len(bits) // 8, "big")
