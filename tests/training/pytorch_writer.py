"""Writes PyTorch's files of weights as PyTorch does, without PyTorch: the pickles are made by Python's own pickler."""

import collections
import io
import pickle
import sys
import types
import zipfile

import numpy as np

KINDS = {"f4": "FloatStorage", "f2": "HalfStorage", "f8": "DoubleStorage", "i8": "LongStorage"}
LEGACY_NUMBER, LEGACY_PROTOCOL = 0x1950A86A20F9469CFC6C, 1001


class _Storage:
    def __init__(self, key, array, kind):
        self.key, self.array, self.kind = key, array, kind


class _Tensor:
    """A stand-in for a tensor, pickled under the names of PyTorch's functions."""

    def __init__(self, storage, shape, strides, offset=0):
        self.arguments = (storage, offset, shape, strides, False, collections.OrderedDict())

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.arguments


class _Pickler(pickle.Pickler):
    def __init__(self, file, *, legacy):
        super().__init__(file, protocol=2)
        self.legacy = legacy

    def persistent_id(self, value):
        if not isinstance(value, _Storage):
            return None
        kind = getattr(sys.modules["torch"], value.kind)
        reference = ("storage", kind, value.key, "cpu", value.array.size)
        return (*reference, None) if self.legacy else reference


def fake_torch():
    """Modules of PyTorch's names, so that pickle finds what it is told to name."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for kind in (*KINDS.values(), "BFloat16Storage"):
        setattr(torch, kind, type(kind, (), {"__module__": "torch", "__qualname__": kind}))

    def _rebuild_tensor_v2(*_):
        raise AssertionError("only its name is pickled")

    _rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    torch._utils = utils
    return {"torch": torch, "torch._utils": utils}


def state_dict(arrays, *, bfloat16=()):
    """Arrays as stand-ins for tensors, each with a storage of its own; names in `bfloat16` are stored so."""
    tensors, storages = collections.OrderedDict(), []
    for number, (name, array) in enumerate(arrays.items()):
        flat = np.ascontiguousarray(array).reshape(-1)
        kind = KINDS.get(flat.dtype.str[1:], "")
        if name in bfloat16:
            kind, flat = "BFloat16Storage", (flat.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        storage = _Storage(str(number), flat, kind)
        strides = tuple(s // array.itemsize for s in np.asarray(array, order="C").strides)
        tensors[name] = _Tensor(storage, array.shape, strides)
        storages.append(storage)
    tensors._metadata = {"": {"version": 1}}
    return tensors, storages


def write_zip(path, content, storages, *, compression=zipfile.ZIP_STORED):
    """Writes torch.save's zip archive."""
    pickled = io.BytesIO()
    _Pickler(pickled, legacy=False).dump(content)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("archive/data.pkl", pickled.getvalue())
        archive.writestr("archive/byteorder", "little")
        for storage in storages:
            archive.writestr(f"archive/data/{storage.key}", storage.array.tobytes())
        archive.writestr("archive/version", "3\n")


def write_legacy(path, content, storages):
    """Writes the format of torch.save before PyTorch 1.6."""
    with open(path, "wb") as file:
        pickle.dump(LEGACY_NUMBER, file, protocol=2)
        pickle.dump(LEGACY_PROTOCOL, file, protocol=2)
        pickle.dump({"protocol_version": 1001, "little_endian": True, "type_sizes": {}}, file, protocol=2)
        _Pickler(file, legacy=True).dump(content)
        pickle.dump([s.key for s in storages], file, protocol=2)
        for storage in storages:
            file.write(np.array(storage.array.size, "<i8").tobytes() + storage.array.tobytes())
