"""Records of TFRecords to rows: the frames with their checksums, and the tf.train.Examples in them.

An Example is read as the protobuf library reads it: features in any order, lists packed or not; the parts of a list or
message that stand apart are joined, and unknown fields are passed over. What nobody writes is refused: groups, and a
feature that is there twice. Source of the messages: transforms/records/example_proto.py.

Functions return the place behind what they read, or a negative number (kernels/targets.py).

Arrays
  data        uint8: records with their frames, the first at byte 0.
  names       uint8[columns, NAME]: what columns are called, filled up with zeros; name_sizes int64[columns].
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from transforms.kernels import kernel
from transforms.kernels.crc32c import masked_crc32c
from transforms.kernels.memory import address, get_i64, load_u8, load_u32, load_u64, store_u32, store_u64
from transforms.loading.kernels.targets import (
    HIGH,
    IS_FLOAT,
    IS_OPTIONAL,
    LIMIT,
    LOW,
    MISSING,
    OTHER_COUNT,
    OTHER_KIND,
    OUT_OF_RANGE,
    REPEATED,
    TARGET,
    UNREADABLE,
    VALUE_BYTES,
    WIDTH,
    Targets,
    are_floats_allowed,
    finish_row,
    put_value,
    row_address,
    zero_row,
)
from transforms.records.kernels.frames import FRAME, HEAD, TAIL

NAME = 64  # most bytes of a name
MOST_COLUMNS = 62  # bits of what tells which were seen

# How the reading of a block ends.
DONE = 0
BAD_LENGTH = 1  # the checksum of a record's length is wrong, or it goes beyond the block
BAD_DATA = 2  # the checksum of a record's data is wrong
OTHER_END = 3  # the last record does not end where the block ends
BAD_EXAMPLE = 4  # an example is not what it should be

# Wire types, the lowest three bits of a tag.
_VARINT = 0
_FIXED_64 = 1
_SIZED = 2
_FIXED_32 = 5

# Tags: the number of a field * 8 + its wire type.
_TAG_1 = 8 + _SIZED  # Example.features, Features.feature, an entry's key, a list's packed values
_TAG_VALUE = 16 + _SIZED  # an entry's value
_TAG_INT = 8 + _VARINT  # a value of a list that is not packed
_TAG_FLOAT = 8 + _FIXED_32

# Fields of Feature.
_BYTES = 1
_FLOATS = 2
_INTS = 3

_TOPS = np.uint64(0x8080808080808080)  # the top bit of each byte: set in all bytes of a varint but its last
_TWO_BYTES_EACH = np.uint64(0x0080008000800080)  # these bits of four varints of two bytes
_ONES = np.uint64(0x0101010101010101)
_ONES_16 = np.uint64(0x0001000100010001)
_TOPS_16 = np.uint64(0x8000800080008000)


@kernel
def _varint(data, i, end):
    """A varint and the place behind it, which is UNREADABLE if it does not end."""
    value = np.int64(0)
    shift = np.int64(0)
    while i < end and shift < 70:
        byte = load_u8(data, i)
        i += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, i
        shift += 7
    return np.int64(0), np.int64(UNREADABLE)


@kernel
def _sized(data, i, end):
    """Where the content of a field ends whose size stands at i, and where it starts."""
    size, i = _varint(data, i, end)
    if i < 0 or size < 0 or size > end - i:
        return np.int64(UNREADABLE), i
    return i + size, i


@kernel
def _behind(data, tag, i, end):
    """The place behind a field whose content starts at i."""
    wire = tag & 7
    if wire == _SIZED:
        i, _ = _sized(data, i, end)
        return i
    if wire == _VARINT:
        _, i = _varint(data, i, end)
        return i
    if wire == _FIXED_64:
        i += 8
    elif wire == _FIXED_32:
        i += 4
    else:
        return np.int64(UNREADABLE)
    return i if i <= end else np.int64(UNREADABLE)


@kernel
def _spread_8(four):
    """Four bytes as the lower halves of four numbers of 16 bits."""
    four = (four | (four << np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return (four | (four << np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)


@kernel
def _integers(data, i, end, column, target, n):
    """Reads packed integers behind n that are read; returns how many there are then.

    Where numbers of one byte or of two come together, eight or four are read at a time: padding, masks, most ids.
    """
    width, size = get_i64(column, WIDTH), get_i64(column, VALUE_BYTES)
    low, high = get_i64(column, LOW), get_i64(column, HIGH)
    # Added to a number of one byte (two bytes), these set its top bit if it is too high; none can be too low.
    room = np.uint64(max(0, 127 - max(high, 0))) * _ONES
    room_16 = np.uint64(max(0, 32767 - max(high, 0))) * _ONES_16
    together = end - 8 if low <= 0 else np.int64(0)
    over = np.uint64(0)
    over_16 = np.uint64(0)
    while i < end:
        if i <= together and n + 8 <= width and size <= 2:
            word = load_u64(data, i)
            tops = word & _TOPS
            if tops == 0:
                over |= word + room
                if size == 1:
                    store_u64(target, n, word)
                else:
                    store_u64(target, 2 * n, _spread_8(word & np.uint64(0xFFFFFFFF)))
                    store_u64(target, 2 * n + 8, _spread_8(word >> np.uint64(32)))
                n += 8
                i += 8
                continue
            if tops == _TWO_BYTES_EACH and size == 2:
                four = (word & np.uint64(0x007F007F007F007F)) | ((word >> np.uint64(1)) & np.uint64(0x3F803F803F803F80))
                over_16 |= four + room_16
                store_u64(target, 2 * n, four)
                n += 4
                i += 8
                continue
        value, i = _varint(data, i, end)
        if i < 0:
            return np.int64(UNREADABLE)
        if n == width:
            return np.int64(OTHER_COUNT)
        if value < low or value > high:
            return np.int64(OUT_OF_RANGE)
        put_value(target, size, n, value)
        n += 1
    if over & _TOPS or over_16 & _TOPS_16:
        return np.int64(OUT_OF_RANGE)
    return n


@kernel
def _floats(data, i, end, column, target, n):
    """Reads packed floats behind n that are read; returns how many there are then."""
    if (end - i) % 4:
        return np.int64(UNREADABLE)
    if n + (end - i) // 4 > get_i64(column, WIDTH):
        return np.int64(OTHER_COUNT)
    for k in range(i, end, 4):
        store_u32(target, 4 * n, load_u32(data, k))
        n += 1
    return n


@kernel
def _list(data, i, end, column, target, n):
    """Reads an Int64List or FloatList behind n values that are read; returns how many there are then."""
    is_float = get_i64(column, IS_FLOAT)
    one = _TAG_FLOAT if is_float else _TAG_INT
    while i < end and n >= 0:
        tag, i = _varint(data, i, end)
        if i < 0:
            return i
        behind = _behind(data, tag, i, end)
        if behind < 0:
            return behind
        if tag == _TAG_1:
            _, i = _sized(data, i, end)
        if tag == _TAG_1 or tag == one:
            if is_float:
                n = _floats(data, i, behind, column, target, n)
            else:
                n = _integers(data, i, behind, column, target, n)
        i = behind
    return n


@kernel
def _feature(data, i, end, column, target, kind, n):
    """Reads a Feature behind what is read of it; returns the kind of its list (0: none) and the number of values.

    Of lists of several kinds the last counts.
    """
    wanted = np.int64(_FLOATS if get_i64(column, IS_FLOAT) else _INTS)
    while i < end:
        tag, i = _varint(data, i, end)
        if i < 0:
            return kind, i
        behind = _behind(data, tag, i, end)
        if behind < 0:
            return kind, behind
        field = tag >> 3
        if tag & 7 == _SIZED and field >= _BYTES and field <= _INTS:
            if field != kind:
                kind = field
                n = np.int64(0)
            if kind == wanted:
                _, i = _sized(data, i, end)
                n = _list(data, i, behind, column, target, n)
                if n < 0:
                    return kind, n
        i = behind
    return kind, n


@kernel
def _key(data, i, end):
    """Where the key of an entry starts and ends; an empty one if it has none. UNREADABLE if the entry is no message."""
    start = i
    stop = i
    while i < end:
        tag, i = _varint(data, i, end)
        if i < 0:
            return i, i
        behind = _behind(data, tag, i, end)
        if behind < 0:
            return behind, behind
        if tag == _TAG_1:
            stop, start = _sized(data, i, end)
        i = behind
    return start, stop


@kernel
def _is_name(data, start, size, names, column):
    """Whether the name of a column stands there; `size` is that of the name."""
    line = names + column * NAME
    for k in range(size):
        if load_u8(data, start + k) != load_u8(line, k):
            return False
    return True


@kernel
def _column_of(data, start, stop, names, name_sizes, columns, guess):
    """The column with the name that stands there, -1 if there is none. The guess is tried first."""
    size = stop - start
    for k in range(columns):
        column = guess + k
        if column >= columns:
            column -= columns
        if get_i64(name_sizes, column) == size and _is_name(data, start, size, names, column):
            return column
    return np.int64(-1)


@kernel
def _entry_values(data, i, end, column, row):
    """Reads the values of an entry to a row; returns their number."""
    kind = np.int64(0)
    n = np.int64(0)
    target = row_address(column, row)
    while i < end:
        tag, i = _varint(data, i, end)
        behind = _behind(data, tag, i, end)  # _key came by here, so this is a message
        if tag == _TAG_VALUE:
            _, i = _sized(data, i, end)
            kind, n = _feature(data, i, behind, column, target, kind, n)
            if n < 0:
                return n
        i = behind
    if kind == 0:
        return np.int64(MISSING)
    if kind != (_FLOATS if get_i64(column, IS_FLOAT) else _INTS):
        return np.int64(OTHER_KIND)
    return n


@kernel
def _entry(data, i, end, row, targets, names, name_sizes, guess):
    """Reads an entry of the map of features; returns its column (-1: not wanted) and its count, negative if wrong."""
    integers, limits = address(targets.integers), targets.floats
    start, stop = _key(data, i, end)
    if start < 0:
        return np.int64(-1), start
    place = _column_of(data, start, stop, names, name_sizes, len(limits), guess)
    if place < 0:
        return place, np.int64(0)
    column = integers + 8 * TARGET * place
    count = _entry_values(data, i, end, column, row)
    if count == MISSING and get_i64(column, IS_OPTIONAL):
        zero_row(column, row)
        return place, np.int64(0)
    if count < 0:
        return place, count
    if get_i64(column, IS_FLOAT) and not are_floats_allowed(column, limits[place], row, count):
        return place, np.int64(OUT_OF_RANGE)
    return place, finish_row(column, row, count)


@kernel
def _example(data, i, end, row, targets, names, name_sizes):
    """Reads an Example to a row; returns the column that is wrong, if one is, and why it is: a negative number."""
    columns = len(targets.integers)
    seen = np.int64(0)
    guess = np.int64(0)
    while i < end:
        tag, i = _varint(data, i, end)
        if i < 0:
            return np.int64(-1), i
        behind = _behind(data, tag, i, end)
        if behind < 0:
            return np.int64(-1), behind
        if tag == _TAG_1:
            _, i = _sized(data, i, end)
            while i < behind:
                tag, i = _varint(data, i, behind)
                if i < 0:
                    return np.int64(-1), i
                after = _behind(data, tag, i, behind)
                if after < 0:
                    return np.int64(-1), after
                if tag == _TAG_1:
                    _, i = _sized(data, i, behind)
                    column, count = _entry(data, i, after, row, targets, names, name_sizes, guess)
                    if count < 0:
                        return column, count
                    if column >= 0:
                        if seen >> column & 1:
                            return column, np.int64(REPEATED)
                        seen |= np.int64(1) << column
                        guess = column + 1
                i = after
        i = behind
    for column in range(columns):
        if not seen >> column & 1:
            if not targets.integers[column, IS_OPTIONAL]:
                return column, np.int64(MISSING)
            zero_row(address(targets.integers) + 8 * TARGET * column, row)
    return np.int64(-1), np.int64(0)


@kernel
def read_examples(data, count, wanted, rows, targets, names, name_sizes):
    """Reads examples of a block to rows.

    data: the block. count: how many records it has. wanted: int64[n], ascending, which of them to read. rows: int64[n],
    the row for each. targets: kernels/targets.py.

    Returns how the reading ended, the record and where it starts; for BAD_EXAMPLE also the column (-1: none) and why.
    """
    base = address(data)
    size = len(data)
    i = np.int64(0)
    k = 0
    for record in range(count):
        if i + FRAME > size or load_u32(base, i + HEAD - 4) != masked_crc32c(base, i, i + HEAD - 4):
            return BAD_LENGTH, record, i, np.int64(-1), np.int64(0)
        length = np.int64(load_u64(base, i))
        if length < 0 or length > size - i - FRAME:
            return BAD_LENGTH, record, i, np.int64(-1), np.int64(0)
        start = i + HEAD
        if k < len(wanted) and wanted[k] == record:
            if load_u32(base, start + length) != masked_crc32c(base, start, start + length):
                return BAD_DATA, record, i, np.int64(-1), np.int64(0)
            column, why = _example(base, start, start + length, rows[k], targets, address(names), address(name_sizes))
            if why < 0:
                return BAD_EXAMPLE, record, i, column, why
            k += 1
        i = start + length + TAIL
    return (DONE if i == size else OTHER_END), count, i, np.int64(-1), np.int64(0)


def warm_up() -> None:
    """Compiles the entry kernels of this module."""
    none = np.empty(0, np.int64)
    targets = Targets(np.empty((0, TARGET), np.int64), np.empty((0, LIMIT), np.float64))
    read_examples(np.empty(0, np.uint8), 0, none, none, targets, np.empty((0, NAME), np.uint8), none)
