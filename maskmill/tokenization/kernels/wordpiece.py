"""BERT's tokenization of UTF-8 text: normalise, split into words, split words into pieces of the vocabulary.

Exact to tokenization.py of google-research/bert and of mlcommons/training, for text that TensorFlow's readline gives.

Arrays
  text        uint8: whole lines, each ended by a newline; PADDING bytes more, all newlines, after them.
  pages, blocks, pool
              what happens to each code point, see maskmill/tokenization/unicode_tables.py.
  slots       uint64[2**k]: the trie's edges, an open-addressed hash table. A slot is (node * 256 + byte + 1) << 32 |
              next node; 0 is empty. A word starts at node WORD_START and goes on at node WORD_REST ("##" is not in
              the trie).
  node_ids    int32[nodes]: the piece that ends at a node, -1 for none.
  ascii_ids   int32[128]: the piece that a punctuation character of ASCII becomes.
  words       uint64[2**WORD_BITS * CACHED_WORD]: a direct-mapped cache in front of the trie. An entry is a normalised
              word of up to 16 bytes (two words, zero-padded), then its pieces, up to four of 32 bits. Ids are below
              2**28, so the fourth piece leaves four bits: bit 60 of the entry's last word says whether the word is
              unknown, bits 61 to 63 say how many pieces it has.
  scratch     uint8[SCRATCH]: the word that is being read, then for each of the marks at its end two int64, its
              combining class and its number of bytes.
  ids         int32: the pieces of all words of all lines, one after the other.
  segment_ends, document_ends
              int64: where each segment (line with pieces) ends in `ids`; where each document ends in `segment_ends`.
  segment_lines
              int64: the line of each segment, counted from the start of the block.
  state       int64[STATE]: the counts that go on from one block to the next, see the names below.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from maskmill.kernels import kernel, wraps_around
from maskmill.kernels.ascii import DELETE, HASH, NEWLINE, SPACE
from maskmill.kernels.memory import (
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
from maskmill.kernels.utf8 import CASE_BITS, HIGH_BITS, LOW_BITS, ascii_letters, decode
from maskmill.tokenization import unicode_tables as unicode
from maskmill.tokenization.kernels.word_hashes import MIX_1, MIX_2
from maskmill.tokenization.text_blocks import PADDING

SPARE_IDS = 8  # room that `ids` has beyond the text's size: a word's pieces are written four at a time
WORD_BITS = 15
CACHED_WORD = 4  # 64-bit words of an entry of `words`
MAX_WORD = 200  # code points; a longer word is unknown
MAX_ID = 1 << 28  # ids are smaller
_WORD_BYTES = 4 * MAX_WORD + 64
SCRATCH = _WORD_BYTES + 16 * (MAX_WORD + 8)

# Places in `state`.
IDS = 0  # pieces in this block
SEGMENTS = 1  # segments in this block
DOCUMENTS = 2  # documents that ended in this block
OPEN_SEGMENTS = 3  # segments of the document that is still open
UNKNOWN = 4  # words without pieces, in all blocks
BAD_BYTE = 5  # where this block stops being UTF-8, or -1
WORDS = 6  # words, unknown ones included, in all blocks
LINES = 7  # lines of this block
STATE = 8

# Nodes of the trie.
WORD_START = 0
WORD_REST = 1
FIRST_FREE_NODE = 2

_FINAL_SIGMA = 0x82CF  # "ς" in UTF-8, read as a little-endian number
_INNER_SIGMA = 0x83CF  # "σ"

# Numbers for eight bytes at once.
_ZERO = np.uint64(0)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_LETTER_TO_CASE_BIT = np.uint64(2)  # how far CASE_BITS is below HIGH_BITS
_FROM_0 = np.uint64(0x5050505050505050)  # 0x80 - "0"
_PAST_9 = np.uint64(0x4646464646464646)  # 0x80 - ":"

# The parts of a cached word's entry.
_WORD_SHIFT = np.uint64(64 - WORD_BITS)
_MARK_SHIFT = np.uint64(60)
_COUNT_SHIFT = np.uint64(61)
_PIECES = np.uint64((1 << 60) - 1)
_MOST_CACHED_PIECES = 4
_MOST_CACHED_BYTES = 16

# The hash of an edge of the trie, and the parts of its slot.
_EDGE_MIX = 0x9E3779B1
_EDGE_SHIFT = 7
_HALF = np.uint64(32)
_LOW32 = np.uint64(0xFFFFFFFF)


class TokenizerArrays(NamedTuple):
    """The arrays of a tokenizer: its tables, its word cache and its scratch memory; see the module's head."""

    pages: np.ndarray
    blocks: np.ndarray
    pool: np.ndarray
    slots: np.ndarray
    node_ids: np.ndarray
    ascii_ids: np.ndarray
    words: np.ndarray
    scratch: np.ndarray
    unknown_id: int
    do_lower_case: bool


