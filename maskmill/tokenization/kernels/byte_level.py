"""Byte-level BPE of UTF-8 text: pre-tokens become pieces, by merges of neighbours in the order of their ranks.

Exact to `tokenizers`: its BPE model over its ByteLevel pre-tokenizer, see pre_tokens.py. In a pre-token, of all pairs
of neighbours that a merge joins, the one with the lowest rank is joined first, the leftmost of equal ones.

Arrays
  text        uint8: a byte, whole lines, each ended by a newline; PADDING bytes more, all newlines, after them. The
              byte before a line may become a space.
  pairs       uint64[2**k]: a hash table, open-addressed. An entry is (left << 20 | right) + 1 << 24 | value; 0 is
              empty. With merges, left and right are the ids of two pieces and value is the rank. With added tokens it
              is a trie: left is a node, right a byte, value the next node, or TOKEN where a token ends.
  results     int32[merges]: the id of what the merge of each rank makes.
  byte_ids    int32[256]: the piece of each byte.
  byte_ranks  uint32[65536]: the rank of each pair of bytes, at first << 8 | second; NO_RANK for none.
  words       uint64[CACHED_WORD << WORD_BITS]: a direct-mapped cache of pre-tokens of up to 24 bytes that have up to
              eight pieces. An entry is the pre-token (three words, zero-padded), eight ids of 32 bits, their number.
  links       int32[2 * m], see _merge: memory for a pre-token of up to m bytes.
  ranks       uint32[rank_room(m)]: a tree; level 0 has a rank for each byte of a pre-token, each level above it the
              lowest of every 16 of the level below. Levels are filled up with NO_RANK to whole blocks of 16.
  levels      int64[LEVELS]: where each level starts in `ranks`.
  ids         int32: the pieces of all words of all lines, one after the other.
  continues   uint8: for each piece, whether it goes on a pre-token.
  segment_ends, document_ends
              int64: where each segment (line with pieces) ends in `ids`; where each document ends in `segment_ends`.
  segment_lines
              int64: the line of each segment, counted from the first line read.
  state       int64[STATE], see the names below.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from maskmill.kernels import kernel, wraps_around
from maskmill.kernels.ascii import NEWLINE, SPACE
from maskmill.kernels.memory import (
    address,
    copy_32,
    get_i32,
    get_i64,
    get_u32,
    get_u64,
    least_of_16,
    load_u8,
    load_u64,
    put_i32,
    put_i64,
    put_u32,
    put_u64,
    store_u8,
    store_u64,
)
from maskmill.tokenization import line_joints
from maskmill.tokenization.kernels.pre_tokens import begins_with_space, is_blank_line, line_end_kind, pre_token_end
from maskmill.tokenization.kernels.word_hashes import MIX_1, MIX_2
from maskmill.tokenization.pre_token_classes import load
from maskmill.tokenization.text_blocks import PADDING

WORD_BITS = 16
CACHED_WORD = 8  # 64-bit words of an entry of `words`: one line of the processor's cache
MAX_ID = 1 << 20  # ids are smaller
MAX_RANK = 1 << 24  # ranks are smaller
SPARE_IDS = 8  # room that `ids` and `continues` have beyond the text's size: a word's pieces are written together
LEVELS = 8  # of 16 branches each, so that a tree is large enough for any pre-token

# Places in `state`.
IDS = 0  # pieces
SEGMENTS = 1
DOCUMENTS = 2  # documents that ended
OPEN_SEGMENTS = 3  # segments of the document that is still open
WORDS = 4  # pre-tokens
BAD_BYTE = 5  # where the text stops being UTF-8, or -1
NEEDED = 6  # bytes of a pre-token that is too long for `links` and `ranks`, or 0
READ = 7  # where the line starts that was not read, for one of these reasons
LINES = 8  # lines read
BEFORE = 9  # how the line before ends, see line_joints.py
STATE = 10

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_ID_BITS = np.uint64(20)
_VALUE_BITS = np.uint64(24)
_VALUE = np.uint64((1 << 24) - 1)
_GOES_ON = np.uint64(0x0101010101010100)  # `continues` of the pieces of one word
_MIX_3 = np.uint64(0x165667B19E3779F9)
_WORD_SHIFT = np.uint64(64 - WORD_BITS)
_PAIR_SHIFT = np.uint64(20)
_MOST_CACHED_BYTES = 24
_MOST_CACHED_PIECES = 8
_COUNT = 7  # the word of an entry that has the number of pieces
_BRANCH_BITS = 4
_BRANCHES = 1 << _BRANCH_BITS
NO_RANK = 0xFFFFFFFF
TOKEN = 0


class BytePairArrays(NamedTuple):
    """The arrays of a tokenizer: its tables, its word cache and its scratch memory; see the module's head."""

    classes: np.ndarray
    joints: np.ndarray
    pairs: np.ndarray
    byte_ids: np.ndarray
    byte_ranks: np.ndarray
    results: np.ndarray
    words: np.ndarray
    links: np.ndarray
    ranks: np.ndarray
    levels: np.ndarray
    prefix_space: bool
    joins_lines: bool


