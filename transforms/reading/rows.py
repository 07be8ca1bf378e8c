"""Rows in memory, as they were read."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from transforms.reading.data_set import ReadColumn


class Rows:
    """Room for rows; readers write to it, batches are made from it.

    Attributes:
      arrays: by feature, [rows, width] of the column's dtype.
      counts: by feature, int32[rows]: how many values each row has without those that fill it up; only of columns
        that vary.
    """

    def __init__(self, columns: Sequence[ReadColumn], rows: int) -> None:
        """Makes room; what is in it is undefined."""
        self.arrays: dict[str, npt.NDArray[np.generic]] = {
            column.feature: np.empty((rows, column.width), column.dtype) for column in columns
        }
        self.counts: dict[str, npt.NDArray[np.int32]] = {
            column.feature: np.zeros(rows, np.int32) for column in columns if column.varies
        }

    def copy(self, other: "Rows", start: int, count: int) -> None:
        """Copies rows [start, start + count) of others with the same columns to the first of these."""
        for arrays, others in ((self.arrays, other.arrays), (self.counts, other.counts)):
            for feature in arrays:
                arrays[feature][:count] = others[feature][start : start + count]
