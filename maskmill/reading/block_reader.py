"""The interface of readers: they fetch the bytes of a block of samples, then decode some of its rows to memory."""

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
    """Arrays of rows, which readers write to and batches are made from.

    Attributes:
      room: the number of rows that fit.
      arrays: by feature, [rows, width] of the column's dtype.
      counts: by feature, int32[rows]: the number of values of each row, without padding; only of columns that vary.
    """

    def __init__(self, columns: Sequence[ReadColumn], rows: int) -> None:
        """Allocate arrays; their content is undefined."""
        self.room = rows
        self._columns = columns
        self.arrays: dict[str, npt.NDArray[np.generic]] = {
            column.feature: np.empty((rows, column.width), column.dtype) for column in columns
        }
        self.counts: dict[str, npt.NDArray[np.int32]] = {
            column.feature: np.zeros(rows, np.int32) for column in columns if column.varies
        }

    def first(self, count: int, *, room: int | None = None) -> "Rows":
        """Return a copy of the first `count` rows, in arrays of `room` rows; None: of `count`."""
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
        """Return int32[n, width]: the pieces of some rows before masking, in a new array.

        Masks at positions beyond the row, which a damaged row may have, are ignored.

        Args:
          which: n rows: a slice or int64[n].
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
        """Write the zeros of an optional column that the file of these rows lacks."""
        self.arrays[column.feature][rows] = 0
        if column.varies:
            self.counts[column.feature][rows] = 0


@dataclasses.dataclass(frozen=True)
class Block:
    """Consecutive samples of a file: file is its index in DataSet.files; first and count are samples within it."""

    file: int
    first: int
    count: int


class DamagedBlockError(UnusableInputError):
    """The bytes of a block are damaged; if they came over a network, they are fetched once more.

    Attributes:
      feature: of the column whose values are not allowed; None for other damage.
    """

    def __init__(self, message: str, *, feature: str | None = None) -> None:
        super().__init__(message)
        self.feature = feature


class WrongChecksumError(ValueError):
    """A part of a file does not fit its checksum."""


class OtherColumnsError(DamagedBlockError):
    """A file does not have the columns of its data set."""


class BlockReader(abc.ABC):
    """Read the files of a data set. Each format has a subclass.

    Attributes:
      block_samples: the most samples of a block. All blocks of a file but its last have this number.
      makes_rows: whether `decode` computes rows from text, which takes longer than to copy them.
      kernels: those that it needs beside the kernels of every format, as compiler.chosen_modules names them.
    """

    block_samples: int
    makes_rows = False
    kernels: tuple[str, ...] = ()

    def __init__(self, data_set: DataSet, ranges: ByteRanges) -> None:  # noqa: B027 - each keeps what it needs
        """Take a data set, and the ranges through which its files are read."""

    @abc.abstractmethod
    def fetch(self, block: Block) -> Any:
        """Read the bytes of a block. Several threads may call this at the same time.

        Raises:
          DamagedBlockError: the bytes cannot be those of the block (a wrong size, an index that does not fit).
          RunFailedError: reading the file fails.
        """

    @abc.abstractmethod
    def decode(
        self, fetched: Any, block: Block, samples: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows
    ) -> None:
        """Write samples of a block to rows; check each value against the column's `low` and `high`.

        Args:
          fetched: what `fetch` returned for the block.
          block: the block.
          samples: int64[n], ascending, counted from the block's first.
          rows: int64[n], the row of `into` for each.
          into: the rows to write to.

        Raises:
          DamagedBlockError: a record is damaged, or does not have the columns. The message names the file, the record
            (from 1, within the file), the column and the value.
        """

    def decode_each(self, fetched: Any, block: Block, into: Rows) -> dict[int, DamagedBlockError]:
        """Write each sample of a block that can be read to the row of its number, counted from the block's first.

        Returns:
          The errors of the others, by their numbers.
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
        """Drop cached bytes of a block and of its file's index; return whether fetching them anew may help."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Close files and connections."""

    @staticmethod
    @abc.abstractmethod
    def count_samples(path: str, ranges: ByteRanges) -> int:
        """Return the number of samples of a file of the format, by its own head or index.

        Raises:
          UnusableInputError: the file is damaged, or of another format.
          RunFailedError: it cannot be read.
        """

    @staticmethod
    def why_unchecked(path: str, ranges: ByteRanges) -> str | None:
        """Return a clause that says why a file's records have no checksums to compare; None: readers compare them."""
        return "this format has no checksums of records"
