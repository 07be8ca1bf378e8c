"""A step gives the same result in parts, on several devices and from run to run, on either backend."""

import re

import numpy as np
import pytest
from training_helpers import BACKEND, ROBERTA, make_steps, parted, random_batch, run_steps, small_config

BATCHES = [random_batch(32, seed=i) for i in range(3)]


def assert_same(one, other, tolerance=1e-5):
    np.testing.assert_allclose(one[0], other[0], rtol=tolerance)
    for name, value in one[1].items():
        np.testing.assert_allclose(value, other[1][name], atol=tolerance, err_msg=name)


@pytest.fixture(scope="module")
def whole():
    return run_steps(make_steps(small_config(), clip="none"), BATCHES)


@pytest.mark.exhaustive
def test_four_parts_of_eight_are_a_batch_of_32(whole):
    assert_same(run_steps(make_steps(small_config(), clip="none"), BATCHES, parts=4), whole)


def test_four_devices_are_one_device(whole):
    steps = make_steps(small_config(), count=4, clip="none")
    assert steps.devices.count == 4
    assert_same(run_steps(steps, BATCHES), whole)


def test_parts_and_devices_together_with_clipping_after_the_average():
    clipped = run_steps(make_steps(small_config()), BATCHES)
    assert_same(run_steps(make_steps(small_config(), count=4), BATCHES, parts=2), clipped)


@pytest.mark.skipif(BACKEND == "tensorflow", reason="each device draws its own dropout there")
def test_devices_draw_the_dropout_of_one_device():
    config = small_config(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.1)
    assert_same(run_steps(make_steps(config, count=4), BATCHES), run_steps(make_steps(config), BATCHES))


@pytest.mark.skipif(BACKEND == "tensorflow", reason="by the program of JAX")
@pytest.mark.parametrize("clip", ["after", "before"])
def test_devices_speak_once_an_update_and_parts_are_one_loop(clip):
    steps = make_steps(small_config(num_hidden_layers=2), count=4, clip=clip)

    def program(parts):
        placed = steps._placed(parted(BATCHES[0], parts), steps._by_parts)
        return steps._train.lower(steps._weights, steps._state, placed).compile().as_text()

    one, four = program(1), program(4)
    for text in (one, four):
        # The weight of the whole batch, before the losses are divided by it, and the gradients with the losses.
        assert len(re.findall(r" all-reduce(?:-start)?\(", text)) == (2 if clip == "after" else 1)
    bodies = [c for c in re.split(r"\n(?=[%E])", four) if re.match(r"%?\S*(body|region)", c)]
    assert bodies
    assert not any("all-reduce" in body for body in bodies)
    # The first part is in the loop, too.
    assert len(four) < 1.6 * len(one)


@pytest.mark.skipif(BACKEND == "tensorflow", reason="by what JAX tells")
@pytest.mark.parametrize("count", [1, 4])
def test_after_the_first_step_nothing_is_compiled_and_no_host_is_waited_for(count):
    import jax

    steps = make_steps(small_config(hidden_dropout_prob=0.1), count=count)
    first, *others = (parted(batch, 2) for batch in BATCHES)
    told = [steps.train(first)]
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: compiled.append(event))
    # What is placed by name, as the batch is, may still go to the devices.
    with jax.transfer_guard("disallow"):
        told += [steps.train(batch) for batch in others]
    assert not [event for event in compiled if "compile" in event]
    assert steps._train._cache_size() == 1
    placed = steps._placed(first, steps._by_parts)
    program = steps._train.lower(steps._weights, steps._state, placed).compile().as_text()
    assert not re.findall(r"callback|infeed|outfeed| send\(| recv\(", program)
    assert len({float(losses["loss"]) for losses in told}) == 3


def test_clipping_matters_here(whole):
    # If every gradient had a norm below 1, the tests above would not notice whether it is clipped.
    steps = make_steps(small_config(initializer_range=0.5), clip="after")
    norms = [float(steps.train({n: v[None] for n, v in b.items()})["gradient_norm"]) for b in BATCHES]
    assert max(norms) > 1


def test_clipping_before_the_average_is_each_devices_own():
    """The reference's default: each device clips the gradient of its own loss, and then they are averaged."""
    # AdamW's first moment after one step is (1 - beta_1) times the gradient.
    config = small_config(initializer_range=0.5)
    batch = BATCHES[0]
    together = make_steps(config, count=4, clip="before", optimizer="adamw")
    together.train({n: v[None] for n, v in batch.items()})
    together.store()
    alone = []
    for device in range(4):
        steps = make_steps(config, clip="after", optimizer="adamw")
        steps.train({n: v[None, 8 * device : 8 * (device + 1)] for n, v in batch.items()})
        steps.store()
        alone.append([np.asarray(m.value) for m in steps.optimizer.m])
    for got, *own in zip(together.optimizer.m, *alone, strict=True):
        np.testing.assert_allclose(np.asarray(got.value), sum(own) / 4, atol=1e-6)


