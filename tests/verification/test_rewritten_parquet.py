"""Parquet that another program has written again has the same rows: verify and loaders read it as any other."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damaged_copies import serious
from data_sets.whole_builds import Made, extract_text, make_build
from regenerating import regenerate

from maskmill.reading.block_reader import Block, DamagedBlockError, Rows
from maskmill.reading.byte_ranges import LocalRanges
from maskmill.reading.opening import open_data_set, reader_of
from maskmill.verification.verifying import verify

BUILDS: Mapping[str, Mapping[str, Any]] = {
    "pairs": {},
    "packed": {"objective": "sop", "pack": True, "short_seq_prob": 0.5},
}


def _as_it_is(table: pa.Table) -> pa.Table:
    return table


def _wide(table: pa.Table) -> pa.Table:
    """Other types: values may be missing, and have 64 bits."""
    for place, field in enumerate(table.schema):
        kind = pa.float64() if pa.types.is_floating(field.type.value_type) else pa.int64()
        table = table.set_column(place, field.name, table.column(place).cast(pa.large_list(kind)))
    return table


WAYS: Mapping[str, tuple[Callable[[pa.Table], pa.Table], Mapping[str, Any]]] = {
    "zstd": (_as_it_is, {"compression": "zstd"}),
    "row_groups": (_as_it_is, {"row_group_size": 100}),
    "pages_of_version_2": (_as_it_is, {"data_page_version": "2.0", "compression": "gzip", "use_dictionary": False}),
    "wide": (_wide, {}),
    "from_pandas": (lambda table: pa.Table.from_pandas(table.to_pandas()), {}),
}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extract_text(tmp_path_factory.mktemp("wiki") / "text", documents=10, eval_articles=2, shard_mb=0.15)


@pytest.fixture
def made(request: pytest.FixtureRequest, text: Path, tmp_path: Path) -> Made:
    return make_build(tmp_path / "build", text, format="parquet", **BUILDS[request.param])


def rewrite(root: Path, way: str) -> None:
    """Writes all Parquet files of a build again."""
    change, options = WAYS[way]
    for path in sorted((root / "examples").glob("*.parquet")):
        pq.write_table(change(pq.read_table(path)), path, **options)
    regenerate(root)


def rows_of(root: Path) -> dict[str, Any]:
    """All training rows of a build as a loader reads them, and the first block twice."""
    data_set = open_data_set(root, ranges=LocalRanges())
    reader, arrays = reader_of(data_set, LocalRanges()), []
    for number, file in enumerate(data_set.files):
        starts = list(range(0, file.samples, reader.block_samples))
        for start in (*starts, starts[0]):
            block = Block(number, start, min(reader.block_samples, file.samples - start))
            rows, every = Rows(data_set.columns, block.count), np.arange(block.count)
            reader.decode(reader.fetch(block), block, every, every, rows)
            if start or not arrays or len(arrays) <= number:
                arrays.append({name: array.copy() for name, array in rows.arrays.items()})
    return {name: np.concatenate([part[name] for part in arrays]).tolist() for name in sorted(arrays[0])}


@pytest.mark.exhaustive_but(*(f"{way}-pairs" for way in WAYS), "pages_of_version_2-packed")
@pytest.mark.builds
@pytest.mark.parametrize("made", BUILDS, indirect=True)
@pytest.mark.parametrize("way", WAYS)
def test_rows_that_were_written_again_are_right(way: str, made: Made) -> None:
    before = rows_of(made.root)
    rewrite(made.root, way)
    verification = verify([str(made.root)])
    assert [finding.message for finding in serious(verification)] == []
    assert all(verification.outcomes[name].looked_at for name in ("framing", "ids", "masks", "seed", "labels"))
    assert "another program" in str(verification.outcomes["crc"].skipped)
    assert rows_of(made.root) == before


@pytest.mark.builds
@pytest.mark.parametrize("made", ["pairs"], indirect=True)
def test_what_is_wrong_with_them_is_found(made: Made) -> None:
    rewrite(made.root, "zstd")
    path = sorted((made.root / "examples").glob("part-*.parquet"))[1]
    right, table = path.read_bytes(), pq.read_table(path)

    def found_with(name: str, rows: list[Any]) -> set[str]:
        kind = table.schema.field(name).type
        pq.write_table(table.set_column(table.schema.get_field_index(name), name, pa.array(rows, kind)), path)
        regenerate(made.root)
        return {finding.check for finding in serious(verify([str(made.root)]))}

    shifted = [[place + 1 if place else 0 for place in row] for row in table["masked_lm_positions"].to_pylist()]
    assert "masks" in found_with("masked_lm_positions", shifted)
    ids = table["input_ids"].to_pylist()
    assert "ids" in found_with("input_ids", [[60_000, *row[1:]] if n == 6 else row for n, row in enumerate(ids)])
    path.write_bytes(right[: len(right) // 2] + bytes(64) + right[len(right) // 2 + 64 :])
    regenerate(made.root)
    verification = verify([str(made.root)])
    assert "framing" in {finding.check for finding in serious(verification)}
    with pytest.raises(DamagedBlockError, match="damaged or cut off"):
        rows_of(made.root)
