"""Records of finished work items, one small JSON file each, so that a re-run skips these items.

A record is at `<output>/.maskmill/<kind>/<key>.json`; an item may have a table beside it, `<key>.npy`. The key is a
fingerprint of all that the item depends on: the checksums of its inputs, the parameters, the format version of the
code. The record is written after the item's files are complete under their final names.

Records and tables are a cache, and disks, copies and editors damage caches. So each contains its kind, its key and a
checksum over all three; one that is damaged, cut or copied over another's counts as missing. `once` checks an item's
record, table and files before it uses any of them, and makes the item again if one does not fit. It notes the item and
the reason, and storage/outcomes.py reads the notes at the end of the run.
"""

import contextlib
import dataclasses
import hashlib
import io
import json
import os
import time
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from maskmill.errors import RunFailedError
from maskmill.storage import files, turns

if TYPE_CHECKING:
    import numpy.typing as npt

WORK_DIRECTORY = ".maskmill"

# The version of each step's output. Raise it when the output changes for the same inputs and parameters: the next run
# then rebuilds the output of older code.
FORMAT_VERSIONS: Mapping[str, int] = {
    "templates": 3, "punkt": 1, "extract": 9, "duplicates": 1, "clean": 2, "text": 1, "examples": 3,
    "word_counts": 2, "merged_counts": 1, "vocabulary": 2, "vocabulary_report": 1
}  # fmt: skip
# The version of the records and tables themselves. It is part of every key, so those of other versions are not found.
_RECORD_VERSION = 2
_FINGERPRINT_DIGITS = 32

REMADE = "remade"  # the kind of the notes of items that were made again
RUN = "run"  # the kind of the records of a run itself, such as its timings
_STORED = "stored"  # in a record: the store's own checksums of the item's files
TITLES = "titles"  # in a record: the titles of the first dropped documents, by the name of their count


def fingerprint(*parts: Any) -> str:
    """Return a 32-digit hexadecimal fingerprint of values that JSON can represent, or dataclasses of such values."""
    return hashlib.sha256(canonical_json([_RECORD_VERSION, *parts]).encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def canonical_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON with sorted keys, so that equal values give equal text.

    Raises:
      TypeError: a value is neither JSON's, nor a dataclass, nor an array or a scalar of NumPy.
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=indent, default=_plain)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.compare}
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def work_path(output: str, kind: str, name: str) -> str:
    """Return the path of a working file of the build into `output`; see `work_name`."""
    return files.join(output, work_name(kind, name))


def work_name(kind: str, name: str) -> str:
    """Return the path of a working file below the output directory; kind: "" for the claim."""
    return f"{WORK_DIRECTORY}/{kind}/{name}" if kind else f"{WORK_DIRECTORY}/{name}"


def _digest(kind: str, key: str, content: bytes | memoryview = b"") -> "hashlib._Hash":
    """Return the sha256 of a record's or table's kind, key and content, which the file contains."""
    digest = hashlib.sha256(f"{kind}/{key}\n".encode())
    digest.update(content)
    return digest


def sealed_json(kind: str, key: str, record: Any) -> bytes:
    """Return the content of a JSON file with the record, its kind, key and checksum; `unsealed_json` reads it."""
    checksum = _digest(kind, key, canonical_json(record).encode()).hexdigest()
    return canonical_json({"kind": kind, "key": key, "record": record, "sha256": checksum}, indent=1).encode()


def unsealed_json(kind: str, key: str, content: bytes) -> Any:
    """Return the record of `sealed_json`; None if a byte has changed, or if the file is of another kind or key."""
    try:
        record = json.loads(content)["record"]
        return record if content == sealed_json(kind, key, record) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def seal_of_table(kind: str, key: str, content: bytes | memoryview) -> bytes:
    """Return the last line of a table's file, after the output of np.save: its kind, key and checksum."""
    return _seal(kind, key, _digest(kind, key, content).hexdigest())


