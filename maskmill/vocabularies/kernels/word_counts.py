"""Counting of words in a hash table, and the records that counts are written as.

Arrays of a table (`WordTable`)
  slots       uint64[2**k]: where the words are, open-addressed. A slot is the upper half of the word's hash, then its
              number + 1 in 32 bits; 0 is empty.
  text        uint8: the words, one after the other; PADDING bytes more, so that eight can be read at once.
  ends        int64[words + 1]: word k is text[ends[k]:ends[k + 1]].
  counts      int64[words]: how often each occurs.

Records: for each word a varint with its size in bytes, a varint with its count, and its bytes. They are ordered by the
word's bucket, which is the highest byte of its hash, and by its bytes within a bucket.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from maskmill.kernels import ascii, kernel
from maskmill.kernels.memory import address, get_i64, get_u64, load_u8, load_u64, put_i64, put_u64, store_u8, store_u64
from maskmill.tokenization import line_joints, pre_token_classes
from maskmill.tokenization.kernels.pre_tokens import begins_with_space, is_blank_line, line_end_kind, pre_token_end
from maskmill.tokenization.kernels.word_hashes import CodePointArrays, hash_bytes, last_bits
from maskmill.tokenization.kernels.wordpiece import SCRATCH, CodePointTable, ascii_word, read_own_word, read_word
from maskmill.tokenization.text_blocks import PADDING
from maskmill.tokenization.unicode_tables import VERSIONS, load

BUCKETS = 256
MAX_CHARACTERS = 100  # of a word of WordPiece; BertTokenizer of transformers makes [UNK] of a longer one
MAX_BYTES = 1 << 20  # of a pre-token; it must fit into a table
SPARE_BYTES = 4 * MAX_CHARACTERS + 16  # what a table's text must have left to take in two words more: see `count_words`
SPARE_WORDS = 2
MAX_RECORD = 5 + 9  # bytes of a record beside those of the word

# Places in `state`.
WORDS = 0  # distinct words in the table
AT = 1  # where the input goes on that did not fit into the table
BAD_BYTE = 2  # where the text stops being UTF-8, or -1
READ = 3  # words read, from all blocks
LONG = 4  # words left out because they are too long, from all blocks
LINE = 5  # of `count_pre_tokens`: one more than the start of the line that was begun, or 0
BEFORE = 6  # how the line before it ends, see tokenization/line_joints.py
STATE = 7

_ZERO = np.uint64(0)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_CASE_BIT = np.uint64(0x2020202020202020)
_HALF = np.uint64(32)
_LOW32 = np.uint64(0xFFFFFFFF)
_BUCKET_SHIFT = np.uint64(56)
_PART_MASK = np.uint64(0xFFFFFF)
_ASCII_WORD = 16  # `ascii_word` reads no further


class WordTable(NamedTuple):
    """A hash table of words; see the module's head."""

    slots: np.ndarray
    text: np.ndarray
    ends: np.ndarray
    counts: np.ndarray


class _Places(NamedTuple):
    """The addresses of the arrays of a table, and `state`."""

    slots: int
    slot_mask: int
    text: int
    ends: int
    counts: int
    state: int
    most_words: int
    most_bytes: int


@kernel
def _places(table, state):
    """Return the addresses of a table's arrays."""
    return _Places(
        address(table.slots),
        np.int64(len(table.slots) - 1),
        address(table.text),
        address(table.ends),
        address(table.counts),
        address(state),
        np.int64(len(table.counts) - SPARE_WORDS),
        np.int64(len(table.text) - PADDING),
    )


@kernel
def _has_room(table, size):
    """Return whether the table can take in SPARE_WORDS words more, of `size` bytes together."""
    words = get_i64(table.state, WORDS)
    return words <= table.most_words and get_i64(table.ends, words) + size <= table.most_bytes


@kernel
def _same(first, second, size):
    """Return whether first[:size] and second[:size] are the same bytes; seven bytes after them must be readable."""
    k = np.int64(0)
    while k + 8 <= size:
        if load_u64(first, k) != load_u64(second, k):
            return False
        k += 8
    return k == size or (load_u64(first, k) ^ load_u64(second, k)) << last_bits(size - k) == _ZERO


@kernel
def _copy(target, source, size):
    """Copy source[:size]; up to seven bytes more are read, and written after the copy, where nothing stands yet."""
    for j in range(0, size, 8):
        store_u64(target, j, load_u64(source, j))


@kernel
def _add_to(array, at, more):
    put_i64(array, at, get_i64(array, at) + more)


