"""The rows of a file, block by block, for checks that read some of them once more."""

import dataclasses
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from maskmill.reading.block_reader import Rows
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.column_tables import TargetTable
from maskmill.verification.pieces import Piece
from maskmill.verification.row_faults import Faults
from maskmill.verification.row_reading import ReadRows, checked_columns, open_rows


@dataclasses.dataclass(frozen=True)
class RowBlock:
    """Rows that can be read, valid until the next block is asked for.

    Attributes:
      rows: the values, of the types of row_reading.checked_columns.
      count: how many of them count.
      numbers: int64[count], the numbers of their records, from 1.
      lengths: int64[count], their pieces, padding aside.
    """

    rows: Rows
    count: int
    numbers: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


def piece_blocks(piece: Piece, ranges: ByteRanges) -> Iterator[RowBlock]:
    """Yields the rows of a file of examples; records that cannot be read are left out, and another check names them.

    Raises:
      UnusableInputError: the file cannot be read at all.
      RunFailedError: the machine cannot read it on.
    """
    data_set = piece.rules.data_set
    data_set = dataclasses.replace(data_set, columns=checked_columns(data_set.columns))
    source = open_rows(data_set, ranges, Faults(piece.path))
    rows = Rows(data_set.columns, source.room)
    read = ReadRows(rows, np.zeros(source.room, np.int64), TargetTable(data_set.columns))
    for count in source.blocks(read):
        yield RowBlock(rows, count, read.numbers[:count] + 1, _lengths(rows, count))


def _lengths(rows: Rows, count: int) -> npt.NDArray[np.int64]:
    if "input_mask" in rows.arrays:
        lengths: npt.NDArray[np.int64] = np.asarray(rows.arrays["input_mask"][:count], np.int64).sum(axis=1)
        return lengths
    if "input_ids" in rows.counts:
        return rows.counts["input_ids"][:count].astype(np.int64)
    return np.full(count, rows.arrays["input_ids"].shape[1])
