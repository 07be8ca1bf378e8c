"""PyTorch's files of weights (`pytorch_model.bin`), read without PyTorch and without running anything in them.

Such a file is a pickle, and a pickle can call any Python function by its name. The unpickler here knows the few names
that weights need, and refuses all others. The names stand for immutable markers of this module, so that a pickle can
reach no function of Python at all. Source: torch/serialization.py, `_save` (a zip archive, since PyTorch 1.6) and
`_legacy_save`.
"""

import collections
import io
import math
import pickle
import zipfile
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from maskmill.errors import UnusableInputError

_ZIP_MAGIC = b"PK\x03\x04"
# The beginning of a file of PyTorch before 1.6: a pickle of this number, one of the protocol, one of the system.
_LEGACY_NUMBER = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001
_LEGACY_MAGIC = pickle.dumps(_LEGACY_NUMBER, protocol=2)
# NumPy's dtypes of PyTorch's storages. A bfloat16 is the upper half of a float32.
_BFLOAT16 = "bfloat16"
_DTYPES = {
    "DoubleStorage": "f8",
    "FloatStorage": "f4",
    "HalfStorage": "f2",
    "BFloat16Storage": _BFLOAT16,
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "u1",
}
_KEY_OF_WEIGHTS = "state_dict"


class _Refused(Exception):
    """A pickle refers to a name that weights do not need."""


class _Storage(NamedTuple):
    """A run of `length` numbers of a storage's kind, under its key in the file. A pickle cannot change it."""

    kind: str
    key: str
    length: int


class _Tensor(NamedTuple):
    """A tensor: a storage, its offset in it, and its shape and strides, counted in numbers.

    A pickle cannot change it.
    """

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Marker:
    """The meaning of a name in a pickle. A pickle may call it, but can neither change nor fill it."""

    __slots__ = ("_call", "name")
    name: str
    _call: Callable[..., Any] | None

    def __init__(self, name: str, call: Callable[..., Any] | None = None) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "_call", call)

    def __call__(self, *arguments: Any) -> Any:
        if self._call is None:
            raise _Refused(f"a call of {self.name}")
        return self._call(*arguments)

    def __setattr__(self, name: str, value: Any) -> None:
        raise _Refused(f"a change of {self.name}")

    def __setstate__(self, state: Any) -> None:
        raise _Refused(f"a change of {self.name}")


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> _Tensor:
    """Return a tensor like PyTorch's functions of this name (and with _v2); other arguments concern gradients."""
    shape, strides = tuple(shape), tuple(strides)
    numbers = (offset, *shape, *strides)
    if not isinstance(storage, _Storage) or not all(type(n) is int and n >= 0 for n in numbers):
        raise _Refused("a tensor without a storage")
    return _Tensor(storage, offset, shape, strides)


class _Weights(collections.OrderedDict[Any, Any]):
    """The mapping of a state dict. PyTorch sets `_metadata` on it, which is dropped."""

    def __setstate__(self, state: Any) -> None:
        """Drop the state."""


_NAMES: Mapping[tuple[str, str], _Marker] = {
    ("collections", "OrderedDict"): _Marker("OrderedDict", _Weights),
    ("torch._utils", "_rebuild_tensor"): _Marker("_rebuild_tensor", _rebuild_tensor),
    ("torch._utils", "_rebuild_tensor_v2"): _Marker("_rebuild_tensor_v2", _rebuild_tensor),
    ("torch._utils", "_rebuild_parameter"): _Marker("_rebuild_parameter", lambda tensor, *_: tensor),
    **{("torch", kind): _Marker(kind) for kind in _DTYPES},
}


class _Unpickler(pickle.Unpickler):
    """Reads a pickle of weights. Storages stay descriptions, by key in `storages`; their numbers are read later."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Return the marker of a name.

        Raises:
          _Refused: weights do not need this name.
        """
        marker = _NAMES.get((module, name))
        if marker is None:
            raise _Refused(f"the Python object {module}.{name}")
        return marker

    def persistent_load(self, reference: Any) -> _Storage:
        """Return the storage that a pickle refers to: ("storage", kind, key, device, count[, view])."""
        kind = reference[1].name if isinstance(reference, tuple) and isinstance(reference[1], _Marker) else None
        if kind not in _DTYPES or reference[0] != "storage" or any(part is not None for part in reference[5:]):
            raise _Refused("a storage of an unknown kind")
        key, count = reference[2], reference[4]
        if not isinstance(key, str) or type(count) is not int or count < 0:
            raise _Refused("a storage of an unknown form")
        self.storages[key] = _Storage(kind, key, count)
        return self.storages[key]


