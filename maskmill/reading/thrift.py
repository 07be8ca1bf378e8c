"""Reads structs in Thrift's compact protocol, as the metadata of Parquet files are written.

Source: apache/thrift, doc/specs/thrift-compact-protocol.md.
"""

from typing import Any

from maskmill.records.varints import read_varint

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INTEGERS = (_I16, _I32, _I64)
_LONG_LIST = 15
_DOUBLE_BYTES = 8
_MOST_NESTED = 16

Struct = dict[int, Any]


def read_struct(data: bytes | memoryview, at: int) -> tuple[Struct, int]:
    """Reads the struct that starts at byte `at`; returns its fields by their ids, and where it ends.

    Integers become int, binaries bytes, lists list, structs dict; doubles are passed over, and are None.

    Raises:
      ValueError: there is no such struct.
    """
    try:
        return _struct(data, at, 0)
    except IndexError:
        raise ValueError("a struct is cut off") from None


def _struct(data: bytes | memoryview, at: int, depth: int) -> tuple[Struct, int]:
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
        if kind in (_TRUE, _FALSE):
            fields[field] = kind == _TRUE
        else:
            fields[field], at = _value(data, at, kind, depth)


def _value(data: bytes | memoryview, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """A value that is no field's boolean, and where it ends."""
    if kind in _INTEGERS:
        return _integer(data, at)
    if kind == _STRUCT:
        return _struct(data, at, depth + 1)
    if kind == _BINARY:
        size, at = read_varint(data, at)
        if size > len(data) - at:
            raise IndexError
        return bytes(data[at : at + size]), at + size
    if kind in (_LIST, _SET):
        head = data[at]
        size, at = (head >> 4, at + 1) if head >> 4 < _LONG_LIST else read_varint(data, at + 1)
        items = []
        for _ in range(size):
            item, at = _value(data, at, head & 15, depth + 1)
            items.append(item)
        return items, at
    if kind in (_TRUE, _FALSE, _BYTE):
        return data[at], at + 1
    if kind == _DOUBLE:
        return None, at + _DOUBLE_BYTES
    raise ValueError(f"a value of the unknown type {kind}")


def _integer(data: bytes | memoryview, at: int) -> tuple[int, int]:
    number, at = read_varint(data, at)
    return number >> 1 ^ -(number & 1), at
