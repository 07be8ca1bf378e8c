"""What a user does with a loader: stops it, asks it, gives it a state, drops it."""

import copy
import dataclasses
import functools
import gc
import multiprocessing
import pickle
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from made_up.data_sets import MadeUpReader, data_set, samples_in, source

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.loaders.parts import Part
from maskmill.loading.loader import Loader
from maskmill.loading.mixing import mix_of
from maskmill.loading.opened_sources import Source
from maskmill.loading.options import LoaderOptions
from maskmill.reading.block_reader import Block
from maskmill.reading.byte_ranges import LocalRanges
from maskmill.reading.data_set import DataSet

SIZES = (10, 7, 23)  # samples of files


def opened(**options: Any) -> Loader:
    return Loader([source(data_set(SIZES))], LoaderOptions(**{"batch_size": 6, "window": 16, **options}))


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "maskmill-loader"]


# ---- iterating


def test_an_iteration_that_is_stopped_goes_on_in_the_next() -> None:
    whole = [samples_in(batch) for batch in opened()]
    loader = opened()
    parts = []
    for batch in loader:
        parts.append(samples_in(batch))
        if len(parts) == 2:
            break
    assert loader.steps_left == 4
    parts += [samples_in(batch) for batch in loader]
    assert parts == whole
    assert loader.state_dict()["epoch"] == 1
    assert [samples_in(batch) for batch in loader] != whole


def test_epoch_after_epoch_is_the_endless_order() -> None:
    by_epoch, endless = opened(tail="carry"), opened(tail="carry").endless()
    for _ in range(3):
        for batch in by_epoch:
            assert samples_in(batch) == samples_in(next(endless))


def test_a_new_iteration_ends_the_one_before() -> None:
    loader = opened()
    first = iter(loader)
    next(first)
    second = iter(loader)
    next(second)
    with pytest.raises(RuntimeError, match="has gone on to another one"):
        next(first)
    assert loader.state_dict()["sample"] == 12
    assert len(list(second)) == 4
    assert next(second, None) is None
    third = iter(loader)
    loader.load_state_dict(loader.state_after(1))
    with pytest.raises(RuntimeError, match="another state"):
        next(third)


@pytest.mark.parametrize("way", ["drop", "close", "close the loader", "state", "cycle"])
def test_the_thread_ends_with_its_iteration(way: str) -> None:
    before = set(threads())
    loader = opened(prefetch=1, tail="carry")
    batches = loader.endless()
    next(batches)
    assert len(set(threads()) - before) == 1
    if way == "drop":
        del batches
    elif way == "close":
        batches.close()
        with pytest.raises(RuntimeError, match="closed"):
            next(batches)
    elif way == "close the loader":
        loader.close()
    elif way == "state":
        loader.load_state_dict(loader.state_after(7))
    else:
        cycle: list[Any] = [batches]
        cycle.append(cycle)
        del batches, cycle
        gc.collect()
    for thread in set(threads()) - before:
        thread.join(10)
        assert not thread.is_alive()
    if way != "state":
        assert loader.state_dict()["sample"] == 6


def test_nothing_is_made_before_the_first_request() -> None:
    before = set(threads())
    batches = iter(opened())
    assert set(threads()) == before
    batches.close()


def test_arrays_are_the_consumers_own() -> None:
    """A consumer may change them, and keep them as long as it likes."""
    batches = list(opened())
    kept = copy.deepcopy(batches)
    for batch in batches:
        for array in batch.values():
            assert array.flags.writeable
            assert array.flags.owndata
            array[:] = 0
    assert [samples_in(batch) for batch in opened()] == [samples_in(batch) for batch in kept]


# ---- errors


class FailingReader(MadeUpReader):
    """Raises an error at the block that has a sample."""

    def __init__(self, made: DataSet, at: int, error: BaseException) -> None:
        super().__init__(made, 4)
        self._at, self._error = at, error

    def fetch(self, block: Block) -> Any:
        numbers = super().fetch(block)
        if self._at in numbers:
            raise self._error
        return numbers


