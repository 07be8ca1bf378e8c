"""Records of finished pieces of work, one small JSON file each, so that a re-run skips these pieces.

A record lies at `<output>/.maskmill/<kind>/<key>.json`; a piece may have a table beside it, `<key>.npy`. The key is a
fingerprint of everything that the piece depends on: the checksums of its inputs, the parameters, the format version of
the code. A record is written once the piece's files are complete under their final names.

Records and tables are a cache, and disks, copies and editors damage caches. So each carries its kind, its key and a
checksum over all three; one that is damaged, cut or copied over another's counts as missing. `once` looks at a piece's
record, table and files before it believes any of them, and makes the piece again where one does not fit. It leaves a
note of what it made again and why, which storage/outcomes.py reads when the run is over.
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
# then rebuilds what the older code made.
FORMAT_VERSIONS: Mapping[str, int] = {
    "templates": 3, "punkt": 1, "extract": 9, "duplicates": 1, "clean": 2, "text": 1, "examples": 3,
    "word_counts": 2, "merged_counts": 1, "vocabulary": 2, "vocabulary_report": 1
}  # fmt: skip
# The version of the records and tables themselves. It is part of every key, so those of other versions are not found.
_RECORD_VERSION = 2
_FINGERPRINT_DIGITS = 32

REMADE = "remade"  # the kind of the notes of pieces that were made again
RUN = "run"  # the kind of what a run keeps of itself
_STORED = "stored"  # in a record: the store's own checksums of the piece's files
TITLES = "titles"  # of the first documents that are left out, by the name under which they are counted


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
    """Return the path of a working file of the build into `output`."""
    return files.join(output, work_name(kind, name))


def work_name(kind: str, name: str) -> str:
    """Return the name of a working file below the directory of its build; `kind` is empty for the claim."""
    return f"{WORK_DIRECTORY}/{kind}/{name}" if kind else f"{WORK_DIRECTORY}/{name}"


def _digest(kind: str, key: str, content: bytes | memoryview = b"") -> "hashlib._Hash":
    """Return what a record or table carries: the sha256 of its kind, its key and its content."""
    digest = hashlib.sha256(f"{kind}/{key}\n".encode())
    digest.update(content)
    return digest


def sealed_json(kind: str, key: str, record: Any) -> bytes:
    """Return the content of a JSON file that carries its kind, its key and its checksum; `unsealed_json` reads it."""
    checksum = _digest(kind, key, canonical_json(record).encode()).hexdigest()
    return canonical_json({"kind": kind, "key": key, "record": record, "sha256": checksum}, indent=1).encode()


def unsealed_json(kind: str, key: str, content: bytes) -> Any:
    """Return what `sealed_json` has sealed; None if a single byte is not as it was written, or the file is
    another's.
    """
    try:
        record = json.loads(content)["record"]
        return record if content == sealed_json(kind, key, record) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def seal_of_table(kind: str, key: str, content: bytes | memoryview) -> bytes:
    """Return the end of a table's file, after what np.save writes: a line with its kind, its key and its checksum."""
    return _seal(kind, key, _digest(kind, key, content).hexdigest())


def _seal(kind: str, key: str, checksum: str) -> bytes:
    return f"\n{kind}/{key} {checksum}\n".encode()


def is_sealed_table(kind: str, key: str, sealed: bytes) -> bool:
    """Return whether a table's file, which np.load reads, is just as it was written, and this piece's."""
    end = max(0, len(sealed) - len(seal_of_table(kind, key, b"")))
    return sealed[end:] == seal_of_table(kind, key, memoryview(sealed)[:end])


def _read(path: str) -> bytes | None:
    """Return the content of a file below the work directory; None if there is no such file."""
    return files.read_if_there(path)


def write_table(output: str, kind: str, key: str, table: "npt.NDArray[Any]") -> None:
    """Write the array of a piece, of any shape and dtype, as `<key>.npy`."""
    import numpy as np

    with files.new_file(work_path(output, kind, f"{key}.npy"), checksum=False) as file:
        digest = _digest(kind, key)

        def write(block: bytes) -> None:
            digest.update(block)
            file.write(block)

        np.save(types.SimpleNamespace(write=write), table)
        file.write(_seal(kind, key, digest.hexdigest()))


def read_table(output: str, kind: str, key: str) -> "npt.NDArray[Any]":
    """Return the array that `write_table` has written for a piece which `once` found finished, or made, in this run.

    Raises:
      RunFailedError: since then it was deleted or damaged.
    """
    import numpy as np

    path = work_path(output, kind, f"{key}.npy")
    sealed = _read(path)
    if sealed is None or not is_sealed_table(kind, key, sealed):
        raise lost_meanwhile(path)
    table: npt.NDArray[Any] = np.load(io.BytesIO(sealed))
    return table


def lost_meanwhile(path: str) -> RunFailedError:
    """Return the error for a working file which `once` found, or made, in this run, and which does not fit any more."""
    return RunFailedError(
        f"{path}: this working file was deleted or damaged while the run needed it; run the same command again, it "
        "makes the file again."
    )


def load(output: str, kind: str, key: str) -> dict[str, Any] | None:
    """Return the record of a piece; None if the piece is not finished or its record is damaged."""
    content = _read(work_path(output, kind, f"{key}.json"))
    return None if content is None else unsealed_json(kind, key, content)