def _seal(kind: str, key: str, checksum: str) -> bytes:
    return f"\n{kind}/{key} {checksum}\n".encode()


def is_sealed_table(kind: str, key: str, sealed: bytes) -> bool:
    """Return whether the content of a table's file is unchanged and of this kind and key."""
    end = max(0, len(sealed) - len(seal_of_table(kind, key, b"")))
    return sealed[end:] == seal_of_table(kind, key, memoryview(sealed)[:end])


def _read(path: str) -> bytes | None:
    """Return the content of a file below the work directory; None if there is no such file."""
    return files.read_if_there(path)


def write_table(output: str, kind: str, key: str, table: "npt.NDArray[Any]") -> None:
    """Write the array of an item, of any shape and dtype, as `<key>.npy`."""
    import numpy as np

    with files.new_file(work_path(output, kind, f"{key}.npy"), checksum=False) as file:
        digest = _digest(kind, key)

        def write(block: bytes) -> None:
            digest.update(block)
            file.write(block)

        np.save(types.SimpleNamespace(write=write), table)
        file.write(_seal(kind, key, digest.hexdigest()))


def read_table(output: str, kind: str, key: str) -> "npt.NDArray[Any]":
    """Return the array that `write_table` wrote, of an item that `once` found or made in this run.

    Raises:
      RunFailedError: it was deleted or damaged since.
    """
    import numpy as np

    path = work_path(output, kind, f"{key}.npy")
    sealed = _read(path)
    if sealed is None or not is_sealed_table(kind, key, sealed):
        raise lost_meanwhile(path)
    table: npt.NDArray[Any] = np.load(io.BytesIO(sealed))
    return table


def lost_meanwhile(path: str) -> RunFailedError:
    """Return the error for a working file that was lost or damaged after `once` found or made it in this run."""
    return RunFailedError(
        f"{path}: this working file was deleted or damaged while the run needed it; run the same command again, it "
        "makes the file again."
    )


def load(output: str, kind: str, key: str) -> dict[str, Any] | None:
    """Return the record of an item; None if the item is not finished or its record is damaged."""
    content = _read(work_path(output, kind, f"{key}.json"))
    return None if content is None else unsealed_json(kind, key, content)


def keys(output: str, kind: str) -> list[str]:
    """Return the keys of all records of a kind, damaged ones included."""
    found = files.list_directory(work_path(output, kind, "").rstrip("/"), "*.json")
    return [files.base_name(path).removesuffix(".json") for path in found]


def all_keys(output: str) -> dict[str, list[str]]:
    """Return the keys of the records of all kinds of items, by kind; see `keys`."""
    with files.remembering(output):
        return {kind: keys(output, kind) for kind in FORMAT_VERSIONS}


def finished(output: str, kind: str, key: str) -> dict[str, Any]:
    """Return the record of an item that `once` found or made in this run.

    Raises:
      RunFailedError: it was deleted or damaged since.
    """
    record = load(output, kind, key)
    if record is None:
        raise lost_meanwhile(work_path(output, kind, f"{key}.json"))
    return record


def all_finished(output: str, kind: str, item_keys: Iterable[str]) -> list[dict[str, Any]]:
    """Return the records of items, in the order of their keys; see `finished`."""
    return files.each(output, lambda key: finished(output, kind, key), item_keys)


def store(output: str, kind: str, key: str, record: Mapping[str, Any]) -> None:
    """Write an item's record, which marks the item as finished; call it when all its files have their final names."""
    files.write_bytes(work_path(output, kind, f"{key}.json"), sealed_json(kind, key, record))


def is_intact(path: str, size: int, sha256: str, stored: str | None = None) -> bool:
    """Return whether a file exists and has exactly this content.

    Args:
      path: the file.
      size, sha256: of the content, in bytes and in hexadecimal.
      stored: the object store's own checksum of the content, if known; then the file is not read.
    """
    if stored is not None:
        return files.stored_checksum(path) == stored
    return files.exists(path) and files.size(path) == size and files.sha256_of(path) == sha256


