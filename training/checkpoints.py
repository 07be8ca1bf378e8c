"""Checkpoints of a training run. Each is one safetensors file, written whole or not at all.

    step-0000001000.safetensors
      bert/embeddings/word_embeddings       the weights, with the reference's names and layout
      bert/embeddings/word_embeddings/m     the optimizer's moments
      bert/embeddings/word_embeddings/v
    its metadata: format, step, `run`, the settings that the run's result depends on (JSON), and `data`, its training
    data (JSON, training/provenance.py)

Nothing else must be saved: the position in the input and every random draw follow from the step and the settings.
"""

import contextlib
import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from training import storage
from training.config import ModelConfig
from training.options import TrainOptions
from training.settings import NEXT_SENTENCE, ORDER
from training.weights import NEXT_SENTENCE as NEXT_SENTENCE_WEIGHT

# Weights by their names in google-research/bert, in its layout.
Values = dict[str, np.ndarray]

# The format tells whether a file is a run's checkpoint, or bare weights, with which another run may start.
TRAINING_FORMAT = "maskmill-training-1"
WEIGHTS_FORMAT = "maskmill-weights-1"
# Metadata of a copy of a checkpoint's weights, in any safetensors file, about their training.
_ORIGIN = {"maskmill_data": "data", "maskmill_step": "step"}
NO_ORIGIN: Mapping[str, str] = MappingProxyType({})
# The names of the optimizer's moments are their weight's name and one of these.
MOMENTS = ("/m", "/v")
_NAME = re.compile(r"step-(\d{10})\.safetensors$")


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of a run: the number of updates, the run's settings, the arrays by name, and the data.

    data: of the training (training/provenance.py); empty in checkpoints of older versions.
    """

    step: int
    run: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def path_of(directory: str, step: int) -> str:
    """Return the path of the checkpoint of a step."""
    return files.join(directory, f"step-{step:010d}.safetensors")


def step_of(path: str) -> int:
    """Return the step in a checkpoint's name.

    Raises:
      UnusableInputError: the name has another form.
    """
    match = _NAME.search(path)
    if match is None:
        raise UnusableInputError(
            f"{path}: this is not the name of a checkpoint of maskmill, step-NNNNNNNNNN.safetensors."
        )
    return int(match.group(1))


def list_checkpoints(directory: str) -> list[str]:
    """Return the paths of the checkpoints in a directory, oldest first."""
    paths = files.list_directory(directory, "step-*.safetensors")
    return sorted((p for p in paths if _NAME.search(p)), key=step_of)


def write(directory: str, checkpoint: Checkpoint, *, keep: int) -> str:
    """Write a checkpoint, then delete all but the newest `keep`; return its path.

    Raises:
      RunFailedError: it cannot be written. The older checkpoints are kept.
    """
    path = path_of(directory, checkpoint.step)
    metadata = {
        "format": TRAINING_FORMAT,
        "step": str(checkpoint.step),
        "run": json.dumps(checkpoint.run, sort_keys=True),
        "data": json.dumps(checkpoint.data, sort_keys=True),
    }
    _write(path, checkpoint.arrays, metadata)
    files.delete(list_checkpoints(directory)[:-keep])
    return path


def write_weights(
    path: str, arrays: Mapping[str, np.ndarray], config: ModelConfig, origin: Mapping[str, str] = NO_ORIGIN
) -> None:
    """Write bare weights, with the reference's names and layout, and their model's configuration.

    `origin` describes their training (`origin_of`).

    Raises:
      RunFailedError: they cannot be written.
    """
    metadata = {"format": WEIGHTS_FORMAT, "config": json.dumps(config.to_google(), sort_keys=True), **origin}
    _write(path, arrays, metadata)


def _write(path: str, arrays: Mapping[str, np.ndarray], metadata: dict[str, str]) -> None:
    files.write_bytes(path, safetensors.numpy.save({n: np.ascontiguousarray(a) for n, a in arrays.items()}, metadata))


def read_safetensors(path: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the arrays and the metadata of any safetensors file. Arrays of floats are converted to float32.

    Raises:
      UnusableInputError: the file is missing, cannot be read, is damaged, or is not a safetensors file.
    """
    with _opened(path) as file:
        metadata = file.metadata() or {}
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    return {n: a if a.dtype.kind in "iub" else a.astype(np.float32, copy=False) for n, a in arrays.items()}, metadata


def read_metadata(path: str) -> dict[str, str]:
    """Return the metadata of any safetensors file.

    Raises:
      UnusableInputError: as `read_safetensors`.
    """
    with _opened(path) as file:
        return file.metadata() or {}


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
    # safe_open reports any file that it cannot open as missing; Python's open gives the true cause.
    with storage.local_copy(path) as copy, explained(path), open(copy, "rb"):
        try:
            with safetensors.safe_open(copy, "np") as file:
                yield file
        except (safetensors.SafetensorError, TypeError) as error:
            # A TypeError names a dtype that NumPy does not have.
            raise UnusableInputError(f"{path}: this is no safetensors file, or it is damaged ({error}).") from None


