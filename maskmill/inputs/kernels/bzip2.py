"""Kernels of a bzip2 decoder that can start at any block.

A bzip2 stream is "BZh" and a digit, blocks, a 48-bit end mark, a 32-bit checksum and padding to a byte. A block
starts with a 48-bit mark at any bit, holds up to 900,000 bytes, whose runs are coded once more, and does not depend on
its neighbours; where it ends is known only once its symbols are decoded. The steps, each a kernel:

  find_mark       → the bit of the next mark
  decode_symbols  bits of a block → the inverse Burrows-Wheeler transform as a table, uint32[MAX_BLOCK]
  walk            the table → the block's bytes, uint8[MAX_BLOCK], runs still coded
  find_counts     these bytes → the places of the counts of runs among them
  expand          these bytes and places → plain bytes
  checksum        plain bytes → their CRC-32

The inverse transform is a chain of dependent loads from all over a table of 3.6 MB, so a plain loop waits for the cache
at each byte. The table is a permutation, so the chain can be entered anywhere: `walk` marks 128 entries, follows eight
chains in step from mark to mark, and then joins the pieces in their order. That takes a quarter of the time.

Layout. `data` is uint8[n] with PADDING zero bytes after its last true byte, so that a refill may read past the end.
Bits are counted from the first byte, most significant first. An entry of the table holds a byte of the sorted column in
bits 0 to 7, walk's mark in bit 8, and from bit 12 on the number of the next entry.

Source of the format: J. Seward's bzip2 1.0.8 and the specification by J. Tsai ("BZIP2: Format Specification").
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskmill.kernels import kernel, wraps_around

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Table = npt.NDArray[np.uint32]
Halves = npt.NDArray[np.uint16]

MAX_BLOCK = 900_000  # bytes
LANES = 8  # chains that `walk` follows at a time
PADDING = 32  # bytes after the data
SLACK = 4  # bytes after the last column, so that a run's first four can be written whatever its length
SMALLEST_RUN = 5  # bytes that a run of four or more takes with its count

BLOCK_MAGIC = 0x314159265359
END_MAGIC = 0x177245385090

# What decode_symbols returns.
OK = 0
NEED_MORE = 1  # the block goes on after the data
DAMAGED = 2
RANDOMISED = 3  # written by bzip2 0.9.0 or older

# Fields of decode_symbols' result.
BLOCK_END, SIZE, ORIGIN, CHECKSUM = range(4)

# Widths of the fields of a block's head, in bits.
_MARK_BITS = 48
_CHECKSUM_BITS = 32
_ORIGIN_BITS = 24
_MAP_BITS = 16
_MAP_TOP = 1 << (_MAP_BITS - 1)
_N_TABLES_BITS = 3
_N_SELECTORS_BITS = 15
_FIRST_LENGTH_BITS = 5

_FAST_BITS = 10  # codes up to this length are decoded by one look-up
_MAX_LENGTH = 20  # of a code
_MAX_TABLES = 6
_MAX_SYMBOLS = 258  # 256 bytes less the front one, two digits of runs, the end
_GROUP = 50  # symbols that use the same table
_MAX_SELECTORS = 18_002
_STARTS = 128  # pieces of the chain
_MARK = np.uint32(1 << 8)
_NEXT = np.uint32(12)


def _crc_tables() -> Table:
    """Return tables uint32[8, 256] for eight bytes at a time: CRC-32 with the highest bit first, polynomial
    0x04C11DB7.
    """
    tables = np.zeros((8, 256), np.uint32)
    tables[0] = np.arange(256) << 24
    for _ in range(8):
        tables[0] = tables[0] << 1 ^ (tables[0] >> 31) * np.uint32(0x04C11DB7)
    for row in range(1, 8):
        tables[row] = tables[row - 1] << 8 ^ tables[0, tables[row - 1] >> 24]
    return tables


CRC_TABLES = _crc_tables()


def words_of(data: Bytes) -> Table:
    """Return the whole words of `data`, uint32[n // 4], the first byte highest, so that one load gives 32 bits in
    order.
    """
    return data[: data.size // 4 * 4].view(">u4").astype(np.uint32)


@kernel
def find_mark(data: Bytes, first_bit: int, end_bit: int, mark: int, other: int) -> int:
    """Return the first bit in [first_bit, end_bit) at which a mark starts that ends within `data`, or -1.

    mark, other: BLOCK_MAGIC and END_MAGIC, or one of them twice.
    """
    # A mark covers five whole bytes after the one in which it starts, and their values follow from the bit at which it
    # starts there. So two of them stand at one of every four bytes, and one look-up rules out almost every four.
    is_inside = np.zeros(1 << 16, np.bool_)
    for shift in range(8):
        for place in range(4):
            is_inside[(mark >> (shift + 8 * place)) & 0xFFFF] = True
            is_inside[(other >> (shift + 8 * place)) & 0xFFFF] = True
    size = data.size - PADDING
    last = min((end_bit + 7) >> 3, size - 5)
    for at in range((first_bit >> 3) + 4, last + 4, 4):
        if is_inside[np.int64(data[at]) << 8 | np.int64(data[at + 1])]:
            for byte in range(at - 4, min(at, last)):
                window = np.uint64(0)
                for k in range(7):
                    window = (window << np.uint64(8)) | np.uint64(data[byte + k])
                for shift in range(8):
                    bit = byte * 8 + shift
                    value = (window >> np.uint64(8 - shift)) & np.uint64(0xFFFFFFFFFFFF)
                    is_mark = value == np.uint64(mark) or value == np.uint64(other)
                    if is_mark and first_bit <= bit < end_bit and bit + 48 <= size * 8:
                        return bit
    return -1


@kernel
def bits_at(words: Table, bit: int, count: int) -> np.int64:
    """Return the number in `count` bits (1 to 48) from `bit` on, which may reach into the padding."""
    word = bit >> 5
    shift = np.uint64(bit & 31)
    window = (np.uint64(words[word]) << np.uint64(32)) | np.uint64(words[word + 1])
    window = (window << shift) | (np.uint64(words[word + 2]) >> (np.uint64(32) - shift))
    return np.int64(window >> np.uint64(64 - count))


class Codes(NamedTuple):
    """The Huffman codes of a block, a row for each of its tables.

    fast: uint16[MAX_TABLES, 2**_FAST_BITS], for the next bits symbol * 32 + length, or 0 where the code is longer.
    limits: int64[MAX_TABLES, _MAX_LENGTH + 2], the first code after those of a length, aligned to _MAX_LENGTH bits.
    offsets: the same shape, where a length's symbols start in `symbols`, less the first code of the length.
    symbols: uint16[MAX_TABLES, _MAX_SYMBOLS], in the order of their codes.
    """

    fast: Halves
    limits: Integers
    offsets: Integers
    symbols: Halves


@kernel
def decode_symbols(words: Table, end: int, start: int, last_column: Bytes, table: Table, result: Integers) -> int:
    """Decode the block whose mark starts at bit `start`.

    Args:
      words: uint32[n + PADDING], the data.
      end: number of bits in the data.
      start: bit of the mark; the mark itself is not read again.
      last_column: uint8[MAX_BLOCK + SLACK], scratch: the last column of the transform.
      table: uint32[MAX_BLOCK], receives the table of the inverse transform.
      result: int64[4], receives the bit after the block, the number of bytes, the entry to start at, the checksum.

    Returns: OK, NEED_MORE, DAMAGED or RANDOMISED.
    """
    bit = start + _MARK_BITS
    if bit + _CHECKSUM_BITS + 1 + _ORIGIN_BITS + _MAP_BITS > end:
        return NEED_MORE
    result[CHECKSUM] = bits_at(words, bit, _CHECKSUM_BITS)
    bit += _CHECKSUM_BITS
    if bits_at(words, bit, 1):
        return RANDOMISED
    origin = bits_at(words, bit + 1, _ORIGIN_BITS)
    bit += 1 + _ORIGIN_BITS

    recent = np.zeros(256, np.uint8)
    status, bit, n_used = _read_used_bytes(words, end, bit, recent)
    if status != OK:
        return status
    selectors = np.zeros(_MAX_SELECTORS, np.uint8)
    status, bit, n_tables, n_selectors = _read_selectors(words, end, bit, selectors)
    if status != OK:
        return status
    codes = Codes(
        np.zeros((_MAX_TABLES, 1 << _FAST_BITS), np.uint16),
        np.zeros((_MAX_TABLES, _MAX_LENGTH + 2), np.int64),
        np.zeros((_MAX_TABLES, _MAX_LENGTH + 2), np.int64),
        np.zeros((_MAX_TABLES, _MAX_SYMBOLS), np.uint16),
    )
    lengths = np.zeros(n_used + 2, np.int64)
    for t in range(n_tables):
        status, bit = _read_lengths(words, end, bit, lengths)
        if status != OK:
            return status
        if not _make_codes(codes, t, lengths):
            return DAMAGED
    counts = np.zeros(256, np.int64)
    status, bit, n = _decode_moves(words, end, bit, codes, selectors[:n_selectors], recent, n_used, last_column, counts)
    if status != OK:
        return status
    if origin >= n:
        return DAMAGED
    result[BLOCK_END] = bit
    result[SIZE] = n
    result[ORIGIN] = origin
    _invert(last_column, n, counts, table)
    return OK


@kernel
def _read_used_bytes(words: Table, end: int, bit: int, used: Bytes) -> tuple[int, int, int]:
    """Read the map of the bytes that occur: a bit for each row of 16, then a bit for each byte of those rows.

    Returns: the status, the bit after the map, and the number of bytes, which are then in `used` in their order.
    """
    n_used = 0
    rows = bits_at(words, bit, _MAP_BITS)
    bit += _MAP_BITS
    for row in range(_MAP_BITS):
        if rows & (_MAP_TOP >> row):
            if bit + _MAP_BITS > end:
                return NEED_MORE, bit, n_used
            columns = bits_at(words, bit, _MAP_BITS)
            bit += _MAP_BITS
            for column in range(_MAP_BITS):
                if columns & (_MAP_TOP >> column):
                    used[n_used] = np.uint8(row * _MAP_BITS + column)
                    n_used += 1
    return OK if n_used else DAMAGED, bit, n_used


@kernel
def _read_selectors(words: Table, end: int, bit: int, selectors: Bytes) -> tuple[int, int, int, int]:
    """Read which table each group of symbols uses: ranks in a list of tables, the most recent one first, in unary.

    Returns: the status, the bit after the selectors, the number of tables, and the number of `selectors` filled.
    """
    if bit + _N_TABLES_BITS + _N_SELECTORS_BITS > end:
        return NEED_MORE, bit, 0, 0
    n_tables = bits_at(words, bit, _N_TABLES_BITS)
    n_selectors = bits_at(words, bit + _N_TABLES_BITS, _N_SELECTORS_BITS)
    bit += _N_TABLES_BITS + _N_SELECTORS_BITS
    if n_tables < 2 or n_tables > _MAX_TABLES or n_selectors < 1:
        return DAMAGED, bit, 0, 0
    recent = np.arange(_MAX_TABLES).astype(np.uint8)
    for i in range(n_selectors):
        if bit + _MAX_TABLES > end:
            return NEED_MORE, bit, 0, 0
        rank = 0
        while bits_at(words, bit, 1):
            bit += 1
            rank += 1
            if rank >= n_tables:
                return DAMAGED, bit, 0, 0
        bit += 1
        selected = recent[rank]
        while rank > 0:
            recent[rank] = recent[rank - 1]
            rank -= 1
        recent[0] = selected
        # Some writers announce more selectors than a block can need; bzip2 1.0.8 ignores them too.
        if i < _MAX_SELECTORS:
            selectors[i] = selected
    return OK, bit, n_tables, min(n_selectors, _MAX_SELECTORS)


@kernel
def _read_lengths(words: Table, end: int, bit: int, lengths: Integers) -> tuple[int, int]:
    """Read the code lengths of one table, each as its difference from the one before; return the status and the bit
    after them."""
    if bit + _FIRST_LENGTH_BITS > end:
        return NEED_MORE, bit
    length = bits_at(words, bit, _FIRST_LENGTH_BITS)
    bit += _FIRST_LENGTH_BITS
    for symbol in range(lengths.size):
        while True:
            if length < 1 or length > _MAX_LENGTH:
                return DAMAGED, bit
            if bit + 2 > end:
                return NEED_MORE, bit
            if not bits_at(words, bit, 1):
                bit += 1
                break
            length += 1 - 2 * bits_at(words, bit + 1, 1)
            bit += 2
        lengths[symbol] = length
    return OK, bit


@kernel
def _make_codes(codes: Codes, t: int, lengths: Integers) -> bool:
    """Make the canonical Huffman codes of table `t`; return False where there are more codes than their lengths
    allow.
    """
    code = 0
    placed = 0
    for length in range(1, _MAX_LENGTH + 1):
        codes.offsets[t, length] = placed - code
        for symbol in range(lengths.size):
            if lengths[symbol] == length:
                if code >> length:
                    return False
                codes.symbols[t, placed] = symbol
                placed += 1
                if length <= _FAST_BITS:
                    first = code << (_FAST_BITS - length)
                    codes.fast[t, first : first + (1 << (_FAST_BITS - length))] = symbol * 32 + length
                code += 1
        codes.limits[t, length] = code << (_MAX_LENGTH - length)
        code <<= 1
    return True


@kernel
def _decode_moves(
    words: Table,
    end: int,
    bit: int,
    codes: Codes,
    selectors: Bytes,
    recent: Bytes,
    n_used: int,
    last_column: Bytes,
    counts: Integers,
) -> tuple[int, int, np.int64]:
    """Decode the symbols, each the rank of a byte in the list of recent bytes, or a digit of a run's length.

    Args:
      recent: uint8[256], the bytes that occur; changed.
      last_column: receives the bytes.
      counts: int64[256], receives how often each byte occurs.

    Returns: the status, the bit after the symbols, and the number of bytes.
    """
    # The loop stays in one piece: with the run and the registers in kernels of their own it takes a quarter longer.
    # `buffer` holds `held` bits at its top; a refill of 32 bits is one load. Two registers, `low` and `high`, hold the
    # first 16 recent bytes, the most recent one lowest, and `recent` the others: moving a byte to the front then takes
    # no loop for nine out of ten bytes.
    low = np.uint64(0)
    high = np.uint64(0)
    for k in range(8):
        low |= np.uint64(recent[k]) << np.uint64(8 * k)
        high |= np.uint64(recent[8 + k]) << np.uint64(8 * k)
    word = bit >> 5
    buffer = ((np.uint64(words[word]) << np.uint64(32)) | np.uint64(words[word + 1])) << np.uint64(bit & 31)
    held = np.int64(64 - (bit & 31))
    word += 2
    n = np.int64(0)
    weight = np.int64(1)
    group = 0
    table_now = np.int64(0)
    left_in_group = 0
    end_symbol = n_used + 1
    while True:
        if left_in_group == 0:
            if group >= selectors.size:
                return _damaged_unless_cut_off(word * 32 - held, end), bit, n
            table_now = np.int64(selectors[group])
            group += 1
            left_in_group = _GROUP
        left_in_group -= 1
        if held < 32:
            if word >= words.size:
                return NEED_MORE, bit, n
            buffer |= np.uint64(words[word]) << np.uint64(32 - held)
            word += 1
            held += 32
        entry = np.int64(codes.fast[table_now, np.int64(buffer >> np.uint64(64 - _FAST_BITS))])
        if entry == 0:
            entry = _look_up_long_code(codes, table_now, np.int64(buffer >> np.uint64(64 - _MAX_LENGTH)))
            if entry < 0:
                return _damaged_unless_cut_off(word * 32 - held, end), bit, n
        length = entry & 31
        symbol = entry >> 5
        buffer <<= np.uint64(length)
        held -= length
        if symbol == end_symbol:
            break
        # The processor cannot predict the kind of the next symbol, so the loop has few branches: a run is the front
        # byte, moved to the front, several times. Runs are counted in bijective base 2: RUNA (symbol 0) adds the
        # weight, RUNB (symbol 1) twice the weight.
        is_run = np.int64(symbol <= 1)
        times = (weight << symbol) * is_run + (1 - is_run)
        weight = (weight << 1) * is_run + (1 - is_run)
        if n + times > MAX_BLOCK:
            return _damaged_unless_cut_off(word * 32 - held, end), bit, n
        rank = symbol - 1 + np.int64(symbol == 0)
        front, low, high = _move_to_front(recent, rank, low, high)
        counts[front] += times
        last_column[n] = front
        last_column[n + 1] = front
        last_column[n + 2] = front
        last_column[n + 3] = front
        for i in range(n + SLACK, n + times):
            last_column[i] = front
        n += times
    behind = word * 32 - held
    return OK if behind <= end else NEED_MORE, int(behind), n


@kernel
def _damaged_unless_cut_off(bit: int, end: int) -> int:
    """Return what impossible symbols mean that were read up to `bit`: past the end of the data they were only
    padding.
    """
    return DAMAGED if bit <= end else NEED_MORE


@kernel
def _look_up_long_code(codes: Codes, t: int, top: int) -> np.int64:
    """Return symbol * 32 + length of the code of more than _FAST_BITS bits that starts `top` (_MAX_LENGTH bits), or
    -1.
    """
    length = np.int64(_FAST_BITS + 1)
    while length <= _MAX_LENGTH and top >= codes.limits[t, length]:
        length += 1
    if length > _MAX_LENGTH:
        return np.int64(-1)
    symbol = np.int64(codes.symbols[t, (top >> (_MAX_LENGTH - length)) + codes.offsets[t, length]])
    return symbol * 32 + length


@kernel
@wraps_around
def _move_to_front(recent: Bytes, rank: int, low: np.uint64, high: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Move the recent byte of a rank to the front; return it, and `low` and `high` then (see _decode_moves)."""
    if rank < 16:
        in_high = np.uint64(0) - np.uint64(rank >> 3)  # all ones or all zeros
        half = (high & in_high) | (low & ~in_high)
        place = np.uint64(8 * (rank & 7))
        below = (np.uint64(1) << place) - np.uint64(1)
        front = (half >> place) & np.uint64(0xFF)
        half = (half & ~((below << np.uint64(8)) | np.uint64(0xFF))) | ((half & below) << np.uint64(8))
        high = ((half | (low >> np.uint64(56))) & in_high) | (high & ~in_high)
        low = ((low << np.uint64(8)) & in_high) | (half & ~in_high) | front
        return front, low, high
    front = np.uint64(recent[rank])
    while rank > 16:
        recent[rank] = recent[rank - 1]
        rank -= 1
    recent[16] = np.uint8(high >> np.uint64(56))
    return front, (low << np.uint64(8)) | front, (high << np.uint64(8)) | (low >> np.uint64(56))


@kernel
def _invert(last_column: Bytes, n: int, counts: Integers, table: Table) -> None:
    """Make the table of the inverse transform; `counts` become the places after each byte's entries."""
    total = 0
    for value in range(256):
        total += counts[value]
        counts[value] = total - counts[value]
    for i in range(n):
        byte = np.int64(last_column[i])
        table[counts[byte]] = np.uint32((i << 12) | byte)
        counts[byte] += 1


class Pieces(NamedTuple):
    """The pieces of the chain that `walk` follows, int64[_STARTS] each: where a mark starts one, another mark ends it.

    start: the entry that piece k starts at. lane, begin, length: it lies at lanes[lane[k], begin[k] : begin[k] +
    length[k]]. follows: the number of the piece after it.
    """

    start: Integers
    lane: Integers
    begin: Integers
    length: Integers
    follows: Integers


class Lanes(NamedTuple):
    """The state of each lane, int64[LANES] each.

    piece: the number of the piece that it walks; -1 where it walks none. place: the entry that it comes to next.
    filled: how many bytes it has walked.
    """

    piece: Integers
    place: Integers
    filled: Integers


@kernel
def walk(table: Table, n: int, first: int, lanes: Bytes, raw: Bytes) -> None:
    """Undo the transform of one block.

    Args:
      table: uint32[MAX_BLOCK], as decode_symbols fills it; receives marks.
      n: the number of bytes.
      first: the entry to start at.
      lanes: uint8[LANES, MAX_BLOCK], scratch: the bytes that each lane walks, one piece after the other.
      raw: uint8[MAX_BLOCK], receives the block's bytes.
    """
    parts = np.zeros((5, _STARTS), np.int64)
    pieces = Pieces(parts[0], parts[1], parts[2], parts[3], parts[4])
    n_pieces = _mark_starts(table, n, first, pieces)
    state = Lanes(np.full(LANES, -1, np.int64), np.zeros(LANES, np.int64), np.zeros(LANES, np.int64))
    n_begun = 0
    while True:
        n_busy = 0
        for lane in range(LANES):
            if state.piece[lane] < 0 and n_begun < n_pieces:
                _begin_piece(table, pieces, n_begun, state, lane, lanes)
                n_begun += 1
            if state.piece[lane] >= 0:
                n_busy += 1
        if n_busy < LANES:
            break
        _walk_in_step(table, state.place, state.filled, lanes)
        for lane in range(LANES):
            if table[state.place[lane]] & _MARK:
                _end_piece(pieces, n_pieces, state, lane)
    # Fewer pieces are left than lanes: walk each to its end.
    for lane in range(LANES):
        if state.piece[lane] < 0:
            continue
        entry = table[state.place[lane]]
        while not entry & _MARK:
            lanes[lane, state.filled[lane]] = np.uint8(entry)
            state.filled[lane] += 1
            state.place[lane] = np.int64(entry >> _NEXT)
            entry = table[state.place[lane]]
        _end_piece(pieces, n_pieces, state, lane)
    _join_pieces(pieces, lanes, n, raw)


@kernel
def _mark_starts(table: Table, n: int, first: int, pieces: Pieces) -> int:
    """Mark the first entry and others at even distances as starts of pieces; return how many there are."""
    pieces.start[0] = first
    table[first] |= _MARK
    n_pieces = 1
    for k in range(1, _STARTS):
        entry = k * n // _STARTS
        if not table[entry] & _MARK:
            table[entry] |= _MARK
            pieces.start[n_pieces] = entry
            n_pieces += 1
    return n_pieces


@kernel
def _begin_piece(table: Table, pieces: Pieces, piece: int, state: Lanes, lane: int, lanes: Bytes) -> None:
    """Let a lane walk the first entry of a piece, the marked one."""
    state.piece[lane] = piece
    pieces.lane[piece] = lane
    pieces.begin[piece] = state.filled[lane]
    entry = table[pieces.start[piece]]
    lanes[lane, state.filled[lane]] = np.uint8(entry)
    state.filled[lane] += 1
    state.place[lane] = np.int64(entry >> _NEXT)


@kernel
def _join_pieces(pieces: Pieces, lanes: Bytes, n: int, raw: Bytes) -> None:
    """Copy the pieces in their order to raw[:n]."""
    size = 0
    piece = 0
    # In a block that repeats itself the permutation has several cycles: then the first one is copied several times.
    while size < n:
        part = min(pieces.length[piece], n - size)
        begin = pieces.begin[piece]
        raw[size : size + part] = lanes[pieces.lane[piece], begin : begin + part]
        size += part
        piece = pieces.follows[piece]


@kernel
def _walk_in_step(table: Table, place: Integers, filled: Integers, lanes: Bytes) -> None:
    """Walk all lanes, one entry each a round, until at least one of them comes to a mark.

    Places, and rows of `lanes`, are local variables: numba keeps them in registers.
    """
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
def _end_piece(pieces: Pieces, n_pieces: int, state: Lanes, lane: int) -> None:
    """Note the length of the piece whose end a lane has reached, and which piece follows it."""
    ended = state.piece[lane]
    pieces.length[ended] = state.filled[lane] - pieces.begin[ended]
    for k in range(n_pieces):
        if pieces.start[k] == state.place[lane]:
            pieces.follows[ended] = k
    state.piece[lane] = -1


@kernel
@wraps_around
def find_counts(raw: Bytes, n: int, counts_at: Integers) -> int:
    """Find the counts in raw[:n]: the byte after four equal ones tells how many more of them there are.

    Args:
      raw: uint8[MAX_BLOCK].
      counts_at: int64[MAX_BLOCK // SMALLEST_RUN + 1], receives the places of the counts.

    Returns: the number of counts, or -1 where the last one is missing.
    """
    # Of four equal bytes two are a pair at an even place, so one step can skip most words of four pairs.
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
def expand(raw: Bytes, n: int, counts_at: Integers, n_counts: int, out: Bytes) -> None:
    """Copy raw[:n] to `out` with its runs in full.

    Args:
      counts_at: int64[…], of which the first `n_counts` are the places of the counts.
      out: uint8[n - n_counts + the sum of the counts] at least.
    """
    begin = 0
    size = 0
    for k in range(n_counts):
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
    """Return bzip2's CRC-32 of plain[:size]; `plain` has a multiple of 8 bytes."""
    words = plain.view(np.uint64)
    mask = np.uint64(0xFF)
    crc = np.uint64(0xFFFFFFFF)
    for k in range(size >> 3):
        word = words[k]
        # The first byte is the lowest one of the word; it goes with the highest one of the checksum.
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
    """Compile the kernels that other modules call, on a block of one byte."""
    stream = bytes.fromhex("425a683931415926535919939b6b00000001002000200021184682ee48a70a120332736d60")
    data = np.concatenate([np.frombuffer(stream, np.uint8), np.zeros(PADDING, np.uint8)])
    words = words_of(data)
    table, raw, result = np.empty(MAX_BLOCK, np.uint32), np.empty(MAX_BLOCK, np.uint8), np.zeros(4, np.int64)
    start = int(find_mark(data, 0, 64, BLOCK_MAGIC, BLOCK_MAGIC))
    bits_at(words, start, 48)
    decode_symbols(words, len(stream) * 8, start, np.empty(MAX_BLOCK + SLACK, np.uint8), table, result)
    walk(table, int(result[1]), int(result[2]), np.empty((LANES, MAX_BLOCK), np.uint8), raw)
    counts_at = np.empty(MAX_BLOCK // SMALLEST_RUN + 1, np.int64)
    plain = np.empty(8, np.uint8)
    expand(raw, int(result[1]), counts_at, int(find_counts(raw, int(result[1]), counts_at)), plain)
    checksum(plain, 1, CRC_TABLES)
