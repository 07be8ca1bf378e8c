"""Checkpoints of other programs, read and written; and `maskmill convert-checkpoint`.

Between formats the weights travel as a mapping from google-research/bert's variable names to arrays in its layout. What
else a checkpoint holds (optimizer slots, counters) is left behind.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import safetensors.numpy
import tensorflow as tf

from training import checkpoints, config, storage
from training.config import ROBERTA_POSITION_OFFSET, ModelConfig
from training.options import ConvertOptions
from transforms.errors import UnusableInputError
from transforms.storage import files

Values = dict[str, np.ndarray]
# Under which TF2's object checkpoints keep the value of a variable at the end of an object's path.
_TF2_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


def read(path: str, model: ModelConfig) -> Values:
    """Reads a checkpoint's weights, whatever kind it is.

    Args:
      path: a TensorFlow checkpoint's prefix (`model.ckpt-28252`), a safetensors file, or a directory that holds one.
      model: the configuration of its model.

    Raises:
      UnusableInputError: there is no checkpoint, or it is a training checkpoint of maskmill.
    """
    found = _find(path)
    if found.endswith(".safetensors"):
        arrays, metadata = checkpoints.read_safetensors(found)
        kind = metadata.get("format")
        if kind == checkpoints.TRAINING_FORMAT:
            raise UnusableInputError(
                f"{found}: this is a training checkpoint of a maskmill run, at step {metadata['step']}, and no "
                "initial one. To go on with that run, give its directory as --output_dir; to begin another run from "
                "its weights, convert it first: maskmill convert-checkpoint --format maskmill."
            )
        if kind == checkpoints.WEIGHTS_FORMAT:
            return arrays
        return from_hugging_face(arrays, model)
    try:
        reader = tf.compat.v1.train.NewCheckpointReader(found)
        names = list(reader.get_variable_to_shape_map())
        if any(n.endswith(_TF2_SUFFIX) for n in names):
            return _from_tf2(reader, names, model, found)
        # The reference's checkpoints hold its optimizer's slots too, under each weight's name.
        known = {ours for ours, _, _ in hugging_face_names(model)}
        values = {n: reader.get_tensor(n) for n in names if n in known}
    except (tf.errors.OpError, IndexError, RuntimeError) as error:
        # TensorFlow's reader gives Python's own exceptions for some of its errors.
        text = getattr(error, "message", error)
        raise UnusableInputError(f"{found}: this TensorFlow checkpoint is damaged ({text}).") from None
    if not values:
        raise UnusableInputError(f"{found}: this checkpoint has no variables of BERT's ({min(known)} and so on).")
    return values


def read_any(path: str, model: ModelConfig) -> tuple[int, Values]:
    """As `read`, but a training checkpoint of ours will do too. Returns its step (0 for others) and the weights."""
    found = _find(path)
    if found.endswith(".safetensors"):
        arrays, metadata = checkpoints.read_safetensors(found)
        if metadata.get("format") == checkpoints.TRAINING_FORMAT:
            moments = ("/m", "/v")
            return int(metadata["step"]), {n: a for n, a in arrays.items() if not n.endswith(moments)}
    return 0, read(path, model)


def _find(path: str) -> str:
    """The checkpoint that a path means: a TensorFlow prefix or a safetensors file."""
    path = os.path.expanduser(path.rstrip("/"))
    if path.endswith(".safetensors"):
        return path
    for suffix in (".index", ".meta"):
        path = path.removesuffix(suffix)
    if storage.exists(f"{path}.index"):
        return path
    if tf.io.gfile.isdir(path):
        newest = checkpoints.list_checkpoints(path)
        if newest:
            return newest[-1]
        single = storage.matching(files.join(path, "*.safetensors"))
        if len(single) == 1:
            return single[0]
        latest = tf.train.latest_checkpoint(path)
        if latest is not None:
            return str(latest)
        raise UnusableInputError(f"{path}: there is no checkpoint in this directory.")
    raise UnusableInputError(f"{path}: there is no such checkpoint; name a prefix, a safetensors file or a directory.")


def find_config(path: str) -> ModelConfig | None:
    """The configuration that a checkpoint brings: in our own files' metadata, or as a JSON file beside it."""
    found = _find(path)
    if found.endswith(".safetensors"):
        _, metadata = checkpoints.read_safetensors(found)
        if "run" in metadata:
            return ModelConfig(**json.loads(metadata["run"])["model"])
        if "config" in metadata:
            return config.from_json(metadata["config"], where=found)
    for name in ("config.json", "bert_config.json"):
        beside = files.join(files.parent(found), name)
        if storage.exists(beside):
            return config.from_json(storage.read_bytes(beside), where=beside)
    return None


