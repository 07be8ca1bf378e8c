"""Dropout's draws, fused attention as it is traced for an NVIDIA GPU, and gradients that are written by hand."""

import functools
import re

import numpy as np
import pytest
from training_helpers import BACKEND, make_steps, packed, random_batch, run_steps, small_config

from maskmill.errors import UnusableInputError

on_jax = pytest.mark.skipif(BACKEND != "jax", reason="JAX's own way")
MODERN = {"model_type": "modernbert", "local_attention": 8}
ROWS = {name: value[None] for name, value in random_batch(8).items()}


def test_dropout_drops_its_share_and_keeps_the_mean():
    from training.backend_ops import Draws

    draws = Draws(seed=3, counter=5)
    ones = np.ones((512, 512), np.float32)
    first, second = (np.asarray(draws.dropout(ones, 0.1)) for _ in range(2))
    assert (first == 0).mean() == pytest.approx(0.1, abs=0.003)
    assert first.mean() == pytest.approx(1, abs=0.005)
    # Places of a pass, passes and seeds draw independently of each other: 0.82 of the values are treated alike.
    others = [second, *(np.asarray(Draws(s, c).dropout(ones, 0.1)) for s, c in ((3, 6), (4, 5)))]
    for other in others:
        assert ((first == 0) == (other == 0)).mean() == pytest.approx(0.82, abs=0.005)
    np.testing.assert_array_equal(np.asarray(Draws(3, 5).dropout(ones, 0.1)), first)


@on_jax
@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_attention_is_one_call_of_cudnn_in_the_program_of_a_gpu(rate, with_cudnn, float32_afterwards):
    config = small_config(attention_probs_dropout_prob=rate, num_hidden_layers=3)
    steps = make_steps(config, dtype="bfloat16")
    traced = steps._train.trace(steps._weights, steps._state, dict(ROWS))
    program = traced.lower(lowering_platforms=("cuda",)).as_text()
    calls = re.findall(r"@__cudnn\$(fmhaSoftmax\w*)", program)
    dropped = "Dropout" if rate else ""
    assert sorted(calls) == [f"fmhaSoftmax{dropped}"] * 3 + [f"fmhaSoftmax{dropped}Backward"] * 3
    # Each layer draws by a seed of its own, the same forward and backward.
    seeds = re.findall(r'"seed": (\d+)', program.replace("\\22", '"'))
    assert len(seeds) == 6
    assert len(set(seeds)) == 3
    # Nothing of the size of all pairs of tokens is left.
    assert "8x2x32x32x" not in program


@on_jax
@pytest.mark.parametrize("packs", [False, True])
def test_local_attention_is_one_call_of_cudnn_in_the_program_of_a_gpu(packs, with_cudnn, float32_afterwards):
    config = small_config(num_hidden_layers=3, max_position_embeddings=160, attention_probs_dropout_prob=0.1, **MODERN)
    steps = make_steps(config, dtype="bfloat16", next_sentence=False)
    batch = packed(random_batch(25), 160) if packs else random_batch(8, length=160)
    traced = steps._train.trace(steps._weights, steps._state, {n: v[None] for n, v in batch.items()})
    program = traced.lower(lowering_platforms=("cuda",)).as_text()
    calls = re.findall(r"@__cudnn\$(fmha\w*)Dropout", program)
    assert sorted(calls) == ["fmhaScaleBiasSoftmax"] * 4 + ["fmhaSoftmax"] * 2
    assert "160x160x" not in program
    assert steps.built.attention(packed=packs) == "fused, cuDNN"


