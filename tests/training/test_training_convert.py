"""Checkpoints of other programs: what is written is read back the same. (In test_torch.py Hugging Face reads them.)"""

import dataclasses
import json
import sys

import numpy as np
import pytest
import pytorch_writer
import safetensors.numpy
import tensorflow as tf
from training_helpers import BACKEND, CHECKPOINT, GOLD, ROBERTA, small_config

from maskmill.errors import UnusableInputError
from maskmill.inspection.checkpoint_headers import read_checkpoint_header
from training import checkpoints, convert, hugging_face, tensorflow_checkpoints
from training.options import ConvertOptions

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
    for weight in tensorflow_checkpoints.tf2_weights(model):
        path = next(path for path in weight.paths if "layer_with_weights" not in path)
        names.append(f"encoder/{path}/.ATTRIBUTES/VARIABLE_VALUE")
        arrays.append(values[weight.name].reshape(weight.keras_shape(model)))
    prefix = str(tmp_path / "ckpt-1")
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=arrays)
    assert_equal(convert.read(prefix, model), {n: v for n, v in values.items() if n.startswith("bert/")})


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_hugging_face_round_trip(tmp_path, kind):
    model = small_config(**(ROBERTA if kind == "roberta" else {}))
    values = values_of(model)
    hugging_face.write_directory(str(tmp_path), values, model, tokenizer={})
    assert convert.find_config(str(tmp_path)) == model
    assert_equal(convert.read(str(tmp_path), model), values)


@pytest.mark.parametrize(
    ("kind", "weights", "expected"),
    [
        ("bert", ("cls/", "output_"), "BertForSequenceClassification"),
        ("bert", ("cls/",), "BertForPreTraining"),
        ("bert", ("cls/predictions/",), "BertForMaskedLM"),
        ("bert", (), "BertModel"),
        ("roberta", ("output_",), "RobertaForSequenceClassification"),
        ("roberta", ("cls/",), "RobertaForMaskedLM"),
    ],
)
def test_an_export_names_the_class_that_has_its_heads(kind, weights, expected):
    model = small_config(model_type=kind)
    values = {n: a for n, a in values_of(model).items() if n.startswith((f"{kind}/", *weights))}
    assert hugging_face.architecture(values, model) == expected


def classifier_values(model):
    from training.model import classification_model

    draw = np.random.default_rng(0)
    weights = classification_model(model, num_labels=3).weights
    return {w.name: draw.standard_normal(w.shape).astype(np.float32) for w in weights}


def test_a_classifier_exports_with_its_labels(tmp_path):
    model = small_config()
    ours, vocabulary = str(tmp_path / "ours.safetensors"), tmp_path / "words.txt"
    checkpoints.write_weights(ours, classifier_values(model), model)
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "Bad"]) + "\n")
    given = {"input": ours, "format": "huggingface", "vocab_file": str(vocabulary)}
    with pytest.raises(UnusableInputError, match="--labels names 2 labels, but this model has 3 labels"):
        convert.run(ConvertOptions(output=str(tmp_path / "no"), labels=("no", "yes"), **given))
    assert not (tmp_path / "no").exists()
    convert.run(ConvertOptions(output=str(tmp_path / "named"), labels=("no", "yes", "maybe"), **given))
    written = json.loads((tmp_path / "named/config.json").read_text())
    assert written["architectures"] == ["BertForSequenceClassification"]
    assert written["id2label"] == {"0": "no", "1": "yes", "2": "maybe"}
    assert written["label2id"] == {"no": 0, "yes": 1, "maybe": 2}
    assert json.loads((tmp_path / "named/tokenizer_config.json").read_text())["do_lower_case"] is False
    tensors = safetensors.numpy.load_file(tmp_path / "named/model.safetensors")
    assert tensors["classifier.weight"].shape == (3, 16)
    assert_equal(convert.read(str(tmp_path / "named"), model), classifier_values(model))
    # An export of the export keeps the labels and the tokenizer.
    again = tmp_path / "again"
    convert.run(ConvertOptions(input=str(tmp_path / "named"), output=str(again), format="huggingface"))
    assert {p.name: p.read_bytes() for p in again.iterdir()} == {
        p.name: p.read_bytes() for p in (tmp_path / "named").iterdir()
    }


def test_a_roberta_classifier_has_hugging_faces_head(tmp_path):
    model = small_config(**ROBERTA)
    values = classifier_values(model)
    tensors = hugging_face.to_hugging_face(values, model)
    assert {n for n in tensors if n.startswith("classifier")} == {
        f"classifier.{part}.{leaf}" for part in ("dense", "out_proj") for leaf in ("weight", "bias")
    }
    assert not [n for n in tensors if "pooler" in n]
    assert_equal(hugging_face.from_hugging_face(tensors, model), values)


def test_robertas_positions_begin_behind_the_tokenizers_padding(tmp_path):
    model = small_config(**ROBERTA)
    values = values_of(model)
    tokenizer = {"model": {"type": "BPE", "vocab": {"[PAD]": 0, "[CLS]": 3, "[SEP]": 4, "[MASK]": 5}, "merges": []}}
    files = {"tokenizer.json": json.dumps(tokenizer).encode()}
    hugging_face.write_directory(str(tmp_path / "model"), values, model, tokenizer=files)
    written = json.loads((tmp_path / "model/config.json").read_text())
    assert [written[f"{name}_token_id"] for name in ("pad", "bos", "eos")] == [0, 3, 4]
    assert written["max_position_embeddings"] == 65
    tensors = safetensors.numpy.load_file(tmp_path / "model/model.safetensors")
    assert tensors["roberta.embeddings.position_embeddings.weight"].shape == (65, 16)
    again = convert.find_config(str(tmp_path / "model"))
    assert again == dataclasses.replace(model, position_offset=1)
    assert_equal(convert.read(str(tmp_path / "model"), again), values)