# Hugging Face


def hugging_face_names(model: ModelConfig) -> Iterator[tuple[str, str, bool]]:
    """(our name, Hugging Face's name, whether it is stored transposed) of each weight of the model and its heads."""
    ours = theirs = model.model_type
    yield f"{ours}/embeddings/word_embeddings", f"{theirs}.embeddings.word_embeddings.weight", False
    yield f"{ours}/embeddings/position_embeddings", f"{theirs}.embeddings.position_embeddings.weight", False
    if ours == "bert":
        yield f"{ours}/embeddings/token_type_embeddings", f"{theirs}.embeddings.token_type_embeddings.weight", False
    layers: list[tuple[str, str]] = [(f"{ours}/embeddings/LayerNorm", f"{theirs}.embeddings.LayerNorm")]
    for i in range(model.num_hidden_layers):
        for part in (
            "attention/self/query", "attention/self/key", "attention/self/value", "attention/output/dense",
            "attention/output/LayerNorm", "intermediate/dense", "output/dense", "output/LayerNorm",
        ):  # fmt: skip
            layers.append((f"{ours}/encoder/layer_{i}/{part}", f"{theirs}.encoder.layer.{i}.{part.replace('/', '.')}"))
    layers.append((f"{ours}/pooler/dense", f"{theirs}.pooler.dense"))
    if ours == "bert":
        layers += [
            ("cls/predictions/transform/dense", "cls.predictions.transform.dense"),
            ("cls/predictions/transform/LayerNorm", "cls.predictions.transform.LayerNorm"),
        ]
        yield "cls/predictions/output_bias", "cls.predictions.bias", False
        yield "cls/seq_relationship/output_weights", "cls.seq_relationship.weight", False
        yield "cls/seq_relationship/output_bias", "cls.seq_relationship.bias", False
    else:
        layers += [
            ("cls/predictions/transform/dense", "lm_head.dense"),
            ("cls/predictions/transform/LayerNorm", "lm_head.layer_norm"),
        ]
        yield "cls/predictions/output_bias", "lm_head.bias", False
    yield "output_weights", "classifier.weight", False
    yield "output_bias", "classifier.bias", False
    for our, their in layers:
        if our.endswith("LayerNorm"):
            yield f"{our}/gamma", f"{their}.weight", False
            yield f"{our}/beta", f"{their}.bias", False
        else:
            yield f"{our}/kernel", f"{their}.weight", True
            yield f"{our}/bias", f"{their}.bias", False


def from_hugging_face(arrays: Mapping[str, np.ndarray], model: ModelConfig) -> Values:
    """Hugging Face's tensors (BertForPreTraining, BertModel, RobertaForMaskedLM, …) → ours."""
    # Older files call a layer norm's parameters gamma and beta, and a bare encoder has no prefix.
    renamed = {
        n.replace(".LayerNorm.gamma", ".LayerNorm.weight").replace(".LayerNorm.beta", ".LayerNorm.bias"): a
        for n, a in arrays.items()
    }
    if any(n.startswith("embeddings.") for n in renamed):
        renamed = {f"{model.model_type}.{n}": a for n, a in renamed.items()}
    values = {
        ours: np.ascontiguousarray(renamed[theirs].T) if transposed else renamed[theirs]
        for ours, theirs, transposed in hugging_face_names(model)
        if theirs in renamed
    }
    if model.model_type == "roberta" and "roberta/embeddings/position_embeddings" in values:
        positions = values["roberta/embeddings/position_embeddings"][ROBERTA_POSITION_OFFSET:]
        # All tokens are of the one type: its row goes into every position.
        kind = renamed.get("roberta.embeddings.token_type_embeddings.weight")
        values["roberta/embeddings/position_embeddings"] = positions if kind is None else positions + kind[0]
    return values


