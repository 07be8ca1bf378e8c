"""Hugging Face's models: their classes, the names of their tensors, and their directories."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import safetensors.numpy

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from training.checkpoints import NO_ORIGIN, Values
from training.config import ModelConfig
from training.tokenizer_files import special_ids
from training.weights import CLASSIFIER, MASKED_LM, NEXT_SENTENCE, named_weights, scope

_CLASSES = {"bert": "Bert", "roberta": "Roberta", "albert": "Albert", "modernbert": "ModernBert"}
_ROBERTA_POOLER, _ROBERTA_CLASSIFIER = "roberta.pooler.dense.", "classifier.dense."


def from_hugging_face(arrays: Mapping[str, np.ndarray], model: ModelConfig) -> Values:
    """Return our weights from Hugging Face's tensors (BertForPreTraining, BertModel, RobertaForMaskedLM, …)."""
    # Older files name a layer norm's parameters gamma and beta. A bare encoder's names have no prefix.
    renamed = {
        n.replace(".LayerNorm.gamma", ".LayerNorm.weight").replace(".LayerNorm.beta", ".LayerNorm.bias"): a
        for n, a in arrays.items()
    }
    if any(n.startswith("embeddings.") for n in renamed):
        prefix = "model" if model.model_type == "modernbert" else model.model_type
        renamed = {f"{prefix}.{n}": a for n, a in renamed.items()}
    if model.model_type == "roberta":
        renamed = {n.replace(_ROBERTA_CLASSIFIER, _ROBERTA_POOLER): a for n, a in renamed.items()}
    values = {w.ours: w.as_stored(renamed[w.theirs]) for w in named_weights(model) if w.theirs in renamed}
    position_name = "roberta/embeddings/position_embeddings"
    if model.model_type == "roberta" and position_name in values:
        positions = values[position_name][model.position_offset :]
        # RoBERTa has one token type, and our model has none: its embedding is added to every position's.
        token_types = renamed.get("roberta.embeddings.token_type_embeddings.weight")
        values[position_name] = positions if token_types is None else positions + token_types[0]
    return values


def to_hugging_face(values: Mapping[str, np.ndarray], model: ModelConfig) -> Values:
    """Return Hugging Face's tensors from our weights, for the class from `architecture`.

    There is no tensor for the decoder: Hugging Face ties it to the word embeddings.
    """
    arrays = {w.theirs: w.as_stored(values[w.ours]) for w in named_weights(model) if w.ours in values}
    if model.model_type == "roberta":
        name = "roberta.embeddings.position_embeddings.weight"
        padding = np.zeros((model.position_offset, model.hidden_size), np.float32)
        arrays[name] = np.concatenate([padding, arrays[name]])
        arrays["roberta.embeddings.token_type_embeddings.weight"] = np.zeros((1, model.hidden_size), np.float32)
        if CLASSIFIER in values:
            arrays = {n.replace(_ROBERTA_POOLER, _ROBERTA_CLASSIFIER): a for n, a in arrays.items()}
    return arrays


def architecture(values: Mapping[str, np.ndarray], model: ModelConfig) -> str:
    """Return Hugging Face's class for a model with these weights, which depends on its heads."""
    name = _CLASSES[model.model_type]
    if CLASSIFIER in values:
        return f"{name}ForSequenceClassification"
    if MASKED_LM not in values:
        return f"{name}Model"
    return f"{name}ForPreTraining" if model.has_segments and NEXT_SENTENCE in values else f"{name}ForMaskedLM"


def _description(
    values: Mapping[str, np.ndarray], model: ModelConfig, labels: Sequence[str], ids: Mapping[str, int]
) -> dict[str, Any]:
    """Return the content of a model's `config.json`. ids: of its special tokens, by role."""
    description = model.to_hugging_face() | {"architectures": [architecture(values, model)]}
    roles = {"pad_token_id": "pad_token"}
    if model.model_type != "bert":
        roles |= {"bos_token_id": "cls_token", "eos_token_id": "sep_token"}
    if model.model_type == "modernbert":
        roles |= {"cls_token_id": "cls_token", "sep_token_id": "sep_token"}
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
    """Write the files for Hugging Face's `from_pretrained`: `model.safetensors`, `config.json` and the tokenizer.

    `tokenizer` has the contents of the tokenizer's files by name (training/tokenizer_files.py), `labels` the names of a
    classifier's labels, by default LABEL_0 and so on. `origin` tells what the weights were trained on
    (training/checkpoints.py: origin_of).

    Raises:
      UnusableInputError: the number of labels is not the classifier's.
      RunFailedError: a file cannot be written.
    """
    ids = special_ids(tokenizer)
    if model.model_type == "roberta" and "pad_token" in ids:
        model = dataclasses.replace(model, position_offset=ids["pad_token"] + 1)
    description = json.dumps(_description(values, model, labels, ids), indent=2, sort_keys=True) + "\n"
    packed = safetensors.numpy.save(to_hugging_face(values, model), {"format": "pt", **origin})
    files.write_bytes(files.join(directory, "model.safetensors"), packed)
    for name, content in tokenizer.items():
        files.write_bytes(files.join(directory, name), content)
    files.write_bytes(files.join(directory, "config.json"), description.encode())


def check_shapes(where: str, values: Mapping[str, np.ndarray], model: ModelConfig) -> None:
    """Check that weights are a model's: none of the encoder's is missing, and all have their shapes.

    Raises:
      UnusableInputError: a weight is missing or has another shape; the message names it.
    """
    for name, _, shape in named_weights(model):
        if name not in values:
            if name.startswith(f"{scope(model)}/") and "/pooler/" not in name:
                raise UnusableInputError(
                    f"{where}: this checkpoint lacks {name}; give the configuration that belongs to it."
                )
        elif shape is not None and values[name].shape != shape:
            raise UnusableInputError(
                f"{where}: {name} has shape {list(values[name].shape)} here, but the configuration needs "
                f"{list(shape)}; give the configuration that belongs to this checkpoint."
            )
