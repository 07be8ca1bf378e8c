"""TFRecord files of tf.train.Example: read and verify them, index them, pick examples from them.

Files may be gzipped, whatever their name. Source of the format: tensorflow/core/lib/io/record_writer.h and
tensorflow/core/example/example.proto; of the rule for picking: pick_eval_samples.py of mlcommons/training.
"""

import dataclasses
import gzip
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import BinaryIO, cast

import numpy as np

from transforms.errors import UnusableInputError
from transforms.kernels.crc32c import masked_crc32c
from transforms.records.kernels import frames as kernels
from transforms.records.kernels import serialize
from transforms.storage import files

_BLOCK_BYTES = 4 << 20
_BLOCK_RECORDS = 1 << 16
_MOST_RECORD_BYTES = 1 << 31  # TensorFlow itself reads no larger protocol buffer

INT64_LIST = 3
FLOAT_LIST = 2
BYTES_LIST = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class WrittenFile:
    """A file that was written; `sha256` is None where no checksum was asked for."""

    path: str
    size: int
    sha256: str | None


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature of an example: its list's field number in tf.train.Feature, and that list as it is on disk."""

    kind: int
    content: bytes

    def __len__(self) -> int:
        """How many values it has."""
        count = 0
        for wire, value in _values(self.content):
            if wire != 2 or self.kind == BYTES_LIST:
                count += 1
            elif self.kind == FLOAT_LIST:
                count += len(value) // 4
            else:
                count += sum(byte < 128 for byte in value)
        return count


def read_records(path: str) -> Iterator[bytes]:
    """Yields the data of each record of a TFRecord file, gzipped or not.

    Raises:
      UnusableInputError: the file is missing, truncated or damaged; each checksum is verified.
    """
    for data, _, starts, sizes in _blocks(path):
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            yield data[start : start + size].tobytes()


def count_records(path: str) -> int:
    """The number of records of a TFRecord file; see `read_records`."""
    return sum(len(starts) for _, _, starts, _ in _blocks(path))


def index_tfrecord(path: str, output: str, *, checksum: bool = True) -> WrittenFile:
    """Writes the index that DALI reads: a line "offset size" for each record, its frame included.

    For a gzipped file the offsets are those of its unpacked content.

    Raises:
      UnusableInputError: the file is missing, truncated or damaged; each checksum is verified.
      RunFailedError: the index cannot be written.
    """
    lines = np.empty(_BLOCK_RECORDS * 42, np.uint8)
    with files.new_file(output, checksum=checksum) as file:
        for _, offset, _, sizes in _blocks(path):
            used = serialize.index_lines(sizes + serialize.FRAME, len(sizes), offset, lines)
            file.write(lines[:used].tobytes())
    return WrittenFile(path=output, size=file.size, sha256=file.sha256 if checksum else None)


def parse_example(record: bytes) -> dict[str, Feature]:
    """The features of a serialised tf.train.Example by name, in sorted order.

    Raises:
      ValueError: it is not one.
    """
    features: dict[str, Feature] = {}
    for entries in _messages(record, "Example"):
        for entry in _messages(entries, "Features"):
            name, kind, content = "", 0, b""
            for number, _, value in _fields(entry):
                if number == 1:
                    name = value.decode()
                elif number == 2:
                    # An empty Feature has no list at all.
                    for number_of_list, list_wire, values in _fields(value):
                        if list_wire != 2 or number_of_list not in (BYTES_LIST, FLOAT_LIST, INT64_LIST):
                            raise ValueError("a feature is no list of bytes, floats or integers")
                        kind, content = number_of_list, values
            features[name] = Feature(kind, content)
    return dict(sorted(features.items()))


def encode_example(features: Mapping[str, Feature]) -> bytes:
    """Serialises a tf.train.Example with its feature map in the mapping's order."""
    entries = []
    for name, feature in features.items():
        value = _field(feature.kind, feature.content) if feature.kind else b""
        entries.append(_field(1, _field(1, name.encode()) + _field(2, value)))
    return _field(1, b"".join(entries))


