"""tf.train.Example without TensorFlow: the same messages, made with the protobuf library.

Source: tensorflow/core/example/example.proto and feature.proto:

    message BytesList { repeated bytes value = 1; }
    message FloatList { repeated float value = 1; }
    message Int64List { repeated int64 value = 1; }
    message Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
    message Features { map<string, Feature> feature = 1; }
    message Example { Features features = 1; }

The messages lie in a descriptor pool of their own, beside those of a TensorFlow that is loaded into the same process.
Examples are written by kernels/serialize.py; this module is for what reads them and writes them again.
"""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

_Field = descriptor_pb2.FieldDescriptorProto
_LISTS = (
    ("bytes_list", "BytesList", _Field.TYPE_BYTES),
    ("float_list", "FloatList", _Field.TYPE_FLOAT),
    ("int64_list", "Int64List", _Field.TYPE_INT64),
)


def _describe_messages() -> descriptor_pb2.FileDescriptorProto:
    """The description of the messages above."""
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tensorflow", syntax="proto3")
    feature = descriptor_pb2.DescriptorProto(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (field, message, of) in enumerate(_LISTS, 1):
        values = file.message_type.add(name=message)
        values.field.add(name="value", number=1, label=_Field.LABEL_REPEATED, type=of)
        _add_message(feature, field, number, f".tensorflow.{message}").oneof_index = 0
    file.message_type.append(feature)
    features = file.message_type.add(name="Features")
    # A map is a repeated message of keys and values.
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
    _add_message(entry, "value", 2, ".tensorflow.Feature")
    _add_message(features, "feature", 1, ".tensorflow.Features.FeatureEntry").label = _Field.LABEL_REPEATED
    _add_message(file.message_type.add(name="Example"), "features", 1, ".tensorflow.Features")
    return file


def _add_message(
    message: descriptor_pb2.DescriptorProto, name: str, number: int, of: str
) -> descriptor_pb2.FieldDescriptorProto:
    """Adds a field that holds a message of type `of`."""
    return message.field.add(
        name=name, number=number, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_MESSAGE, type_name=of
    )


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_describe_messages())
Example = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("tensorflow.Example"))


def parse_example(record: bytes) -> Message:
    """Parses a serialised tf.train.Example; its features are the map `example.features.feature`.

    Raises:
      ValueError: it is not one, or has fields that tf.train.Example does not have.
    """
    example = Example()
    try:
        example.ParseFromString(record)
    except DecodeError:
        raise ValueError("it cannot be decoded") from None
    size = example.ByteSize()
    example.DiscardUnknownFields()
    if example.ByteSize() != size:
        raise ValueError("it has fields that an Example does not have")
    return example


def encode_example(example: Message) -> bytes:
    """Serialises a tf.train.Example with its feature map in sorted order: equal examples give equal bytes."""
    encoded: bytes = example.SerializeToString(deterministic=True)
    return encoded


def count_values(feature: Message) -> int:
    """How many values a tf.train.Feature has; none where it has no list."""
    kind = feature.WhichOneof("kind")
    return len(getattr(feature, kind).value) if kind else 0
