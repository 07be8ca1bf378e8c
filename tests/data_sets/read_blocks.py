"""Rows read through a BlockReader, and what they must be: the values of a plain oracle, filled up."""

import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from made_up.rows import MadeUpRows

from maskmill.reading.block_reader import Block, BlockReader, Rows
from maskmill.reading.data_set import DataFile, DataSet, ReadColumn
from maskmill.records.columns import Column

UNTOUCHED = 113  # in rows that nothing was read to


def int_column(name: str, width: int, high: int, **changes: Any) -> ReadColumn:
    """A column of integers from 0 to `high`, of the smallest type."""
    dtype = np.dtype(np.uint8 if high < 1 << 8 else np.uint16 if high < 1 << 16 else np.int32)
    known: dict[str, Any] = {"varies": False, "dtype": dtype, "low": 0, "high": high}
    return ReadColumn(**({"name": name, "feature": name, "width": width} | known | changes))


def float_column(name: str, width: int, **changes: Any) -> ReadColumn:
    """A column of floats from 0 to 1."""
    known: dict[str, Any] = {"varies": False, "dtype": np.dtype(np.float32), "low": 0.0, "high": 1.0}
    return ReadColumn(**({"name": name, "feature": name, "width": width} | known | changes))


def read_columns(columns: Sequence[Column], made: MadeUpRows) -> tuple[ReadColumn, ...]:
    """The columns of made-up rows as they are read."""
    fills = {"input_ids": made.pad_id, "special_tokens_mask": 1, "cu_seqlens": None}
    return tuple(
        ReadColumn(
            name=column.name,
            feature=column.feature,
            width=made.masking.max_seq_length + 1 if column.length is None else column.length,
            varies=column.length is None,
            dtype=column.dtype,
            fill=fills.get(column.feature, 0),
            low=0,
            high=column.largest,
        )
        for column in columns
    )


def data_set_of(
    files: Mapping[str, int], columns: Sequence[ReadColumn], *, format: str = "tfrecord", index: bool = False
) -> DataSet:
    """A data set of files, each with its number of samples. index: they have an index beside them."""
    return DataSet(
        path="set",
        format=format,
        files=tuple(
            DataFile(
                path=path,
                samples=samples,
                size=os.path.getsize(path),
                sha256=None,
                index=f"{path}.idx" if index else None,
                width=8,
            )
            for path, samples in files.items()
        ),
        columns=tuple(columns),
        width=8,
        fingerprint="",
        vocabulary_size=None,
        special_ids={},
        packed=False,
        mask_rules=None,
        predictions=1,
    )


def blocks_of(data_set: DataSet, block_samples: int) -> list[Block]:
    """All blocks of a data set."""
    return [
        Block(number, first, min(block_samples, file.samples - first))
        for number, file in enumerate(data_set.files)
        for first in range(0, file.samples, block_samples)
    ]


def empty_rows(columns: Sequence[ReadColumn], count: int) -> Rows:
    """Rows that are full of UNTOUCHED."""
    rows = Rows(columns, count)
    for array in (*rows.arrays.values(), *rows.counts.values()):
        array[:] = UNTOUCHED  # type: ignore[call-overload]
    return rows


def read_all(reader: BlockReader, data_set: DataSet) -> Rows:
    """All samples of a data set, in the order of its files."""
    rows = empty_rows(data_set.columns, data_set.samples)
    at = 0
    for block in blocks_of(data_set, reader.block_samples):
        wanted = np.arange(block.count)
        reader.decode(reader.fetch(block), block, wanted, wanted + at, rows)
        at += block.count
    return rows


def filled(column: ReadColumn, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """The values of a row as they stand in memory."""
    values = np.asarray(values)
    fill = (values[-1] if len(values) else 0) if column.fill is None else column.fill
    return np.concatenate([values, np.full(column.width - len(values), fill)]).astype(column.dtype)


def assert_row(columns: Sequence[ReadColumn], rows: Rows, n: int, expected: Mapping[str, npt.ArrayLike]) -> None:
    """Compares a row with the values that were written, by the names of their columns."""
    for column in columns:
        values = np.asarray(expected[column.name])
        np.testing.assert_array_equal(rows.arrays[column.feature][n], filled(column, values), strict=True)
        if column.varies:
            assert rows.counts[column.feature][n] == len(values)


def assert_untouched(rows: Rows, n: int) -> None:
    """Nothing was read to a row."""
    for array in (*rows.arrays.values(), *rows.counts.values()):
        assert (array[n] == UNTOUCHED).all()


def assert_any_part(
    draw: random.Random, reader: BlockReader, data_set: DataSet, expected: Callable[[int], Mapping[str, npt.ArrayLike]]
) -> None:
    """Reads some samples of a block to some rows, in any order, and compares them; no other row is touched."""
    block = draw.choice(blocks_of(data_set, reader.block_samples))
    wanted = sorted(draw.sample(range(block.count), draw.randrange(block.count + 1)))
    places = draw.sample(range(block.count + 44), len(wanted))
    rows = empty_rows(data_set.columns, block.count + 44)
    given = np.array(wanted, np.int64), np.array(places, np.int64)
    for array in given:
        array.flags.writeable = False
    reader.decode(reader.fetch(block), block, *given, rows)
    for n in range(block.count + 44):
        if n in places:
            assert_row(data_set.columns, rows, n, expected(block.first + wanted[places.index(n)]))
        else:
            assert_untouched(rows, n)
