"""Instances to TFRecords of tf.train.Example, and their index.

Records are written from the end of the buffer to its start, the last one first: in a protocol buffer the length of
what follows stands in front of it, and is known only then. So no byte is moved twice.

A record is: uint64 length, masked CRC-32C of these 8 bytes, the Example, its masked CRC-32C. An Example has the seven
features of create_pretraining_data.py in the order of their names, each a packed list, so that the same instances
always give the same bytes.

Arrays
  ids         int32: the pieces of the whole text.
  spans, lengths, is_random, mask_ends, masks, redrawn
              the instances, see kernels/instances.py.
  order       int64: the instances in the order in which they are written.
  varints     uint64[size]: the variable-length encoding of each number below `size`, against the upper end of the
              word, its length in the lowest byte. `size` exceeds every id and every position.
  heads       uint8[HEADS]: for each feature HEAD bytes, against whose end is what stands in front of its values;
              for those whose values vary in size, only the part with the name. Then an int64 for each, its size.
  pieces      int32[max_seq_length]: the pieces of the instance that is being written.
  buffer      uint8: where records are written to.
  record_sizes
              int64: the size of each record with its frame.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from transforms.kernels import kernel
from transforms.kernels.crc32c import masked_crc32c
from transforms.kernels.memory import (
    address,
    copy_32,
    get_i32,
    get_i64,
    get_u16,
    get_u64,
    prefetch,
    put_i32,
    put_i64,
    store_u8,
    store_u32,
    store_u64,
)
from transforms.masking.kernels.instances import KIND_SHIFT, MASKED, POSITION, REDRAWN

FRAME = 16  # bytes of a record around its data
_INT64_LIST = 3
_FLOAT_LIST = 2
_WEIGHT = 0x3F800000  # 1.0

# Nested fields: the tag of a length-delimited field is its number * 8 + 2.
_TAG_1 = 0x0A
_TAG_VALUE = 0x12
_TAG_FLOATS = _FLOAT_LIST * 8 + 2
_TAG_INTS = _INT64_LIST * 8 + 2

FEATURES = (
    "input_ids",
    "input_mask",
    "masked_lm_ids",
    "masked_lm_positions",
    "masked_lm_weights",
    "next_sentence_labels",
    "segment_ids",
)
_INPUT_IDS, _INPUT_MASK, _MASKED_LM_IDS, _MASKED_LM_POSITIONS, _MASKED_LM_WEIGHTS = range(5)
_NEXT_SENTENCE_LABELS, _SEGMENT_IDS = range(5, 7)
_FEATURES = len(FEATURES)
HEAD = 64
_HEAD_SIZES = HEAD * _FEATURES // 8
HEADS = (HEAD + 8) * _FEATURES
# The length of each name, then the name.
NAMES = np.array([list(bytes([len(n)]) + n.encode().ljust(31)) for n in FEATURES], np.uint8)


def most_record_bytes(max_seq_length: int, max_predictions_per_seq: int) -> int:
    """An upper bound of a record's size: ids and positions of at most 5 bytes."""
    return 7 * max_seq_length + 14 * max_predictions_per_seq + 512


@kernel
def make_varints(varints):
    """Fills `varints`."""
    for number in range(len(varints)):
        rest = number
        length = 1
        word = np.uint64(rest & 127)
        while rest > 127:
            rest >>= 7
            word |= np.uint64(128) << np.uint64(8 * (length - 1))
            word |= np.uint64(rest & 127) << np.uint64(8 * length)
            length += 1
        varints[number] = word << np.uint64(64 - 8 * length) | np.uint64(length)


@kernel
def _put_number(buffer, at, number):
    """Writes a variable-length number that ends at `at`; returns where it starts."""
    length = 1
    rest = number
    while rest > 127:
        rest >>= 7
        length += 1
    at -= length
    for k in range(length):
        store_u8(buffer, at + k, (number >> (7 * k) & 127) | (128 if k < length - 1 else 0))
    return at


@kernel
def _put_heads(buffer, start, end, list_tag, feature, heads):
    """Writes what stands in front of a feature's packed values, which are buffer[start:end]: its name and lengths."""
    at = _put_number(buffer, start, end - start) - 1
    store_u8(buffer, at, _TAG_1)
    at = _put_number(buffer, at, end - at) - 1
    store_u8(buffer, at, list_tag)
    at = _put_number(buffer, at, end - at)
    copy_32(buffer, at - 32, heads, HEAD * feature + HEAD - 32)
    at -= get_i64(heads, _HEAD_SIZES + feature)
    at = _put_number(buffer, at, end - at) - 1
    store_u8(buffer, at, _TAG_1)
    return at


@kernel
def _put_head(buffer, at, feature, heads):
    """Writes all that stands in front of a feature's packed values, whose size is always the same."""
    copy_32(buffer, at - 32, heads, HEAD * feature + HEAD - 32)
    copy_32(buffer, at - 64, heads, HEAD * feature)
    return at - get_i64(heads, _HEAD_SIZES + feature)