class TokenizedLines(NamedTuple):
    """The pieces that lines become; see the module's head.

    `ids` and `continues` have room for SPARE_IDS more than the lines have bytes, the ends for one more than there are
    lines.
    """

    ids: np.ndarray
    continues: np.ndarray
    segment_ends: np.ndarray
    document_ends: np.ndarray
    segment_lines: np.ndarray
    state: np.ndarray


def rank_room(size: int) -> int:
    """Return the size of `ranks` for pre-tokens of up to `size` bytes."""
    return size + size // (_BRANCHES - 1) + _BRANCHES * LEVELS


# Inner functions take addresses, see maskmill/kernels/memory.py.


class _Words(NamedTuple):
    """The addresses of the arrays that make pieces of a pre-token."""

    pairs: int
    pair_mask: int
    byte_ids: int
    byte_ranks: int
    results: int
    cache: int
    links: int
    ranks: int
    levels: int
    ids: int
    continues: int


@kernel
@wraps_around
def _pair_slot(key, mask):
    """Return the entry where the search for a pair starts."""
    return np.int64((key * MIX_1) >> _PAIR_SHIFT) & mask


@kernel
def put_pairs(pairs, left, right, values):
    """Fill `pairs` (zeros, room for twice as many entries) with left[k], right[k] -> values[k] (int64)."""
    mask = len(pairs) - 1
    for k in range(len(left)):
        key = (np.uint64(left[k]) << _ID_BITS | np.uint64(right[k])) + _ONE
        at = _pair_slot(key, mask)
        while pairs[at] != _ZERO:
            at = (at + 1) & mask
        pairs[at] = key << _VALUE_BITS | np.uint64(values[k])


@kernel
def _rank_of(pairs, mask, left, right):
    """Return the value that the table has for a pair, or NO_RANK."""
    key = (np.uint64(left) << _ID_BITS | np.uint64(right)) + _ONE
    at = _pair_slot(key, mask)
    while True:
        found = get_u64(pairs, at)
        if found >> _VALUE_BITS == key:
            return np.int64(found & _VALUE)
        if found == _ZERO:
            return np.int64(NO_RANK)
        at = (at + 1) & mask


@kernel
def put_byte_ranks(pairs_array, byte_ids, byte_ranks):
    """Fill `byte_ranks` from `pairs` and `byte_ids`."""
    pairs = address(pairs_array)
    mask = np.int64(len(pairs_array) - 1)
    for left in range(256):
        for right in range(256):
            byte_ranks[left << 8 | right] = _rank_of(pairs, mask, byte_ids[left], byte_ids[right])


@kernel
def _plant(words, size):
    """Build the levels of the tree over ranks[:size]; return how many there are."""
    levels = np.int64(0)
    start = np.int64(0)
    count = size
    while True:
        put_i64(words.levels, levels, start)
        levels += 1
        blocks = (count + _BRANCHES - 1) // _BRANCHES
        for k in range(start + count, start + blocks * _BRANCHES):
            put_u32(words.ranks, k, NO_RANK)
        if blocks == 1:
            return levels
        above = start + blocks * _BRANCHES
        for k in range(blocks):
            put_u32(words.ranks, above + k, least_of_16(words.ranks, start + k * _BRANCHES) >> 4)
        start = above
        count = blocks


@kernel
def _lowest(words, levels):
    """Return the lowest rank and the first place that has it."""
    at = np.int64(0)
    found = np.int64(0)
    for level in range(levels - 1, -1, -1):
        found = least_of_16(words.ranks, get_i64(words.levels, level) + at * _BRANCHES)
        at = at * _BRANCHES + (found & _BRANCHES - 1)
    return found >> _BRANCH_BITS, at


@kernel
def _mend(words, levels, first, last):
    """Bring the levels of the tree up to date, after ranks[first:last + 1] have changed."""
    for level in range(1, levels):
        below = get_i64(words.levels, level - 1)
        start = get_i64(words.levels, level)
        first >>= _BRANCH_BITS
        last >>= _BRANCH_BITS
        for block in range(first, last + 1):
            lowest = least_of_16(words.ranks, below + block * _BRANCHES) >> _BRANCH_BITS
            put_u32(words.ranks, start + block, lowest)


