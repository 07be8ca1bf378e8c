"""Checkpoints of any kind as weights, and `maskmill convert-checkpoint`.

Between formats the weights are a mapping from google-research/bert's variable names to arrays in its layout. The rest
of a checkpoint (optimizer slots, counters) is dropped.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from training import (
    checkpoints,
    config,
    hugging_face,
    preflight,
    pytorch_files,
    storage,
    tensorflow_checkpoints,
    tokenizer_files,
)
from training.checkpoints import Values
from training.config import BERT_CONFIG, ModelConfig
from training.options import ConvertOptions
from training.weights import CLASSIFIER

_SAFETENSORS = ".safetensors"
_PYTORCH = (".bin", ".pt", ".pth")
# Hugging Face's list of the files of a model's weights, if there are several.
_SHARDS = ".index.json"
# The files of weights in a directory of Hugging Face's, the preferred one first.
_HUGGING_FACE_FILES = (
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json",
)  # fmt: skip
# The files of a TensorFlow checkpoint: the prefix and one of these.
_TENSORFLOW_FILE = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")


def read(path: str, model: ModelConfig) -> Values:
    """Read a checkpoint's weights, whatever kind it is.

    Args:
      path: a TensorFlow checkpoint's prefix (`model.ckpt-28252`), a safetensors or PyTorch file, Hugging Face's list of
        several of these (`model.safetensors.index.json`), or a directory that holds one.
      model: the configuration of its model.

    Raises:
      UnusableInputError: there is no checkpoint, it cannot be read, it is damaged, it is not of a BERT, or it is a
        training checkpoint of maskmill.
    """
    checkpoint = _find(path)
    if not _is_of_arrays(checkpoint):
        return tensorflow_checkpoints.read(checkpoint, model)
    arrays, metadata = _read_arrays(checkpoint)
    kind = metadata.get("format")
    if kind == checkpoints.TRAINING_FORMAT:
        raise UnusableInputError(
            f"{checkpoint}: this is a training checkpoint of a maskmill run, at step {metadata.get('step')}, and no "
            "initial checkpoint; to continue that run, give its directory as --output_dir, and to begin another run "
            "from its weights, convert it first: maskmill convert-checkpoint --format maskmill."
        )
    values = arrays if kind == checkpoints.WEIGHTS_FORMAT else hugging_face.from_hugging_face(arrays, model)
    if not values:
        named = f"it has {min(arrays)} and so on" if arrays else "it is empty"
        raise UnusableInputError(f"{checkpoint}: this file has no weights of a {model.model_type} model; {named}.")
    return values


def read_any(path: str, model: ModelConfig) -> tuple[int, Values]:
    """Read like `read`, but accept a training checkpoint of maskmill, too. Return its step (else 0) and the weights.

    Raises:
      UnusableInputError: as `read`.
    """
    checkpoint = _find(path)
    if not _run_of(checkpoint):
        return 0, read(path, model)
    of_run = checkpoints.read(checkpoint)
    return of_run.step, {n: a for n, a in of_run.arrays.items() if not n.endswith(checkpoints.MOMENTS)}


def _is_of_arrays(checkpoint: str) -> bool:
    """Return whether a checkpoint consists of safetensors or PyTorch files; otherwise it is TensorFlow's."""
    return checkpoint.endswith((_SAFETENSORS, _SHARDS, *_PYTORCH))


