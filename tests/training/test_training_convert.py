"""Checkpoints of other programs: what is written is read back the same. (In test_torch.py Hugging Face reads them.)"""

import json

import numpy as np
import pytest
import tensorflow as tf
from training_helpers import BACKEND, CHECKPOINT, GOLD, small_config

from training import checkpoints, convert, hugging_face, tensorflow_checkpoints
from training.options import ConvertOptions
from transforms.errors import UnusableInputError

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="no backend is used")


def values_of(model):
    """Random weights of a model, by name."""
    draw = np.random.default_rng(0)
    from training.model import classification_model, pretraining_model

    built = pretraining_model(model, next_sentence=model.model_type == "bert")
    values = {w.name: draw.standard_normal(w.shape).astype(np.float32) for w in built.weights}
    classifier = [w for w in classification_model(model, num_labels=3).weights if w.name.startswith("output_")]
    return values | {w.name: draw.standard_normal(w.shape).astype(np.float32) for w in classifier}


def assert_equal(one, other):
    assert set(one) == set(other)
    for name, value in one.items():
        assert value.dtype == other[name].dtype
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def test_tf1_to_ours_to_tf1_is_bit_equal(tmp_path, expected):
    ours, back = str(tmp_path / "weights.safetensors"), str(tmp_path / "back" / "model.ckpt-0")
    given = {"bert_config_file": str(GOLD / "bert_config.json")}
    assert convert.run(ConvertOptions(input=str(CHECKPOINT), output=ours, format="maskmill", **given)) == 0
    # A file of maskmill has its model's configuration, so none has to be given.
    assert convert.run(ConvertOptions(input=ours, output=back, format="tf1")) == 0
    first, second = tf.train.load_checkpoint(str(CHECKPOINT)), tf.train.load_checkpoint(back)
    assert dict(tf.train.list_variables(back)) == expected["variables"]
    for name in expected["variables"]:
        assert first.get_tensor(name).tobytes() == second.get_tensor(name).tobytes()
    assert tf.train.latest_checkpoint(str(tmp_path / "back")) == back
    assert json.loads((tmp_path / "back" / "bert_config.json").read_text())["hidden_size"] == 32


def test_optimizer_slots_in_a_tf1_checkpoint_are_left_behind(tmp_path):
    model = small_config()
    values = values_of(model)
    slots = {f"{n}/{s}": v for n, v in values.items() for s in ("adam_m", "adam_v", "LAMB", "LAMB_1")}
    tensorflow_checkpoints.write_tf1(
        str(tmp_path / "model.ckpt-28252"), values | slots | {"global_step": np.int64(28252)}
    )
    assert_equal(convert.read(str(tmp_path / "model.ckpt-28252"), model), values)
    assert_equal(convert.read(str(tmp_path), model), values)


def test_tf2_round_trip_keeps_the_encoder(tmp_path):
    model = small_config(num_hidden_layers=2)
    values = values_of(model)
    tensorflow_checkpoints.write_tf2(str(tmp_path / "bert_model.ckpt"), values, model)
    read = convert.read(str(tmp_path / "bert_model.ckpt"), model)
    assert_equal(read, {n: v for n, v in values.items() if n.startswith("bert/")})
    names = dict(tf.train.list_variables(str(tmp_path / "bert_model.ckpt")))
    kernel = "/layer_with_weights-4/_attention_layer/_query_dense/kernel/.ATTRIBUTES/VARIABLE_VALUE"
    assert [n for n in names if n.endswith(kernel)]


