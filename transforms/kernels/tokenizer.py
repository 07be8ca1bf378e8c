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
              to 16 bytes (two words, zero-padded), then its pieces, four of 32 bits, their number in the top 3 bits.
  ids         int32: the pieces of all words of all lines, one after the other.
  segment_ends, document_ends
              int64: where each segment (line with pieces) ends in `ids`; where each document ends in `segment_ends`.
  state       int64[STATE]: the counts that go on from one block to the next, see the names below.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from transforms.kernels import kernel
from transforms.kernels.memory import load_u8, load_u64, store_u64, trailing_zeros
from transforms.unicode_tables import (
    ACCENT,
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
    WHITE,
)

PADDING = 32
WORD_BITS = 15
MAX_WORD = 200  # code points; a longer word is unknown
MAX_ID = 1 << 29

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
_COUNT_SHIFT = np.uint64(61)
_PIECES = np.uint64((1 << 61) - 1)
_HALF = np.uint64(32)


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
            node = np.int64(slots[at] & np.uint64(0xFFFFFFFF))
        node_ids[node] = piece_ids[k]
    return nodes


@kernel
def _step(slots, node, byte):
    """The node behind `byte` from `node`, or -1."""
    mask = len(slots) - 1
    key = node * 256 + byte + 1
    at = (key * 0x9E3779B1 >> 7) & mask
    while True:
        slot = slots[at]
        if np.int64(slot >> _HALF) == key:
            return np.int64(slot & np.uint64(0xFFFFFFFF))
        if slot == 0:
            return np.int64(-1)
        at = (at + 1) & mask


@kernel
def _split_word(word, size, slots, node_ids, unknown_id, ids, n):
    """Writes the pieces of word[:size] to ids[n:], longest match first; returns where they end, negated if unknown."""
    first = n
    start = 0
    while start < size:
        node = np.int64(0 if start == 0 else 1)
        best = -1
        best_end = start
        for i in range(start, size):
            node = _step(slots, node, load_u8(word, i))
            if node < 0:
                break
            if node_ids[node] >= 0:
                best = node_ids[node]
                best_end = i + 1
        if best < 0:
            ids[first] = unknown_id
            return -(first + 1)
        ids[n] = best
        n += 1
        start = best_end
    return n


@kernel
def _word(low, high, word, slots, node_ids, unknown_id, words, ids, n, state):
    """Writes the pieces of a word of up to 16 bytes, given as two zero-padded words; returns where they end."""
    at = np.int64(((low ^ (high * _MIX_2)) * _MIX_1) >> _WORD_SHIFT) * 4
    if words[at] == low and words[at + 1] == high:
        pieces = words[at + 3]
        ids[n] = np.int32(words[at + 2] & np.uint64(0xFFFFFFFF))
        count = np.int64(pieces >> _COUNT_SHIFT)
        if count > 1:
            ids[n + 1] = np.int32(words[at + 2] >> _HALF)
            ids[n + 2] = np.int32(pieces & np.uint64(0xFFFFFFFF))
            ids[n + 3] = np.int32((pieces & _PIECES) >> _HALF)
        elif count == 0:  # an unknown word
            state[UNKNOWN] += 1
            count = np.int64(1)
        return n + count
    store_u64(word, 0, low)
    store_u64(word, 8, high)
    size = (71 - _leading_bits(high)) >> 3
    size = 8 + size if high != 0 else (71 - _leading_bits(low)) >> 3
    end = _split_word(word, size, slots, node_ids, unknown_id, ids, n)
    count = end - n
    if end < 0:
        state[UNKNOWN] += 1
        end = -end
        count = np.int64(0)
    if count <= 4:
        words[at] = low
        words[at + 1] = high
        second = np.uint64(ids[n + 1]) << _HALF if count > 1 else _ZERO
        third = np.uint64(ids[n + 2]) if count > 2 else _ZERO
        fourth = np.uint64(ids[n + 3]) << _HALF if count > 3 else _ZERO
        words[at + 2] = np.uint64(ids[n]) | second
        words[at + 3] = third | fourth | np.uint64(count) << _COUNT_SHIFT
    return end


