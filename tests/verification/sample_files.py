"""Reads and writes files of samples as somebody's script would: protobuf, pyarrow, and MDS in plain Python.

A row is a dict of one-dimensional arrays by column.
"""

import gzip
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from data_sets.mds_reader import read_shard

from maskmill.records.example_proto import Feature, encode_example, parse_example
from maskmill.records.parquet import SealedWriter
from maskmill.records.tfrecord import frame

Row = dict[str, npt.NDArray[Any]]

FRAME_HEAD = 12  # bytes of a record's length and of its checksum
FRAME = 16


def read_rows(path: Path) -> list[Row]:
    """The rows of a TFRecord, Parquet or MDS file."""
    if path.suffix == ".parquet":
        columns = pq.read_table(path).to_pydict()
        names = list(columns)
        kinds = {name: columns_type(path, name) for name in names}
        count = len(columns[names[0]])
        return [{name: np.array(columns[name][row], kinds[name]) for name in names} for row in range(count)]
    if path.suffix == ".mds":
        samples, _ = read_shard(path.read_bytes())
        return [{name: values.copy() for name, values in sample.items()} for sample in samples]
    return [_parsed(record) for record in records_of(path)]


def columns_type(path: Path, name: str) -> np.dtype[Any]:
    """The type of the values of a Parquet file's column."""
    return np.dtype(pq.read_schema(path).field(name).type.value_type.to_pandas_dtype())


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Writes rows over a file, in its format."""
    if path.suffix == ".parquet":
        path.write_bytes(_parquet(rows, {name: columns_type(path, name) for name in pq.read_schema(path).names}))
    elif path.suffix == ".mds":
        path.write_bytes(_mds(rows, read_shard(path.read_bytes())[1]))
    else:
        path.write_bytes(b"".join(frame(_encoded(row)) for row in rows))


def records_of(path: Path) -> list[bytes]:
    """The records of a TFRecord, by lengths alone."""
    content = _unpacked(path)
    return [content[at + FRAME_HEAD : at + FRAME_HEAD + size] for at, size in frames(path)]


def _unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def frames(path: Path) -> list[tuple[int, int]]:
    """Where each record of a TFRecord starts, with its frame, and how many bytes its data has; by lengths alone."""
    content, at, found = _unpacked(path), 0, []
    while at + FRAME <= len(content):
        (size,) = struct.unpack_from("<Q", content, at)
        if at + FRAME + size > len(content):
            break
        found.append((at, size))
        at += FRAME + size
    return found


def _parsed(record: bytes) -> Row:
    features = {}
    for name, feature in parse_example(record).items():
        is_float = feature.WhichOneof("kind") == "float_list"
        values = feature.float_list.value if is_float else feature.int64_list.value
        features[name] = np.array(values, np.float32 if is_float else np.int64)
    return features


def _encoded(row: Row) -> bytes:
    features = {}
    for name, values in row.items():
        feature = Feature()
        kept = feature.float_list if values.dtype.kind == "f" else feature.int64_list
        kept.value.extend(values.tolist())
        features[name] = feature
    return encode_example(dict(sorted(features.items())))


def _parquet(rows: Sequence[Row], types: Mapping[str, np.dtype[Any]]) -> bytes:
    """A Parquet file of one row group, sealed as maskmill's are."""
    columns = {name: pa.array([row[name].astype(kind) for row in rows]) for name, kind in types.items()}
    table = pa.table(columns)
    writer = SealedWriter(table.schema)
    return writer.group(table) + writer.end()


def _mds(rows: Sequence[Row], config: dict[str, Any]) -> bytes:
    """An MDS shard: the number of samples, where each starts, what it says of itself, and the samples."""
    types = [encoding.removeprefix("ndarray:") for encoding in config["column_encodings"]]
    samples = []
    for row in rows:
        arrays = [_mds_array(row[name].astype(kind)) for name, kind in zip(config["column_names"], types, strict=True)]
        samples.append(struct.pack(f"<{len(arrays)}I", *map(len, arrays)) + b"".join(arrays))
    text = json.dumps(config, sort_keys=True).encode()
    first = 4 * (len(samples) + 2) + len(text)
    offsets = np.cumsum([first, *map(len, samples)]).astype("<u4")
    return struct.pack("<I", len(samples)) + offsets.tobytes() + text + b"".join(samples)


def _mds_array(values: npt.NDArray[Any]) -> bytes:
    code = 0 if len(values) < 1 << 8 else 1
    return bytes([4 + code]) + len(values).to_bytes(1 << code, "little") + values.tobytes()
