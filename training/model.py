"""The models: BERT's and RoBERTa's encoders with the heads for pre-training and for classification.

A model is a function of its weights and of the examples' features by name (`input_ids`, `input_mask`, `segment_ids`,
`masked_lm_positions`: int32) that gives logits. Each weight has the name and the layout that it has in
google-research/bert; checkpoints and exports use these names only.
"""

import dataclasses
import functools
import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from maskmill.errors import UnusableInputError
from training.backend_ops import (
    Draws,
    Sequences,
    attention,
    dropped,
    is_fused,
    layer_norm,
    matmul_float32,
    recomputed,
    to_numpy,
)
from training.config import ModelConfig

# Initial weights are drawn within so many standard deviations.
_TRUNCATION = 2

# Matrix units want widths that are multiples of this.
_ALIGNED = 64

# The feature that packed rows have besides.
ENDS = "cu_seqlens"

# Arrays of a backend by name.
Tensors = Mapping[str, Any]
# The weights, the features of examples and the draws of dropout (None: nothing is dropped) → the outputs by name.
Forward = Callable[["_Cast", Tensors, Draws | None], dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Weight:
    """A weight of a model (float32), with its name and layout in google-research/bert."""

    name: str
    variable: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.variable.shape)

    def read(self) -> np.ndarray:
        """The value."""
        return to_numpy(self.variable)

    def write(self, array: np.ndarray) -> None:
        """Sets the value."""
        self.variable.assign(np.asarray(array, np.float32))


@dataclasses.dataclass(frozen=True)
class BuiltModel:
    """A model: its configuration, its weights, the features that it reads and what it computes of them.

    The model computes in the dtype policy of Keras at the time when it was built; its outputs are float32.
    """

    config: ModelConfig
    weights: tuple[Weight, ...]
    features: tuple[str, ...]
    forward: Forward
    compute_dtype: str

    def is_fused(self, *, packed: bool) -> bool:
        """Whether attention is one call of a library for the device (training/backend_ops.py)."""
        head = self.config.hidden_size // self.config.num_attention_heads
        return is_fused(self.compute_dtype, head, packed=packed)

    @property
    def variables(self) -> list[Any]:
        """The Keras variables of all weights."""
        return [weight.variable for weight in self.weights]

    def outputs(self, values: Sequence[Any], batch: Tensors, draws: Draws | None = None) -> dict[str, Any]:
        """The outputs by name for the values of all weights. With `draws` values are dropped, as in training."""
        weights = _Cast({w.name: v for w, v in zip(self.weights, values, strict=True)}, self.compute_dtype)
        features = (*self.features, ENDS) if ENDS in batch else self.features
        return self.forward(weights, {name: batch[name] for name in features}, draws)

    def __call__(self, batch: Tensors) -> dict[str, Any]:
        """The outputs by name for the values that the weights have now; nothing is dropped."""
        return self.outputs([v.value for v in self.variables], batch)

    def values(self) -> dict[str, np.ndarray]:
        """All weights by name."""
        return {w.name: w.read() for w in self.weights}

    def load(self, values: Mapping[str, np.ndarray], *, where: str) -> list[str]:
        """Sets the weights that `values` names. The others keep their values; their names are returned.

        Raises:
          UnusableInputError: a shape differs, or a weight of the encoder is missing (the pooler may be).
        """
        missing = []
        for weight in self.weights:
            value = values.get(weight.name)
            if value is None:
                missing.append(weight.name)
            elif tuple(value.shape) != weight.shape:
                raise UnusableInputError(
                    f"{where}: {weight.name} has shape {list(value.shape)} here and {list(weight.shape)} in the model; "
                    "give the configuration that belongs to this checkpoint."
                )
            else:
                weight.write(value)
        prefix = f"{self.config.model_type}/"
        missing_encoder = [n for n in missing if n.startswith(prefix) and not n.startswith(f"{prefix}pooler/")]
        if missing_encoder:
            raise UnusableInputError(
                f"{where}: this checkpoint lacks {missing_encoder[0]} and {len(missing_encoder) - 1} more weights of "
                "the encoder; give the configuration that belongs to this checkpoint."
            )
        return missing


class _Cast:
    """Weights in the dtype that a model computes in, each cast when it is first needed; `full` has them in float32."""

    def __init__(self, full: Tensors, dtype: str) -> None:
        self.full = full
        self.dtype = dtype
        self._cast: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._cast:
            self._cast[name] = ops.cast(self.full[name], self.dtype)
        return self._cast[name]


