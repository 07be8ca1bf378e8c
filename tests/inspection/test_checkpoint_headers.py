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
    header: dict[str, object] = {} if metadata is None else {"__metadata__": metadata}
    data = b""
    for name, array in arrays.items():
        offsets = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": f"F{8 * array.itemsize}", "shape": list(array.shape), "data_offsets": offsets}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


ARRAYS = {
    "bert/embeddings/word_embeddings": np.zeros((50, 8), np.float32),
    "bert/embeddings/word_embeddings/m": np.zeros((50, 8), np.float32),
    "cls/bias": np.zeros(3, np.float16),
    "scalar": np.array(1.5),
}


def test_without_tensorflow_its_checkpoints_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(UnusableInputError, match="is not installed here; pip install tensorflow"):
        read_checkpoint_header(str(TENSORFLOW))


def test_newest_checkpoint_of_a_run_counts(tmp_path: Path) -> None:
    run = {"model": {"hidden_size": 8}, "seed": 3}
    for step in (20, 1000, 300):
        metadata = {"format": "maskmill-training-1", "step": str(step), "run": json.dumps(run)}
        (tmp_path / f"step-{step:010}.safetensors").write_bytes(saved(ARRAYS, metadata))
    header = read_checkpoint_header(str(tmp_path))
    assert header.metadata["step"] == "1000"
    assert {array.name: array.shape for array in header.arrays} == {name: a.shape for name, a in ARRAYS.items()}
    assert [array.name for array in header.arrays if not array.is_weight] == ["bert/embeddings/word_embeddings/m"]
    assert (header.config, header.settings) == ({"hidden_size": 8}, {"seed": 3})


@given(st.data())
@tries(100)
def test_damage_is_one_sentence(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.getbasetemp() / "m.safetensors"
    content = bytearray(saved(ARRAYS))
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    is_cut = data.draw(st.booleans())
    path.write_bytes(content[: len(content) - is_cut * data.draw(st.integers(1, len(content) - 1))])
    message = f"{path}: no damage"
    try:
        read_checkpoint_header(str(path))
    except UnusableInputError as error:
        message = str(error)
    assert str(path) in message
    assert "\n" not in message
    assert not is_cut or "no damage" not in message