@kernel
def _leading_bits(word):
    """64 less the number of the highest one bit, counted from 1."""
    count = 0
    while word != 0:
        word >>= np.uint64(1)
        count += 1
    return 64 - count


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
    return np.int64(blocks[np.int64(pages[point >> 7]) * 128 + (point & 127)])


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
def _insert_mark(word, size, combining, mark_bytes, source, start, run, runs):
    """Puts a mark into word[:size] in canonical order among the `run` marks at its end.

    run[k] of `runs` (int64[2, MAX_WORD + 4]) has the combining class and the bytes of the k-th of them.
    """
    k = run
    at = size
    while k > 0 and runs[0, k - 1] > combining:
        k -= 1
        at -= runs[1, k]
    for j in range(size - 1, at - 1, -1):
        word[j + mark_bytes] = word[j]
    for j in range(run - 1, k - 1, -1):
        runs[0, j + 1] = runs[0, j]
        runs[1, j + 1] = runs[1, j]
    for j in range(mark_bytes):
        word[at + j] = source[start + j]
    runs[0, k] = combining
    runs[1, k] = mark_bytes


@kernel
def _flush(word, size, points, slots, node_ids, unknown_id, words, ids, n, state):
    """Writes the pieces of a normalised word; returns where they end."""
    if points > MAX_WORD:
        ids[n] = unknown_id
        state[UNKNOWN] += 1
        return n + 1
    if size <= 16:
        low = load_u64(word, 0)
        high = load_u64(word, 8)
        if size < 8:
            low &= (np.uint64(1) << np.uint64(size * 8)) - np.uint64(1)
            high = _ZERO
        elif size < 16:
            high &= (np.uint64(1) << np.uint64((size - 8) * 8)) - np.uint64(1)
        return _word(low, high, word, slots, node_ids, unknown_id, words, ids, n, state)
    end = _split_word(word, size, slots, node_ids, unknown_id, ids, n)
    if end < 0:
        state[UNKNOWN] += 1
        end = -end
    return end


@kernel
def _careful_word(text, i, pages, blocks, pool, slots, node_ids, unknown_id, words, word, runs, ids, n, state):
    """Reads one word, or one character that stands alone, whatever it is made of.

    Returns where it goes on in `text`, where the pieces end, and whether the line is not blank. Stops before a
    newline; where the text is not UTF-8, state[BAD_BYTE] says so.
    """
    size = 0  # bytes in `word`
    points = 0  # code points in it; beyond MAX_WORD they are only counted
    run = 0  # marks at its end that canonical ordering may still move
    seen = False
    while True:
        decoded = _decode(text, i)
        if decoded < 0:
            state[BAD_BYTE] = i
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
                for j in range(length):
                    word[size + j] = text[i + j]
                size += length
            points += 1
            run = 0
        elif kind == MAP:
            if points < MAX_WORD:
                start = entry >> POOL_SHIFT
                count = entry >> BYTES_SHIFT & 15
                for j in range(count):
                    word[size + j] = pool[start + j]
                size += count
            points += entry >> COUNT_SHIFT & 3
            run = 0
        elif kind == SIGMA:
            if points < MAX_WORD:
                word[size] = 0xCF
                word[size + 1] = 0x82 if _sigma_is_final(text, i, pages, blocks) else 0x83
                size += 2
            points += 1
            run = 0
        elif kind in (SPACE, PUNCTUATION, IDEOGRAPH):
            if points > 0:
                n = _flush(word, size, points, slots, node_ids, unknown_id, words, ids, n, state)
                points = 0
            if kind != SPACE:
                start = entry >> POOL_SHIFT
                size = entry >> BYTES_SHIFT & 15
                if size == 0:
                    size = length
                    for j in range(length):
                        word[j] = text[i + j]
                else:
                    for j in range(size):
                        word[j] = pool[start + j]
                n = _flush(word, size, 1, slots, node_ids, unknown_id, words, ids, n, state)
            i += length
            break
        elif kind == STARTER:
            run = 0
        elif kind == COMPLEX:
            start = entry >> POOL_SHIFT
            for _ in range(entry >> COUNT_SHIFT & 3):
                combining = np.int64(pool[start])
                count = np.int64(pool[start + 1])
                if combining == 0:
                    run = 0
                if count > 0:
                    if points < MAX_WORD:
                        if combining == 0:
                            for j in range(count):
                                word[size + j] = pool[start + 2 + j]
                        else:
                            _insert_mark(word, size, combining, count, pool, start + 2, run, runs)
                            run += 1
                        size += count
                    points += 1
                start += COMPLEX_BYTES
        elif kind != ACCENT and kind != DELETE:
            raise ValueError("an entry of the code point table has no known kind")
        i += length
    if points > 0:
        n = _flush(word, size, points, slots, node_ids, unknown_id, words, ids, n, state)
    return i, n, seen


