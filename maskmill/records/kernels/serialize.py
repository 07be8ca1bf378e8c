"""Rows to TFRecords of tf.train.Example.

Records are written from the end of the buffer to its start, the last one first: in a protocol buffer the length of
what follows stands in front of it, and is known only then. So no byte is moved twice. Functions that write take the
place where what they write ends, and return where it starts.

A record is: uint64 length, masked CRC-32C of these 8 bytes, the Example, its masked CRC-32C. An Example has a feature
for each column in the order of their names, each a packed list, so that the same rows always give the same bytes.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.crc32c import masked_crc32c
from maskmill.kernels.memory import (
    address,
    copy_32,
    get_i32,
    get_i64,
    get_u64,
    load_u8,
    put_i32,
    store_u8,
    store_u32,
    store_u64,
)
from maskmill.masking.kernels.rows import RowArrays
from maskmill.records.kernels.frames import HEAD as FRAME_HEAD
from maskmill.records.kernels.frames import TAIL as FRAME_TAIL

_FRAME_LENGTH = 8  # bytes of a record's length, in front of their checksum

# What a column may be, by the feature of records/features.py. The values of the first have all the same size: they are
# 0 or 1, or floats. The others are numbers of variable length.
OF_ONE_SIZE = (
    "input_mask",
    "segment_ids",
    "special_tokens_mask",
    "next_sentence_labels",
    "masked_lm_weights",
    "continuation_mask",
)
FEATURES = (
    *OF_ONE_SIZE,
    "input_ids",
    "masked_lm_ids",
    "masked_lm_positions",
    "cu_seqlens",
    "position_ids",
    "sequence_ids",
)
_INPUT_MASK, _SEGMENT_IDS, _SPECIAL_TOKENS_MASK, _NEXT_SENTENCE_LABELS, _MASKED_LM_WEIGHTS = range(5)
_CONTINUATION_MASK = 5
_INPUT_IDS, _MASKED_LM_IDS, _MASKED_LM_POSITIONS, _CU_SEQLENS, _POSITION_IDS, _SEQUENCE_IDS = range(6, 12)
_NUMBERS = _INPUT_IDS
_WEIGHT = 0x3F800000  # 1.0

# Tags of length-delimited fields: the field's number * 8 + 2.
TAG_1 = 0x0A  # Example.features, an entry of Features.feature, an entry's key, a list's values
TAG_VALUE = 0x12  # an entry's value
TAG_FLOATS = 0x12  # Feature.float_list
TAG_INTS = 0x1A  # Feature.int64_list

# A row of `heads`, and a row of `columns`.
HEAD = 64  # bytes, a multiple of what copy_32 copies
FEATURE = 0  # its place in FEATURES
HEAD_SIZE = 1  # how many bytes of the head are used
IS_FIXED = 2  # whether the head holds all lengths
COLUMN = 3

_COPIED = 32  # bytes, of copy_32


class Layout(NamedTuple):
    """Values that are the same for all records, and scratch memory.

    varints: uint64[size], the variable-length encoding of each number below `size`, against the upper end of the
      word, its length in the lowest byte. `size` exceeds every id, and the width.
    columns: int64[columns, COLUMN], in the order in which a record has them.
    heads: uint8[columns, HEAD], against whose end is what stands in front of the values: all of it where IS_FIXED, else
      the part with the name.
    scratch: int32[width], the values of a column that no array of rows holds.
    cls_id, sep_id: what special_tokens_mask shows. pad_id: what stands after the last piece of a row.
    width: how many values the columns of pieces have in each record. predictions: those of masked positions.
    """

    varints: np.ndarray
    columns: np.ndarray
    heads: np.ndarray
    scratch: np.ndarray
    cls_id: int
    sep_id: int
    pad_id: int
    width: int
    predictions: int


class _Memory(NamedTuple):
    """A Layout, the rows and the buffer for inner functions, which take addresses. See kernels/memory.py.

    The last three are how many values a row of some arrays has.
    """

    varints: int
    columns: int
    heads: int
    scratch: int
    cls_id: int
    sep_id: int
    pad_id: int
    width: int
    predictions: int
    buffer: int
    input_ids: int
    segment_ids: int
    positions: int
    labels: int
    sequence_starts: int
    next_sentence_labels: int
    continues: int
    row_width: int
    row_starts: int
    row_labels: int


class _Row(NamedTuple):
    """A row: its number in the block, its pieces, masked positions and sequences."""

    number: int
    used: int
    masked: int
    members: int


@kernel
def _memory(layout, rows, buffer):
    """Return the addresses of all arrays."""
    return _Memory(
        address(layout.varints),
        address(layout.columns),
        address(layout.heads),
        address(layout.scratch),
        np.int64(layout.cls_id),
        np.int64(layout.sep_id),
        np.int64(layout.pad_id),
        np.int64(layout.width),
        np.int64(layout.predictions),
        address(buffer),
        address(rows.input_ids),
        address(rows.segment_ids),
        address(rows.positions),
        address(rows.labels),
        address(rows.sequence_starts),
        address(rows.next_sentence_labels),
        address(rows.continues),
        np.int64(rows.input_ids.shape[1]),
        np.int64(rows.sequence_starts.shape[1]),
        np.int64(rows.next_sentence_labels.shape[1]),
    )


@kernel
def make_varints(varints):
    """Fill `varints`."""
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
    """Write a variable-length number of any size."""
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
def _put_tag(buffer, at, size, tag):
    """Write the tag and the length of a field whose content of `size` bytes starts at `at`."""
    at = _put_number(buffer, at, size) - 1
    store_u8(buffer, at, tag)
    return at


@kernel
def _put_head(memory, at, end, column):
    """Write what stands in front of a column's values, which are buffer[at:end]."""
    size = get_i64(memory.columns, COLUMN * column + HEAD_SIZE)
    if get_i64(memory.columns, COLUMN * column + IS_FIXED):
        copy_32(memory.buffer, at - 32, memory.heads, HEAD * column + HEAD - 32)
        copy_32(memory.buffer, at - 64, memory.heads, HEAD * column)
        return at - size
    at = _put_tag(memory.buffer, at, end - at, TAG_1)
    at = _put_tag(memory.buffer, at, end - at, TAG_INTS)
    at = _put_number(memory.buffer, at, end - at)
    copy_32(memory.buffer, at - 32, memory.heads, HEAD * column + HEAD - 32)
    at -= size
    return _put_tag(memory.buffer, at, end - at, TAG_1)


