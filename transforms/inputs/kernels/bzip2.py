"""Kernels of a bzip2 decoder that can start at any block.

A bzip2 stream is "BZh" and a digit, blocks, a 48-bit end mark, a 32-bit checksum and padding to a byte. A block
starts with a 48-bit mark at any bit, holds up to 900,000 bytes (whose runs are coded once more) and knows nothing of
its neighbours; where it ends is known only once its symbols are decoded. The steps, each a kernel:

  find_block      → where the next mark stands
  decode_symbols  bits of a block → the inverse Burrows-Wheeler transform as a table, uint32[MAX_BLOCK]
  walk            the table → the block's bytes, uint8[MAX_BLOCK], runs still coded
  expanded_size, expand → plain bytes and their checksum

Undoing the transform is a chain of dependent loads all over a table of 3.6 MB, so that a plain loop waits for
the cache at each byte. The table is a permutation, so the chain can be entered anywhere: `walk` marks 128 entries,
follows eight chains in step from mark to mark, and puts the pieces together in their order afterwards. That
takes a quarter of the time.

Layout. `data` is uint8[n] with PADDING zero bytes behind its last true byte, so that a refill may read past the end.
Bits are counted from the first byte, most significant first. An entry of the table holds a byte of the sorted column in
bits 0 to 7, walk's mark in bit 8, and from bit 12 on the entry to go to next.

Source of the format: J. Seward's bzip2 1.0.8 and the specification by J. Tsai ("BZIP2: Format Specification").
"""

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Table = npt.NDArray[np.uint32]

MAX_BLOCK = 900_000
LANES = 8
PADDING = 32
SLACK = 4

BLOCK_MAGIC = 0x314159265359
END_MAGIC = 0x177245385090

# What decode_symbols and next_mark report.
OK = 0
NEED_MORE = 1  # the block goes on behind the data
DAMAGED = 2
RANDOMISED = 3  # written by bzip2 0.9.0 or older

_FAST_BITS = 10
_MAX_LENGTH = 20
_GROUP = 50
_MAX_SELECTORS = 18_002
_STARTS = 128
_MARK = np.uint32(1 << 8)
_NEXT = np.uint32(12)


def _crc_tables() -> Table:
    """Tables uint32[8, 256] for eight bytes at a time: CRC-32 with the highest bit first, polynomial 0x04C11DB7."""
    tables = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        value = byte << 24
        for _ in range(8):
            value = ((value << 1) ^ 0x04C11DB7 if value & 0x80000000 else value << 1) & 0xFFFFFFFF
        tables[0, byte] = value
    for row in range(1, 8):
        for byte in range(256):
            before = int(tables[row - 1, byte])
            tables[row, byte] = ((before << 8) & 0xFFFFFFFF) ^ int(tables[0, before >> 24])
    return tables


CRC_TABLES = _crc_tables()


