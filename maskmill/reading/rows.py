"""Rows in memory, as they were read."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.reading.data_set import ReadColumn


class Rows:
    """Room for rows; readers write to it, batches are made from it.

    Attributes:
      room: how many rows there is room for.
      arrays: by feature, [rows, width] of the column's dtype.
      counts: by feature, int32[rows]: how many values each row has without those that fill it up; only of columns
        that vary.
    """

    def __init__(self, columns: Sequence[ReadColumn], rows: int) -> None:
        """Makes room; what is in it is undefined."""
        self.room = rows
        self._columns = columns
        self.arrays: dict[str, npt.NDArray[np.generic]] = {
            column.feature: np.empty((rows, column.width), column.dtype) for column in columns
        }
        self.counts: dict[str, npt.NDArray[np.int32]] = {
            column.feature: np.zeros(rows, np.int32) for column in columns if column.varies
        }

    def first(self, count: int, *, room: int | None = None) -> "Rows":
        """A copy of the first `count` rows, with room for more; None: for no more."""
        rows = Rows(self._columns, count if room is None else room)
        for arrays, others in ((rows.arrays, self.arrays), (rows.counts, self.counts)):
            for feature in arrays:
                arrays[feature][:count] = others[feature][:count]
        return rows

    def move(self, start: int, stop: int) -> None:
        """Makes rows [start, stop) the first ones."""
        for arrays in (self.arrays, self.counts):
            for array in arrays.values():
                array[: stop - start] = array[start:stop]

    def original_pieces(self, which: Any, feature: str = "input_ids") -> npt.NDArray[np.int32]:
        """int32[n, width]: the pieces of some rows, the stored masks undone, in an array of its own.

        A mask at a place that no row has is left out: a damaged row may name one.

        Args:
          which: n rows, as NumPy takes them: a slice or int64[n].
          feature: the column of the pieces.
        """
        arrays = self.arrays
        pieces = np.array(arrays[feature][which], np.int32)
        if "masked_lm_positions" in arrays and "masked_lm_ids" in arrays:
            positions = arrays["masked_lm_positions"][which].astype(np.int64)
            is_mask = positions < pieces.shape[1]
            if "masked_lm_weights" in arrays:
                is_mask &= np.not_equal(arrays["masked_lm_weights"][which], 0)
            row, mask = np.nonzero(is_mask)
            pieces[row, positions[row, mask]] = arrays["masked_lm_ids"][which][row, mask]
        return pieces

    def put_zeros(self, column: ReadColumn, rows: npt.NDArray[np.int64]) -> None:
        """Writes what rows have of an optional column that their file lacks."""
        self.arrays[column.feature][rows] = 0
        if column.varies:
            self.counts[column.feature][rows] = 0
