"""Byte-level BPE of UTF-8 text: pre-tokens become pieces, by merges of neighbours in the order of their ranks.

Exact to `tokenizers`: its BPE model over its ByteLevel pre-tokenizer, see pre_tokens.py. In a pre-token, of all pairs
of neighbours that a merge joins, the one with the lowest rank is joined first, the leftmost of equal ones.

Arrays
  text        uint8: whole lines, each ended by a newline; PADDING bytes more, all newlines, behind them. With
              `prefix_space` there is a byte before the first line, too. The newline before a line may become a space.
  pairs       uint64[2**k]: a hash table, open-addressed, of two words an entry: left << 32 | right, plus 1 (0 is
              empty), and value << 32 | result. With merges, left and right are the ids of two pieces, value is the rank
              and result the id of what they become. With added tokens it is a trie: left is a node, right a byte,
              result the next node, value 1 if a token ends there.
  byte_ids    int32[256]: the piece of each byte.
  byte_pairs  uint64[65536]: what `pairs` has for the pieces of two bytes, at first << 8 | second; _NO_PAIR for none.
  words       uint64[CACHED_WORD << WORD_BITS]: a direct-mapped cache of pre-tokens of up to 24 bytes that have up to
              eight pieces. An entry is the pre-token (three words, zero-padded), eight ids of 32 bits, their number.
  links       int32[2 * m], heap: uint64[2 * m]: memory for long pre-tokens, of up to m bytes.
  ids         int32: the pieces of all words of all lines, one after the other.
  continues   uint8: for each piece, whether it goes on a pre-token.
  segment_ends, document_ends
              int64: where each segment (line with pieces) ends in `ids`; where each document ends in `segment_ends`.
  state       int64[STATE], see the names below.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from transforms.kernels import kernel
from transforms.kernels.ascii import NEWLINE, SPACE
from transforms.kernels.memory import (
    address,
    copy_32,
    get_i32,
    get_i64,
    get_u64,
    load_u8,
    load_u64,
    put_i32,
    put_i64,
    put_u64,
    store_u8,
    store_u64,
)
from transforms.tokenization.kernels.pre_tokens import is_blank_line, pre_token_end
from transforms.tokenization.pre_token_classes import load
from transforms.tokenization.text_blocks import PADDING

WORD_BITS = 16
CACHED_WORD = 8  # 64-bit words of an entry of `words`: one line of the processor's cache
MAX_ID = 1 << 31  # ids are smaller, and so are ranks
SPARE_IDS = 8  # room that `ids` and `continues` have beyond the text's size: a word's pieces are written together
SHORT = 48  # bytes of a pre-token that needs no heap

# Places in `state`.
IDS = 0  # pieces
SEGMENTS = 1
DOCUMENTS = 2  # documents that ended
OPEN_SEGMENTS = 3  # segments of the document that is still open
WORDS = 4  # pre-tokens
BAD_BYTE = 5  # where the text stops being UTF-8, or -1
NEEDED = 6  # bytes of a pre-token that is too long for `links` and `heap`, or 0
READ = 7  # where the line starts that was not read, for one of these reasons
STATE = 8

_NO_PAIR = np.uint64(0xFFFFFFFFFFFFFFFF)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_HALF = np.uint64(32)
_LOW32 = np.uint64(0xFFFFFFFF)
_GOES_ON = np.uint64(0x0101010101010100)  # `continues` of the pieces of one word
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_MIX_3 = np.uint64(0x165667B19E3779F9)
_WORD_SHIFT = np.uint64(64 - WORD_BITS)
_PAIR_SHIFT = np.uint64(20)
_MOST_CACHED_BYTES = 24
_MOST_CACHED_PIECES = 8
_COUNT = 7  # the word of an entry that has the number of pieces
_REMOVED = -1  # the id of what was joined to its left neighbour


class BytePairArrays(NamedTuple):
    """What a tokenizer looks things up in, its word cache and its scratch memory; see the module's head."""

    classes: np.ndarray
    pairs: np.ndarray
    byte_ids: np.ndarray
    byte_pairs: np.ndarray
    words: np.ndarray
    links: np.ndarray
    heap: np.ndarray
    prefix_space: bool


