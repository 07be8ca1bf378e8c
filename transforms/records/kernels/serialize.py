"""Instances to TFRecords of tf.train.Example.

Records are written from the end of the buffer to its start, the last one first: in a protocol buffer the length of
what follows stands in front of it, and is known only then. So no byte is moved twice. Functions that write take the
place where what they write ends, and return where it starts.

A record is: uint64 length, masked CRC-32C of these 8 bytes, the Example, its masked CRC-32C. An Example has the seven
features of create_pretraining_data.py in the order of their names, each a packed list, so that the same instances
always give the same bytes.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

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
    load_u8,
    prefetch,
    put_i32,
    put_i64,
    store_u8,
    store_u32,
    store_u64,
)
from transforms.masking.kernels.instances import InstanceArrays
from transforms.masking.kernels.masks import KIND_SHIFT, MASKED, POSITION, REDRAWN
from transforms.masking.kernels.pairs import SPECIAL_PIECES
from transforms.records.kernels.frames import HEAD as FRAME_HEAD
from transforms.records.kernels.frames import TAIL as FRAME_TAIL

_FRAME_LENGTH = 8  # bytes of a record's length, in front of their checksum

# The features, in the order of their names, and where each stands in it.
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
_WEIGHT = 0x3F800000  # 1.0

# Tags of length-delimited fields: the field's number * 8 + 2.
_TAG_1 = 0x0A  # Example.features, an entry of Features.feature, an entry's key, a list's values
_TAG_VALUE = 0x12  # an entry's value
_TAG_FLOATS = 0x12  # Feature.float_list
_TAG_INTS = 0x1A  # Feature.int64_list

# Places in `heads`.
_HEAD = 64  # bytes of a feature's head, a multiple of what copy_32 copies
_HEAD_SIZES = _HEAD * _FEATURES // 8  # in 64-bit words
HEADS = (_HEAD + 8) * _FEATURES

# The length of each name, then the name.
_NAMES = np.array([list(bytes([len(n)]) + n.encode().ljust(31)) for n in FEATURES], np.uint8)

# How many records before its turn an instance is prefetched, and its row of the instances' arrays.
_PREFETCH_PIECES = 2
_PREFETCH_ROW = 6
_CACHE_LINE = 64


class Layout(NamedTuple):
    """What is the same for all records, and scratch memory.

    varints: uint64[size], the variable-length encoding of each number below `size`, against the upper end of the
      word, its length in the lowest byte. `size` exceeds every id and every position.
    heads: uint8[HEADS], for each feature _HEAD bytes, against whose end is what stands in front of its values; for
      those whose values vary in size, only the part with the name. Then an int64 for each, its size.
    pieces: int32[max_seq_length], scratch: the pieces of the instance that is being written.
    """

    varints: np.ndarray
    heads: np.ndarray
    pieces: np.ndarray
    cls_id: int
    sep_id: int
    mask_id: int
    max_seq_length: int
    max_predictions_per_seq: int


class _Memory(NamedTuple):
    """A Layout, the text's pieces, the instances and the buffer for inner functions, which take addresses.

    See kernels/memory.py.
    """

    varints: int
    heads: int
    pieces: int
    cls_id: int
    sep_id: int
    mask_id: int
    max_seq_length: int
    max_predictions_per_seq: int
    ids: int
    spans: int
    lengths: int
    is_random: int
    mask_ends: int
    masks: int
    redrawn: int
    buffer: int


class _Instance(NamedTuple):
    """One instance: its parts as in `spans` and `lengths`, its masks, where its redrawn pieces end."""

    a: int
    a_length: int
    b: int
    b_length: int
    masks_start: int
    masks_end: int
    redrawn_end: int
    is_random: int


@kernel
def _memory(layout, ids, instances, buffer):
    """The addresses of all arrays."""
    return _Memory(
        address(layout.varints),
        address(layout.heads),
        address(layout.pieces),
        np.int64(layout.cls_id),
        np.int64(layout.sep_id),
        np.int64(layout.mask_id),
        np.int64(layout.max_seq_length),
        np.int64(layout.max_predictions_per_seq),
        address(ids),
        address(instances.spans),
        address(instances.lengths),
        address(instances.is_random),
        address(instances.mask_ends),
        address(instances.masks),
        address(instances.redrawn),
        address(buffer),
    )


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
    """Writes a variable-length number of any size."""
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
def make_heads(max_seq_length, max_predictions_per_seq, heads):
    """Fills `heads`."""
    buffer = address(heads)
    for feature in range(_FEATURES):
        end = np.int64(_HEAD * (feature + 1))
        at = end
        size = 0  # of the values; 0 where it varies
        if feature in (_INPUT_IDS, _MASKED_LM_IDS, _MASKED_LM_POSITIONS):
            at -= 1
            store_u8(buffer, at, _TAG_VALUE)
        else:
            tag = _TAG_INTS
            size = max_seq_length
            if feature == _MASKED_LM_WEIGHTS:
                tag = _TAG_FLOATS
                size = 4 * max_predictions_per_seq
            elif feature == _NEXT_SENTENCE_LABELS:
                size = 1
            at = _put_tag(buffer, at, end - at + size, _TAG_1)
            at = _put_tag(buffer, at, end - at + size, tag)
            at = _put_tag(buffer, at, end - at + size, _TAG_VALUE)
        name = _NAMES[feature]
        length = np.int64(name[0])
        at -= length + 2
        store_u8(buffer, at, _TAG_1)
        for k in range(length + 1):
            store_u8(buffer, at + 1 + k, np.int64(name[k]))
        if size:
            at = _put_tag(buffer, at, end - at + size, _TAG_1)
        put_i64(buffer, _HEAD_SIZES + feature, end - at)


@kernel
def _put_tag(buffer, at, size, tag):
    """Writes the tag and the length of a field whose content of `size` bytes starts at `at`."""
    at = _put_number(buffer, at, size) - 1
    store_u8(buffer, at, tag)
    return at


@kernel
def _put_varying_head(memory, start, end, feature):
    """Writes what stands in front of a list of integers, which are buffer[start:end]: its feature's name, lengths."""
    at = _put_tag(memory.buffer, start, end - start, _TAG_1)
    at = _put_tag(memory.buffer, at, end - at, _TAG_INTS)
    at = _put_number(memory.buffer, at, end - at)
    copy_32(memory.buffer, at - 32, memory.heads, _HEAD * feature + _HEAD - 32)
    at -= get_i64(memory.heads, _HEAD_SIZES + feature)
    return _put_tag(memory.buffer, at, end - at, _TAG_1)