@kernel
def _put_bytes(buffer, at, count, value):
    """Write `count` equal bytes."""
    at -= count
    for k in range(at, at + count):
        store_u8(buffer, k, value)
    return at


@kernel
def _put_copied(buffer, at, source, start, count):
    """Write `count` bytes of an array."""
    at -= count
    whole = count - count % _COPIED
    for k in range(0, whole, _COPIED):
        copy_32(buffer, at + k, source, start + k)
    for k in range(whole, count):
        store_u8(buffer, at + k, load_u8(source, start + k))
    return at


@kernel
def _put_numbers(memory, at, source, start, count):
    """Write `count` numbers of an int32 array. Bytes before them are not kept."""
    for k in range(start + count - 1, start - 1, -1):
        word = get_u64(memory.varints, get_i32(source, k))
        store_u64(memory.buffer, at - 8, word)
        at -= np.int64(word & np.uint64(255))
    return at


@kernel
def _put_weights(memory, at, row):
    """Write 1.0 for each masked position, then 0.0."""
    at = _put_bytes(memory.buffer, at, 4 * (memory.predictions - row.masked), 0)
    at -= 4 * row.masked
    for j in range(row.masked):
        store_u32(memory.buffer, at + 4 * j, _WEIGHT)
    return at


@kernel
def _put_special_tokens_mask(memory, at, row):
    """Write 1 for [CLS], [SEP] and padding, by what stood there before masking."""
    at = _put_bytes(memory.buffer, at, memory.width - row.used, 1) - row.used
    start = row.number * memory.row_width
    for j in range(row.used):
        piece = get_i32(memory.input_ids, start + j)
        store_u8(memory.buffer, at + j, (piece == memory.cls_id) | (piece == memory.sep_id))
    start = row.number * memory.predictions
    for m in range(row.masked):
        piece = get_i32(memory.labels, start + m)
        position = get_i32(memory.positions, start + m)
        store_u8(memory.buffer, at + position, (piece == memory.cls_id) | (piece == memory.sep_id))
    return at


@kernel
def _put_column_of_bytes(memory, at, row, feature):
    """Write the values of a column whose values all have the same size."""
    if feature == _INPUT_MASK:
        at = _put_bytes(memory.buffer, at, memory.width - row.used, 0)
        return _put_bytes(memory.buffer, at, row.used, 1)
    if feature == _SEGMENT_IDS:
        return _put_copied(memory.buffer, at, memory.segment_ids, row.number * memory.row_width, memory.width)
    if feature == _NEXT_SENTENCE_LABELS:
        start = row.number * memory.row_labels
        return _put_copied(memory.buffer, at, memory.next_sentence_labels, start, row.members)
    if feature == _CONTINUATION_MASK:
        return _put_copied(memory.buffer, at, memory.continues, row.number * memory.row_width, memory.width)
    if feature == _SPECIAL_TOKENS_MASK:
        return _put_special_tokens_mask(memory, at, row)
    return _put_weights(memory, at, row)


