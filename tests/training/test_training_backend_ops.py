"""Dropout's draws, fused attention as it is traced for an NVIDIA GPU, and gradients that are written by hand."""

import re

import numpy as np
import pytest
from training_helpers import BACKEND, make_steps, random_batch, run_steps, small_config

from maskmill.errors import UnusableInputError

on_jax = pytest.mark.skipif(BACKEND != "jax", reason="JAX's own way")
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
def test_attention_is_not_fused_in_float32_or_on_a_cpu(float32_afterwards):
    for dtype in ("float32", "bfloat16"):
        steps = make_steps(small_config(), dtype=dtype)
        assert not steps.built.is_fused(packed=False)
        assert "cudnn" not in steps._train.lower(steps._weights, steps._state, dict(ROWS)).as_text()


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
