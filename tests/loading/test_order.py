"""The order of an epoch: against a plain oracle, and what is true of any."""

import dataclasses

import hypothesis.strategies as st
import numpy as np
from hypothesis import given
from made_up.data_sets import data_set
from oracles.loading import epoch_order
from properties import tries

from maskmill.loading.order import SampleOrder
from maskmill.reading.data_set import DataSet

FILES = st.lists(st.tuples(st.integers(1, 40), st.sampled_from([4, 8, 16])), min_size=1, max_size=8)


def made(files: list[tuple[int, int]]) -> DataSet:
    samples, widths = zip(*files, strict=True)
    return data_set(samples, widths=widths)


def samples_of(order: SampleOrder, epoch: int, start: int = 0, stop: int | None = None) -> list[int]:
    stop = order.samples if stop is None else stop
    return [number for window in order.windows_from(epoch, start, stop) for number in window.samples.tolist()]


@given(
    files=FILES, block=st.integers(1, 12), window=st.integers(1, 60), seed=st.integers(), epoch=st.integers(0, 2**40)
)
@tries(50)
def test_an_epoch_is_in_the_order_of_a_plain_program(
    files: list[tuple[int, int]], block: int, window: int, seed: int, epoch: int
) -> None:
    order = SampleOrder(made(files), block, seed=seed, window=window, shuffle=True)
    expected = epoch_order(files, epoch, fingerprint="f", seed=seed, window=window, block=block)
    assert samples_of(order, epoch) == expected
    assert sorted(expected) == list(range(order.samples))
    start, stop = order.samples // 3, order.samples // 3 * 2
    assert samples_of(order, epoch, start, stop) == expected[start:stop]


@given(files=FILES, block=st.integers(1, 12), window=st.integers(1, 60), shuffle=st.booleans())
@tries(30)
def test_a_window_has_whole_blocks_of_one_width(
    files: list[tuple[int, int]], block: int, window: int, shuffle: bool
) -> None:
    order = SampleOrder(made(files), block, seed=1, window=window, shuffle=shuffle)
    widths = np.repeat([width for _, width in files], [samples for samples, _ in files])
    found = list(order.windows_from(2, 0, order.samples))
    assert [one.first for one in found] == np.cumsum([0, *(len(one.samples) for one in found)])[:-1].tolist()
    for one in found:
        assert set(widths[one.samples]) == {one.width}
        assert order.widths_of(one.samples).tolist() == [one.width] * len(one.samples)
        reads = order.reads(one.samples, np.arange(len(one.samples)))
        assert all(len(read.samples) == read.block.count for read in reads)
        assert len(one.samples) <= window or len(reads) == 1


@given(files=FILES, block=st.integers(1, 12), data=st.data())
@tries(30)
def test_reads_say_where_each_sample_is(files: list[tuple[int, int]], block: int, data: st.DataObject) -> None:
    order = SampleOrder(made(files), block, seed=1, window=9, shuffle=True)
    chosen = data.draw(st.lists(st.integers(0, order.samples - 1), unique=True))
    reads = order.reads(np.array(chosen, np.int64), np.arange(len(chosen)) + 7)
    assert [(read.block.file, read.block.first) for read in reads] == sorted(
        {(read.block.file, read.block.first) for read in reads}
    )
    firsts = np.cumsum([0, *(samples for samples, _ in files)])
    rows: dict[int, int] = {}
    for read in reads:
        assert read.block.first % block == 0
        assert read.block.count == min(block, files[read.block.file][0] - read.block.first)
        assert (np.diff(read.samples) > 0).all()
        for place, row in zip(read.samples.tolist(), read.rows.tolist(), strict=True):
            assert 0 <= place < read.block.count
            rows[row - 7] = int(firsts[read.block.file]) + read.block.first + place
    assert [rows[n] for n in range(len(chosen))] == chosen


def test_without_shuffling_samples_are_in_the_order_of_the_files() -> None:
    order = SampleOrder(made([(30, 8), (5, 4), (40, 8)]), 7, seed=3, window=10, shuffle=False)
    assert samples_of(order, 0) == samples_of(order, 5) == list(range(75))


def test_data_seed_and_epoch_decide_the_order() -> None:
    files = [(500, 8), (300, 8)]
    orders = {
        tuple(samples_of(SampleOrder(data, 16, seed=seed, window=100, shuffle=True), epoch))
        for data in (made(files), dataclasses.replace(made(files), fingerprint="g"))
        for seed in (0, 1)
        for epoch in (0, 1)
    }
    assert len(orders) == 8


def test_neighbours_are_spread_over_a_window() -> None:
    """Few samples that are neighbours in a file are neighbours in the order; a window is of almost all files."""
    order = SampleOrder(data_set([1000] * 20), 64, seed=0, window=4096, shuffle=True)
    numbers = np.array(samples_of(order, 0))
    assert (np.abs(np.diff(numbers)) == 1).mean() < 0.005
    for window in order.windows_from(0, 0, order.samples):
        assert len(np.unique(window.samples // 1000)) >= min(15, len(window.samples) // 64)


def test_an_order_of_very_many_samples_takes_little_memory() -> None:
    """A hundred million samples in 100 files: nothing has an element for each sample."""
    order = SampleOrder(data_set([1_000_000] * 100), 256, seed=0, window=16384, shuffle=True)
    window = order.window_at(3, 99_999_999)
    assert window.first <= 99_999_999 < window.first + len(window.samples)
    assert len(np.unique(window.samples)) == len(window.samples) <= 16384