@kernel
def _lay_out_sequences(memory, row, feature):
    """Lay out the values of position_ids or sequence_ids in `scratch`."""
    starts = row.number * memory.row_starts
    for n in range(row.members):
        start = get_i32(memory.sequence_starts, starts + n)
        for j in range(start, get_i32(memory.sequence_starts, starts + n + 1)):
            put_i32(memory.scratch, j, j - start if feature == _POSITION_IDS else n + 1)


@kernel
def _put_column_of_numbers(memory, at, row, feature):
    """Write the values of a column that are numbers of variable length."""
    source = memory.input_ids
    start = row.number * memory.row_width
    count = row.used
    all_values = memory.width
    if feature == _MASKED_LM_IDS or feature == _MASKED_LM_POSITIONS:
        source = memory.labels if feature == _MASKED_LM_IDS else memory.positions
        start = row.number * memory.predictions
        count = row.masked
        all_values = memory.predictions
    elif feature == _CU_SEQLENS:
        source = memory.sequence_starts
        start = row.number * memory.row_starts
        count = row.members + 1
        all_values = count
    elif feature == _INPUT_IDS:
        if memory.pad_id != 0:
            count = memory.width  # the rows are padded with it
    else:
        _lay_out_sequences(memory, row, feature)
        source = memory.scratch
        start = np.int64(0)
    at = _put_bytes(memory.buffer, at, all_values - count, 0)
    return _put_numbers(memory, at, source, start, count)


@kernel
def _put_record(memory, record_end, row, columns):
    """Write a row as a record: the features, the last one first, then the frame."""
    data_end = record_end - FRAME_TAIL
    at = data_end
    for column in range(columns - 1, -1, -1):
        end = at
        feature = get_i64(memory.columns, COLUMN * column + FEATURE)
        if feature < _NUMBERS:
            at = _put_column_of_bytes(memory, end, row, feature)
        else:
            at = _put_column_of_numbers(memory, end, row, feature)
        at = _put_head(memory, at, end, column)
    data = _put_tag(memory.buffer, at, data_end - at, TAG_1)
    at = data - FRAME_HEAD
    store_u64(memory.buffer, at, np.uint64(data_end - data))
    store_u32(memory.buffer, at + _FRAME_LENGTH, masked_crc32c(memory.buffer, at, at + _FRAME_LENGTH))
    store_u32(memory.buffer, data_end, masked_crc32c(memory.buffer, data, data_end))
    return at


@kernel
def serialize_rows(layout, rows, first, end, buffer, record_sizes):
    """Write the rows `first` to `end` of a block as records that end where `buffer` ends; return where they start.

    layout: a Layout. rows: RowArrays; those of features that are no column may have no values.
    buffer: uint8, with room for the records and HEAD bytes before them.
    record_sizes: int64; record_sizes[k] is set to the size of the k-th record, its frame included.
    """
    memory = _memory(layout, rows, buffer)
    columns = len(layout.columns)
    at = len(buffer)
    for number in range(end - 1, first - 1, -1):
        row = _Row(
            np.int64(number),
            np.int64(rows.lengths[number]),
            np.int64(rows.masked[number]),
            np.int64(rows.members[number]),
        )
        record_end = at
        at = _put_record(memory, record_end, row, columns)
        record_sizes[number - first] = record_end - at
    return at


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    width, predictions = 5, 1
    layout = Layout(
        varints=np.empty(width + 1, np.uint64),
        columns=np.empty((0, COLUMN), np.int64),
        heads=np.empty((0, HEAD), np.uint8),
        scratch=np.empty(width, np.int32),
        cls_id=0,
        sep_id=0,
        pad_id=0,
        width=width,
        predictions=predictions,
    )
    make_varints(layout.varints)
    rows = RowArrays(
        input_ids=np.zeros((1, width), np.int32),
        lengths=np.ones(1, np.int32),
        segment_ids=np.zeros((1, width), np.uint8),
        positions=np.zeros((1, predictions), np.int32),
        labels=np.zeros((1, predictions), np.int32),
        masked=np.zeros(1, np.int32),
        sequence_starts=np.zeros((1, 2), np.int32),
        members=np.ones(1, np.int32),
        next_sentence_labels=np.zeros((1, 1), np.uint8),
        continues=np.zeros((1, 0), np.uint8),
    )
    serialize_rows(layout, rows, 0, 1, np.empty(4 * HEAD, np.uint8), np.empty(1, np.int64))
