"""tf.data's loader: the loader's order, epoch by epoch."""

import pytest
import tensorflow as tf
from made_up.data_sets import samples_in
from made_up.loaders import in_order, loader

from maskmill.loaders.tf import dataset

pytestmark = pytest.mark.elsewhere


def samples_of(batches: tf.data.Dataset) -> list[list[int]]:
    return [samples_in(batch) for batch in batches.as_numpy_iterator()]


@pytest.mark.parametrize("tail", ["drop", "pad", "repeat", "carry"])
def test_epochs_follow_each_other(tail: str) -> None:
    made = dataset(loader(tail=tail))
    samples_of(made.take(2))  # broken off, so it is begun again
    got = samples_of(made) + samples_of(made.prefetch(2)) + samples_of(made)
    assert got == in_order(tail=tail)[: len(got)]


def test_a_training_goes_on_from_a_state() -> None:
    opened = loader()
    got = samples_of(dataset(opened, endless=True).prefetch(4).take(11))
    opened.load_state_dict(opened.state_after(11))
    got += samples_of(dataset(opened, endless=True).take(9))
    assert got == in_order()[:20]


def test_tensors_are_as_the_spec_says() -> None:
    made = dataset(loader(tail="pad", widths=(8, 16, 24)))
    assert made.element_spec == {
        "input_ids": tf.TensorSpec((6, None), tf.int32),
        "input_mask": tf.TensorSpec((6, None), tf.int32),
        "sample_weights": tf.TensorSpec((6,), tf.float32),
    }
    assert {batch["input_ids"].shape[1] for batch in made} <= {8, 16, 24}
