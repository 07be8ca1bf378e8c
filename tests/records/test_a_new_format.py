"""A format of shards is a class that writes and one that reads: these store each row as a line of JSON."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from data_sets.built_data_sets import build_data_set

import maskmill
from maskmill.errors import UnusableInputError
from maskmill.masking.kernels.rows import RowArrays
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.reading import formats
from maskmill.reading.block_reader import Block, BlockReader, DamagedBlockError, Rows
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.data_set import DataSet
from maskmill.records import shard_formats
from maskmill.records.columns import column_values
from maskmill.records.examples import ExampleFile, Writing
from maskmill.records.options import FormatOptions
from maskmill.records.tfrecord import WrittenFile
from maskmill.storage import files
from maskmill.verification.options import VerifyOptions
from maskmill.verification.verifying import verify
from pipelines.settings.options import options_of


class Lines(shard_formats.ShardFormat):
    """Each row is a line of JSON, of the values by column."""

    name = "lines"

    def write(self, prefix: str, blocks: Iterable[tuple[RowArrays, int]], writing: Writing) -> Sequence[ExampleFile]:
        columns = writing.columns
        with files.new_file(f"{prefix}.lines", checksum=True) as file:
            for rows, count in blocks:
                values = [column_values(c, rows, count, writing.special_ids, writing.width) for c in columns]
                for row in range(count):
                    line = {
                        column.name: held.values[held.offsets[row] : held.offsets[row + 1]].tolist()
                        for column, held in zip(columns, values, strict=True)
                    }
                    file.write(json.dumps(line).encode() + b"\n")
        return [writing.file(WrittenFile(path=file.path, size=file.size, sha256=file.sha256))]


class LinesReader(BlockReader):
    """Reads a file as a whole."""

    block_samples = 16

    def __init__(self, data_set: DataSet, ranges: ByteRanges) -> None:
        self._data_set, self._ranges = data_set, ranges

    def fetch(self, block: Block) -> list[bytes]:
        lines = self._ranges.read_all(self._data_set.files[block.file].path).splitlines()
        return lines[block.first : block.first + block.count]

    def decode(
        self, fetched: Any, block: Block, wanted: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows
    ) -> None:
        path = self._data_set.files[block.file].path
        for sample, row in zip(wanted.tolist(), rows.tolist(), strict=True):
            values = json.loads(fetched[sample])
            for column in self._data_set.columns:
                of_row = values[column.name]
                if column.high is not None and max(of_row, default=0) > column.high:
                    what = f"{column.name} is {max(of_row)}, but it must be {column.meaning}."
                    raise DamagedBlockError(
                        f"{path}, record {block.first + sample + 1:,}: {what}", feature=column.feature
                    )
                array = into.arrays[column.feature]
                array[row] = (of_row[-1] if of_row else 0) if column.fill is None else column.fill
                array[row, : len(of_row)] = of_row
                if column.varies:
                    into.counts[column.feature][row] = len(of_row)

    def forget(self, block: Block) -> bool:
        return self._ranges.forget(self._data_set.files[block.file].path)

    @staticmethod
    def count_samples(path: str, ranges: ByteRanges) -> int:
        return ranges.read_all(path).count(b"\n")


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the format known."""
    formats.register(Lines(), LinesReader)
    yield
    for known in (formats._known, shard_formats._known):
        del known[Lines.name]


def batches_of(path: Path) -> list[dict[str, npt.NDArray[Any]]]:
    with contextlib.closing(maskmill.open(path, batch_size=8, shuffle=False)) as loader:
        return list(loader)


@pytest.mark.parametrize(
    "objective",
    [
        ObjectiveOptions(),
        ObjectiveOptions(objective="mlm", dynamic_masking=True),
        ObjectiveOptions(objective="mlm", pack=True),
    ],
    ids=["nsp", "dynamic", "packed"],
)
def test_a_data_set_in_a_new_format_has_the_batches_of_tfrecords(objective: ObjectiveOptions, tmp_path: Path) -> None:
    ours = build_data_set(tmp_path / "lines", format="lines", objective=objective)
    theirs = build_data_set(tmp_path / "records", objective=objective)
    assert sorted(path.suffix for path in ours.iterdir() if path.name.startswith("part-")) == [".lines"] * 3
    columns = {column["name"]: column for column in json.loads((ours / "manifest.json").read_text())["schema"]}
    assert columns["input_ids"]["dtype"] == "uint16"
    for found, expected in zip(batches_of(ours), batches_of(theirs), strict=True):
        assert list(found) == list(expected)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)


def test_a_data_set_in_a_new_format_is_verified(tmp_path: Path) -> None:
    made = build_data_set(tmp_path, format="lines")
    verification = verify([str(made)], VerifyOptions(remake=0))
    assert [finding.message for finding in verification.findings if finding.severity == "error"] == []
    shard = next(made.glob("*.lines"))
    first, *others = shard.read_text().splitlines(keepends=True)
    row = json.loads(first)
    row["input_ids"][3] = 70_000
    shard.write_text("".join([json.dumps(row) + "\n", *others]))
    messages = [finding.message for finding in verify([str(made)], VerifyOptions(remake=0)).findings]
    assert any(f"{shard}, record 1: input_ids is 70000, but it must be from 0 to" in message for message in messages)


def test_a_new_format_is_an_option_as_any_other() -> None:
    assert options_of(FormatOptions)["format"].kind.choices == ("tfrecord", "parquet", "mds", "spans", "lines")
    assert FormatOptions(format="lines").format == "lines"
    with pytest.raises(UnusableInputError, match="one of tfrecord, parquet, mds, spans, lines"):
        FormatOptions(format="csv")


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(UnusableInputError, match="'csv' is not a format of examples; there are tfrecord, parquet"):
        shard_formats.format_of("csv")