@kernel
def _put_head(memory, at, feature):
    """Writes all that stands in front of a feature's values, whose size is always the same."""
    copy_32(memory.buffer, at - 32, memory.heads, _HEAD * feature + _HEAD - 32)
    copy_32(memory.buffer, at - 64, memory.heads, _HEAD * feature)
    return at - get_i64(memory.heads, _HEAD_SIZES + feature)


@kernel
def _put_bytes(buffer, at, count, value):
    """Writes `count` equal bytes."""
    at -= count
    for k in range(at, at + count):
        store_u8(buffer, k, value)
    return at


@kernel
def _put_one(memory, at, number):
    """Writes a number from `varints`. Bytes before it are not kept."""
    word = get_u64(memory.varints, number)
    store_u64(memory.buffer, at - 8, word)
    return at - np.int64(word & np.uint64(255))


@kernel
def _prefetch_row(memory, n):
    """Prefetches what the arrays of instances say of one."""
    prefetch(memory.spans, 16 * n)
    prefetch(memory.lengths, 8 * n)
    prefetch(memory.mask_ends, 16 * n - 16)
    prefetch(memory.mask_ends, 16 * n)


@kernel
def _prefetch_pieces(memory, n):
    """Prefetches what an instance is made of: instances are in random order, and waiting for them costs more than
    all else."""
    for part in range(2):
        start = get_i64(memory.spans, 2 * n + part)
        end = start + get_i32(memory.lengths, 2 * n + part)
        for at in range(4 * start, 4 * end + _CACHE_LINE, _CACHE_LINE):
            prefetch(memory.ids, at)
    end = get_i64(memory.mask_ends, 2 * n)
    prefetch(memory.masks, 2 * end - 1)
    prefetch(memory.masks, 2 * end - 1 - _CACHE_LINE)
    prefetch(memory.redrawn, 4 * get_i64(memory.mask_ends, 2 * n + 1) - 1)


