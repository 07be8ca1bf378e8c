"""The work of a step by the formula, beside what XLA counts in the program."""

import numpy as np
import pytest
from training_helpers import BACKEND, make_steps, packed, random_batch, small_config

from training import flops

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="no backend is used, but by the program of JAX")


MODERN = {"model_type": "modernbert", "local_attention": 32, "num_hidden_layers": 4, "intermediate_size": 1024}


@pytest.mark.parametrize(
    ("changes", "tolerance"),
    [
        ({}, 0.02),
        ({"model_type": "albert", "embedding_size": 128}, 0.02),
        # Its blocks see 3 / 2 of the window, and are 2 % of the work here.
        (MODERN, 0.04),
    ],
)
def test_the_formula_counts_what_xla_counts(changes, tolerance):
    sizes = {"hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048, "num_hidden_layers": 2}
    config = small_config(**(sizes | changes), vocab_size=2000, max_position_embeddings=128)
    batch = random_batch(8, length=128, predictions=20, vocab=2000)
    batch["input_mask"][:] = 1
    steps = make_steps(config, next_sentence=config.has_segments)
    program = steps._train.lower(steps._weights, steps._state, {n: v[None] for n, v in batch.items()})
    # XLA counts all products, of weightless masks, too, and what is done element by element.
    work = flops.of_step(config, flops.sequence_lengths(batch), batch["masked_lm_weights"].size)
    assert program.cost_analysis()["flops"] == pytest.approx(work, rel=tolerance)


def test_packed_rows_have_the_work_of_their_sequences():
    batch, config = random_batch(25), small_config()
    alone = flops.of_step(config, flops.sequence_lengths(batch), 7)
    assert flops.of_step(config, flops.sequence_lengths(packed(batch, 64)), 7) == alone
    # Attention grows with the square of a length.
    lengths = np.array([64, 64])
    assert flops.of_step(config, lengths, 0) < flops.of_step(config, np.array([128]), 0)


@pytest.mark.parametrize(
    ("kind", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("TPU v5 lite", 197e12),
        ("TPU v5", 459e12),
        ("cpu", None),
    ],
)
def test_the_peak_of_a_device(kind, peak):
    assert flops.peak(kind) == peak