@kernel
def _add(table, source, size, hashed, count):
    """Add `count` to that of source[:size], whose hash is `hashed`. The table must have room for it."""
    tag = hashed >> _HALF
    at = np.int64(hashed & np.uint64(table.slot_mask))
    while True:
        slot = get_u64(table.slots, at)
        if slot == _ZERO:
            break
        if slot >> _HALF == tag:
            k = np.int64(slot & _LOW32) - 1
            start = get_i64(table.ends, k)
            if get_i64(table.ends, k + 1) - start == size and _same(table.text + start, source, size):
                _add_to(table.counts, k, count)
                return
        at = (at + 1) & table.slot_mask
    k = get_i64(table.state, WORDS)
    start = get_i64(table.ends, k)
    _copy(table.text + start, source, size)
    put_i64(table.ends, k + 1, start + size)
    put_i64(table.counts, k, count)
    put_i64(table.state, WORDS, k + 1)
    put_u64(table.slots, at, tag << _HALF | np.uint64(k + 1))


@kernel
def fill_slots(table, words):
    """Fill the empty `slots` of a table with its first `words` words."""
    mask = np.int64(len(table.slots) - 1)
    slots, text, ends = address(table.slots), address(table.text), address(table.ends)
    for k in range(words):
        start = get_i64(ends, k)
        hashed = hash_bytes(text + start, get_i64(ends, k + 1) - start)
        at = np.int64(hashed & np.uint64(mask))
        while get_u64(slots, at) != _ZERO:
            at = (at + 1) & mask
        put_u64(slots, at, hashed >> _HALF << _HALF | np.uint64(k + 1))


@kernel
def count_words(text_array, size, start, arrays, word_table, state):
    """Count the words of BERT's basic tokenizer in the lines of text[start:size].

    Stops where the table may lack room, at the first byte that is not UTF-8, or at the end, and says so in `state`.

    Args:
      text_array: uint8, whole lines, each ended by a newline, with PADDING newlines after them.
      size, start: which of it.
      arrays: a CodePointArrays.
      word_table, state: a WordTable, and int64[STATE].
    """
    text = address(text_array)
    points_table = CodePointTable(address(arrays.pages), address(arrays.blocks), address(arrays.pool))
    word = address(arrays.scratch)
    table = _places(word_table, state)
    fold = _CASE_BIT if arrays.do_lower_case else _ZERO
    read = np.int64(0)
    long = np.int64(0)
    i = np.int64(start)
    while i < size and _has_room(table, SPARE_BYTES):
        low, high, length = ascii_word(text, i, fold)
        byte = load_u8(text, i + length)
        is_plain = (byte >= ascii.SPACE and byte < ascii.DELETE) or byte == ascii.NEWLINE
        if length == 0 and is_plain:
            if byte > ascii.SPACE:
                _add(table, text + i, 1, hash_bytes(text + i, 1), 1)
                read += 1
            i += 1
            continue
        if is_plain and length < _ASCII_WORD:
            store_u64(word, 0, low)
            store_u64(word, 8, high)
            _add(table, word, length, hash_bytes(word, length), 1)
            read += 1
            i += length + (byte == ascii.SPACE)
            continue
        # A long word, one that something other than ASCII belongs to or may end, or a control character.
        i, decoded, entry, bytes_read, points, _ = read_word(points_table, word, text, i)
        if points > MAX_CHARACTERS:
            long += 1
        elif points > 0:
            _add(table, word, bytes_read, hash_bytes(word, bytes_read), 1)
        read += points > 0
        if entry == 0:
            if decoded < 0:
                break
            continue
        bytes_read = read_own_word(points_table, word, text, i, decoded, entry)
        if bytes_read > 0:
            _add(table, word, bytes_read, hash_bytes(word, bytes_read), 1)
            read += 1
        i += decoded & 7
    is_bad = i < size and _has_room(table, SPARE_BYTES)
    put_i64(table.state, BAD_BYTE, i if is_bad else -1)
    put_i64(table.state, AT, i)
    _add_to(table.state, READ, read)
    _add_to(table.state, LONG, long)