def note_remade(output: str, kind: str, key: str, name: str, reason: str) -> None:
    """Note that an item is made again, for the summary of the run (storage/outcomes.py).

    Args:
      output, kind, key: of the item's record.
      name: of the item in the summary.
      reason: a clause such as "its content had changed".
    """
    store(output, REMADE, f"{kind}-{key}", {"kind": kind, "key": key, "name": name, "reason": reason})


def renew(output: str, kind: str, key: str) -> None:
    """Set the modification time of the record of an item that was found finished, so that progress counts it.

    The time is a whole second, which distinguishes it from records that this run has written (`is_renewed`).
    """
    path = work_path(output, kind, f"{key}.json")
    if files.is_local(path):
        now = int(time.time())
        with contextlib.suppress(FileNotFoundError):  # another run's closing step may have swept it
            os.utime(path, (now, now))


def is_renewed(modified_ns: int) -> bool:
    """Return whether `renew` has set a record's modification time, in nanoseconds."""
    return modified_ns % 1_000_000_000 == 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ItemFiles:
    """The files of a work item, beside its record. Each is a name below `output`, a size and a sha256.

    written: must exist and be intact. cached: may be missing, but if they exist, they must be intact. has_table: the
    item has a table, which must be intact.
    """

    written: Sequence[tuple[str, int, str]] = ()
    cached: Sequence[tuple[str, int, str]] = ()
    has_table: bool = False


def once(
    output: str,
    kind: str,
    key: str,
    make: Callable[[], dict[str, Any]],
    files_of: Callable[[dict[str, Any]], ItemFiles] = lambda record: ItemFiles(),
    *,
    name: str = "",
) -> dict[str, Any]:
    """Return the record of a work item; make the item if it is not finished.

    One item computes at a time in this process (turns.py).

    A record is valid only while itself and all files of its item are intact. Items do not nest: `make` must not call
    `once`.

    Args:
      output, kind, key: of the record.
      make: makes the item's files and returns its record.
      files_of: returns the files of the item, given its record.
      name: of the item in the summary, if it is made again.

    Raises:
      RuntimeError: `make` of another item called this, and holds the process's only slot.
    """
    turns.refuse_nesting()
    path = work_path(output, kind, f"{key}.json")
    content = _read(path)
    if content is not None:
        record = unsealed_json(kind, key, content)
        reason = (
            "its record was damaged" if record is None else _unfit(output, kind, key, record, files_of(record), name)
        )
        if reason is None:
            renew(output, kind, key)
            return cast(dict[str, Any], record)
        # Before the item is made, so that the note survives if the run fails meanwhile.
        note_remade(output, kind, key, name or key, reason)
    with turns.taken():
        record = make()
    if not files.is_local(output):
        item, written = files_of(record), files.store_of(output).written
        names = [name for name, _, _ in (*item.written, *item.cached)]
        checksums = {name: written.get(files.join(output, name), "") for name in names}
        record[_STORED] = {name: checksum for name, checksum in checksums.items() if checksum}
    store(output, kind, key, record)
    return record


def _unfit(output: str, kind: str, key: str, record: Mapping[str, Any], item: ItemFiles, name: str) -> str | None:
    """Return a clause that says why the files of an item do not fit its record; None if they do."""
    known = record.get(_STORED, {})
    for file, size, sha256 in (*item.written, *item.cached):
        path, base = files.join(output, file), files.base_name(file)
        if not is_intact(path, size, sha256, known.get(file)):
            if files.exists(path):
                return "its content had changed" if base == name else f"the content of {base} had changed"
            if (file, size, sha256) in item.written:
                return "it was gone" if base == name else f"{base} was gone"
    if item.has_table:
        sealed = _read(work_path(output, kind, f"{key}.npy"))
        if sealed is None:
            return "its table was gone"
        if not is_sealed_table(kind, key, sealed):
            return "its table was damaged"
    return None
