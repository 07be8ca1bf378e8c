"""Byte ranges of a file, as int64 arrays [n, 2] of start and end: each range holds the bytes from start up to end."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Ranges = npt.NDArray[np.int64]


def ranges_of(rows: npt.NDArray[Any], size: str = "size") -> Ranges:
    """Return the byte ranges [n, 2] of the rows of a table that has the fields `offset` and `size`, or what that is
    named.
    """
    starts = rows["offset"].astype(np.int64)
    return np.stack([starts, starts + rows[size]], axis=1)


def merge_ranges(ranges: Ranges) -> Ranges:
    """Join ranges [n, 2], which are in order and do not overlap, where one starts at the end of another, [k, 2]."""
    starts, ends = ranges[:, 0], ranges[:, 1]
    is_first = np.ones(len(ranges), bool)
    is_first[1:] = starts[1:] != ends[:-1]
    is_last = np.roll(is_first, -1)
    return np.stack([starts[is_first], ends[is_last]], axis=1)


def near_ranges(ranges: Ranges, gap: int, most: int) -> Iterator[list[tuple[int, int]]]:
    """Yield ranges [n, 2], which are in order, in groups that are read at once.

    Between ranges of a group there are at most `gap` bytes, and from its start to its end at most `most`. A longer
    range is cut.
    """
    group: list[tuple[int, int]] = []
    for start, end in ranges.tolist():
        for at in range(start, end, most):
            part = at, min(end, at + most)
            if group and (at - group[-1][1] > gap or part[1] - group[0][0] > most):
                yield group
                group = []
            group.append(part)
    if group:
        yield group


def cut_out(ranges: Ranges, holes: Ranges) -> Ranges:
    """Return what is left, [k, 2], of ranges [n, 2] without the holes [h, 2] that lie in them.

    Both are in order and without overlaps. A hole lies within one range, or outside of all and then counts for nothing.
    """
    # What is left starts where a range starts or a hole ends, and ends where a hole starts or a range ends. A hole
    # outside of all ranges, or at the edge of one, gives a pair that ends no later than it starts.
    starts = np.sort(np.concatenate([ranges[:, 0], holes[:, 1]]))
    ends = np.sort(np.concatenate([ranges[:, 1], holes[:, 0]]))
    return np.stack([starts, ends], axis=1)[starts < ends]