def words_of(data: Bytes) -> Table:
    """The whole words of `data`, uint32[n // 4]: bits in their order, so that 32 of them are one load."""
    return data[: data.size // 4 * 4].view(">u4").astype(np.uint32)


@kernel
def find_block(data: Bytes, first_bit: int, end_bit: int) -> int:
    """The first bit in [first_bit, end_bit) at which a block's mark starts, or -1; the mark lies within `data`."""
    # The second byte of a mark that starts `shift` bits into a byte is the same for all matches of that shift, so
    # one table look-up a byte rules out almost every position.
    shifts_of = np.zeros(256, np.uint8)
    for shift in range(8):
        shifts_of[(BLOCK_MAGIC >> (32 + shift)) & 0xFF] |= np.uint8(1 << shift)
    size = data.size - PADDING
    byte = first_bit >> 3
    last = min((end_bit + 7) >> 3, size - 5)
    while byte < last:
        candidates = shifts_of[data[byte + 1]]
        if candidates:
            window = np.uint64(0)
            for k in range(7):
                window = (window << np.uint64(8)) | np.uint64(data[byte + k])
            for shift in range(8):
                if candidates & (1 << shift):
                    bit = byte * 8 + shift
                    value = (window >> np.uint64(8 - shift)) & np.uint64(0xFFFFFFFFFFFF)
                    if value == np.uint64(BLOCK_MAGIC) and first_bit <= bit < end_bit and bit + 48 <= size * 8:
                        return bit
        byte += 1
    return -1


@kernel
def bits_at(words: Table, bit: int, count: int) -> np.int64:
    """`count` (1 to 48) bits from `bit` on; they may reach into the padding."""
    word = bit >> 5
    shift = np.uint64(bit & 31)
    window = (np.uint64(words[word]) << np.uint64(32)) | np.uint64(words[word + 1])
    window = (window << shift) | (np.uint64(words[word + 2]) >> (np.uint64(32) - shift))
    return np.int64(window >> np.uint64(64 - count))


@kernel
def decode_symbols(words: Table, end: int, start: int, last_column: Bytes, table: Table, result: Integers) -> int:
    """Decodes the block whose mark starts at bit `start`.

    Args:
      words: uint32[n + PADDING], the data.
      end: number of bits in the data.
      start: bit of the mark, which is not looked at again.
      last_column: uint8[MAX_BLOCK + SLACK], scratch: the last column of the transform.
      table: uint32[MAX_BLOCK], filled with the table of the inverse transform.
      result: int64[4], filled with: the bit behind the block, the number of bytes, the entry to start at, the checksum.

    Returns: OK, NEED_MORE, DAMAGED or RANDOMISED.
    """
    bit = start + 48
    if bit + 32 + 1 + 24 + 16 > end:
        return NEED_MORE
    result[3] = bits_at(words, bit, 32)
    if bits_at(words, bit + 32, 1):
        return RANDOMISED
    origin = bits_at(words, bit + 33, 24)
    bit += 57

    # The bytes that occur.
    order = np.zeros(256, np.uint8)
    n_used = 0
    rows = bits_at(words, bit, 16)
    bit += 16
    for row in range(16):
        if rows & (0x8000 >> row):
            if bit + 16 > end:
                return NEED_MORE
            columns = bits_at(words, bit, 16)
            bit += 16
            for column in range(16):
                if columns & (0x8000 >> column):
                    order[n_used] = np.uint8(row * 16 + column)
                    n_used += 1
    if n_used == 0:
        return DAMAGED
    n_symbols = n_used + 2

    # Which table each group of 50 symbols uses.
    if bit + 18 > end:
        return NEED_MORE
    n_tables = bits_at(words, bit, 3)
    n_selectors = bits_at(words, bit + 3, 15)
    bit += 18
    if n_tables < 2 or n_tables > 6 or n_selectors < 1:
        return DAMAGED
    selectors = np.zeros(_MAX_SELECTORS, np.uint8)
    recent = np.arange(6).astype(np.uint8)
    for i in range(n_selectors):
        if bit + 6 > end:
            return NEED_MORE
        k = 0
        while bits_at(words, bit, 1):
            bit += 1
            k += 1
            if k >= n_tables:
                return DAMAGED
        bit += 1
        chosen = recent[k]
        while k > 0:
            recent[k] = recent[k - 1]
            k -= 1
        recent[0] = chosen
        # Some writers announce more selectors than a block can need; bzip2 1.0.8 ignores those too.
        if i < _MAX_SELECTORS:
            selectors[i] = chosen
    n_selectors = min(n_selectors, _MAX_SELECTORS)

    # Canonical Huffman codes: `fast` maps the next bits to symbol * 32 + length, 0 where the code is longer.
    fast = np.zeros((6, 1 << _FAST_BITS), np.uint16)
    limits = np.zeros((6, _MAX_LENGTH + 2), np.int64)  # first code behind those of a length, aligned to 20 bits
    offsets = np.zeros((6, _MAX_LENGTH + 2), np.int64)  # of `sorted_symbols`, less the first code of the length
    sorted_symbols = np.zeros((6, 258), np.uint16)
    lengths = np.zeros(258, np.int64)
    for t in range(n_tables):
        if bit + 5 > end:
            return NEED_MORE
        length = bits_at(words, bit, 5)
        bit += 5
        for s in range(n_symbols):
            while True:
                if length < 1 or length > _MAX_LENGTH:
                    return DAMAGED
                if bit + 2 > end:
                    return NEED_MORE
                if not bits_at(words, bit, 1):
                    bit += 1
                    break
                length += 1 - 2 * bits_at(words, bit + 1, 1)
                bit += 2
            lengths[s] = length
        code = 0
        placed = 0
        for length in range(1, _MAX_LENGTH + 1):
            offsets[t, length] = placed - code
            for s in range(n_symbols):
                if lengths[s] == length:
                    if code >> length:
                        return DAMAGED
                    sorted_symbols[t, placed] = s
                    placed += 1
                    if length <= _FAST_BITS:
                        first = code << (_FAST_BITS - length)
                        fast[t, first : first + (1 << (_FAST_BITS - length))] = s * 32 + length
                    code += 1
            limits[t, length] = code << (_MAX_LENGTH - length)
            code <<= 1

    # The symbols. `buffer` holds `held` bits at its top; a refill of 32 bits is one load. The list of recent bytes is
    # kept in two registers, `low` and `high`, for its first 16 places, most recent lowest, and in `order` from there
    # on: moving a byte to its front then takes no loop for nine out of ten bytes.
    low = np.uint64(0)
    high = np.uint64(0)
    for k in range(8):
        low |= np.uint64(order[k]) << np.uint64(8 * k)
        high |= np.uint64(order[8 + k]) << np.uint64(8 * k)
    counts = np.zeros(256, np.int64)
    word = bit >> 5
    buffer = ((np.uint64(words[word]) << np.uint64(32)) | np.uint64(words[word + 1])) << np.uint64(bit & 31)
    held = np.int64(64 - (bit & 31))
    word += 2
    n_words = words.size
    n = np.int64(0)
    weight = np.int64(1)
    group = 0
    table_now = np.int64(0)
    left = 0
    end_symbol = n_used + 1
    while True:
        if left == 0:
            if group >= n_selectors:
                return DAMAGED if word * 32 - held <= end else NEED_MORE
            table_now = np.int64(selectors[group])
            group += 1
            left = _GROUP
        left -= 1
        if held < 32:
            if word >= n_words:
                return NEED_MORE
            buffer |= np.uint64(words[word]) << np.uint64(32 - held)
            word += 1
            held += 32
        entry = np.int64(fast[table_now, np.int64(buffer >> np.uint64(64 - _FAST_BITS))])
        if entry:
            used = entry & 31
            symbol = entry >> 5
        else:
            top = np.int64(buffer >> np.uint64(64 - _MAX_LENGTH))
            used = np.int64(_FAST_BITS + 1)
            while used <= _MAX_LENGTH and top >= limits[table_now, used]:
                used += 1
            if used > _MAX_LENGTH:
                return DAMAGED if word * 32 - held <= end else NEED_MORE
            symbol = np.int64(sorted_symbols[table_now, (top >> (_MAX_LENGTH - used)) + offsets[table_now, used]])
        buffer <<= np.uint64(used)
        held -= used
        if symbol == end_symbol:
            break
        # Which branch the next symbol takes cannot be foreseen, so the loop has few: a run is the byte in front, moved
        # to the front, some times over. Runs are counted in bijective base 2: RUNA adds the weight, RUNB twice that.
        is_run = np.int64(symbol <= 1)
        times = (weight << symbol) * is_run + (1 - is_run)
        weight = (weight << 1) * is_run + (1 - is_run)
        if n + times > MAX_BLOCK:
            return DAMAGED if word * 32 - held <= end else NEED_MORE
        rank = symbol - 1 + np.int64(symbol == 0)
        if rank < 16:
            in_high = np.uint64(0) - np.uint64(rank >> 3)  # all ones or all zeros
            half = (high & in_high) | (low & ~in_high)
            place = np.uint64(8 * (rank & 7))
            below = (np.uint64(1) << place) - np.uint64(1)
            byte_in_front = (half >> place) & np.uint64(0xFF)
            half = (half & ~((below << np.uint64(8)) | np.uint64(0xFF))) | ((half & below) << np.uint64(8))
            high = ((half | (low >> np.uint64(56))) & in_high) | (high & ~in_high)
            low = ((low << np.uint64(8)) & in_high) | (half & ~in_high) | byte_in_front
        else:
            byte_in_front = np.uint64(order[rank])
            while rank > 16:
                order[rank] = order[rank - 1]
                rank -= 1
            order[16] = np.uint8(high >> np.uint64(56))
            high = (high << np.uint64(8)) | (low >> np.uint64(56))
            low = (low << np.uint64(8)) | byte_in_front
        counts[byte_in_front] += times
        last_column[n] = byte_in_front
        last_column[n + 1] = byte_in_front
        last_column[n + 2] = byte_in_front
        last_column[n + 3] = byte_in_front
        for i in range(n + 4, n + times):
            last_column[i] = byte_in_front
        n += times
    behind = word * 32 - held
    if behind > end:
        return NEED_MORE
    if origin >= n:
        return DAMAGED
    result[0] = behind
    result[1] = n

    total = 0
    for value in range(256):
        total += counts[value]
        counts[value] = total - counts[value]
    for i in range(n):
        byte_there = np.int64(last_column[i])
        table[counts[byte_there]] = np.uint32((i << 12) | byte_there)
        counts[byte_there] += 1
    result[2] = origin
    return OK


@kernel
def walk(table: Table, n: int, first: int, lanes: Bytes, raw: Bytes) -> None:
    """Undoes the transform of one block.

    Args:
      table: uint32[MAX_BLOCK], as decode_symbols fills it; marks are added.
      n: the number of bytes.
      first: the entry to start at.
      lanes: uint8[LANES, MAX_BLOCK], scratch: what each lane has walked, piece behind piece.
      raw: uint8[MAX_BLOCK], filled with the block's bytes.
    """
    # Piece k starts at entry starts[k]; it lies at lanes[lane_of[k], begin[k] : begin[k] + length[k]]
    # and piece follows[k] comes after it.
    starts = np.zeros(_STARTS, np.int64)
    lane_of = np.zeros(_STARTS, np.int64)
    begin = np.zeros(_STARTS, np.int64)
    length = np.zeros(_STARTS, np.int64)
    follows = np.zeros(_STARTS, np.int64)
    starts[0] = first
    table[first] |= _MARK
    n_starts = 1
    for k in range(1, _STARTS):
        entry = k * n // _STARTS
        if not table[entry] & _MARK:
            table[entry] |= _MARK
            starts[n_starts] = entry
            n_starts += 1

    piece = np.full(LANES, -1, np.int64)
    place = np.zeros(LANES, np.int64)
    filled = np.zeros(LANES, np.int64)
    taken = 0
    while True:
        all_busy = True
        for lane in range(LANES):
            if piece[lane] < 0:
                if taken == n_starts:
                    all_busy = False
                    continue
                piece[lane] = taken
                lane_of[taken] = lane
                begin[taken] = filled[lane]
                entry = table[starts[taken]]
                lanes[lane, filled[lane]] = np.uint8(entry)
                filled[lane] += 1
                place[lane] = np.int64(entry >> _NEXT)
                taken += 1
        if not all_busy:
            break
        _walk_in_step(table, place, filled, lanes)
        for lane in range(LANES):
            if table[place[lane]] & _MARK:
                _end_piece(starts, n_starts, piece, place, filled, begin, length, follows, lane)
    # Fewer pieces are left than lanes: each is walked to its end.
    for lane in range(LANES):
        if piece[lane] < 0:
            continue
        entry = table[place[lane]]
        while not entry & _MARK:
            lanes[lane, filled[lane]] = np.uint8(entry)
            filled[lane] += 1
            place[lane] = np.int64(entry >> _NEXT)
            entry = table[place[lane]]
        _end_piece(starts, n_starts, piece, place, filled, begin, length, follows, lane)

    # A block that repeats itself has a permutation of several cycles: the first one is then gone round again.
    size = 0
    k = 0
    while size < n:
        part = min(length[k], n - size)
        raw[size : size + part] = lanes[lane_of[k], begin[k] : begin[k] + part]
        size += part
        k = follows[k]


@kernel
def _walk_in_step(table: Table, place: Integers, filled: Integers, lanes: Bytes) -> None:
    """Moves all lanes on, one entry each a round, until at least one of them stands in front of a mark."""
    l0, l1, l2, l3, l4, l5, l6, l7 = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5], lanes[6], lanes[7]
    p0, p1, p2, p3, p4, p5, p6, p7 = place[0], place[1], place[2], place[3], place[4], place[5], place[6], place[7]
    f0, f1, f2, f3 = filled[0], filled[1], filled[2], filled[3]
    f4, f5, f6, f7 = filled[4], filled[5], filled[6], filled[7]
    i = 0
    while True:
        e0 = table[p0]
        e1 = table[p1]
        e2 = table[p2]
        e3 = table[p3]
        e4 = table[p4]
        e5 = table[p5]
        e6 = table[p6]
        e7 = table[p7]
        if (e0 | e1 | e2 | e3 | e4 | e5 | e6 | e7) & _MARK:
            break
        l0[f0 + i] = np.uint8(e0)
        l1[f1 + i] = np.uint8(e1)
        l2[f2 + i] = np.uint8(e2)
        l3[f3 + i] = np.uint8(e3)
        l4[f4 + i] = np.uint8(e4)
        l5[f5 + i] = np.uint8(e5)
        l6[f6 + i] = np.uint8(e6)
        l7[f7 + i] = np.uint8(e7)
        i += 1
        p0 = np.int64(e0 >> _NEXT)
        p1 = np.int64(e1 >> _NEXT)
        p2 = np.int64(e2 >> _NEXT)
        p3 = np.int64(e3 >> _NEXT)
        p4 = np.int64(e4 >> _NEXT)
        p5 = np.int64(e5 >> _NEXT)
        p6 = np.int64(e6 >> _NEXT)
        p7 = np.int64(e7 >> _NEXT)
    place[0], place[1], place[2], place[3], place[4], place[5], place[6], place[7] = p0, p1, p2, p3, p4, p5, p6, p7
    for lane in range(LANES):
        filled[lane] += i


