"""How samples are read: a block at a time, first its bytes, then the rows in them that are wanted, to memory."""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.data_set import DataSet, ReadColumn


class Rows:
    """Room for rows; readers write to it, batches are made from it.

    Attributes:
      room: how many rows there is room for.
      arrays: by feature, [rows, width] of the column's dtype.
      counts: by feature, int32[rows]: how many values each row has without those that fill it up; only of columns
        that vary.
    """

    def __init__(self, columns: Sequence[ReadColumn], rows: int) -> None:
        """Make room; what is in it is undefined."""
        self.room = rows
        self._columns = columns
        self.arrays: dict[str, npt.NDArray[np.generic]] = {
            column.feature: np.empty((rows, column.width), column.dtype) for column in columns
        }
        self.counts: dict[str, npt.NDArray[np.int32]] = {
            column.feature: np.zeros(rows, np.int32) for column in columns if column.varies
        }

    def first(self, count: int, *, room: int | None = None) -> "Rows":
        """Return a copy of the first `count` rows, with room for more; None: for no more."""
        rows = Rows(self._columns, count if room is None else room)
        for arrays, others in ((rows.arrays, self.arrays), (rows.counts, self.counts)):
            for feature in arrays:
                arrays[feature][:count] = others[feature][:count]
        return rows

    def move(self, start: int, stop: int) -> None:
        """Make rows [start, stop) the first ones."""
        for arrays in (self.arrays, self.counts):
            for array in arrays.values():
                array[: stop - start] = array[start:stop]

    def original_pieces(self, which: Any, feature: str = "input_ids") -> npt.NDArray[np.int32]:
        """Return int32[n, width]: the pieces of some rows, the stored masks undone, in an array of its own.

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
        """Write what rows have of an optional column that their file lacks."""
        self.arrays[column.feature][rows] = 0
        if column.varies:
            self.counts[column.feature][rows] = 0


@dataclasses.dataclass(frozen=True)
class Block:
    """Neighbouring samples of a file: file is its place in DataSet.files, first and count are samples within it."""

    file: int
    first: int
    count: int


class DamagedBlockError(UnusableInputError):
    """The bytes of a block are not what they should be; if they came over a network, they are fetched once more.

    Attributes:
      feature: of the column whose values are not allowed; None: something else is wrong.
    """

    def __init__(self, message: str, *, feature: str | None = None) -> None:
        super().__init__(message)
        self.feature = feature


class WrongChecksumError(ValueError):
    """A part of a file does not fit its checksum."""


class OtherColumnsError(DamagedBlockError):
    """A file does not have the columns of its data set."""


class BlockReader(abc.ABC):
    """Reads the files of a data set. One for each format.

    Attributes:
      block_samples: the most samples of a block. All blocks of a file but its last have as many.
      makes_rows: whether rows are made when they are read, which takes longer than to copy them.
      kernels: the compiled code that it needs beside that of every format, as compiler.chosen_modules names it.
    """

    block_samples: int
    makes_rows = False
    kernels: tuple[str, ...] = ()

    def __init__(self, data_set: DataSet, ranges: ByteRanges) -> None:  # noqa: B027 - each keeps what it needs
        """Open the files of a data set, which are read through ranges."""

    @abc.abstractmethod
    def fetch(self, block: Block) -> Any:
        """Read the bytes of a block. Several threads may call this at the same time.

        Raises:
          DamagedBlockError: what was read cannot be the block (sizes, an index that does not fit).
          RunFailedError: the file cannot be read on.
        """

    @abc.abstractmethod
    def decode(
        self, fetched: Any, block: Block, wanted: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows
    ) -> None:
        """Write samples of a block to rows; check each value against the column's `low` and `high`.

        Args:
          fetched: what `fetch` gave for the block.
          block: the block.
          wanted: int64[n], ascending, samples counted from the block's first.
          rows: int64[n], the row of `into` for each.
          into: takes the rows.

        Raises:
          DamagedBlockError: a record is damaged, or is not what the columns say. The message names the file, the record
            (from 1, within the file), the column and the value.
        """

    def decode_each(self, fetched: Any, block: Block, into: Rows) -> dict[int, DamagedBlockError]:
        """Write the samples of a block that can be read to the rows of their numbers, counted from the block's first.

        Returns:
          What is wrong with the others.
        """
        wrong = {}
        for sample in range(block.count):
            one = np.array([sample], np.int64)
            try:
                self.decode(fetched, block, one, one, into)
            except DamagedBlockError as error:
                wrong[sample] = error
        return wrong

    @abc.abstractmethod
    def forget(self, block: Block) -> bool:
        """Drop what was kept of a block and of its file's index; return whether to fetch them anew may help."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Close files and connections."""

    @staticmethod
    @abc.abstractmethod
    def count_samples(path: str, ranges: ByteRanges) -> int:
        """Return how many samples a file of the format says it has.

        Raises:
          UnusableInputError: it says nothing that can be.
          RunFailedError: it cannot be read.
        """

    @staticmethod
    def why_unchecked(path: str, ranges: ByteRanges) -> str | None:
        """Return why a file's records cannot be compared with checksums, as a clause; None: they can, and readers
        do.
        """
        return "this format has no checksums of records"
