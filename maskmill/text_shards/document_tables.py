"""The table beside a text shard: for each of its documents the id, the title, and the columns of `metadata_columns`.

Text, numbers and booleans stay what they are, lists and objects become JSON text. A column has one type in all shards
of a build: the one that fits all its values, text if no other does.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.storage import files

NOTHING = "null"  # the type of a column without values

_INTEGERS = range(-(1 << 63), 1 << 63)


def types_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the type of each value of a row."""
    return {name: _type_of(value) for name, value in row.items()}


def joined(*columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of several tables, each with the type that fits all its values."""
    types: dict[str, set[str]] = {}
    for name, kind in (item for some in columns for item in some.items()):
        types.setdefault(name, set()).add(kind)
    names = sorted(types, key=lambda name: (name not in ("id", "title"), name))
    return {name: _common(types[name] - {NOTHING}) for name in names}


def _common(kinds: set[str]) -> str:
    if kinds == {"int64", "double"}:
        return "double"
    return "string" if len(kinds) > 1 else kinds.pop() if kinds else NOTHING


def _type_of(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64" if value in _INTEGERS else "string"
    return "double" if isinstance(value, float) else "string"


def packed(row: Mapping[str, Any]) -> bytes:
    """Return a row as a line; what no UTF-8 can hold becomes "?"."""
    return json.dumps(row, ensure_ascii=False, default=str).encode(errors="replace") + b"\n"


def unpacked(lines: bytes, numbers: npt.NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """Yield the rows of these numbers."""
    rows = lines.split(b"\n")
    return (json.loads(rows[number]) for number in numbers.tolist())


def write_table(path: str, columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> files.OutputFile:
    """Write the table of a shard; the same rows give the same bytes with the same version of pyarrow."""
    import pyarrow  # and the kernels of rows: no build without columns needs them

    from maskmill.records.parquet import SealedWriter

    rows = list(rows)
    arrays = {"document": pyarrow.array(range(1, len(rows) + 1), "int64")}
    for name, kind in columns.items():
        values = [row.get(name) for row in rows]
        if kind == "double":
            values = [None if v is None else float(v) for v in values]
        if kind == "string":
            values = [v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
        arrays[name] = pyarrow.array(values, "string" if kind == NOTHING else kind)
    table = pyarrow.table(arrays)
    writer = SealedWriter(table.schema)
    with files.new_file(path) as file:
        if len(rows):
            file.write(writer.group(table))
        file.write(writer.end())
    return file
