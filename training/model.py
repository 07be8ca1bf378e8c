"""The models: keras-hub's BERT and RoBERTa backbones with the heads for pre-training and for classification.

A model takes the examples' features by name (`input_ids`, `input_mask`, `segment_ids`, `masked_lm_positions`: int32)
and gives logits. Each of its weights has the name and the layout that it has in google-research/bert. Checkpoints and
exports use these names only.

The private attributes of keras-hub's layers that are read and set here are listed in maskmill/data/private_names.toml.
"""

import dataclasses
import hashlib
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
import keras_hub
import numpy as np

from maskmill.errors import UnusableInputError
from training.config import ModelConfig

# Initial weights are drawn within so many standard deviations.
_TRUNCATION = 2


@dataclasses.dataclass(frozen=True)
class Weight:
    """A weight of a Keras model, with its name and layout in google-research/bert.

    Keras stores attention kernels as [width, heads, size] and dense kernels as [in, out]. The reference stores
    attention kernels as [width, width], and two output kernels transposed (`transposed`).
    """

    name: str
    variable: Any
    transposed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in the reference's layout."""
        shape = tuple(self.variable.shape)
        if "/attention/self/" in self.name:
            # query, key and value: kernel [width, heads, size], bias [heads, size].
            return (*shape[:-2], shape[-2] * shape[-1])
        if self.name.endswith("/attention/output/dense/kernel"):
            return (shape[0] * shape[1], shape[2])
        return shape[::-1] if self.transposed else shape

    def to_reference(self, array: np.ndarray) -> np.ndarray:
        """An array in Keras's layout → the reference's."""
        return np.ascontiguousarray(array.T) if self.transposed else array.reshape(self.shape)

    def from_reference(self, array: np.ndarray) -> np.ndarray:
        """An array in the reference's layout → Keras's."""
        return np.ascontiguousarray(array.T) if self.transposed else array.reshape(self.variable.shape)

    def read(self) -> np.ndarray:
        """The value (float32) in the reference's layout."""
        return self.to_reference(np.asarray(keras.ops.convert_to_numpy(self.variable.value)))

    def write(self, array: np.ndarray) -> None:
        """Sets the value from an array in the reference's layout."""
        self.variable.assign(self.from_reference(np.asarray(array, np.float32)))


@dataclasses.dataclass(frozen=True)
class BuiltModel:
    """A Keras model with its configuration and its weights, in the order of the model's trainable variables."""

    model: Any
    config: ModelConfig
    weights: tuple[Weight, ...]

    def values(self) -> dict[str, np.ndarray]:
        """All weights by name, in the reference's layout."""
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


def pretraining_model(config: ModelConfig, *, next_sentence: bool = True, seed: int = 0) -> BuiltModel:
    """The encoder with the masked-LM head, tied to the word embeddings, and optionally the next-sentence head.

    Inputs: `input_ids`, `input_mask`, `segment_ids` [B, S], `masked_lm_positions` [B, P], int32.
    Outputs: `masked_lm_logits` [B, P, vocab_size], `next_sentence_logits` [B, 2], `pooled_output` [B, hidden_size]; the
    last two only with the next-sentence head. The seed gives the initial weights (see `initial_value`), which are the
    same on every backend. Source: google-research/bert run_pretraining.py, get_masked_lm_output and
    get_next_sentence_output.
    """
    encoder = _encoder(config)
    positions = keras.Input((None,), dtype="int32", name="masked_lm_positions")
    head = keras_hub.layers.MaskedLMHead(
        token_embedding=encoder.backbone.token_embedding,
        intermediate_activation=_activation(config),
        layer_norm_epsilon=config.layer_norm_eps,
        name="masked_lm",
    )
    outputs = {"masked_lm_logits": head(encoder.sequence, positions)}
    transform = "cls/predictions/transform"
    encoder.weights.update(_layer_weights(f"{transform}/dense", head._intermediate_dense))
    encoder.weights.update(_layer_weights(f"{transform}/LayerNorm", head._intermediate_layer_norm))
    encoder.weights["cls/predictions/output_bias"] = head._bias
    if next_sentence:
        pooled = _pooled(config, encoder)
        dense = keras.layers.Dense(2, name="next_sentence")
        outputs |= {"next_sentence_logits": dense(pooled), "pooled_output": pooled}
        encoder.weights["cls/seq_relationship/output_weights"] = dense.kernel
        encoder.weights["cls/seq_relationship/output_bias"] = dense.bias
    return _built(config, {**encoder.inputs, "masked_lm_positions": positions}, outputs, encoder.weights, seed)


def classification_model(config: ModelConfig, *, num_labels: int, seed: int = 0) -> BuiltModel:
    """The encoder with a classifier on the pooled output.

    Inputs: `input_ids`, `input_mask`, `segment_ids` [B, S], int32. Output: `logits` [B, num_labels].
    Source: google-research/bert run_classifier.py, create_model.
    """
    encoder = _encoder(config)
    pooled = _pooled(config, encoder)
    dense = keras.layers.Dense(num_labels, name="classifier")
    outputs = {"logits": dense(keras.layers.Dropout(config.hidden_dropout_prob)(pooled))}
    encoder.weights.update({"output_weights": dense.kernel, "output_bias": dense.bias})
    return _built(config, encoder.inputs, outputs, encoder.weights, seed)


def _activation(config: ModelConfig) -> Any:
    if config.hidden_act == "gelu":
        return lambda x: keras.activations.gelu(x, approximate=True)
    return keras.activations.get("gelu" if config.hidden_act == "gelu_erf" else config.hidden_act)