def test_tf2_checkpoints_of_todays_models_are_read(tmp_path):
    """In today's TensorFlow Models, the paths of BertEncoder's layers are names of attributes."""
    model = small_config()
    values = values_of(model)
    names, arrays = [], []
    for name, paths, shape in tensorflow_checkpoints.tf2_weights(model):
        names.append(f"encoder/{next(p for p in paths if 'layer_with_weights' not in p)}/.ATTRIBUTES/VARIABLE_VALUE")
        arrays.append(values[name].reshape(shape))
    prefix = str(tmp_path / "ckpt-1")
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=arrays)
    assert_equal(convert.read(prefix, model), {n: v for n, v in values.items() if n.startswith("bert/")})


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_hugging_face_round_trip(tmp_path, kind):
    other = {"model_type": "roberta", "hidden_act": "gelu_erf", "type_vocab_size": 1, "layer_norm_eps": 1e-5}
    model = small_config(**(other if kind == "roberta" else {}))
    values = values_of(model)
    hugging_face.write_directory(str(tmp_path), values, model)
    assert convert.find_config(str(tmp_path)) == model
    assert_equal(convert.read(str(tmp_path), model), values)


def test_older_hugging_face_names_are_read():
    model = small_config()
    values = values_of(model)
    arrays = hugging_face.to_hugging_face(values, model)
    bare = {
        n.removeprefix("bert.")
        .replace("LayerNorm.weight", "LayerNorm.gamma")
        .replace("LayerNorm.bias", "LayerNorm.beta"): a
        for n, a in arrays.items()
        if n.startswith("bert.")
    }
    assert_equal(
        hugging_face.from_hugging_face(bare, model), {n: v for n, v in values.items() if n.startswith("bert/")}
    )


def test_a_training_checkpoint_is_no_initial_one(tmp_path):
    model = small_config()
    made = checkpoints.Checkpoint(step=7, run={"model": model.to_google()}, arrays=values_of(model))
    path = checkpoints.write(str(tmp_path), made, keep=3)
    for given in (path, str(tmp_path)):
        with pytest.raises(UnusableInputError, match="training checkpoint of a maskmill run, at step 7"):
            convert.read(given, model)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "there is no such checkpoint"),
        ("empty", "there is no checkpoint in this directory"),
        ("broken.safetensors", "no safetensors file, or it is damaged"),
        ("missing.safetensors", "does not exist"),
        ("model.ckpt-1", "this TensorFlow checkpoint is damaged"),
        ("model.ckpt-2", "this TensorFlow checkpoint is damaged"),
    ],
)
def test_a_path_that_is_no_checkpoint_is_one_sentence(tmp_path, name, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    (tmp_path / "model.ckpt-1.index").write_bytes(b"no index")
    tensorflow_checkpoints.write_tf1(str(tmp_path / "model.ckpt-2"), values_of(small_config()))
    (tmp_path / "model.ckpt-2.data-00000-of-00001").write_bytes(b"")
    with pytest.raises(UnusableInputError, match=message):
        convert.read(str(tmp_path / name), small_config())


def test_another_models_checkpoint_is_refused():
    from training.model import pretraining_model

    values = values_of(small_config(hidden_size=32))
    with pytest.raises(UnusableInputError, match=r"has shape \[500, 32\] here and \[500, 16\] in the model"):
        pretraining_model(small_config()).load(values, where="model.ckpt")
    shallow = values_of(small_config())
    with pytest.raises(UnusableInputError, match=r"lacks bert/encoder/layer_1/.* of the encoder"):
        pretraining_model(small_config(num_hidden_layers=2)).load(shallow, where="model.ckpt")


def test_an_encoder_without_heads_leaves_them_as_they_are():
    from training.model import pretraining_model

    built = pretraining_model(small_config())
    encoder = {n: v for n, v in values_of(small_config()).items() if n.startswith("bert/")}
    missing = built.load(encoder, where="model.ckpt")
    assert {n.split("/")[0] for n in missing} == {"cls"}


def test_conversion_needs_a_configuration(tmp_path):
    with pytest.raises(UnusableInputError, match="give --bert_config_file"):
        convert.run(ConvertOptions(input=str(CHECKPOINT), output=str(tmp_path / "x"), format="tf1"))
