"""The reference's own records under tests/data/gold, and what they were made from; for tests."""

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

from oracles import pretraining as oracle

from maskmill.masking.options import MaskingOptions

GOLD = oracle.DATA / "gold"
VOCABULARY = str(oracle.DATA / "vocab.txt")
PICKED = GOLD / "pretraining" / "mlperf512.pick300.tfrecord.gz"

# By the name of a case: the reference script, its input and output files, and the flags that it was called with.
CASES: dict[str, dict[str, Any]] = json.loads((GOLD / "pretraining" / "cases.json").read_text())
# By the name of an output file: how many records and bytes it has, and the sha256 of its features.
DIGESTS: dict[str, dict[str, Any]] = {
    digest["file"]: digest
    for digest in map(json.loads, (GOLD / "pretraining" / "digests.jsonl").read_text().splitlines())
}


def options_of_case(name: str) -> MaskingOptions:
    """The options that a case's flags stand for."""
    case = CASES[name]
    fields = {field.name for field in dataclasses.fields(MaskingOptions)}
    google = case["script"] == "google-research/bert"
    return MaskingOptions(
        **{name: value for name, value in case.items() if name in fields},
        duplicate_pieces="last" if google else "first",
    )


def unpacked(name: str, directory: Path) -> str:
    """The path of a gold file, unpacked into a directory where it is gzipped."""
    source = GOLD / name
    if source.exists():
        return str(source)
    target = directory / source.name
    target.write_bytes(gzip.decompress((GOLD / f"{name}.gz").read_bytes()))
    return str(target)