@kernel
def _instance(memory, n):
    """Reads an instance from the arrays."""
    return _Instance(
        get_i64(memory.spans, 2 * n),
        get_i32(memory.lengths, 2 * n),
        get_i64(memory.spans, 2 * n + 1),
        get_i32(memory.lengths, 2 * n + 1),
        get_i64(memory.mask_ends, 2 * n - 2) if n > 0 else np.int64(0),
        get_i64(memory.mask_ends, 2 * n),
        get_i64(memory.mask_ends, 2 * n + 1),
        load_u8(memory.is_random, n),
    )


@kernel
def _gather_pieces(memory, instance):
    """Lays out an instance's pieces in `pieces`, unmasked."""
    sep = instance.a_length + 1
    put_i32(memory.pieces, 0, memory.cls_id)
    for j in range(instance.a_length):
        put_i32(memory.pieces, 1 + j, get_i32(memory.ids, instance.a + j))
    put_i32(memory.pieces, sep, memory.sep_id)
    for j in range(instance.b_length):
        put_i32(memory.pieces, sep + 1 + j, get_i32(memory.ids, instance.b + j))
    put_i32(memory.pieces, sep + 1 + instance.b_length, memory.sep_id)


# The features; a record has them in the order of their names, so they are written in the reverse.


@kernel
def _put_segment_ids(memory, at, instance, padding):
    at = _put_bytes(memory.buffer, at, padding, 0)
    at = _put_bytes(memory.buffer, at, instance.b_length + 1, 1)
    at = _put_bytes(memory.buffer, at, instance.a_length + 2, 0)
    return _put_head(memory, at, _SEGMENT_IDS)


@kernel
def _put_next_sentence_labels(memory, at, instance):
    store_u8(memory.buffer, at - 1, instance.is_random)
    return _put_head(memory, at - 1, _NEXT_SENTENCE_LABELS)


@kernel
def _put_masked_lm_weights(memory, at, masked):
    at = _put_bytes(memory.buffer, at, 4 * (memory.max_predictions_per_seq - masked), 0)
    at -= 4 * masked
    for j in range(masked):
        store_u32(memory.buffer, at + 4 * j, _WEIGHT)
    return _put_head(memory, at, _MASKED_LM_WEIGHTS)


@kernel
def _put_masked_lm_positions(memory, end, instance, masked):
    at = _put_bytes(memory.buffer, end, memory.max_predictions_per_seq - masked, 0)
    for m in range(instance.masks_end - 1, instance.masks_start - 1, -1):
        at = _put_one(memory, at, get_u16(memory.masks, m) & POSITION)
    return _put_varying_head(memory, at, end, _MASKED_LM_POSITIONS)


@kernel
def _put_masked_lm_ids(memory, end, instance, masked):
    """Writes the feature, and masks `pieces` on the way."""
    at = _put_bytes(memory.buffer, end, memory.max_predictions_per_seq - masked, 0)
    r = instance.redrawn_end
    for m in range(instance.masks_end - 1, instance.masks_start - 1, -1):
        mask = get_u16(memory.masks, m)
        kind = mask >> KIND_SHIFT
        r -= kind == REDRAWN
        position = mask & POSITION
        label = get_i32(memory.pieces, position)
        piece = get_i32(memory.redrawn, r) if kind == REDRAWN else label
        put_i32(memory.pieces, position, memory.mask_id if kind == MASKED else piece)
        at = _put_one(memory, at, label)
    return _put_varying_head(memory, at, end, _MASKED_LM_IDS)