@kernel
def _merge(words, text, size, n):
    """Write the pieces of text[:size] to ids[n:]; return where they end.

    A piece is at the place of its first byte: its id is ids[n + place], the rank of the merge that joins it to the
    piece after it ranks[place]. links[2 * place] is the place of the piece before it (-1: none),
    links[2 * place + 1] that of the piece after it (size: none). The tree over the ranks (tournament tree, Knuth,
    The Art of Computer Programming 3, 5.4.1) finds the next merge; each takes time in proportion to its levels.
    """
    for k in range(size):
        byte = load_u8(text, k)
        put_i32(words.ids, n + k, get_i32(words.byte_ids, byte))
        put_u32(words.ranks, k, get_u32(words.byte_ranks, byte << 8 | load_u8(text, k + 1)))
        put_i32(words.links, 2 * k, k - 1)
        put_i32(words.links, 2 * k + 1, k + 1)
    put_u32(words.ranks, size - 1, NO_RANK)
    levels = _plant(words, size)
    while True:
        rank, at = _lowest(words, levels)
        if rank == NO_RANK:
            break
        joined = get_i32(words.results, rank)
        put_i32(words.ids, n + at, joined)
        right = get_i32(words.links, 2 * at + 1)
        behind = get_i32(words.links, 2 * right + 1)
        before = get_i32(words.links, 2 * at)
        put_i32(words.links, 2 * at + 1, behind)
        put_u32(words.ranks, right, NO_RANK)
        rank = np.int64(NO_RANK)
        if behind < size:
            put_i32(words.links, 2 * behind, at)
            rank = _rank_of(words.pairs, words.pair_mask, joined, get_i32(words.ids, n + behind))
        put_u32(words.ranks, at, rank)
        first = at
        if before >= 0:
            rank = _rank_of(words.pairs, words.pair_mask, get_i32(words.ids, n + before), joined)
            put_u32(words.ranks, before, rank)
            first = before
        _mend(words, levels, first, right)
    end = n
    k = np.int64(0)
    while k < size:
        put_i32(words.ids, end, get_i32(words.ids, n + k))
        end += 1
        k = get_i32(words.links, 2 * k + 1)
    return end


@kernel
def _word_key(text, size):
    """Return a pre-token of up to 24 bytes as three numbers."""
    low = load_u64(text, 0)
    if size <= 8:
        return low & _ONES >> np.uint64(64 - 8 * size), _ZERO, _ZERO
    middle = load_u64(text, 8)
    if size <= 16:
        return low, middle & _ONES >> np.uint64(128 - 8 * size), _ZERO
    return low, middle, load_u64(text, 16) & _ONES >> np.uint64(192 - 8 * size)


@kernel
def _new_word(words, text, size, n):
    """Write the pieces of a pre-token that is not in the cache to ids[n:]; return where they end."""
    end = _merge(words, text, size, n)
    store_u8(words.continues, n, 0)
    for k in range(n + 1, end):
        store_u8(words.continues, k, 1)
    return end


@kernel
@wraps_around
def _write_word(words, text, size, n):
    """Write the pieces of the pre-token text[:size] to ids[n:]; return where they end."""
    # A zero at the end would look like the padding.
    if size > _MOST_CACHED_BYTES or load_u8(text, size - 1) == 0:
        return _new_word(words, text, size, n)
    low, middle, high = _word_key(text, size)
    mixed = (low ^ middle * MIX_2 ^ high * _MIX_3) * MIX_1
    entry = words.cache + np.int64(mixed >> _WORD_SHIFT) * (8 * CACHED_WORD)
    if get_u64(entry, 0) == low and get_u64(entry, 1) == middle and get_u64(entry, 2) == high:
        copy_32(words.ids, 4 * n, entry, 24)
        store_u64(words.continues, n, _GOES_ON)
        return n + get_i64(entry, _COUNT)
    end = _new_word(words, text, size, n)
    if end - n <= _MOST_CACHED_PIECES:
        put_u64(entry, 0, low)
        put_u64(entry, 1, middle)
        put_u64(entry, 2, high)
        copy_32(entry, 24, words.ids, 4 * n)
        put_i64(entry, _COUNT, end - n)
    return end


@kernel
def _end_document(lines, state):
    """End the document that a blank line ends."""
    open_segments = get_i64(state, OPEN_SEGMENTS)
    if open_segments > 0:
        documents = get_i64(state, DOCUMENTS)
        put_i64(lines, documents, get_i64(state, SEGMENTS))
        put_i64(state, DOCUMENTS, documents + 1)
        put_i64(state, OPEN_SEGMENTS, 0)