class TokenizedBlock(NamedTuple):
    """The pieces that a block of text becomes; see the module's head.

    `ids` has room for SPARE_IDS more than the block has bytes, the ends for one more than it has lines.
    """

    ids: np.ndarray
    segment_ends: np.ndarray
    document_ends: np.ndarray
    segment_lines: np.ndarray
    state: np.ndarray


# Inner functions take addresses, see maskmill/kernels/memory.py.


class CodePointTable(NamedTuple):
    """The addresses of the arrays that say what happens to each code point."""

    pages: int
    blocks: int
    pool: int


class _Words(NamedTuple):
    """The addresses of the arrays that make pieces of a word."""

    slots: int
    slot_mask: int
    node_ids: int
    unknown_id: int
    cache: int
    word: int  # the word that is being read, then the marks at its end: `scratch`
    ids: int


class _Lines(NamedTuple):
    """The addresses of the arrays that lines need."""

    segment_ends: int
    document_ends: int
    segment_lines: int
    state: int


@kernel
def build_trie(pieces, starts, piece_ids, slots, node_ids):
    """Fill `slots` and `node_ids` from pieces[starts[k]:starts[k + 1]] (uint8), whose ids are piece_ids[k]."""
    mask = len(slots) - 1
    nodes = FIRST_FREE_NODE
    node_ids[WORD_START] = node_ids[WORD_REST] = -1
    for k in range(len(piece_ids)):
        start, end = starts[k], starts[k + 1]
        node = WORD_START
        # A word cannot start with "##": punctuation stands alone.
        if end - start >= 2 and pieces[start] == HASH and pieces[start + 1] == HASH:
            start += 2
            node = WORD_REST
        if start == end:
            continue
        for i in range(start, end):
            key = node * 256 + pieces[i] + 1
            at = _slot_of(key, mask)
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
def _slot_of(key, mask):
    """Return the slot where the search for an edge starts."""
    return (key * _EDGE_MIX >> _EDGE_SHIFT) & mask


@kernel
def _step(words, node, byte):
    """Return the node after `byte` from `node`, or -1."""
    key = node * 256 + byte + 1
    at = _slot_of(key, words.slot_mask)
    while True:
        slot = get_u64(words.slots, at)
        if np.int64(slot >> _HALF) == key:
            return np.int64(slot & _LOW32)
        if slot == 0:
            return np.int64(-1)
        at = (at + 1) & words.slot_mask


@kernel
def _split_word(words, size, n):
    """Write the pieces of word[:size] to ids[n:], longest match first.

    Returns where they end, and 1 if the word is unknown.
    """
    first = n
    start = 0
    while start < size:
        node = np.int64(WORD_START if start == 0 else WORD_REST)
        best = np.int64(-1)
        best_end = start
        for i in range(start, size):
            node = _step(words, node, load_u8(words.word, i))
            if node < 0:
                break
            piece = get_i32(words.node_ids, node)
            if piece >= 0:
                best = piece
                best_end = i + 1
        if best < 0:
            put_i32(words.ids, first, words.unknown_id)
            return first + 1, np.int64(1)
        put_i32(words.ids, n, best)
        n += 1
        start = best_end
    return n, np.int64(0)


