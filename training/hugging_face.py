"""Hugging Face's models: the names of their tensors, and their directories (`model.safetensors`, `config.json`)."""

import json
from collections.abc import Iterator, Mapping

import numpy as np
import safetensors.numpy

from training import storage
from training.checkpoints import Values
from training.config import ROBERTA_POSITION_OFFSET, ModelConfig
from transforms.storage import files

_LAYER_PARTS = (
    "attention/self/query",
    "attention/self/key",
    "attention/self/value",
    "attention/output/dense",
    "attention/output/LayerNorm",
    "intermediate/dense",
    "output/dense",
    "output/LayerNorm",
)


def weight_names(model: ModelConfig) -> Iterator[tuple[str, str, bool]]:
    """(our name, Hugging Face's name, whether theirs is transposed) of each weight of the model and its heads."""
    for ours, theirs in _single_weights(model).items():
        yield ours, theirs, False
    for ours, theirs in _layers(model).items():
        if ours.endswith("LayerNorm"):
            yield f"{ours}/gamma", f"{theirs}.weight", False
            yield f"{ours}/beta", f"{theirs}.bias", False
        else:
            yield f"{ours}/kernel", f"{theirs}.weight", True
            yield f"{ours}/bias", f"{theirs}.bias", False


def _single_weights(model: ModelConfig) -> dict[str, str]:
    """Hugging Face's name by ours, for the weights outside dense layers and layer normalisations."""
    kind = model.model_type
    embeddings = ["word_embeddings", "position_embeddings"] + (["token_type_embeddings"] if kind == "bert" else [])
    names = {f"{kind}/embeddings/{name}": f"{kind}.embeddings.{name}.weight" for name in embeddings}
    if kind == "bert":
        names |= {
            "cls/predictions/output_bias": "cls.predictions.bias",
            "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
            "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
        }
    else:
        names["cls/predictions/output_bias"] = "lm_head.bias"
    return names | {"output_weights": "classifier.weight", "output_bias": "classifier.bias"}


def _layers(model: ModelConfig) -> dict[str, str]:
    """The prefix of Hugging Face's names by the prefix of ours, for dense layers and layer normalisations."""
    kind = model.model_type
    layers = {f"{kind}/embeddings/LayerNorm": f"{kind}.embeddings.LayerNorm"}
    for i in range(model.num_hidden_layers):
        for part in _LAYER_PARTS:
            layers[f"{kind}/encoder/layer_{i}/{part}"] = f"{kind}.encoder.layer.{i}.{part.replace('/', '.')}"
    layers[f"{kind}/pooler/dense"] = f"{kind}.pooler.dense"
    bert = kind == "bert"
    transform = "cls/predictions/transform"
    layers[f"{transform}/dense"] = "cls.predictions.transform.dense" if bert else "lm_head.dense"
    layers[f"{transform}/LayerNorm"] = "cls.predictions.transform.LayerNorm" if bert else "lm_head.layer_norm"
    return layers


def from_hugging_face(arrays: Mapping[str, np.ndarray], model: ModelConfig) -> Values:
    """Hugging Face's tensors (BertForPreTraining, BertModel, RobertaForMaskedLM, …) → our weights."""
    # Older files name a layer norm's parameters gamma and beta. A bare encoder's names have no prefix.
    renamed = {
        n.replace(".LayerNorm.gamma", ".LayerNorm.weight").replace(".LayerNorm.beta", ".LayerNorm.bias"): a
        for n, a in arrays.items()
    }
    if any(n.startswith("embeddings.") for n in renamed):
        renamed = {f"{model.model_type}.{n}": a for n, a in renamed.items()}
    values = {
        ours: np.ascontiguousarray(renamed[theirs].T) if transposed else renamed[theirs]
        for ours, theirs, transposed in weight_names(model)
        if theirs in renamed
    }
    position_name = "roberta/embeddings/position_embeddings"
    if model.model_type == "roberta" and position_name in values:
        positions = values[position_name][ROBERTA_POSITION_OFFSET:]
        # RoBERTa has one token type, and our model has none: its embedding is added to every position's.
        token_types = renamed.get("roberta.embeddings.token_type_embeddings.weight")
        values[position_name] = positions if token_types is None else positions + token_types[0]
    return values


def to_hugging_face(values: Mapping[str, np.ndarray], model: ModelConfig) -> Values:
    """Our weights → Hugging Face's tensors (BertForPreTraining, RobertaForMaskedLM).

    There is no tensor for the decoder: Hugging Face ties it to the word embeddings.
    """
    arrays = {
        theirs: np.ascontiguousarray(values[ours].T) if transposed else values[ours]
        for ours, theirs, transposed in weight_names(model)
        if ours in values
    }
    if model.model_type == "roberta":
        name = "roberta.embeddings.position_embeddings.weight"
        padding = np.zeros((ROBERTA_POSITION_OFFSET, model.hidden_size), np.float32)
        arrays[name] = np.concatenate([padding, arrays[name]])
        arrays["roberta.embeddings.token_type_embeddings.weight"] = np.zeros((1, model.hidden_size), np.float32)
    return arrays


def write_directory(directory: str, values: Mapping[str, np.ndarray], model: ModelConfig) -> None:
    """Writes `model.safetensors` and `config.json`, which Hugging Face's `from_pretrained` reads.

    Raises:
      RunFailedError: a file cannot be written.
    """
    packed = safetensors.numpy.save(to_hugging_face(values, model), {"format": "pt"})
    storage.write_bytes(files.join(directory, "model.safetensors"), packed)
    description = json.dumps(model.to_hugging_face(), indent=2, sort_keys=True) + "\n"
    storage.write_bytes(files.join(directory, "config.json"), description.encode())
