"""Losses and metrics on outputs made by hand, held against their definitions."""

from types import SimpleNamespace

import numpy as np
import pytest
from training_helpers import BACKEND, small_config

from training import tasks
from training.weights import NEXT_SENTENCE

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="the gold traces hold the losses on both backends")

VOCABULARY = 7


def pretraining_task(*, next_sentence=True):
    weights = [SimpleNamespace(name=NEXT_SENTENCE)] if next_sentence else []
    built = SimpleNamespace(weights=weights, config=small_config(vocab_size=VOCABULARY))
    return tasks.PretrainingTask(built)


@pytest.fixture
def batch():
    """Three examples of two predictions; the third example only fills the batch up."""
    return {
        "input_ids": np.array([[1, 2], [3, 4], [0, 0]], np.int32),
        "masked_lm_ids": np.array([[1, 2], [3, 0], [0, 0]], np.int32),
        "masked_lm_weights": np.array([[1, 1], [1, 0], [1, 1]], np.float32),
        "next_sentence_labels": np.array([0, 1, 0], np.int32),
        "example_weights": np.array([1, 1, 0], np.float32),
    }


@pytest.fixture
def outputs():
    draw = np.random.default_rng(0)
    return {
        "masked_lm_logits": draw.standard_normal((3, 2, VOCABULARY)).astype(np.float32),
        "next_sentence_logits": draw.standard_normal((3, 2)).astype(np.float32),
    }


def cross_entropies(labels, logits):
    """The definition, in float64."""
    logits = logits.astype(np.float64)
    log_sum = np.log(np.exp(logits).sum(-1))
    return log_sum - np.take_along_axis(logits, labels[..., None], -1)[..., 0]


def test_losses_are_sums_and_weights_of_the_batch(batch, outputs):
    task = pretraining_task()
    sums = {name: float(value) for name, value in task.sums(outputs, batch).items()}
    masked = cross_entropies(batch["masked_lm_ids"], outputs["masked_lm_logits"])
    assert sums["masked_lm_loss"] == pytest.approx(np.sum(masked * batch["masked_lm_weights"]), rel=1e-6)
    next_sentence = cross_entropies(batch["next_sentence_labels"], outputs["next_sentence_logits"])
    assert sums["next_sentence_loss"] == pytest.approx(np.sum(next_sentence), rel=1e-6)
    weights = {name: float(value) for name, value in task.weights(batch).items()}
    assert weights == {"masked_lm_loss": 5.0, "next_sentence_loss": 3.0}
    assert [task.epsilon(name) for name in weights] == [1e-5, 0.0]


def test_parts_of_a_batch_add_up_to_it(batch, outputs):
    task = pretraining_task()
    parts = [slice(0, 1), slice(1, 3)]
    for function in (lambda o, b: task.sums(o, b), lambda o, b: task.weights(b)):
        whole = function(outputs, batch)
        each = [
            function({n: v[part] for n, v in outputs.items()}, {n: v[part] for n, v in batch.items()}) for part in parts
        ]
        for name, value in whole.items():
            assert sum(float(part[name]) for part in each) == pytest.approx(float(value), rel=1e-6)


def test_metrics_leave_out_what_fills_the_batch_up(batch, outputs):
    task = pretraining_task()
    logits = outputs["masked_lm_logits"]
    # Two of the three predictions that count are right, and so are all that do not count.
    for row, place in ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1)):
        logits[row, place, batch["masked_lm_ids"][row, place]] = 9.0
    logits[0, 1, 5] = 9.0
    outputs["next_sentence_logits"][:] = [[3.0, 0.0], [3.0, 0.0], [3.0, 0.0]]
    parts = {name: np.asarray(value) for name, value in task.evaluation(outputs, batch).items()}
    metrics = task.metrics([{n: v[:1] for n, v in parts.items()}, {n: v[1:] for n, v in parts.items()}])
    assert metrics["masked_lm_accuracy"] == pytest.approx(2 / 3)
    assert metrics["next_sentence_accuracy"] == pytest.approx(1 / 2)
    masked = cross_entropies(batch["masked_lm_ids"], logits)
    assert metrics["masked_lm_loss"] == pytest.approx((masked[0, 0] + masked[0, 1] + masked[1, 0]) / 3, rel=1e-6)
    next_sentence = cross_entropies(batch["next_sentence_labels"], outputs["next_sentence_logits"])
    assert metrics["next_sentence_loss"] == pytest.approx(np.mean(next_sentence[:2]), rel=1e-6)


def test_a_model_without_the_head_has_no_next_sentence_loss(batch, outputs):
    task = pretraining_task(next_sentence=False)
    assert set(task.weights(batch)) == set(task.sums(outputs, batch)) == {"masked_lm_loss"}
    parts = {name: np.asarray(value) for name, value in task.evaluation(outputs, batch).items()}
    assert set(task.metrics([parts])) == {"masked_lm_accuracy", "masked_lm_loss"}


def test_losses_of_bfloat16_logits_are_float32(batch, outputs):
    from keras import ops

    logits = ops.cast(outputs["masked_lm_logits"], "bfloat16")
    loss = tasks.cross_entropy(batch["masked_lm_ids"], logits)
    assert np.asarray(loss).dtype == np.float32
