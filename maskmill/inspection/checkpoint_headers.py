"""The contents of a checkpoint: of safetensors by its header alone, of TensorFlow's by TensorFlow.

safetensors files (training's own and Hugging Face's) begin with their arrays' names, types and shapes as JSON, which is
read here: it is one call, works on remote files, and the base install has no such library.
Source: https://huggingface.co/docs/safetensors.
"""

import contextlib
import dataclasses
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.inspection.kinds import plain
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.storage import files

_LENGTH = 8  # bytes of the length of a safetensors header
_MOST_HEADER = 100 << 20  # the library's own limit
_TENSORFLOW_FILE = re.compile(r"\.(index|meta|data-\d+-of-\d+)$")
# What optimizers keep beside each weight (ours, TensorFlow's Adam and LAMB), and counters.
_NOT_WEIGHTS = re.compile(
    r"/(m|v|adam_m|adam_v|lamb_m|lamb_v)$|OPTIMIZER_SLOT|_CHECKPOINTABLE_OBJECT_GRAPH"
    r"|(^|/)(global_step|save_counter|iterations?|learning_rate)($|/)"
)


class StoredArray(NamedTuple):
    """An array of a checkpoint: its name, its type as its format calls it (F32, float32), and its shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Return how many numbers it has."""
        return math.prod(self.shape)

    @property
    def is_weight(self) -> bool:
        """Return True for an array of the model, not of its optimizer, and no counter."""
        return not _NOT_WEIGHTS.search(self.name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointHeader:
    """The description of a checkpoint, as its files give it.

    Attributes:
      path: the file, or the prefix of a TensorFlow checkpoint.
      format: "safetensors", or "TensorFlow".
      size: bytes of its files.
      arrays: in the order of their names.
      metadata: of safetensors: text by name.
    """

    path: str
    format: str
    size: int
    arrays: Sequence[StoredArray]
    metadata: Mapping[str, str]

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the model; empty if the checkpoint says none."""
        model = self._run().get("model")
        return model if isinstance(model, dict) else {}

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run that wrote it, its model aside; empty if it says none."""
        return {name: value for name, value in self._run().items() if name != "model"}

    def _run(self) -> dict[str, Any]:
        try:
            value = json.loads(self.metadata.get("run", "{}"))
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


@checked
def read_checkpoint_header(path: str | os.PathLike[str]) -> CheckpointHeader:
    """Read which arrays a checkpoint has: safetensors, or TensorFlow's.

    Args:
      path: of a file, the prefix of a TensorFlow checkpoint, or a directory: its newest counts. Local, gs:// or
        http(s)://.

    Raises:
      UnusableInputError: there is none, or it is damaged.
      RunFailedError: it cannot be read.
    """
    with contextlib.closing(open_ranges(os.fspath(path))) as ranges:
        path = _found(plain(path), ranges)
        metadata: dict[str, str] = {}
        is_tensorflow = ranges.exists(f"{path}.index")
        arrays = _of_tensorflow(path) if is_tensorflow else _of_safetensors(path, ranges, metadata)
        parts = [f"{path}.index", *ranges.glob(f"{path}.data-?????-of-?????")] if is_tensorflow else [path]
        return CheckpointHeader(
            path=path,
            format="TensorFlow" if is_tensorflow else "safetensors",
            size=sum(ranges.sizes(parts)),
            arrays=sorted(arrays, key=lambda array: array.name),
            metadata=metadata,
        )


def _found(path: str, ranges: ByteRanges) -> str:
    """Return the checkpoint that a path means: of a directory its newest."""
    prefix = _TENSORFLOW_FILE.sub("", path)
    if ranges.exists(f"{prefix}.index"):
        return prefix
    if not (files.is_local(path) and os.path.isdir(path)):
        return path
    for pattern in ("step-??????????.safetensors", "*.safetensors", "*.index"):
        if found := ranges.glob(files.join(path, pattern)):
            return _TENSORFLOW_FILE.sub("", max(found, key=_step))
    raise UnusableInputError(
        f"{path}: there is no checkpoint in this directory that can be inspected (safetensors, TensorFlow); name "
        "another one."
    )


def _step(name: str) -> tuple[int, str]:
    digits = re.findall(r"\d+", files.base_name(name))
    return (int(digits[-1]) if digits else -1, name)


def _damaged(path: str) -> UnusableInputError:
    return UnusableInputError(f"{path}: this checkpoint is damaged, or is not one; copy or make it again.")


def _of_safetensors(path: str, ranges: ByteRanges, metadata: dict[str, str]) -> list[StoredArray]:
    """Return the arrays of a safetensors file; adds its metadata."""
    size = ranges.size(path)
    try:
        length = int.from_bytes(ranges.read(path, 0, min(size, _LENGTH)).tobytes(), "little")
        header = json.loads(ranges.read(path, _LENGTH, min(size, _LENGTH + length, _MOST_HEADER)).tobytes())
        metadata |= {str(name): str(value) for name, value in header.pop("__metadata__", {}).items()}
        arrays = [
            StoredArray(name, str(entry["dtype"]), tuple(map(int, entry["shape"]))) for name, entry in header.items()
        ]
        end = _LENGTH + length + max((int(entry["data_offsets"][1]) for entry in header.values()), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise _damaged(path) from None
    if end != size:
        raise UnusableInputError(f"{path}: this checkpoint has {size:,} bytes instead of {end:,}; copy it again.")
    return arrays


def _of_tensorflow(prefix: str) -> list[StoredArray]:
    """Return the arrays of a TensorFlow checkpoint, by TensorFlow."""
    try:
        from tensorflow import errors, train
    except ImportError:
        raise UnusableInputError(
            f"{prefix}: TensorFlow reads its own checkpoints, and is not installed here; pip install tensorflow, or "
            "make a copy in another format where it is (maskmill convert-checkpoint)."
        ) from None
    try:
        reader = train.load_checkpoint(prefix)
        shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    except (errors.OpError, ValueError, RuntimeError):
        raise _damaged(prefix) from None
    return [StoredArray(name, types[name].name, tuple(shape)) for name, shape in shapes.items()]
