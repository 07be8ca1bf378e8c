"""The reference's numbers on either backend: the checkpoint's metrics, and 30 updates of each optimizer."""

import numpy as np
import pytest
from training_helpers import CHECKPOINT, batch_of, devices

from training import evaluate


@pytest.fixture(scope="module")
def data(examples_path):
    return batch_of(examples_path, 0, 1256)


def rows(data, start, count):
    return {name: value[start : start + count] for name, value in data.items()}


def loaded(config):
    from training import convert
    from training.model import pretraining_model

    built = pretraining_model(config)
    assert built.load(convert.read(str(CHECKPOINT), config), where="gold") == []
    return built


def evaluated(steps, data):
    ones = {"example_weights": np.ones(32, np.float32)}
    return evaluate.evaluate(steps, lambda: (rows(data, i, 32) | ones for i in range(1000, 1256, 32)))


def steps_of(built, optimizer):
    from training.steps import make_steps
    from training.tasks import PretrainingTask

    return make_steps(PretrainingTask(built), optimizer, devices())


def optimizer_of(name, expected):
    import keras

    from training.optimizers import AdamW, Lamb, WarmupPolynomialDecay

    if name == "lamb":
        return Lamb(WarmupPolynomialDecay(learning_rate=0.02, num_train_steps=40, num_warmup_steps=8))

    class Recorded(keras.optimizers.schedules.LearningRateSchedule):
        """The rates that the reference recorded; tests/data/training/README.md says why they are not computed."""

        def __call__(self, step):
            rates = [s["learning_rate"] for s in expected["adamw"]["trace"]]
            return keras.ops.take(keras.ops.convert_to_tensor(rates, "float32"), step)

    return AdamW(Recorded())


@pytest.mark.exhaustive_but("lamb")
@pytest.mark.parametrize("name", ["lamb", "adamw"])
def test_thirty_updates_give_the_references_losses(name, config, data, expected):
    built = loaded(config)
    steps = steps_of(built, optimizer_of(name, expected))
    first = evaluated(steps, data)
    for metric, value in expected["init_eval"].items():
        assert first[metric] == pytest.approx(value, abs=1e-5)
    for i, step in enumerate(expected[name]["trace"]):
        losses = steps.train({n: v[None] for n, v in rows(data, 32 * i, 32).items()})
        assert float(losses["loss"]) == pytest.approx(step["total_loss"], rel=2e-4), i
        assert float(losses["masked_lm_loss"]) == pytest.approx(step["masked_lm_loss"], rel=2e-4), i
        assert float(losses["next_sentence_loss"]) == pytest.approx(step["next_sentence_loss"], rel=2e-4), i
        assert float(losses["learning_rate"]) == pytest.approx(step["learning_rate"], rel=1e-5), i
    last = evaluated(steps, data)
    for metric, value in expected[name]["final_eval"].items():
        # Accuracies come from counts and are equal. Losses differ by the rounding of thirty float32 updates.
        tolerance = {"abs": 1e-12} if metric.endswith("accuracy") else {"rel": 1e-5}
        assert last[metric] == pytest.approx(value, **tolerance)


def test_the_pooled_output_is_the_references(config, data, expected):
    built = loaded(config)
    batch = rows(data, 0, 32)
    outputs = built(batch)
    pooled = np.asarray(outputs["pooled_output"])[0, :8]
    np.testing.assert_allclose(pooled, expected["pooled_first_batch_row0_first8"], atol=1e-5)


def test_the_checkpoint_has_the_variables_that_the_model_names(config, expected):
    built = loaded(config)
    assert {w.name: list(w.shape) for w in built.weights} == expected["variables"]


def test_the_excluded_variables_are_those_of_the_reference(config):
    from training.optimizers import EXCLUDED

    # The optimizers match Keras's paths and the reference its own names; both must exclude the same weights.
    for weight in loaded(config).weights:
        path, name = weight.variable.path, weight.name
        assert (EXCLUDED.search(path) is None) == (EXCLUDED.search(name) is None), (path, name)
