"""TensorFlow's checkpoints: TF1's of google-research/bert and MLPerf, and TF2's encoders of TensorFlow Models.

A checkpoint is named by its prefix: `model.ckpt-28252` means `model.ckpt-28252.index` and
`model.ckpt-28252.data-00000-of-00001`.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import files
from training import storage, weights
from training.checkpoints import Values
from training.config import ModelConfig
from training.devices import import_tensorflow

# The file beside TF1's checkpoints that names the newest of them.
_STATE = "checkpoint"
_INDEX = ".index"
# A TF2 checkpoint stores a variable under its object's path and this suffix.
_TF2_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
# The encoder's path in TensorFlow Models' checkpoints: `Checkpoint(encoder=…)`, `Checkpoint(model=…)`, or bare.
_TF2_ROOTS = ("encoder/", "model/", "")

Shape = tuple[int, ...]


def read(prefix: str, model: ModelConfig) -> Values:
    """Read the weights of a TF1 checkpoint or of a TF2 encoder checkpoint.

    The rest of it (the optimizer's slots, counters) is dropped.

    Raises:
      UnusableInputError: the checkpoint is damaged, or it is not of this model.
    """
    tf = import_tensorflow("This checkpoint")
    weight_names = {weight.ours for weight in weights.named_weights(model)}
    paths = files.list_directory(files.parent(prefix), f"{files.base_name(prefix)}.*")
    try:
        with storage.local_copies(paths) as copies:
            index = copies[paths.index(f"{prefix}{_INDEX}")]
            reader = tf.compat.v1.train.NewCheckpointReader(index.removesuffix(_INDEX))
            stored_names = list(reader.get_variable_to_shape_map())
            if any(n.endswith(_TF2_SUFFIX) for n in stored_names):
                return _read_tf2(reader, stored_names, model, prefix)
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
    """Write the files of TF1's Saver (format V2): `prefix.index`, `prefix.data-00000-of-00001` and `checkpoint`."""
    names = sorted(values)
    with _written(prefix) as (tf, here):
        tf.raw_ops.SaveV2(
            prefix=here, tensor_names=names, shape_and_slices=[""] * len(names), tensors=[values[n] for n in names]
        )
    name = files.base_name(prefix)
    state = f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n'
    files.write_bytes(files.join(files.parent(prefix), _STATE), state.encode())


def latest(directory: str) -> str | None:
    """Return the prefix of a directory's newest checkpoint from the record of TensorFlow's Saver; None without one."""
    state = files.read_if_there(files.join(directory, _STATE))
    named = None if state is None else re.search(r'^model_checkpoint_path: "(.+)"$', state.decode(), re.MULTILINE)
    if named is None:
        return None
    # It is relative to the directory, or absolute.
    whole = named[1].startswith("/") or not files.is_local(named[1])
    prefix = named[1] if whole else files.join(directory, named[1])
    return prefix if files.exists(f"{prefix}{_INDEX}") else None


@contextlib.contextmanager
def _written(prefix: str) -> Iterator[tuple[Any, str]]:
    """Yield TensorFlow, and a local prefix for writing a checkpoint that is then at `prefix`.

    Raises:
      RunFailedError: it cannot be written.
    """
    tf = import_tensorflow("A TensorFlow checkpoint")
    try:
        with storage.written_here(prefix) as here:
            yield tf, here
    except tf.errors.OpError as error:
        reason = " ".join(str(error.message).split())
        raise RunFailedError(f"{prefix}: this checkpoint cannot be written ({reason}).") from error


# TensorFlow 2: tensorflow/models, official/nlp/modeling/networks


# The encoder of 2020 was a functional model, whose layers are counted (layer_with_weights-N); today's has attributes.
_TF2_EMBEDDINGS = {
    "embeddings/word_embeddings": ("layer_with_weights-0", "_embedding_layer"),
    "embeddings/position_embeddings": ("layer_with_weights-1", "_position_embedding_layer"),
    "embeddings/token_type_embeddings": ("layer_with_weights-2", "_type_embedding_layer"),
    "embeddings/LayerNorm": ("layer_with_weights-3", "_embedding_norm_layer"),
}
_TF2_LAYER = {
    "attention/self/query": ("_attention_layer/_query_dense",),
    "attention/self/key": ("_attention_layer/_key_dense",),
    "attention/self/value": ("_attention_layer/_value_dense",),
    "attention/output/dense": ("_attention_layer/_output_dense", "_attention_output_dense"),
    "attention/output/LayerNorm": ("_attention_layer_norm",),
    "intermediate/dense": ("_intermediate_dense",),
    "output/dense": ("_output_dense",),
    "output/LayerNorm": ("_output_layer_norm",),
}


class Tf2Weight(NamedTuple):
    """A weight of TensorFlow Models' BertEncoder.

    `name` is ours, `paths` are the object paths below the encoder that may lead to it, and `shape` is the reference's.
    """

    name: str
    paths: tuple[str, ...]
    shape: Shape

    def keras_shape(self, model: ModelConfig) -> Shape:
        """Keras's shape, which has an axis for heads and one for their size."""
        heads = (model.num_attention_heads, model.hidden_size // model.num_attention_heads)
        if "/attention/self/" in self.name:
            return (*self.shape[:-1], *heads)
        return (*heads, *self.shape[1:]) if self.name.endswith("/attention/output/dense/kernel") else self.shape


def tf2_weights(model: ModelConfig) -> Iterator[Tf2Weight]:
    """Yield the weights of a BertEncoder of these sizes, with its pooler."""
    owners: dict[str, Sequence[str]] = {
        **_TF2_EMBEDDINGS,
        "pooler/dense": (f"layer_with_weights-{len(_TF2_EMBEDDINGS) + model.num_hidden_layers}", "_pooler_layer"),
    }
    for i in range(model.num_hidden_layers):
        roots = (f"layer_with_weights-{len(_TF2_EMBEDDINGS) + i}", f"_transformer_layers/{i}")
        for part, attributes in _TF2_LAYER.items():
            owners[f"encoder/layer_{i}/{part}"] = [f"{root}/{attribute}" for root in roots for attribute in attributes]
    for name, _, shape in weights.named_weights(model):
        if name.startswith("bert/") and shape is not None:
            below = name.removeprefix("bert/")
            owner, _, leaf = f"{below}/embeddings".rpartition("/") if below in owners else below.rpartition("/")
            yield Tf2Weight(name, tuple(f"{path}/{leaf}" for path in owners[owner]), shape)


def _read_tf2(reader: Any, stored_names: Sequence[str], model: ModelConfig, prefix: str) -> Values:
    """Return the weights of an encoder. The rest of a pre-trainer's checkpoint is dropped."""
    stored = {n.removesuffix(_TF2_SUFFIX): n for n in stored_names if n.endswith(_TF2_SUFFIX)}
    values = {}
    for weight in tf2_weights(model):
        name, paths, shape = weight
        candidates = (f"{root}{path}" for root in _TF2_ROOTS for path in paths)
        stored_name = next((stored[c] for c in candidates if c in stored), None)
        if stored_name is None:
            raise UnusableInputError(
                f"{prefix}: this TF2 checkpoint has no {paths[0]}; it must be of a BERT encoder of this size."
            )
        array = reader.get_tensor(stored_name)
        if array.size != int(np.prod(shape)):
            raise UnusableInputError(
                f"{prefix}: {stored_name} has shape {list(array.shape)}, but the configuration needs "
                f"{list(weight.keras_shape(model))}."
            )
        values[name] = array.reshape(shape)
    return values


def write_tf2(prefix: str, values: Mapping[str, np.ndarray], model: ModelConfig) -> None:
    """Write an encoder checkpoint as TensorFlow Models' converter does: `tf.train.Checkpoint(encoder=…, model=…)`.

    It has the encoder and the pooler, but no heads. Its object graph has both the old and the new path of each weight.

    Raises:
      UnusableInputError: the model is no BERT encoder.
    """
    if model.model_type != "bert":
        raise UnusableInputError("Encoder checkpoints of TensorFlow Models are for BERT only; choose another --format.")
    with _written(prefix) as (tf, here):
        root = tf.Module()
        objects: dict[str, Any] = {"": root}
        for weight in tf2_weights(model):
            paths = weight.paths
            variable = tf.Variable(values[weight.name].reshape(weight.keras_shape(model)))
            owner: Any = None
            for path in paths:
                owner = _attach(objects, path.rpartition("/")[0], owner)
            setattr(owner, paths[0].rpartition("/")[2], variable)
        tf.train.Checkpoint(encoder=root, model=root).write(here)


def _attach(objects: dict[str, Any], path: str, last: Any) -> Any:
    """Make the objects along a path that are not in `objects` yet, and return the last.

    If `last` is not None, it is that object, so that two paths lead to one object.
    """
    if path not in objects:
        parent, _, name = path.rpartition("/")
        holder = _attach(objects, parent, None)
        objects[path] = last if last is not None else type(objects[""])()
        setattr(holder, name, objects[path])
    return objects[path]
