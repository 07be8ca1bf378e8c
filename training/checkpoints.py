"""Checkpoints of a training run: one safetensors file each, written whole or not at all.

    step-0000001000.safetensors
      bert/embeddings/word_embeddings       the weights, under the reference's names and in its layout
      bert/embeddings/word_embeddings/m     the optimizer's moments
      bert/embeddings/word_embeddings/v
    its metadata: format, step, and `run`, the settings that the run's result depends on (JSON)

The position in the input and the state of every random decision are functions of the step and the settings.
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

# What tells a checkpoint of a run from bare weights, which may begin another run.
TRAINING_FORMAT = "maskmill-training-1"
WEIGHTS_FORMAT = "maskmill-weights-1"
_NAME = re.compile(r"step-(\d{10})\.safetensors$")


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of a run: how many updates were done, the settings, and the arrays by name."""

    step: int
    run: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]


def path_of(directory: str, step: int) -> str:
    """Where the checkpoint of a step is."""
    return files.join(directory, f"step-{step:010d}.safetensors")


def step_of(path: str) -> int:
    """The step that a checkpoint's name gives."""
    match = _NAME.search(path)
    if match is None:
        raise UnusableInputError(
            f"{path}: this is not named like a checkpoint of maskmill, step-NNNNNNNNNN.safetensors."
        )
    return int(match.group(1))


def list_checkpoints(directory: str) -> list[str]:
    """The checkpoints in a directory, oldest first."""
    found = [p for p in storage.matching(files.join(directory, "step-*.safetensors")) if _NAME.search(p)]
    return sorted(found, key=step_of)


def write(directory: str, checkpoint: Checkpoint, *, keep: int) -> str:
    """Writes a checkpoint, then deletes all but the newest `keep`. Returns its path.

    Raises:
      RunFailedError: it cannot be written; the older ones stay.
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
    """Writes bare weights, under the reference's names, with their model's configuration."""
    metadata = {"format": WEIGHTS_FORMAT, "config": json.dumps(config.to_google(), sort_keys=True)}
    _write(path, arrays, metadata)


def _write(path: str, arrays: Mapping[str, np.ndarray], metadata: dict[str, str]) -> None:
    storage.write_bytes(path, safetensors.numpy.save({n: np.ascontiguousarray(a) for n, a in arrays.items()}, metadata))


def read_safetensors(path: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the metadata of any safetensors file. bfloat16 and float16 arrays come as float32.

    Raises:
      UnusableInputError: it is missing or no safetensors file.
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
      UnusableInputError: it is missing, damaged, or something else.
    """
    arrays, metadata = read_safetensors(path)
    if metadata.get("format") != TRAINING_FORMAT:
        raise UnusableInputError(f"{path}: this is no checkpoint of a maskmill run.")
    return Checkpoint(step=int(metadata["step"]), run=json.loads(metadata["run"]), arrays=arrays)


def check_same_run(path: str, held: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Sees that a run is resumed with the settings it was begun with.

    Raises:
      UnusableInputError: a setting differs; the sentence names it.
    """
    for name in sorted({*held, *now}):
        if held.get(name) != now.get(name):
            raise UnusableInputError(
                f"{path}: this run was begun with {name} {held.get(name)}, and now it is {now.get(name)}; resume it "
                "with the same settings, or give another --output_dir."
            )