@kernel
@wraps_around
def _entry_of(low, high):
    """Return the entry of a word in `words`."""
    return np.int64(((low ^ (high * MIX_2)) * MIX_1) >> _WORD_SHIFT) * CACHED_WORD


@kernel
def _new_word(words, low, high, n):
    """Write the pieces of a word of up to 16 bytes that is not in the cache, and put it there; see _short_word."""
    store_u64(words.word, 0, low)
    store_u64(words.word, 8, high)
    size = 16 - (leading_zeros(high) >> 3) if high != 0 else 8 - (leading_zeros(low) >> 3)
    end, unknown = _split_word(words, size, n)
    count = end - n
    if count <= _MOST_CACHED_PIECES:
        at = _entry_of(low, high)
        mark = count << 1 | unknown
        first = np.uint64(get_i32(words.ids, n))
        second = np.uint64(get_i32(words.ids, n + 1)) if count > 1 else _ZERO
        third = np.uint64(get_i32(words.ids, n + 2)) if count > 2 else _ZERO
        fourth = np.uint64(get_i32(words.ids, n + 3)) if count > 3 else _ZERO
        put_u64(words.cache, at, low)
        put_u64(words.cache, at + 1, high)
        put_u64(words.cache, at + 2, first | second << _HALF)
        put_u64(words.cache, at + 3, third | fourth << _HALF | np.uint64(mark) << _MARK_SHIFT)
    return end, unknown


@kernel
def _short_word(words, low, high, n):
    """Write the pieces of a word of up to 16 bytes, given as two numbers; return as _split_word."""
    at = _entry_of(low, high)
    if get_u64(words.cache, at) != low or get_u64(words.cache, at + 1) != high:
        return _new_word(words, low, high, n)
    last = get_u64(words.cache, at + 3)
    store_u64(words.ids, 4 * n, get_u64(words.cache, at + 2))
    store_u64(words.ids, 4 * n + 8, last & _PIECES)
    return n + np.int64(last >> _COUNT_SHIFT), np.int64(last >> _MARK_SHIFT) & 1


@kernel
def _lookup(table, point):
    """Return the entry of a code point."""
    page = get_u16(table.pages, point >> unicode.PAGE_BITS)
    return get_u32(table.blocks, (page << unicode.PAGE_BITS) + (point & ((1 << unicode.PAGE_BITS) - 1)))


@kernel
def _sigma_is_final(table, text, i):
    """Return whether the capital sigma at text[i] is the last letter of its token, as `str.lower` sees it."""
    at = i
    while True:
        if at == 0 or load_u8(text, at - 1) == NEWLINE:
            return False
        at -= 1
        while load_u8(text, at) & 0xC0 == 0x80:
            at -= 1
        entry = _lookup(table, decode(text, at) >> 3)
        kind = entry & unicode.KIND_MASK
        if kind in (unicode.SPACE, unicode.IDEOGRAPH):
            return False
        case = entry >> unicode.CASE_SHIFT & unicode.CASE_MASK
        if kind != unicode.DELETE and case != unicode.IGNORED:
            if case != unicode.CASED:
                return False
            break
    at = i + 2
    while load_u8(text, at) != NEWLINE:
        decoded = decode(text, at)
        if decoded < 0:
            return True  # reported when the text is read up to here
        entry = _lookup(table, decoded >> 3)
        kind = entry & unicode.KIND_MASK
        if kind in (unicode.SPACE, unicode.IDEOGRAPH):
            return True
        case = entry >> unicode.CASE_SHIFT & unicode.CASE_MASK
        if kind != unicode.DELETE and case != unicode.IGNORED:
            return case != unicode.CASED
        at += decoded & 7
    return True


@kernel
def _copy(target, at, source, count):
    """Copy bytes; count is small."""
    for j in range(count):
        store_u8(target, at + j, load_u8(source, j))


@kernel
def _append(word, size, points, source, count):
    """Append bytes to the word, unless it is too long already; return its size."""
    if points < MAX_WORD:
        _copy(word, size, source, count)
        size += count
    return size