@kernel
def _end_piece(
    starts: Integers,
    n_starts: int,
    piece: Integers,
    place: Integers,
    filled: Integers,
    begin: Integers,
    length: Integers,
    follows: Integers,
    lane: int,
) -> None:
    """Notes the length of the piece that a lane has come to the end of, and which piece follows it."""
    ended = piece[lane]
    length[ended] = filled[lane] - begin[ended]
    for k in range(n_starts):
        if starts[k] == place[lane]:
            follows[ended] = k
    piece[lane] = -1


@kernel
def find_counts(raw: Bytes, n: int, counts_at: Integers) -> int:
    """Finds the counts in raw[:n]: the byte behind four equal ones says how many more of them there are.

    Args:
      raw: uint8[MAX_BLOCK].
      counts_at: int64[MAX_BLOCK // 5 + 1], filled with their places.

    Returns: how many there are, or -1 where a count is missing at the end.
    """
    # Of four equal bytes two stand in one pair at an even place, so most words of four pairs are passed in one step.
    words = raw.view(np.uint64)
    found = 0
    begin = 0
    word = 0
    while word * 8 < n:
        pairs = (words[word] ^ (words[word] >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
        first = -1
        if (pairs - np.uint64(0x0001000100010001)) & np.uint64(0x8000800080008000):
            for i in range(max(begin, word * 8 - 1), min(word * 8 + 7, n - 3)):
                if raw[i] == raw[i + 1] and raw[i] == raw[i + 2] and raw[i] == raw[i + 3]:
                    first = i
                    break
        if first < 0:
            word += 1
            continue
        if first + 4 >= n:
            return -1
        counts_at[found] = first + 4
        found += 1
        begin = first + 5
        word = begin >> 3
    return found


@kernel
def expand(raw: Bytes, n: int, counts_at: Integers, found: int, out: Bytes) -> None:
    """Undoes the run lengths of raw[:n] into out[:n - found + sum of the counts]."""
    begin = 0
    size = 0
    for k in range(found):
        place = counts_at[k]
        out[size : size + place - begin] = raw[begin:place]
        size += place - begin
        more = np.int64(raw[place])
        out[size : size + more] = raw[place - 1]
        size += more
        begin = place + 1
    out[size : size + n - begin] = raw[begin:n]


@kernel
def checksum(plain: Bytes, size: int, crc_tables: Table) -> np.int64:
    """bzip2's CRC-32 of plain[:size]; plain: uint8[a multiple of 8]."""
    words = plain.view(np.uint64)
    mask = np.uint64(0xFF)
    crc = np.uint64(0xFFFFFFFF)
    for k in range(size >> 3):
        word = words[k]
        # The first byte is the lowest of the word, and meets the highest of the checksum.
        crc = np.uint64(
            crc_tables[7, (crc >> np.uint64(24)) ^ (word & mask)]
            ^ crc_tables[6, ((crc >> np.uint64(16)) ^ (word >> np.uint64(8))) & mask]
            ^ crc_tables[5, ((crc >> np.uint64(8)) ^ (word >> np.uint64(16))) & mask]
            ^ crc_tables[4, (crc ^ (word >> np.uint64(24))) & mask]
            ^ crc_tables[3, (word >> np.uint64(32)) & mask]
            ^ crc_tables[2, (word >> np.uint64(40)) & mask]
            ^ crc_tables[1, (word >> np.uint64(48)) & mask]
            ^ crc_tables[0, word >> np.uint64(56)]
        )
    for i in range(size >> 3 << 3, size):
        crc = ((crc << np.uint64(8)) & np.uint64(0xFFFFFFFF)) ^ np.uint64(
            crc_tables[0, (crc >> np.uint64(24)) ^ np.uint64(plain[i])]
        )
    return np.int64(crc ^ np.uint64(0xFFFFFFFF))


def warm_up() -> None:
    """Compiles what this module's callers use, on a block of one byte."""
    stream = bytes.fromhex("425a683931415926535919939b6b00000001002000200021184682ee48a70a120332736d60")
    words = words_of(np.concatenate([np.frombuffer(stream, np.uint8), np.zeros(PADDING, np.uint8)]))
    data = np.concatenate([np.frombuffer(stream, np.uint8), np.zeros(PADDING, np.uint8)])
    table, raw, result = np.empty(MAX_BLOCK, np.uint32), np.empty(MAX_BLOCK, np.uint8), np.zeros(4, np.int64)
    start = int(find_block(data, 0, 64))
    bits_at(words, start, 48)
    decode_symbols(words, len(stream) * 8, start, np.empty(MAX_BLOCK + SLACK, np.uint8), table, result)
    walk(table, int(result[1]), int(result[2]), np.empty((LANES, MAX_BLOCK), np.uint8), raw)
    counts_at = np.empty(MAX_BLOCK // 5 + 1, np.int64)
    plain = np.empty(8, np.uint8)
    expand(raw, int(result[1]), counts_at, int(find_counts(raw, int(result[1]), counts_at)), plain)
    checksum(plain, 1, CRC_TABLES)
