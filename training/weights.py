"""The weights of the encoders and their heads: our names, Hugging Face's names, and their shapes.

Ours are those of google-research/bert and google-research/albert, in their layout. RoBERTa's and ModernBERT's are
formed likewise. ALBERT's layers share their weights, by groups of layers.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from training.config import ModelConfig

# The output layer of a classifier, [labels, hidden_size].
CLASSIFIER = "output_weights"
NEXT_SENTENCE = "cls/seq_relationship/output_weights"
MASKED_LM = "cls/predictions/output_bias"
TRANSFORM = "cls/predictions/transform"

# The parts of a layer, by what they do: our names below the layer's own, and Hugging Face's.
_BERT_PARTS = {
    "query": "attention/self/query",
    "key": "attention/self/key",
    "value": "attention/self/value",
    "projection": "attention/output/dense",
    "norm": "attention/output/LayerNorm",
    "inner": "intermediate/dense",
    "outer": "output/dense",
    "last_norm": "output/LayerNorm",
}
_ALBERT_PARTS = {
    "query": "attention_1/self/query",
    "key": "attention_1/self/key",
    "value": "attention_1/self/value",
    "projection": "attention_1/output/dense",
    "norm": "LayerNorm",
    "inner": "ffn_1/intermediate/dense",
    "outer": "ffn_1/intermediate/output/dense",
    "last_norm": "LayerNorm_1",
}
_MODERN_PARTS = {
    "norm": "attention/LayerNorm",
    "qkv": "attention/qkv",
    "projection": "attention/output/dense",
    "inner_norm": "mlp/LayerNorm",
    "inner": "mlp/input/dense",
    "outer": "mlp/output/dense",
}
_PARTS = {"bert": _BERT_PARTS, "roberta": _BERT_PARTS, "albert": _ALBERT_PARTS, "modernbert": _MODERN_PARTS}
_THEIR_BERT_PARTS = {part: name.replace("/", ".") for part, name in _BERT_PARTS.items()}
_THEIR_PARTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "bert": _THEIR_BERT_PARTS,
        "roberta": _THEIR_BERT_PARTS,
        "albert": {
            "query": "attention.query",
            "key": "attention.key",
            "value": "attention.value",
            "projection": "attention.dense",
            "norm": "attention.LayerNorm",
            "inner": "ffn",
            "outer": "ffn_output",
            "last_norm": "full_layer_layer_norm",
        },
        "modernbert": {
            "norm": "attn_norm",
            "qkv": "attn.Wqkv",
            "projection": "attn.Wo",
            "inner_norm": "mlp_norm",
            "inner": "mlp.Wi",
            "outer": "mlp.Wo",
        },
    }
)
_THEIR_LAYERS = {
    "bert": "bert.encoder.layer.{}",
    "roberta": "roberta.encoder.layer.{}",
    "albert": "albert.encoder.albert_layer_groups.{}.albert_layers.0",
    "modernbert": "model.layers.{}",
}
# The masked-LM head: its dense layer, its normalisation and its bias.
_THEIR_HEADS = {
    "bert": ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"),
    "roberta": ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    "albert": ("predictions.dense", "predictions.LayerNorm", "predictions.bias"),
    "modernbert": ("head.dense", "head.norm", "decoder.bias"),
}
_THEIR_NEXT_SENTENCE = {"bert": "cls.seq_relationship", "albert": "sop_classifier.classifier"}


class NamedWeight(NamedTuple):
    """A weight: our name, Hugging Face's name, and its shape in the reference's layout (None for a classifier's)."""

    ours: str
    theirs: str
    shape: tuple[int, ...] | None

    def as_stored(self, array: np.ndarray) -> np.ndarray:
        """Return the array in the other one's layout: Hugging Face stores kernels transposed."""
        return np.ascontiguousarray(array.T) if self.ours.endswith("/kernel") else array


def scope(model: ModelConfig) -> str:
    """Return the prefix of an encoder's names of weights; google-research/albert uses bert, too."""
    return "bert" if model.model_type == "albert" else model.model_type


def layer_parts(model: ModelConfig, layer: int) -> dict[str, str]:
    """Return the parts of a layer: our names by what each part does."""
    prefix = f"{scope(model)}/encoder/layer_{layer}"
    if model.model_type == "albert":
        group = layer * model.num_hidden_groups // model.num_hidden_layers
        prefix = f"bert/encoder/transformer/group_{group}/inner_group_0"
    return {part: f"{prefix}/{name}" for part, name in _PARTS[model.model_type].items()}


def named_weights(model: ModelConfig) -> Iterator[NamedWeight]:
    """Yield the weights of an encoder, its pooler and its heads for pre-training and classification."""
    kind, width, embedded = model.model_type, model.hidden_size, model.embedding_width
    yield from _embeddings(model)
    if kind == "albert":
        name = "encoder/embedding_hidden_mapping_in"
        yield from _dense(f"bert/{name}", f"albert.{name.replace('/', '.')}", (embedded, width))
    numbers = range(model.num_hidden_groups if kind == "albert" else model.num_hidden_layers)
    for number in numbers:
        first_layer = number * model.num_hidden_layers // len(numbers)
        yield from _layer(model, first_layer, _THEIR_LAYERS[kind].format(number))
    dense, norm, bias = _THEIR_HEADS[kind]
    is_modern = kind == "modernbert"
    if is_modern:
        yield from _norm("modernbert/final/LayerNorm", "model.final_norm", width, bias=False)
    else:
        pooler = f"{kind}.pooler" if kind == "albert" else f"{kind}.pooler.dense"
        yield from _dense(f"{scope(model)}/pooler/dense", pooler, (width, width))
    yield from _dense(f"{TRANSFORM}/dense", dense, (width, embedded), bias=not is_modern)
    yield from _norm(f"{TRANSFORM}/LayerNorm", norm, embedded, bias=not is_modern)
    yield NamedWeight(MASKED_LM, bias, (model.vocab_size,))
    if (theirs := _THEIR_NEXT_SENTENCE.get(kind)) is not None:
        yield NamedWeight(NEXT_SENTENCE, f"{theirs}.weight", (2, width))
        yield NamedWeight("cls/seq_relationship/output_bias", f"{theirs}.bias", (2,))
    # RoBERTa's classifier has the pooler's dense layer in itself.
    classifier = "classifier.out_proj" if kind == "roberta" else "classifier"
    yield NamedWeight(CLASSIFIER, f"{classifier}.weight", None)
    yield NamedWeight("output_bias", f"{classifier}.bias", None)


def _embeddings(model: ModelConfig) -> Iterator[NamedWeight]:
    kind, width = model.model_type, model.embedding_width
    if kind == "modernbert":
        words = "modernbert/embeddings/word_embeddings"
        yield NamedWeight(words, "model.embeddings.tok_embeddings.weight", (model.vocab_size, width))
        yield from _norm("modernbert/embeddings/LayerNorm", "model.embeddings.norm", width, bias=False)
        return
    tables = {"word": model.vocab_size, "position": model.max_position_embeddings}
    if model.has_segments:
        tables["token_type"] = model.type_vocab_size
    for name, rows in tables.items():
        yield NamedWeight(
            f"{scope(model)}/embeddings/{name}_embeddings", f"{kind}.embeddings.{name}_embeddings.weight", (rows, width)
        )
    yield from _norm(f"{scope(model)}/embeddings/LayerNorm", f"{kind}.embeddings.LayerNorm", width)


def _layer(model: ModelConfig, layer: int, their_layer: str) -> Iterator[NamedWeight]:
    width, inner, is_modern = model.hidden_size, model.intermediate_size, model.model_type == "modernbert"
    shapes = {"qkv": (width, 3 * width), "inner": (width, inner * (2 if is_modern else 1)), "outer": (inner, width)}
    for part, ours in layer_parts(model, layer).items():
        theirs = f"{their_layer}.{_THEIR_PARTS[model.model_type][part]}"
        if not part.endswith("norm"):
            yield from _dense(ours, theirs, shapes.get(part, (width, width)), bias=not is_modern)
        elif layer or part != "norm" or not is_modern:  # ModernBERT's embeddings are normalised already
            yield from _norm(ours, theirs, width, bias=not is_modern)


def _dense(ours: str, theirs: str, shape: tuple[int, int], *, bias: bool = True) -> Iterator[NamedWeight]:
    yield NamedWeight(f"{ours}/kernel", f"{theirs}.weight", shape)
    if bias:
        yield NamedWeight(f"{ours}/bias", f"{theirs}.bias", shape[1:])


def _norm(ours: str, theirs: str, width: int, *, bias: bool = True) -> Iterator[NamedWeight]:
    yield NamedWeight(f"{ours}/gamma", f"{theirs}.weight", (width,))
    if bias:
        yield NamedWeight(f"{ours}/beta", f"{theirs}.bias", (width,))
