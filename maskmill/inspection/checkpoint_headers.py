"""What a checkpoint has in it, read from its header alone and without TensorFlow or PyTorch.

safetensors files (training's own and Hugging Face's; several with an index, too) begin with their arrays' names, types
and shapes as JSON: https://huggingface.co/docs/safetensors. The index of a TensorFlow checkpoint is a table of LevelDB
(tensorflow/core/lib/io/table_format.txt, doc/table_format.md of google/leveldb) from names to BundleEntryProto
(tensorflow/core/protobuf/tensor_bundle.proto).
"""

import contextlib
import dataclasses
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from google.protobuf.message import DecodeError

from maskmill.arguments import checked
from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.inspection.kinds import plain
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.records.example_proto import BundleEntry
from maskmill.records.varints import read_varint
from maskmill.storage import files

_SAFETENSORS_INDEX = ".safetensors.index.json"
_LENGTH = 8  # bytes of the length of a safetensors header
_MOST_HEADER = 100 << 20
_FOOTER = 48  # bytes at the end of a table
_MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
_TRAILER = 5  # bytes behind a block: how it is packed, and a checksum
_PLAIN = 0
# tensorflow/core/framework/types.proto, under safetensors' names.
_TENSORFLOW_TYPES = {
    1: "F32", 2: "F64", 3: "I32", 4: "U8", 6: "I8", 7: "STRING", 9: "I64", 10: "BOOL", 14: "BF16", 19: "F16",
}  # fmt: skip
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
    """An array of a checkpoint: its name, its type as safetensors calls it (F32), its shape, and what it is.

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
    format = "safetensors"
    if path.endswith(_SAFETENSORS_INDEX):
        arrays, size = _of_several(path, ranges)
    elif ranges.exists(f"{path}.index"):
        arrays, format = _of_table(f"{path}.index", ranges), "TensorFlow"
        size = sum(ranges.sizes([f"{path}.index", *ranges.glob(f"{path}.data-?????-of-?????")]))
    else:
        arrays, metadata = _of_safetensors(path, ranges)
        size = ranges.size(path)
    return CheckpointHeader(
        path=path,
        format=format,
        size=size,
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
        length = int.from_bytes(ranges.read(path, 0, _LENGTH).tobytes(), "little")
        if length > min(size - _LENGTH, _MOST_HEADER):
            raise _damaged(path)
        header = json.loads(ranges.read(path, _LENGTH, _LENGTH + length).tobytes())
        metadata = {str(name): str(value) for name, value in header.pop("__metadata__", {}).items()}
        arrays = [_array(name, str(entry["dtype"]), [int(n) for n in entry["shape"]]) for name, entry in header.items()]
        end = max((int(entry["data_offsets"][1]) for entry in header.values()), default=0)
    except MissingFileError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, UnusableInputError):
        raise _damaged(path) from None
    if _LENGTH + length + end != size:
        raise UnusableInputError(
            f"{path}: this checkpoint has {size:,} bytes instead of {_LENGTH + length + end:,}; copy it again."
        )
    return arrays, metadata


def _of_several(index: str, ranges: ByteRanges) -> tuple[list[StoredArray], int]:
    """The arrays of the safetensors files that an index lists, and their size."""
    try:
        names = sorted(set(json.loads(ranges.read_all(index))["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _damaged(index) from None
    paths = [files.join(files.parent(index), str(name)) for name in names]
    arrays = [array for path in paths for array in _of_safetensors(path, ranges)[0]]
    return arrays, sum(ranges.sizes(paths))


def _of_table(path: str, ranges: ByteRanges) -> list[StoredArray]:
    """The arrays of a TensorFlow checkpoint, by its index."""
    content = ranges.read_all(path)
    if len(content) < _FOOTER or not content.endswith(_MAGIC):
        raise _damaged(path)
    try:
        footer = content[-_FOOTER:]
        _, _, at = _handle(footer, 0)
        start, size, _ = _handle(footer, at)
        blocks = [_handle(handle, 0)[:2] for _, handle in _entries(_block(content, start, size))]
        entries = [entry for start, size in blocks for entry in _entries(_block(content, start, size))]
        # The empty name has the header of the bundle.
        return [_of_entry(name.decode(), value) for name, value in entries if name]
    except (ValueError, IndexError, DecodeError):
        raise _damaged(path) from None


def _block(content: bytes, start: int, size: int) -> bytes:
    if start + size + _TRAILER > len(content) or content[start + size] != _PLAIN:
        raise ValueError("a block is cut off, or packed")
    return content[start : start + size]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block: each key is the beginning of the one before it, and a part of its own."""
    restarts = int.from_bytes(block[-4:], "little")
    end, at, key = len(block) - 4 * (restarts + 1), 0, b""
    while at < end:
        shared, at = read_varint(block, at)
        own, at = read_varint(block, at)
        length, at = read_varint(block, at)
        key = key[:shared] + block[at : at + own]
        yield key, block[at + own : at + own + length]
        at += own + length


def _handle(data: bytes, at: int) -> tuple[int, int, int]:
    """Where a block starts, its size, and where the handle ends."""
    start, at = read_varint(data, at)
    size, at = read_varint(data, at)
    return start, size, at


def _of_entry(name: str, encoded: bytes) -> StoredArray:
    """An array from its BundleEntryProto."""
    entry: Any = BundleEntry.FromString(encoded)
    dtype = _TENSORFLOW_TYPES.get(entry.dtype, f"type {entry.dtype}")
    return _array(name, dtype, [dimension.size for dimension in entry.shape.dim])


def _config(path: str, metadata: Mapping[str, str], ranges: ByteRanges) -> dict[str, Any]:
    """The configuration of a checkpoint's model; empty if there is none that can be read."""
    texts = [metadata[name] for name in ("config",) if name in metadata]
    for name in _BESIDE:
        try:
            texts.append(ranges.read_all(files.join(files.parent(path), name)).decode(errors="replace"))
        except MissingFileError:
            continue
    if "run" in metadata:
        texts.insert(0, metadata["run"])
    for text in texts:
        try:
            config = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(config, dict):
            model = config.get("model", config)
            return dict(model) if isinstance(model, dict) else config
    return {}
