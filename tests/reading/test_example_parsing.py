"""tf.train.Examples of any shape against google's protobuf library, and what is said of wrong ones."""

import random
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets.read_blocks import assert_row, assert_untouched, data_set_of, empty_rows, float_column, int_column
from hypothesis import given
from hypothesis import strategies as st
from properties import SEEDED, tries

from maskmill.reading.block_reader import Block, DamagedBlockError, Rows
from maskmill.reading.byte_ranges import LocalRanges
from maskmill.reading.column_tables import limits
from maskmill.reading.data_set import ReadColumn
from maskmill.reading.tfrecords import TfRecordReader
from maskmill.records.example_proto import parse_example
from maskmill.records.tfrecord import frame
from maskmill.records.varints import varint

COLUMNS = (
    int_column("b", 60, 100, varies=True, fill=3),
    int_column("cc", 90, 60_000, varies=True, fill=None, optional=True),
    int_column("ccc", 70, 1 << 30, varies=True, low=-5, dtype=np.dtype(np.int32)),
    int_column("d", 70, 1),
    float_column("f", 5, varies=True),
    float_column("g", 2, optional=True, low=None, high=None),
    int_column("a_name_of_16_byte", 40, 65_535, varies=True),
    int_column("ten_bytes_", 33, 20_000, low=1),
)
ROW = 1
# Numbers whose varints have all sizes, at the limits of columns and of what is read several at a time.
NUMBERS = [0, 1, 2, 127, 128, 200, 255, 300, 16_383, 16_384, 60_000, 65_535, 1 << 21, 1 << 30, 1 << 31]
NUMBERS += [-1, -5, -(1 << 63)]


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value % 2**64)


def fixed_field(number: int, value: float) -> bytes:
    return varint(number << 3 | 5) + struct.pack("<f", value)