def read(path: str, *, name: str | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of a local file of weights by name. Floats are converted to float32.

    `name` is the user's name of the file, if it is not its path.

    Raises:
      UnusableInputError: it is damaged, it is not a file of weights, or it asks for a name that weights do not need.
      OSError: it cannot be opened.
    """
    name = path if name is None else name
    with open(path, "rb") as file:
        try:
            head = file.read(len(_ZIP_MAGIC))
            file.seek(0)
            tensors, numbers_of = _read_zip(file) if head == _ZIP_MAGIC else _read_legacy(file)
            return {key: _array(tensor, numbers_of) for key, tensor in tensors.items()}
        except _Refused as refused:
            raise UnusableInputError(
                f"{name}: this PyTorch file holds {refused}, which weights do not need; nothing in it was run. Save "
                "the model as safetensors, or ask whoever made the file."
            ) from None
        except Exception as error:  # noqa: BLE001 - the sentence contains it
            # Damage may appear as nearly any exception: in the archive, the pickle, a key or a size.
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise UnusableInputError(
                f"{name}: this is no PyTorch file of weights, or it is damaged ({reason})."
            ) from None


def _read_zip(file: BinaryIO) -> tuple[dict[str, _Tensor], Callable[[_Storage], np.ndarray]]:
    """Return the tensors of a zip archive, and a function that reads the numbers of a storage."""
    archive = zipfile.ZipFile(file)
    members = {member.filename: member for member in archive.infolist()}
    pickles = [member for member in members if member.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise ValueError("there is no data.pkl in it")
    root = pickles[0].removesuffix("data.pkl")
    order = "<"
    if f"{root}byteorder" in members:
        order = ">" if archive.read(f"{root}byteorder").strip() == b"big" else "<"

    def numbers_of(storage: _Storage) -> np.ndarray:
        member = members[f"{root}data/{storage.key}"]
        # PyTorch does not compress. Compressed content could be larger than any memory.
        if member.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{member.filename} is compressed")
        return _numbers(archive.read(member), storage, order)

    return _tensors(_Unpickler(io.BytesIO(archive.read(pickles[0]))).load()), numbers_of


def _read_legacy(file: BinaryIO) -> tuple[dict[str, _Tensor], Callable[[_Storage], np.ndarray]]:
    """Return the tensors of a file of PyTorch before 1.6, and a function that returns the numbers of a storage."""
    if _Unpickler(file).load() != _LEGACY_NUMBER or _Unpickler(file).load() != _LEGACY_PROTOCOL:
        raise ValueError("it does not begin as PyTorch's files do")
    system = _Unpickler(file).load()
    order = "<" if system["little_endian"] else ">"
    unpickler = _Unpickler(file)
    tensors = _tensors(unpickler.load())
    contents = {}
    for key in _Unpickler(file).load():
        count = int.from_bytes(file.read(8), "little" if order == "<" else "big")
        storage = unpickler.storages[key]
        if storage.length != count:
            raise ValueError(f"storage {key} has {count} numbers instead of {storage.length}")
        contents[key] = _numbers(file.read(count * _item_size(storage)), storage, order)
    return tensors, lambda storage: contents[storage.key]


def _tensors(content: Any) -> dict[str, _Tensor]:
    """Return the tensors by name in a pickle: a state dict, or a dict that has one under `state_dict`."""
    if isinstance(content, dict) and isinstance(content.get(_KEY_OF_WEIGHTS), dict):
        content = content[_KEY_OF_WEIGHTS]
    if not isinstance(content, dict):
        raise ValueError("it holds no weights by name")
    tensors = {name: value for name, value in content.items() if isinstance(value, _Tensor) and isinstance(name, str)}
    if not tensors:
        raise ValueError("it holds no weights by name")
    return tensors


def _item_size(storage: _Storage) -> int:
    """Return the size in bytes of one number of a storage."""
    dtype = _DTYPES[storage.kind]
    return 2 if dtype == _BFLOAT16 else np.dtype(dtype).itemsize


def _numbers(content: bytes, storage: _Storage, order: str) -> np.ndarray:
    """Return the numbers of a storage ([count]) from its bytes; bfloat16 becomes float32."""
    if len(content) != storage.length * _item_size(storage):
        raise ValueError(f"storage {storage.key} has {len(content)} bytes")
    dtype = _DTYPES[storage.kind]
    if dtype != _BFLOAT16:
        return np.frombuffer(content, order + dtype)
    return (np.frombuffer(content, f"{order}u2").astype(np.uint32) << 16).view(np.float32)


def _array(tensor: _Tensor, numbers_of: Callable[[_Storage], np.ndarray]) -> np.ndarray:
    """Return a tensor as an array of its own."""
    numbers = numbers_of(tensor.storage)
    count = math.prod(tensor.shape)
    steps = zip(tensor.shape, tensor.strides, strict=True)
    last = tensor.offset + sum((size - 1) * stride for size, stride in steps)
    # A tensor may repeat its numbers by strides of 0; without this bound it could be larger than any memory.
    if count > len(numbers) or (count and last >= len(numbers)):
        raise ValueError(f"a tensor of shape {list(tensor.shape)} exceeds its storage")
    begin = numbers[tensor.offset :]
    view = np.lib.stride_tricks.as_strided(begin, tensor.shape, [s * numbers.itemsize for s in tensor.strides])
    return view.astype(np.float32 if numbers.dtype.kind == "f" else numbers.dtype.newbyteorder("="))