@kernel
def tokenize_block(
    text, size, do_lower_case, pages, blocks, pool, slots, node_ids, ascii_ids, unknown_id, words,
    ids, segment_ends, document_ends, state,
):  # fmt: skip
    """Tokenizes the lines of text[:size]. `ids` has room for size + 8, the others for one more than its lines.

    Segments and documents are counted from the start of the block; a document that started in an earlier block ends
    at a segment counted in this one. Stops at the first byte that is not UTF-8 and leaves its place in `state`.
    """
    word = np.empty(MAX_WORD * 4 + 64, np.uint8)
    runs = np.empty((2, MAX_WORD + 8), np.int64)
    n = 0
    segments = 0
    documents = 0
    open_segments = state[OPEN_SEGMENTS]
    line_start = 0  # in `ids`
    seen = False  # whether the line has anything that is not white space; a line with pieces has
    state[BAD_BYTE] = -1
    fold = _ONES if do_lower_case else _ZERO
    i = 0
    while i < size:
        # The next eight bytes at once: which are letters or digits of ASCII.
        low = load_u64(text, i)
        plain = low & _LOW7
        lower = plain | _CASE_BIT
        letter = (lower + _FROM_A) & ~(lower + _PAST_Z)
        digit = (plain + _FROM_0) & ~(plain + _PAST_9)
        inside = (letter | digit) & ~low & _HIGH
        low |= ((letter & _HIGH) >> np.uint64(2)) & fold & (inside >> np.uint64(2))
        length = trailing_zeros(inside ^ _HIGH) >> 3
        if length == 0:
            byte = load_u8(text, i)
            if byte == 32:
                i += 1
            elif byte == _NEWLINE:
                i += 1
                if n > line_start:
                    segment_ends[segments] = n
                    segments += 1
                    open_segments += 1
                    line_start = n
                elif not seen and open_segments > 0:
                    document_ends[documents] = segments
                    documents += 1
                    open_segments = 0
                seen = False
            elif byte > 32 and byte < 127:
                ids[n] = ascii_ids[byte]
                n += 1
                state[UNKNOWN] += ascii_ids[byte] == unknown_id
                i += 1
            else:
                i, n, more = _careful_word(
                    text, i, pages, blocks, pool, slots, node_ids, unknown_id, words, word, runs, ids, n, state
                )
                seen |= more
                if state[BAD_BYTE] >= 0:
                    break
            continue
        high = _ZERO
        if length < 8:
            low &= (np.uint64(1) << np.uint64(length * 8)) - np.uint64(1)
        else:
            high = load_u64(text, i + 8)
            plain = high & _LOW7
            lower = plain | _CASE_BIT
            letter = (lower + _FROM_A) & ~(lower + _PAST_Z)
            digit = (plain + _FROM_0) & ~(plain + _PAST_9)
            inside = (letter | digit) & ~high & _HIGH
            high |= ((letter & _HIGH) >> np.uint64(2)) & fold & (inside >> np.uint64(2))
            more_length = trailing_zeros(inside ^ _HIGH) >> 3
            length += more_length
            if more_length < 8:
                high &= (np.uint64(1) << np.uint64(more_length * 8)) - np.uint64(1)
        byte = load_u8(text, i + length)
        if length < 16 and (byte == 32 or byte == _NEWLINE or (byte > 32 and byte < 127)):
            n = _word(low, high, word, slots, node_ids, unknown_id, words, ids, n, state)
            i += length
        else:
            # A long word, or one that something other than ASCII belongs to or may end.
            i, n, more = _careful_word(
                text, i, pages, blocks, pool, slots, node_ids, unknown_id, words, word, runs, ids, n, state
            )
            seen |= more
            if state[BAD_BYTE] >= 0:
                break
    state[IDS] = n
    state[SEGMENTS] = segments
    state[DOCUMENTS] = documents
    state[OPEN_SEGMENTS] = open_segments