class Writer:
    """Writes examples in every way that the format allows, from the seed of a generator."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._odd = self._draw.random() < 0.5  # whether what no library writes is written

    def _joined(self, parts: Sequence[bytes]) -> bytes:
        """Fields with unknown ones among them."""
        unknown = [number_field(9, 300), field(7, b"??"), fixed_field(5, 1.0), varint(6 << 3 | 1) + bytes(8)]
        joined = b""
        for part in parts:
            joined += part
            if self._odd and self._draw.random() < 0.2:
                joined += self._draw.choice(unknown)
        return joined

    def _list(self, column: ReadColumn, values: Sequence[Any], is_float: bool) -> bytes:
        """A list whose values are packed, or not, or both."""
        parts = []
        while values:
            count = self._draw.choice([1, len(values), self._draw.randint(1, len(values))])
            some, values = values[:count], values[count:]
            is_packed = self._draw.random() < 0.8
            if is_float:
                parts += (
                    [field(1, struct.pack(f"<{count}f", *some))] if is_packed else [fixed_field(1, v) for v in some]
                )
            else:
                packed = b"".join(varint(v % 2**64) for v in some)
                parts += [field(1, packed)] if is_packed else [number_field(1, v) for v in some]
        return self._joined(parts)

    def _feature(self, column: ReadColumn) -> bytes:
        is_float = column.dtype.kind == "f"
        if self._draw.random() < 0.03:
            is_float = not is_float
        count = self._draw.choice([column.width, self._draw.randint(0, column.width), column.width + 1])
        count = column.width if self._draw.random() < 0.9 else count
        low, high = (0, 1) if is_float else (0, 255) if column.dtype.kind == "f" else limits(column)
        if is_float:
            values: list[Any] = [self._draw.choice([0.0, 1.0, 0.5]) for _ in range(count)]
            wrong = [float("nan"), -1.0, 2.0]
        else:
            fitting = [n for n in NUMBERS if low <= n <= high]
            some = self._draw.choices(fitting, k=self._draw.randint(1, len(fitting)))
            values = [self._draw.choice(some) for _ in range(count)]
            wrong = [*(n for n in NUMBERS if n not in fitting), low - 1, high + 1, high + 1]
        if values and self._draw.random() < 0.06:
            values[self._draw.randrange(count)] = self._draw.choice(wrong)
        number = 2 if is_float else 3
        cut = self._draw.randint(0, count) if self._odd and self._draw.random() < 0.3 else count
        lists = [field(number, self._list(column, part, is_float)) for part in (values[:cut], values[cut:])]
        parts = lists if cut < count else lists[:1]
        if self._odd and self._draw.random() < 0.1:
            parts.insert(0, field(self._draw.choice([1, 2, 3]), b""))
        if self._draw.random() < 0.02:
            parts = []
        return self._joined(parts)

    def _entry(self, column: ReadColumn) -> bytes:
        parts = [field(1, column.name.encode()), field(2, self._feature(column))]
        if self._odd and self._draw.random() < 0.1:
            parts.insert(self._draw.randrange(3), field(2, b""))
        if self._odd and self._draw.random() < 0.05:
            parts.insert(0, field(1, b"another key, which does not count"))
        if self._draw.random() < 0.3:
            self._draw.shuffle(parts)
        return self._joined(parts)

    def example(self) -> bytes:
        columns = [c for c in COLUMNS if self._draw.random() > (0.3 if c.optional else 0.01)]
        others = [
            int_column(name, 9, 255)
            for name in ("", "c", "cd", "ccd", "a_name_of_16_bytE", "A_name_of_16_byte", "ten_bytes+", "another")
        ]
        columns += self._draw.sample(others, self._draw.randrange(4))
        if self._draw.random() < 0.7:
            self._draw.shuffle(columns)
        entries = [field(1, self._entry(column)) for column in columns]
        cut = self._draw.randint(0, len(entries)) if self._odd else 0
        return self._joined([field(1, self._joined(part)) for part in (entries[:cut], entries[cut:])])


def expected_row(record: bytes) -> dict[str, list[Any]] | list[str]:
    """The values of the columns by the protobuf library; or what may be said of the record, if it is wrong.

    Raises:
      ValueError: it is no example.
    """
    features = parse_example(record, strict=False)
    row: dict[str, list[Any]] = {}
    wrong = []
    for column in COLUMNS:
        kind = features[column.name].WhichOneof("kind") if column.name in features else None
        values = list(getattr(features[column.name], str(kind)).value) if kind else []
        is_float = column.dtype.kind == "f"
        low, high = (column.low, column.high) if is_float else limits(column)
        if kind is None and column.optional:
            row[column.name] = []
        elif kind is None:
            wrong.append(f"the feature {column.name} is missing.")
        elif kind != ("float_list" if is_float else "int64_list"):
            wrong.append(f"{column.name} must be {'floats (a float' if is_float else 'integers (an int64'}_list).")
        else:
            outside = [v for v in values if low is not None and high is not None and not low <= v <= high]
            if outside:
                wrong.append(f"{column.name} is {outside[0]}, but it must be from {low} to {high}.")
            if len(values) > column.width or (len(values) < column.width and not column.varies):
                most = "at most " if column.varies else ""
                wrong.append(f"{column.name} has length {len(values)}, but it must be {most}{column.width}.")
            row[column.name] = values
    return wrong or row


def read(record: bytes, folder: Path) -> Rows:
    """A record, read to ROW; nothing is written to the rows beside it."""
    (folder / "x").write_bytes(frame(record))
    data_set = data_set_of({str(folder / "x"): 1}, COLUMNS)
    reader = TfRecordReader(data_set, LocalRanges())
    rows, block = empty_rows(COLUMNS, 3), Block(0, 0, 1)
    try:
        reader.decode(reader.fetch(block), block, np.array([0]), np.array([ROW]), rows)
    finally:
        assert_untouched(rows, ROW - 1)
        assert_untouched(rows, ROW + 1)
    return rows


def assert_expected(rows: Rows, expected: Mapping[str, Sequence[Any]]) -> None:
    lacking = {c.name: np.zeros(0 if c.varies else c.width) for c in COLUMNS if c.optional and not expected[c.name]}
    for column in COLUMNS:
        if column.name in lacking and column.fill is None:
            assert not rows.arrays[column.feature][ROW].any()
    assert_row(COLUMNS, rows, ROW, {**expected, **lacking})


@tries(300, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_examples_are_read_as_the_protobuf_library_reads_them(seed: int, tmp_path: Path) -> None:
    record = Writer(seed).example()
    expected = expected_row(record)
    if isinstance(expected, dict):
        assert_expected(read(record, tmp_path), expected)
        return
    with pytest.raises(DamagedBlockError) as raised:
        read(record, tmp_path)
    assert str(raised.value).removeprefix(f"{tmp_path / 'x'}, record 1: ") in expected


def test_a_feature_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    """No map has one, and the protobuf library would drop the first."""
    entry = field(1, field(1, field(1, b"d") + field(2, field(3, field(1, bytes(70))))))
    records = (Writer(seed).example() for seed in range(1000))
    record = next(record for record in records if isinstance(expected_row(record), dict))
    with pytest.raises(DamagedBlockError, match=r"x, record 1: the feature d is there twice\."):
        read(record + entry, tmp_path)


@pytest.mark.parametrize(
    "feature",
    [
        field(2, field(1, bytes(6))),
        field(2, varint(1 << 3 | 5) + b"??"),
        field(3, field(1, b"\xff")),
        field(3, b"\x08"),
    ],
    ids=["packed floats", "a float", "packed integers", "an integer"],
)
def test_a_list_that_ends_in_the_middle_of_a_value_is_refused(feature: bytes, tmp_path: Path) -> None:
    name = b"f" if feature[0] >> 3 == 2 else b"b"
    record = field(1, field(1, field(1, name) + field(2, feature)))
    with pytest.raises(ValueError, match="cannot be decoded"):
        expected_row(record)
    with pytest.raises(DamagedBlockError, match=r"x, record 1: this is no example \(tf\.train\.Example\)\."):
        read(record, tmp_path)


@pytest.mark.parametrize("place", range(20))
def test_a_number_beyond_the_16_bits_of_a_column_is_named(place: int, tmp_path: Path) -> None:
    """It must not be taken for the largest number of 16 bits, which this column allows."""
    numbers = [7] * 20
    numbers[place] = 65_536
    feature = field(1, b"a_name_of_16_byte") + field(2, field(3, field(1, b"".join(map(varint, numbers)))))
    with pytest.raises(DamagedBlockError, match="a_name_of_16_byte is 65536, but it must be from 0 to 65535"):
        read(field(1, field(1, feature)), tmp_path)


@tries(200, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_bytes_that_are_no_example_are_never_read_as_one(seed: int, tmp_path: Path) -> None:
    """Examples with some bytes changed, dropped or added, under the right checksum."""
    draw = random.Random(seed)
    record = bytearray(Writer(seed).example())
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(record))
        change = draw.choice(["set", "drop", "add", "cut"])
        if change == "set":
            record[place] = draw.choice([0, 1, 8, 10, 127, 128, 255, draw.randrange(256)])
        elif change == "drop":
            del record[place]
        elif change == "add":
            record.insert(place, draw.randrange(256))
        else:
            del record[max(1, len(record) - draw.randrange(9)) :]
    try:
        rows = read(bytes(record), tmp_path)
    except DamagedBlockError:
        return
    try:
        expected = expected_row(bytes(record))
    except ValueError:
        # The library knows more rules: text is UTF-8, field numbers are not 0. What was read keeps to the columns.
        for column in COLUMNS:
            values = rows.arrays[column.feature][ROW]
            assert column.low is None or ((values >= column.low) & (values <= column.high)).all()
        return
    assert isinstance(expected, dict)
    assert_expected(rows, expected)
