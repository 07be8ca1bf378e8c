"""The encoders: BERT's, RoBERTa's, ALBERT's and ModernBERT's.

Sources: google-research/bert modeling.py, BertModel; google-research/albert modeling.py; ModernBERT
(arXiv:2412.13663), as `transformers` computes it.
"""

import abc
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
from keras import ops

from training.backend_ops import (
    Draws,
    Sequences,
    attention,
    dropped,
    fused_by,
    layer_norm,
    local_attention,
    recomputed,
    rotated,
)
from training.config import ModelConfig
from training.weights import layer_parts, scope

# An additional feature of packed rows.
ENDS = "cu_seqlens"

# Arrays of a backend by name.
Tensors = Mapping[str, Any]


class Cast:
    """Weights in the dtype of a model's computation, each cast on first use; `full` has them in float32."""

    def __init__(self, full: Tensors, dtype: str) -> None:
        self.full = full
        self.dtype = dtype
        self._cast: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._cast:
            self._cast[name] = ops.cast(self.full[name], self.dtype)
        return self._cast[name]


# A part of a layer: a function of the layer's number, the weights and its input [B * S, hidden_size] to its output.
Part = Callable[[int, Cast, Any], Any]


class Encoder(abc.ABC):
    """One pass of a batch through an encoder.

    All activations are matrices [B * S, hidden_size]: if XLA sees [B, S, hidden_size], it may lay out the whole encoder
    by columns, because that suits a small product at its end. A step took a third longer on an H100.
    """

    def __init__(self, config: ModelConfig, weights: Cast, batch: Tensors, draws: Draws | None) -> None:
        self.config = config
        self.weights = weights
        self.batch = batch
        self.draws = draws
        self.shape = ops.shape(batch["input_ids"])
        self.sequences = Sequences(batch["input_mask"], batch.get(ENDS))
        self.heads = config.num_attention_heads
        self.head_size = config.hidden_size // config.num_attention_heads

    @abc.abstractmethod
    def embed(self) -> Any:
        """Return the input of the first layer."""

    @abc.abstractmethod
    def attend(self, layer: int, weights: Cast, x: Any) -> Any:
        """Return the first half of a layer."""

    @abc.abstractmethod
    def feed_forward(self, layer: int, weights: Cast, x: Any) -> Any:
        """Return the second half of a layer."""

    def encode(self, *, rematerialize: bool = False) -> Any:
        """Return the output of the last layer.

        With `rematerialize`, only the input of each layer stays in memory, and the gradients recompute the rest. With
        cuDNN's dropout, that holds only for the second half of a layer: a second call would drop other values.
        """
        x = self.embed()
        groups: list[list[Part]] = [[self.attend, self.feed_forward]]
        if self._cudnn_drops():
            groups = [[self.attend], [self.feed_forward]]
        for layer, parts in itertools.product(range(self.config.num_hidden_layers), groups):
            if rematerialize and self.feed_forward in parts:
                # The recomputation casts weights again, too.
                weights = Cast(self.weights.full, self.weights.dtype)
                x = recomputed(functools.partial(_passed, parts, layer, weights), x)
            else:
                x = _passed(parts, layer, self.weights, x)
        return x

    def _cudnn_drops(self) -> bool:
        drops = self.draws is not None and self.config.attention_probs_dropout_prob > 0
        packed = self.sequences.ends is not None
        return drops and fused_by(self.weights.dtype, self.head_size, packed=packed, drops=True) == "cuDNN"

    def words(self) -> Any:
        """Return the rows of the words [B, S, N], float32: casting the whole table would take longer."""
        table = self.weights.full[f"{scope(self.config)}/embeddings/word_embeddings"]
        return ops.take(table, self.batch["input_ids"], axis=0)

    def by_heads(self, x: Any) -> Any:
        """Return a matrix [B * S, hidden_size] as [B, S, heads, D]."""
        return ops.reshape(x, (*self.shape, self.heads, self.head_size))


def _passed(parts: Sequence[Part], layer: int, weights: Cast, x: Any) -> Any:
    """Return the result of applying parts of a layer to x, one after the other."""
    for part in parts:
        x = part(layer, weights, x)
    return x