@pytest.mark.parametrize(
    "error", [UnusableInputError("FILE, record 3: damaged."), RunFailedError("FILE: cannot be read."), KeyError("x")]
)
def test_errors_of_reading_reach_the_consumer_as_they_are(error: BaseException) -> None:
    made = data_set(SIZES)
    reader = FailingReader(made, 20, error)
    loader = Loader([Source(made, reader, LocalRanges())], LoaderOptions(batch_size=4, shuffle=False, window=4))
    batches = iter(loader)
    got = [samples_in(next(batches)) for _ in range(4)]
    with pytest.raises(type(error)) as raised:
        for batch in batches:
            got.append(samples_in(batch))
    assert raised.value is error
    assert sum(got, []) == list(range(len(got) * 4))  # noqa: RUF017 - a few numbers
    assert next(batches, None) is None
    # The loader stands after the last batch that it gave, and can try again from there.
    reader._at = -1
    assert samples_in(next(iter(loader)))[0] == len(got) * 4


def test_too_few_samples_for_a_batch() -> None:
    with pytest.raises(UnusableInputError, match="There are 40 samples, too few for a batch of 41; choose a smaller"):
        opened(batch_size=41)
    for tail in ("pad", "repeat", "carry"):
        (batch,) = opened(batch_size=41, tail=tail)
        assert len(batch["input_ids"]) == 41


# ---- what can be asked


def test_samples_of_a_step_are_those_of_its_batch() -> None:
    for tail in ("drop", "pad", "repeat", "carry"):
        loader = opened(tail=tail, batch_size=9)
        for epoch in range(2):
            loader.load_state_dict(loader.state_dict() | {"epoch": epoch, "sample": 0})
            for step, batch in enumerate(loader):
                of, samples = loader.samples_of(epoch, step)
                assert samples.tolist() == samples_in(batch)
                assert of.tolist() == [0] * 9
        with pytest.raises(IndexError, match=f"step is {loader.steps_per_epoch}, but the epoch has"):
            loader.samples_of(0, loader.steps_per_epoch or 0)


def test_rows_of_any_samples() -> None:
    made = data_set((5, 9), widths=(4, 8))
    loader = Loader([source(made)], LoaderOptions(batch_size=2))
    assert samples_in(loader.rows_of([3, 12, 3, -1, 0])) == [3, 12, 3, -1, 0]
    assert loader.rows_of([3, 12])["input_ids"].shape == (2, 8)
    assert loader.rows_of([3, 4])["input_ids"].shape == (2, 4)
    assert loader.rows_of([-1])["input_ids"].tolist() == [[0] * 8]
    for number in (14, -2):
        with pytest.raises(IndexError, match="samples must be from 0 to 13"):
            loader.rows_of([number])


def test_rows_are_read_in_the_middle_of_an_iteration() -> None:
    loader = opened()
    batches = iter(loader)
    found = [samples_in(next(batches))]
    assert samples_in(loader.rows_of([5, 4])) == [5, 4]
    assert found + [samples_in(batch) for batch in batches] == [samples_in(batch) for batch in opened()]


def test_what_was_given() -> None:
    loader = opened()  # 6 batches of 6 an epoch, 4 samples are dropped
    given = [loader.given(step)[0] for step in (0, 3, 6, 8)]
    assert [one.samples for one in given] == [0, 18, 36, 48]
    assert [one.repetitions for one in given] == [0, 18 / 40, 36 / 40, 48 / 40]
    assert [one.share for one in given] == [0, 1, 1, 1]
    assert {one.path for one in given} == {"made/up"}


