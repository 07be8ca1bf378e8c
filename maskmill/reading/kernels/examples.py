"""Records of TFRecords to rows: the frames with their checksums, and the tf.train.Examples in them.

An Example is read as the protobuf library reads it: features in any order, lists packed or not; the parts of a list or
message that stand apart are joined, and unknown fields are passed over. What nobody writes is refused: groups, and a
feature that is there twice. Source of the messages: maskmill/records/example_proto.py.

Functions return a negative number (kernels/column_tables.py) where something is wrong. Addresses are handed around, not
arrays, see maskmill/kernels/memory.py: data, of a block; targets, of the table of columns; column, of a line of it.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.crc32c import masked_crc32c
from maskmill.kernels.memory import address, get_i64, load_u8, load_u32, load_u64, store_u32
from maskmill.reading.kernels.column_tables import (
    IS_FLOAT,
    IS_OPTIONAL,
    MISSING,
    NAME,
    NAME_SIZE,
    OTHER_COUNT,
    OTHER_KIND,
    OUT_OF_RANGE,
    REPEATED,
    TARGET,
    UNREADABLE,
    VALUE_BYTES,
    WIDTH,
    are_floats_allowed,
    are_integers_allowed,
    finish_row,
    row_address,
    zero_row,
)
from maskmill.reading.kernels.varints import integers, varint
from maskmill.records.kernels.frames import FRAME, HEAD, TAIL

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

# What `example` returns in place of a column where nothing is wrong: there are features that are no columns, or none.
OTHER_FEATURES = -2
NO_COLUMN = -1

_OTHER = np.int64(1 << MOST_COLUMNS)  # in what tells which columns were seen
_LINE = 8 * TARGET  # bytes of a column's line


@kernel
def _field(data, i, end):
    """Return the tag of a field, and where its content starts and ends; UNREADABLE as the end if there is no field."""
    tag, i = varint(data, i, end)
    wire = tag & 7
    if i < 0:
        return tag, i, np.int64(UNREADABLE)
    if wire == _SIZED:
        size, i = varint(data, i, end)
        return tag, i, (i + size if i > 0 and size >= 0 and size <= end - i else np.int64(UNREADABLE))
    if wire == _VARINT:
        _, behind = varint(data, i, end)
        return tag, i, behind
    size = np.int64(8 if wire == _FIXED_64 else 4)
    is_known = wire == _FIXED_64 or wire == _FIXED_32
    return tag, i, (i + size if is_known and size <= end - i else np.int64(UNREADABLE))


@kernel
def _floats(data, i, end, column, target, n):
    """Read packed floats after n that are read; return how many there are then."""
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
    """Read an Int64List or FloatList after n values that are read; return how many there are then."""
    is_float = get_i64(column, IS_FLOAT)
    one = _TAG_FLOAT if is_float else _TAG_INT
    while i < end and n >= 0:
        tag, start, i = _field(data, i, end)
        if i < 0:
            return i
        if tag == _TAG_1 or tag == one:
            if is_float:
                n = _floats(data, start, i, column, target, n)
            else:
                n = integers(data, start, i, column, target, n)
    return n


@kernel
def _feature(data, i, end, column, target, kind, n):
    """Read a Feature after what is read of it; return the kind of its list (0: none) and the number of values.

    Of lists of several kinds the last counts.
    """
    wanted = np.int64(_FLOATS if get_i64(column, IS_FLOAT) else _INTS)
    while i < end:
        tag, start, i = _field(data, i, end)
        if i < 0:
            return kind, i
        field = tag >> 3
        if tag & 7 == _SIZED and field >= _BYTES and field <= _INTS:
            if field != kind:
                kind = field
                n = np.int64(0)
            if kind == wanted:
                n = _list(data, start, i, column, target, n)
                if n < 0:
                    return kind, n
    return kind, n


@kernel
def _key(data, i, end):
    """Return where the key of an entry starts and ends; an empty one if it has none. UNREADABLE if the entry is no
    message.
    """
    first = i
    last = i
    while i < end:
        tag, start, i = _field(data, i, end)
        if i < 0:
            return i, i
        if tag == _TAG_1:
            first = start
            last = i
    return first, last


@kernel
def _is_name(data, start, size, name):
    """Return whether a name of `size` bytes stands there; name: its address."""
    if size < 8:
        for k in range(size):
            if load_u8(data, start + k) != load_u8(name, k):
                return False
        return True
    for k in range(0, size - 7, 8):
        if load_u64(data, start + k) != load_u64(name, k):
            return False
    return load_u64(data, start + size - 8) == load_u64(name, size - 8)


@kernel
def _column_of(data, start, stop, targets, columns, guess):
    """Return the number of the column with the name that stands there, -1 if there is none. The guess is tried
    first.
    """
    for k in range(columns):
        place = guess + k
        if place >= columns:
            place -= columns
        column = targets + place * _LINE
        if get_i64(column, NAME_SIZE) == stop - start and _is_name(data, start, stop - start, column + 8 * NAME):
            return place
    return np.int64(-1)


@kernel
def _entry_values(data, i, end, column, target):
    """Read the values of an entry to a row; return their number."""
    kind = np.int64(0)
    n = np.int64(0)
    while i < end:
        tag, start, i = _field(data, i, end)  # _key came by here, so this is a message
        if tag == _TAG_VALUE:
            kind, n = _feature(data, start, i, column, target, kind, n)
            if n < 0:
                return n
    if kind == 0:
        return np.int64(MISSING)
    if kind != (_FLOATS if get_i64(column, IS_FLOAT) else _INTS):
        return np.int64(OTHER_KIND)
    return n


@kernel
def _entry(data, i, end, row, targets, columns, guess):
    """Read an entry of the map of features; return its column (-1: not wanted) and its count, negative if wrong."""
    start, stop = _key(data, i, end)
    if start < 0:
        return np.int64(-1), start
    place = _column_of(data, start, stop, targets, columns, guess)
    if place < 0:
        return place, np.int64(0)
    column = targets + place * _LINE
    target = row_address(column, row)
    count = _entry_values(data, i, end, column, target)
    if count == MISSING and get_i64(column, IS_OPTIONAL):
        zero_row(column, row)
        return place, np.int64(0)
    if count < 0:
        return place, count
    if get_i64(column, IS_FLOAT):
        is_allowed = are_floats_allowed(column, target, count)
    else:
        is_allowed = are_integers_allowed(column, target, get_i64(column, VALUE_BYTES), count)
    if not is_allowed:
        return place, np.int64(OUT_OF_RANGE)
    return place, finish_row(column, row, count)


@kernel
def _features(data, i, end, row, targets, columns, seen):
    """Read the map of features to a row; return which columns were seen, or the column and why it is wrong."""
    guess = np.int64(0)
    while i < end:
        tag, start, i = _field(data, i, end)
        if i < 0:
            return seen, np.int64(-1), i
        if tag == _TAG_1:
            place, count = _entry(data, start, i, row, targets, columns, guess)
            if count < 0:
                return seen, place, count
            if place >= 0:
                if seen >> place & 1:
                    return seen, place, np.int64(REPEATED)
                seen |= np.int64(1) << place
                guess = place + 1
            else:
                seen |= _OTHER
    return seen, np.int64(-1), np.int64(0)


@kernel
def example(data, i, end, row, targets, columns):
    """Read an Example to a row; return the column that is wrong, if one is, and why it is: a negative number.

    Where nothing is wrong, it returns OTHER_FEATURES or NO_COLUMN, and 0.
    """
    seen = np.int64(0)
    while i < end:
        tag, start, i = _field(data, i, end)
        if i < 0:
            return np.int64(-1), i
        if tag == _TAG_1:
            seen, place, why = _features(data, start, i, row, targets, columns, seen)
            if why < 0:
                return place, why
    for place in range(columns):
        if not seen >> place & 1:
            column = targets + place * _LINE
            if not get_i64(column, IS_OPTIONAL):
                return place, np.int64(MISSING)
            zero_row(column, row)
    return np.int64(OTHER_FEATURES if seen & _OTHER else NO_COLUMN), np.int64(0)


@kernel
def read_examples(data, count, wanted, rows, targets):
    """Read examples of a block to rows.

    data: uint8, records with their frames, the first at byte 0. count: how many they are. wanted: int64[n], ascending,
    which of them to read. rows: int64[n], the row for each. targets: kernels/column_tables.py.

    Returns how the reading ended, the record and where it starts; for BAD_EXAMPLE also the column (-1: none) and why.
    """
    base = address(data)
    table = address(targets)
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
            # The data first, the checksum after it then: so memory is read in its order.
            if masked_crc32c(base, start, start + length) != load_u32(base, start + length):
                return BAD_DATA, record, i, np.int64(-1), np.int64(0)
            column, why = example(base, start, start + length, rows[k], table, len(targets))
            if why < 0:
                return BAD_EXAMPLE, record, i, column, why
            k += 1
        i = start + length + TAIL
    return (DONE if i == size else OTHER_END), count, i, np.int64(-1), np.int64(0)


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    none = np.empty(0, np.int64)
    read_examples(np.empty(0, np.uint8), 0, none, none, np.empty((0, TARGET), np.int64))
