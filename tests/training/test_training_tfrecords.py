"""TFRecords as TensorFlow reads them: the same records, or one sentence; where our reader is stricter or laxer."""

import gzip
from pathlib import Path

import pytest
import tensorflow as tf
from data_sets.damage import mutations
from oracles import pretraining as oracle
from training_helpers import BACKEND

from maskmill.errors import UnusableInputError
from maskmill.records.tfrecord import read_records

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="no backend is used")

RECORDS = [oracle.encode_example({"number": [k]}) for k in range(5)]
PLAIN = b"".join(map(oracle.encode_tfrecord, RECORDS))
PACKED = gzip.compress(PLAIN, mtime=0)


def ours(path: Path) -> list[bytes] | None:
    try:
        return list(read_records(str(path)))
    except UnusableInputError:
        return None


def theirs(path: Path, compression: str) -> list[bytes] | None:
    try:
        return list(tf.data.TFRecordDataset(str(path), compression_type=compression).as_numpy_iterator())
    except tf.errors.OpError:
        return None


@pytest.mark.parametrize(("whole", "compression"), [(PLAIN, ""), (PACKED, "GZIP")], ids=["plain", "gzip"])
def test_damaged_records(whole: bytes, compression: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    for damaged in [whole, b"", *mutations(whole, 6)]:
        path.write_bytes(damaged)
        found = ours(path)
        assert found is None or found == theirs(path, compression)


@pytest.mark.parametrize(
    ("content", "compression", "expected"),
    [
        (PLAIN + b"garbage", "", (None, RECORDS)),
        (PACKED[:-8], "GZIP", (None, RECORDS)),
        (PACKED + bytes(20), "GZIP", (RECORDS, None)),
    ],
    ids=["stricter-garbage", "stricter-gzip-without-its-end", "laxer-zeros-after-gzip"],
)
def test_where_the_readers_differ(
    content: bytes, compression: str, expected: tuple[list[bytes] | None, list[bytes] | None], tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert (ours(path), theirs(path, compression)) == expected
