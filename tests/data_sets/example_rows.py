"""The rows of a file of examples, read by libraries that are not ours where there are any."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet

from data_sets.gold_examples import VOCABULARY
from data_sets.mds_reader import read_mds
from maskmill.records.columns import Column
from maskmill.records.example_proto import parse_example
from maskmill.records.examples import ExampleFile
from maskmill.records.mds import mds_index, mds_shard_entry
from maskmill.records.plan import ExamplesPlan
from maskmill.records.tfrecord import read_records
from maskmill.tokenization.vocabulary import load_vocabulary

Row = dict[str, list[Any]]


def read_tfrecord(path: str) -> list[Row]:
    rows = []
    for record in read_records(path):
        features = parse_example(record).items()
        rows.append({name: list(getattr(f, str(f.WhichOneof("kind"))).value) for name, f in features})
    return rows


def rows_of(file: ExampleFile, plan: ExamplesPlan, columns: Sequence[Column] = ()) -> list[Row]:
    """The rows of a file of any format; columns: of MDS, where the vocabulary is not VOCABULARY."""
    if plan.format.format == "tfrecord":
        return read_tfrecord(file.path)
    if plan.format.format == "parquet":
        rows: list[Row] = pyarrow.parquet.read_table(file.path).to_pylist()
        return rows
    columns = columns or plan.columns(load_vocabulary(VOCABULARY), file.width)
    entry = mds_shard_entry(columns, Path(file.path).name, file.size, file.sha256, file.examples)
    Path(file.path).with_name("index.json").write_bytes(mds_index([entry]))
    return [{name: array.tolist() for name, array in row.items()} for row in read_mds(Path(file.path).parent)]
