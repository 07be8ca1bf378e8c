"""Packed integers of protocol buffers, several at a time.

Integers of up to three bytes, below 2,097,152, are read from words of eight bytes: those that end in the last six bytes
of a word; two more are needed for the start of the first. Which bytes end an integer is a number of eight bits. For
each such number tables tell how many integers end there, and for each of them how far the word is shifted and which of
its bits are taken. So there is no branch on the lengths of integers, which are random, and no step waits for the one
before it. Source of the idea: Plaisance, Kurz, Lemire, Vectorized VByte Decoding (2015).

Arrays
  COUNTS      int64[256]: how many integers end in the last six bytes; MANY_BYTES: one has more than three bytes.
  SHIFTS      uint8[2 * 256, 4]: where each starts, in bits; line k has the first four, line 256 + k the others.
  MASKS       uint32[2 * 256, 4]: its bits, without the top bits of its bytes; 0 where there is no integer.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from maskmill.kernels import kernel, wraps_around
from maskmill.kernels.memory import address, get_i64, get_u32, load_u8, load_u64, store_u16, store_u32, store_u64
from maskmill.kernels.python_mode import intrinsic_or
from maskmill.reading.kernels.column_tables import (
    HIGH,
    LOW,
    OTHER_COUNT,
    OUT_OF_RANGE,
    UNREADABLE,
    VALUE_BYTES,
    WIDTH,
    put_value,
)

MANY_BYTES = 7

_BACK = 2  # bytes of a word in front of those in which integers end
_STEP = 6
_MOST_BYTES = 3  # of an integer that is read with others
_FOUR = 4
_LINES = 256
_WORD = 8
_TOPS = np.uint64(0x8080808080808080)  # the top bit of each byte: set in all bytes of a varint but its last
_GATHER = np.uint64(0x0102040810204080)  # moves the lowest bit of each byte to the highest byte
_LARGEST_16 = 65535


def _make_tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    counts = np.zeros(_LINES, np.int64)
    shifts = np.zeros((2 * _LINES, _FOUR), np.uint8)
    masks = np.zeros((2 * _LINES, _FOUR), np.uint32)
    for line in range(_LINES):
        start = 0
        for byte in range(_WORD):
            if byte - start >= _MOST_BYTES or (byte == _WORD - 1 and not line >> byte & 1 and byte - start >= 2):
                counts[line] = MANY_BYTES
                break
            if line >> byte & 1:
                if byte >= _BACK:
                    at = line + _LINES * (counts[line] // _FOUR), counts[line] % _FOUR
                    shifts[at] = 8 * start
                    masks[at] = 0x7F7F7F7F >> 8 * (_FOUR - 1 - byte + start)
                    counts[line] += 1
                start = byte + 1
    return counts, shifts, masks


COUNTS, SHIFTS, MASKS = _make_tables()


def _put_four(bits: int) -> Any:
    """Return put_four(word, shifts, masks, line, target, n) stores the integers of a line of the tables, and 0 for
    others.

    shifts, masks: the addresses of the tables. target, n: where the values are, and the first place. Values that do
    not fit become the largest.
    """
    four_i8, four_i32, four_i64 = (ir.VectorType(ir.IntType(size), _FOUR) for size in (8, 32, 64))

    def in_python(word: Any, shifts: Any, masks: Any, line: Any, target: Any, n: Any) -> None:
        put = store_u16 if bits == 16 else store_u32
        for k in range(_FOUR):
            part = int(word) >> int(load_u8(shifts, _FOUR * line + k)) & int(get_u32(masks, _FOUR * line + k))
            value = part & 0x7F | part >> 1 & 0x3F80 | part >> 2 & 0x1FC000
            put(target, bits // 8 * (n + k), min(value, (1 << bits) - 1))

    def typed(typingctx: Any, word: Any, shifts: Any, masks: Any, line: Any, target: Any, n: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word, shifts, masks, line, target, n = args
            i32, i64 = ir.IntType(32), ir.IntType(64)

            def place(base: Any, index: Any, size: int, kind: Any) -> Any:
                at = builder.add(base, builder.mul(index, ir.Constant(i64, size)))
                return builder.inttoptr(at, kind.as_pointer())

            def all_four(number: int) -> Any:
                return ir.Constant(four_i32, [number] * _FOUR)

            first = builder.insert_element(ir.Constant(four_i64, ir.Undefined), word, ir.Constant(i32, 0))
            words = builder.shuffle_vector(first, first, ir.Constant(four_i32, None))
            shift = builder.zext(builder.load(place(shifts, line, 4, four_i8), align=1), four_i64)
            mask = builder.load(place(masks, line, 16, four_i32), align=1)
            parts = builder.and_(builder.trunc(builder.lshr(words, shift), four_i32), mask)
            values = builder.and_(parts, all_four(0x7F))
            for drop, kept in ((1, 0x3F80), (2, 0x1FC000)):
                values = builder.or_(values, builder.and_(builder.lshr(parts, all_four(drop)), all_four(kept)))
            if bits < 32:
                largest = all_four((1 << bits) - 1)
                values = builder.select(builder.icmp_unsigned("<", values, largest), values, largest)
                values = builder.trunc(values, ir.VectorType(ir.IntType(bits), _FOUR))
            builder.store(values, place(target, n, bits // 8, values.type), align=1)
            return context.get_dummy_value()

        i = types.int64
        return types.void(types.uint64, i, i, i, i, i), code

    return intrinsic_or(in_python)(typed)


_put_four_16 = _put_four(16)
_put_four_32 = _put_four(32)


@kernel
def varint(data, i, end):
    """Return a varint and the place after it, which is UNREADABLE if it does not end."""
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
@wraps_around
def _several(data, i, end, target, size, n, width):
    """Read integers as long as several can be read at a time; return how many there are then, and the place.

    That may be in the middle of an integer, of which none of the bytes counts.
    """
    shifts, masks = address(SHIFTS), address(MASKS)
    if size == 1:
        while i + _WORD <= end and n + _WORD <= width:
            word = load_u64(data, i)
            if word & _TOPS:
                break
            store_u64(target, n, word)
            n += _WORD
            i += _WORD
        return n, i
    while i + _STEP <= end and n + 2 * _FOUR <= width:
        word = load_u64(data, i - _BACK)
        line = np.int64((((word & _TOPS) ^ _TOPS) >> np.uint64(7)) * _GATHER >> np.uint64(56))
        count = COUNTS[line]
        if count == MANY_BYTES:
            break
        if size == 2:
            _put_four_16(word, shifts, masks, line, target, n)
            if count > _FOUR:
                _put_four_16(word, shifts, masks, line + _LINES, target, n + _FOUR)
        else:
            _put_four_32(word, shifts, masks, line, target, n)
            if count > _FOUR:
                _put_four_32(word, shifts, masks, line + _LINES, target, n + _FOUR)
        n += count
        i += _STEP
    return n, i


@kernel
def integers(data, i, end, column, target, n):
    """Read packed integers after n that are read; return how many there are then, or a negative number.

    data: an address. The byte in front of i, the end of a length or tag, is no part of an integer. Only integers that
    the column's type cannot hold are surely refused: hold the others against `are_integers_allowed`.
    """
    width, size = get_i64(column, WIDTH), get_i64(column, VALUE_BYTES)
    low, high = get_i64(column, LOW), get_i64(column, HIGH)
    # What is too large for 16 bits becomes the largest number of them, which must not be allowed then.
    is_fast = size != 2 or high < _LARGEST_16
    while i < end:
        if is_fast:
            n, i = _several(data, i, end, target, size, n, width)
            while load_u8(data, i - 1) > 127:
                i -= 1
            if i == end:
                break
        value, i = varint(data, i, end)
        if i < 0:
            return np.int64(UNREADABLE)
        if n == width:
            return np.int64(OTHER_COUNT)
        if value < low or value > high:
            return np.int64(OUT_OF_RANGE)
        put_value(target, size, n, value)
        n += 1
    return n
