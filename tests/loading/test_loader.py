"""One order on any number of ranks and workers, through any stops: against a plain oracle, on data sets made up."""

import dataclasses
import functools
import itertools
import json
import pickle
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from made_up.data_sets import data_set, samples_in, source
from oracles.loading import batches, epoch_order
from properties import tries

from maskmill.errors import UnusableInputError
from maskmill.loading.loader import Loader
from maskmill.loading.mixing import mix_of
from maskmill.loading.options import LoaderOptions

TAILS = ("drop", "pad", "repeat", "carry")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a run: on so many ranks with so many workers each, it stops after `steps` batches."""

    ranks: int
    workers: int
    rank_batch: int
    steps: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """Data, options and the parts of a run."""

    files: list[tuple[int, int]]
    block: int
    window: int
    seed: int
    tail: str
    parts: list[Part]

    @property
    def samples(self) -> int:
        return sum(samples for samples, _ in self.files)


@st.composite
def runs(draw: Any) -> Run:
    """Runs of up to three parts; no part has too few samples for a batch."""
    widths = draw(st.sampled_from([[8], [4, 8, 16]]))
    files = draw(st.lists(st.tuples(st.integers(1, 30), st.sampled_from(widths)), min_size=1, max_size=6))
    tail = draw(st.sampled_from(TAILS))
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        ranks = draw(st.integers(1, 8))
        most = max(1, sum(samples for samples, _ in files) // ranks) if tail == "drop" else 12
        if tail == "drop" and sum(samples for samples, _ in files) < ranks:
            ranks = 1
        parts.append(
            Part(
                ranks=ranks,
                workers=draw(st.integers(1, 4)),
                rank_batch=draw(st.integers(1, min(most, 12))),
                steps=draw(st.integers(0, 12)),
            )
        )
    return Run(
        files=files,
        block=draw(st.integers(1, 9)),
        window=draw(st.integers(1, 50)),
        seed=draw(st.integers(-5, 5)),
        tail=tail,
        parts=parts,
    )


def opened(run: Run, part: Part, **more: Any) -> Loader:
    """A loader of the run's data."""
    samples, widths = zip(*run.files, strict=True)
    options = LoaderOptions(
        batch_size=part.ranks * part.rank_batch,
        seed=run.seed,
        window=run.window,
        tail=run.tail,  # type: ignore[arg-type]
        ranks=part.ranks,
        workers=part.workers,
        with_samples=True,
        **more,
    )
    return Loader([source(data_set(samples, widths=widths), run.block)], options)


def read_together(loaders: list[list[Loader]], *, endless: bool) -> Iterator[list[int]]:
    """The batches of all ranks together, in order; loaders by rank and worker."""
    readers = [[loader.endless() if endless else iter(loader) for loader in of_rank] for of_rank in loaders]
    for step in itertools.count():
        batch: list[int] = []
        widths = set()
        for of_rank in readers:
            got = next(of_rank[step % len(of_rank)], None)
            if got is not None:
                assert samples_in(got) == got["samples"].tolist()
                batch += got["samples"].tolist()
                widths.add(got["input_ids"].shape[1])
        if not batch:
            return
        assert len(widths) == 1
        yield batch


def oracle_order(run: Run) -> Any:
    """The run's samples by epoch."""
    return functools.partial(epoch_order, run.files, fingerprint="f", seed=run.seed, window=run.window, block=run.block)


@given(run=runs())
@tries(35)
def test_any_ranks_and_workers_read_the_one_order_through_stops(run: Run) -> None:
    """Each part is stopped in the middle of an epoch and goes on with other ranks, workers and batches."""
    epoch, sample = 0, 0
    state = None
    for part in run.parts:
        loaders = [
            [opened(run, part).with_options(rank=rank, worker=worker) for worker in range(part.workers)]
            for rank in range(part.ranks)
        ]
        consumer = opened(run, part)
        for loader in [consumer, *itertools.chain(*loaders)]:
            if state is not None:
                loader.load_state_dict(state)
        expected = list(
            itertools.islice(
                batches(oracle_order(run), part.ranks * part.rank_batch, run.tail, epoch, sample), part.steps
            )
        )
        read = list(itertools.islice(read_together(loaders, endless=True), part.steps))
        assert read == [[number for _, number in batch] for batch, _ in expected]
        if expected:
            epoch, sample = expected[-1][1]
        state = json.loads(json.dumps(consumer.state_after(part.steps)))
        if expected:
            assert (state["epoch"], state["sample"]) == (epoch, sample)
        for loader in itertools.chain(*loaders):
            loader.close()


