"""The models: encoders (training/encoders.py) with the heads for pre-training and for classification.

A model is a function of its weights and of the examples' features by name (`input_ids`, `input_mask`, `segment_ids`,
`masked_lm_positions`: int32), and returns logits. Each weight has its name and layout in training/weights.py;
checkpoints and exports use only these names.
"""

import dataclasses
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from maskmill.errors import UnusableInputError
from training.backend_ops import Draws, Fused, dropped, fused_by, matmul_float32, to_numpy
from training.config import ModelConfig
from training.encoders import ENDS, Cast, Tensors, activated, dense, encode, normalized
from training.weights import MASKED_LM, NEXT_SENTENCE, TRANSFORM, named_weights, scope

# Initial weights are drawn within so many standard deviations.
_TRUNCATION = 2

# Matrix units need widths that are multiples of this.
_ALIGNED = 64

# A function of the weights, the features of examples and the draws of dropout (None: no dropout) to outputs by name.
Forward = Callable[[Cast, Tensors, Draws | None], dict[str, Any]]


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
        """Return the value."""
        return to_numpy(self.variable)

    def write(self, array: np.ndarray) -> None:
        """Set the value."""
        self.variable.assign(np.asarray(array, np.float32))


@dataclasses.dataclass(frozen=True)
class BuiltModel:
    """A model: its configuration, its weights, the features that it reads, and its function.

    It computes in Keras's dtype policy at the time of its creation; its outputs are float32.
    """

    config: ModelConfig
    weights: tuple[Weight, ...]
    features: tuple[str, ...]
    forward: Forward
    compute_dtype: str

    def fused_by(self, *, packed: bool, drops: bool) -> Fused | None:
        """Return the library that computes attention in one call, with dropout or without (training/backend_ops.py)."""
        head = self.config.hidden_size // self.config.num_attention_heads
        return fused_by(self.compute_dtype, head, packed=packed, drops=drops)

    def attention(self, *, packed: bool) -> str:
        """Return a description of how a training computes attention, for its log."""
        rate = self.config.attention_probs_dropout_prob
        library = self.fused_by(packed=packed, drops=rate > 0)
        if library is None and self.fused_by(packed=packed, drops=False) is not None:
            return f"not fused: Splash has no dropout, and that of attention is {rate:g}"
        return "not fused" if library is None else f"fused, {library}"

    @property
    def variables(self) -> list[Any]:
        """The Keras variables of all weights."""
        return [weight.variable for weight in self.weights]

    def outputs(self, values: Sequence[Any], batch: Tensors, draws: Draws | None = None) -> dict[str, Any]:
        """Return outputs by name for the values of all weights. With `draws`, values are dropped as in training."""
        weights = Cast({w.name: v for w, v in zip(self.weights, values, strict=True)}, self.compute_dtype)
        features = (*self.features, ENDS) if ENDS in batch else self.features
        return self.forward(weights, {name: batch[name] for name in features}, draws)

    def __call__(self, batch: Tensors) -> dict[str, Any]:
        """Return the outputs by name for the present values of the weights, without dropout."""
        return self.outputs([v.value for v in self.variables], batch)

    def values(self) -> dict[str, np.ndarray]:
        """Return all weights by name."""
        return {w.name: w.read() for w in self.weights}

    def load(self, values: Mapping[str, np.ndarray], *, where: str) -> list[str]:
        """Set the weights that `values` names; return the names of the others, which keep their values.

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
        prefix = f"{scope(self.config)}/"
        missing_encoder = [n for n in missing if n.startswith(prefix) and not n.startswith(f"{prefix}pooler/")]
        if missing_encoder:
            raise UnusableInputError(
                f"{where}: this checkpoint lacks {missing_encoder[0]} and {len(missing_encoder) - 1} more weights of "
                "the encoder; give the configuration that belongs to this checkpoint."
            )
        return missing


def pretraining_model(
    config: ModelConfig, *, next_sentence: bool = True, seed: int = 0, rematerialize: bool = False
) -> BuiltModel:
    """Return the encoder with the masked-LM head, tied to the word embeddings, and optionally the next-sentence head.

    Features: `input_ids`, `input_mask`, `segment_ids` [B, S], `masked_lm_positions` [B, P], int32; of rows with several
    sequences also `cu_seqlens` [B, M + 1]: 0, where each ends, and the last end again.
    Outputs: `masked_lm_logits` [B, P, vocab_size], `next_sentence_logits` [B, 2], `pooled_output` [B, hidden_size]; the
    last two only with the next-sentence head, and for each sequence of packed rows, [B, M, …]. The seed gives the
    initial weights (see `initial_value`), which are the same on every backend. With `rematerialize`, gradients are
    computed of each layer's input (see training/encoders.py).
    Source: google-research/bert run_pretraining.py, get_masked_lm_output and get_next_sentence_output.
    """
    width, words = config.hidden_size, f"{scope(config)}/embeddings/word_embeddings"
    head_bias = "cls/seq_relationship/output_bias"

    def forward(weights: Cast, batch: Tensors, draws: Draws | None) -> dict[str, Any]:
        sequence = encode(config, weights, batch, draws, rematerialize=rematerialize)
        positions, length = batch["masked_lm_positions"], batch["input_ids"].shape[1]
        masked = _transformed(config, weights, _at(sequence, positions, length))
        table = weights[words]
        if weights.dtype != "float32":
            # What is added here is cut off below.
            table = ops.pad(table, ((0, -config.vocab_size % _ALIGNED), (0, 0)))
        logits = matmul_float32(masked, table)[..., : config.vocab_size] + weights.full[MASKED_LM]
        outputs = {"masked_lm_logits": logits}
        if next_sentence:
            pooled = _pooled(config, weights, sequence, batch)
            logits = ops.matmul(pooled, ops.transpose(weights[NEXT_SENTENCE]))
            outputs["next_sentence_logits"] = ops.cast(logits + weights[head_bias], "float32")
            outputs["pooled_output"] = ops.cast(pooled, "float32")
        return outputs

    shapes = _encoder_shapes(config) | _shapes(config, "cls/predictions/")
    if next_sentence:
        shapes |= _shapes(config, _pooler(config)) | {NEXT_SENTENCE: (2, width), head_bias: (2,)}
    return _built(config, (*_features(config), "masked_lm_positions"), forward, shapes, seed)


def classification_model(
    config: ModelConfig, *, num_labels: int, seed: int = 0, rematerialize: bool = False
) -> BuiltModel:
    """Return the encoder with a classifier on the pooled output.

    Features: `input_ids`, `input_mask`, `segment_ids` [B, S], int32. Output: `logits` [B, num_labels].
    Source: google-research/bert run_classifier.py, create_model.
    """

    def forward(weights: Cast, batch: Tensors, draws: Draws | None) -> dict[str, Any]:
        sequence = encode(config, weights, batch, draws, rematerialize=rematerialize)
        pooled = _pooled(config, weights, sequence, batch)
        pooled = dropped(draws, pooled, config.hidden_dropout_prob)
        logits = ops.matmul(pooled, ops.transpose(weights["output_weights"])) + weights["output_bias"]
        return {"logits": ops.cast(logits, "float32")}

    classifier = {"output_weights": (num_labels, config.hidden_size), "output_bias": (num_labels,)}
    shapes = _encoder_shapes(config) | _shapes(config, _pooler(config)) | classifier
    return _built(config, _features(config), forward, shapes, seed)


def _features(config: ModelConfig) -> tuple[str, ...]:
    """Return the features that an encoder reads."""
    return ("input_ids", "input_mask") + (("segment_ids",) if config.has_segments else ())


def _at(sequence: Any, positions: Any, length: int) -> Any:
    """Return the rows [B, P, N] of a sequence [B * length, N] at positions [B, P] of each example."""
    starts = ops.arange(ops.shape(positions)[0], dtype=positions.dtype) * length
    return ops.take(sequence, positions + ops.expand_dims(starts, -1), axis=0)


def _pooled(config: ModelConfig, weights: Cast, sequence: Any, batch: Tensors) -> Any:
    """Return the pooled output [B, hidden_size]: a dense layer with tanh on the first row of each example.

    ModernBERT has none, and pools with the transformation of the masked-LM head.
    It is [B, M, hidden_size] for packed rows, with the first row of each of their sequences.
    """
    ids, ends = batch["input_ids"], batch.get(ENDS)
    length = ids.shape[1]
    if ends is None:
        first = _at(sequence, ops.zeros_like(ids[:, :1]), length)[:, 0]
    else:
        # A sequence that is not there would begin after a full row.
        first = _at(sequence, ops.minimum(ends[:, :-1], length - 1), length)
    if config.model_type == "modernbert":
        return _transformed(config, weights, first)
    return ops.tanh(dense(weights, f"{scope(config)}/pooler/dense", first))


def _transformed(config: ModelConfig, weights: Cast, x: Any) -> Any:
    """Return the masked-LM head's transformation of rows [..., hidden_size], before the comparison with the words."""
    return normalized(
        config, weights, f"{TRANSFORM}/LayerNorm", activated(config, dense(weights, f"{TRANSFORM}/dense", x))
    )


