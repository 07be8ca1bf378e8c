"""Checkpoints of a run: what is written is read, old ones go, and other runs' are refused."""

import numpy as np
import pytest
import safetensors.numpy
from training_helpers import BACKEND, small_config

from maskmill.errors import UnusableInputError
from training import checkpoints
from training.weights import NEXT_SENTENCE

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="no backend is used")


def checkpoint(step):
    arrays = {"bert/a": np.arange(6, dtype=np.float32).reshape(2, 3).T, "bert/a/m": np.full(2, step, np.float32)}
    return checkpoints.Checkpoint(step=step, run={"seed": 3, "model": {"vocab_size": 9}}, arrays=arrays)


def test_what_is_written_is_read(tmp_path):
    path = checkpoints.write(str(tmp_path), checkpoint(7), keep=1)
    assert path == checkpoints.path_of(str(tmp_path), 7) == str(tmp_path / "step-0000000007.safetensors")
    read = checkpoints.read(path)
    assert (read.step, read.run) == (7, checkpoint(7).run)
    assert set(read.arrays) == set(checkpoint(7).arrays)
    for name, array in checkpoint(7).arrays.items():
        np.testing.assert_array_equal(read.arrays[name], array)


def test_the_newest_checkpoints_are_kept(tmp_path):
    (tmp_path / "step-best.safetensors").write_bytes(b"")
    (tmp_path / "weights.safetensors").write_bytes(b"")
    for step in (5, 20, 100, 1000):
        checkpoints.write(str(tmp_path), checkpoint(step), keep=2)
    kept = checkpoints.list_checkpoints(str(tmp_path))
    assert [checkpoints.step_of(p) for p in kept] == [100, 1000]
    # Files of other names are left alone.
    assert sorted(p.name for p in tmp_path.iterdir() if "step-0" not in p.name) == [
        "step-best.safetensors",
        "weights.safetensors",
    ]


def test_a_directory_without_checkpoints(tmp_path):
    assert checkpoints.list_checkpoints(str(tmp_path / "nothing")) == []


@pytest.mark.parametrize("name", ["step-1.safetensors", "step-0000000001.safetensors.tmp", "weights.safetensors"])
def test_other_names_have_no_step(name):
    with pytest.raises(UnusableInputError, match="this is not the name of a checkpoint of maskmill"):
        checkpoints.step_of(f"run/{name}")


def test_floats_are_read_as_float32(tmp_path):
    path = str(tmp_path / "other.safetensors")
    half, count = np.array([0.5, 2.0], np.float16), np.array([2**40])
    safetensors.numpy.save_file({"half": half, "count": count}, path)
    arrays, metadata = checkpoints.read_safetensors(path)
    assert metadata == {}
    assert arrays["half"].dtype == np.float32
    assert arrays["half"].tolist() == [0.5, 2.0]
    assert arrays["count"].dtype == np.int64
    assert arrays["count"].tolist() == [2**40]


def test_bare_weights_are_no_checkpoint_of_a_run(tmp_path):
    path = str(tmp_path / "weights.safetensors")
    checkpoints.write_weights(path, checkpoint(1).arrays, small_config())
    assert checkpoints.read_safetensors(path)[1]["format"] == checkpoints.WEIGHTS_FORMAT
    with pytest.raises(UnusableInputError, match="this is no checkpoint of a maskmill run"):
        checkpoints.read(path)


def test_the_setting_that_differs_is_named():
    checkpoints.check_same_run("x", {"seed": 1, "shuffle": True}, {"shuffle": True, "seed": 1})
    with pytest.raises(UnusableInputError, match=r"^x: this run was begun with seed 1, but now it is 2; resume it"):
        checkpoints.check_same_run("x", {"seed": 1, "shuffle": True}, {"shuffle": True, "seed": 2})
    # An older version did not write it, so it had its default.
    checkpoints.check_same_run("x", {"seed": 1}, {"seed": 1, "num_labels": 2})
    with pytest.raises(UnusableInputError, match="begun with num_labels 2, but now it is 3"):
        checkpoints.check_same_run("x", {"seed": 1}, {"seed": 1, "num_labels": 3})
    with pytest.raises(UnusableInputError, match=r"begun with model\.vocab_size 9, but now it is 10"):
        checkpoints.check_same_run("x", {"model": {"vocab_size": 9}}, {"model": {"vocab_size": 10}})
    # Only LAMB reads this: what differs is the optimizer.
    with pytest.raises(UnusableInputError, match="begun with optimizer lamb, but now it is adamw"):
        checkpoints.check_same_run("x", {"lamb_beta_1": 0.5, "optimizer": "lamb"}, {"optimizer": "adamw"})


@pytest.mark.parametrize("order", [{}, {"order_of_examples": 0}], ids=["not-named", "other"])
def test_a_run_of_a_version_with_another_order_is_not_resumed(order):
    now = {"training_data": "456", "order_of_examples": 1}
    with pytest.raises(UnusableInputError, match="x: this run was begun with another version of maskmill, which reads"):
        checkpoints.check_same_run("x", {"training_data": "123"} | order, now)


def test_a_checkpoint_that_does_not_say_it_has_the_head_or_not(tmp_path):
    for step, arrays in ((1, {}), (2, {NEXT_SENTENCE: np.zeros((2, 4), np.float32)})):
        run = {"task": "pretrain", "model": {}}
        path = checkpoints.write(str(tmp_path), checkpoints.Checkpoint(step=step, run=run, arrays=arrays), keep=9)
        assert checkpoints.read(path).run["next_sentence_prediction"] is bool(arrays)


@pytest.mark.parametrize(
    "metadata", [{}, {"run": "{"}, {"run": "[]"}, {"run": "{}"}, {"run": '{"model": {}}', "step": "x"}]
)
def test_damaged_settings_are_one_sentence(tmp_path, metadata):
    path = str(tmp_path / "step-0000000001.safetensors")
    safetensors.numpy.save_file({}, path, {"format": checkpoints.TRAINING_FORMAT, "step": "1"} | metadata)
    with pytest.raises(UnusableInputError, match="the settings in this checkpoint are damaged; delete it"):
        checkpoints.read(path)


def test_each_cause_of_an_unreadable_checkpoint_has_its_sentence(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    for path, message in (
        (tmp_path / "missing", "this checkpoint does not exist"),
        (tmp_path / "file" / "x", "this checkpoint does not exist"),
        (tmp_path / "loop", "cannot be read"),
        (tmp_path, "cannot be read"),
        (tmp_path / "file", "no safetensors file, or it is damaged"),
    ):
        with pytest.raises(UnusableInputError, match=message):
            checkpoints.read_safetensors(str(path))
        with pytest.raises(UnusableInputError, match=message):
            checkpoints.read_metadata(str(path))


def test_a_checkpoint_without_a_weight_is_refused():
    checkpoints.check_complete("x", {"a": np.zeros(1), "a/m": np.zeros(1)}, ["a", "a/m"])
    with pytest.raises(UnusableInputError, match="x: this checkpoint lacks a/v; delete it"):
        checkpoints.check_complete("x", {"a": np.zeros(1)}, ["a", "a/v"])
