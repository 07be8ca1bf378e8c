"""Checkpoints of any kind as weights, and `maskmill convert-checkpoint`.

Between formats the weights are a mapping from google-research/bert's variable names to arrays in its layout. Anything
else in a checkpoint (optimizer slots, counters) is left out.
"""

import json
import os
from collections.abc import Callable

import tensorflow as tf

from training import checkpoints, config, hugging_face, storage, tensorflow_checkpoints
from training.checkpoints import Values
from training.config import ModelConfig
from training.options import ConvertOptions
from transforms.errors import UnusableInputError
from transforms.storage import files


def read(path: str, model: ModelConfig) -> Values:
    """Reads a checkpoint's weights, whatever kind it is.

    Args:
      path: a TensorFlow checkpoint's prefix (`model.ckpt-28252`), a safetensors file, or a directory that holds one.
      model: the configuration of its model.

    Raises:
      UnusableInputError: there is no checkpoint, or it is a training checkpoint of maskmill.
    """
    checkpoint = _find(path)
    if not checkpoint.endswith(".safetensors"):
        return tensorflow_checkpoints.read(checkpoint, model)
    arrays, metadata = checkpoints.read_safetensors(checkpoint)
    kind = metadata.get("format")
    if kind == checkpoints.TRAINING_FORMAT:
        raise UnusableInputError(
            f"{checkpoint}: this is a training checkpoint of a maskmill run, at step {metadata['step']}, and no "
            "initial checkpoint. To continue that run, give its directory as --output_dir; to begin another run from "
            "its weights, convert it first: maskmill convert-checkpoint --format maskmill."
        )
    return arrays if kind == checkpoints.WEIGHTS_FORMAT else hugging_face.from_hugging_face(arrays, model)


def read_any(path: str, model: ModelConfig) -> tuple[int, Values]:
    """Like `read`, but accepts a training checkpoint of maskmill too. Returns its step (0 for others) and the weights.

    Raises:
      UnusableInputError: there is no checkpoint.
    """
    checkpoint = _find(path)
    if checkpoint.endswith(".safetensors"):
        arrays, metadata = checkpoints.read_safetensors(checkpoint)
        if metadata.get("format") == checkpoints.TRAINING_FORMAT:
            return int(metadata["step"]), {n: a for n, a in arrays.items() if not n.endswith(checkpoints.MOMENTS)}
    return 0, read(path, model)


def _find(path: str) -> str:
    """The checkpoint that a path means: a TensorFlow prefix or a safetensors file."""
    path = os.path.expanduser(path.rstrip("/"))
    if path.endswith(".safetensors"):
        return path
    for suffix in (".index", ".meta"):
        path = path.removesuffix(suffix)
    if storage.exists(f"{path}.index"):
        return path
    if not tf.io.gfile.isdir(path):
        raise UnusableInputError(
            f"{path}: there is no such checkpoint; name a prefix, a safetensors file or a directory."
        )
    if training_checkpoints := checkpoints.list_checkpoints(path):
        return training_checkpoints[-1]
    safetensors_files = storage.matching(files.join(path, "*.safetensors"))
    if len(safetensors_files) == 1:
        return safetensors_files[0]
    if (latest := tf.train.latest_checkpoint(path)) is not None:
        return str(latest)
    raise UnusableInputError(f"{path}: there is no checkpoint in this directory.")


def find_config(path: str) -> ModelConfig | None:
    """The model's configuration: from the metadata of a file of maskmill, or from a JSON file beside the checkpoint."""
    checkpoint = _find(path)
    if checkpoint.endswith(".safetensors"):
        _, metadata = checkpoints.read_safetensors(checkpoint)
        if "run" in metadata:
            return ModelConfig(**json.loads(metadata["run"])["model"])
        if "config" in metadata:
            return config.from_json(metadata["config"], where=checkpoint)
    for name in ("config.json", "bert_config.json"):
        beside = files.join(files.parent(checkpoint), name)
        if storage.exists(beside):
            return config.from_json(storage.read_bytes(beside), where=beside)
    return None


def run(options: ConvertOptions) -> int:
    """Converts a checkpoint. Returns the exit code, 0.

    Raises:
      UnusableInputError: the input or its configuration is missing or unusable.
      RunFailedError: the output cannot be written.
    """
    model = _config_of(options)
    _, values = read_any(options.input, model)
    if options.format == "maskmill" and not options.output.endswith(".safetensors"):
        raise UnusableInputError(f"--output {options.output}: for --format maskmill, name a file *.safetensors.")
    writers: dict[str, Callable[[], None]] = {
        "tf1": lambda: tensorflow_checkpoints.write_tf1(options.output, values),
        "tf2": lambda: tensorflow_checkpoints.write_tf2(options.output, values, model),
        "huggingface": lambda: hugging_face.write_directory(options.output, values, model),
        "maskmill": lambda: checkpoints.write_weights(options.output, values, model),
    }
    writers[options.format]()
    if options.format in ("tf1", "tf2"):
        beside = files.join(files.parent(options.output), "bert_config.json")
        storage.write_bytes(beside, (json.dumps(model.to_google(), indent=2) + "\n").encode())
    print(f"{options.output}: {len(values)} weights of {options.input}, written as {options.format}.")
    return 0


def _config_of(options: ConvertOptions) -> ModelConfig:
    if options.bert_config_file is not None:
        return config.from_json(storage.read_bytes(options.bert_config_file), where=options.bert_config_file)
    model = find_config(options.input)
    if model is None:
        raise UnusableInputError(f"{options.input}: there is no configuration beside it; give --bert_config_file.")
    return model
