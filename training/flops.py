"""The number of floating-point operations of a training step, and the peak of devices."""

from collections.abc import Mapping

import numpy as np

from training.config import ModelConfig

# Dense bfloat16 peaks in FLOP/s by prefixes of JAX's names of devices, longer ones first. Source: data sheets.
_PEAKS = {
    "NVIDIA H100 PCIe": 756e12,
    "NVIDIA H100": 989e12,
    "NVIDIA H200": 989e12,
    "NVIDIA A100": 312e12,
    "TPU v5 lite": 197e12,
    "TPU v5e": 197e12,
    "TPU v6 lite": 918e12,
    "TPU v6e": 918e12,
    "TPU v5": 459e12,
    "TPU v4": 275e12,
}


def sequence_lengths(batch: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return lengths of all sequences of a batch of rows [B, S], packed or not, in any order; 0 for missing ones."""
    ends = batch.get("cu_seqlens")
    lengths: np.ndarray = batch["input_mask"].sum(axis=1) if ends is None else (ends[:, 1:] - ends[:, :-1]).reshape(-1)
    return lengths


def of_step(config: ModelConfig, lengths: np.ndarray, masks: float) -> float:
    """Return FLOPs of a step over sequences of these lengths with `masks` masked positions: only matrix products.

    A multiply-add counts as two, and forward and backward pass take three times the forward pass. For L layers of width
    W with an inner width I, embeddings of width E, N = sum(lengths), and a vocabulary of V:
    3 (L (2 (4 W W + 2 W I) N + 4 W sum(lengths ** 2)) + 2 (W E + E V) masks). ModernBERT has 3 W I in place of 2 W I,
    and in its local layers tokens see no more than the window; ALBERT has 2 E W N more.
    """
    width, embedded = config.hidden_size, config.embedding_width
    is_modern, layers = config.model_type == "modernbert", config.num_hidden_layers
    whole = lengths.astype(np.float64)
    near = np.minimum(whole, 2 * (config.local_attention // 2) + 1)
    far_layers = -(-layers // config.global_attn_every_n_layers) if is_modern else layers
    seen = far_layers * (whole**2).sum() + (layers - far_layers) * (whole * near).sum()
    products = layers * (4 * width * width + (3 if is_modern else 2) * width * config.intermediate_size)
    if config.model_type == "albert":
        products += embedded * width
    head = (width * embedded + embedded * config.vocab_size) * masks
    return float(3 * (2 * products * whole.sum() + 4 * width * seen + 2 * head))


def peak(kind: str) -> float | None:
    """Return the peak of a device of a kind in bfloat16 FLOP/s; None if unknown."""
    return next((peak for name, peak in _PEAKS.items() if kind.startswith(name)), None)
