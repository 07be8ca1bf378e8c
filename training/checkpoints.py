"""Checkpoints of a training run. Each is one safetensors file, written whole or not at all.

    step-0000001000.safetensors
      bert/embeddings/word_embeddings       the weights, with the reference's names and layout
      bert/embeddings/word_embeddings/m     the optimizer's moments
      bert/embeddings/word_embeddings/v
    its metadata: format, step, and `run`, the settings that the run's result depends on (JSON)

Nothing else has to be saved: the position in the input and every random draw follow from the step and the settings.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from training import storage
from training.config import ModelConfig
from transforms.errors import UnusableInputError
from transforms.storage import files

# Weights by their names in google-research/bert, in its layout.
Values = dict[str, np.ndarray]

# The format says whether a file is a checkpoint of a run, or bare weights, which may begin another run.
TRAINING_FORMAT = "maskmill-training-1"
WEIGHTS_FORMAT = "maskmill-weights-1"
# The optimizer's moments have the name of their weight and one of these.
MOMENTS = ("/m", "/v")
_NAME = re.compile(r"step-(\d{10})\.safetensors$")


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of a run: the number of updates done, the run's settings, and the arrays by name."""

    step: int
    run: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]


def path_of(directory: str, step: int) -> str:
    """The path of the checkpoint of a step."""
    return files.join(directory, f"step-{step:010d}.safetensors")


def step_of(path: str) -> int:
    """The step in a checkpoint's name.

    Raises:
      UnusableInputError: it is named otherwise.
    """
    match = _NAME.search(path)
    if match is None:
        raise UnusableInputError(
            f"{path}: this is not the name of a checkpoint of maskmill, step-NNNNNNNNNN.safetensors."
        )
    return int(match.group(1))


def list_checkpoints(directory: str) -> list[str]:
    """The paths of the checkpoints in a directory, oldest first."""
    paths = storage.matching(files.join(directory, "step-*.safetensors"))
    return sorted((p for p in paths if _NAME.search(p)), key=step_of)


def write(directory: str, checkpoint: Checkpoint, *, keep: int) -> str:
    """Writes a checkpoint, then deletes all but the newest `keep`. Returns its path.

    Raises:
      RunFailedError: it cannot be written. The older checkpoints are kept.
    """
    path = path_of(directory, checkpoint.step)
    metadata = {
        "format": TRAINING_FORMAT,
        "step": str(checkpoint.step),
        "run": json.dumps(checkpoint.run, sort_keys=True),
    }
    _write(path, checkpoint.arrays, metadata)
    for old in list_checkpoints(directory)[:-keep]:
        storage.delete(old)
    return path


def write_weights(path: str, arrays: Mapping[str, np.ndarray], config: ModelConfig) -> None:
    """Writes bare weights, with the reference's names and layout, and their model's configuration.

    Raises:
      RunFailedError: they cannot be written.
    """
    metadata = {"format": WEIGHTS_FORMAT, "config": json.dumps(config.to_google(), sort_keys=True)}
    _write(path, arrays, metadata)


def _write(path: str, arrays: Mapping[str, np.ndarray], metadata: dict[str, str]) -> None:
    storage.write_bytes(path, safetensors.numpy.save({n: np.ascontiguousarray(a) for n, a in arrays.items()}, metadata))


def read_safetensors(path: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the metadata of any safetensors file. Arrays of floats are converted to float32.

    Raises:
      UnusableInputError: the file is missing, damaged, or no safetensors file.
    """
    with storage.local_copy(path) as copy:
        try:
            with safetensors.safe_open(copy, "np") as file:
                metadata = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        except FileNotFoundError:
            raise UnusableInputError(f"{path}: this checkpoint does not exist; check the path.") from None
        except safetensors.SafetensorError as error:
            raise UnusableInputError(f"{path}: this is no safetensors file, or it is damaged ({error}).") from None
    return {n: a if a.dtype == np.int64 else a.astype(np.float32, copy=False) for n, a in arrays.items()}, metadata


def read(path: str) -> Checkpoint:
    """Reads a checkpoint of a run.

    Raises:
      UnusableInputError: it is missing, damaged, or another kind of checkpoint.
    """
    arrays, metadata = read_safetensors(path)
    if metadata.get("format") != TRAINING_FORMAT:
        raise UnusableInputError(f"{path}: this is no checkpoint of a maskmill run.")
    return Checkpoint(step=int(metadata["step"]), run=json.loads(metadata["run"]), arrays=arrays)


def check_same_run(path: str, begun_with: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Checks that a run is resumed with the settings that it was begun with.

    Raises:
      UnusableInputError: a setting differs; the message names it.
    """
    for name in sorted({*begun_with, *settings}):
        if begun_with.get(name) != settings.get(name):
            raise UnusableInputError(
                f"{path}: this run was begun with {name} {begun_with.get(name)}, but now it is {settings.get(name)}; "
                "resume it with the same settings, or give another --output_dir."
            )
