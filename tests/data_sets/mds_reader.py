"""MDS in plain Python: read what is there, one byte after the other, as its format is documented."""

import hashlib
import itertools
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Sample = dict[str, npt.NDArray[Any]]


def read_mds(directory: Path) -> list[Sample]:
    """The samples of the shards that `index.json` lists, whose sizes and checksums are verified."""
    index = json.loads((directory / "index.json").read_bytes())
    assert index["version"] == 2
    samples = []
    for shard in index["shards"]:
        file = shard["raw_data"]
        content = (directory / file["basename"]).read_bytes()
        assert len(content) == file["bytes"]
        assert file["hashes"] == {name: hashlib.new(name, content).hexdigest() for name in shard["hashes"]}
        found, config = read_shard(content)
        assert config == {key: value for key, value in shard.items() if key not in ("raw_data", "zip_data", "samples")}
        assert len(found) == shard["samples"]
        samples += found
    return samples


def read_shard(content: bytes) -> tuple[list[Sample], dict[str, Any]]:
    """The samples of a shard, and what it says of itself."""
    (count,) = struct.unpack_from("<I", content)
    offsets = struct.unpack_from(f"<{count + 1}I", content, 4)
    assert offsets[-1] == len(content)
    config = json.loads(content[4 * (count + 2) : offsets[0]])
    return [_read_sample(content[a:b], config) for a, b in itertools.pairwise(offsets)], config


def _read_sample(data: bytes, config: dict[str, Any]) -> Sample:
    names, encodings = config["column_names"], config["column_encodings"]
    sizes = struct.unpack_from(f"<{len(names)}I", data)
    at = 4 * len(names)
    sample = {}
    for name, encoding, size in zip(names, encodings, sizes, strict=True):
        sample[name] = _read_array(data[at : at + size], encoding.removeprefix("ndarray:"))
        at += size
    assert at == len(data)
    return sample


def _read_array(part: bytes, dtype: str) -> npt.NDArray[Any]:
    dimensions, code = divmod(part[0], 4)
    assert dimensions == 1
    size = 1 << code
    length = int.from_bytes(part[1 : 1 + size], "little")
    values = np.frombuffer(part[1 + size :], dtype)
    assert len(values) == length
    return values
