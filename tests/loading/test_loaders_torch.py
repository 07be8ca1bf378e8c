"""PyTorch's loaders: the loader's order with any number of workers and ranks, and states that go on with any other."""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from data_sets.built_data_sets import build_data_set
from made_up.data_sets import data_set, samples_in, source
from made_up.loaders import in_order, loader
from torchdata.stateful_dataloader import StatefulDataLoader

import maskmill
from maskmill.errors import UnusableInputError
from maskmill.loaders.torch import Batch, DataLoader, Dataset, apart, join
from maskmill.loading.loader import Loader
from maskmill.loading.mixing import mix_of
from maskmill.loading.options import LoaderOptions

pytestmark = [pytest.mark.elsewhere, pytest.mark.filterwarnings("ignore:This DataLoader will create")]

TAILS = ("drop", "pad", "repeat", "carry")


def samples_of(batches: Iterable[Batch]) -> list[list[int]]:
    return [samples_in({name: tensor.numpy() for name, tensor in batch.items()}) for batch in batches]


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("workers", range(5))
def test_states_go_on_with_other_numbers_of_workers(workers: int, tail: str) -> None:
    """Whole epochs, one that is broken off, and its rest with other workers."""
    first = DataLoader(loader(tail=tail), num_workers=workers)
    got = samples_of(first)
    assert len(got) == len(first) == len(list(loader(tail=tail)))
    got += samples_of(itertools.islice(first, 4))
    second = DataLoader(loader(tail=tail), num_workers=(workers + 2) % 5)
    second.load_state_dict(first.state_dict())
    got += samples_of(second) + samples_of(second)
    assert got == in_order(tail=tail)[: len(got)]
    assert second.state_dict()["epoch"] >= 3


@pytest.mark.parametrize("ranks", [2, 3])
def test_states_go_on_with_other_ranks(ranks: int) -> None:
    def together(ranks: int, state: dict[str, Any] | None, steps: int) -> tuple[list[list[int]], dict[str, Any]]:
        """A few batches of all ranks."""
        parts, states = [], []
        for rank in range(ranks):
            made = DataLoader(loader(), rank=rank, ranks=ranks, num_workers=1, endless=True)
            if state:
                made.load_state_dict(state)
            parts.append(samples_of(itertools.islice(made, steps)))
            states.append(made.state_dict())
        assert all(state == states[0] for state in states)
        return [list(itertools.chain(*rows)) for rows in zip(*parts, strict=True)], states[0]

    got, state = together(ranks, None, 5)
    more, _ = together(1, state, 8)
    assert got + more == in_order()[:13]


def test_an_iteration_goes_on_where_the_last_one_was_broken_off() -> None:
    made = DataLoader(loader(), num_workers=2, persistent_workers=True, endless=True)
    got = [*itertools.chain(*(samples_of(itertools.islice(made, count)) for count in (3, 1, 9, 5)))]
    assert got == in_order()[:18]
    stats = made.stats()
    assert 0 < stats.waited <= stats.seconds
    assert 0 < stats.batches <= 18


def test_an_old_iteration_cannot_go_on() -> None:
    made = DataLoader(loader())
    old = iter(made)
    next(old)
    next(iter(made))
    with pytest.raises(RuntimeError, match="a later one of the same DataLoader started"):
        next(old)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_data_loader_of_ones_own_goes_on_to_the_next_epoch(workers: int) -> None:
    for persistent in {False, workers > 0}:
        made = torch.utils.data.DataLoader(
            Dataset(loader(tail="pad")), batch_size=None, num_workers=workers, persistent_workers=persistent
        )
        got = samples_of(made) + samples_of(made) + samples_of(made)
        assert len(got) == 3 * len(made)
        assert got == in_order(tail="pad")[: len(got)]


@pytest.mark.parametrize(("stop", "left"), [(3, 6), (8, 1), (9, 0), (10, 9)])
@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_stateful_data_loader(workers: int, stop: int, left: int) -> None:
    """An epoch has 9 batches. That it is over is known only to who asks for a tenth."""
    first = StatefulDataLoader(Dataset(loader(tail="carry")), batch_size=None, num_workers=workers)
    got = samples_of(itertools.islice(first, stop))
    second = StatefulDataLoader(Dataset(loader(tail="carry")), batch_size=None, num_workers=workers)
    second.load_state_dict(first.state_dict())
    rest = samples_of(second)
    assert len(rest) == left
    got += rest + samples_of(second)
    assert got == in_order(tail="carry")[: len(got)]


def test_spawned_workers_read_the_same() -> None:
    made = DataLoader(loader(), num_workers=2, multiprocessing_context="spawn")
    assert samples_of(made) == in_order()[:8]


def test_tensors_travel_as_one() -> None:
    batch = {
        "ids": torch.arange(15, dtype=torch.int64).reshape(3, 5),
        "labels": torch.tensor([[7]], dtype=torch.int32),
        "weights": torch.rand(3, 33),
        "none": torch.empty(3, 0, dtype=torch.int32),
        "samples": torch.tensor([5, -1, 9]),
    }
    got = apart(join(batch))
    assert list(got) == list(batch)
    for name, tensor in batch.items():
        torch.testing.assert_close(got[name], tensor, rtol=0, atol=0)


def test_a_mix_goes_on_in_workers() -> None:
    sources = [source(data_set([20, 13])), source(data_set([9], fingerprint="g", path="other"))]
    mix = mix_of([one.data_set for one in sources], [3, 1], seed=3)

    def mixed() -> Loader:
        return Loader(sources, LoaderOptions(batch_size=6, seed=3, window=16, with_samples=True), mix)

    wanted = [batch["samples"].tolist() for batch in itertools.islice(iter(mixed()), 30)]
    first = DataLoader(mixed(), num_workers=2)
    got = [batch["samples"].tolist() for batch in itertools.islice(first, 13)]
    second = DataLoader(mixed(), num_workers=3, multiprocessing_context="fork")
    second.load_state_dict(first.state_dict())
    got += [batch["samples"].tolist() for batch in itertools.islice(second, 17)]
    assert got == wanted
    for endless in (first, DataLoader(loader(), endless=True)):
        with pytest.raises(TypeError, match="has no length"):
            len(endless)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_damaged_record_is_named(workers: int, tmp_path: Path) -> None:
    """By the same error; from a worker process torch adds where it was raised."""
    opened = maskmill.open(build_data_set(tmp_path), batch_size=6)
    file = Path(opened.data_sets[0].files[1].path)
    content = bytearray(file.read_bytes())
    content[1000] ^= 1
    file.write_bytes(content)
    with pytest.raises(
        UnusableInputError, match=f"{file}: record 3 at byte 690 has data that does not fit its checksum"
    ):
        list(DataLoader(opened, num_workers=workers))


def test_options_that_cannot_be_meant() -> None:
    with pytest.raises(UnusableInputError, match="rank and ranks belong together; give both, or neither"):
        DataLoader(loader(), rank=1)
    with pytest.raises(UnusableInputError, match="in_order=False returns batches in an undefined order; leave it out"):
        DataLoader(loader(), num_workers=1, in_order=False)
