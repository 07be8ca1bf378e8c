"""Packing against a plain best-fit-decreasing loop, and bins against their definition."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import SEEDED, tries

from maskmill.masking.kernels.rows import Rows
from maskmill.masking.kernels.sequences import Sequences
from maskmill.masking.packing import bin_of, bin_orders, bin_widths, pack, row_lengths

WIDTHS = (5, 6, 16, 63, 64, 65, 128, 512, 4095, 4096, 4097, 16384)  # at the ends of words of the bitmaps, too


def packed(lengths: list[int], most: int) -> list[list[int]]:
    """The sequences of each row, as `pack` gives them."""
    members, ends = pack(np.array(lengths, np.int32), most)
    assert members.dtype == ends.dtype == np.int64
    return [part.tolist() for part in np.split(members, ends[:-1])] if len(ends) else []


def plainly_packed(lengths: list[int], most: int) -> list[list[int]]:
    """The same by looking at all rows for each sequence."""
    rows: list[list[int]] = []
    room: list[int] = []
    touched: list[int] = []  # when each row last got a sequence
    for turn, sequence in enumerate(sorted(range(len(lengths)), key=lambda n: -lengths[n])):  # sorted is stable
        size = max(lengths[sequence], 2)
        fitting = [row for row in range(len(rows)) if room[row] >= size]
        if not fitting:
            fitting = [len(rows)]
            rows.append([])
            room.append(most)
            touched.append(0)
        row = min(fitting, key=lambda row: (room[row], -touched[row]))
        rows[row].append(sequence)
        room[row] -= size
        touched[row] = turn
    return sorted(sorted(row) for row in rows)


def lengths_of(rng: random.Random, most: int) -> list[int]:
    """Many of one kind, or of a few lengths, or of any."""
    count = rng.choice([0, 1, 2, 20, 150])
    few = [rng.randint(1, most) for _ in range(3)]
    kind = rng.choice(["any", "few", "short", "long", "halves"])
    drawn = {
        "any": lambda: rng.randint(1, most),
        "few": lambda: rng.choice(few),
        "short": lambda: min(most, 1 + int(rng.expovariate(8 / most))),
        "long": lambda: max(1, most - int(rng.expovariate(8 / most))),
        "halves": lambda: most // 2 + rng.choice([-1, 0, 1]),
    }[kind]
    return [drawn() for _ in range(count)]


@tries(300, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_rows_are_those_of_a_plain_loop(seed: int) -> None:
    rng = random.Random(seed)
    most = rng.choice(WIDTHS)
    lengths = lengths_of(rng, most)
    assert packed(lengths, most) == plainly_packed(lengths, most)


@pytest.mark.parametrize(
    ("lengths", "rows"),
    [
        ([512] * 1_000_000, 1_000_000),
        ([3] * 1_000_000, 5_883),  # 170 of them in a row
        ([257] * 1_000_000, 1_000_000),
        ([1] * 1_000, 4),
        ([512], 1),
        ([1], 1),
        ([], 0),
    ],
    ids=["all-full", "all-short", "all-over-half", "single-pieces", "one-full", "one-piece", "none"],
)
def test_hostile_lengths(lengths: list[int], rows: int) -> None:
    members, ends = pack(np.array(lengths, np.int32), 512)
    assert len(ends) == rows
    assert np.array_equal(np.sort(members), np.arange(len(lengths)))


@pytest.mark.parametrize("most", [512, 16384])
def test_a_million_sequences_of_any_length_leave_next_to_no_padding(most: int) -> None:
    lengths = np.random.default_rng(1).integers(3, most + 1, 1_000_000, dtype=np.int32)
    members, ends = pack(lengths, most)
    assert np.array_equal(np.sort(members), np.arange(len(lengths)))
    pieces = np.add.reduceat(lengths[members], np.concatenate([[0], ends[:-1]]), dtype=np.int64)
    assert pieces.max() <= most
    assert lengths.sum(dtype=np.int64) > 0.999 * most * len(ends)


@pytest.mark.parametrize(("lengths", "shown"), [([3, 0, 5], "0 to 5"), ([3, 9], "3 to 9")])
def test_lengths_that_do_not_fit_are_refused(lengths: list[int], shown: str) -> None:
    with pytest.raises(ValueError, match=f"lengths from {shown} do not fit into rows of 8 pieces"):
        pack(np.array(lengths, np.int32), 8)
    with pytest.raises(ValueError, match=f"lengths from {shown} do not fit"):
        bin_of(np.array(lengths), 8, 2)


def sequences_of(lengths: list[int]) -> Sequences:
    """Sequences of these lengths, a span each."""
    return Sequences(
        starts=np.cumsum([0, *lengths], dtype=np.int64)[:-1],
        sizes=np.array(lengths, np.int32),
        segments=np.zeros(len(lengths), np.uint8),
        ends=np.arange(1, len(lengths) + 1, dtype=np.int64),
        lengths=np.array(lengths, np.int32),
        labels=np.empty(0, np.uint8),
    )


def rows_of(rows: list[list[int]]) -> Rows:
    """Rows of these sequences, all of epoch 0."""
    members = np.array([sequence for row in rows for sequence in row], np.int64)
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return Rows(members=members, ends=ends, epochs=np.zeros(len(rows), np.int64), samples=np.arange(len(rows)))


def test_the_length_of_a_row_is_that_of_its_sequences() -> None:
    assert row_lengths(sequences_of([7, 3, 10, 2, 4]), rows_of([[0, 1], [2], [3, 4]])).tolist() == [10, 10, 6]
    assert row_lengths(sequences_of([7, 3, 10]), rows_of([[2], [0, 1], [2]])).tolist() == [10, 10, 10]
    assert row_lengths(sequences_of([]), rows_of([])).tolist() == []


@tries(100)
@given(most=st.integers(5, 300), bins=st.integers(1, 40))
def test_each_length_is_in_the_bin_whose_bounds_it_is_between(most: int, bins: int) -> None:
    widths = bin_widths(most, bins).tolist()
    assert widths == [math.ceil(Fraction((k + 1) * most, bins)) for k in range(bins)]
    assert widths[-1] == most
    lengths = np.arange(1, most + 1)
    for length, number in zip(lengths.tolist(), bin_of(lengths, most, bins).tolist(), strict=True):
        assert length <= widths[number]
        assert number == 0 or widths[number - 1] < length
    if most % bins == 0:
        assert np.array_equal(bin_of(lengths, most, bins), (lengths - 1) // (most // bins))  # as in LDDL


@tries(100)
@given(most=st.integers(5, 300), bins=st.integers(1, 10), data=st.data())
def test_bins_share_the_rows_in_their_order(most: int, bins: int, data: st.DataObject) -> None:
    lengths = np.array(data.draw(st.lists(st.integers(1, most), max_size=50)), np.int64)
    order = np.array(data.draw(st.permutations(range(len(lengths)))), np.int64)
    orders = bin_orders(order, lengths, most, bins)
    assert len(orders) == bins
    assert sorted(row for part in orders for row in part.tolist()) == list(range(len(lengths)))
    places = np.argsort(order)
    numbers = bin_of(lengths, most, bins)
    for number, part in enumerate(orders):
        assert np.array_equal(numbers[part], np.full(len(part), number))
        assert (np.diff(places[part]) > 0).all()