class TokenizedLines(NamedTuple):
    """What lines become; see the module's head.

    `ids` and `continues` have room for SPARE_IDS more than the lines have bytes, the ends for one more than there are
    lines.
    """

    ids: np.ndarray
    continues: np.ndarray
    segment_ends: np.ndarray
    document_ends: np.ndarray
    state: np.ndarray


# Inner functions take addresses, see transforms/kernels/memory.py.


class _Words(NamedTuple):
    """Where the arrays lie that make pieces of a pre-token."""

    pairs: int
    pair_mask: int
    byte_ids: int
    byte_pairs: int
    cache: int
    links: int
    heap: int
    ids: int
    continues: int


@kernel
def _pair_slot(key, mask):
    """The entry where the search for a pair starts."""
    return np.int64((key * _MIX_1) >> _PAIR_SHIFT) & mask


@kernel
def put_pairs(pairs, left, right, values, results):
    """Fills `pairs` (zeros, room for twice as many entries) with left[k], right[k] -> values[k], results[k] (int64)."""
    mask = len(pairs) // 2 - 1
    for k in range(len(left)):
        key = (np.uint64(left[k]) << _HALF | np.uint64(right[k])) + _ONE
        at = _pair_slot(key, mask)
        while pairs[2 * at] != _ZERO and pairs[2 * at] != key:
            at = (at + 1) & mask
        pairs[2 * at] = key
        pairs[2 * at + 1] = np.uint64(values[k]) << _HALF | np.uint64(results[k])


@kernel
def _pair_of(pairs, mask, left, right):
    """What the table says of a pair: value << 32 | result, or _NO_PAIR."""
    key = (np.uint64(left) << _HALF | np.uint64(right)) + _ONE
    at = _pair_slot(key, mask)
    while True:
        found = get_u64(pairs, 2 * at)
        if found == key:
            return get_u64(pairs, 2 * at + 1)
        if found == _ZERO:
            return _NO_PAIR
        at = (at + 1) & mask