@on_jax
def test_the_blocks_that_cudnn_takes_give_what_local_attention_is(monkeypatch):
    import jax

    from training import backend_ops

    def as_cudnn(query, key, value, sees, rate, seed):
        assert np.asarray(sees).any(axis=-1).all()  # of what sees nothing, cuDNN's gradients are not finite
        return jax.nn.dot_product_attention(query, key, value, mask=sees, implementation="xla")

    ends = np.array([[0, 40, 90, 90], [0, 1, 60, 100]], np.int32)
    sequences = backend_ops.Sequences(random_batch(2, length=100)["input_mask"], ends)
    is_token = np.asarray(sequences.numbers)[..., None, None] >= 0
    arrays = np.random.default_rng(0).standard_normal((4, 2, 100, 2, 8), np.float32)

    def results():
        def local(*of_heads):
            return backend_ops.local_attention(*of_heads, sequences, window=24, rate=0.0, draws=None) * is_token

        seen, gradients = jax.vjp(local, *arrays[:3])
        return (seen, *gradients(arrays[3]))

    plain = results()
    monkeypatch.setattr(backend_ops, "fused_by", lambda *_, **__: "cuDNN")
    monkeypatch.setattr(backend_ops, "_cudnn_attention_of_blocks", as_cudnn)
    for one, other in zip(results(), plain, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


@on_jax
def test_attention_is_not_fused_in_float32_or_on_a_cpu(float32_afterwards):
    for dtype in ("float32", "bfloat16"):
        steps = make_steps(small_config(), dtype=dtype)
        assert steps.built.attention(packed=False) == "not fused"
        assert "cudnn" not in steps._train.lower(steps._weights, steps._state, dict(ROWS)).as_text()


@on_jax
@pytest.mark.parametrize(("packs", "count", "changes"), [(False, 1, MODERN), (True, 4, {}), (True, 1, MODERN)])
@pytest.mark.exhaustive_but("False-1-changes0", "True-4-changes1")
def test_attention_is_one_call_of_splash_in_the_program_of_a_tpu(packs, count, changes, with_tpu, float32_afterwards):
    config = small_config(num_hidden_layers=2, max_position_embeddings=160, **changes)
    steps = make_steps(config, dtype="bfloat16", count=count, next_sentence=config.has_segments)
    batch = packed(random_batch(25), 160, multiple=4) if packs else random_batch(8, length=160)
    training, evaluation = programs_of_a_tpu(steps, batch)
    # A layer calls the kernel of what it sees forward and backward; layers that see the same share it.
    assert len(re.findall(r"call @_splash_attention\w*", training)) == 4
    assert len(re.findall(r"call @_splash_attention\w*", evaluation)) == 2
    for kernel in ("fwd_segmented_residuals", "dq_segmented_no_residuals", "dkv_segmented_no_residuals"):
        assert training.count(f'kernel_name = "splash_mha_{kernel}"') == (2 if changes else 1)
    # Nothing of the size of all pairs of tokens is left.
    assert "160x160x" not in training + evaluation
    assert steps.built.attention(packed=packs) == "fused, Splash"


@on_jax
def test_splash_cannot_drop(with_tpu, float32_afterwards):
    config = small_config(attention_probs_dropout_prob=0.1, max_position_embeddings=160)
    steps = make_steps(config, dtype="bfloat16")
    training, evaluation = programs_of_a_tpu(steps, random_batch(8, length=160))
    assert "splash" not in training
    assert "splash" in evaluation
    assert steps.built.attention(packed=False) == "not fused: Splash has no dropout, and that of attention is 0.1"


def programs_of_a_tpu(steps, batch):
    """The programs of a step and of an evaluation, lowered for a TPU. They cannot be run."""
    placed = steps._placed({name: value[None] for name, value in batch.items()}, steps._by_parts)
    batch = batch | {"example_weights": np.ones(len(batch["input_ids"]), np.float32)}
    examples = steps._placed(batch, steps._by_examples)
    traced = steps._train.trace(steps._weights, steps._state, placed), steps._evaluate.trace(steps._weights, examples)
    return [program.lower(lowering_platforms=("tpu",)).as_text() for program in traced]


@on_jax
@pytest.mark.parametrize("ends", [None, [[0, 40, 90, 90], [0, 1, 60, 100]]])
@pytest.mark.parametrize("window", [None, 24])
def test_splash_computes_what_attention_is(window, ends, monkeypatch):
    import jax
    from jax.experimental.pallas.ops.tpu import splash_attention

    from training import backend_ops

    make = functools.partial(splash_attention.make_splash_mha_single_device, interpret=True)
    monkeypatch.setattr(splash_attention, "make_splash_mha_single_device", make)
    mask = random_batch(2, length=100)["input_mask"]
    mask[0, 3] = 0
    sequences = backend_ops.Sequences(mask, None if ends is None else np.array(ends, np.int32))
    is_token = np.asarray(sequences.numbers)[..., None, None] >= 0
    arrays = np.random.default_rng(0).standard_normal((4, 2, 100, 2, 8), np.float32)

    def plain(*of_heads):
        if window is None:
            return backend_ops.attention(*of_heads, sequences, rate=0.0, draws=None)
        return backend_ops.local_attention(*of_heads, sequences, window=window, rate=0.0, draws=None)

    def results(function):
        seen, gradients = jax.vjp(lambda *of_heads: function(*of_heads) * is_token, *arrays[:3])
        return (seen, *gradients(arrays[3]))

    fused = results(lambda *of_heads: backend_ops._splash_attention(*of_heads, sequences, window))
    for one, other in zip(fused, results(plain), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


@on_jax
def test_fused_attention_refuses_padding_before_tokens(with_cudnn, float32_afterwards):
    steps = make_steps(small_config(), dtype="bfloat16")
    mask = ROWS["input_mask"].copy()
    mask[0, 3, 2] = 0
    with pytest.raises(UnusableInputError, match="a 1 after a 0"):
        steps.train(ROWS | {"input_mask": mask})


@on_jax
def test_masks_with_padding_before_tokens_are_followed_elsewhere():
    # The tokens that are masked must not matter, wherever they are.
    def loss(ids):
        mask = ROWS["input_mask"].copy()
        mask[0, :, 20] = 0
        batch = {n: v[0] for n, v in (ROWS | {"input_mask": mask, "input_ids": ids}).items()}
        return run_steps(make_steps(small_config(), rate=0.0), [batch])[0]

    changed = ROWS["input_ids"].copy()
    changed[0, :, 20] = 17
    assert loss(ROWS["input_ids"]) == loss(changed)


@on_jax
def test_gradients_written_by_hand_are_those_of_jax():
    import jax
    import jax.numpy as jnp

    from training.backend_ops import layer_norm, matmul_float32

    draw = np.random.default_rng(0)
    x, table = draw.standard_normal((2, 5, 16), np.float32), draw.standard_normal((7, 16), np.float32)
    gamma, beta = draw.standard_normal((2, 16), np.float32)

    def plain_norm(x, gamma, beta):
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gamma + beta

    pairs = [
        (lambda *a: layer_norm(*a, 1e-5), plain_norm, (x, gamma, beta)),
        (matmul_float32, lambda x, table: x @ table.T, (x, table)),
    ]
    for ours, plain, arguments in pairs:
        np.testing.assert_allclose(ours(*arguments), plain(*arguments), atol=1e-5)
        places = tuple(range(len(arguments)))
        one, other = (
            jax.grad(lambda *a, f=function: jnp.sin(f(*a)).sum(), places)(*arguments) for function in (ours, plain)
        )
        for got, wanted in zip(one, other, strict=True):
            np.testing.assert_allclose(got, wanted, atol=2e-5)
