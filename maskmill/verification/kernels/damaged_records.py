"""Records of a TFRecord to rows, one after the other, as far as they are whole; and the way back behind damage."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.crc32c import masked_crc32c
from maskmill.kernels.memory import address, load_u8, load_u32, load_u64
from maskmill.reading.kernels.column_tables import TARGET
from maskmill.reading.kernels.examples import OTHER_FEATURES, example
from maskmill.records.kernels.frames import FRAME, HEAD, TAIL

# How the reading of a run ends.
INCOMPLETE = 0  # the data ends, inside a record or behind the last
FULL = 1  # there is no room for another row
BAD_LENGTH = 2  # the checksum of a record's length is wrong
BAD_DATA = 3  # the checksum of a record's data is wrong
BAD_EXAMPLE = 4  # a record's example is not what it should be

_LENGTH = 8  # bytes of a record's length, the first of its head
MOST_RECORD_BYTES = 1 << 31  # TensorFlow itself reads no larger protocol buffer


@kernel
def _length(base, i):
    """Whether the length that the head of a record tells fits its checksum, and the length."""
    length = np.int64(load_u64(base, i))
    fits = load_u32(base, i + _LENGTH) == masked_crc32c(base, i, i + _LENGTH)
    return fits and 0 <= length <= MOST_RECORD_BYTES, length


@kernel
def read_run(data, start, record, row, numbers, places, targets):
    """Reads records to rows until one is damaged, the rows are full, or the data ends.

    data: uint8, a part of a file. start: where a record starts in it. record: its number. row: the first row to fill.
    numbers, places: int64[rows], take the number of the record of each row, and where it starts in the data: ~place, if
    it has features that are not columns. targets: reading/kernels/column_tables.py.

    Returns how it ended, the place and number of the record that is next, or damaged; the row behind the last; how many
    bytes a damaged or incomplete record has with its frame (at least); of an example the column (-1: none), and why.
    """
    base, table, size, none = address(data), address(targets), len(data), np.int64(-1)
    i = np.int64(start)
    while i + HEAD <= size:
        is_right, length = _length(base, i)
        if not is_right:
            return BAD_LENGTH, i, record, row, np.int64(HEAD), none, np.int64(0)
        if length > size - i - FRAME:
            return INCOMPLETE, i, record, row, length + FRAME, none, np.int64(0)
        if row == len(numbers):
            return FULL, i, record, row, length + FRAME, none, np.int64(0)
        at = i + HEAD
        if masked_crc32c(base, at, at + length) != load_u32(base, at + length):
            return BAD_DATA, i, record, row, length + FRAME, none, np.int64(0)
        column, why = example(base, at, at + length, row, table, len(targets))
        if why < 0:
            return BAD_EXAMPLE, i, record, row, length + FRAME, column, why
        numbers[row] = record
        places[row] = ~i if column == OTHER_FEATURES else i
        row += 1
        record += 1
        i = at + length + TAIL
    return INCOMPLETE, i, record, row, np.int64(HEAD), none, np.int64(0)


@kernel
def find_record(data, start):
    """Whether a record may start from `start` on, where a length fits its checksum, and the first such place."""
    base = address(data)
    for i in range(start, len(data) - HEAD + 1):
        # No record has 2**32 bytes: this tells most places apart without a checksum.
        if load_u32(base, i + 4) == 0 and load_u8(base, i + 3) < 128 and _length(base, i)[0]:
            return True, i
    return False, len(data)


def warm_up() -> None:
    """Compiles the entry kernels of this module."""
    data, numbers = np.zeros(HEAD, np.uint8), np.empty(0, np.int64)
    read_run(data, 0, 0, 0, numbers, numbers, np.empty((0, TARGET), np.int64))
    find_record(data, 0)