@kernel
def _put_input_mask(memory, at, used, padding):
    at = _put_bytes(memory.buffer, at, padding, 0)
    at = _put_bytes(memory.buffer, at, used, 1)
    return _put_head(memory, at, _INPUT_MASK)


@kernel
def _put_input_ids(memory, end, used, padding):
    at = _put_bytes(memory.buffer, end, padding, 0)
    for j in range(used - 1, -1, -1):
        at = _put_one(memory, at, get_i32(memory.pieces, j))
    return _put_varying_head(memory, at, end, _INPUT_IDS)


@kernel
def _put_record(memory, record_end, instance):
    """Writes an instance as a record: the features, the last one first, then the frame."""
    used = instance.a_length + instance.b_length + SPECIAL_PIECES
    padding = memory.max_seq_length - used
    masked = instance.masks_end - instance.masks_start
    _gather_pieces(memory, instance)
    data_end = record_end - FRAME_TAIL
    at = _put_segment_ids(memory, data_end, instance, padding)
    at = _put_next_sentence_labels(memory, at, instance)
    at = _put_masked_lm_weights(memory, at, masked)
    at = _put_masked_lm_positions(memory, at, instance, masked)
    at = _put_masked_lm_ids(memory, at, instance, masked)
    at = _put_input_mask(memory, at, used, padding)
    at = _put_input_ids(memory, at, used, padding)
    data = _put_tag(memory.buffer, at, data_end - at, _TAG_1)
    at = data - FRAME_HEAD
    store_u64(memory.buffer, at, np.uint64(data_end - data))
    store_u32(memory.buffer, at + _FRAME_LENGTH, masked_crc32c(memory.buffer, at, at + _FRAME_LENGTH))
    store_u32(memory.buffer, data_end, masked_crc32c(memory.buffer, data, data_end))
    return at


@kernel
def serialize_records(layout, ids, instances, selection, buffer, record_sizes):
    """Writes records so that they end where `buffer` ends; returns where they start.

    layout: a Layout. ids: int32, the pieces of the whole text. instances: InstanceArrays.
    selection: int64, the instances to write, in this order.
    buffer: uint8, with room for them, see most_record_bytes.
    record_sizes: int64; record_sizes[k] is set to the size of the k-th record, its frame included.
    """
    memory = _memory(layout, ids, instances, buffer)
    at = len(buffer)
    for k in range(len(selection) - 1, -1, -1):
        # Prefetch the pieces of record k - 2 and the row of record k - 6: records are written last to first.
        if k >= _PREFETCH_ROW:
            _prefetch_row(memory, selection[k - _PREFETCH_ROW])
        if k >= _PREFETCH_PIECES:
            _prefetch_pieces(memory, selection[k - _PREFETCH_PIECES])
        end = at
        at = _put_record(memory, end, _instance(memory, selection[k]))
        record_sizes[k] = end - at
    return at


def warm_up() -> None:
    """Compiles the entry kernels of this module."""
    length, predictions = 5, 1
    layout = Layout(
        varints=np.empty(length, np.uint64),
        heads=np.empty(HEADS, np.uint8),
        pieces=np.empty(length, np.int32),
        cls_id=0,
        sep_id=0,
        mask_id=0,
        max_seq_length=length,
        max_predictions_per_seq=predictions,
    )
    make_varints(layout.varints)
    make_heads(length, predictions, layout.heads)
    instances = InstanceArrays(
        spans=np.array([[0, 1]]),
        lengths=np.ones((1, 2), np.int32),
        is_random=np.zeros(1, np.uint8),
        mask_ends=np.ones((1, 2), np.int64),
        masks=np.ones(1, np.uint16),
        redrawn=np.zeros(1, np.int32),
    )
    buffer = np.empty(most_record_bytes(length, predictions), np.uint8)
    ids, selection = np.zeros(2, np.int32), np.zeros(1, np.int64)
    serialize_records(layout, ids, instances, selection, buffer, np.empty(1, np.int64))