def test_what_each_data_set_of_a_mix_gave() -> None:
    sets = [data_set((30,), fingerprint=str(n), path=f"made/{n}") for n in range(2)]
    mix = dataclasses.replace(mix_of(sets, [3, 1], max_repetitions=[1, None]), part=20)
    loader = Loader([source(one) for one in sets], LoaderOptions(batch_size=10, with_samples=True), mix)
    sources = np.concatenate([batch["sources"] for _, batch in zip(range(10), loader, strict=False)])
    for step in (0, 1, 4, 10):
        given = loader.given(step)
        assert [one.samples for one in given] == np.bincount(sources[: step * 10], minlength=2).tolist()
    assert [one.samples for one in loader.given(10)] == [30, 70]
    assert (loader.steps_per_epoch, loader.steps_left) == (None, None)


def test_statistics_count_what_the_consumer_got() -> None:
    loader = opened()
    assert loader.stats().wait_share == loader.stats().samples_per_second == loader.stats().tokens_per_second == 0
    list(loader)
    first = loader.stats()
    assert (first.batches, first.samples, first.tokens, first.padding, first.dropped) == (6, 36, 36 * 8, 0, 4)
    assert 0 < first.waited <= first.seconds
    assert 0 < first.wait_share <= 1
    assert first.tokens_per_second == pytest.approx(8 * first.samples_per_second)
    next(loader.endless())
    assert loader.stats().since(first).samples == 6
    padded = opened(tail="pad", ranks=2, rank=1, batch_size=6)
    list(padded)
    assert (padded.stats().batches, padded.stats().samples, padded.stats().padding) == (7, 19, 2)


def test_a_window_reads_each_of_its_blocks_once() -> None:
    made = data_set((40, 33))
    reader = MadeUpReader(made, 8)
    list(Loader([Source(made, reader, LocalRanges())], LoaderOptions(batch_size=5, window=20, tail="pad")))
    assert len(reader.read) == 5 + 5
    assert sum(count for _, count in reader.read) == 73


# ---- states


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 5}, "The state of the loader is of seed=0, but it was opened with seed=5"),
        ({"shuffle": False}, "is of shuffle=True, but it was opened with shuffle=False"),
        ({"window": 17}, "is of window=16, but it was opened with window=17"),
    ],
)
def test_a_state_of_another_order_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        opened(**changes).load_state_dict(opened().state_after(3))


def test_a_state_of_other_files_is_refused_by_the_first_that_differs() -> None:
    state = opened().state_after(3)
    other = data_set((10, 7, 23), fingerprint="g")
    files = (data_set(SIZES).files[0], *other.files[1:])
    changed = Loader([source(data_set_with(files))], LoaderOptions(batch_size=6, window=16))
    with pytest.raises(UnusableInputError, match=r"^made/up/1: this file is not the one that the state"):
        changed.load_state_dict(state)
    fewer = Loader([source(data_set_with(data_set(SIZES).files[:2]))], LoaderOptions(batch_size=6, window=16))
    with pytest.raises(UnusableInputError, match="is of 3 files, but 2 are open"):
        fewer.load_state_dict(state)
    masks = Loader([source(data_set_with(data_set(SIZES).files))], LoaderOptions(batch_size=6, window=16))
    with pytest.raises(UnusableInputError, match="of the same files, but of other masks, weights or repetitions"):
        masks.load_state_dict(state)


