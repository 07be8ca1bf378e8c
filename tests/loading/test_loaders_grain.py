"""grain's loaders: batches in the loader's order with any number of its workers, and samples for its own pipelines."""

import json
from typing import Any

import grain
import numpy as np
import pytest
from absl import flags
from data_sets.built_data_sets import build_data_set
from made_up.data_sets import samples_in
from made_up.loaders import in_order, loader

import maskmill
from maskmill import private_names
from maskmill.errors import UnusableInputError
from maskmill.loaders.grain import Batches, Samples
from maskmill.masking.objective_options import ObjectiveOptions

pytestmark = pytest.mark.elsewhere


def test_every_private_name_is_there() -> None:
    assert private_names.missing("grain") == []


def test_an_iteration_is_an_epoch_and_always_the_same() -> None:
    made = Batches(loader())
    assert [samples_in(batch) for batch in made] == [samples_in(batch) for batch in made] == in_order()[:8]


@pytest.mark.parametrize("tail", ["drop", "pad", "repeat", "carry"])
def test_states_go_on(tail: str) -> None:
    first = iter(Batches(loader(tail=tail), endless=True))
    got = [samples_in(next(first)) for _ in range(11)]
    state = json.loads(json.dumps(first.get_state()))
    second = iter(Batches(loader(tail=tail), endless=True))
    second.set_state(state)
    got += [samples_in(next(second)) for _ in range(9)]
    assert got == in_order(tail=tail)[:20]


@pytest.mark.parametrize("workers", [1, 2])
def test_grains_worker_processes_give_the_same(workers: int) -> None:
    flags.FLAGS.mark_as_parsed()  # grain's workers ask for its flags
    made = Batches(loader()).mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))
    first = iter(made)
    got = [samples_in(next(first)) for _ in range(3)]
    state = first.get_state()
    first.close()
    second = iter(made)
    second.set_state(state)
    got += [samples_in(batch) for batch in second]
    second.close()
    assert got == in_order()[:8]


def test_slices_of_slices() -> None:
    made = Batches(loader())
    made.set_slice(slice(1, None, 2))
    made.set_slice(slice(0, None, 3))
    assert [samples_in(batch) for batch in made] == in_order()[:8][1::2][0::3]
    with pytest.raises(UnusableInputError, match="would change the order of the batches"):
        made.set_slice(slice(0, None, 2), True)


def test_samples_by_number() -> None:
    samples = Samples(loader(tail="pad"), epochs=2)
    assert isinstance(samples, grain.sources.RandomAccessDataSource)
    assert len(samples) == 106
    assert [int(samples[n]["input_ids"][0]) - 10 for n in (0, 52, 53, 105)] == [0, 52, 0, 52]
    with pytest.raises(IndexError, match="index must be from 0 to 105"):
        samples[106]


def test_samples_in_a_pipeline_of_grains() -> None:
    made = grain.MapDataset.source(Samples(loader())).shuffle(seed=1).to_iter_dataset().batch(10)
    numbers = [number for batch in made for number in samples_in(batch)]
    assert sorted(numbers) == list(range(53))
    assert numbers != sorted(numbers)
    sampler = grain.samplers.IndexSampler(53, seed=2, shuffle=True, num_epochs=1)
    with_loader = grain.DataLoader(data_source=Samples(loader()), sampler=sampler, operations=[])
    assert sorted(int(sample["input_ids"][0]) - 10 for sample in with_loader) == list(range(53))


def test_samples_have_other_masks_in_each_epoch(tmp_path: Any) -> None:
    objective = ObjectiveOptions(objective="mlm", dynamic_masking=True)
    opened = maskmill.open(build_data_set(tmp_path, objective=objective), batch_size=6, shuffle=False)
    count = opened.data_sets[0].samples
    samples = Samples(opened, epochs=2)
    batch = next(iter(opened))
    for number in range(6):
        for name, array in samples[number].items():
            np.testing.assert_array_equal(array, batch[name][number])
    positions = [[samples[epoch * count + n]["masked_lm_positions"].tolist() for n in range(6)] for epoch in range(2)]
    assert positions[0] != positions[1]


def test_samples_of_a_mix_are_refused() -> None:
    mixed = loader()
    mixed.data_sets *= 2
    with pytest.raises(UnusableInputError, match="is for one data set"):
        Samples(mixed)