Shapes = dict[str, tuple[int, ...]]


def _shapes(config: ModelConfig, *prefixes: str) -> Shapes:
    """Return the shapes by name of the weights whose names have one of these prefixes."""
    return {w.ours: w.shape for w in named_weights(config) if w.shape is not None and w.ours.startswith(prefixes)}


def _pooler(config: ModelConfig) -> str:
    """Return the prefix of the names of the weights that `_pooled` uses."""
    return f"{TRANSFORM}/" if config.model_type == "modernbert" else f"{scope(config)}/pooler/"


def _encoder_shapes(config: ModelConfig) -> Shapes:
    """Return the encoder's weights without the pooler."""
    shapes = _shapes(config, f"{scope(config)}/")
    return {name: shape for name, shape in shapes.items() if "/pooler/" not in name}


def _built(config: ModelConfig, features: tuple[str, ...], forward: Any, shapes: Shapes, seed: int) -> BuiltModel:
    """Return the model with initial weights of these shapes."""

    def weight(name: str, shape: tuple[int, ...]) -> Weight:
        deviation = config.initializer_range
        if config.model_type == "modernbert" and name.endswith(("output/dense/kernel", f"{TRANSFORM}/dense/kernel")):
            deviation /= math.sqrt(2 * config.num_hidden_layers)
        value = initial_value(name, shape, deviation, seed)
        return Weight(name, keras.Variable(value, dtype="float32", name=name.replace("/", ".")))

    weights = tuple(weight(name, shape) for name, shape in shapes.items())
    return BuiltModel(config, weights, features, forward, keras.config.dtype_policy().compute_dtype)


def initial_value(name: str, shape: tuple[int, ...], deviation: float, seed: int) -> np.ndarray:
    """Return a weight before training, float32: truncated normal for matrices, zeros for bias and beta, ones for gamma.

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
