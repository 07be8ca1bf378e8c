"""TFRecords that tests make of given records."""

from collections.abc import Sequence
from pathlib import Path

from oracles import pretraining as oracle


def write_records(path: Path, records: Sequence[bytes]) -> str:
    """Writes records with their frames, as the oracle frames them; returns the path."""
    path.write_bytes(b"".join(map(oracle.encode_tfrecord, records)))
    return str(path)
