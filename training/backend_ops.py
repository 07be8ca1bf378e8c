"""Operations that JAX and TensorFlow need separate code for: dropout, attention, and a product with float32 sums.

All other operations of the models are `keras.ops` (training/model.py). Attention is one fused call if cuDNN or Splash
(JAX's kernel for TPUs) supports it, and then nothing of the size [B, heads, S, S] is in memory.
"""

import functools
import math
from typing import Any, Literal

import keras
import numpy as np
from keras import ops

# Knuth's multiplier and a second odd constant spread the seeds of runs and of places over the seeds' 31 bits.
_SEED_STRIDE = 2654435761
_PLACE_STRIDE = 40503
_SEEDS = 2**31
# A dropped share is a multiple of 1 / _BITS: 0.1 is 0.100006.
_BITS = 2**16
# Head sizes that the fused kernels take: multiples of 8 up to this one.
_LARGEST_HEAD = 128
# Splash computes blocks of a multiple of _LANES tokens, at most _LARGEST_BLOCK.
_LANES = 128
_LARGEST_BLOCK = 512

Fused = Literal["cuDNN", "Splash"]


class Draws:
    """The dropout of one pass through a model.

    It depends on the run's seed, on `counter` (an int32 scalar that numbers the pass) and on the number of earlier
    draws in the pass. A resumed run therefore draws the same values as an uninterrupted one, and no state is saved. The
    exception is fused attention: cuDNN numbers its own draws, from the start of the process.

    If the examples of a pass are split over devices in order, `device` is the number of this one. On JAX they then draw
    the same values as one device with all examples.
    """

    def __init__(self, seed: int, counter: Any, device: Any = 0) -> None:
        self._seed = seed
        self._counter = ops.cast(counter, "int32")
        self._device = device
        self._places = 0

    def dropout(self, x: Any, rate: float) -> Any:
        """Return `x` [...] with a share `rate` of its values set to 0 and the others divided by 1 - rate."""
        if not rate:
            return x
        share = min(round(rate * _BITS), _BITS - 1)
        kept = self._bits(ops.shape(x)) >= share
        return ops.where(kept, x * ops.cast(1 / (1 - share / _BITS), x.dtype), ops.zeros((), x.dtype))

    def place_seed(self) -> int:
        """Return a seed (31 bits) for the next draw of the pass."""
        self._places += 1
        return ((self._seed + 1) * _SEED_STRIDE + self._places * _PLACE_STRIDE) % _SEEDS

    def _bits(self, shape: tuple[int, ...]) -> Any:
        """Return whole numbers from 0 to _BITS - 1."""
        seed = self.place_seed()
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            return tf.random.stateless_uniform(shape, tf.stack([seed, self._counter]), 0, _BITS, tf.int32)
        import jax

        first, second = jax.random.key_data(jax.random.fold_in(jax.random.key(seed), self._counter))
        count = math.prod(shape)
        numbers = jax.numpy.arange(count, dtype="uint32").reshape(shape) + jax.numpy.uint32(self._device * count)
        return _hashed(_hashed(numbers ^ first) + second) >> 16


def _hashed(x: Any) -> Any:
    """Return a hash of uint32 values: each bit of the result depends on all bits of x.

    It takes a tenth of the operations of JAX's own generator, which took 4 % of a step on an H200 (docs/training.md).
    Source: Wellons, "Prospecting for hash functions", lowbias32.
    """
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)


def dropped(draws: Draws | None, x: Any, rate: float) -> Any:
    """Return `draws.dropout(x, rate)`, or x itself without draws, as in evaluation."""
    return x if draws is None else draws.dropout(x, rate)


def matmul_float32(x: Any, table: Any) -> Any:
    """Return the product of x [..., N] and the transposed table [M, N] with float32 sums, as float32 [..., M].

    The gradients are products of the dtype of x.
    """
    if keras.backend.backend() != "jax":
        return ops.cast(ops.matmul(x, ops.transpose(table)), "float32")
    return _jax_matmul_float32()(x, table)


@functools.cache
def _jax_matmul_float32() -> Any:
    import jax
    import jax.numpy as jnp

    def forward(x: Any, table: Any) -> Any:
        return jnp.einsum("...n,mn->...m", x, table, preferred_element_type="float32")

    def backward(saved: tuple[Any, Any], gradient: Any) -> tuple[Any, Any]:
        x, table = saved
        gradient = gradient.astype(x.dtype)
        return jnp.einsum("...m,mn->...n", gradient, table), jnp.einsum("...m,...n->mn", gradient, x)

    product = jax.custom_vjp(forward)
    product.defvjp(lambda x, table: (forward(x, table), (x, table)), backward)
    return product