@kernel
def count_pre_tokens(text_array, size, start, classes_array, joints_array, add_prefix_space, word_table, state):
    """Count the pre-tokens of byte-level BPE in the lines of text[start:size]; stop where `count_words` does.

    They are those of lines that are not blank, as kernels/byte_level.py of tokenization reads them.

    Args:
      text_array: uint8, as for `count_words`; a byte stands before the first line, and spaces are written over the
        newlines before lines.
      size, start: which of it.
      classes_array, joints_array: uint8, see tokenization/kernels/pre_tokens.py.
      add_prefix_space: whether to read a document as if a space stood before it.
      word_table, state: a WordTable, and int64[STATE].
    """
    text, classes, joints = address(text_array), address(classes_array), address(joints_array)
    table = _places(word_table, state)
    i = np.int64(start)
    bad = np.int64(-1)
    line = get_i64(table.state, LINE) - 1
    before = get_i64(table.state, BEFORE)
    while i < size:
        if line < 0:
            blank, at = is_blank_line(classes, text, i)
            if blank:
                before = np.int64(line_joints.NO_LINE)
                i = at + 1
                continue
            line = i
            if begins_with_space(joints, text, line, before, add_prefix_space):
                i -= 1
                store_u8(text, i, ascii.SPACE)
        end = pre_token_end(classes, text, i)
        if end < 0:
            bad = -1 - end
            break
        if end - i > MAX_BYTES:
            _add_to(table.state, LONG, 1)
        elif _has_room(table, end - i + 8):
            _add(table, text + i, end - i, hash_bytes(text + i, end - i), 1)
        else:
            break
        _add_to(table.state, READ, 1)
        i = end
        if load_u8(text, i) == ascii.NEWLINE:
            before = line_end_kind(joints, text, line, i)
            line = np.int64(-1)
            i += 1
    put_i64(table.state, LINE, line + 1)
    put_i64(table.state, BEFORE, before)
    put_i64(table.state, BAD_BYTE, bad)
    put_i64(table.state, AT, i)


@kernel
def _varint(records, at):
    """Return the number at records[at], and where it ends."""
    value = np.int64(0)
    shift = np.int64(0)
    while True:
        byte = load_u8(records, at)
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


@kernel
def _put_varint(records, at, value):
    """Write a number, 0 or more; return where it ends."""
    while value >= 0x80:
        store_u8(records, at, value & 0x7F | 0x80)
        value >>= 7
        at += 1
    store_u8(records, at, value)
    return at + 1


@kernel
def add_records(records_array, size, start, part, parts, word_table, state):
    """Add the counts of records[start:size] to a table; stop before a word that may lack room, or at the end.

    Of the words it takes one part of `parts`, by their hashes. PADDING bytes must stand after the records.
    """
    records = address(records_array)
    table = _places(word_table, state)
    i = np.int64(start)
    while i < size:
        word_bytes, at = _varint(records, i)
        count, at = _varint(records, at)
        if not _has_room(table, word_bytes + 8):
            break
        hashed = hash_bytes(records + at, word_bytes)
        if parts == 1 or np.int64(hashed >> _HALF & _PART_MASK) % parts == part:
            _add(table, records + at, word_bytes, hashed, count)
        i = at + word_bytes
    put_i64(table.state, AT, i)


@kernel
def write_records(table, order, records_array, starts):
    """Write the words of a table in an order by buckets.

    Args:
      table: a WordTable.
      order: int64[words], their numbers; one bucket after the other.
      records_array: uint8, with room for MAX_RECORD and PADDING bytes more for each word than it has.
      starts: int64[BUCKETS + 1], where each bucket starts in the records; the last is where they end.
    """
    text, ends = address(table.text), address(table.ends)
    counts, records = address(table.counts), address(records_array)
    at = np.int64(0)
    bucket = np.int64(-1)
    for k in order:
        start = get_i64(ends, k)
        size = get_i64(ends, k + 1) - start
        own = np.int64(hash_bytes(text + start, size) >> _BUCKET_SHIFT)
        while bucket < own:
            bucket += 1
            starts[bucket] = at
        at = _put_varint(records, at, size)
        at = _put_varint(records, at, get_i64(counts, k))
        _copy(records + at, text + start, size)
        at += size
    for later in range(bucket + 1, BUCKETS + 1):
        starts[later] = at


@kernel
def take_records(records_array, size, threshold, table, state):
    """Append the words of records[:size] that occur at least `threshold` times to a WordTable, without its slots."""
    text, ends = address(table.text), address(table.ends)
    counts, records = address(table.counts), address(records_array)
    words = state[WORDS]
    at = np.int64(0)
    while at < size:
        word_bytes, at = _varint(records, at)
        count, at = _varint(records, at)
        if count >= threshold:
            start = get_i64(ends, words)
            _copy(text + start, records + at, word_bytes)
            put_i64(ends, words + 1, start + word_bytes)
            put_i64(counts, words, count)
            words += 1
        at += word_bytes
    state[WORDS] = words


