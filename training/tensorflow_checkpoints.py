"""TensorFlow's checkpoints: TF1's of google-research/bert and MLPerf, and TF2's encoders of TensorFlow Models.

A checkpoint is named by its prefix: `model.ckpt-28252` means `model.ckpt-28252.index` and
`model.ckpt-28252.data-00000-of-00001`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from training import hugging_face, storage
from training.checkpoints import Values
from training.config import ModelConfig

# A TF2 checkpoint stores a variable under its object's path and this suffix.
_TF2_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
# Where TensorFlow Models' checkpoints keep the encoder: `Checkpoint(encoder=…)`, `Checkpoint(model=…)`, or bare.
_TF2_ROOTS = ("encoder/", "model/", "")

Shape = tuple[int, ...]


def read(prefix: str, model: ModelConfig) -> Values:
    """Reads the weights of a TF1 checkpoint or of a TF2 encoder checkpoint.

    Everything else in it (the optimizer's slots, counters) is left out.

    Raises:
      UnusableInputError: the checkpoint is damaged, or it is not of this model.
    """
    try:
        reader = tf.compat.v1.train.NewCheckpointReader(prefix)
        stored_names = list(reader.get_variable_to_shape_map())
        if any(n.endswith(_TF2_SUFFIX) for n in stored_names):
            return _read_tf2(reader, stored_names, model, prefix)
        weight_names = {ours for ours, _, _ in hugging_face.weight_names(model)}
        values = {n: reader.get_tensor(n) for n in stored_names if n in weight_names}
    except (tf.errors.OpError, IndexError, RuntimeError) as error:
        # TensorFlow's reader raises Python's own exceptions for some of its errors.
        reason = getattr(error, "message", error)
        raise UnusableInputError(f"{prefix}: this TensorFlow checkpoint is damaged ({reason}).") from None
    if not values:
        raise UnusableInputError(
            f"{prefix}: this checkpoint has none of BERT's variables ({min(weight_names)} and so on)."
        )
    return values


def write_tf1(prefix: str, values: Mapping[str, np.ndarray]) -> None:
    """Writes what TF1's Saver writes (format V2): `prefix.index`, `prefix.data-00000-of-00001` and `checkpoint`."""
    tf.io.gfile.makedirs(files.parent(prefix))
    names = sorted(values)
    tf.raw_ops.SaveV2(
        prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=[values[n] for n in names]
    )
    name = files.base_name(prefix)
    state = f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n'
    storage.write_bytes(files.join(files.parent(prefix), "checkpoint"), state.encode())


# TensorFlow 2: tensorflow/models, official/nlp/modeling/networks


class Tf2Weight(NamedTuple):
    """A weight of TensorFlow Models' BertEncoder.

    `name` is ours, `paths` are the object paths below the encoder that may lead to it, and `shape` is Keras's. The
    encoder of 2020 was a functional model, whose layers are counted (layer_with_weights-N); today's has attributes.
    """

    name: str
    paths: tuple[str, ...]
    shape: Shape


def tf2_weights(model: ModelConfig) -> Iterator[Tf2Weight]:
    """The weights of a BertEncoder of these sizes, with its pooler."""
    width, layers = model.hidden_size, model.num_hidden_layers
    embeddings = {
        "word_embeddings": ("_embedding_layer", model.vocab_size),
        "position_embeddings": ("_position_embedding_layer", model.max_position_embeddings),
        "token_type_embeddings": ("_type_embedding_layer", model.type_vocab_size),
    }
    for number, (name, (attribute, rows)) in enumerate(embeddings.items()):
        paths = (f"layer_with_weights-{number}/embeddings", f"{attribute}/embeddings")
        yield Tf2Weight(f"bert/embeddings/{name}", paths, (rows, width))
    number = len(embeddings)
    for leaf in ("gamma", "beta"):
        paths = (f"layer_with_weights-{number}/{leaf}", f"_embedding_norm_layer/{leaf}")
        yield Tf2Weight(f"bert/embeddings/LayerNorm/{leaf}", paths, (width,))
    for i in range(layers):
        number += 1
        roots = (f"layer_with_weights-{number}", f"_transformer_layers/{i}")
        for part, attributes, leaves in _tf2_layer(model):
            for leaf, shape in leaves.items():
                ways = tuple(f"{root}/{a}/{leaf}" for root in roots for a in attributes)
                yield Tf2Weight(f"bert/encoder/layer_{i}/{part}/{leaf}", ways, shape)
    number += 1
    for leaf, shape in (("kernel", (width, width)), ("bias", (width,))):
        paths = (f"layer_with_weights-{number}/{leaf}", f"_pooler_layer/{leaf}")
        yield Tf2Weight(f"bert/pooler/dense/{leaf}", paths, shape)


def _tf2_layer(model: ModelConfig) -> Iterator[tuple[str, tuple[str, ...], dict[str, Shape]]]:
    """(our name, the attributes that may lead to it, the shapes by weight) of each part of a transformer layer."""
    width, heads, inner = model.hidden_size, model.num_attention_heads, model.intermediate_size
    size = width // heads
    norm: dict[str, Shape] = {"gamma": (width,), "beta": (width,)}
    for which in ("query", "key", "value"):
        projection: dict[str, Shape] = {"kernel": (width, heads, size), "bias": (heads, size)}
        yield f"attention/self/{which}", (f"_attention_layer/_{which}_dense",), projection
    output = ("_attention_layer/_output_dense", "_attention_output_dense")
    yield "attention/output/dense", output, {"kernel": (heads, size, width), "bias": (width,)}
    yield "attention/output/LayerNorm", ("_attention_layer_norm",), norm
    yield "intermediate/dense", ("_intermediate_dense",), {"kernel": (width, inner), "bias": (inner,)}
    yield "output/dense", ("_output_dense",), {"kernel": (inner, width), "bias": (width,)}
    yield "output/LayerNorm", ("_output_layer_norm",), norm


def _reference_shape(shape: Shape, name: str) -> Shape:
    """Keras's shape of an encoder's weight → the reference's, which has one axis for heads and their size."""
    if "/attention/self/" in name:
        return (*shape[:-2], shape[-2] * shape[-1])
    return (shape[0] * shape[1], shape[2]) if len(shape) == 3 else shape


def _read_tf2(reader: Any, stored_names: Sequence[str], model: ModelConfig, prefix: str) -> Values:
    """The weights of an encoder. A pre-trainer's checkpoint has more beside it, which is left out."""
    stored = {n.removesuffix(_TF2_SUFFIX): n for n in stored_names if n.endswith(_TF2_SUFFIX)}
    values = {}
    for name, paths, shape in tf2_weights(model):
        candidates = (f"{root}{path}" for root in _TF2_ROOTS for path in paths)
        stored_name = next((stored[c] for c in candidates if c in stored), None)
        if stored_name is None:
            raise UnusableInputError(
                f"{prefix}: this TF2 checkpoint has no {paths[0]}; it must be of a BERT encoder of this size."
            )
        array = reader.get_tensor(stored_name)
        if array.size != int(np.prod(shape)):
            raise UnusableInputError(
                f"{prefix}: {stored_name} has shape {list(array.shape)}, but the configuration needs {list(shape)}."
            )
        values[name] = array.reshape(_reference_shape(shape, name))
    return values


def write_tf2(prefix: str, values: Mapping[str, np.ndarray], model: ModelConfig) -> None:
    """Writes an encoder checkpoint as TensorFlow Models' converter does: `tf.train.Checkpoint(encoder=…, model=…)`.

    It has the encoder and the pooler, but no heads. Its object graph has both the old and the new path of each weight.

    Raises:
      UnusableInputError: the model is no BERT encoder.
    """
    if model.model_type != "bert":
        raise UnusableInputError("TensorFlow Models has no encoder checkpoints for RoBERTa; choose another --format.")
    root = tf.Module()
    objects: dict[str, Any] = {"": root}
    for name, paths, shape in tf2_weights(model):
        variable = tf.Variable(values[name].reshape(shape))
        owner: Any = None
        for path in paths:
            owner = _attach(objects, path.rpartition("/")[0], owner)
        setattr(owner, paths[0].rpartition("/")[2], variable)
    tf.train.Checkpoint(encoder=root, model=root).write(prefix)


def _attach(objects: dict[str, Any], path: str, last: Any) -> Any:
    """Makes the objects along a path that are not in `objects` yet, and returns the last.

    The last is `last` where that is given, so that two paths lead to one object.
    """
    if path not in objects:
        parent, _, name = path.rpartition("/")
        holder = _attach(objects, parent, None)
        objects[path] = last if last is not None else tf.Module()
        setattr(holder, name, objects[path])
    return objects[path]
