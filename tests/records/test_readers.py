"""The same rows as TFRecord, Parquet and MDS, read by the libraries that people read them with: equal arrays.

The libraries have an environment of their own (make test-torch), in which records/readers_program.py runs.
"""

import dataclasses
import gzip
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
from command_runs.commands import IN_MEMORY, VOCAB, maskmill
from conftest import DATA
from data_sets.row_blocks import SPECIAL_IDS, arrays_of, assert_same, blocks_of, columns_for
from made_up.rows import MadeUpRows, made_up_rows
from readers_program import load, save

from maskmill.records import parquet
from maskmill.records.columns import Column
from maskmill.records.example_proto import parse_example
from maskmill.records.mds import mds_index, mds_shard_entry, write_mds
from maskmill.records.parquet import write_parquet
from maskmill.records.tfrecord import read_records

PYTHON = os.environ.get("MASKMILL_READERS_PYTHON", sys.executable)
pytestmark = pytest.mark.elsewhere

LIMIT = 20_000
PARQUET, MDS = ("pandas", "polars", "duckdb", "datasets"), ("streaming", "modernbert")
# Packed blocks with masks; packed pairs without, ids above 16 bits; blocks, one a row; packed pairs with masks.
SEEDS = (5, 7, 19, 23)


@dataclasses.dataclass(frozen=True)
class DataSet:
    """Rows that were written as `rows.parquet` and to the directory `mds`, and their columns."""

    made: MadeUpRows
    columns: tuple[Column, ...]
    directory: Path


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[DataSet]:
    """Rows of several kinds, padded and not; Parquet's in several row groups."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_GROUP_ROWS", 150)
        return [
            write(made_up_rows(seed, count=400), padded, tmp_path_factory.mktemp("written"))
            for seed in SEEDS
            for padded in (True, False)
        ]


def write(made: MadeUpRows, padded: bool, directory: Path) -> DataSet:
    """Writes rows as Parquet and MDS."""
    columns, width = columns_for(made, padded=padded), made.masking.max_seq_length
    path, prefix = str(directory / "rows.parquet"), str(directory / "mds" / "shard")  # as MDSWriter names shards
    write_parquet(path, blocks_of(made.rows, 64), columns, SPECIAL_IDS, width, checksum=True)
    shards = write_mds(prefix, blocks_of(made.rows, 64), columns, SPECIAL_IDS, width, checksum=True, size_limit=LIMIT)
    assert len(shards) > 1
    entries = [mds_shard_entry(columns, Path(s.path).name, s.size, s.sha256, s.samples, LIMIT) for s in shards]
    (directory / "mds" / "index.json").write_bytes(mds_index(entries))
    return DataSet(made, columns, directory)


def theirs(library: str, sources: list[Path], outputs: list[Path]) -> None:
    """Runs the program in the readers' environment."""
    pairs = [str(path) for pair in zip(sources, outputs, strict=True) for path in pair]
    done = subprocess.run(
        [PYTHON, str(Path(__file__).with_name("readers_program.py")), library, *pairs],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"SIZE_LIMIT": str(LIMIT), "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("library", [*PARQUET, *MDS])
def test_a_library_reads_the_arrays_that_were_written(library: str, written: list[DataSet], tmp_path: Path) -> None:
    name = "rows.parquet" if library in PARQUET else "mds"
    outputs = [tmp_path / f"{number}.npz" for number in range(len(written))]
    theirs(library, [data.directory / name for data in written], outputs)
    for data, output in zip(written, outputs, strict=True):
        assert_same(load(output), arrays_of(data.made, data.columns))


def test_mdswriter_writes_the_same_bytes(written: list[DataSet], tmp_path: Path) -> None:
    rows = [tmp_path / f"{number}.npz" for number in range(len(written))]
    for data, path in zip(written, rows, strict=True):
        save(path, arrays_of(data.made, data.columns))
    outputs = [path.with_suffix("") for path in rows]
    theirs("write_mds", rows, outputs)
    for data, output in zip(written, outputs, strict=True):
        one, other = ({p.name: p.read_bytes() for p in d.iterdir()} for d in (data.directory / "mds", output))
        assert one == other


def values_of(record: bytes, columns: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """The values of some features of a TFRecord's record."""
    features = parse_example(record)
    lists = {name: (features[name].int64_list, features[name].float_list) for name in columns}
    return {name: np.array(ints.value or floats.value) for name, (ints, floats) in lists.items()}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two text shards of the train set, and one of the eval set."""
    directory = tmp_path_factory.mktemp("text")
    for packed in (DATA / "gold" / "cleanup").glob("*.gz"):
        (directory / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return directory


@pytest.mark.parametrize(
    "flags", [["--objective=nsp"], ["--objective=sop", "--pack"]], ids=["pairs of the reference", "packed"]
)
def test_commands_write_the_same_arrays_in_every_format(flags: list[str], text: Path, tmp_path: Path) -> None:
    for form in ("tfrecord", "parquet", "mds"):
        inputs = f"--input={text}/part-*,{text}/eval.txt"
        flags_of_form = [inputs, f"--output={tmp_path / form}", f"--vocab_file={VOCAB}"]
        run = maskmill("examples", *flags_of_form, f"--format={form}", "--dupe_factor=1", *flags, *IN_MEMORY)
        assert run.returncode == 0, run.stderr
    parquet, mds = sorted((tmp_path / "parquet").rglob("part-*.parquet")), tmp_path / "mds" / "train"
    outputs = [tmp_path / f"{path.name}.npz" for path in parquet]
    theirs("datasets", parquet, outputs)
    theirs("streaming", [mds], [tmp_path / "mds.npz"])
    rows = [row for output in outputs for row in load(output)]
    assert_same(load(tmp_path / "mds.npz"), rows)
    theirs("datasets", [tmp_path / "parquet"], [tmp_path / "directory.npz"])
    assert_same(load(tmp_path / "directory.npz"), rows)
    records = [r for path in sorted((tmp_path / "tfrecord").glob("part-*.tfrecord")) for r in read_records(str(path))]
    assert_same([values_of(record, list(rows[0])) for record in records], rows, types=False)


@pytest.mark.parametrize("batch", [1000, 7])
def test_the_recipes_blocks_are_ours(batch: int, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = sorted(text.glob("part-*"))
    flags = [f"--input={text}/part-*", f"--output={tmp_path / 'ours'}", f"--vocab_file={VOCAB}", "--format=parquet"]
    recipe = ["--preset=group-texts", f"--block_batch={batch}", "--max_seq_length=128"]
    run = maskmill("examples", *flags, *recipe, *IN_MEMORY)
    assert run.returncode == 0, run.stderr
    for name, value in {"VOCAB_FILE": VOCAB, "MAX_SEQ_LENGTH": 128, "BATCH_SIZE": batch}.items():
        monkeypatch.setenv(name, str(value))
    outputs = [tmp_path / f"{shard.name}.npz" for shard in shards]
    theirs("group_texts", shards, outputs)
    for shard, output in zip(shards, outputs, strict=True):
        table = pq.read_table(tmp_path / "ours" / f"{shard.name}.parquet").to_pylist()
        blocks = load(output)
        assert len(table) == len(blocks) > 100
        for ours, block in zip(table, blocks, strict=True):
            assert ours == {name: values.tolist() for name, values in block.items()}
