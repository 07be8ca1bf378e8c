"""Reads the bytes of Parquet files as records/parquet_format.py writes them: their footers and the pages of columns.

pyarrow takes some 3 times the CPU time for the same lists (benchmarks/parquet_reading.py): it goes through the levels
of every value and looks each up in a dictionary. Here a dictionary holds 0, 1, 2 and so on, so that the indices of
values are the values, and the levels of rows of one length are compared with what they must be. pyarrow may also abort
the process on damaged files. Here each size is checked before it is used.
"""

import dataclasses
import functools
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow

from maskmill.reading.block_reader import DamagedPartError, WrongChecksumError
from maskmill.records import parquet_format as format
from maskmill.records.thrift import Struct, read_struct, read_varint

MAKER = b"maskmill"  # how the name of the program begins that wrote a file
FOOTER_END = 8  # the size of the metadata, and the magic number
_MOST_PAGE_BYTES = 1 << 26  # after unpacking; the writer's pages have about 1 MB
_LEVEL_SIZE_BYTES = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """Where the parts of a file are.

    Attributes:
      rows: int64[groups + 1], the rows before each row group, and of all.
      chunks: int64[groups, columns, 2], where the pages of each column start and end in the file.
      is_float: for each column whether it has float32; otherwise it has integers.
    """

    rows: npt.NDArray[np.int64]
    chunks: npt.NDArray[np.int64]
    is_float: dict[str, bool]


@dataclasses.dataclass(frozen=True)
class Page:
    """The values of some rows of a column.

    values: of all rows; uint8, uint16, int32 or float32. lengths: int64[rows], how many values each row has.
    """

    values: npt.NDArray[Any]
    lengths: npt.NDArray[np.int64]


def footer_size(end: bytes) -> int:
    """The size of a file's metadata, told by its last FOOTER_END bytes, which are not counted.

    Raises:
      DamagedPartError: no Parquet file ends so.
    """
    if len(end) != FOOTER_END or end[4:] != format.MAGIC:
        raise DamagedPartError("it does not end as a Parquet file does")
    return int.from_bytes(end[:4], "little")


def is_of_maskmill(metadata: bytes) -> bool:
    """Whether the metadata of a file say that maskmill wrote it, or say nothing that can be read."""
    try:
        return bytes(read_struct(metadata, 0)[0].get(6, b"")).startswith(MAKER)
    except (ValueError, TypeError):
        return True