@kernel
def make_heads(max_seq_length, max_predictions_per_seq, heads):
    """Fills `heads`."""
    buffer = address(heads)
    for feature in range(_FEATURES):
        end = np.int64(HEAD * (feature + 1))
        at = end
        if feature in (_INPUT_IDS, _MASKED_LM_IDS, _MASKED_LM_POSITIONS):
            at -= 1
            store_u8(buffer, at, _TAG_VALUE)
            size = 0
        else:
            tag = _TAG_INTS
            size = max_seq_length
            if feature == _MASKED_LM_WEIGHTS:
                tag = _TAG_FLOATS
                size = 4 * max_predictions_per_seq
            elif feature == _NEXT_SENTENCE_LABELS:
                size = 1
            at = _put_number(buffer, at, size) - 1
            store_u8(buffer, at, _TAG_1)
            at = _put_number(buffer, at, end + size - at) - 1
            store_u8(buffer, at, tag)
            at = _put_number(buffer, at, end + size - at) - 1
            store_u8(buffer, at, _TAG_VALUE)
        name = NAMES[feature]
        length = np.int64(name[0])
        at -= length + 2
        store_u8(buffer, at, _TAG_1)
        for k in range(length + 1):
            store_u8(buffer, at + 1 + k, np.int64(name[k]))
        if size:
            at = _put_number(buffer, at, end + size - at) - 1
            store_u8(buffer, at, _TAG_1)
        put_i64(buffer, _HEAD_SIZES + feature, end - at)


@kernel
def _put_bytes(buffer, at, count, value):
    """Writes `count` equal bytes that end at `at`; returns where they start."""
    at -= count
    for k in range(at, at + count):
        store_u8(buffer, k, value)
    return at


@kernel
def _put_one(buffer, at, number, varints):
    """Writes a number that ends at `at`; returns where it starts. Bytes before it are not kept."""
    word = get_u64(varints, number)
    store_u64(buffer, at - 8, word)
    return at - np.int64(word & np.uint64(255))


@kernel
def _ask_for(n, ids, spans, lengths, mask_ends, masks, redrawn):
    """Prefetches what an instance is made of: instances are in random order, and waiting for them costs more than
    all else."""
    for part in range(2):
        start = get_i64(spans, 2 * n + part)
        for at in range(4 * start, 4 * (start + get_i32(lengths, 2 * n + part)) + 64, 64):
            prefetch(ids, at)
    end = get_i64(mask_ends, 2 * n)
    prefetch(masks, 2 * end - 1)
    prefetch(masks, 2 * end - 65)
    prefetch(redrawn, 4 * get_i64(mask_ends, 2 * n + 1) - 1)