def to_hugging_face(values: Mapping[str, np.ndarray], model: ModelConfig) -> Values:
    """Our weights → Hugging Face's tensors (BertForPreTraining, RobertaForMaskedLM); the decoder is the embeddings."""
    arrays = {
        theirs: np.ascontiguousarray(values[ours].T) if transposed else values[ours]
        for ours, theirs, transposed in hugging_face_names(model)
        if ours in values
    }
    if model.model_type == "roberta":
        name = "roberta.embeddings.position_embeddings.weight"
        padding = np.zeros((ROBERTA_POSITION_OFFSET, model.hidden_size), np.float32)
        arrays[name] = np.concatenate([padding, arrays[name]])
        arrays["roberta.embeddings.token_type_embeddings.weight"] = np.zeros((1, model.hidden_size), np.float32)
    return arrays


def write_hugging_face(directory: str, values: Mapping[str, np.ndarray], model: ModelConfig) -> None:
    """Writes `model.safetensors` and `config.json`, as `from_pretrained` reads them."""
    packed = safetensors.numpy.save(to_hugging_face(values, model), {"format": "pt"})
    storage.write_bytes(files.join(directory, "model.safetensors"), packed)
    description = json.dumps(model.to_hugging_face(), indent=2, sort_keys=True) + "\n"
    storage.write_bytes(files.join(directory, "config.json"), description.encode())


# TensorFlow 1


def write_tf1(prefix: str, values: Mapping[str, np.ndarray]) -> None:
    """Writes what TF1's Saver does (V2 format): `prefix.index`, `prefix.data-00000-of-00001`, `checkpoint`."""
    tf.io.gfile.makedirs(files.parent(prefix))
    names = sorted(values)
    tf.raw_ops.SaveV2(
        prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=[values[n] for n in names]
    )
    name = files.base_name(prefix)
    state = f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n'
    storage.write_bytes(files.join(files.parent(prefix), "checkpoint"), state.encode())


# TensorFlow 2: tensorflow/models, official/nlp/modeling/networks


def _tf2_paths(model: ModelConfig) -> Iterator[tuple[str, tuple[str, ...], tuple[int, ...]]]:
    """(our name, the encoder's object paths that may lead to it, Keras's shape) of each weight of a BertEncoder.

    The encoder of 2020 was a functional model: layer_with_weights-N counts its layers. Today's has attributes.
    """
    width, heads = model.hidden_size, model.num_attention_heads
    size, layers = width // heads, model.num_hidden_layers
    embeddings = {
        "word_embeddings": (0, "_embedding_layer", "embeddings", model.vocab_size),
        "position_embeddings": (1, "_position_embedding_layer", "embeddings", model.max_position_embeddings),
        "token_type_embeddings": (2, "_type_embedding_layer", "embeddings", model.type_vocab_size),
    }
    for name, (number, attribute, leaf, rows) in embeddings.items():
        old, new = f"layer_with_weights-{number}/{leaf}", f"{attribute}/{leaf}"
        yield f"bert/embeddings/{name}", (old, new), (rows, width)
    for leaf in ("gamma", "beta"):
        paths = (f"layer_with_weights-3/{leaf}", f"_embedding_norm_layer/{leaf}")
        yield f"bert/embeddings/LayerNorm/{leaf}", paths, (width,)
    for i in range(layers):
        roots = (f"layer_with_weights-{i + 4}", f"_transformer_layers/{i}")
        parts: list[tuple[str, tuple[str, ...], dict[str, tuple[int, ...]]]] = [
            (
                f"attention/self/{which}",
                (f"_attention_layer/_{which}_dense",),
                {"kernel": (width, heads, size), "bias": (heads, size)},
            )
            for which in ("query", "key", "value")
        ]
        norm: dict[str, tuple[int, ...]] = {"gamma": (width,), "beta": (width,)}
        inner = model.intermediate_size
        out = ("_attention_layer/_output_dense", "_attention_output_dense")
        parts.append(("attention/output/dense", out, {"kernel": (heads, size, width), "bias": (width,)}))
        parts.append(("attention/output/LayerNorm", ("_attention_layer_norm",), norm))
        parts.append(("intermediate/dense", ("_intermediate_dense",), {"kernel": (width, inner), "bias": (inner,)}))
        parts.append(("output/dense", ("_output_dense",), {"kernel": (inner, width), "bias": (width,)}))
        parts.append(("output/LayerNorm", ("_output_layer_norm",), norm))
        for part, attributes, leaves in parts:
            for leaf, shape in leaves.items():
                ways = tuple(f"{root}/{a}/{leaf}" for root in roots for a in attributes)
                yield f"bert/encoder/layer_{i}/{part}/{leaf}", ways, shape
    for leaf, shape in (("kernel", (width, width)), ("bias", (width,))):
        paths = (f"layer_with_weights-{layers + 4}/{leaf}", f"_pooler_layer/{leaf}")
        yield f"bert/pooler/dense/{leaf}", paths, shape