def _read_arrays(checkpoint: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the arrays and the metadata of a safetensors or PyTorch file, or of all files in a list."""
    if checkpoint.endswith(_SAFETENSORS):
        return checkpoints.read_safetensors(checkpoint)
    if checkpoint.endswith(_SHARDS):
        return _read_shards(checkpoint), {}
    with storage.local_copy(checkpoint) as copy, checkpoints.explained(checkpoint):
        return pytorch_files.read(copy, name=checkpoint), {}


def _read_shards(index: str) -> dict[str, np.ndarray]:
    """Return the arrays of all files in Hugging Face's list of a model's files."""
    try:
        weight_map = json.loads(files.read_bytes(index))["weight_map"]
        names = sorted(set(weight_map.values()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnusableInputError(f"{index}: this is no list of a model's files, or it is damaged.") from None
    arrays: dict[str, np.ndarray] = {}
    for name in names:
        # A list may only name files beside it.
        if not isinstance(name, str) or name != os.path.basename(name) or not name.endswith((_SAFETENSORS, *_PYTORCH)):
            raise UnusableInputError(f"{index}: it names {name!r}, which is no weights file beside it.")
        arrays |= _read_arrays(files.join(files.parent(index), name))[0]
    missing = next((name for name in weight_map if name not in arrays), None)
    if missing is not None:
        raise UnusableInputError(f"{index}: {weight_map[missing]} lacks {missing}; copy the model's files again.")
    return arrays


def _find(path: str) -> str:
    """Return the checkpoint at a path: a TensorFlow prefix, a safetensors or PyTorch file, or a list of several."""
    preflight.check_checkpoint(path)
    path = os.path.expanduser(path.rstrip("/"))
    prefix = _TENSORFLOW_FILE.sub("", path)
    if files.exists(f"{prefix}.index"):
        return prefix
    if storage.is_directory(path):
        return _find_in(path)
    if not files.exists(path):
        raise preflight.no_such_checkpoint(path)
    if _is_of_arrays(path):
        return path
    if prefix != path:
        raise UnusableInputError(f"{path}: {prefix}.index is missing, so this TensorFlow checkpoint is not whole.")
    raise UnusableInputError(
        f"{path}: this file is no checkpoint; name a TensorFlow checkpoint's prefix, a .safetensors or PyTorch file "
        f"({', '.join(_PYTORCH)}), or a directory with one."
    )


def _find_in(directory: str) -> str:
    """Return a directory's checkpoint: a run's newest, Hugging Face's, a single file, or TensorFlow's newest."""
    if training_checkpoints := checkpoints.list_checkpoints(directory):
        return training_checkpoints[-1]
    for name in _HUGGING_FACE_FILES:
        if files.exists(files.join(directory, name)):
            return files.join(directory, name)
    safetensors_files = files.list_directory(directory, f"*{_SAFETENSORS}")
    if len(safetensors_files) == 1:
        return safetensors_files[0]
    if (latest := tensorflow_checkpoints.latest(directory)) is not None:
        return latest
    if safetensors_files:
        raise UnusableInputError(f"{directory}: there are several checkpoints in this directory; name one of them.")
    raise UnusableInputError(f"{directory}: there is no checkpoint in this directory.")


def find_config(path: str) -> ModelConfig | None:
    """Return the model's configuration, from the metadata of a file of maskmill, or a JSON file beside the checkpoint.

    Raises:
      UnusableInputError: there is no checkpoint, or its configuration is damaged.
    """
    checkpoint = _find(path)
    if checkpoint.endswith(_SAFETENSORS):
        metadata = checkpoints.read_metadata(checkpoint)
        if "run" in metadata:
            return _config_of_run(checkpoint, metadata["run"])
        if "config" in metadata:
            return config.from_json(metadata["config"], where=checkpoint)
    for name in ("config.json", BERT_CONFIG):
        beside = files.join(files.parent(checkpoint), name)
        if files.exists(beside):
            return config.from_json(files.read_bytes(beside), where=beside)
    return None


def _config_of_run(checkpoint: str, run: str) -> ModelConfig:
    try:
        return ModelConfig(**json.loads(run)["model"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UnusableInputError(f"{checkpoint}: the settings in this checkpoint are damaged.") from None


def run(options: ConvertOptions) -> int:
    """Convert a checkpoint. Return the exit code, 0.

    Raises:
      UnusableInputError: the input, its configuration or its vocabulary is missing or unusable.
      RunFailedError: the output cannot be written.
    """
    model = _config_of(options)
    _, values = read_any(options.input, model)
    checkpoint = _find(options.input)
    # TensorFlow's formats have no place for it.
    is_tensors = checkpoint.endswith(_SAFETENSORS)
    origin = checkpoints.origin_of(checkpoints.read_metadata(checkpoint)) if is_tensors else {}
    hugging_face.check_shapes(options.input, values, model)
    writers: dict[str, Callable[[], None]] = {
        "tf1": lambda: tensorflow_checkpoints.write_tf1(options.output, values),
        "tf2": lambda: tensorflow_checkpoints.write_tf2(options.output, values, model),
        "huggingface": lambda: _write_hugging_face(options, values, model, origin),
        "maskmill": lambda: checkpoints.write_weights(options.output, values, model, origin),
    }
    writers[options.format]()
    if options.format in ("tf1", "tf2"):
        beside = files.join(files.parent(options.output), BERT_CONFIG)
        files.write_bytes(beside, (json.dumps(model.to_google(), indent=2) + "\n").encode())
    print(f"{options.output}: {len(values)} weights of {options.input}, written as {options.format}.")
    return 0


def _config_of(options: ConvertOptions) -> ModelConfig:
    if options.bert_config_file is not None:
        return config.from_json(files.read_bytes(options.bert_config_file), where=options.bert_config_file)
    model = find_config(options.input)
    if model is None:
        raise UnusableInputError(f"{options.input}: there is no configuration beside it; give --bert_config_file.")
    return model


def _write_hugging_face(options: ConvertOptions, values: Values, model: ModelConfig, origin: Mapping[str, str]) -> None:
    """Write a Hugging Face directory with its tokenizer and, for a classifier, the names of its labels."""
    checkpoint = _find(options.input)
    beside = files.parent(checkpoint)
    labels = options.labels or _labels_beside(beside, values)
    tokenizer = tokenizer_files.of_conversion(options, beside=beside, run=_run_of(checkpoint), model=model)
    hugging_face.write_directory(options.output, values, model, tokenizer=tokenizer, labels=labels, origin=origin)


def _run_of(checkpoint: str) -> Mapping[str, Any]:
    """Return the settings of a training checkpoint's run; empty for other checkpoints."""
    if not checkpoint.endswith(_SAFETENSORS):
        return {}
    metadata = checkpoints.read_metadata(checkpoint)
    if metadata.get("format") != checkpoints.TRAINING_FORMAT:
        return {}
    return checkpoints.read_settings(checkpoint, metadata)


def _labels_beside(directory: str, values: Values) -> tuple[str, ...]:
    """Return the names of a classifier's labels in the config.json beside its checkpoint; empty if there are none."""
    path = files.join(directory, "config.json")
    if CLASSIFIER not in values or not files.exists(path):
        return ()
    names = json.loads(files.read_bytes(path)).get("id2label")
    count = len(values[CLASSIFIER])
    if not isinstance(names, dict) or set(names) != {str(i) for i in range(count)}:
        return ()
    return tuple(str(names[str(i)]) for i in range(count))
