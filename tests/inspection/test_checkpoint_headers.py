"""Checkpoints are read from their headers; what is damaged is refused."""

import json
import struct
import sys
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from conftest import DATA
from hypothesis import given
from properties import tries

from maskmill.errors import UnusableInputError
from maskmill.inspection.checkpoint_headers import read_checkpoint_header

TENSORFLOW = DATA / "training" / "tf1_ckpt"


def saved(arrays: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> bytes:
    """A safetensors file, by its documentation."""
    names = {"float32": "F32", "float16": "F16", "float64": "F64", "int8": "I8"}
    header: dict[str, object] = {} if metadata is None else {"__metadata__": metadata}
    data = b""
    for name, array in arrays.items():
        content = array.tobytes()
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": names[array.dtype.name], "shape": list(array.shape), "data_offsets": offsets}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def written(path: Path, metadata: dict[str, str] | None = None) -> dict[str, np.ndarray]:
    arrays = {
        "bert/embeddings/word_embeddings": np.zeros((50, 8), np.float32),
        "bert/embeddings/word_embeddings/m": np.zeros((50, 8), np.float32),
        "cls/bias": np.zeros(3, np.float16),
        "scalar": np.array(1.5),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(saved(arrays, metadata))
    return arrays


def test_without_tensorflow_its_checkpoints_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(UnusableInputError, match="is not installed here; pip install tensorflow"):
        read_checkpoint_header(str(TENSORFLOW))


def test_newest_checkpoint_of_a_run_counts(tmp_path: Path) -> None:
    run = {"model": {"hidden_size": 8}, "seed": 3}
    for step in (20, 1000, 300):
        metadata = {"format": "maskmill-training-1", "step": str(step), "run": json.dumps(run)}
        arrays = written(tmp_path / f"step-{step:010}.safetensors", metadata)
    header = read_checkpoint_header(str(tmp_path))
    assert header.metadata["step"] == "1000"
    assert {array.name: array.shape for array in header.arrays} == {name: a.shape for name, a in arrays.items()}
    assert [array.name for array in header.arrays if not array.is_weight] == ["bert/embeddings/word_embeddings/m"]
    assert (header.config, header.settings) == ({"hidden_size": 8}, {"seed": 3})


def test_files_of_a_list_are_one_checkpoint(tmp_path: Path) -> None:
    written(tmp_path / "model-1.safetensors")
    (tmp_path / "model-2.safetensors").write_bytes(saved({"other": np.zeros((2, 2), np.int8)}))
    listed = {"cls/bias": "model-1.safetensors", "other": "model-2.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": listed}))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    header = read_checkpoint_header(str(tmp_path))
    assert [array.name for array in header.arrays][-1] == "scalar"
    assert {array.name for array in header.arrays} > {"other", "cls/bias"}
    assert header.config == {"model_type": "bert"}
    assert header.size == sum(path.stat().st_size for path in tmp_path.glob("*.safetensors"))


@given(st.data())
@tries(100)
def test_damage_is_one_sentence(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.getbasetemp() / "damaged-checkpoints"
    path = folder / "m.safetensors"
    written(path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    message = f"{folder}: no damage"
    try:
        read_checkpoint_header(str(path))
    except UnusableInputError as error:
        message = str(error)
    assert str(folder) in message
    assert "\n" not in message


def test_cut_safetensors_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    written(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UnusableInputError, match="bytes instead of"):
        read_checkpoint_header(str(path))
    path.write_bytes(struct.pack("<Q", 1 << 60) + b"{}")
    with pytest.raises(UnusableInputError, match=r"damaged, or is not one|bytes instead of"):
        read_checkpoint_header(str(path))
