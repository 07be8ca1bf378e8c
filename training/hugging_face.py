"""Hugging Face's models: their classes, the names of their tensors, and their directories."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import safetensors.numpy

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from training import storage
from training.checkpoints import NO_ORIGIN, Values
from training.config import ModelConfig
from training.tokenizer_files import special_ids

# The output layer of a classifier, [labels, hidden_size].
CLASSIFIER = "output_weights"
_NEXT_SENTENCE = "cls/seq_relationship/output_weights"
_MASKED_LM = "cls/predictions/output_bias"
_ROBERTA_POOLER, _ROBERTA_CLASSIFIER = "roberta.pooler.dense.", "classifier.dense."
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
    # RoBERTa's classifier has the pooler's dense layer in itself.
    classifier = "classifier" if kind == "bert" else "classifier.out_proj"
    return names | {CLASSIFIER: f"{classifier}.weight", "output_bias": f"{classifier}.bias"}


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
    if model.model_type == "roberta":
        renamed = {n.replace(_ROBERTA_CLASSIFIER, _ROBERTA_POOLER): a for n, a in renamed.items()}
    values = {
        ours: np.ascontiguousarray(renamed[theirs].T) if transposed else renamed[theirs]
        for ours, theirs, transposed in weight_names(model)
        if theirs in renamed
    }
    position_name = "roberta/embeddings/position_embeddings"
    if model.model_type == "roberta" and position_name in values:
        positions = values[position_name][model.position_offset :]
        # RoBERTa has one token type, and our model has none: its embedding is added to every position's.
        token_types = renamed.get("roberta.embeddings.token_type_embeddings.weight")
        values[position_name] = positions if token_types is None else positions + token_types[0]
    return values


def to_hugging_face(values: Mapping[str, np.ndarray], model: ModelConfig) -> Values:
    """Our weights → Hugging Face's tensors, of the class that `architecture` gives.

    There is no tensor for the decoder: Hugging Face ties it to the word embeddings.
    """
    arrays = {
        theirs: np.ascontiguousarray(values[ours].T) if transposed else values[ours]
        for ours, theirs, transposed in weight_names(model)
        if ours in values
    }
    if model.model_type == "roberta":
        name = "roberta.embeddings.position_embeddings.weight"
        padding = np.zeros((model.position_offset, model.hidden_size), np.float32)
        arrays[name] = np.concatenate([padding, arrays[name]])
        arrays["roberta.embeddings.token_type_embeddings.weight"] = np.zeros((1, model.hidden_size), np.float32)
        if CLASSIFIER in values:
            arrays = {n.replace(_ROBERTA_POOLER, _ROBERTA_CLASSIFIER): a for n, a in arrays.items()}
    return arrays


def architecture(values: Mapping[str, np.ndarray], model: ModelConfig) -> str:
    """Hugging Face's class for a model with these weights: which heads it has."""
    name = "Bert" if model.model_type == "bert" else "Roberta"
    if CLASSIFIER in values:
        return f"{name}ForSequenceClassification"
    if _MASKED_LM not in values:
        return f"{name}Model"
    return f"{name}ForPreTraining" if model.model_type == "bert" and _NEXT_SENTENCE in values else f"{name}ForMaskedLM"


def _description(
    values: Mapping[str, np.ndarray], model: ModelConfig, labels: Sequence[str], ids: Mapping[str, int]
) -> dict[str, Any]:
    """The content of the `config.json` of a model with these weights, and these ids of its special tokens by role.

    Raises:
      UnusableInputError: there are other labels than the classifier has, or there is no classifier.
    """
    description = model.to_hugging_face() | {"architectures": [architecture(values, model)]}
    roles = {"pad_token_id": "pad_token"}
    if model.model_type == "roberta":
        roles |= {"bos_token_id": "cls_token", "eos_token_id": "sep_token"}
    description |= {name: ids[role] for name, role in roles.items() if role in ids}
    count = len(values[CLASSIFIER]) if CLASSIFIER in values else 0
    if labels and len(labels) != count:
        has = f"has {count} labels" if count else "is no classifier"
        raise UnusableInputError(f"--labels names {len(labels)} labels, but this model {has}.")
    if count:
        names = list(labels) or [f"LABEL_{i}" for i in range(count)]
        description |= {
            "id2label": {str(i): name for i, name in enumerate(names)},
            "label2id": {name: i for i, name in enumerate(names)},
            "problem_type": "single_label_classification",
        }
    return description