def data_set_with(files: Any) -> DataSet:
    return dataclasses.replace(data_set((1,), fingerprint="other"), files=files)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "This is not a state of a loader"),
        ([], "This is not a state of a loader"),
        ({"version": 99}, "has version 99, but this maskmill reads version 1"),
        ({"epoch": -1}, "is damaged: epoch is -1 and sample is 0"),
        ({"sample": 1.5}, "is damaged: epoch is 0 and sample is 1.5"),
        ({"epoch": True}, "is damaged: epoch is True and sample is 0"),
        ({"epoch": "1"}, "is damaged: epoch is '1' and sample is 0"),
        ({"epoch": 1 << 40}, "is damaged: epoch is 1099511627776 and .*, epoch at most 2,147,483,648 here"),
        ({"epoch": np.int64(1)}, "is damaged: epoch is "),
        ({"sample": -(1 << 70)}, "is damaged"),
        ({"files": None}, "is damaged: it does not list the files"),
        ({"files": "abc"}, "is damaged: it does not list the files"),
        ({"files": []}, "is of 0 files, but 3 are open"),
        ({"version": "1"}, "has version 1, but"),
        ({"sample": 40}, "sample is 40, but an epoch has 40 samples"),
    ],
)
def test_what_is_no_state_is_refused(state: Any, message: str) -> None:
    loader = opened()
    with pytest.raises(UnusableInputError, match=message):
        loader.load_state_dict(loader.state_dict() | state if state else state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"made": -1}, "damaged: -1 batches"),
        ({"made": True}, "damaged: True batches"),
        ({"made": 1 << 70}, "damaged: 1180591620717411303424 batches"),
        ({"made": 1.0}, "damaged: 1.0 batches"),
        ({"workers": 3}, "saved with workers=3, so it cannot be taken up with workers=1"),
        ({"batch_size": 12}, "saved with batch_size=12, so it cannot be taken up with batch_size=6"),
        ({"start": None}, "is not a state of a loader"),
    ],
)
def test_what_is_no_state_of_a_worker_is_refused(change: dict[str, Any], message: str) -> None:
    part = Part(opened())
    next(part)
    with pytest.raises(UnusableInputError, match=message):
        part.load_state_dict(part.state_dict() | change)
    with pytest.raises(UnusableInputError, match="not a state of a worker's part"):
        part.load_state_dict({"epoch": 1})


# ---- other processes


def first_of(loader: Loader) -> list[int]:
    return samples_in(next(iter(loader)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_loader_goes_on_in_another_process(method: str) -> None:
    """Even where the thread of the parent's is at work, whose locks a forked child must not wait for."""
    loader = opened()
    batches = iter(loader)
    next(batches)
    with multiprocessing.get_context(method).Pool(1) as pool:
        found = pool.apply(first_of, (loader,))
    assert found == samples_in(next(batches))


def test_a_loader_of_other_options_stands_where_this_one_stands() -> None:
    loader = opened()
    batches = iter(loader)
    next(batches)
    expected = samples_in(next(batches))
    loader.load_state_dict(loader.state_dict() | {"epoch": 0, "sample": 6})
    halves = [samples_in(next(iter(loader.with_options(ranks=2, rank=rank)))) for rank in range(2)]
    assert halves[0] + halves[1] == expected
    again = pickle.loads(pickle.dumps(loader))
    assert samples_in(next(iter(again))) == expected
    assert again.options == loader.options


def test_closing_a_part_leaves_the_files_open_for_the_others() -> None:
    closed: list[str] = []

    class Reader(MadeUpReader):
        def close(self) -> None:
            closed.append("reader")

    made = data_set(SIZES)
    loader = Loader([Source(made, Reader(made, 4), LocalRanges())], LoaderOptions(batch_size=6))
    part = loader.with_options(ranks=2)
    part.close()
    assert not closed
    with loader:
        pass
    assert closed == ["reader"]


def test_one_window_at_a_time_is_in_memory() -> None:
    made = data_set([6000], widths=(1024,))  # 3 KiB a row: two windows of 8 and 10 MB
    reader = MadeUpReader(made, 100)
    tracemalloc.start()
    loader = Loader([Source(made, reader, LocalRanges())], LoaderOptions(batch_size=16, window=3000, prefetch=1))
    for _ in loader:
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3000 * 3 * 1024 + 2e6


def test_a_window_takes_no_more_memory_than_it_may() -> None:
    """Rows of 64 KiB: 512 fit, so windows of 16,384 samples become smaller."""
    made = data_set((3000,), widths=(16384 * 4 // 3 + 1,))
    loader = Loader([source(made, 100)], LoaderOptions(batch_size=10))
    assert loader._orders[0].window == (32 << 20) // (3 * (16384 * 4 // 3 + 1))
    assert functools.reduce(max, (len(w.samples) for w in loader._orders[0].windows_from(0, 0, 3000))) == 500