def keys(output: str, kind: str) -> list[str]:
    """Return the keys of all records of a kind that are there, damaged ones too."""
    found = files.list_directory(work_path(output, kind, "").rstrip("/"), "*.json")
    return [files.base_name(path).removesuffix(".json") for path in found]


def all_keys(output: str) -> dict[str, list[str]]:
    """Return the keys of the records of all kinds of pieces, as `keys` gives them."""
    with files.remembering(output):
        return {kind: keys(output, kind) for kind in FORMAT_VERSIONS}


def finished(output: str, kind: str, key: str) -> dict[str, Any]:
    """Return the record of a piece which `once` found finished, or made, in this run.

    Raises:
      RunFailedError: since then it was deleted or damaged.
    """
    record = load(output, kind, key)
    if record is None:
        raise lost_meanwhile(work_path(output, kind, f"{key}.json"))
    return record


def all_finished(output: str, kind: str, wanted: Iterable[str]) -> list[dict[str, Any]]:
    """Return the records of pieces, as `finished` gives them, by their keys in order."""
    return files.each(output, lambda key: finished(output, kind, key), wanted)


def store(output: str, kind: str, key: str, record: Mapping[str, Any]) -> None:
    """Write a piece's record, which marks it as finished. First all its files must have their final names."""
    files.write_bytes(work_path(output, kind, f"{key}.json"), sealed_json(kind, key, record))


def is_intact(path: str, size: int, sha256: str, stored: str | None = None) -> bool:
    """Return whether a file exists and has exactly this content.

    Args:
      path: the file.
      size, sha256: of the content, in bytes and in hexadecimal.
      stored: the object store's own checksum of the content, where it is known; then the file is not read.
    """
    if stored is not None:
        return files.stored_checksum(path) == stored
    return files.exists(path) and files.size(path) == size and files.sha256_of(path) == sha256


def note_remade(output: str, kind: str, key: str, name: str, reason: str) -> None:
    """Notes that a piece is made again, for the summary of the run (storage/outcomes.py).

    Args:
      output, kind, key: where the piece's record lies.
      name: what a user calls the piece.
      reason: a clause such as "its content had changed".
    """
    store(output, REMADE, f"{kind}-{key}", {"kind": kind, "key": key, "name": name, "reason": reason})


def renew(output: str, kind: str, key: str) -> None:
    """Give the record of a piece that this run does not repeat the current time, so that its progress counts it.

    The time is a whole second, which tells the record from those of pieces that this run has made (`is_renewed`).
    """
    path = work_path(output, kind, f"{key}.json")
    if files.is_local(path):
        now = int(time.time())
        with contextlib.suppress(FileNotFoundError):  # another run's closing step may have swept it
            os.utime(path, (now, now))


def is_renewed(modified_ns: int) -> bool:
    """Return whether `renew` has set this time of a record's last change, in nanoseconds."""
    return modified_ns % 1_000_000_000 == 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class PieceFiles:
    """The files that a piece consists of, beside its record. Each is a name below `output`, a size and a sha256.

    written: must be there and intact. cached: may be gone; where they are there, they must be intact. has_table: there
    is a table of the piece's key, which must be intact.
    """

    written: Sequence[tuple[str, int, str]] = ()
    cached: Sequence[tuple[str, int, str]] = ()
    has_table: bool = False


def once(
    output: str,
    kind: str,
    key: str,
    make: Callable[[], dict[str, Any]],
    files_of: Callable[[dict[str, Any]], PieceFiles] = lambda record: PieceFiles(),
    *,
    name: str = "",
) -> dict[str, Any]:
    """Return the record of a piece that is finished, or that is made now.

    One piece computes at a time in this process (turns.py).

    A record counts only while it is intact itself and so are all files of its piece. Pieces do not nest: `make` may
    not call `once`.

    Args:
      output, kind, key: where the record lies.
      make: makes the piece's files and returns its record.
      files_of: gives, for a record, the files that the piece consists of.
      name: what a user calls the piece, for the note if it is made again.

    Raises:
      RuntimeError: it is called inside the `make` of another piece, which holds the process's only slot.
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
        # Before it is made, so that no run which fails meanwhile loses the note.
        note_remade(output, kind, key, name or key, reason)
    with turns.taken():
        record = make()
    if not files.is_local(output):
        piece, written = files_of(record), files.store_of(output).written
        names = [name for name, _, _ in (*piece.written, *piece.cached)]
        checksums = {name: written.get(files.join(output, name), "") for name in names}
        record[_STORED] = {name: checksum for name, checksum in checksums.items() if checksum}
    store(output, kind, key, record)
    return record


def _unfit(output: str, kind: str, key: str, record: Mapping[str, Any], piece: PieceFiles, name: str) -> str | None:
    """Return why the files of a piece do not fit its record: a clause for its note; None if they do."""
    known = record.get(_STORED, {})
    for file, size, sha256 in (*piece.written, *piece.cached):
        path, base = files.join(output, file), files.base_name(file)
        if not is_intact(path, size, sha256, known.get(file)):
            if files.exists(path):
                return "its content had changed" if base == name else f"the content of {base} had changed"
            if (file, size, sha256) in piece.written:
                return "it was gone" if base == name else f"{base} was gone"
    if piece.has_table:
        sealed = _read(work_path(output, kind, f"{key}.npy"))
        if sealed is None:
            return "its table was gone"
        if not is_sealed_table(kind, key, sealed):
            return "its table was damaged"
    return None