def read_layout(metadata: bytes, size: int) -> Layout:
    """Reads the metadata of a file of `size` bytes.

    Raises:
      DamagedPartError: they are not those of a file that maskmill wrote.
    """
    try:
        fields, _ = read_struct(metadata, 0)
        is_float = _columns(fields[2])
        groups = fields[4]
        rows = np.cumsum([0, *(int(group[3]) for group in groups)], dtype=np.int64)
        chunks = np.array([[_extent(chunk[3]) for chunk in group[1]] for group in groups], np.int64)
        chunks = chunks.reshape(len(groups), len(is_float), 2)
    except (ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
        raise DamagedPartError("its metadata are not those of a file that maskmill wrote") from error
    starts, ends = chunks[..., 0], chunks[..., 1]
    if (np.diff(rows) <= 0).any() or (starts < len(format.MAGIC)).any() or (starts > ends).any() or (ends > size).any():
        raise DamagedPartError("its metadata name parts that cannot be")
    return Layout(rows=rows, chunks=chunks, is_float=is_float)


def _columns(schema: Sequence[Struct]) -> dict[str, bool]:
    """The columns by name: lists that are there in every row, of values that are all there."""
    is_float = {}
    for column, repeated, element in zip(schema[1::3], schema[2::3], schema[3::3], strict=True):
        kinds = column[3], repeated[3], element[3]
        if kinds != (format.REQUIRED, format.REPEATED, format.REQUIRED) or repeated[5] != 1:
            raise ValueError("another schema")
        is_float[column[4].decode()] = {format.INT32: False, format.FLOAT: True}[element[1]]
    return is_float


def _extent(chunk: Struct) -> tuple[int, int]:
    """Where the pages of a chunk start and end."""
    if chunk[4] != format.ZSTD:
        raise ValueError("another codec")
    start = int(chunk[11] if 11 in chunk else chunk[9])
    return start, start + int(chunk[7])


def read_pages(chunk: memoryview, codec: pyarrow.Codec, *, is_float: bool) -> Iterator[Page]:
    """Yields the pages of a column of a row group. Each is valid as long as it is held.

    Args:
      chunk: the bytes of all.
      codec: zstd.
      is_float: what the column has.

    Raises:
      DamagedPartError: a page is damaged or is not as maskmill writes it.
    """
    at = 0
    while at < len(chunk):
        try:
            header, start = read_struct(chunk, at)
            kind, size, packed_size, checksum = (header[field] for field in (1, 2, 3, 4))
            at = start + packed_size
            packed = chunk[start:at]
            if packed_size < 0 or len(packed) != packed_size or not 0 <= size <= _MOST_PAGE_BYTES:
                raise DamagedPartError("a page has an impossible size")
            if zlib.crc32(packed) != checksum & 0xFFFFFFFF:
                raise WrongChecksumError("a page does not fit its checksum")
            if kind == format.DICTIONARY_PAGE:
                if not _is_plain_dictionary(bytes(packed), size):
                    raise DamagedPartError("a dictionary is not as maskmill writes it")
                continue
            content = np.frombuffer(codec.decompress(packed, size), np.uint8)
            yield _page(content, header[5], is_float=is_float)
        except DamagedPartError:
            raise
        except (ValueError, KeyError, IndexError, TypeError, OSError) as error:
            raise DamagedPartError("a page is not as maskmill writes it") from error


@functools.lru_cache(maxsize=16)
def _is_plain_dictionary(packed: bytes, size: int) -> bool:
    """Whether a dictionary holds 0, 1, 2 and so on; packed: its page."""
    values = np.frombuffer(pyarrow.Codec("zstd").decompress(packed, size), np.int32)
    return bool((values == np.arange(len(values))).all())


def _page(content: npt.NDArray[np.uint8], header: Struct, *, is_float: bool) -> Page:
    """Reads an unpacked page: its levels, then its values."""
    count = header[1]
    repetition, at = _level_bytes(content, 0)
    definition, at = _level_bytes(content, at)
    lengths = _lengths(repetition, definition, count)
    total = int(lengths.sum())
    if header[2] == format.PLAIN:
        values = _viewed(content[at:], np.float32 if is_float else np.int32)
    elif header[2] == format.RLE_DICTIONARY and not is_float:
        values = _indices(content[at:], total)
    else:
        raise ValueError("another encoding")
    if len(values) != total:
        raise ValueError("levels and values do not fit")
    return Page(values, lengths)


def _level_bytes(content: npt.NDArray[np.uint8], at: int) -> tuple[npt.NDArray[np.uint8], int]:
    """Levels with their size in front, and where they end."""
    start = at + _LEVEL_SIZE_BYTES
    end = start + int.from_bytes(content[at:start].tobytes(), "little")
    if end > len(content):
        raise ValueError("levels are cut off")
    return content[start:end], end


def _run(levels: npt.NDArray[np.uint8]) -> tuple[int, int]:
    """What starts a run, and where its values start."""
    return read_varint(levels.data, 0)


def _zeros(levels: npt.NDArray[np.uint8], count: int) -> npt.NDArray[np.int64]:
    """The places of zeros among `count` levels of one bit; one run of groups of eight."""
    header, at = _run(levels)
    packed = levels[at:]
    if header != len(packed) << 1 | 1 or count > 8 * len(packed):
        raise ValueError("other levels")
    return np.flatnonzero(np.unpackbits(~packed, count=count, bitorder="little").view(np.bool_))


def _lengths(repetition: npt.NDArray[np.uint8], definition: npt.NDArray[np.uint8], count: int) -> npt.NDArray[np.int64]:
    """int64[rows]: how many values each row has, told by its `count` levels.

    Rows of one length are the rule. Their levels are compared as bytes, which takes less time than to go through them.
    """
    if not 0 < count <= 8 * len(repetition):
        raise ValueError("an impossible number of levels")
    first = _first_length(repetition, count)
    if count % first == 0:
        levels, expected = format.levels_of_equal_rows(count // first, first)
        size = len(repetition)
        if (
            levels == count
            and repetition.tobytes() == expected[_LEVEL_SIZE_BYTES : _LEVEL_SIZE_BYTES + size]
            and definition.tobytes() == expected[2 * _LEVEL_SIZE_BYTES + size :]
        ):
            return np.full(count // first, first, np.int64)
    starts = _zeros(repetition, count)
    if not len(starts) or starts[0] != 0:
        raise ValueError("the first row has no start")
    lengths = np.diff(starts, append=count)
    if int(definition[0]) & 1:
        # A row without values has one level, which says so.
        missing = _zeros(definition, count)
        is_empty = np.isin(starts, missing)
        if np.count_nonzero(is_empty) != len(missing) or (lengths[is_empty] != 1).any():
            raise ValueError("values that are missing")
        lengths -= is_empty
    elif _run(definition)[0] != count << 1 or definition[-1] != 1:
        raise ValueError("other levels")
    return lengths


def _first_length(repetition: npt.NDArray[np.uint8], count: int) -> int:
    """How many levels the first row has."""
    _, at = _run(repetition)
    size = 64
    while True:
        bits = np.unpackbits(repetition[at : at + size], bitorder="little")[1:count]
        ends = np.flatnonzero(bits == 0)
        if len(ends):
            return int(ends[0]) + 1
        if at + size >= len(repetition):
            return max(1, count)
        size *= 8


def _indices(content: npt.NDArray[np.uint8], count: int) -> npt.NDArray[Any]:
    """Indices of a dictionary, of 8 or 16 bits: one run of groups of eight."""
    kind: Any = {8: np.uint8, 16: np.uint16}[int(content[0])]
    header, at = _run(content[1:])
    if header != -(-count // 8) << 1 | 1:
        raise ValueError("other indices")
    return _viewed(content[1 + at :], kind)[:count]


def _viewed(content: npt.NDArray[np.uint8], kind: type[np.generic]) -> npt.NDArray[Any]:
    """Bytes as values of a type; copied if they do not lie where the machine wants such values."""
    values = content.view(kind)
    return values if values.flags.aligned else values.copy()
