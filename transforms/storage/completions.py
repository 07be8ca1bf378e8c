"""Records of finished pieces of work, one small JSON file each, so that a re-run skips these pieces.

A record lies at `<output>/.maskmill/<kind>/<key>.json`. The key is a fingerprint of everything that the piece depends
on: the checksums of its inputs, the parameters, the format version of the code. So a record under a piece's key is
always one of this piece. It is written once the piece's files are complete under their final names.
"""

import contextlib
import dataclasses
import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from transforms.storage import files
from transforms.storage.limits import one_shard_at_a_time, refuse_nesting

WORK_DIRECTORY = ".maskmill"

# The version of each step's output. Raise it when the output changes for the same inputs and parameters: the next run
# then rebuilds what the older code made.
FORMAT_VERSIONS: Mapping[str, int] = {
    "templates": 1, "extract": 2, "duplicates": 1, "clean": 1, "text": 1, "examples": 2
}  # fmt: skip
_FINGERPRINT_DIGITS = 32


def fingerprint(*parts: Any) -> str:
    """A 32-digit hexadecimal fingerprint of values that JSON can represent, or dataclasses of such values."""
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def canonical_json(value: Any, *, indent: int | None = None) -> str:
    """JSON with sorted keys, so that equal values give equal text.

    Raises:
      TypeError: a value is neither JSON's, nor a dataclass, nor an array or a scalar of NumPy.
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=indent, default=_plain)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def work_path(output: str, kind: str, name: str) -> str:
    """The path of a working file of the build into `output`."""
    return files.join(files.join(files.join(output, WORK_DIRECTORY), kind), name)


def write_table(output: str, kind: str, key: str, table: npt.NDArray[Any]) -> None:
    """Writes the array of a piece, of any shape and dtype, as `<key>.npy`."""
    content = io.BytesIO()
    np.save(content, table)
    files.write_bytes(work_path(output, kind, f"{key}.npy"), content.getvalue())


def read_table(output: str, kind: str, key: str) -> npt.NDArray[Any]:
    """The array that `write_table` has written.

    Raises:
      UnusableInputError: there is none.
    """
    table: npt.NDArray[Any] = np.load(io.BytesIO(files.read_bytes(work_path(output, kind, f"{key}.npy"))))
    return table


def load(output: str, kind: str, key: str) -> dict[str, Any] | None:
    """The record of a piece; None if the piece is not finished."""
    path = work_path(output, kind, f"{key}.json")
    if not files.exists(path):
        return None
    record: dict[str, Any] = json.loads(files.read_bytes(path))
    return record


def finished(output: str, kind: str, key: str) -> dict[str, Any]:
    """The record of a piece that a step before this one has finished.

    Raises:
      FileNotFoundError: there is no such record, although the step that writes it came before.
    """
    record = load(output, kind, key)
    if record is None:
        path = work_path(output, kind, f"{key}.json")
        raise FileNotFoundError(f"{path}: this completion record is missing, although its step is finished.")
    return record


def store(output: str, kind: str, key: str, record: Mapping[str, Any]) -> None:
    """Writes a piece's record, which marks it as finished. First all its files must have their final names."""
    files.write_bytes(work_path(output, kind, f"{key}.json"), canonical_json(record, indent=1).encode())


def is_intact(path: str, size: int, sha256: str, stored: str | None = None) -> bool:
    """Whether a file exists and has exactly this content.

    Args:
      path: the file.
      size, sha256: of the content, in bytes and in hexadecimal.
      stored: the object store's own checksum of the content, where it is known; then the file is not read.
    """
    if stored is not None:
        return files.stored_checksum(path) == stored
    return files.exists(path) and files.size(path) == size and files.sha256_of(path) == sha256


def renew(output: str, kind: str, key: str) -> None:
    """Gives the record of a piece that this run does not repeat the current time, so that its progress counts it.

    The time is a whole second, which tells the record from those of pieces that this run has made (`is_renewed`).
    """
    path = work_path(output, kind, f"{key}.json")
    if files.is_local(path):
        now = int(time.time())
        with contextlib.suppress(FileNotFoundError):  # another run's closing step may have swept it
            os.utime(path, (now, now))


def is_renewed(modified_ns: int) -> bool:
    """Whether `renew` has set this time of a record's last change, in nanoseconds."""
    return modified_ns % 1_000_000_000 == 0


def once(
    output: str,
    kind: str,
    key: str,
    make: Callable[[], dict[str, Any]],
    written: Callable[[dict[str, Any]], Iterable[tuple[str, int, str]]] = lambda record: (),
) -> dict[str, Any]:
    """The record of a piece that is finished, or that is made now, with no other one in this process.

    Pieces do not nest: `make` may not call `once`.

    Args:
      output, kind, key: where the record lies.
      make: makes the piece's files and returns its record.
      written: gives, for a record, the name, size and sha256 of each file below `output` that the piece consists of.
        A record counts only while all of these files are intact.

    Raises:
      RuntimeError: it is called inside the `make` of another piece, which holds the process's only slot.
    """
    refuse_nesting()
    record = load(output, kind, key)
    if record is not None:
        stored = record.get("stored", {})
        if all(is_intact(files.join(output, name), size, sha, stored.get(name)) for name, size, sha in written(record)):
            renew(output, kind, key)
            return record
    with one_shard_at_a_time():
        record = make()
    checksums = {name: files.stored_checksum(files.join(output, name)) for name, _, _ in written(record)}
    if any(checksums.values()):
        record |= {"stored": checksums}
    store(output, kind, key, record)
    return record
