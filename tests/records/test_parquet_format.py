"""The bytes of Parquet files, read by pyarrow."""

import io
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import SEEDED, tries

from maskmill.records import parquet_format
from maskmill.records.columns import Column
from maskmill.records.parquet_format import MAGIC, encode_chunk, encode_footer

LARGEST = (None, 0, 1, 255, 256, 511, 65_535, 65_536, 2**31 - 1)
CODEC = pyarrow.Codec("zstd")


def written(columns: list[Column], groups: list[list[list[Any]]]) -> bytes:
    """A file: for each row group and column the rows' values."""
    content, entries = MAGIC, []
    for group in groups:
        start, chunks = len(content), []
        for column, rows in zip(columns, group, strict=True):
            offsets = np.cumsum([0, *map(len, rows)], dtype=np.int32)
            values = np.concatenate([np.empty(0, column.dtype), *(np.array(row, column.dtype) for row in rows)])
            chunk, pages = encode_chunk(column, values, offsets, CODEC)
            chunks.append(chunk)
            content += b"".join(pages)
        entries.append((len(group[0]), start, chunks))
    return content + encode_footer(columns, entries)


def rows_of(column: Column, lengths: list[int], rng: np.random.Generator) -> list[list[float]]:
    """Values for rows with so many, or with as many as the column has."""
    most = 1 if column.largest is None else column.largest
    return [
        rng.integers(0, most, length if column.length is None else column.length, endpoint=True).tolist()
        for length in lengths
    ]


@given(seed=st.integers(0, 2**32))
@tries(60, **SEEDED)
def test_a_reader_finds_the_values_again(seed: int) -> None:
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_format, "_PAGE_BYTES", int(rng.choice([1, 40, 1000])))
        patch.setattr(parquet_format, "_DICTIONARY_SHARE", float(rng.choice([0, 0.1, 8])))
        columns = [
            Column(
                name=f"column {n}",
                feature="",
                length=(None, 0, 1, 9)[rng.integers(4)],
                largest=LARGEST[rng.integers(len(LARGEST))],
            )
            for n in range(rng.integers(1, 20))
        ]
        groups = [
            [rows_of(column, lengths, rng) for column in columns]
            for lengths in [rng.integers(0, 12, rng.integers(1, 40)).tolist() for _ in range(rng.integers(0, 4))]
        ]
        content = written(columns, groups)
    file = pyarrow.parquet.ParquetFile(io.BytesIO(content), page_checksum_verification=True)
    assert file.num_row_groups == len(groups)
    table = file.read()
    table.validate(full=True)
    for n, column in enumerate(columns):
        expected = [row for group in groups for row in group[n]]
        assert table[column.name].to_pylist() == expected


@pytest.mark.parametrize("largest", LARGEST)
def test_the_schema_is_as_pyarrow_writes_it(largest: int | None) -> None:
    column = Column(name="ids", feature="", length=None, largest=largest)
    element = pyarrow.field("element", pyarrow.from_numpy_dtype(column.dtype), nullable=False)
    schema = pyarrow.schema([pyarrow.field("ids", pyarrow.list_(element), nullable=False)])
    theirs = io.BytesIO()
    pyarrow.parquet.write_table(schema.empty_table(), theirs, store_schema=False)
    found = pyarrow.parquet.ParquetFile(io.BytesIO(written([column], [[[[0]]]])))
    expected = pyarrow.parquet.ParquetFile(theirs)
    assert found.schema.equals(expected.schema)
    assert found.schema_arrow.equals(expected.schema_arrow)


@pytest.mark.parametrize(("count", "encoding"), [(7, "PLAIN"), (8000, "RLE_DICTIONARY")])
def test_many_small_integers_have_a_dictionary(count: int, encoding: str) -> None:
    column = Column(name="ids", feature="", length=count, largest=999)
    content = written([column], [[[np.arange(count) % 1000]]])
    metadata = pyarrow.parquet.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0)
    assert ("RLE_DICTIONARY" in metadata.encodings) is (encoding == "RLE_DICTIONARY")
    assert metadata.compression == "ZSTD"


def test_sizes_in_the_metadata_are_those_of_the_file() -> None:
    columns = [Column(name=name, feature="", length=2, largest=largest) for name, largest in (("a", 1), ("b", None))]
    content = written(columns, [[[[0, 1]] * 50, [[0, 1.5]] * 50]] * 3)
    metadata = pyarrow.parquet.ParquetFile(io.BytesIO(content)).metadata
    groups = [metadata.row_group(n) for n in range(3)]
    assert sum(group.column(n).total_compressed_size for group in groups for n in range(2)) == (
        len(content) - metadata.serialized_size - 8 - len(MAGIC)
    )
    assert [group.num_rows for group in groups] == [50, 50, 50]
    assert groups[0].total_byte_size == sum(groups[0].column(n).total_uncompressed_size for n in range(2))
