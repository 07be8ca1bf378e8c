"""Rows of several sequences give what their sequences give alone, in a model and in a whole run."""

import numpy as np
import pytest
from training_helpers import BACKEND, make_steps, packed, random_batch, small_config

from maskmill.errors import UnusableInputError
from training import evaluate, inputs
from training.unpadding import unpadded

on_jax = pytest.mark.skipif(BACKEND != "jax", reason="JAX's own way")
WIDTH = 64
MODERN = {"model_type": "modernbert", "layer_norm_eps": 1e-5, "local_attention": 8, "num_hidden_layers": 3}


def step_of(batch: dict, changes: dict, **options) -> tuple[dict, dict]:
    """The losses of a step, and the first moments of AdamW after it: a tenth of the gradients."""
    config = small_config(**({"num_hidden_layers": 2} | changes))
    steps = make_steps(config, optimizer="adamw", clip="none", next_sentence=config.has_segments, **options)
    losses = {n: float(v) for n, v in steps.train({n: v[None] for n, v in batch.items()}).items()}
    steps.store()
    return losses, {w.name: np.asarray(m.value) for w, m in zip(steps.built.weights, steps.optimizer.m, strict=True)}


@pytest.mark.parametrize(("count", "changes"), [(1, {}), (4, {}), (1, MODERN)])
def test_the_loss_and_the_gradients_are_those_of_the_sequences_alone(count, changes):
    batch = random_batch(25)
    rows = packed(batch, WIDTH, multiple=count)
    assert len(rows["input_ids"]) % count == 0
    # One row only fills up a batch for four devices: all of it is padding.
    assert (rows["input_mask"].sum(axis=1) == 0).any() == (count == 4)
    assert (np.diff(rows["cu_seqlens"]) > 0).sum() == 25
    alone, of_alone = step_of(batch, changes)
    together, of_together = step_of(rows, changes, count=count)
    assert together == pytest.approx(alone, rel=1e-5)
    for name, gradient in of_alone.items():
        np.testing.assert_allclose(of_together[name], gradient, atol=1e-6, err_msg=name)


def test_a_sequence_does_not_see_another_of_its_row():
    rows = packed(random_batch(12), WIDTH)
    end = rows["cu_seqlens"][0, 1]
    rows["masked_lm_weights"][0] *= rows["masked_lm_positions"][0] < end
    others = {n: v.copy() for n, v in rows.items()}
    others["input_ids"][0, end:] = 7
    steps = make_steps(small_config())
    one, other = (steps.built.outputs([w.variable.value for w in steps.built.weights], b) for b in (rows, others))
    of_first = rows["masked_lm_weights"][0] > 0
    for name, mine in (("masked_lm_logits", of_first), ("pooled_output", np.arange(8) == 0)):
        first, changed = (np.asarray(outputs[name])[0] for outputs in (one, other))
        np.testing.assert_array_equal(first[mine], changed[mine], err_msg=name)
    # The others do see what changed.
    assert (np.asarray(one["pooled_output"])[0, 1] != np.asarray(other["pooled_output"])[0, 1]).any()


def test_an_evaluation_counts_each_sequence_once():
    batch = random_batch(25)
    rows = packed(batch, WIDTH)
    steps = make_steps(small_config())
    metrics = []
    for examples in (batch, rows):
        weights = np.ones(len(examples["input_ids"]), np.float32)
        metrics.append(evaluate.evaluate(steps, [examples | {"example_weights": weights}].__iter__))
    assert metrics[0] == pytest.approx(metrics[1], rel=1e-5)
    half = steps.evaluate(rows | {"example_weights": (np.arange(len(rows["input_ids"])) < 3).astype(np.float32)})
    assert np.sum(half["next_sentence_weight"]) == (np.diff(rows["cu_seqlens"][:3]) > 0).sum()


@on_jax
@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_attention_is_one_call_of_cudnn_in_the_program_of_a_gpu(rate, with_cudnn, float32_afterwards):
    steps = make_steps(small_config(attention_probs_dropout_prob=rate), dtype="bfloat16")
    rows = {name: value[None] for name, value in packed(random_batch(25), WIDTH).items()}
    assert steps.built.attention(packed=True) == "fused, cuDNN"
    program = steps._train.trace(steps._weights, steps._state, rows).lower(lowering_platforms=("cuda",)).as_text()
    # Each row has room for eight sequences and what fills it up.
    assert program.count("max_seg_per_batch") == 2
    assert program.replace("\\22", '"').count('"max_seg_per_batch": 9') == 2
    assert f"{WIDTH}x{WIDTH}x" not in program


def test_arrays_have_room_for_the_sequences_that_rows_have():
    features = inputs.pretraining_features(WIDTH, 5, packed=True)
    few, many = (unpadded(random_batch(12), WIDTH) for _ in range(2))
    many["cu_seqlens"][3] = np.minimum(np.arange(WIDTH // 2 + 1) * 5, 60)
    make = inputs.ArrayMaker(features, hosts=1)
    for batch, room in ((few, 8), (many, 16), (few, 16)):
        arrays = make(batch)
        assert arrays["cu_seqlens"].shape[1] == room + 1
        assert arrays["next_sentence_labels"].shape[1] == room
        assert arrays["cu_seqlens"].max() == batch["cu_seqlens"].max()
    assert inputs.ArrayMaker(features, hosts=2)(few)["next_sentence_labels"].shape[1] == WIDTH // 2


def test_unpadded_rows_have_what_the_examples_have():
    batch = random_batch(40, seed=1)
    rows = unpadded(batch, WIDTH, multiple=4)
    assert len(rows["input_ids"]) == 16  # 40 examples have 821 tokens
    seen = []
    for row, ends in enumerate(rows["cu_seqlens"]):
        for start, end, label in zip(ends, ends[1:], rows["next_sentence_labels"][row], strict=False):
            at = rows["masked_lm_positions"][row] - start
            mine = (rows["masked_lm_weights"][row] > 0) & (at >= 0) & (at < end - start)
            if end > start:
                tokens = [rows[name][row, start:end].tolist() for name in ("input_ids", "segment_ids", "input_mask")]
                seen.append((*tokens, at[mine].tolist(), rows["masked_lm_ids"][row, mine].tolist(), label))
            else:
                assert label == -100
    wanted = []
    for example in range(40):
        length, chosen = batch["input_mask"][example].sum(), batch["masked_lm_weights"][example] > 0
        tokens = [batch[name][example, :length].tolist() for name in ("input_ids", "segment_ids", "input_mask")]
        masks = [batch[name][example, chosen].tolist() for name in ("masked_lm_positions", "masked_lm_ids")]
        wanted.append((*tokens, *masks, batch["next_sentence_labels"][example]))
    assert sorted(seen) == sorted(wanted)
    assert rows["input_mask"].sum() == batch["input_mask"].sum()


def test_padding_before_tokens_cannot_be_taken_out():
    batch = random_batch(4)
    batch["input_mask"][2, 3] = 0
    with pytest.raises(UnusableInputError, match="input_mask of an example is not ones and then zeros, and --unpad"):
        unpadded(batch, WIDTH)