def pretraining_model(
    config: ModelConfig, *, next_sentence: bool = True, seed: int = 0, rematerialize: bool = False
) -> BuiltModel:
    """The encoder with the masked-LM head, tied to the word embeddings, and optionally the next-sentence head.

    Features: `input_ids`, `input_mask`, `segment_ids` [B, S], `masked_lm_positions` [B, P], int32; of rows with several
    sequences also `cu_seqlens` [B, M + 1]: 0, where each ends, and the last end again.
    Outputs: `masked_lm_logits` [B, P, vocab_size], `next_sentence_logits` [B, 2], `pooled_output` [B, hidden_size]; the
    last two only with the next-sentence head, and for each sequence of packed rows, [B, M, …]. The seed gives the
    initial weights (see `initial_value`), which are the same on every backend. With `rematerialize`, gradients are
    computed of each layer's input (see `_encode`).
    Source: google-research/bert run_pretraining.py, get_masked_lm_output and get_next_sentence_output.
    """
    width, words = config.hidden_size, f"{config.model_type}/embeddings/word_embeddings"
    transform, bias, head = "cls/predictions/transform", "cls/predictions/output_bias", "cls/seq_relationship"

    def forward(weights: _Cast, batch: Tensors, draws: Draws | None) -> dict[str, Any]:
        sequence = _encode(config, weights, batch, draws, rematerialize)
        positions, length = batch["masked_lm_positions"], batch["input_ids"].shape[1]
        masked = _activated(config, _dense(weights, f"{transform}/dense", _at(sequence, positions, length)))
        masked = _layer_norm(config, weights, f"{transform}/LayerNorm", masked)
        table = weights[words]
        if weights.dtype != "float32":
            # What is added here is cut off below.
            table = ops.pad(table, ((0, -config.vocab_size % _ALIGNED), (0, 0)))
        logits = matmul_float32(masked, table)[..., : config.vocab_size] + weights.full[bias]
        outputs = {"masked_lm_logits": logits}
        if next_sentence:
            pooled = _pooled(config, weights, sequence, batch)
            logits = ops.matmul(pooled, ops.transpose(weights[f"{head}/output_weights"]))
            outputs["next_sentence_logits"] = ops.cast(logits + weights[f"{head}/output_bias"], "float32")
            outputs["pooled_output"] = ops.cast(pooled, "float32")
        return outputs

    shapes = _encoder_shapes(config) | {
        **_dense_shapes(f"{transform}/dense", width, width),
        **_layer_norm_shapes(f"{transform}/LayerNorm", width),
        bias: (config.vocab_size,),
    }
    if next_sentence:
        shapes |= _pooler_shapes(config) | {f"{head}/output_weights": (2, width), f"{head}/output_bias": (2,)}
    return _built(config, (*_features(config), "masked_lm_positions"), forward, shapes, seed)


def classification_model(
    config: ModelConfig, *, num_labels: int, seed: int = 0, rematerialize: bool = False
) -> BuiltModel:
    """The encoder with a classifier on the pooled output.

    Features: `input_ids`, `input_mask`, `segment_ids` [B, S], int32. Output: `logits` [B, num_labels].
    Source: google-research/bert run_classifier.py, create_model.
    """

    def forward(weights: _Cast, batch: Tensors, draws: Draws | None) -> dict[str, Any]:
        pooled = _pooled(config, weights, _encode(config, weights, batch, draws, rematerialize), batch)
        pooled = dropped(draws, pooled, config.hidden_dropout_prob)
        logits = ops.matmul(pooled, ops.transpose(weights["output_weights"])) + weights["output_bias"]
        return {"logits": ops.cast(logits, "float32")}

    classifier = {"output_weights": (num_labels, config.hidden_size), "output_bias": (num_labels,)}
    shapes = _encoder_shapes(config) | _pooler_shapes(config) | classifier
    return _built(config, _features(config), forward, shapes, seed)


def _features(config: ModelConfig) -> tuple[str, ...]:
    """The features that an encoder reads."""
    return ("input_ids", "input_mask") + (("segment_ids",) if config.model_type == "bert" else ())