@given(run=runs(), pickled=st.booleans())
@tries(25)
def test_workers_go_on_from_states_of_their_own(run: Run, pickled: bool) -> None:
    """As torchdata's loader does: each worker is started again from its own state, in epochs that end."""
    part = run.parts[0]
    loaders = [
        [opened(run, part).with_options(rank=rank, worker=worker) for worker in range(part.workers)]
        for rank in range(part.ranks)
    ]
    whole = list(read_together(loaders, endless=False))
    steps = loaders[0][0].steps_per_epoch
    assert len(whole) == steps
    expected = itertools.islice(batches(oracle_order(run), part.ranks * part.rank_batch, run.tail), steps)
    assert whole == [[number for _, number in batch] for batch, _ in expected]
    for loader in itertools.chain(*loaders):  # the others have given all, but have not been asked for more
        assert loader.state_dict()["epoch"] == loader.state_after(0)["epoch"]
    of_rank = [opened(run, part).with_options(worker=worker) for worker in range(part.workers)]
    readers = [iter(loader) for loader in of_rank]
    taken = min(part.steps, steps)
    first = [next(readers[step % part.workers])["samples"].tolist() for step in range(taken)]
    if pickled:
        again = [pickle.loads(pickle.dumps(loader)) for loader in of_rank]
    else:
        again = [opened(run, part).with_options(worker=worker) for worker in range(part.workers)]
        for new, old in zip(again, of_rank, strict=True):
            new.load_state_dict(old.state_dict())
    # A worker that has given its last batch of the epoch stands at the next one.
    has_ended = [loader.state_dict()["epoch"] > 0 for loader in again]
    if taken < steps:
        readers = [iter(loader) for loader in again]
        first += [next(readers[step % part.workers])["samples"].tolist() for step in range(taken, steps)]
        for reader, ended in zip(readers, has_ended, strict=True):
            assert ended or next(reader, None) is None
    assert first == [batch[: part.rank_batch] for batch in whole]


@given(run=runs())
@tries(15)
def test_a_batch_is_as_wide_as_its_widest_sample(run: Run) -> None:
    widths = [width for samples, width in run.files for _ in range(samples)]
    part = run.parts[0]
    part = dataclasses.replace(part, workers=1)
    readers = [iter(opened(run, part, rank=rank)) for rank in range(part.ranks)]
    for together in zip(*readers, strict=True):
        numbers = [number for batch in together for number in batch["samples"].tolist()]
        widest = max(widths[number] for number in numbers if number >= 0)
        assert {batch["input_ids"].shape for batch in together} == {(part.rank_batch, widest)}


# ---- several data sets


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    part_size=st.integers(1, 60),
    most=st.sampled_from([None, 1.5, 3]),
    part=st.builds(
        Part, ranks=st.integers(1, 4), workers=st.integers(1, 3), rank_batch=st.integers(1, 5), steps=st.integers(0, 20)
    ),
    tail=st.sampled_from(["drop", "pad", "repeat"]),
)
@tries(20)
def test_a_mix_is_read_in_one_order_by_any_ranks_and_workers(
    sizes: list[int], part_size: int, most: float | None, part: Part, tail: Any
) -> None:
    data_sets = [
        data_set([size // 2 + 1, size], fingerprint=str(n), path=f"made/up/{n}") for n, size in enumerate(sizes)
    ]
    weights = [n + 1 for n in range(len(sizes))]
    mix = dataclasses.replace(mix_of(data_sets, weights, max_repetitions=most, seed=3), part=part_size)
    size = part.ranks * part.rank_batch
    options = LoaderOptions(
        batch_size=size, window=20, seed=3, tail=tail, ranks=part.ranks, workers=part.workers, with_samples=True
    )
    if tail == "drop" and mix.length is not None and mix.length < size:
        with pytest.raises(UnusableInputError, match="too few for a batch"):
            Loader([source(one) for one in data_sets], options, mix)
        return
    first = Loader([source(one) for one in data_sets], options, mix)

    def expected(position: int) -> tuple[int, int]:
        """The data set and the sample of a position, by plain orders of each."""
        (of,), (own,) = mix.positions(position, position + 1)
        epoch, place = divmod(int(own), data_sets[of].samples)
        order = epoch_order(
            [(file.samples, file.width) for file in data_sets[of].files],
            epoch,
            fingerprint=str(of),
            seed=3,
            window=max(1, int(20 * mix.weights[of] / sum(mix.weights))),
            block=4,
        )
        return int(of), order[place]

    taken = 0
    for stopped_after in (part.steps, part.steps + 2):
        loaders = [
            [first.with_options(rank=rank, worker=worker) for worker in range(part.workers)]
            for rank in range(part.ranks)
        ]
        readers = [[loader.endless() for loader in of_rank] for of_rank in loaders]
        steps = stopped_after if first.steps_left is None else min(stopped_after, first.steps_left)
        for step in range(steps):
            together = [next(of_rank[step % part.workers]) for of_rank in readers]
            numbers = [number for batch in together for number in batch["samples"].tolist()]
            positions = range(taken, taken + size)
            if mix.length is not None:
                positions = [p if p < mix.length else p % mix.length if tail == "repeat" else -1 for p in positions]
            assert numbers == [-1 if p < 0 else expected(p)[1] for p in positions]
            if len(sizes) > 1:
                origins = [origin for batch in together for origin in batch["sources"].tolist()]
                assert origins == [-1 if p < 0 else expected(p)[0] for p in positions]
            taken += size
        state = first.state_after(steps)
        is_over = first.steps_left is not None and stopped_after >= first.steps_left
        assert (state["epoch"], state["sample"]) == ((1, 0) if is_over else (0, taken))
        first.load_state_dict(state)
        for loader in itertools.chain(*loaders):
            loader.close()
    if first.steps_left == 0:
        assert [next(first.endless(), None), next(iter(first), None)] == [None, None]