@kernel
def _append_complex(table, word, entry, size, points, run):
    """Append what a code point of kind COMPLEX becomes; return the word's bytes, code points, and movable marks."""
    record = table.pool + (entry >> unicode.POOL_SHIFT)
    for _ in range(entry >> unicode.COUNT_SHIFT & unicode.COUNT_MASK):
        combining = load_u8(record, 0)
        count = load_u8(record, 1)
        if combining == 0:
            run = np.int64(0)
        if count > 0:
            if points < MAX_WORD:
                if combining == 0:
                    _copy(word, size, record + 2, count)
                else:
                    _insert_mark(word, record, size, run)
                    run += 1
                size += count
            points += 1
        record += unicode.COMPLEX_BYTES
    return size, points, run


@kernel
def _insert_mark(word, record, size, run):
    """Put the mark that a record of `pool` describes in order among the `run` marks at the end of word[:size]."""
    combining = load_u8(record, 0)
    mark_bytes = load_u8(record, 1)
    marks = word + _WORD_BYTES
    k = run
    at = size
    while k > 0 and get_i64(marks, 2 * k - 2) > combining:
        k -= 1
        at -= get_i64(marks, 2 * k + 1)
    for j in range(size - 1, at - 1, -1):
        store_u8(word, j + mark_bytes, load_u8(word, j))
    for j in range(2 * run - 1, 2 * k - 1, -1):
        put_i64(marks, j + 2, get_i64(marks, j))
    _copy(word, at, record + 2, mark_bytes)
    put_i64(marks, 2 * k, combining)
    put_i64(marks, 2 * k + 1, mark_bytes)


@kernel
def _write_word(words, size, points, n):
    """Write the pieces of word[:size], if it has any; return as _split_word."""
    if points == 0:
        return n, np.int64(0)
    if points > MAX_WORD:
        put_i32(words.ids, n, words.unknown_id)
        return n + 1, np.int64(1)
    if size <= _MOST_CACHED_BYTES:
        low = load_u64(words.word, 0)
        high = load_u64(words.word, 8)
        if size <= 8:
            low &= _ONES >> np.uint64(64 - size * 8)
            high = _ZERO
        else:
            high &= _ONES >> np.uint64(128 - size * 8)
        return _short_word(words, low, high, n)
    return _split_word(words, size, n)


@kernel
def read_word(table, word, text, i):
    """Read the word at text[i], normalised, into `word` (see `scratch`), whatever it is made of; it may be empty.

    Stops before white space, before a character that stands alone, before a newline and before what is not UTF-8.
    Returns its place, what `decode` says of it, its entry (0 for the last two), the bytes and the code points of the
    word, and whether there was anything but white space. A word of more than MAX_WORD code points is cut.
    """
    size = np.int64(0)  # bytes of the word
    points = np.int64(0)  # code points in it; beyond MAX_WORD they are only counted
    run = np.int64(0)  # marks at its end that canonical ordering may still move
    seen = False
    while True:
        decoded = decode(text, i)
        if decoded < 0 or decoded >> 3 == NEWLINE:
            return i, decoded, np.int64(0), size, points, seen
        length = decoded & 7
        entry = _lookup(table, decoded >> 3)
        kind = entry & unicode.KIND_MASK
        if not entry & unicode.WHITE:
            seen = True
        if kind == unicode.KEEP:
            size = _append(word, size, points, text + i, length)
            points += 1
            run = np.int64(0)
        elif kind == unicode.MAP:
            becomes = table.pool + (entry >> unicode.POOL_SHIFT)
            size = _append(word, size, points, becomes, entry >> unicode.BYTES_SHIFT & unicode.BYTES_MASK)
            points += entry >> unicode.COUNT_SHIFT & unicode.COUNT_MASK
            run = np.int64(0)
        elif kind == unicode.SIGMA:
            if points < MAX_WORD:
                store_u16(word, size, _FINAL_SIGMA if _sigma_is_final(table, text, i) else _INNER_SIGMA)
                size += 2
            points += 1
            run = np.int64(0)
        elif kind in (unicode.SPACE, unicode.PUNCTUATION, unicode.IDEOGRAPH):
            return i, decoded, entry, size, points, seen
        elif kind == unicode.STARTER:
            run = np.int64(0)
        elif kind == unicode.COMPLEX:
            size, points, run = _append_complex(table, word, entry, size, points, run)
        i += length  # nothing else remains of an ACCENT, or of what is to DELETE