def _encode(
    config: ModelConfig, weights: _Cast, batch: Tensors, draws: Draws | None, rematerialize: bool = False
) -> Any:
    """The encoder's output, a matrix [B * S, hidden_size] (google-research/bert modeling.py, BertModel).

    It is a matrix all along: if XLA sees [B, S, hidden_size], it may lay out the whole encoder by columns, because that
    suits a small product at its end. A step took a third longer on an H100.

    With `rematerialize`, of each layer only the input stays in memory, and gradients begin with computing it again.
    Where cuDNN drops, that holds for the second half of a layer only: called again, it would drop others.
    """
    embeddings, ids = f"{config.model_type}/embeddings", batch["input_ids"]
    shape, sequences = ops.shape(ids), Sequences(batch["input_mask"], batch.get(ENDS))
    heads, size = config.num_attention_heads, config.hidden_size // config.num_attention_heads
    rate = config.hidden_dropout_prob
    # Rows are looked up in float32: casting the whole table would take longer.
    x = ops.take(weights.full[f"{embeddings}/word_embeddings"], ids, axis=0)
    positions = weights.full[f"{embeddings}/position_embeddings"]
    packed = sequences.places is not None
    x = x + (ops.take(positions, sequences.places, axis=0) if packed else positions[: ids.shape[1]])
    if "segment_ids" in batch:
        # A product, because the gradients of a look-up would all be added to the same few rows.
        segments = ops.one_hot(batch["segment_ids"], config.type_vocab_size, dtype="float32")
        x = x + ops.matmul(segments, weights.full[f"{embeddings}/token_type_embeddings"])
    x = ops.reshape(x, (-1, config.hidden_size))
    x = dropped(draws, _layer_norm(config, weights, f"{embeddings}/LayerNorm", x), rate)
    drop = config.attention_probs_dropout_prob

    def attend(layer: str, weights: _Cast, x: Any) -> Any:
        query, key, value = (
            ops.reshape(_dense(weights, f"{layer}/attention/self/{part}", x), (*shape, heads, size))
            for part in ("query", "key", "value")
        )
        y = attention(query, key, value, sequences, rate=drop, draws=draws)
        y = _dense(weights, f"{layer}/attention/output/dense", ops.reshape(y, (-1, config.hidden_size)))
        return _layer_norm(config, weights, f"{layer}/attention/output/LayerNorm", x + dropped(draws, y, rate))

    def feed_forward(layer: str, weights: _Cast, x: Any) -> Any:
        y = _activated(config, _dense(weights, f"{layer}/intermediate/dense", x))
        y = _dense(weights, f"{layer}/output/dense", y)
        return _layer_norm(config, weights, f"{layer}/output/LayerNorm", x + dropped(draws, y, rate))

    def passed(parts: Sequence[Callable[..., Any]], layer: str, weights: _Cast, x: Any) -> Any:
        for part in parts:
            x = part(layer, weights, x)
        return x

    drops_by_cudnn = draws is not None and drop > 0 and is_fused(weights.dtype, size, packed=packed)
    groups = [[attend], [feed_forward]] if drops_by_cudnn else [[attend, feed_forward]]
    for i, parts in itertools.product(range(config.num_hidden_layers), groups):
        layer = f"{config.model_type}/encoder/layer_{i}"
        if rematerialize and (feed_forward in parts):
            # What is computed again casts weights anew, too.
            x = recomputed(functools.partial(passed, parts, layer, _Cast(weights.full, weights.dtype)), x)
        else:
            x = passed(parts, layer, weights, x)
    return x


def _at(sequence: Any, positions: Any, length: int) -> Any:
    """The rows [B, P, N] of a sequence [B * length, N] at positions [B, P] of each example."""
    starts = ops.arange(ops.shape(positions)[0], dtype=positions.dtype) * length
    return ops.take(sequence, positions + ops.expand_dims(starts, -1), axis=0)


def _pooled(config: ModelConfig, weights: _Cast, sequence: Any, batch: Tensors) -> Any:
    """The pooled output [B, hidden_size]: a dense layer with tanh on the first row of each example.

    It is [B, M, hidden_size] for packed rows, with the first row of each of their sequences.
    """
    ids, ends = batch["input_ids"], batch.get(ENDS)
    length = ids.shape[1]
    if ends is None:
        first = _at(sequence, ops.zeros_like(ids[:, :1]), length)[:, 0]
    else:
        # A sequence that is not there would begin behind a full row.
        first = _at(sequence, ops.minimum(ends[:, :-1], length - 1), length)
    return ops.tanh(_dense(weights, f"{config.model_type}/pooler/dense", first))