@kernel
def tokenize_lines(text_array, start, size, arrays, lines):
    """Tokenize the lines of text[start:size] with BytePairArrays; fill TokenizedLines from what `state` has on.

    Stops at a line that is not UTF-8, and at one with a pre-token that needs more memory; `state` tells.
    """
    text = address(text_array)
    classes, joints = address(arrays.classes), address(arrays.joints)
    words = _Words(
        address(arrays.pairs),
        np.int64(len(arrays.pairs) - 1),
        address(arrays.byte_ids),
        address(arrays.byte_ranks),
        address(arrays.results),
        address(arrays.words),
        address(arrays.links),
        address(arrays.ranks),
        address(arrays.levels),
        address(lines.ids),
        address(lines.continues),
    )
    state = address(lines.state)
    room = np.int64(len(arrays.links) // 2)
    n = get_i64(state, IDS)
    read = np.int64(0)
    put_i64(state, BAD_BYTE, -1)
    put_i64(state, NEEDED, 0)
    line = np.int64(start)
    while line < size:
        blank, at = is_blank_line(classes, text, line)
        if blank:
            put_i64(state, LINES, get_i64(state, LINES) + 1)
            _end_document(address(lines.document_ends), state)
            put_i64(state, BEFORE, line_joints.NO_LINE)
            line = at + 1
            continue
        at = line
        if begins_with_space(joints, text, line, get_i64(state, BEFORE), arrays.prefix_space):
            at -= 1
            store_u8(text, at, SPACE)
        count = np.int64(0)
        while load_u8(text, at) != NEWLINE:
            end = pre_token_end(classes, text, at)
            if end < 0 or end - at > room:
                put_i64(state, BAD_BYTE, -1 - end if end < 0 else -1)
                put_i64(state, NEEDED, end - at if end >= 0 else 0)
                put_i64(state, READ, line)
                put_i64(state, WORDS, get_i64(state, WORDS) + read)
                return
            n = _write_word(words, text + at, end - at, n)
            at = end
            count += 1
        read += count
        segments = get_i64(state, SEGMENTS)
        lines.segment_ends[segments] = n
        lines.segment_lines[segments] = get_i64(state, LINES)
        put_i64(state, LINES, get_i64(state, LINES) + 1)
        put_i64(state, IDS, n)
        put_i64(state, SEGMENTS, segments + 1)
        put_i64(state, OPEN_SEGMENTS, get_i64(state, OPEN_SEGMENTS) + 1)
        if arrays.joins_lines:
            put_i64(state, BEFORE, line_end_kind(joints, text, line, at))
        line = at + 1
    put_i64(state, WORDS, get_i64(state, WORDS) + read)


@kernel
def find_added_token(text_array, start, size, first_nodes, pairs_array):
    """Return where the first added token in text[start:size] starts, or -1.

    Args:
      first_nodes: uint32[256], the node of the trie after each byte that a token starts with, TOKEN where a token is
        that byte, and NO_RANK.
      pairs_array: the trie after it, see the module's head.
    """
    text = address(text_array)
    nodes = address(first_nodes)
    pairs = address(pairs_array)
    mask = np.int64(len(pairs_array) - 1)
    for i in range(start, size):
        node = get_u32(nodes, load_u8(text, i))
        if node == TOKEN:
            return i
        at = i + 1
        while node != NO_RANK and at < size:
            node = _rank_of(pairs, mask, node, load_u8(text, at))
            if node == TOKEN:
                return i
            at += 1
    return np.int64(-1)


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    pairs = np.zeros(4, np.uint64)
    numbers = np.zeros(1, np.int64)
    put_pairs(pairs, numbers, numbers, numbers)
    byte_ids = np.zeros(256, np.int32)
    byte_ranks = np.empty(1 << 16, np.uint32)
    put_byte_ranks(pairs, byte_ids, byte_ranks)
    text = np.full(3 + PADDING, NEWLINE, np.uint8)
    text[1] = 97
    arrays = BytePairArrays(
        classes=load(),
        joints=line_joints.load(),
        pairs=pairs,
        byte_ids=byte_ids,
        byte_ranks=byte_ranks,
        results=np.zeros(1, np.int32),
        words=np.zeros(CACHED_WORD << WORD_BITS, np.uint64),
        links=np.empty(2, np.int32),
        ranks=np.empty(rank_room(1), np.uint32),
        levels=np.empty(LEVELS, np.int64),
        prefix_space=False,
        joins_lines=True,
    )
    ends = np.empty(3, np.int64)
    ids = np.empty(2 + SPARE_IDS, np.int32)
    lines = TokenizedLines(ids, np.empty(2 + SPARE_IDS, np.uint8), ends, ends, ends, np.zeros(STATE, np.int64))
    tokenize_lines(text, 1, 3, arrays, lines)
    find_added_token(text, 1, 3, np.full(256, NO_RANK, np.uint32), pairs)