@kernel
def put_byte_pairs(pairs_array, byte_ids, byte_pairs):
    """Fills `byte_pairs` from `pairs` and `byte_ids`."""
    pairs = address(pairs_array)
    mask = np.int64(len(pairs_array) // 2 - 1)
    for left in range(256):
        for right in range(256):
            byte_pairs[left << 8 | right] = _pair_of(pairs, mask, byte_ids[left], byte_ids[right])


@kernel
def _merge_short(words, text, size, n):
    """Writes the pieces of text[:size], which is SHORT at most, to ids[n:]; returns where they end.

    heap[k] is what becomes of the pieces k and k + 1 of those that are left.
    """
    for k in range(size):
        byte = load_u8(text, k)
        put_i32(words.ids, n + k, get_i32(words.byte_ids, byte))
        put_u64(words.heap, k, get_u64(words.byte_pairs, byte << 8 | load_u8(text, k + 1)))
    while size > 1:
        best = np.int64(0)
        lowest = get_u64(words.heap, 0)
        for k in range(1, size - 1):
            found = get_u64(words.heap, k)
            if found < lowest:
                lowest = found
                best = np.int64(k)
        if lowest == _NO_PAIR:
            break
        joined = np.int64(lowest & _LOW32)
        put_i32(words.ids, n + best, joined)
        size -= 1
        for k in range(best + 1, size):
            put_i32(words.ids, n + k, get_i32(words.ids, n + k + 1))
            put_u64(words.heap, k - 1, get_u64(words.heap, k))
        if best > 0:
            found = _pair_of(words.pairs, words.pair_mask, get_i32(words.ids, n + best - 1), joined)
            put_u64(words.heap, best - 1, found)
        if best < size - 1:
            found = _pair_of(words.pairs, words.pair_mask, joined, get_i32(words.ids, n + best + 1))
            put_u64(words.heap, best, found)
    return n + size


@kernel
def _sink(heap, count, k, item):
    """Puts `item` in the place k of a heap of `count`, or below; the lowest is on top."""
    while True:
        child = 2 * k + 1
        if child >= count:
            break
        if child + 1 < count and get_u64(heap, child + 1) < get_u64(heap, child):
            child += 1
        if get_u64(heap, child) >= item:
            break
        put_u64(heap, k, get_u64(heap, child))
        k = child
    put_u64(heap, k, item)


@kernel
def _push(heap, count, item):
    """Adds an item to a heap of `count`."""
    k = count
    while k > 0:
        parent = (k - 1) >> 1
        if get_u64(heap, parent) <= item:
            break
        put_u64(heap, k, get_u64(heap, parent))
        k = parent
    put_u64(heap, k, item)


@kernel
def _push_pair(words, count, n, at, right):
    """Adds the pair of the pieces at `at` and `right` to the heap, if a merge joins it; returns the heap's size."""
    found = _pair_of(words.pairs, words.pair_mask, get_i32(words.ids, n + at), get_i32(words.ids, n + right))
    if found == _NO_PAIR:
        return count
    _push(words.heap, count, found >> _HALF << _HALF | np.uint64(at))
    return count + 1


@kernel
def _merge_long(words, text, size, n):
    """Writes the pieces of text[:size] to ids[n:]; returns where they end. Takes size * log(size) steps.

    A piece is at the place of its first byte. links[2 * place] is the place of the piece before it (-1: none),
    links[2 * place + 1] that of the piece behind it (size: none). An item of the heap is rank << 32 | place of the left
    piece of a pair; it is out of date if the pair there has another rank by now.
    """
    for k in range(size):
        put_i32(words.ids, n + k, get_i32(words.byte_ids, load_u8(text, k)))
        put_i32(words.links, 2 * k, k - 1)
        put_i32(words.links, 2 * k + 1, k + 1)
    count = np.int64(0)
    for k in range(size - 1):
        found = get_u64(words.byte_pairs, load_u8(text, k) << 8 | load_u8(text, k + 1))
        if found != _NO_PAIR:
            put_u64(words.heap, count, found >> _HALF << _HALF | np.uint64(k))
            count += 1
    for k in range((count >> 1) - 1, -1, -1):
        _sink(words.heap, count, k, get_u64(words.heap, k))
    while count > 0:
        top = get_u64(words.heap, 0)
        count -= 1
        if count > 0:
            _sink(words.heap, count, 0, get_u64(words.heap, count))
        at = np.int64(top & _LOW32)
        left = get_i32(words.ids, n + at)
        right = get_i32(words.links, 2 * at + 1)
        if left == _REMOVED or right == size:
            continue
        found = _pair_of(words.pairs, words.pair_mask, left, get_i32(words.ids, n + right))
        if found == _NO_PAIR or found >> _HALF != top >> _HALF:
            continue
        behind = get_i32(words.links, 2 * right + 1)
        put_i32(words.ids, n + at, np.int64(found & _LOW32))
        put_i32(words.ids, n + right, _REMOVED)
        put_i32(words.links, 2 * at + 1, behind)
        before = get_i32(words.links, 2 * at)
        if before >= 0:
            count = _push_pair(words, count, n, before, at)
        if behind < size:
            put_i32(words.links, 2 * behind, at)
            count = _push_pair(words, count, n, at, behind)
    end = n
    for k in range(size):
        piece = get_i32(words.ids, n + k)
        if piece != _REMOVED:
            put_i32(words.ids, end, piece)
            end += 1
    return end


@kernel
def _word_key(text, size):
    """A pre-token of up to 24 bytes as three numbers."""
    low = load_u64(text, 0)
    if size <= 8:
        return low & _ONES >> np.uint64(64 - 8 * size), _ZERO, _ZERO
    middle = load_u64(text, 8)
    if size <= 16:
        return low, middle & _ONES >> np.uint64(128 - 8 * size), _ZERO
    return low, middle, load_u64(text, 16) & _ONES >> np.uint64(192 - 8 * size)


@kernel
def _new_word(words, text, size, n):
    """Writes the pieces of a pre-token that is not in the cache to ids[n:]; returns where they end."""
    end = _merge_short(words, text, size, n) if size <= SHORT else _merge_long(words, text, size, n)
    store_u8(words.continues, n, 0)
    for k in range(n + 1, end):
        store_u8(words.continues, k, 1)
    return end


@kernel
def _write_word(words, text, size, n):
    """Writes the pieces of the pre-token text[:size] to ids[n:]; returns where they end."""
    # A zero at the end could not be told from the padding.
    if size > _MOST_CACHED_BYTES or load_u8(text, size - 1) == 0:
        return _new_word(words, text, size, n)
    low, middle, high = _word_key(text, size)
    mixed = (low ^ middle * _MIX_2 ^ high * _MIX_3) * _MIX_1
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
    """Ends the document that a blank line ends."""
    open_segments = get_i64(state, OPEN_SEGMENTS)
    if open_segments > 0:
        documents = get_i64(state, DOCUMENTS)
        put_i64(lines, documents, get_i64(state, SEGMENTS))
        put_i64(state, DOCUMENTS, documents + 1)
        put_i64(state, OPEN_SEGMENTS, 0)


@kernel
def tokenize_lines(text_array, start, size, arrays, lines):
    """Tokenizes the lines of text[start:size] with BytePairArrays; fills TokenizedLines from what `state` has on.

    Stops at a line that is not UTF-8, and at one with a pre-token that needs more memory; `state` tells.
    """
    text = address(text_array)
    classes = address(arrays.classes)
    words = _Words(
        address(arrays.pairs),
        np.int64(len(arrays.pairs) // 2 - 1),
        address(arrays.byte_ids),
        address(arrays.byte_pairs),
        address(arrays.words),
        address(arrays.links),
        address(arrays.heap),
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
            _end_document(address(lines.document_ends), state)
            line = at + 1
            continue
        at = line
        if arrays.prefix_space and load_u8(text, line) != SPACE:
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
        put_i64(state, IDS, n)
        put_i64(state, SEGMENTS, segments + 1)
        put_i64(state, OPEN_SEGMENTS, get_i64(state, OPEN_SEGMENTS) + 1)
        line = at + 1
    put_i64(state, WORDS, get_i64(state, WORDS) + read)


@kernel
def find_added_token(text_array, start, size, first_nodes, pairs_array):
    """Where the first added token in text[start:size] starts, or -1.

    Args:
      first_nodes: int32[256], the node of the trie behind each byte that a token starts with, or 0; -1 where a token
        is that byte.
      pairs_array: the trie behind it, see the module's head.
    """
    text = address(text_array)
    nodes = address(first_nodes)
    pairs = address(pairs_array)
    mask = np.int64(len(pairs_array) // 2 - 1)
    for i in range(start, size):
        node = get_i32(nodes, load_u8(text, i))
        if node == 0:
            continue
        at = i + 1
        while node > 0 and at < size:
            found = _pair_of(pairs, mask, node, load_u8(text, at))
            if found == _NO_PAIR:
                break
            node = np.int64(-1) if found >> _HALF != _ZERO else np.int64(found & _LOW32)
            at += 1
        if node < 0:
            return i
    return np.int64(-1)


def warm_up() -> None:
    """Compiles the entry kernels of this module."""
    pairs = np.zeros(4, np.uint64)
    numbers = np.zeros(1, np.int64)
    put_pairs(pairs, numbers, numbers, numbers, numbers)
    byte_ids = np.zeros(256, np.int32)
    byte_pairs = np.empty(1 << 16, np.uint64)
    put_byte_pairs(pairs, byte_ids, byte_pairs)
    text = np.full(2 + PADDING, NEWLINE, np.uint8)
    text[0] = 97
    arrays = BytePairArrays(
        classes=load(),
        pairs=pairs,
        byte_ids=byte_ids,
        byte_pairs=byte_pairs,
        words=np.zeros(CACHED_WORD << WORD_BITS, np.uint64),
        links=np.empty(2 * SHORT, np.int32),
        heap=np.empty(2 * SHORT, np.uint64),
        prefix_space=False,
    )
    ends = np.empty(3, np.int64)
    ids = np.empty(2 + SPARE_IDS, np.int32)
    lines = TokenizedLines(ids, np.empty(2 + SPARE_IDS, np.uint8), ends, ends, np.zeros(STATE, np.int64))
    tokenize_lines(text, 0, 2, arrays, lines)
    find_added_token(text, 0, 2, byte_ids, pairs)