def _reference_shape(shape: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Keras's shape of an encoder's weight → the reference's, which joins heads and size."""
    if "/attention/self/" in name:
        return (*shape[:-2], shape[-2] * shape[-1])
    return (shape[0] * shape[1], shape[2]) if len(shape) == 3 else shape


def _from_tf2(reader: Any, names: list[str], model: ModelConfig, path: str) -> Values:
    # The encoder is the checkpoint's `model` or `encoder`; a pre-trainer's checkpoint has more beside it.
    held = {n.removesuffix(_TF2_SUFFIX): n for n in names if n.endswith(_TF2_SUFFIX)}
    values = {}
    for name, paths, shape in _tf2_paths(model):
        found = [held[f"{root}{p}"] for root in ("encoder/", "model/", "") for p in paths if f"{root}{p}" in held]
        if not found:
            raise UnusableInputError(
                f"{path}: this TF2 checkpoint has no {paths[0]}; is it of a BERT encoder of this size?"
            )
        array = reader.get_tensor(found[0])
        if array.size != int(np.prod(shape)):
            raise UnusableInputError(f"{path}: {found[0]} has shape {list(array.shape)}, {list(shape)} is needed.")
        values[name] = array.reshape(_reference_shape(shape, name))
    return values


def write_tf2(prefix: str, values: Mapping[str, np.ndarray], model: ModelConfig) -> None:
    """Writes an encoder checkpoint as TensorFlow Models' converter does: `tf.train.Checkpoint(encoder=…, model=…)`.

    It holds the encoder and pooler, no heads. Its object graph knows each weight by the old and the new paths.

    Raises:
      UnusableInputError: the model is no BERT encoder.
    """
    if model.model_type != "bert":
        raise UnusableInputError("TensorFlow Models has no encoder checkpoints for RoBERTa; write another --format.")
    root = tf.__internal__.tracking.AutoTrackable()
    nodes: dict[str, Any] = {"": root}
    for name, paths, shape in _tf2_paths(model):
        variable = tf.Variable(values[name].reshape(shape))
        owner: Any = None
        for path in paths:
            owner = _attach(nodes, path.rsplit("/", 1)[0], owner)
        setattr(owner, paths[0].rsplit("/", 1)[1], variable)
    tf.train.Checkpoint(encoder=root, model=root).write(prefix)


def _attach(nodes: dict[str, Any], path: str, node: Any) -> Any:
    """Makes the objects along a path, ending in `node` where it is given; returns the last."""
    parent, name = path.rpartition("/")[::2]
    if path not in nodes:
        holder = _attach(nodes, parent, None)
        nodes[path] = node if node is not None else tf.__internal__.tracking.AutoTrackable()
        setattr(holder, name, nodes[path])
    return nodes[path]


# The command


def run(options: ConvertOptions) -> int:
    """Converts a checkpoint; returns 0.

    Raises:
      UnusableInputError: the input or its configuration is missing or unusable.
      RunFailedError: the output cannot be written.
    """
    if options.bert_config_file is not None:
        model = config.from_json(storage.read_bytes(options.bert_config_file), where=options.bert_config_file)
    else:
        found = find_config(options.input)
        if found is None:
            raise UnusableInputError(f"{options.input}: no configuration lies beside it; give --bert_config_file.")
        model = found
    _, values = read_any(options.input, model)
    if options.format == "maskmill" and not options.output.endswith(".safetensors"):
        raise UnusableInputError(f"--output {options.output}: maskmill's weights are a file named *.safetensors.")
    writers: dict[str, Callable[[], None]] = {
        "tf1": lambda: write_tf1(options.output, values),
        "tf2": lambda: write_tf2(options.output, values, model),
        "huggingface": lambda: write_hugging_face(options.output, values, model),
        "maskmill": lambda: checkpoints.write_weights(options.output, values, model),
    }
    writers[options.format]()
    if options.format in ("tf1", "tf2"):
        beside = files.join(files.parent(options.output), "bert_config.json")
        storage.write_bytes(beside, (json.dumps(model.to_google(), indent=2) + "\n").encode())
    print(f"{options.output}: {len(values)} weights of {options.input}, written as {options.format}.")
    return 0