def frame(record: bytes) -> bytes:
    """A record as it stands in a TFRecord file: its length, its data, and the checksums of both."""
    length = struct.pack("<Q", len(record))
    checksums = [
        struct.pack("<I", masked_crc32c(np.frombuffer(bytearray(part), np.uint8), 0, len(part)))
        for part in (length, record)
    ]
    return length + checksums[0] + record + checksums[1]


def _varint(number: int) -> bytes:
    output = bytearray()
    while number > 127:
        output.append(number & 127 | 128)
        number >>= 7
    output.append(number)
    return bytes(output)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _messages(message: bytes, name: str) -> Iterator[bytes]:
    for number, wire, value in _fields(message):
        if number != 1 or wire != 2:
            raise ValueError(f"{name} has a field {number} of wire type {wire}")
        yield value


def _values(content: bytes) -> Iterator[tuple[int, bytes]]:
    for number, wire, value in _fields(content):
        if number != 1:
            raise ValueError(f"a list has a field {number}")
        yield wire, value


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yields number, wire type and content of a message's fields."""
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        wire = tag & 7
        start = at
        if wire == 0:
            _, at = _read_varint(message, at)
        elif wire == 2:
            length, start = _read_varint(message, at)
            at = start + length
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if at > len(message):
            raise ValueError("a field goes on behind the end")
        yield tag >> 3, wire, message[start:at]


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(message) and shift < 70:
        byte = message[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise ValueError("a number does not end")


def _blocks(path: str) -> Iterator[tuple[np.ndarray, int, np.ndarray, np.ndarray]]:
    """Yields data, the offset in the file of its first record, and where its records' data start, and their sizes."""
    starts = np.empty(_BLOCK_RECORDS, np.int64)
    sizes = np.empty(_BLOCK_RECORDS, np.int64)
    data = np.empty(_BLOCK_BYTES, np.uint8)
    held = 0  # bytes in `data`
    offset = 0  # of data[0] in the file
    records = 0
    with files.open_input(path) as raw:
        file = _unpacked(raw)
        ended = False
        while True:
            while held < len(data) and not ended:
                try:
                    block = file.read(len(data) - held)
                except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                    raise UnusableInputError(
                        f"{path}: this gzip file is truncated or damaged ({error}); make or fetch it again."
                    ) from error
                data[held : held + len(block)] = np.frombuffer(block, np.uint8)
                held += len(block)
                ended = not block
            end, count, at, needs = kernels.scan_records(data, held, starts, sizes)
            if count:
                yield data, offset, starts[:count], sizes[:count]
            records += count
            where = f"{path}: record {records:,} at byte {offset + at:,}"
            if end in (kernels.BAD_LENGTH, kernels.BAD_DATA):
                what = "a length" if end == kernels.BAD_LENGTH else "data"
                raise UnusableInputError(
                    f"{where} has {what} that does not fit its checksum: the file is damaged, or no TFRecord."
                )
            if needs > _MOST_RECORD_BYTES:
                raise UnusableInputError(f"{where} has {needs:,} bytes; no reader takes so large a record.")
            if end == kernels.INCOMPLETE and ended:
                if at < held:
                    raise UnusableInputError(f"{where} is truncated; make or fetch the file again.")
                return
            rest = data[at:held].copy()
            if needs > len(data):
                data = np.empty(needs, np.uint8)
            held = len(rest)
            data[:held] = rest
            offset += at


def _unpacked(raw: BinaryIO) -> BinaryIO:
    """The file's content, unpacked where it is gzipped: told by its first bytes, unless they are a valid record."""
    head = raw.read(12)
    raw.seek(0)
    if head[:3] != b"\x1f\x8b\x08":
        return raw
    bytes_of_head = np.frombuffer(bytearray(head.ljust(12)), np.uint8)
    if struct.unpack("<I", bytes_of_head[8:].tobytes())[0] == masked_crc32c(bytes_of_head, 0, 8):
        return raw
    return cast(BinaryIO, gzip.GzipFile(fileobj=raw, mode="rb"))