def write_directory(
    directory: str,
    values: Mapping[str, np.ndarray],
    model: ModelConfig,
    *,
    tokenizer: Mapping[str, bytes],
    labels: Sequence[str] = (),
    origin: Mapping[str, str] = NO_ORIGIN,
) -> None:
    """Writes what Hugging Face's `from_pretrained` reads: `model.safetensors`, `config.json` and the tokenizer.

    Args:
      directory: the directory, which need not exist.
      values: the weights by name.
      model: their configuration.
      tokenizer: the files of the tokenizer, by name (training/tokenizer_files.py).
      labels: the names of a classifier's labels; by default LABEL_0 and so on.
      origin: of what they were trained on, metadata of the weights' file (training/checkpoints.py: origin_of).

    Raises:
      UnusableInputError: there are other labels than the classifier has.
      RunFailedError: a file cannot be written.
    """
    ids = special_ids(tokenizer)
    if model.model_type == "roberta" and "pad_token" in ids:
        model = dataclasses.replace(model, position_offset=ids["pad_token"] + 1)
    description = json.dumps(_description(values, model, labels, ids), indent=2, sort_keys=True) + "\n"
    packed = safetensors.numpy.save(to_hugging_face(values, model), {"format": "pt", **origin})
    storage.write_bytes(files.join(directory, "model.safetensors"), packed)
    for name, content in tokenizer.items():
        storage.write_bytes(files.join(directory, name), content)
    storage.write_bytes(files.join(directory, "config.json"), description.encode())


def check_shapes(where: str, values: Mapping[str, np.ndarray], model: ModelConfig) -> None:
    """Checks that weights are those of a model: that none of the encoder is missing, and all have their shapes.

    Raises:
      UnusableInputError: a weight is missing or has another shape; the message names it.
    """
    for name, shape in _shapes(model).items():
        if name not in values:
            if name.startswith(f"{model.model_type}/") and "/pooler/" not in name:
                raise UnusableInputError(
                    f"{where}: this checkpoint lacks {name}; give the configuration that belongs to it."
                )
        elif values[name].shape != shape:
            raise UnusableInputError(
                f"{where}: {name} has shape {list(values[name].shape)} here, but the configuration needs "
                f"{list(shape)}; give the configuration that belongs to this checkpoint."
            )


def _shapes(model: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The shape of each weight but a classifier's, in the reference's layout."""
    width, inner = model.hidden_size, model.intermediate_size
    rows = {
        "word_embeddings": model.vocab_size,
        "position_embeddings": model.max_position_embeddings,
        "token_type_embeddings": model.type_vocab_size,
    }
    shapes: dict[str, tuple[int, ...]] = {}
    for name, _, _ in weight_names(model):
        path, _, leaf = name.rpartition("/")
        first = inner if path.endswith("/output/dense") and "/attention/" not in path else width
        last = inner if path.endswith("/intermediate/dense") else width
        if path.endswith("/embeddings"):
            shapes[name] = (rows[leaf], width)
        elif leaf == "kernel":
            shapes[name] = (first, last)
        elif leaf in ("bias", "gamma", "beta"):
            shapes[name] = (last,)
    shapes[_MASKED_LM] = (model.vocab_size,)
    shapes[_NEXT_SENTENCE] = (2, width)
    shapes["cls/seq_relationship/output_bias"] = (2,)
    return shapes
