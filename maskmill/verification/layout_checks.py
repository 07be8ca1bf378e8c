"""Compares what MDS shards say of themselves with their content.

Readers look only at what they need of it. Here it is written once more from the content, and both are compared, so that
no bit of it can be another one unseen.
"""

import json
from collections.abc import Sequence

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
    """Checks the parts of a readable MDS shard that hold no rows.

    Args:
      data_set: its only file is the file; its columns have the types of the format.
      ranges: reads it.
      faults: takes what is wrong.
    """
    what = _wrong_in_mds(data_set, ranges) if data_set.format == "mds" else None
    if what is not None:
        advice = "make or fetch the file again"
        faults.add("framing", "layout", None, _AS_WRITTEN, "something else", what, advice=advice)


def _written_columns(columns: Sequence[ReadColumn]) -> tuple[Column, ...]:
    """The columns as writers take them, as far as it shows in what a file says of itself."""
    written = (Column(name=c.name, feature=c.feature, length=None, largest=_LARGEST.get(c.dtype.name)) for c in columns)
    return tuple(sorted(written, key=lambda column: column.name))


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
