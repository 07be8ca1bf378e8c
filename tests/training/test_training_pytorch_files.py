"""PyTorch's files of weights: what is in them, and that nothing in them is run."""

import contextlib
import os
import pickle
import sys
import zipfile

import numpy as np
import pytest
import pytorch_writer

from maskmill.errors import UnusableInputError
from training import pytorch_files

ARRAYS = {
    "bert.embeddings.weight": np.arange(12, dtype=np.float32).reshape(4, 3),
    "half": np.array([0.5, -2.0], np.float16),
    "rounded": np.array([[1.5], [-3.0]], np.float32),
    "position_ids": np.arange(5, dtype=np.int64)[None],
    "scalar": np.array(2.5, np.float64),
}
WRITERS = {"zip": pytorch_writer.write_zip, "legacy": pytorch_writer.write_legacy}


@pytest.fixture(autouse=True)
def torch_names(monkeypatch):
    for name, module in pytorch_writer.fake_torch().items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.parametrize("form", WRITERS)
def test_the_weights_are_read(tmp_path, form):
    path = str(tmp_path / "pytorch_model.bin")
    WRITERS[form](path, *pytorch_writer.state_dict(ARRAYS, bfloat16=("rounded",)))
    read = pytorch_files.read(path)
    assert set(read) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == (np.int64 if name == "position_ids" else np.float32)


def test_a_transposed_tensor_and_one_behind_the_start_of_its_storage(tmp_path):
    storage = pytorch_writer._Storage("0", np.arange(12, dtype=np.float32), "FloatStorage")
    tensors = {
        "transposed": pytorch_writer._Tensor(storage, (3, 4), (1, 3)),
        "row": pytorch_writer._Tensor(storage, (3,), (1,), offset=6),
    }
    pytorch_writer.write_zip(tmp_path / "x.bin", {"state_dict": tensors, "epoch": 3}, [storage])
    read = pytorch_files.read(str(tmp_path / "x.bin"))
    np.testing.assert_array_equal(read["transposed"], np.arange(12).reshape(4, 3).T)
    np.testing.assert_array_equal(read["row"], [6, 7, 8])


class Harmful:
    """What a pickle of this calls when Python's own unpickler reads it."""

    def __init__(self, function, *arguments):
        self.called = function, arguments

    def __reduce__(self):
        return self.called


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize(
    ("function", "named"), [(os.mkdir, "posix.mkdir"), (eval, "__builtin__.eval"), (getattr, "__builtin__.getattr")]
)
def test_a_pickle_that_would_run_something_is_refused(tmp_path, form, function, named):
    tensors, storages = pytorch_writer.state_dict(ARRAYS)
    tensors["harm"] = Harmful(function, str(tmp_path / "harmed"))
    WRITERS[form](tmp_path / "x.bin", tensors, storages)
    with pytest.raises(UnusableInputError, match=rf"^model: this PyTorch file holds the Python object {named}, which"):
        pytorch_files.read(str(tmp_path / "x.bin"), name="model")
    assert not (tmp_path / "harmed").exists()


GLOBAL_STORAGE = b"\x80\x02ctorch\nFloatStorage\n"


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (GLOBAL_STORAGE + b"(tR.", "a call of FloatStorage"),
        (GLOBAL_STORAGE + b"}X\x05\x00\x00\x00_callcos\nsystem\nsb.", "the Python object os.system"),
        (GLOBAL_STORAGE + b"}X\x04\x00\x00\x00nameX\x01\x00\x00\x00xsb.", "a change of FloatStorage"),
        (GLOBAL_STORAGE + b"N}X\x04\x00\x00\x00nameX\x01\x00\x00\x00xs\x86b.", "a change of FloatStorage"),
        (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(K\x01K\x00)))Ntq\x00R.", "a tensor without a storage"),
    ],
)
def test_a_pickle_can_neither_call_nor_change_what_its_names_stand_for(tmp_path, content, named):
    with zipfile.ZipFile(tmp_path / "x.bin", "w") as archive:
        archive.writestr("archive/data.pkl", content)
    with pytest.raises(UnusableInputError, match=named):
        pytorch_files.read(str(tmp_path / "x.bin"))


@pytest.mark.parametrize(
    ("shape", "strides", "offset"), [((4, 4), (4, 1), 0), ((4,), (1,), 9), ((1 << 40,), (0,), 0), ((2, 2), (1,), 0)]
)
def test_a_tensor_stays_within_its_storage(tmp_path, shape, strides, offset):
    storage = pytorch_writer._Storage("0", np.arange(12, dtype=np.float32), "FloatStorage")
    pytorch_writer.write_zip(
        tmp_path / "x.bin", {"w": pytorch_writer._Tensor(storage, shape, strides, offset)}, [storage]
    )
    with pytest.raises(UnusableInputError, match="no PyTorch file of weights, or it is damaged"):
        pytorch_files.read(str(tmp_path / "x.bin"))


def test_a_compressed_archive_is_refused(tmp_path):
    pytorch_writer.write_zip(tmp_path / "x.bin", *pytorch_writer.state_dict(ARRAYS), compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(UnusableInputError, match="archive/data/0 is compressed"):
        pytorch_files.read(str(tmp_path / "x.bin"))


@pytest.mark.parametrize("form", WRITERS)
def test_damage_anywhere_is_one_sentence_or_other_numbers(tmp_path, form):
    path = tmp_path / "x.bin"
    WRITERS[form](path, *pytorch_writer.state_dict({"w": np.ones((2, 2), np.float32)}))
    content = path.read_bytes()
    for place in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        path.write_bytes(damaged)
        # Any other exception fails the test.
        with contextlib.suppress(UnusableInputError):
            pytorch_files.read(str(path))
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(UnusableInputError):
            pytorch_files.read(str(path))


def test_a_pickle_of_something_else_is_no_file_of_weights(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.bin", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps([1, 2], protocol=2))
    with pytest.raises(UnusableInputError, match="it holds no weights by name"):
        pytorch_files.read(str(tmp_path / "x.bin"))