@contextlib.contextmanager
def explained(path: str) -> Iterator[None]:
    """Turn the errors of opening and reading a local checkpoint into sentences.

    Raises:
      UnusableInputError: the file is missing or cannot be read.
    """
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise UnusableInputError(f"{path}: this checkpoint does not exist; check the path.") from None
    except OSError as error:
        raise UnusableInputError(
            f"{path}: this checkpoint cannot be read ({error.strerror or error}); check the file and its permissions."
        ) from None


def read(path: str) -> Checkpoint:
    """Read a checkpoint of a run.

    Raises:
      UnusableInputError: it is missing, damaged, or another kind of checkpoint.
    """
    arrays, metadata = read_safetensors(path)
    if metadata.get("format") != TRAINING_FORMAT:
        raise UnusableInputError(f"{path}: this is no checkpoint of a maskmill run.")
    run = read_settings(path, metadata)
    if run.get("task") == "pretrain":
        # Older checkpoints do not record it; they have the head or not.
        run.setdefault(NEXT_SENTENCE, NEXT_SENTENCE_WEIGHT in arrays)
    return Checkpoint(step=int(metadata["step"]), run=run, arrays=arrays, data=read_data(path, metadata))


def read_settings(path: str, metadata: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of a run in the metadata of one of its checkpoints.

    Raises:
      UnusableInputError: the metadata is damaged.
    """
    run = _object(metadata.get("run", ""))
    if run is None or not isinstance(run.get("model"), dict) or not metadata.get("step", "").isdecimal():
        raise UnusableInputError(
            f"{path}: the settings in this checkpoint are damaged; delete it, and the run goes on from the one before."
        )
    return run


def read_data(path: str, metadata: Mapping[str, str]) -> dict[str, Any]:
    """Return the data that a run was trained on, from a checkpoint's metadata; empty in those of older versions.

    Raises:
      UnusableInputError: the metadata is damaged.
    """
    data = _object(metadata.get("data", "{}"))
    if data is None:
        raise UnusableInputError(
            f"{path}: what this checkpoint says of its data is damaged; delete it, and the run goes on from the one "
            "before."
        )
    return data


def _object(text: str) -> dict[str, Any] | None:
    """Return an object in JSON; None for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def origin_of(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata about training for a copy of a checkpoint's weights; empty if nothing is known."""
    if "maskmill_data" in metadata:
        return {name: metadata[name] for name in _ORIGIN if name in metadata}
    if metadata.get("format") != TRAINING_FORMAT or not json.loads(metadata.get("data") or "{}"):
        return {}
    return {name: metadata[source] for name, source in _ORIGIN.items()}


def check_same_run(path: str, begun_with: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Check that a run is resumed with the settings with which it started.

    A setting that the checkpoint lacks is one of a later version of maskmill; it had its default then.

    Raises:
      UnusableInputError: a setting differs; the message names it with both values.
    """
    if begun_with.get(ORDER) != settings.get(ORDER):
        raise UnusableInputError(
            f"{path}: this run was begun with another version of maskmill, which reads the examples in another order; "
            "resume it with that version, or begin another run from its weights (maskmill convert-checkpoint)."
        )
    defaults = {field.name: field.default for field in dataclasses.fields(TrainOptions)}
    for name in sorted({*begun_with, *settings}):
        if name in defaults and name not in settings:
            continue  # the option has no effect now; if it had one before, then because of another difference
        if name not in defaults and name not in begun_with:
            continue
        before, now = (values.get(name, defaults.get(name)) for values in (begun_with, settings))
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            name, before, now = _first_difference(name, before, now)
        if before != now:
            raise UnusableInputError(
                f"{path}: this run was begun with {name} {before}, but now it is {now}; resume it with the same "
                "settings, or give another --output_dir."
            )


def _first_difference(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """Return the first value in which two mappings differ: its name and both values; None twice if there is none."""
    for key in sorted({*before, *now}):
        if before.get(key) != now.get(key):
            return f"{name}.{key}", before.get(key), now.get(key)
    return name, None, None


def check_complete(path: str, arrays: Mapping[str, np.ndarray], names: Iterable[str]) -> None:
    """Check that a checkpoint of a run has all weights and moments; others would start from new random values.

    Raises:
      UnusableInputError: one is missing; the message names it.
    """
    missing = next((name for name in names if name not in arrays), None)
    if missing is not None:
        raise UnusableInputError(
            f"{path}: this checkpoint lacks {missing}; delete it, and the run goes on from the one before."
        )