def to_numpy(value: Any) -> np.ndarray:
    """Return the whole value of a Keras variable or an array. If hosts share it, all of them must call this."""
    value = getattr(value, "value", value)
    if keras.backend.backend() == "jax" and not (value.is_fully_addressable or value.is_fully_replicated):
        from jax.experimental import multihost_utils

        value = multihost_utils.process_allgather(value, tiled=True)
    return np.asarray(value)


def recomputed(function: Any, x: Any) -> Any:
    """Return function(x); on JAX its gradient is recomputed from x, so that only x stays in memory."""
    if keras.backend.backend() != "jax":
        return function(x)
    import jax

    return jax.checkpoint(function)(x)


def layer_norm(x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    """Return the layer normalisation of x [..., N] over its last axis with gamma and beta [N], computed in float32."""
    if keras.backend.backend() == "jax":
        return _jax_layer_norm()(x, gamma, beta, epsilon)
    x = ops.cast(x, "float32")
    x = x - ops.mean(x, -1, keepdims=True)
    return x * ops.rsqrt(ops.mean(ops.square(x), -1, keepdims=True) + epsilon) * gamma + beta


@functools.cache
def _jax_layer_norm() -> Any:
    """Return a layer normalisation that keeps x, its mean and its deviation for the gradients.

    Otherwise XLA computes mean and deviation again and first writes the terms of gamma's gradient to memory.
    """
    import jax
    import jax.numpy as jnp

    def forward(x: Any, gamma: Any, beta: Any, epsilon: float) -> tuple[Any, tuple[Any, ...]]:
        wide = x.astype("float32")
        mean = wide.mean(-1, keepdims=True)
        scale = jax.lax.rsqrt(jnp.square(wide - mean).mean(-1, keepdims=True) + epsilon)
        return (wide - mean) * scale * gamma + beta, (x, *jax.lax.optimization_barrier((mean, scale)), gamma)

    def backward(epsilon: float, saved: tuple[Any, ...], gradient: Any) -> tuple[Any, Any, Any]:
        x, mean, scale, gamma = saved
        normal = (x.astype("float32") - mean) * scale
        inner = gradient * gamma
        inner = inner - inner.mean(-1, keepdims=True) - normal * (inner * normal).mean(-1, keepdims=True)
        examples = tuple(range(x.ndim - 1))
        return (inner * scale).astype(x.dtype), (gradient * normal).sum(examples), gradient.sum(examples)

    norm = jax.custom_vjp(lambda x, gamma, beta, epsilon: forward(x, gamma, beta, epsilon)[0], nondiff_argnums=(3,))
    norm.defvjp(forward, backward)
    return norm


class Sequences:
    """The sequences in the rows [B, S] of a batch: which tokens see each other, and the place of each.

    A row is either one sequence, and `mask` [B, S] is 1 for its tokens and 0 for padding; or it is packed, with several
    sequences, and `ends` [B, M + 1] are 0, the end of each of them, and the last end again (cu_seqlens). The padding of
    a packed row is one more sequence, so that every token sees a token.

    `places` [B, S] is the place of each token of packed rows in its sequence, from 0; None for other rows.
    """

    def __init__(self, mask: Any, ends: Any = None) -> None:
        self.mask = mask
        self.ends = ends
        self.places = None
        # The number of each token's sequence in its row; -1 for tokens that no token sees.
        self.numbers = mask - 1
        sees = mask[:, None, None, :]
        if ends is not None:
            at = ops.arange(mask.shape[1], dtype="int32")
            self.numbers = ops.sum(ops.cast(at[None, :, None] >= ends[:, None, 1:], "int32"), -1)
            self.places = at - ops.take_along_axis(ends, self.numbers, axis=1)
            sees = self.numbers[:, None, :, None] == self.numbers[:, None, None, :]
        # What attention adds to its scores [B, heads, S, S], if it is not fused.
        self.bias = (ops.cast(sees, "float32") - 1) * 1e9


def attention(query: Any, key: Any, value: Any, sequences: Sequences, *, rate: float, draws: Draws | None) -> Any:
    """Return softmax(query key' / sqrt(D)) value for each head, over the visible keys of a query.

    `query`, `key` and `value` are [B, S, heads, D]. With `draws`, a share `rate` of the probabilities is dropped. For
    fused attention, a row's mask must be ones followed by zeros.
    Source: google-research/bert modeling.py, attention_layer.
    """
    rate = 0.0 if draws is None else rate
    library = fused_by(query.dtype, query.shape[-1], packed=sequences.ends is not None, drops=rate > 0)
    if library == "cuDNN":
        return _cudnn_attention(query, key, value, sequences, rate, 0 if draws is None else draws.place_seed())
    if library == "Splash":
        return _splash_attention(query, key, value, sequences)
    scores = ops.einsum("bqnd,bknd->bnqk", query, key)
    scores = ops.cast(scores, "float32") * query.shape[-1] ** -0.5
    probabilities = dropped(draws, ops.softmax(scores + sequences.bias), rate)
    return ops.einsum("bnqk,bknd->bqnd", ops.cast(probabilities, value.dtype), value)


def local_attention(
    query: Any, key: Any, value: Any, sequences: Sequences, *, window: int, rate: float, draws: Draws | None
) -> Any:
    """Return `attention` in which a token sees only tokens at most `window` places away.

    Rows are divided into blocks that see themselves and `window` tokens on either side, so that memory grows with the
    length. cuDNN's own windows only look back in JAX, so it gets each block as an example with a mask.
    """
    length, heads, size = query.shape[1:]
    rate = 0.0 if draws is None else rate
    library = fused_by(query.dtype, size, packed=sequences.ends is not None, drops=rate > 0)
    if library == "Splash":
        return _splash_attention(query, key, value, sequences, window)
    # cuDNN is faster with the larger blocks, though they see more in vain: 5 % of a step of ModernBERT-base on an H100.
    block = 2 * window if library == "cuDNN" else window

    def blocks(x: Any) -> Any:
        padded = ops.pad(x, ((0, 0), (0, -length % block), *[(0, 0)] * (len(x.shape) - 2)))
        return ops.reshape(padded, (-1, padded.shape[1] // block, block, *x.shape[2:]))

    def around(x: Any) -> Any:
        middle = blocks(x)
        nothing = ops.zeros_like(middle[:, :1, :window])
        before = ops.concatenate([nothing, middle[:, :-1, -window:]], 1)
        after = ops.concatenate([middle[:, 1:, :window], nothing], 1)
        return ops.concatenate([before, middle, after], 2)

    numbers = sequences.numbers + 1  # so that 0 marks tokens that no token sees
    keys = around(numbers)[:, :, None, :]
    distance = np.arange(block + 2 * window)[None, :] - np.arange(window, block + window)[:, None]
    sees = (blocks(numbers)[..., None] == keys) & (keys > 0) & (np.abs(distance) <= window)
    sees = sees | (distance == 0)  # padding sees itself: cuDNN's gradients of what sees nothing are not finite
    of_heads = blocks(query), around(key), around(value)
    if library == "cuDNN":
        seed = 0 if draws is None else draws.place_seed()
        q, k, v = (ops.reshape(x, (-1, *x.shape[2:])) for x in of_heads)
        seen = _cudnn_attention_of_blocks(q, k, v, ops.reshape(sees, (-1, 1, *sees.shape[2:])), rate, seed)
    else:
        bias = (ops.cast(sees[:, :, None], "float32") - 1) * 1e9
        scores = ops.cast(ops.einsum("bnqhd,bnkhd->bnhqk", *of_heads[:2]), "float32") * size**-0.5
        probabilities = ops.cast(dropped(draws, ops.softmax(scores + bias), rate), value.dtype)
        seen = ops.einsum("bnhqk,bnkhd->bnqhd", probabilities, of_heads[2])
    return ops.reshape(seen, (-1, sees.shape[1] * block, heads, size))[:, :length]


def rotated(x: Any, places: Any, theta: float) -> Any:
    """Return x [B, S, heads, D] rotated by `places` [B or 1, S], computed in float32. Source: arXiv:2104.09864."""
    half = x.shape[-1] // 2
    frequencies = (theta ** (-np.arange(half) / half)).astype(np.float32)
    angles = (ops.cast(places, "float32")[..., None] * frequencies)[:, :, None]
    first, second = ops.split(ops.cast(x, "float32"), 2, axis=-1)
    cosine, sine = ops.cos(angles), ops.sin(angles)
    turned = ops.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)
    return ops.cast(turned, x.dtype)


def fused_by(dtype: Any, head: int, *, packed: bool, drops: bool) -> Fused | None:
    """Return the library that computes attention in one call, for 16-bit values on JAX; None if there is none.

    cuDNN on an NVIDIA GPU, of the Hopper generation or later for packed rows; Splash on a TPU, which does not support
    dropout.
    """
    if keras.backend.backend() != "jax":
        return None
    if str(dtype) not in ("bfloat16", "float16") or head % 8 or head > _LARGEST_HEAD:
        return None
    if _has_tpu():
        return None if drops else "Splash"
    if not _has_cudnn():
        return None
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    return "cuDNN" if not packed or cudnn.check_compute_capability("9.0") else None


def _has_tpu() -> bool:
    """Return whether JAX computes on a TPU."""
    import jax

    return bool(jax.default_backend() == "tpu")


@functools.cache
def _has_cudnn() -> bool:
    """Return whether JAX computes on an NVIDIA GPU and finds cuDNN."""
    import jax
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    if jax.default_backend() != "gpu":
        return False
    try:
        cudnn.check_cudnn_version()
    except RuntimeError:
        return False
    return True


def _cudnn_attention(query: Any, key: Any, value: Any, sequences: Sequences, rate: float, seed: int) -> Any:
    """Return attention by cuDNN. `jax.nn.dot_product_attention` calls the same function, without dropout."""
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    if sequences.ends is None:
        # An example that only fills up a batch has no token; one key keeps its result finite.
        lengths, starts = ops.maximum(ops.sum(ops.cast(sequences.mask, "int32"), -1), 1), None
    else:
        # -1 marks a missing sequence, and the entries after the last one.
        starts = ops.pad(sequences.ends, ((0, 0), (0, 1)), constant_values=query.shape[1])
        lengths = starts[:, 1:] - starts[:, :-1]
        starts = ops.where(ops.pad(lengths, ((0, 0), (0, 1))) > 0, starts, -1)
        lengths = ops.where(lengths > 0, lengths, -1)
    return cudnn.dot_product_attention(
        query, key, value, q_seqlen=lengths, kv_seqlen=lengths, q_offsets=starts, kv_offsets=starts,
        mask_type=cudnn.MaskType.PADDING, scale=query.shape[-1] ** -0.5, dropout_rate=rate, seed=seed,
    )  # fmt: skip


def _cudnn_attention_of_blocks(query: Any, key: Any, value: Any, sees: Any, rate: float, seed: int) -> Any:
    """Return attention of queries [B, Q, heads, D] over keys [B, K, heads, D], restricted to `sees` [B, 1, Q, K]."""
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    return cudnn.dot_product_attention(
        query, key, value, mask=sees, scale=query.shape[-1] ** -0.5, dropout_rate=rate, seed=seed
    )


def _splash_attention(query: Any, key: Any, value: Any, sequences: Sequences, window: int | None = None) -> Any:
    """Return attention by Splash, with a window `local_attention`. Padding sees only padding."""
    import jax
    from jax.experimental.pallas.ops.tpu import splash_attention as splash

    length, heads, size = query.shape[1:]
    more = -length % _LANES

    def by_heads(x: Any) -> Any:
        return ops.transpose(ops.pad(x, ((0, 0), (0, more), (0, 0), (0, 0))), (0, 2, 1, 3))

    numbers = ops.pad(sequences.numbers, ((0, 0), (0, more)), constant_values=-1)
    shape = (length + more, length + more)
    mask = splash.FullMask(shape) if window is None else splash.LocalMask(shape, (window, window), 0)
    block = math.gcd(length + more, _LARGEST_BLOCK)
    blocks = ("block_q", "block_kv", "block_q_dkv", "block_kv_dkv", "block_q_dq", "block_kv_dq")
    kernel = splash.make_splash_mha_single_device(
        splash.MultiHeadMask([mask] * heads), block_sizes=splash.BlockSizes(**dict.fromkeys(blocks, block))
    )
    of_heads = (by_heads(query * size**-0.5), by_heads(key), by_heads(value))
    seen = jax.vmap(kernel)(*of_heads, splash.SegmentIds(numbers, numbers))
    return ops.transpose(seen, (0, 2, 1, 3))[:, :length]
