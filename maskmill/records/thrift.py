"""Thrift's compact protocol, in which the metadata of Parquet files are written; and its numbers of variable length.

Protocol buffers have the same numbers. Source: apache/thrift, doc/specs/thrift-compact-protocol.md.
"""

from collections.abc import Sequence
from typing import Any

# Types of fields.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_INTEGERS = (I16, I32, I64)
_LONG_LIST = 15
_DOUBLE_BYTES = 8
_MOST_NESTED = 16
_MOST_BYTES = 10  # of a number of 64 bits

Field = tuple[int, int, bytes]  # its id, type and value
Struct = dict[int, Any]


def varint(number: int) -> bytes:
    """A number, not negative, seven bits a byte and the lowest first; each byte but the last has its top bit set."""
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: Sequence[int] | memoryview, at: int) -> tuple[int, int]:
    """The number that `varint` has written at a place of some bytes, and where it ends.

    Raises:
      IndexError: it is cut off.
      ValueError: it has more than 70 bits.
    """
    number = 0
    for shift in range(0, 7 * _MOST_BYTES, 7):
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise ValueError("a number is too long")


def zigzag(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else ~number << 1 | 1)


def i32_field(field: int, number: int) -> Field:
    return field, I32, zigzag(number)


def i64_field(field: int, number: int) -> Field:
    return field, I64, zigzag(number)


def binary_field(field: int, content: bytes) -> Field:
    return field, BINARY, varint(len(content)) + content


def list_field(field: int, kind: int, items: Sequence[bytes]) -> Field:
    size = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([15 << 4 | kind]) + varint(len(items))
    return field, LIST, size + b"".join(items)


def struct(fields: Sequence[Field]) -> bytes:
    """A struct of fields whose ids ascend."""
    out = bytearray()
    last = 0
    for field, kind, value in fields:
        out.append(field - last << 4 | kind)
        out += value
        last = field
    return bytes(out) + b"\0"


def read_struct(data: bytes | memoryview, at: int) -> tuple[Struct, int]:
    """Reads the struct that starts at byte `at`; returns its fields by their ids, and where it ends.

    Integers become int, binaries bytes, lists list, structs dict; doubles are passed over, and are None.

    Raises:
      ValueError: there is no such struct.
    """
    try:
        return _read_struct(data, at, 0)
    except IndexError:
        raise ValueError("a struct is cut off") from None


def _read_struct(data: bytes | memoryview, at: int, depth: int) -> tuple[Struct, int]:
    if depth > _MOST_NESTED:
        raise ValueError("structs are nested too deeply")
    fields: Struct = {}
    field = 0
    while True:
        head = data[at]
        at += 1
        if not head:
            return fields, at
        if head >> 4:
            field += head >> 4
        else:
            field, at = _integer(data, at)
        kind = head & 15
        if kind in (TRUE, FALSE):
            fields[field] = kind == TRUE
        else:
            fields[field], at = _value(data, at, kind, depth)


def _value(data: bytes | memoryview, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """A value that is not the boolean of a field, and where it ends."""
    if kind in _INTEGERS:
        return _integer(data, at)
    if kind == STRUCT:
        return _read_struct(data, at, depth + 1)
    if kind == BINARY:
        size, at = read_varint(data, at)
        if size > len(data) - at:
            raise IndexError
        return bytes(data[at : at + size]), at + size
    if kind in (LIST, SET):
        head = data[at]
        size, at = (head >> 4, at + 1) if head >> 4 < _LONG_LIST else read_varint(data, at + 1)
        items = []
        for _ in range(size):
            item, at = _value(data, at, head & 15, depth + 1)
            items.append(item)
        return items, at
    if kind in (TRUE, FALSE, BYTE):
        return data[at], at + 1
    if kind == DOUBLE:
        return None, at + _DOUBLE_BYTES
    raise ValueError(f"a value of the unknown type {kind}")


def _integer(data: bytes | memoryview, at: int) -> tuple[int, int]:
    number, at = read_varint(data, at)
    return number >> 1 ^ -(number & 1), at
