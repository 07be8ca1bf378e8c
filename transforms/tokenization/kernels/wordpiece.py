"""BERT's tokenization of UTF-8 text: normalise, split into words, split words into pieces of the vocabulary.

Exact to tokenization.py of google-research/bert and of mlcommons/training, for text that TensorFlow's readline gives.

Arrays
  text        uint8: whole lines, each ended by a newline; PADDING bytes more, all newlines, behind them.
  pages, blocks, pool
              what happens to each code point, see transforms/unicode_tables.py.
  slots       uint64[2**k]: the trie's edges, an open-addressed hash table. A slot is (node * 256 + byte + 1) << 32 |
              next node; 0 is empty. Node 0 is where a word starts, node 1 where it goes on ("##" is not spelt out).
  node_ids    int32[nodes]: the piece that ends at a node, -1 for none.
  ascii_ids   int32[128]: the piece that a punctuation character of ASCII becomes.
  words       uint64[2**WORD_BITS * 4]: a direct-mapped cache in front of the trie. An entry is a normalised word of up
              to 16 bytes (two words, zero-padded), then its pieces, up to four of 32 bits; above the last, in bits
              60 of the whole, whether the word is unknown, and in bits 61 to 63 how many pieces it has.
  scratch     uint8[SCRATCH]: the word that is being read, and the combining classes of the marks at its end.
  ids         int32: the pieces of all words of all lines, one after the other.
  segment_ends, document_ends
              int64: where each segment (line with pieces) ends in `ids`; where each document ends in `segment_ends`.
  state       int64[STATE]: the counts that go on from one block to the next, see the names below.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from transforms.kernels import kernel
from transforms.kernels.memory import (
    address,
    get_i32,
    get_i64,
    get_u16,
    get_u32,
    get_u64,
    leading_zeros,
    load_u8,
    load_u64,
    put_i32,
    put_i64,
    put_u64,
    store_u8,
    store_u16,
    store_u64,
    trailing_zeros,
)
from transforms.tokenization.unicode_tables import (
    BYTES_SHIFT,
    CASE_SHIFT,
    CASED,
    COMPLEX,
    COMPLEX_BYTES,
    COUNT_SHIFT,
    DELETE,
    IDEOGRAPH,
    IGNORED,
    KEEP,
    MAP,
    POOL_SHIFT,
    PUNCTUATION,
    SIGMA,
    SPACE,
    STARTER,
    VERSIONS,
    WHITE,
    load,
)

PADDING = 32
WORD_BITS = 15
MAX_WORD = 200  # code points; a longer word is unknown
MAX_ID = 1 << 28  # ids are smaller
WORD_BYTES = 4 * MAX_WORD + 64
SCRATCH = WORD_BYTES + 16 * (MAX_WORD + 8)

# Places in `state`.
IDS = 0  # pieces in this block
SEGMENTS = 1  # segments in this block
DOCUMENTS = 2  # documents that ended in this block
OPEN_SEGMENTS = 3  # segments of the document that is still open
UNKNOWN = 4  # words without pieces, in all blocks
BAD_BYTE = 5  # where this block stops being UTF-8, or -1
STATE = 6

_NEWLINE = 10
_ZERO = np.uint64(0)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_HIGH = np.uint64(0x8080808080808080)
_LOW7 = np.uint64(0x7F7F7F7F7F7F7F7F)
_CASE_BIT = np.uint64(0x2020202020202020)
_FROM_A = np.uint64(0x1F1F1F1F1F1F1F1F)  # 0x80 - "a" in each byte
_PAST_Z = np.uint64(0x0505050505050505)  # 0x80 - "{"
_FROM_0 = np.uint64(0x5050505050505050)  # 0x80 - "0"
_PAST_9 = np.uint64(0x4646464646464646)  # 0x80 - ":"
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_WORD_SHIFT = np.uint64(64 - WORD_BITS)
_MARK_SHIFT = np.uint64(60)
_COUNT_SHIFT = np.uint64(61)
_PIECES = np.uint64((1 << 60) - 1)
_HALF = np.uint64(32)
_LOW32 = np.uint64(0xFFFFFFFF)


@kernel
def build_trie(pieces, starts, piece_ids, slots, node_ids):
    """Fills `slots` and `node_ids` from pieces[starts[k]:starts[k + 1]] (uint8), whose ids are piece_ids[k]."""
    mask = len(slots) - 1
    nodes = 2
    node_ids[0] = node_ids[1] = -1
    for k in range(len(piece_ids)):
        start, end = starts[k], starts[k + 1]
        node = 0
        # A word cannot start with "##": punctuation stands alone.
        if end - start >= 2 and pieces[start] == 35 and pieces[start + 1] == 35:
            start += 2
            node = 1
        if start == end:
            continue
        for i in range(start, end):
            key = node * 256 + pieces[i] + 1
            at = (key * 0x9E3779B1 >> 7) & mask
            while slots[at] != 0 and np.int64(slots[at] >> _HALF) != key:
                at = (at + 1) & mask
            if slots[at] == 0:
                slots[at] = np.uint64(key) << _HALF | np.uint64(nodes)
                node_ids[nodes] = -1
                nodes += 1
            node = np.int64(slots[at] & _LOW32)
        node_ids[node] = piece_ids[k]
    return nodes


@kernel
def _step(slots, mask, node, byte):
    """The node behind `byte` from `node`, or -1."""
    key = node * 256 + byte + 1
    at = (key * 0x9E3779B1 >> 7) & mask
    while True:
        slot = get_u64(slots, at)
        if np.int64(slot >> _HALF) == key:
            return np.int64(slot & _LOW32)
        if slot == 0:
            return np.int64(-1)
        at = (at + 1) & mask


@kernel
def _split_word(word, size, slots, mask, node_ids, unknown_id, ids, n):
    """Writes the pieces of word[:size] to ids[n:], longest match first; returns where they end, negated if unknown."""
    first = n
    start = 0
    while start < size:
        node = np.int64(0 if start == 0 else 1)
        best = np.int64(-1)
        best_end = start
        for i in range(start, size):
            node = _step(slots, mask, node, load_u8(word, i))
            if node < 0:
                break
            piece = get_i32(node_ids, node)
            if piece >= 0:
                best = piece
                best_end = i + 1
        if best < 0:
            put_i32(ids, first, unknown_id)
            return -(first + 1)
        put_i32(ids, n, best)
        n += 1
        start = best_end
    return n


@kernel
def _place_of(low, high):
    """The entry of a word in `words`."""
    return np.int64(((low ^ (high * _MIX_2)) * _MIX_1) >> _WORD_SHIFT) * 4


@kernel
def _new_word(low, high, word, slots, mask, node_ids, unknown_id, words, ids, n):
    """Writes the pieces of a word of up to 16 bytes that is not in `words`, and puts it there.

    Returns where the pieces end, and 1 if the word is unknown.
    """
    store_u64(word, 0, low)
    store_u64(word, 8, high)
    size = 16 - (leading_zeros(high) >> 3) if high != 0 else 8 - (leading_zeros(low) >> 3)
    end = _split_word(word, size, slots, mask, node_ids, unknown_id, ids, n)
    unknown = end < 0
    if unknown:
        end = -end
    count = end - n
    if count <= 4:
        at = _place_of(low, high)
        mark = count << 1 | unknown
        second = np.uint64(get_i32(ids, n + 1)) if count > 1 else _ZERO
        third = np.uint64(get_i32(ids, n + 2)) if count > 2 else _ZERO
        fourth = np.uint64(get_i32(ids, n + 3)) if count > 3 else _ZERO
        put_u64(words, at, low)
        put_u64(words, at + 1, high)
        put_u64(words, at + 2, np.uint64(get_i32(ids, n)) | second << _HALF)
        put_u64(words, at + 3, third | fourth << _HALF | np.uint64(mark) << _MARK_SHIFT)
    return end, np.int64(unknown)


@kernel
def _decode(text, i):
    """The code point at text[i] and its length, as point * 8 + length; -1 where it is not UTF-8."""
    first = load_u8(text, i)
    if first < 0x80:
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


@kernel
def _lookup(pages, blocks, point):
    """The entry of a code point."""
    return get_u32(blocks, get_u16(pages, point >> 7) * 128 + (point & 127))


@kernel
def _sigma_is_final(text, i, pages, blocks):
    """Whether the capital sigma at text[i] is the last letter of its token, as `str.lower` sees it."""
    at = i
    while True:
        if at == 0 or load_u8(text, at - 1) == _NEWLINE:
            return False
        at -= 1
        while load_u8(text, at) & 0xC0 == 0x80:
            at -= 1
        entry = _lookup(pages, blocks, _decode(text, at) >> 3)
        kind = entry & 15
        if kind in (SPACE, IDEOGRAPH):
            return False
        case = entry >> CASE_SHIFT & 3
        if kind != DELETE and case != IGNORED:
            if case != CASED:
                return False
            break
    at = i + 2
    while load_u8(text, at) != _NEWLINE:
        decoded = _decode(text, at)
        if decoded < 0:
            return True  # reported when the text is read up to here
        entry = _lookup(pages, blocks, decoded >> 3)
        kind = entry & 15
        if kind in (SPACE, IDEOGRAPH):
            return True
        case = entry >> CASE_SHIFT & 3
        if kind != DELETE and case != IGNORED:
            return case != CASED
        at += decoded & 7
    return True


@kernel
def _insert_mark(word, size, combining, mark_bytes, source, run, runs):
    """Puts a mark (its bytes are at `source`) into word[:size] in canonical order among the `run` marks at its end.

    runs: two int64 for each of these marks, its combining class and its number of bytes.
    """
    k = run
    at = size
    while k > 0 and get_i64(runs, 2 * k - 2) > combining:
        k -= 1
        at -= get_i64(runs, 2 * k + 1)
    for j in range(size - 1, at - 1, -1):
        store_u8(word, j + mark_bytes, load_u8(word, j))
    for j in range(2 * run - 1, 2 * k - 1, -1):
        put_i64(runs, j + 2, get_i64(runs, j))
    _copy(word, at, source, mark_bytes)
    put_i64(runs, 2 * k, combining)
    put_i64(runs, 2 * k + 1, mark_bytes)


@kernel
def _copy(word, at, source, count):
    """Copies bytes; count is small."""
    for j in range(count):
        store_u8(word, at + j, load_u8(source, j))


@kernel
def _flush(word, size, points, slots, mask, node_ids, unknown_id, words, ids, n):
    """Writes the pieces of a normalised word; returns where they end, and 1 if it is unknown."""
    if points > MAX_WORD:
        put_i32(ids, n, unknown_id)
        return n + 1, np.int64(1)
    if size <= 16:
        low = load_u64(word, 0)
        high = load_u64(word, 8)
        if size <= 8:
            low &= _ONES >> np.uint64(64 - size * 8)
            high = _ZERO
        else:
            high &= _ONES >> np.uint64(128 - size * 8)
        at = _place_of(low, high)
        if get_u64(words, at) == low and get_u64(words, at + 1) == high:
            pieces = get_u64(words, at + 3)
            store_u64(ids, 4 * n, get_u64(words, at + 2))
            store_u64(ids, 4 * n + 8, pieces & _PIECES)
            return n + np.int64(pieces >> _COUNT_SHIFT), np.int64(pieces >> _MARK_SHIFT) & 1
        return _new_word(low, high, word, slots, mask, node_ids, unknown_id, words, ids, n)
    end = _split_word(word, size, slots, mask, node_ids, unknown_id, ids, n)
    if end < 0:
        return -end, np.int64(1)
    return end, np.int64(0)


@kernel
def _careful_word(text, i, pages, blocks, pool, slots, mask, node_ids, unknown_id, words, scratch, ids, n):
    """Reads one word, or one character that stands alone, whatever it is made of.

    Stops before a newline and before what is not UTF-8. Returns where it goes on in `text` (negative: -1 less the
    place that is not UTF-8), where the pieces end, how many words were unknown, and whether there was anything but
    white space.
    """
    word = scratch
    runs = scratch + WORD_BYTES
    size = np.int64(0)  # bytes in `word`
    points = np.int64(0)  # code points in it; beyond MAX_WORD they are only counted
    run = 0  # marks at its end that canonical ordering may still move
    unknown = np.int64(0)
    seen = False
    bad = False
    while True:
        decoded = _decode(text, i)
        if decoded < 0:
            bad = True
            break
        if decoded >> 3 == _NEWLINE:
            break
        length = decoded & 7
        entry = _lookup(pages, blocks, decoded >> 3)
        kind = entry & 15
        if not entry & WHITE:
            seen = True
        if kind == KEEP:
            if points < MAX_WORD:
                _copy(word, size, text + i, length)
                size += length
            points += 1
            run = 0
        elif kind == MAP:
            if points < MAX_WORD:
                count = entry >> BYTES_SHIFT & 15
                _copy(word, size, pool + (entry >> POOL_SHIFT), count)
                size += count
            points += entry >> COUNT_SHIFT & 3
            run = 0
        elif kind == SIGMA:
            if points < MAX_WORD:
                store_u16(word, size, 0x82CF if _sigma_is_final(text, i, pages, blocks) else 0x83CF)
                size += 2
            points += 1
            run = 0
        elif kind in (SPACE, PUNCTUATION, IDEOGRAPH):
            if points > 0:
                n, more = _flush(word, size, points, slots, mask, node_ids, unknown_id, words, ids, n)
                unknown += more
                points = np.int64(0)
            if kind != SPACE:
                size = entry >> BYTES_SHIFT & 15
                if size == 0:
                    size = length
                    _copy(word, 0, text + i, length)
                else:
                    _copy(word, 0, pool + (entry >> POOL_SHIFT), size)
                n, more = _flush(word, size, 1, slots, mask, node_ids, unknown_id, words, ids, n)
                unknown += more
            i += length
            break
        elif kind == STARTER:
            run = 0
        elif kind == COMPLEX:
            record = pool + (entry >> POOL_SHIFT)
            for _ in range(entry >> COUNT_SHIFT & 3):
                combining = load_u8(record, 0)
                count = load_u8(record, 1)
                if combining == 0:
                    run = 0
                if count > 0:
                    if points < MAX_WORD:
                        if combining == 0:
                            _copy(word, size, record + 2, count)
                        else:
                            _insert_mark(word, size, combining, count, record + 2, run, runs)
                            run += 1
                        size += count
                    points += 1
                record += COMPLEX_BYTES
        i += length  # nothing else remains of an ACCENT, or of what is to DELETE
    if points > 0:
        n, more = _flush(word, size, points, slots, mask, node_ids, unknown_id, words, ids, n)
        unknown += more
    return (-1 - i if bad else i), n, unknown, seen


@kernel
def tokenize_block(
    text_array, size, do_lower_case, pages_array, blocks_array, pool_array, slots_array, node_ids_array,
    ascii_ids_array, unknown_id, words_array, scratch_array, ids_array, segment_ends, document_ends, state,
):  # fmt: skip
    """Tokenizes the lines of text[:size]. `ids` has room for size + 8, the others for one more than its lines.

    Segments and documents are counted from the start of the block; a document that started in an earlier block ends
    at a segment counted in this one. Stops at the first byte that is not UTF-8 and leaves its place in `state`.
    """
    text = address(text_array)
    pages = address(pages_array)
    blocks = address(blocks_array)
    pool = address(pool_array)
    slots = address(slots_array)
    mask = len(slots_array) - 1
    node_ids = address(node_ids_array)
    ascii_ids = address(ascii_ids_array)
    words = address(words_array)
    scratch = address(scratch_array)
    ids = address(ids_array)
    n = np.int64(0)
    segments = 0
    documents = 0
    unknown = state[UNKNOWN]
    open_segments = state[OPEN_SEGMENTS]
    line_start = np.int64(0)  # in `ids`
    seen = False  # whether the line has anything that is not white space; a line with pieces has
    fold = _CASE_BIT if do_lower_case else _ZERO
    i = np.int64(0)
    while i < size:
        # The next eight bytes at once: which are letters or digits of ASCII.
        low = load_u64(text, i)
        inside, letter = _classify(low)
        length = trailing_zeros(inside ^ _HIGH) >> 3
        if length == 0:
            byte = load_u8(text, i)
            if byte == 32:
                i += 1
                continue
            if byte > 32 and byte < 127:
                piece = get_i32(ascii_ids, byte)
                put_i32(ids, n, piece)
                n += 1
                unknown += piece == unknown_id
                i += 1
                continue
            if byte == _NEWLINE:
                i += 1
                if n > line_start:
                    segment_ends[segments] = n
                    segments += 1
                    open_segments += 1
                    line_start = n
                elif not seen and open_segments > 0:
                    document_ends[documents] = segments
                    documents += 1
                    open_segments = np.int64(0)
                seen = False
                continue
        else:
            low |= (letter >> np.uint64(2)) & fold
            high = _ZERO
            if length < 8:
                low &= (np.uint64(1) << np.uint64(length * 8)) - np.uint64(1)
            else:
                high = load_u64(text, i + 8)
                inside, letter = _classify(high)
                more_length = trailing_zeros(inside ^ _HIGH) >> 3
                length += more_length
                high |= (letter >> np.uint64(2)) & fold
                if more_length < 8:
                    high &= (np.uint64(1) << np.uint64(more_length * 8)) - np.uint64(1)
            byte = load_u8(text, i + length)
            if length < 16 and ((byte >= 32 and byte < 127) or byte == _NEWLINE):
                at = _place_of(low, high)
                if get_u64(words, at) == low and get_u64(words, at + 1) == high:
                    pieces = get_u64(words, at + 3)
                    store_u64(ids, 4 * n, get_u64(words, at + 2))
                    store_u64(ids, 4 * n + 8, pieces & _PIECES)
                    n += np.int64(pieces >> _COUNT_SHIFT)
                    unknown += np.int64(pieces >> _MARK_SHIFT) & 1
                else:
                    n, more = _new_word(low, high, scratch, slots, mask, node_ids, unknown_id, words, ids, n)
                    unknown += more
                i += length + (byte == 32)
                continue
        # A long word, one that something other than ASCII belongs to or may end, or a control character.
        i, n, more, other = _careful_word(
            text, i, pages, blocks, pool, slots, mask, node_ids, unknown_id, words, scratch, ids, n
        )
        unknown += more
        seen |= other
        if i < 0:
            break
    state[BAD_BYTE] = -1 if i >= 0 else -1 - i
    state[IDS] = n
    state[SEGMENTS] = segments
    state[DOCUMENTS] = documents
    state[OPEN_SEGMENTS] = open_segments
    state[UNKNOWN] = unknown


@kernel
def _classify(word):
    """The high bits of those of eight bytes that are letters or digits of ASCII, and of those that are letters."""
    plain = word & _LOW7
    lower = plain | _CASE_BIT
    ascii_only = ~word & _HIGH
    letter = (lower + _FROM_A) & ~(lower + _PAST_Z) & ascii_only
    digit = (plain + _FROM_0) & ~(plain + _PAST_9) & ascii_only
    return letter | digit, letter


def warm_up() -> None:
    """Compiles the entry kernels of this module."""
    slots = np.zeros(8, np.uint64)
    node_ids = np.empty(4, np.int32)
    build_trie(np.array([97, 98], np.uint8), np.array([0, 1, 2]), np.arange(2, dtype=np.int32), slots, node_ids)
    table = load(VERSIONS[0], True)
    text = np.full(2 + PADDING, _NEWLINE, np.uint8)
    text[0] = 97
    tokenize_block(
        text, 2, True, table.pages, table.blocks, table.pool, slots, node_ids, np.zeros(128, np.int32), 0,
        np.zeros(4 << WORD_BITS, np.uint64), np.empty(SCRATCH, np.uint8), np.empty(10, np.int32),
        np.empty(3, np.int64), np.empty(3, np.int64), np.zeros(STATE, np.int64),
    )  # fmt: skip
