"""Read and write tf.train.Example without TensorFlow, with the protobuf library.

Source: tensorflow/core/example/example.proto and feature.proto:

    message BytesList { repeated bytes value = 1; }
    message FloatList { repeated float value = 1; }
    message Int64List { repeated int64 value = 1; }
    message Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
    message Features { map<string, Feature> feature = 1; }
    message Example { Features features = 1; }

The map is declared as it is serialised, `repeated Entry feature = 1` with
`message Entry { optional string key = 1; Feature value = 2; }`, so that we choose the order of its entries: the
library's deterministic order puts "image" after "image/height".

The messages have their own descriptor pool, so they do not clash with a TensorFlow in the same process.
kernels/serialize.py writes examples; this module serves the code that reads them, and writes them again.
"""

from collections.abc import Mapping

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

_Field = descriptor_pb2.FieldDescriptorProto
_LISTS = (
    ("bytes_list", "BytesList", _Field.TYPE_BYTES),
    ("float_list", "FloatList", _Field.TYPE_FLOAT),
    ("int64_list", "Int64List", _Field.TYPE_INT64),
)


def _describe_messages() -> descriptor_pb2.FileDescriptorProto:
    """Return the descriptor of the messages above."""
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tensorflow", syntax="proto3")
    feature = descriptor_pb2.DescriptorProto(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (name, message, value_type) in enumerate(_LISTS, 1):
        values = file.message_type.add(name=message)
        values.field.add(name="value", number=1, label=_Field.LABEL_REPEATED, type=value_type)
        _add_message(feature, name, number, message).oneof_index = 0
    file.message_type.append(feature)
    entry = file.message_type.add(name="Entry")
    # In proto3 a field is optional in its own right, so that an empty key is written, by way of a oneof.
    entry.oneof_decl.add(name="_key")
    key = entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
    key.proto3_optional, key.oneof_index = True, 0
    _add_message(entry, "value", 2, "Feature")
    features = file.message_type.add(name="Features")
    _add_message(features, "feature", 1, "Entry").label = _Field.LABEL_REPEATED
    _add_message(file.message_type.add(name="Example"), "features", 1, "Features")
    return file


def _add_message(
    message: descriptor_pb2.DescriptorProto, name: str, number: int, value: str
) -> descriptor_pb2.FieldDescriptorProto:
    """Add a field for a message to a message, and return it."""
    return message.field.add(
        name=name,
        number=number,
        label=_Field.LABEL_OPTIONAL,
        type=_Field.TYPE_MESSAGE,
        type_name=f".tensorflow.{value}",
    )


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_describe_messages())
_Example = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("tensorflow.Example"))
Feature = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("tensorflow.Feature"))


def parse_example(record: bytes, *, strict: bool = True) -> dict[str, Message]:
    """Return the features of a serialised tf.train.Example by name, in sorted order; each is a tf.train.Feature.

    Raises:
      ValueError: it cannot be decoded, or, if `strict`, has fields that tf.train.Example does not have.
    """
    example = _Example()
    try:
        example.ParseFromString(record)
    except DecodeError:
        raise ValueError("it cannot be decoded") from None
    known = _Example()
    known.CopyFrom(example)
    known.DiscardUnknownFields()
    if strict and known.ByteSize() != example.ByteSize():
        raise ValueError("it has fields that an Example does not have")
    # Of entries with one name the last one counts, as in any map.
    features = {entry.key: entry.value for entry in example.features.feature}
    return dict(sorted(features.items()))


def encode_example(features: Mapping[str, Message]) -> bytes:
    """Serialise a tf.train.Example with its feature map in the mapping's order."""
    example = _Example()
    example.features.SetInParent()
    for name, feature in features.items():
        entry = example.features.feature.add(key=name)
        entry.value.CopyFrom(feature)
        entry.value.SetInParent()  # an empty feature, too, is written
    encoded: bytes = example.SerializeToString()
    return encoded


def count_values(feature: Message) -> int:
    """Return the number of values of a tf.train.Feature; 0 without a list."""
    kind = feature.WhichOneof("kind")
    return len(getattr(feature, kind).value) if kind else 0
