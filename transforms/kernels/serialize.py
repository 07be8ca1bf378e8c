"""Instances to TFRecords of tf.train.Example, and their index.

Records are written from the end of the buffer to its start, the last one first: in a protocol buffer the length of
what follows stands in front of it, and is known only then. So no byte is moved twice.

A record is: uint64 length, masked CRC-32C of these 8 bytes, the Example, its masked CRC-32C. An Example has the seven
features of create_pretraining_data.py in the order of their names, each a packed list, so that the same instances
always give the same bytes.

Arrays
  ids         int32: the pieces of the whole text.
  spans, lengths, is_random, mask_ends, mask_positions, mask_ids
              the instances, see kernels/instances.py.
  order       int64: the instances in the order in which they are written.
  varints     uint64[size]: the variable-length encoding of each number below `size`, against the upper end of the
              word, its length in the lowest byte. `size` exceeds every id and every position.
  names       uint8[7, 32]: NAMES, the length of each feature's name, then the name.
  buffer      uint8: where records are written to.
  record_sizes
              int64: the size of each record with its frame.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from transforms.kernels import kernel
from transforms.kernels.crc32c import masked_crc32c
from transforms.kernels.instances import KEPT
from transforms.kernels.memory import (
    address,
    get_i32,
    get_u16,
    get_u64,
    load_u8,
    store_u8,
    store_u32,
    store_u64,
)

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
def _put_heads(buffer, start, end, list_tag, name, names):
    """Writes what stands in front of a feature's packed values, which are buffer[start:end]: its name and lengths."""
    at = _put_number(buffer, start, end - start)
    at -= 1
    store_u8(buffer, at, _TAG_1)
    at = _put_number(buffer, at, end - at)
    at -= 1
    store_u8(buffer, at, list_tag)
    at = _put_number(buffer, at, end - at)
    at -= 1
    store_u8(buffer, at, _TAG_VALUE)
    length = load_u8(names, 32 * name)
    at -= length + 1
    for k in range(length + 1):
        store_u8(buffer, at + k, load_u8(names, 32 * name + k))
    at -= 1
    store_u8(buffer, at, _TAG_1)
    at = _put_number(buffer, at, end - at)
    at -= 1
    store_u8(buffer, at, _TAG_1)
    return at


@kernel
def _put_bytes(buffer, at, count, value):
    """Writes `count` equal bytes that end at `at`; returns where they start."""
    at -= count
    for k in range(at, at + count):
        store_u8(buffer, k, value)
    return at


@kernel
def _put_ids(buffer, at, ids, start, end, varints):
    """Writes the numbers ids[start:end] so that they end at `at`; returns where they start."""
    for k in range(end - 1, start - 1, -1):
        word = get_u64(varints, get_i32(ids, k))
        store_u64(buffer, at - 8, word)
        at -= np.int64(word & np.uint64(255))
    return at


@kernel
def _put_one(buffer, at, number, varints):
    """Writes a number that ends at `at`; returns where it starts. Bytes before it are not kept."""
    word = get_u64(varints, number)
    store_u64(buffer, at - 8, word)
    return at - np.int64(word & np.uint64(255))


@kernel
def _put_part(buffer, at, ids, start, length, shift, mask, masks_start, mask_positions, mask_ids, varints):
    """Writes one part of an instance, its masked pieces replaced, so that it ends at `at`.

    Piece start + k stands at position `shift` + k; `mask` is behind the part's last mask. Returns where the part
    starts, and the mask behind the last one before it.
    """
    end = start + length
    while mask > masks_start:
        position = get_u16(mask_positions, mask - 1)
        if position < shift:
            break
        mask -= 1
        piece = get_i32(mask_ids, mask)
        if piece == KEPT:
            continue
        place = start + position - shift
        at = _put_ids(buffer, at, ids, place + 1, end, varints)
        at = _put_one(buffer, at, piece, varints)
        end = place
    return _put_ids(buffer, at, ids, start, end, varints), mask