@kernel
def _big_endian(source, at, size):
    """Return the eight bytes at source[at], as a number that orders as they do; zeros after source[:size]."""
    if at >= size:
        return _ZERO
    word = load_u64(source, at)
    if size - at < 8:
        word &= _ONES >> last_bits(size - at)
    swapped = _ZERO
    for k in range(8):
        swapped |= (word >> np.uint64(8 * k) & np.uint64(0xFF)) << np.uint64(56 - 8 * k)
    return swapped


@kernel
def order_keys(text_array, ends, keys, buckets):
    """Fill in what words are ordered by: keys uint64[words], their first eight bytes, and buckets uint8[words]."""
    text = address(text_array)
    for k in range(len(keys)):
        start = ends[k]
        size = ends[k + 1] - start
        keys[k] = _big_endian(text + start, np.int64(0), size)
        buckets[k] = hash_bytes(text + start, size) >> _BUCKET_SHIFT


@kernel
def _is_before(text, ends, first, second):
    """Return whether a word stands before another one, whose first eight bytes are the same, in the order of their
    bytes.
    """
    first_start, second_start = get_i64(ends, first), get_i64(ends, second)
    first_size = get_i64(ends, first + 1) - first_start
    second_size = get_i64(ends, second + 1) - second_start
    at = np.int64(8)
    while at < first_size and at < second_size:
        left = _big_endian(text + first_start, at, first_size)
        right = _big_endian(text + second_start, at, second_size)
        if left != right:
            return left < right
        at += 8
    return first_size < second_size


@kernel
def order_ties(text_array, ends_array, keys, order, scratch):
    """Order words with the same keys by their other bytes: merges neighbours, then pairs of them, and so on.

    Args:
      text_array, ends_array, keys: of words that differ.
      order: int64[words], their numbers in the order of `keys`.
      scratch: int64[words]; only the first of them are touched, one for each word of the longest tie.
    """
    text, ends = address(text_array), address(ends_array)
    words, merged = address(order), address(scratch)
    first = np.int64(0)
    while first < len(keys):
        last = first + 1
        while last < len(keys) and keys[get_i64(words, last)] == keys[get_i64(words, first)]:
            last += 1
        width = np.int64(1)
        while width < last - first:
            for left in range(first, last, 2 * width):
                middle, right = min(left + width, last), min(left + 2 * width, last)
                a, b = left, middle
                for at in range(left, right):
                    if b == right or (a < middle and not _is_before(text, ends, get_i64(words, b), get_i64(words, a))):
                        put_i64(merged, at - first, get_i64(words, a))
                        a += 1
                    else:
                        put_i64(merged, at - first, get_i64(words, b))
                        b += 1
            for at in range(first, last):
                put_i64(words, at, get_i64(merged, at - first))
            width *= 2
        first = last


@kernel
def gather(text_array, ends, order, new_text_array, new_ends):
    """Copy words in an order; both texts have PADDING bytes more than their words. `new_ends` has no leading 0."""
    text, new_text = address(text_array), address(new_text_array)
    at = np.int64(0)
    for k in range(len(order)):
        start = ends[order[k]]
        size = ends[order[k] + 1] - start
        _copy(new_text + at, text + start, size)
        at += size
        new_ends[k] = at


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    points = load(VERSIONS[-1], True)
    arrays = CodePointArrays(points.pages, points.blocks, points.pool, np.empty(SCRATCH, np.uint8), True)
    text = np.full(2 + PADDING, ascii.NEWLINE, np.uint8)
    text[0] = ascii.LOWER_A
    table = WordTable(
        np.zeros(8, np.uint64),
        np.empty(SPARE_BYTES + 1 + PADDING, np.uint8),
        np.zeros(SPARE_WORDS + 2, np.int64),
        np.zeros(SPARE_WORDS + 1, np.int64),
    )
    state = np.zeros(STATE, np.int64)
    count_words(text, 2, 0, arrays, table, state)
    count_pre_tokens(text, 2, 1, pre_token_classes.load(), line_joints.load(), False, table, state)
    fill_slots(table, 0)
    keys, buckets, order = np.empty(1, np.uint64), np.empty(1, np.uint8), np.zeros(1, np.int64)
    order_keys(table.text, table.ends, keys, buckets)
    order_ties(table.text, table.ends, keys, order, np.empty(1, np.int64))
    records = np.empty(MAX_RECORD + 2 * PADDING, np.uint8)
    write_records(table, order, records, np.empty(BUCKETS + 1, np.int64))
    add_records(records, 3, 0, 0, 1, table, state)
    take_records(records, 0, 1, table, state)
    gather(table.text, table.ends, order, np.empty(2 * PADDING, np.uint8), np.empty(1, np.int64))
