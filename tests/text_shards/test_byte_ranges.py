"""Byte ranges: joined, and with holes cut out."""

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from maskmill.text_shards.byte_ranges import cut_out, merge_ranges, ranges_of
from maskmill.text_shards.fragments import TABLE

Ranges = npt.NDArray[np.int64]


@st.composite
def ordered_ranges(draw: st.DrawFn) -> Ranges:
    """Ranges in order and without overlaps, some of them neighbours."""
    steps = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=30))
    ranges, end = [], 0
    for gap, size in steps:
        ranges.append([end + gap, end + gap + size])
        end += gap + size
    return np.array(ranges, np.int64).reshape(-1, 2)


def bytes_in(ranges: Ranges) -> list[int]:
    return [place for start, end in ranges.tolist() for place in range(start, end)]


def test_the_ranges_of_rows() -> None:
    rows = np.array([(0, 7, 10, 1), (0, 17, 5, 1)], TABLE)
    assert ranges_of(rows).tolist() == [[7, 17], [17, 22]]
    assert ranges_of(rows[:0]).shape == (0, 2)


@given(ordered_ranges())
def test_merged_ranges_hold_the_same_bytes_and_do_not_touch(ranges: Ranges) -> None:
    merged = merge_ranges(ranges)
    assert merged.dtype == np.int64
    assert bytes_in(merged) == bytes_in(ranges)
    assert (merged[1:, 0] > merged[:-1, 1]).all()


@given(ordered_ranges(), st.data())
def test_what_is_cut_out_is_gone_and_the_rest_stays(ranges: Ranges, data: st.DataObject) -> None:
    # Each range may lose some of its parts: the whole of it, its start, its end, or pieces in the middle.
    holes = []
    for start, end in merge_ranges(ranges).tolist():
        cuts = sorted(data.draw(st.sets(st.integers(start, end), max_size=4)))
        holes += [[low, high] for low, high in zip(cuts[::2], cuts[1::2], strict=False)]
    merged = merge_ranges(ranges)
    left = cut_out(merged, np.array(holes, np.int64).reshape(-1, 2))
    dropped = {place for low, high in holes for place in range(low, high)}
    assert bytes_in(left) == [place for place in bytes_in(ranges) if place not in dropped]
    assert (left[:, 0] < left[:, 1]).all()


@given(st.lists(st.booleans(), max_size=60), st.lists(st.booleans(), max_size=60))
def test_holes_outside_of_the_ranges_count_for_nothing(is_taken: list[bool], is_dropped: list[bool]) -> None:
    # Ten bytes each; a hole of one byte or of all, as the drawn bits say.
    ranges = np.array([[10 * i, 10 * i + 10] for i, taken in enumerate(is_taken) if taken], np.int64).reshape(-1, 2)
    holes = np.array(
        [[10 * i + 3 * (i % 2), 10 * i + (10 if i % 2 else 4)] for i, drop in enumerate(is_dropped) if drop], np.int64
    ).reshape(-1, 2)
    left = cut_out(ranges, holes)
    assert bytes_in(left) == sorted(set(bytes_in(ranges)) - set(bytes_in(holes)))
    assert (left[:, 0] < left[:, 1]).all()