@kernel
def serialize_records(
    ids_array, spans_array, lengths_array, is_random, mask_ends_array, masks_array, redrawn_array, order,
    varints_array, heads_array, pieces_array, cls_id, sep_id, mask_id, max_seq_length, max_predictions_per_seq,
    first, last, step, buffer_array, record_sizes,
):  # fmt: skip
    """Writes the records of order[first:last:step] so that they end where `buffer` ends; returns where they start.

    record_sizes[k] is set for the k-th of these records.
    """
    ids = address(ids_array)
    spans = address(spans_array)
    lengths = address(lengths_array)
    mask_ends = address(mask_ends_array)
    masks = address(masks_array)
    redrawn = address(redrawn_array)
    varints = address(varints_array)
    heads = address(heads_array)
    pieces = address(pieces_array)
    buffer = address(buffer_array)
    at = len(buffer_array)
    count = (last - first + step - 1) // step
    for k in range(count - 1, -1, -1):
        n = order[first + k * step]
        # What the record before needs is asked for now, and what says where that is, a little earlier.
        if k > 5:
            early = order[first + (k - 6) * step]
            prefetch(spans, 16 * early)
            prefetch(lengths, 8 * early)
            prefetch(mask_ends, 16 * early - 16)
            prefetch(mask_ends, 16 * early)
        if k > 1:
            _ask_for(order[first + (k - 2) * step], ids, spans, lengths, mask_ends, masks, redrawn)
        masks_start = get_i64(mask_ends, 2 * n - 2) if n > 0 else np.int64(0)
        masks_end = get_i64(mask_ends, 2 * n)
        masked = masks_end - masks_start
        r = get_i64(mask_ends, 2 * n + 1)
        a = get_i64(spans, 2 * n)
        b = get_i64(spans, 2 * n + 1)
        a_length = get_i32(lengths, 2 * n)
        b_length = get_i32(lengths, 2 * n + 1)
        used = a_length + b_length + 3
        padding = max_seq_length - used
        put_i32(pieces, 0, cls_id)
        for j in range(a_length):
            put_i32(pieces, 1 + j, get_i32(ids, a + j))
        put_i32(pieces, a_length + 1, sep_id)
        for j in range(b_length):
            put_i32(pieces, a_length + 2 + j, get_i32(ids, b + j))
        put_i32(pieces, used - 1, sep_id)
        record_end = at
        at -= 4
        data_end = at
        # segment_ids
        at = _put_bytes(buffer, at, padding, 0)
        at = _put_bytes(buffer, at, b_length + 1, 1)
        at = _put_bytes(buffer, at, a_length + 2, 0)
        at = _put_head(buffer, at, _SEGMENT_IDS, heads)
        # next_sentence_labels
        at -= 1
        store_u8(buffer, at, np.int64(is_random[n]))
        at = _put_head(buffer, at, _NEXT_SENTENCE_LABELS, heads)
        # masked_lm_weights
        at = _put_bytes(buffer, at, 4 * (max_predictions_per_seq - masked), 0)
        at -= 4 * masked
        for j in range(masked):
            store_u32(buffer, at + 4 * j, _WEIGHT)
        at = _put_head(buffer, at, _MASKED_LM_WEIGHTS, heads)
        # masked_lm_positions
        end = at
        at = _put_bytes(buffer, at, max_predictions_per_seq - masked, 0)
        for m in range(masks_end - 1, masks_start - 1, -1):
            at = _put_one(buffer, at, get_u16(masks, m) & POSITION, varints)
        at = _put_heads(buffer, at, end, _TAG_INTS, _MASKED_LM_POSITIONS, heads)
        # masked_lm_ids, and on the way the masked pieces are put in place
        end = at
        at = _put_bytes(buffer, at, max_predictions_per_seq - masked, 0)
        for m in range(masks_end - 1, masks_start - 1, -1):
            mask = get_u16(masks, m)
            kind = mask >> KIND_SHIFT
            r -= kind == REDRAWN
            position = mask & POSITION
            label = get_i32(pieces, position)
            piece = get_i32(redrawn, r) if kind == REDRAWN else label
            put_i32(pieces, position, mask_id if kind == MASKED else piece)
            at = _put_one(buffer, at, label, varints)
        at = _put_heads(buffer, at, end, _TAG_INTS, _MASKED_LM_IDS, heads)
        # input_mask
        at = _put_bytes(buffer, at, padding, 0)
        at = _put_bytes(buffer, at, used, 1)
        at = _put_head(buffer, at, _INPUT_MASK, heads)
        # input_ids
        end = at
        at = _put_bytes(buffer, at, padding, 0)
        for j in range(used - 1, -1, -1):
            at = _put_one(buffer, at, get_i32(pieces, j), varints)
        at = _put_heads(buffer, at, end, _TAG_INTS, _INPUT_IDS, heads)
        # The Example and its frame
        at = _put_number(buffer, at, data_end - at) - 1
        store_u8(buffer, at, _TAG_1)
        store_u32(buffer, data_end, masked_crc32c(buffer, at, data_end))
        store_u64(buffer, at - 12, np.uint64(data_end - at))
        store_u32(buffer, at - 4, masked_crc32c(buffer, at - 12, at - 4))
        at -= 12
        record_sizes[k] = record_end - at
    return at


@kernel
def index_lines(record_sizes, count, offset, lines):
    """Writes "offset size" for each of `count` records, the first at `offset`; returns how many bytes.

    lines: uint8, with room for 42 bytes a record.
    """
    digits = np.empty(20, np.uint8)
    n = 0
    for k in range(count):
        for part in range(2):
            number = record_sizes[k] if part else offset
            length = 0
            while True:
                digits[length] = 48 + number % 10
                number //= 10
                length += 1
                if number == 0:
                    break
            for d in range(length - 1, -1, -1):
                lines[n] = digits[d]
                n += 1
            lines[n] = 10 if part else 32
            n += 1
        offset += record_sizes[k]
    return n


def warm_up() -> None:
    """Compiles the entry kernels of this module."""
    length, predictions = 5, 1
    varints = np.empty(length, np.uint64)
    make_varints(varints)
    heads = np.empty(HEADS, np.uint8)
    make_heads(length, predictions, heads)
    sizes = np.empty(1, np.int64)
    serialize_records(
        np.zeros(2, np.int32), np.array([[0, 1]]), np.ones((1, 2), np.int32), np.zeros(1, np.uint8),
        np.ones((1, 2), np.int64),
        np.ones(1, np.uint16), np.zeros(1, np.int32), np.zeros(1, np.int64), varints, heads, np.empty(length, np.int32),
        0, 0, 0, length, predictions, 0, 1, 1, np.empty(most_record_bytes(length, predictions), np.uint8), sizes,
    )  # fmt: skip
    index_lines(sizes, 1, 0, np.empty(42, np.uint8))
