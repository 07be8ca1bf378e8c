"""Arrays and addresses as kernels see them that run as plain Python (maskmill.kernels.python_mode).

Elements have the type that numba gives them: integers are int64, whatever their array stores, but those of 64 unsigned
bits. A place outside an array raises IndexError, and so does a number that its array cannot hold (OverflowError).

An address is an `Address`: it knows its array, so that it cannot leave it. One that was stored as a number, in a table
of int64, is looked up among those that `exposed_address` gave out.
"""

import functools
import operator
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

_WORD = 0xFFFFFFFFFFFFFFFF
_LEAST_INT64 = -(1 << 63)
_LARGEST_INT64 = (1 << 63) - 1


def _integer(value: int) -> Any:
    return np.int64(value) if _LEAST_INT64 <= value <= _LARGEST_INT64 else np.uint64(value)


def _as_it_is(value: Any) -> Any:
    return value


_IN_REGISTERS: dict[type, Callable[[Any], Any]] = {
    bool: _as_it_is,
    np.bool_: bool,  # NumPy's are not numbers: True + True is True
    int: _integer,
    **dict.fromkeys((np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32), np.int64),
    **dict.fromkeys((np.int64, np.uint64, np.float32, np.float64), _as_it_is),
    float: np.float64,
}


def as_number(value: Any) -> Any:
    """Return a number as numba has it in a register; anything else as it is."""
    return _IN_REGISTERS.get(type(value), _as_it_is)(value)


class CheckedArray(np.ndarray[Any, Any]):
    """An array whose elements have numba's types, and whose places must exist. It shares its array's memory."""

    def __array_finalize__(self, source: Any) -> None:
        """Forget what was known of another array's memory."""
        self._bytes: memoryview | None = None

    def __getitem__(self, key: Any) -> Any:
        element = super().__getitem__(_plain_key(key))
        if isinstance(element, np.ndarray):
            return element
        return Record(element) if isinstance(element, np.void) else as_number(element)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_plain_key(key), _storable(value))

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __str__(self) -> str:
        return str(self.view(np.ndarray))

    @property
    def bytes(self) -> memoryview:
        """The memory, byte by byte."""
        if self._bytes is None:
            self._bytes = self.view(np.ndarray).reshape(-1).view(np.uint8).data
        return self._bytes


class Record:
    """An element of a structured array, by reference."""

    __slots__ = ("_element",)
    _element: np.void

    def __init__(self, element: np.void) -> None:
        object.__setattr__(self, "_element", element)

    def __getattr__(self, name: str) -> Any:
        return as_number(self._element[name])

    def __setattr__(self, name: str, value: Any) -> None:
        self._element[name] = _storable(value)


@functools.total_ordering
class Address:
    """A place in an array: what `address` gives, and what integers are added to."""

    __array_ufunc__ = None  # so that NumPy's integers leave sums to the methods below
    __slots__ = ("array", "offset")

    def __init__(self, array: CheckedArray, offset: int = 0) -> None:
        self.array = array
        self.offset = offset

    def __repr__(self) -> str:
        return f"<byte {self.offset} of {self.array.nbytes} of {self.array.dtype}{list(self.array.shape)}>"

    def __add__(self, distance: Any) -> "Address":
        return Address(self.array, self.offset + operator.index(distance))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Address):
            return np.int64(int(self) - int(other))
        return Address(self.array, self.offset - operator.index(other))

    def __int__(self) -> int:
        return int(self.array.ctypes.data) + self.offset

    __index__ = __int__
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return int(self) == other if not isinstance(other, Address) else int(self) == int(other)

    def __lt__(self, other: Any) -> bool:
        return int(self) < int(other)


class ExposedAddress(int):
    """The number of an address that kernels get in an argument, with the array that it belongs to."""

    array: np.ndarray


_exposed: list[tuple[int, int, "weakref.ref[np.ndarray]"]] = []  # first byte, end, array