@kernel
def read_own_word(table, word, text, i, decoded, entry):
    """Put what stands at text[i] into `word`: a character that is a word of its own, or what it becomes.

    Returns its bytes; 0 where `read_word` stopped at something else.
    """
    kind = entry & unicode.KIND_MASK
    if kind != unicode.PUNCTUATION and kind != unicode.IDEOGRAPH:
        return np.int64(0)
    size = entry >> unicode.BYTES_SHIFT & unicode.BYTES_MASK
    source = table.pool + (entry >> unicode.POOL_SHIFT)
    if size == 0:
        size = decoded & 7
        source = text + i
    _copy(word, 0, source, size)
    return size


@kernel
def _careful_word(table, words, text, i, n):
    """Write the pieces of one word, and of the character after it if it stands alone, whatever they are made of.

    Stops before a newline and before what is not UTF-8. Returns where it goes on in `text` (negative: -1 less the
    place that is not UTF-8), where the pieces end, how many words there were, how many of them were unknown, and
    whether there was anything but white space.
    """
    i, decoded, entry, size, points, seen = read_word(table, words.word, text, i)
    n, unknown = _write_word(words, size, points, n)
    count = np.int64(points > 0)
    if entry == 0:
        return (-1 - i if decoded < 0 else i), n, count, unknown, seen
    size = read_own_word(table, words.word, text, i, decoded, entry)
    if size > 0:
        n, more = _write_word(words, size, 1, n)
        unknown += more
        count += 1
    return i + (decoded & 7), n, count, unknown, seen


@kernel
def ascii_word(text, i, fold):
    """Return the ASCII letters and digits from text[i] on, up to 16: the word as two numbers, and how many they are.

    fold: the bits that are set in letters; CASE_BITS makes them lower-case.
    """
    low = load_u64(text, i)
    inside, letter = _classify(low)
    length = trailing_zeros(inside ^ HIGH_BITS) >> 3
    high = _ZERO
    if length == 0:
        return low, high, length
    low |= (letter >> _LETTER_TO_CASE_BIT) & fold
    if length < 8:
        low &= (np.uint64(1) << np.uint64(length * 8)) - np.uint64(1)
        return low, high, length
    high = load_u64(text, i + 8)
    inside, letter = _classify(high)
    more = trailing_zeros(inside ^ HIGH_BITS) >> 3
    high |= (letter >> _LETTER_TO_CASE_BIT) & fold
    if more < 8:
        high &= (np.uint64(1) << np.uint64(more * 8)) - np.uint64(1)
    return low, high, length + more


@kernel
def _classify(word):
    """Return the high bits of those of eight bytes that are letters or digits of ASCII, and of those that are
    letters.
    """
    plain = word & LOW_BITS
    letter = ascii_letters(word)
    digit = (plain + _FROM_0) & ~(plain + _PAST_9) & ~word & HIGH_BITS
    return letter | digit, letter


@kernel
def _end_line(lines, line_start, n, seen):
    """End the segment of a line whose pieces are ids[line_start:n], or the document that a blank line ends."""
    segments = get_i64(lines.state, SEGMENTS)
    open_segments = get_i64(lines.state, OPEN_SEGMENTS)
    line = get_i64(lines.state, LINES)
    put_i64(lines.state, LINES, line + 1)
    if n > line_start:
        put_i64(lines.segment_ends, segments, n)
        put_i64(lines.segment_lines, segments, line)
        put_i64(lines.state, SEGMENTS, segments + 1)
        put_i64(lines.state, OPEN_SEGMENTS, open_segments + 1)
    elif not seen and open_segments > 0:
        documents = get_i64(lines.state, DOCUMENTS)
        put_i64(lines.document_ends, documents, segments)
        put_i64(lines.state, DOCUMENTS, documents + 1)
        put_i64(lines.state, OPEN_SEGMENTS, 0)


