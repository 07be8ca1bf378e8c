"""Compares what Parquet files and MDS shards say of themselves with their content.

Readers look only at what they need of it. Here it is written once more from the content, and both are compared, so that
no bit of it can be another one unseen.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.data_set import DataSet, ReadColumn
from maskmill.records.columns import Column
from maskmill.verification.row_results import Faults

_BLOCK_SAMPLES = 4096
_WORD = 4
_LARGEST = {"uint8": 255, "uint16": 65535, "int32": 1 << 30}
_AS_WRITTEN = "what follows from its content"


def check_layout(data_set: DataSet, ranges: ByteRanges, faults: Faults) -> None:
    """Checks the parts of a readable Parquet file or MDS shard that hold no rows.

    Args:
      data_set: its only file is the file; its columns have the types of the format.
      ranges: reads it.
      faults: takes what is wrong.
    """
    if data_set.format == "parquet":
        what = _wrong_in_parquet(data_set, ranges)
    elif data_set.format == "mds":
        what = _wrong_in_mds(data_set, ranges)
    else:
        return
    if what is not None:
        advice = "make or fetch the file again"
        faults.add("framing", "layout", None, _AS_WRITTEN, "something else", what, advice=advice)


def _written_columns(columns: Sequence[ReadColumn]) -> tuple[Column, ...]:
    """The columns as writers take them, as far as it shows in what a file says of itself."""
    written = (Column(name=c.name, feature=c.feature, length=None, largest=_LARGEST.get(c.dtype.name)) for c in columns)
    return tuple(sorted(written, key=lambda column: column.name))


# ---- Parquet


def _wrong_in_parquet(data_set: DataSet, ranges: ByteRanges) -> str | None:
    from maskmill.reading import parquet_pages
    from maskmill.reading.parquet import ParquetReader
    from maskmill.records import parquet_format as format
    from maskmill.records.thrift import read_struct

    path = data_set.files[0].path
    if ParquetReader.why_unchecked(path, ranges) is not None:
        return None  # its metadata are another program's matter
    size = ranges.size(path)
    if ranges.read(path, 0, len(format.MAGIC)).tobytes() != format.MAGIC:
        return "it does not start as a Parquet file does"
    metadata_size = parquet_pages.footer_size(ranges.read(path, size - parquet_pages.FOOTER_END, size).tobytes())
    end = size - parquet_pages.FOOTER_END - metadata_size
    footer = ranges.read(path, end, size).tobytes()
    fields, _ = read_struct(footer, 0)
    columns = _written_columns(data_set.columns)
    groups: list[tuple[int, int, list[Any]]] = []
    at = len(format.MAGIC)
    for group in fields[4]:
        start, chunks = at, []
        for entry in group[1]:
            stop = at + int(entry[3][7])
            chunk = _pages_of(ranges.read(path, at, stop).data) if at <= stop <= end else None
            if chunk is None:
                return f"the pages at byte {at:,} are not those that its metadata name"
            chunks.append(chunk)
            at += chunk.size
        groups.append((int(group[3]), start, chunks))
    if at != end or len(columns) != len(groups[0][2] if groups else columns):
        return "its row groups do not follow each other up to its metadata"
    expected = format.encode_footer(columns, groups)
    maker = fields.get(6, b"")
    ours = read_struct(expected, 0)[0][6]
    # Another version of pyarrow may have packed the pages.
    if expected.replace(ours, maker) != footer or not maker.startswith(b"maskmill with zstd of pyarrow "):
        return "its metadata are not those of its row groups and columns"
    return None


def _pages_of(chunk: memoryview) -> Any:
    """What the pages of a column of a row group come to (parquet_format.Chunk); None if they are not pages."""
    from maskmill.records import parquet_format as format
    from maskmill.records.thrift import read_struct

    at = values = uncompressed = 0
    dictionary_size = None
    while at < len(chunk):
        try:
            header, start = read_struct(chunk, at)
            plain, packed = int(header[2]), int(header[3])
            if header[1] == format.DICTIONARY_PAGE:
                if at:
                    return None
                dictionary_size = start - at + packed
            else:
                values += int(header[5][1])
        except (ValueError, KeyError, TypeError, IndexError):
            return None
        uncompressed += start - at + plain
        if packed < 0 or start + packed > len(chunk):
            return None
        at = start + packed
    return format.Chunk(values=values, size=len(chunk), uncompressed=uncompressed, dictionary_size=dictionary_size)


# ---- MDS


def _wrong_in_mds(data_set: DataSet, ranges: ByteRanges) -> str | None:
    path = data_set.files[0].path
    count = int(ranges.read(path, 0, _WORD).view("<u4")[0])
    head = _WORD * (count + 2)
    offsets = ranges.read(path, _WORD, head).view("<u4").astype(np.int64)
    config = ranges.read(path, head, int(offsets[0])).tobytes()
    if config not in _configs(data_set):
        return "what this shard says of its columns is not what follows from the data set"
    parts = len(data_set.columns)
    for first in range(0, count, _BLOCK_SAMPLES):
        places = offsets[first : first + _BLOCK_SAMPLES + 1]
        wrong = _first_misplaced(ranges.read(path, int(places[0]), int(places[-1])), places - places[0], parts)
        if wrong is not None:
            return f"the shard says that record {first + wrong + 1:,} ends elsewhere than it does"
    return None


def _configs(data_set: DataSet) -> list[bytes]:
    """What a shard may say of itself: with and without checksums in its index."""
    from maskmill.records.mds import mds_shard_entry

    columns = _written_columns(data_set.columns)
    configs = []
    for sha256 in ("", None):
        entry = mds_shard_entry(columns, "", 0, sha256, 0)
        said = {key: value for key, value in entry.items() if key not in ("raw_data", "samples", "zip_data")}
        configs.append(json.dumps(said, sort_keys=True).encode())
    return configs


def _first_misplaced(data: npt.NDArray[np.uint8], places: npt.NDArray[np.int64], parts: int) -> int | None:
    """The first sample of a block whose parts do not reach to where the next one starts."""
    heads = np.arange(_WORD * parts) + places[:-1, None]
    if (heads[:, -1] >= len(data)).any():
        return int(np.flatnonzero(heads[:, -1] >= len(data))[0])
    sizes = data[heads].view("<u4").sum(axis=1, dtype=np.int64) + _WORD * parts
    is_wrong = sizes != np.diff(places)
    return int(np.flatnonzero(is_wrong)[0]) if is_wrong.any() else None
