"""What a checkpoint has in it: of safetensors by its header alone, of TensorFlow's by TensorFlow.

safetensors files (training's own and Hugging Face's; several with an index, too) begin with their arrays' names, types
and shapes as JSON, which is read here: it is one call, works on remote files, and the base install has no such library.
Source: https://huggingface.co/docs/safetensors.
"""

import contextlib
import dataclasses
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.arguments import checked
from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.inspection.kinds import plain
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.storage import files

_SAFETENSORS_INDEX = ".safetensors.index.json"
_LENGTH = 8  # bytes of the length of a safetensors header
_MOST_HEADER = 100 << 20
_TENSORFLOW_FILE = re.compile(r"\.(index|meta|data-\d+-of-\d+)$")
_STEP = re.compile(r"step-(\d{10})\.safetensors$")
_BESIDE = ("config.json", "bert_config.json")
# What optimizers keep beside each weight: ours, TensorFlow's Adam and LAMB.
_MOMENT = re.compile(r"(/m|/v|/adam_m|/adam_v|/lamb_m|/lamb_v)$|OPTIMIZER_SLOT")
_NOT_WEIGHTS = re.compile(
    r"_CHECKPOINTABLE_OBJECT_GRAPH|(^|/)(global_step|save_counter|iterations?|learning_rate)($|/)"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredArray:
    """An array of a checkpoint: its name, its type as its format calls it (F32, float32), its shape, and what it is.

    is_weight: whether it is one of the model; not of its optimizer, and not a counter.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_weight: bool

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointHeader:
    """What a checkpoint says of itself.

    Attributes:
      path: the file, or the prefix of a TensorFlow checkpoint.
      format: "safetensors", or "TensorFlow".
      size: bytes of its files.
      arrays: in the order of their names.
      metadata: of safetensors: text by name.
      config: the model's configuration: in the metadata, or config.json or bert_config.json beside it; empty: none.
      others: other checkpoints in the directory that was named.
    """

    path: str
    format: str
    size: int
    arrays: Sequence[StoredArray]
    metadata: Mapping[str, str]
    config: Mapping[str, Any]
    others: Sequence[str]


@checked
def read_checkpoint_header(path: str | os.PathLike[str]) -> CheckpointHeader:
    """What a checkpoint has in it: safetensors, also several files with an index, or TensorFlow's.

    Args:
      path: of a file, the prefix of a TensorFlow checkpoint, or a directory: its newest counts. Local, gs:// or
        http(s)://.

    Raises:
      UnusableInputError: there is none, it is damaged, or is PyTorch's.
      RunFailedError: it cannot be read.
    """
    with contextlib.closing(open_ranges(os.fspath(path))) as ranges:
        return _header(plain(path), ranges)


def _header(path: str, ranges: ByteRanges) -> CheckpointHeader:
    path, others = _find(path, ranges)
    metadata: dict[str, str] = {}
    is_tensorflow = ranges.exists(f"{path}.index")
    if is_tensorflow:
        arrays = _of_tensorflow(path)
        parts = [f"{path}.index", *ranges.glob(f"{path}.data-?????-of-?????")]
    elif path.endswith(_SAFETENSORS_INDEX):
        parts = _files_of(path, ranges)
        arrays = [array for part in parts for array in _of_safetensors(part, ranges)[0]]
    else:
        parts = [path]
        arrays, metadata = _of_safetensors(path, ranges)
    return CheckpointHeader(
        path=path,
        format="TensorFlow" if is_tensorflow else "safetensors",
        size=sum(ranges.sizes(parts)),
        arrays=sorted(arrays, key=lambda array: array.name),
        metadata=metadata,
        config=_config(path, metadata, ranges),
        others=others,
    )


def settings_of(header: CheckpointHeader) -> dict[str, Any]:
    """The settings of the run that wrote a checkpoint, its model aside; empty if it says none."""
    try:
        run = json.loads(header.metadata.get("run", "{}"))
    except (ValueError, RecursionError):
        return {}
    return {name: value for name, value in run.items() if name != "model"} if isinstance(run, dict) else {}


def _find(path: str, ranges: ByteRanges) -> tuple[str, list[str]]:
    """The checkpoint that a path means, and the others beside it."""
    prefix = _TENSORFLOW_FILE.sub("", path)
    if ranges.exists(f"{prefix}.index"):
        return prefix, []
    if not (files.is_local(path) and os.path.isdir(path)):
        if path.endswith((".bin", ".pt", ".pth", ".ckpt")):
            raise UnusableInputError(
                f"{path}: checkpoints of PyTorch are not inspected; make a copy that is "
                "(maskmill convert-checkpoint --format huggingface)."
            )
        return path, []
    steps = [name for name in ranges.glob(files.join(path, "step-*.safetensors")) if _STEP.search(name)]
    indexes = ranges.glob(files.join(path, "*.index"))
    for found in (
        sorted(steps, reverse=True),
        ranges.glob(files.join(path, f"*{_SAFETENSORS_INDEX}")),
        ranges.glob(files.join(path, "*.safetensors")),
        [_TENSORFLOW_FILE.sub("", name) for name in sorted(indexes, key=_number, reverse=True)],
    ):
        if found:
            return found[0], found[1:]
    raise UnusableInputError(
        f"{path}: there is no checkpoint in this directory that can be inspected (safetensors, TensorFlow); name "
        "another one."
    )


def _number(name: str) -> tuple[int, str]:
    digits = re.findall(r"\d+", files.base_name(name))
    return (int(digits[-1]) if digits else -1, name)


def _damaged(path: str) -> UnusableInputError:
    return UnusableInputError(f"{path}: this checkpoint is damaged, or is not one; copy or make it again.")


def _array(name: str, dtype: str, shape: Sequence[int]) -> StoredArray:
    is_weight = dtype != "STRING" and not _MOMENT.search(name) and not _NOT_WEIGHTS.search(name)
    return StoredArray(name=name, dtype=dtype, shape=tuple(shape), is_weight=is_weight)


def _of_safetensors(path: str, ranges: ByteRanges) -> tuple[list[StoredArray], dict[str, str]]:
    """The arrays and the metadata of a safetensors file."""
    size = ranges.size(path)
    try:
        length = int.from_bytes(ranges.read(path, 0, min(size, _LENGTH)).tobytes(), "little")
        if length > min(size - _LENGTH, _MOST_HEADER):
            raise _damaged(path)
        header = json.loads(ranges.read(path, _LENGTH, _LENGTH + length).tobytes())
        metadata = {str(name): str(value) for name, value in header.pop("__metadata__", {}).items()}
        arrays = [_array(name, str(entry["dtype"]), [int(n) for n in entry["shape"]]) for name, entry in header.items()]
        end = _LENGTH + length + max((int(entry["data_offsets"][1]) for entry in header.values()), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise _damaged(path) from None
    if end != size:
        raise UnusableInputError(f"{path}: this checkpoint has {size:,} bytes instead of {end:,}; copy it again.")
    return arrays, metadata


def _files_of(index: str, ranges: ByteRanges) -> list[str]:
    """The safetensors files that an index lists."""
    try:
        names = sorted(set(json.loads(ranges.read_all(index))["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _damaged(index) from None
    return [files.join(files.parent(index), str(name)) for name in names]


def _of_tensorflow(prefix: str) -> list[StoredArray]:
    """The arrays of a TensorFlow checkpoint, by TensorFlow."""
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
    return [_array(name, types[name].name, shape) for name, shape in shapes.items()]


def _config(path: str, metadata: Mapping[str, str], ranges: ByteRanges) -> dict[str, Any]:
    """The configuration of a checkpoint's model; empty if there is none that can be read."""
    texts = [metadata[name] for name in ("run", "config") if name in metadata]
    for name in _BESIDE:
        with contextlib.suppress(MissingFileError):
            texts.append(ranges.read_all(files.join(files.parent(path), name)).decode(errors="replace"))
    for text in texts:
        try:
            config = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(config, dict):
            model = config.get("model", config)
            return dict(model) if isinstance(model, dict) else config
    return {}
