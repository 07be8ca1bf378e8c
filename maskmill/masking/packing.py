"""Pack sequences into rows of equal length, and sort rows into bins by length; both leave less padding.

Packing is best-fit decreasing: the longest sequence first, each into the row with the least room that is enough for
it. Krell et al., "Efficient Sequence Packing without Cross-contamination" (arXiv 2107.02027), call it
longest-pack-first histogram-packing. Bins are equally wide, as those of NVIDIA's LDDL (lddl/dask/bert/binning.py).
"""

import numpy as np
import numpy.typing as npt

from maskmill.masking.kernels import packing as kernels
from maskmill.masking.kernels.rows import Rows
from maskmill.masking.kernels.sequences import Sequences


def pack(lengths: npt.NDArray[np.int32], most: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pack sequences into rows of at most `most` pieces, in linear time.

    Sequences are placed by falling length, equally long ones in their order. Each goes into the row with the least
    free space that suffices; of several such rows, into the one that came to that space last. A sequence of a single
    piece takes the space of two, so a row has at most `most // 2` sequences.

    Args:
      lengths: int32[sequences], the pieces of each sequence, special ones included, from 1 to `most`.
      most: the most pieces of a row, 2 or more.

    Returns:
      int64[sequences], the sequences of all rows, row after row, and int64[rows], where those of each row end:
      Rows.members and Rows.ends. Rows are in the order of their first sequences, those of a row in text order.

    Raises:
      ValueError: a sequence is empty, or longer than a row.
    """
    check_lengths(lengths, most)
    lengths = np.ascontiguousarray(lengths, np.int32)
    row_of, rows = kernels.best_fit(lengths, kernels.longest_first(lengths, most), most)
    members, ends = kernels.rows_in_order(row_of, rows)
    return members, ends


def check_lengths(lengths: npt.NDArray[np.int32] | npt.NDArray[np.int64], most: int) -> None:
    """Check that all lengths are from 1 to `most`.

    Raises:
      ValueError: one is not.
    """
    if len(lengths) and (lengths.min() < 1 or lengths.max() > most):
        raise ValueError(f"lengths from {lengths.min()} to {lengths.max()} do not fit into rows of {most} pieces")


def row_lengths(sequences: Sequences, rows: Rows) -> npt.NDArray[np.int64]:
    """Return int64[rows]: the number of pieces of each row, special ones included."""
    sums = np.cumsum(sequences.lengths[rows.members], dtype=np.int64)[rows.ends - 1]
    lengths: npt.NDArray[np.int64] = np.diff(sums, prepend=0)
    return lengths


def bin_widths(most: int, bins: int) -> npt.NDArray[np.int64]:
    """Return int64[bins]: the most pieces of a row of each bin. Bin k has rows of (k·most/bins, (k+1)·most/bins]
    pieces.

    Where `most` is not a multiple of `bins`, these bounds are rounded up. LDDL refuses such a number of bins.
    """
    return -(-np.arange(1, bins + 1, dtype=np.int64) * most // bins)


def bin_of(lengths: npt.NDArray[np.int32] | npt.NDArray[np.int64], most: int, bins: int) -> npt.NDArray[np.int64]:
    """Return int64[rows]: the bin of each row.

    Raises:
      ValueError: a row is empty, or longer than `most`.
    """
    check_lengths(lengths, most)
    return np.searchsorted(bin_widths(most, bins), lengths)


def bin_orders(
    order: npt.NDArray[np.int64], lengths: npt.NDArray[np.int32] | npt.NDArray[np.int64], most: int, bins: int
) -> list[npt.NDArray[np.int64]]:
    """Return for each bin its rows, int64, in the order of `order`; lengths: of all rows, by number.

    Raises:
      ValueError: a row is empty, or longer than `most`.
    """
    numbers = bin_of(lengths, most, bins)[order]
    return [order[numbers == number] for number in range(bins)]