class BertEncoder(Encoder):
    """BERT's, RoBERTa's and ALBERT's: absolute positions, and normalisation after each addition."""

    def embed(self) -> Any:
        """See Encoder.embed."""
        config, weights, batch = self.config, self.weights, self.batch
        embeddings = f"{scope(config)}/embeddings"
        x = self.words()
        positions, places = weights.full[f"{embeddings}/position_embeddings"], self.sequences.places
        x = x + (positions[: self.shape[1]] if places is None else ops.take(positions, places, axis=0))
        if "segment_ids" in batch:
            # A product, because the gradients of a look-up would all be added to the same few rows.
            segments = ops.one_hot(batch["segment_ids"], config.type_vocab_size, dtype="float32")
            x = x + ops.matmul(segments, weights.full[f"{embeddings}/token_type_embeddings"])
        x = ops.reshape(x, (-1, config.embedding_width))
        x = dropped(self.draws, normalized(config, weights, f"{embeddings}/LayerNorm", x), config.hidden_dropout_prob)
        return dense(weights, "bert/encoder/embedding_hidden_mapping_in", x) if config.model_type == "albert" else x

    def attend(self, layer: int, weights: Cast, x: Any) -> Any:
        """See Encoder.attend."""
        config, parts = self.config, layer_parts(self.config, layer)
        query, key, value = (self.by_heads(dense(weights, parts[part], x)) for part in ("query", "key", "value"))
        drop = config.attention_probs_dropout_prob
        y = attention(query, key, value, self.sequences, rate=drop, draws=self.draws)
        y = dense(weights, parts["projection"], ops.reshape(y, (-1, config.hidden_size)))
        return normalized(config, weights, parts["norm"], x + dropped(self.draws, y, config.hidden_dropout_prob))

    def feed_forward(self, layer: int, weights: Cast, x: Any) -> Any:
        """See Encoder.feed_forward."""
        config, parts = self.config, layer_parts(self.config, layer)
        y = dense(weights, parts["outer"], activated(config, dense(weights, parts["inner"], x)))
        return normalized(config, weights, parts["last_norm"], x + dropped(self.draws, y, config.hidden_dropout_prob))


class ModernBertEncoder(Encoder):
    """ModernBERT's: rotary positions, gated units, normalisations before, no biases, local attention in most layers."""

    def __init__(self, config: ModelConfig, weights: Cast, batch: Tensors, draws: Draws | None) -> None:
        super().__init__(config, weights, batch, draws)
        places = self.sequences.places
        self._places = ops.arange(self.shape[1], dtype="int32")[None] if places is None else places

    def embed(self) -> Any:
        """See Encoder.embed."""
        x = ops.reshape(self.words(), (-1, self.config.hidden_size))
        x = normalized(self.config, self.weights, "modernbert/embeddings/LayerNorm", x)
        return dropped(self.draws, x, self.config.hidden_dropout_prob)

    def attend(self, layer: int, weights: Cast, x: Any) -> Any:
        """See Encoder.attend."""
        config, parts = self.config, layer_parts(self.config, layer)
        is_global = layer % config.global_attn_every_n_layers == 0
        y = normalized(config, weights, parts["norm"], x) if layer else x
        query, key, value = map(self.by_heads, ops.split(dense(weights, parts["qkv"], y), 3, axis=-1))
        theta = config.global_rope_theta if is_global else config.local_rope_theta
        query, key = (rotated(part, self._places, theta) for part in (query, key))
        drop = config.attention_probs_dropout_prob
        if is_global:
            y = attention(query, key, value, self.sequences, rate=drop, draws=self.draws)
        else:
            window = config.local_attention // 2
            y = local_attention(query, key, value, self.sequences, window=window, rate=drop, draws=self.draws)
        y = dense(weights, parts["projection"], ops.reshape(y, (-1, config.hidden_size)))
        return x + dropped(self.draws, y, drop)

    def feed_forward(self, layer: int, weights: Cast, x: Any) -> Any:
        """See Encoder.feed_forward."""
        config, parts = self.config, layer_parts(self.config, layer)
        y = dense(weights, parts["inner"], normalized(config, weights, parts["inner_norm"], x))
        y = dropped(self.draws, activated(config, y, gated=True), config.hidden_dropout_prob)
        y = x + dense(weights, parts["outer"], y)
        if layer < config.num_hidden_layers - 1:
            return y
        return normalized(config, weights, "modernbert/final/LayerNorm", y)


def encode(
    config: ModelConfig, weights: Cast, batch: Tensors, draws: Draws | None, *, rematerialize: bool = False
) -> Any:
    """Return the encoder's output, a matrix [B * S, hidden_size]; see `Encoder.encode`."""
    kind = ModernBertEncoder if config.model_type == "modernbert" else BertEncoder
    return kind(config, weights, batch, draws).encode(rematerialize=rematerialize)


def dense(weights: Cast, name: str, x: Any) -> Any:
    """Return a dense layer, with a bias if the weights have one."""
    y = ops.matmul(x, weights[f"{name}/kernel"])
    return y + weights[f"{name}/bias"] if f"{name}/bias" in weights.full else y


def normalized(config: ModelConfig, weights: Cast, name: str, x: Any) -> Any:
    """Return the layer normalisation over the last axis, computed in float32, in the model's dtype."""
    gamma = weights.full[f"{name}/gamma"]
    beta = weights.full.get(f"{name}/beta")
    beta = ops.zeros_like(gamma) if beta is None else beta
    return ops.cast(layer_norm(x, gamma, beta, config.layer_norm_eps), weights.dtype)


def activated(config: ModelConfig, x: Any, *, gated: bool = False) -> Any:
    """Return the model's activation, computed in float32; the result has the dtype of x.

    With `gated`, it is that of the first half of x [..., 2 N] times the second.
    """

    def activation(x: Any) -> Any:
        y = ops.cast(x, "float32")
        gate: Any = 1.0
        if gated:
            y, gate = ops.split(y, 2, axis=-1)
        if config.hidden_act in ("gelu", "gelu_erf"):
            return ops.cast(ops.gelu(y, approximate=config.hidden_act == "gelu") * gate, x.dtype)
        return ops.cast(keras.activations.get(config.hidden_act)(y) * gate, x.dtype)

    return recomputed(activation, x)