@kernel
def serialize_records(
    ids_array, spans, lengths, is_random, mask_ends, mask_positions_array, mask_ids_array, order, varints_array,
    names_array, cls_id, sep_id, max_seq_length, max_predictions_per_seq, first, last, step, buffer_array,
    record_sizes,
):  # fmt: skip
    """Writes the records of order[first:last:step] so that they end where `buffer` ends; returns where they start.

    record_sizes[k] is set for the k-th of these records.
    """
    ids = address(ids_array)
    mask_positions = address(mask_positions_array)
    mask_ids = address(mask_ids_array)
    varints = address(varints_array)
    names = address(names_array)
    buffer = address(buffer_array)
    at = len(buffer_array)
    count = (last - first + step - 1) // step
    for k in range(count - 1, -1, -1):
        n = order[first + k * step]
        masks_start = mask_ends[n - 1] if n > 0 else np.int64(0)
        masks_end = mask_ends[n]
        masks = masks_end - masks_start
        a = spans[n, 0]
        b = spans[n, 1]
        a_length = np.int64(lengths[n, 0])
        b_length = np.int64(lengths[n, 1])
        used = a_length + b_length + 3
        padding = max_seq_length - used
        record_end = at
        at -= 4
        data_end = at
        # segment_ids
        at = _put_bytes(buffer, at, padding, 0)
        at = _put_bytes(buffer, at, b_length + 1, 1)
        at = _put_bytes(buffer, at, a_length + 2, 0)
        at = _put_heads(buffer, at, data_end, _TAG_INTS, _SEGMENT_IDS, names)
        # next_sentence_labels
        end = at
        at = _put_bytes(buffer, at, 1, is_random[n])
        at = _put_heads(buffer, at, end, _TAG_INTS, _NEXT_SENTENCE_LABELS, names)
        # masked_lm_weights
        end = at
        at = _put_bytes(buffer, at, 4 * (max_predictions_per_seq - masks), 0)
        for _ in range(masks):
            at -= 4
            store_u32(buffer, at, _WEIGHT)
        at = _put_heads(buffer, at, end, _TAG_FLOATS, _MASKED_LM_WEIGHTS, names)
        # masked_lm_positions
        end = at
        at = _put_bytes(buffer, at, max_predictions_per_seq - masks, 0)
        for m in range(masks_end - 1, masks_start - 1, -1):
            at = _put_one(buffer, at, get_u16(mask_positions, m), varints)
        at = _put_heads(buffer, at, end, _TAG_INTS, _MASKED_LM_POSITIONS, names)
        # masked_lm_ids
        end = at
        at = _put_bytes(buffer, at, max_predictions_per_seq - masks, 0)
        for m in range(masks_end - 1, masks_start - 1, -1):
            position = get_u16(mask_positions, m)
            place = a + position - 1 if position <= a_length else b + position - a_length - 2
            at = _put_one(buffer, at, get_i32(ids, place), varints)
        at = _put_heads(buffer, at, end, _TAG_INTS, _MASKED_LM_IDS, names)
        # input_mask
        end = at
        at = _put_bytes(buffer, at, padding, 0)
        at = _put_bytes(buffer, at, used, 1)
        at = _put_heads(buffer, at, end, _TAG_INTS, _INPUT_MASK, names)
        # input_ids
        end = at
        at = _put_bytes(buffer, at, padding, 0)
        at = _put_one(buffer, at, sep_id, varints)
        at, mask = _put_part(
            buffer, at, ids, b, b_length, a_length + 2, masks_end, masks_start, mask_positions, mask_ids, varints
        )
        at = _put_one(buffer, at, sep_id, varints)
        at, mask = _put_part(buffer, at, ids, a, a_length, 1, mask, masks_start, mask_positions, mask_ids, varints)
        at = _put_one(buffer, at, cls_id, varints)
        at = _put_heads(buffer, at, end, _TAG_INTS, _INPUT_IDS, names)
        # The Example and its frame
        at = _put_number(buffer, at, data_end - at)
        at -= 1
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