@kernel
def tokenize_block(text_array, size, arrays, block):
    """Tokenize the lines of text[:size] with a TokenizerArrays; fill a TokenizedBlock.

    Segments and documents are counted from the start of the block; a document that started in an earlier block ends
    at a segment counted in this one. Stops at the first byte that is not UTF-8 and leaves its place in `state`.
    """
    text = address(text_array)
    table = CodePointTable(address(arrays.pages), address(arrays.blocks), address(arrays.pool))
    words = _Words(
        address(arrays.slots),
        np.int64(len(arrays.slots) - 1),
        address(arrays.node_ids),
        np.int64(arrays.unknown_id),
        address(arrays.words),
        address(arrays.scratch),
        address(block.ids),
    )
    lines = _Lines(
        address(block.segment_ends), address(block.document_ends), address(block.segment_lines), address(block.state)
    )
    ascii_ids = address(arrays.ascii_ids)
    fold = CASE_BITS if arrays.do_lower_case else _ZERO
    block.state[SEGMENTS] = 0
    block.state[DOCUMENTS] = 0
    block.state[LINES] = 0
    n = np.int64(0)
    read = np.int64(0)  # words
    unknown = np.int64(0)
    line_start = np.int64(0)  # in `ids`
    seen = False  # whether the line has anything that is not white space; a line with pieces has
    i = np.int64(0)
    while i < size:
        low, high, length = ascii_word(text, i, fold)
        byte = load_u8(text, i + length)
        if length == 0:
            if byte == SPACE:
                i += 1
                continue
            if byte > SPACE and byte < DELETE:
                piece = get_i32(ascii_ids, byte)
                put_i32(words.ids, n, piece)
                n += 1
                read += 1
                unknown += piece == words.unknown_id
                i += 1
                continue
            if byte == NEWLINE:
                _end_line(lines, line_start, n, seen)
                line_start = n
                seen = False
                i += 1
                continue
        elif length < _MOST_CACHED_BYTES and ((byte >= SPACE and byte < DELETE) or byte == NEWLINE):
            n, more = _short_word(words, low, high, n)
            read += 1
            unknown += more
            i += length + (byte == SPACE)
            continue
        # A long word, one that something other than ASCII belongs to or may end, or a control character.
        i, n, count, more, other = _careful_word(table, words, text, i, n)
        read += count
        unknown += more
        seen |= other
        if i < 0:
            break
    block.state[BAD_BYTE] = -1 if i >= 0 else -1 - i
    block.state[IDS] = n
    block.state[WORDS] += read
    block.state[UNKNOWN] += unknown


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    slots = np.zeros(8, np.uint64)
    node_ids = np.empty(4, np.int32)
    build_trie(np.array([97, 98], np.uint8), np.array([0, 1, 2]), np.arange(2, dtype=np.int32), slots, node_ids)
    table = unicode.load(unicode.VERSIONS[0], True)
    text = np.full(2 + PADDING, NEWLINE, np.uint8)
    text[0] = 97
    arrays = TokenizerArrays(
        pages=table.pages,
        blocks=table.blocks,
        pool=table.pool,
        slots=slots,
        node_ids=node_ids,
        ascii_ids=np.zeros(128, np.int32),
        words=np.zeros(CACHED_WORD << WORD_BITS, np.uint64),
        scratch=np.empty(SCRATCH, np.uint8),
        unknown_id=0,
        do_lower_case=True,
    )
    ends = np.empty(3, np.int64)
    block = TokenizedBlock(np.empty(2 + SPARE_IDS, np.int32), ends, ends, ends, np.zeros(STATE, np.int64))
    tokenize_block(text, 2, arrays, block)
