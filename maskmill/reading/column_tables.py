"""Tables of columns for the kernels that read rows, and messages about values that are not allowed."""

import math
import weakref
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from maskmill.kernels.memory import exposed_address
from maskmill.reading.block_reader import Rows
from maskmill.reading.data_set import ReadColumn
from maskmill.reading.kernels import column_tables as kernels


class TargetTable:
    """The table of the columns of a data set (kernels/column_tables.py), for any Rows."""

    def __init__(self, columns: Sequence[ReadColumn]) -> None:
        self._columns = columns
        self._last: tuple[weakref.ref[Rows], npt.NDArray[np.int64]] | None = None
        self._table = np.zeros((len(columns), kernels.TARGET), np.int64)
        for line, column in zip(self._table, columns, strict=True):
            line[kernels.VALUE_BYTES] = column.dtype.itemsize
            line[kernels.IS_FLOAT] = is_float(column)
            line[kernels.WIDTH] = column.width
            line[kernels.VARIES] = column.varies
            line[kernels.FILL] = column.fill or 0
            line[kernels.FILLS_WITH_LAST] = column.fill is None
            line[kernels.IS_OPTIONAL] = column.optional
            allowed = np.array(limits(column))
            line[kernels.LOW : kernels.HIGH + 1] = allowed.view(np.int64) if is_float(column) else allowed
            name = column.name.encode()
            line[kernels.NAME_SIZE] = len(name)
            line[kernels.NAME :] = np.frombuffer(name.ljust(kernels.MOST_NAME_BYTES, b"\0"), np.int64)

    def of(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Return int64[columns, TARGET], the table for these rows, which must live while it is used.

        Raises:
          ValueError: the rows do not have arrays for these columns.
        """
        last = self._last
        if last is not None and last[0]() is rows:
            return last[1]
        table = self._table.copy()
        for line, column in zip(table, self._columns, strict=True):
            array = rows.arrays[column.feature]
            if array.dtype != column.dtype or array.shape[1:] != (column.width,) or not array.flags.c_contiguous:
                raise ValueError(
                    f"{column.feature}: rows must have {column.width} values of {column.dtype}, in C order"
                )
            line[kernels.ADDRESS] = exposed_address(array)
            if column.varies:
                line[kernels.COUNTS] = exposed_address(rows.counts[column.feature])
        self._last = (weakref.ref(rows), table)
        return table


def is_float(column: ReadColumn) -> bool:
    """Return whether the values of a column are floats."""
    return column.dtype.kind == "f"


def limits(column: ReadColumn) -> tuple[float, float]:
    """Return the smallest and the largest value that a column allows and its type holds; NaN twice if all floats are
    allowed.
    """
    if not is_float(column):
        info = np.iinfo(column.dtype)
        low = info.min if column.low is None else max(info.min, math.ceil(column.low))
        high = info.max if column.high is None else min(info.max, math.floor(column.high))
        return int(low), int(high)
    if column.low is None and column.high is None:
        return math.nan, math.nan
    return -math.inf if column.low is None else column.low, math.inf if column.high is None else column.high


def wrong_value(column: ReadColumn, values: npt.NDArray[np.int64] | npt.NDArray[np.float32]) -> str:
    """Return a sentence about the first value that a column does not allow; the caller adds the place."""
    low, high = limits(column)
    wrong = values[~((values >= low) & (values <= high))]
    meaning = column.meaning or f"from {low} to {high}"
    worst = f"is {wrong[0].item()}" if len(wrong) else "has a value that is not allowed"
    return f"{column.name} {worst}, but it must be {meaning}."


def wrong_count(column: ReadColumn, count: int) -> str:
    """Return a sentence about a wrong number of values; the caller adds the place."""
    return f"{column.name} has length {count}, but it must be {'at most ' if column.varies else ''}{column.width}."
