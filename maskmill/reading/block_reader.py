"""How samples are read: a block at a time, first its bytes, then the rows in them that are wanted."""

import abc
import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.reading.rows import Rows


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


class OtherColumnsError(DamagedBlockError):
    """A file does not have the columns of its data set."""


class BlockReader(abc.ABC):
    """Reads the files of a data set. One for each format.

    Attributes:
      block_samples: the most samples of a block. All blocks of a file but its last have as many.
    """

    block_samples: int

    @abc.abstractmethod
    def fetch(self, block: Block) -> Any:
        """Reads the bytes of a block. Several threads may call this at the same time.

        Raises:
          DamagedBlockError: what was read cannot be the block (sizes, an index that does not fit).
          RunFailedError: the file cannot be read on.
        """

    @abc.abstractmethod
    def decode(
        self, fetched: Any, block: Block, wanted: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows
    ) -> None:
        """Writes samples of a block to rows; checks each value against the column's `low` and `high`.

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

    @abc.abstractmethod
    def forget(self, block: Block) -> bool:
        """Drops what was kept of a block and of its file's index; returns whether to fetch them anew may help."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Closes files and connections."""