def expose(array: np.ndarray) -> ExposedAddress:
    """Return the address of an array as a number, which kernels may find in a table of numbers while the array
    lives.
    """
    number = ExposedAddress(array.ctypes.data)
    number.array = array
    _exposed[:] = [known for known in _exposed if known[2]() is not None]
    _exposed.append((int(number), number + array.nbytes, weakref.ref(array)))
    return number


def _found(number: int) -> Address:
    for start, end, array in reversed(_exposed):
        if start <= number < end and (held := array()) is not None:
            return Address(held.view(CheckedArray), number - start)
    raise IndexError(f"{number:#x} is no address of an array that is alive")


def address(array: CheckedArray) -> Address:
    """Return the address of an array's first element."""
    if not array.flags.c_contiguous:
        raise IndexError("an array with gaps has no address")
    return Address(array)


def _memory(base: Any) -> tuple[memoryview, int]:
    """Return the bytes of an array or of an address's array, and the place there that the base stands for."""
    if isinstance(base, CheckedArray):
        base = address(base)
    if not isinstance(base, Address):
        base = _found(int(base))
    return base.array.bytes, base.offset


def _place(base: Any, offset: int, size: int) -> tuple[memoryview, int]:
    memory, start = _memory(base)
    start += offset
    if not 0 <= start <= len(memory) - size:
        raise IndexError(f"bytes {start} to {start + size} of an array of {len(memory)} bytes")
    return memory, start


def loader(bits: int, scale: int = 1, signed: bool = False) -> Callable[[Any, Any], Any]:
    """Return a function (base, index) that loads an integer."""
    size = bits // 8
    number = np.uint64 if bits == 64 and not signed else np.int64

    def load(base: Any, index: Any) -> Any:
        memory, at = _place(base, scale * operator.index(index), size)
        return number(int.from_bytes(memory[at : at + size], "little", signed=signed))

    return load


def storer(bits: int, scale: int = 1) -> Callable[[Any, Any, Any], None]:
    """Return a function (base, index, value) that stores the lowest bits of an integer."""
    size = bits // 8
    mask = (1 << bits) - 1

    def store(base: Any, index: Any, value: Any) -> None:
        memory, at = _place(base, scale * operator.index(index), size)
        memory[at : at + size] = (operator.index(as_number(value)) & mask).to_bytes(size, "little")

    return store


def copier(size: int) -> Callable[[Any, Any, Any, Any], None]:
    """Return a function (target, at, source, start) that copies bytes."""

    def copy(target: Any, at: Any, source: Any, start: Any) -> None:
        read, first = _place(source, operator.index(start), size)
        written, place = _place(target, operator.index(at), size)
        written[place : place + size] = bytes(read[first : first + size])

    return copy


def least_of_16(base: Any, index: Any) -> np.int64:
    """Return the least of 16 uint32, and the first place that has it: value << 4 | place."""
    memory, at = _place(base, 4 * operator.index(index), 64)
    numbers = memory[at : at + 64].cast("I").tolist()
    least = min(numbers)
    return np.int64(least << 4 | numbers.index(least))


def prefetch(base: Any, offset: Any) -> None:
    """Do nothing."""


def trailing_zeros(word: Any) -> np.int64:
    """Return the number of zero bits below the lowest one bit; 64 where there is none."""
    number = operator.index(word) & _WORD
    return np.int64((number & -number).bit_length() - 1 if number else 64)


def leading_zeros(word: Any) -> np.int64:
    """Return the number of zero bits above the highest one bit; 64 where there is none."""
    return np.int64(64 - (operator.index(word) & _WORD).bit_length())


def _plain_key(key: Any) -> Any:
    """Return an index without numbers below 0, which count from the end; a kernel only means that where it says -1."""
    for one in key if isinstance(key, tuple) else (key,):
        if isinstance(one, np.int64 | int) and one < 0 and not (type(one) is int and one == -1):
            raise IndexError(f"index {one} is below 0")
    return key


def _storable(value: Any) -> Any:
    """Return a number as Python's, which NumPy stores only where it fits."""
    if isinstance(value, np.integer | np.bool_ | Address):
        return int(value)
    return value