def _dense(weights: _Cast, name: str, x: Any) -> Any:
    return ops.matmul(x, weights[f"{name}/kernel"]) + weights[f"{name}/bias"]


def _layer_norm(config: ModelConfig, weights: _Cast, name: str, x: Any) -> Any:
    """Layer normalisation over the last axis, computed in float32; the result has the model's dtype."""
    gamma, beta = weights.full[f"{name}/gamma"], weights.full[f"{name}/beta"]
    return ops.cast(layer_norm(x, gamma, beta, config.layer_norm_eps), weights.dtype)


def _activated(config: ModelConfig, x: Any) -> Any:
    """The model's activation, computed in float32; the result has the dtype of x."""

    def activation(x: Any) -> Any:
        y = ops.cast(x, "float32")
        if config.hidden_act in ("gelu", "gelu_erf"):
            return ops.cast(ops.gelu(y, approximate=config.hidden_act == "gelu"), x.dtype)
        return ops.cast(keras.activations.get(config.hidden_act)(y), x.dtype)

    return recomputed(activation, x)


Shapes = dict[str, tuple[int, ...]]


def _encoder_shapes(config: ModelConfig) -> Shapes:
    """The encoder's weights without the pooler: their shapes by name."""
    width, inner, embeddings = config.hidden_size, config.intermediate_size, f"{config.model_type}/embeddings"
    shapes: Shapes = {
        f"{embeddings}/word_embeddings": (config.vocab_size, width),
        f"{embeddings}/position_embeddings": (config.max_position_embeddings, width),
    }
    if config.model_type == "bert":
        shapes[f"{embeddings}/token_type_embeddings"] = (config.type_vocab_size, width)
    shapes |= _layer_norm_shapes(f"{embeddings}/LayerNorm", width)
    for i in range(config.num_hidden_layers):
        layer = f"{config.model_type}/encoder/layer_{i}"
        for part in ("self/query", "self/key", "self/value", "output/dense"):
            shapes |= _dense_shapes(f"{layer}/attention/{part}", width, width)
        shapes |= _layer_norm_shapes(f"{layer}/attention/output/LayerNorm", width)
        shapes |= _dense_shapes(f"{layer}/intermediate/dense", width, inner)
        shapes |= _dense_shapes(f"{layer}/output/dense", inner, width)
        shapes |= _layer_norm_shapes(f"{layer}/output/LayerNorm", width)
    return shapes


def _pooler_shapes(config: ModelConfig) -> Shapes:
    return _dense_shapes(f"{config.model_type}/pooler/dense", config.hidden_size, config.hidden_size)


def _dense_shapes(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}/kernel": (inputs, outputs), f"{name}/bias": (outputs,)}


def _layer_norm_shapes(name: str, width: int) -> Shapes:
    return {f"{name}/gamma": (width,), f"{name}/beta": (width,)}


def _built(config: ModelConfig, features: tuple[str, ...], forward: Any, shapes: Shapes, seed: int) -> BuiltModel:
    """The model with initial weights of these shapes."""

    def weight(name: str, shape: tuple[int, ...]) -> Weight:
        value = initial_value(name, shape, config.initializer_range, seed)
        return Weight(name, keras.Variable(value, dtype="float32", name=name.replace("/", ".")))

    weights = tuple(weight(name, shape) for name, shape in shapes.items())
    return BuiltModel(config, weights, features, forward, keras.config.dtype_policy().compute_dtype)


def initial_value(name: str, shape: tuple[int, ...], deviation: float, seed: int) -> np.ndarray:
    """A weight before training (float32): truncated normal for matrices, zeros for bias and beta, ones for gamma.

    It depends on the seed and the name only, so it is the same on every backend and device. Values beyond two
    deviations are drawn again (google-research/bert modeling.py, create_initializer).
    """
    if name.endswith(("bias", "beta")):
        return np.zeros(shape, np.float32)
    if name.endswith("gamma"):
        return np.ones(shape, np.float32)
    digest = hashlib.sha256(f"{seed}:weight:{name}".encode()).digest()
    generator = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    values = generator.standard_normal(math.prod(shape), np.float32)
    while len(too_large := np.flatnonzero(np.abs(values) > _TRUNCATION)):
        values[too_large] = generator.standard_normal(len(too_large), np.float32)
    return (values * np.float32(deviation)).reshape(shape)