# A model's weights in several files, and PyTorch's files


@pytest.mark.parametrize("form", ["safetensors", "pytorch"])
@pytest.mark.parametrize("count", [1, 2])
def test_hugging_faces_files_are_read(tmp_path, monkeypatch, form, count):
    model = small_config()
    values = values_of(model)
    tensors = hugging_face.to_hugging_face(values, model)
    for name, module in pytorch_writer.fake_torch().items():
        monkeypatch.setitem(sys.modules, name, module)

    def write(path, part):
        if form == "safetensors":
            safetensors.numpy.save_file(part, path)
        else:
            pytorch_writer.write_zip(path, *pytorch_writer.state_dict(part))

    stem, suffix = ("model", ".safetensors") if form == "safetensors" else ("pytorch_model", ".bin")
    if count == 1:
        write(tmp_path / f"{stem}{suffix}", tensors)
    else:
        weight_map = {}
        for shard, names in (("one", sorted(tensors)[::2]), ("two", sorted(tensors)[1::2])):
            write(tmp_path / f"{stem}-{shard}{suffix}", {n: tensors[n] for n in names})
            weight_map |= dict.fromkeys(names, f"{stem}-{shard}{suffix}")
        (tmp_path / f"{stem}{suffix}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    (tmp_path / "config.json").write_text(json.dumps(model.to_hugging_face()))
    assert convert.find_config(str(tmp_path)) == model
    assert_equal(convert.read(str(tmp_path), model), values)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "this is no list of a model's files"),
        ("[]", "this is no list of a model's files"),
        ('{"weight_map": {"a": {}}}', "this is no list of a model's files"),
        ('{"weight_map": {"a": "../../secret.safetensors"}}', "'../../secret.safetensors', which is no weights file"),
        ('{"weight_map": {"a": "/etc/passwd"}}', "'/etc/passwd', which is no weights file"),
        ('{"weight_map": {"a": "gone.safetensors"}}', r"gone\.safetensors: this checkpoint does not exist"),
        ('{"weight_map": {"b": "here.safetensors"}}', r"here\.safetensors lacks b; copy the model's files again"),
    ],
)
def test_a_bad_list_of_files_is_one_sentence(tmp_path, content, message):
    safetensors.numpy.save_file({"a": np.zeros(1)}, tmp_path / "here.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(content)
    with pytest.raises(UnusableInputError, match=message):
        convert.read(str(tmp_path), small_config())


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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "there is no such checkpoint"),
        ("file/below", "there is no such checkpoint"),
        ("loop", r"cannot be read \(Too many levels"),
        ("empty", "there is no checkpoint in this directory"),
        ("text", "this file is no checkpoint; name a TensorFlow checkpoint's prefix"),
        ("several", "there are several checkpoints in this directory; name one of them"),
        ("model.ckpt-3.data-00000-of-00001", r"model\.ckpt-3\.index is missing, so this TensorFlow checkpoint is not"),
        ("missing.safetensors", "there is no such checkpoint"),
        ("model.ckpt-1", "this TensorFlow checkpoint is damaged"),
        ("model.ckpt-2", "this TensorFlow checkpoint is damaged"),
    ],
)
def test_a_path_that_is_no_checkpoint_is_one_sentence(tmp_path, name, message):
    """The mistakes table has further ones."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "text").write_text("Anarchism is a political philosophy.\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "several").mkdir()
    for one in ("a", "b"):
        safetensors.numpy.save_file({}, tmp_path / f"several/{one}.safetensors")
    (tmp_path / "model.ckpt-3.data-00000-of-00001").write_bytes(b"")
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


def test_a_conversion_with_another_models_configuration_is_refused(tmp_path):
    ours = str(tmp_path / "ours.safetensors")
    checkpoints.write_weights(ours, values_of(small_config()), small_config())
    for changes, message in (
        ({"intermediate_size": 64}, r"/intermediate/dense/kernel has shape \[16, 32\] here, .* needs \[16, 64\]"),
        ({"vocab_size": 400}, r"word_embeddings has shape \[500, 16\] here, but the configuration needs \[400, 16\]"),
        ({"num_hidden_layers": 2}, "this checkpoint lacks bert/encoder/layer_1/"),
    ):
        (tmp_path / "other.json").write_text(json.dumps(small_config(**changes).to_google()))
        chosen = ConvertOptions(
            input=ours, output=str(tmp_path / "x"), format="tf1", bert_config_file=str(tmp_path / "other.json")
        )
        with pytest.raises(UnusableInputError, match=message):
            convert.run(chosen)


def test_inspect_reads_a_checkpoint_by_tensorflow(tmp_path):
    directory = GOLD / "tf1_ckpt"
    header = read_checkpoint_header(directory)
    assert (header.format, header.path, len(header.arrays)) == ("TensorFlow", str(directory / "model.ckpt-0"), 46)
    shapes = {array.name: array.shape for array in header.arrays}
    assert shapes["bert/embeddings/word_embeddings"] == (30522, 32)
    assert {array.dtype for array in header.arrays} == {"float32"}
    for name in ("model.ckpt-0", "model.ckpt-0.index", "model.ckpt-0.data-00000-of-00001"):
        assert read_checkpoint_header(directory / name) == header
    (tmp_path / "model.ckpt-0.index").write_bytes((directory / "model.ckpt-0.index").read_bytes()[:-9])
    with pytest.raises(UnusableInputError, match="damaged, or is not one"):
        read_checkpoint_header(tmp_path)