class _Encoder(NamedTuple):
    """A model's encoder: its inputs by feature, keras-hub's backbone, its output [B, S, hidden_size] and its weights.

    `weights` are Keras variables by our names. Whoever adds a head adds the head's weights.
    """

    inputs: dict[str, Any]
    backbone: Any
    sequence: Any
    weights: dict[str, Any]


def _encoder(config: ModelConfig) -> _Encoder:
    """Builds the encoder, without a pooler."""
    sizes = {
        "vocabulary_size": config.vocab_size,
        "num_layers": config.num_hidden_layers,
        "num_heads": config.num_attention_heads,
        "hidden_dim": config.hidden_size,
        "intermediate_dim": config.intermediate_size,
        # keras-hub has one rate for all dropout; _configure sets two.
        "dropout": max(config.hidden_dropout_prob, config.attention_probs_dropout_prob),
        "max_sequence_length": config.max_position_embeddings,
    }
    features = ("input_ids", "input_mask") + (("segment_ids",) if config.model_type == "bert" else ())
    inputs = {n: keras.Input((None,), dtype="int32", name=n) for n in features}
    tokens = {"token_ids": inputs["input_ids"], "padding_mask": inputs["input_mask"]}
    prefix = config.model_type
    if config.model_type == "roberta":
        backbone = keras_hub.models.RobertaBackbone(**sizes)
        sequence = backbone(tokens)
        positions = backbone.embeddings.position_embedding.position_embeddings
        weights = {}
    else:
        backbone = keras_hub.models.BertBackbone(**sizes, num_segments=config.type_vocab_size)
        # The backbone's pooler is left out; _pooled adds it to the models that need it.
        without_pooler = keras.Model(backbone.input, backbone.output["sequence_output"])
        sequence = without_pooler(tokens | {"segment_ids": inputs["segment_ids"]})
        positions = backbone.position_embedding.position_embeddings
        weights = {f"{prefix}/embeddings/token_type_embeddings": backbone.segment_embedding.embeddings}
    _configure(backbone, config)
    weights |= {
        f"{prefix}/embeddings/word_embeddings": backbone.token_embedding.embeddings,
        f"{prefix}/embeddings/position_embeddings": positions,
        **_layer_weights(f"{prefix}/embeddings/LayerNorm", backbone.embeddings_layer_norm),
    }
    for i, layer in enumerate(backbone.transformer_layers):
        attention = layer._self_attention_layer
        parts = {
            "attention/self/query": attention.query_dense,
            "attention/self/key": attention.key_dense,
            "attention/self/value": attention.value_dense,
            "attention/output/dense": attention.output_dense,
            "attention/output/LayerNorm": layer._self_attention_layer_norm,
            "intermediate/dense": layer._feedforward_intermediate_dense,
            "output/dense": layer._feedforward_output_dense,
            "output/LayerNorm": layer._feedforward_layer_norm,
        }
        for part, sublayer in parts.items():
            weights |= _layer_weights(f"{prefix}/encoder/layer_{i}/{part}", sublayer)
    return _Encoder(inputs, backbone, sequence, weights)


def _layer_weights(name: str, layer: Any) -> dict[str, Any]:
    """The weights of a dense layer or a layer normalisation of ours by our names."""
    kinds = ("beta", "gamma") if name.endswith("LayerNorm") else ("kernel", "bias")
    return {f"{name}/{kind}": getattr(layer, kind) for kind in kinds}


def _configure(backbone: Any, config: ModelConfig) -> None:
    """Sets what keras-hub's backbones do not let a caller choose: activation, layer norm's epsilon, two dropout rates.

    The backbone is built with the larger of the two rates, so that every dropout layer has a seed generator. Either
    rate may be set to 0 afterwards.
    """
    backbone.embeddings_layer_norm.epsilon = config.layer_norm_eps
    backbone.embeddings_dropout.rate = config.hidden_dropout_prob
    for layer in backbone.transformer_layers:
        layer._feedforward_intermediate_dense.activation = _activation(config)
        layer._self_attention_layer_norm.epsilon = config.layer_norm_eps
        layer._feedforward_layer_norm.epsilon = config.layer_norm_eps
        layer._self_attention_dropout.rate = config.hidden_dropout_prob
        layer._feedforward_dropout.rate = config.hidden_dropout_prob
        attention = layer._self_attention_layer
        # Keras reads the first to choose how attention is computed, and the second to draw the dropout.
        attention._dropout = attention._dropout_layer.rate = config.attention_probs_dropout_prob


def _pooled(config: ModelConfig, encoder: _Encoder) -> Any:
    """The pooled output [B, hidden_size]: a dense layer with tanh on the first token. Its weights are added."""
    if config.model_type == "roberta":
        dense = keras.layers.Dense(config.hidden_size, activation="tanh", name="pooled_dense")
    else:
        dense = encoder.backbone.pooled_dense
    pooled = dense(encoder.sequence[:, 0, :])
    encoder.weights.update(_layer_weights(f"{config.model_type}/pooler/dense", dense))
    return pooled


def _built(
    config: ModelConfig, inputs: dict[str, Any], outputs: dict[str, Any], variables: dict[str, Any], seed: int
) -> BuiltModel:
    """The model from inputs to outputs, with initial weights. `variables` are the Keras variables by weight name."""
    model = keras.Model(inputs=inputs, outputs=outputs)
    names = {id(variable): name for name, variable in variables.items()}
    transposed = ("cls/seq_relationship/output_weights", "output_weights")
    weights = tuple(Weight(names[id(v)], v, transposed=names[id(v)] in transposed) for v in model.trainable_variables)
    for weight in weights:
        weight.write(initial_value(weight.name, weight.shape, config.initializer_range, seed))
    return BuiltModel(model=model, config=config, weights=weights)


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