def test_dropout_is_drawn_from_the_seed_and_the_step():
    config = small_config(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.1)
    # At a learning rate of 0, the loss of the same batch differs between steps only by its dropout.
    first = run_steps(make_steps(config, seed=1, rate=0.0), [BATCHES[0]] * 3)[0]
    assert first == run_steps(make_steps(config, seed=1, rate=0.0), [BATCHES[0]] * 3)[0]
    assert len(set(first)) == 3


@pytest.mark.skipif(BACKEND == "tensorflow", reason="the same Keras layers; once is enough")
def test_dropout_rates_apply_each_to_its_own():
    def loss(hidden, attention):
        config = small_config(hidden_dropout_prob=hidden, attention_probs_dropout_prob=attention)
        return run_steps(make_steps(config, rate=0.0), BATCHES[:1])[0][0]

    assert len({loss(0.0, 0.0), loss(0.0, 0.5), loss(0.5, 0.0)}) == 3


def test_without_next_sentence_prediction_there_is_one_loss():
    steps = make_steps(small_config(), next_sentence=False)
    losses = steps.train({n: v[None] for n, v in BATCHES[0].items()})
    assert set(losses) == {"loss", "masked_lm_loss", "gradient_norm", "learning_rate"}
    assert float(losses["loss"]) == float(losses["masked_lm_loss"])


@pytest.mark.parametrize(
    "changes",
    [
        ROBERTA,
        {"model_type": "albert", "embedding_size": 8, "num_hidden_layers": 2},
        {"model_type": "modernbert", "local_attention": 8, "num_hidden_layers": 2, "hidden_dropout_prob": 0.1},
    ],
)
def test_other_encoders_learn(changes):
    config = small_config(**changes)
    losses, _ = run_steps(make_steps(config, next_sentence=config.has_segments), [BATCHES[0]] * 8)
    assert losses[-1] < losses[0]


def test_bfloat16_keeps_weights_and_losses_in_float32():
    import keras

    try:
        losses, values = run_steps(make_steps(small_config(), dtype="bfloat16"), BATCHES)
    finally:
        keras.config.set_dtype_policy("float32")
    assert {v.dtype for v in values.values()} == {np.dtype(np.float32)}
    full, _ = run_steps(make_steps(small_config()), BATCHES)
    np.testing.assert_allclose(losses, full, rtol=0.02)
    assert losses != full


@pytest.mark.skipif(BACKEND == "tensorflow", reason="JAX only")
@pytest.mark.parametrize("sharding", ["zero1", "fsdp"])
def test_devices_that_share_the_state_compute_the_same(sharding):
    alone = run_steps(make_steps(small_config(), optimizer="lamb"), BATCHES)
    steps = make_steps(small_config(), count=4, sharding=sharding, optimizer="lamb")
    assert_same(run_steps(steps, BATCHES, parts=2), alone)
    shares = [a.addressable_shards[0].data.size / a.size for a in (*steps._state[1:], *steps._weights) if a.ndim > 1]
    moments, weights = shares[: len(shares) * 2 // 3], shares[len(shares) * 2 // 3 :]
    assert set(moments) == {0.25}
    assert set(weights) == ({0.25} if sharding == "fsdp" else {1.0})
    batch = {name: value[None] for name, value in BATCHES[0].items()}
    program = steps._train.lower(steps._weights, steps._state, steps._placed(batch, steps._by_parts)).as_text()
    assert "reduce_scatter" in program


@pytest.mark.skipif(BACKEND == "tensorflow", reason="JAX only")
def test_gradients_are_added_up_in_bfloat16_if_asked_for():
    exact = run_steps(make_steps(small_config(), count=4, clip="none", optimizer="adamw"), BATCHES)
    narrow = make_steps(small_config(), count=4, clip="none", optimizer="adamw", reduce_dtype="bfloat16")
    batch = {name: value[None] for name, value in BATCHES[0].items()}
    program = narrow._train.lower(narrow._weights, narrow._state, narrow._placed(batch, narrow._by_parts)).as_text()
    assert re.search(r'all_reduce"?\(.*bf16', program, re.DOTALL)
    losses, weights = run_steps(narrow, BATCHES)
    np.testing.assert_allclose(losses, exact[0], rtol=1e-2)
    assert any((value != exact[1][name]).any() for name, value in weights.items())


@pytest.mark.skipif(BACKEND == "tensorflow", reason="JAX only")
def test_layers_that_are_computed_again_give_the_same():
    config = small_config(num_hidden_layers=2, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.1)
    again = make_steps(config, rematerialize=True)
    batch = {name: value[None] for name, value in BATCHES[0].items()}
    assert "optimization_barrier" in again._train.lower(again._weights, again._state, batch).as_text()
    assert_same(run_steps(again, BATCHES), run_steps(make_steps(config), BATCHES))
