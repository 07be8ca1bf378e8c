"""Compares a file with what its manifest says: that it is there, its size, its checksum, its index."""

import dataclasses
import hashlib
import tempfile
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges, ForwardRanges
from maskmill.reading.record_indexes import parse_index
from maskmill.verification.findings import Checked, finding, joined, looked, skipped, told
from maskmill.verification.pieces import Piece, PieceResult

_DO = "fetch or make it again"
_READ_BYTES = 8 << 20


def check_file(piece: Piece, ranges: ByteRanges) -> PieceResult:
    """Checks that a file is there, and has the size and the checksum of the manifest."""
    path, expected = piece.path, piece.expected
    result = PieceResult(piece=piece)
    try:
        size = ranges.size(path)
        digest = ranges.sha256_of(path)
    except MissingFileError:
        why = "is in the manifest" if expected.size is not None or expected.sha256 is not None else "was named"
        what = f"this file {why}, but it is not there; {_DO}"
        return result.plus(looked("missing", finding("missing", path, "a file", "nothing", what)))
    except (UnusableInputError, RunFailedError) as error:
        found = told("missing", path, "a file that can be read", "an error", str(error))
        return result.plus(looked("missing", found))
    result = dataclasses.replace(result, size=size, sha256=digest, looked_at={"missing": 1})
    if expected.size is not None:
        findings = []
        if size != expected.size:
            how = "is cut off" if size < expected.size else "goes on behind its end"
            what = (
                f"this file has {size:,} bytes, but the manifest says {expected.size:,}: it {how}, or is another one; "
                f"{_DO}"
            )
            findings.append(finding("size", path, f"{expected.size:,}", f"{size:,}", what))
        result = result.plus(looked("size", *findings))
    if expected.sha256 is None:
        return result
    if expected.size not in (None, size):
        return result.plus(skipped("files of another size have another content", "sha256"))
    findings = []
    if digest != expected.sha256:
        what = f"the content of this file is not what was written (another sha256 than in the manifest); {_DO}"
        findings.append(finding("sha256", path, expected.sha256, digest, what))
    return result.plus(looked("sha256", *findings))


def check_index(piece: Piece, ranges: ByteRanges, starts: npt.NDArray[np.int64] | None) -> Checked:
    """Checks that the index of TFRecords is that of the manifest, and names the places of the records.

    starts: where the records start, and where the last one ends; None: the file is damaged.
    """
    index = piece.expected.index
    if index is None or piece.format != "tfrecord":
        return Checked()
    path, do = piece.path, f"run `maskmill index {piece.path}`"
    try:
        content = ranges.read_all(index)
        told_starts = parse_index(content, 1)
    except MissingFileError:
        what = f"this index is in the manifest, but it is not there; {do}"
        return looked("missing", finding("missing", index, "a file", "nothing", what))
    except (UnusableInputError, RunFailedError) as error:
        return looked("index", told("index", index, "an index", "an error", str(error)))
    findings = []
    wanted = piece.expected.index_sha256
    if wanted is not None and (digest := hashlib.sha256(content).hexdigest()) != wanted:
        what = f"this index is not the one of the manifest (another sha256); {do}"
        findings.append(finding("index", index, wanted, digest, what))
    if starts is None:
        return joined([looked("index", *findings), skipped("a file is damaged", "index")])
    if told_starts is None:
        what = f"this is no index (lines of two numbers, where a record starts and its bytes); {do}"
        findings.append(finding("index", index, "lines of two numbers", "others", what))
    elif not np.array_equal(told_starts.starts, starts):
        count = min(len(told_starts.starts), len(starts))
        differs = np.flatnonzero(told_starts.starts[:count] != starts[:count])
        place = int(differs[0]) if len(differs) else count
        is_said, is_so = (
            f"{int(found[place]):,}" if place < len(found) else "the end" for found in (told_starts.starts, starts)
        )
        what = f"record {place + 1:,} of {path} starts at byte {is_so}, and the index says {is_said}; {do}"
        findings.append(finding("index", index, is_so, is_said, what, at=("line", max(1, place))))
    return looked("index", *findings)


class CopiedFile(ForwardRanges):
    """Reads one remote file from a temporary copy of it, and all others from where they are.

    The copy is made at the first read, and deleted when this is closed.
    """

    def __init__(self, path: str, ranges: ByteRanges) -> None:
        """Fetches nothing yet.

        Args:
          path: of the file that is copied.
          ranges: reads it and the others; it stays open when this is closed.
        """
        super().__init__(ranges)
        self._path = path
        self._copy: BinaryIO | None = None

    def read(self, path: str, start: int, end: int) -> npt.NDArray[np.uint8]:
        size = self.size(path) if path == self._path else 0
        if end > size:
            return super().read(path, start, end)
        if self._copy is None:
            self._copy = self._fetched(size)
        data = np.empty(end - start, np.uint8)
        self._copy.seek(start)
        data[:] = np.frombuffer(self._copy.read(end - start), np.uint8)
        return data

    def _fetched(self, size: int) -> BinaryIO:
        copy = cast(BinaryIO, tempfile.TemporaryFile(prefix="maskmill-verify-"))  # noqa: SIM115 - close() closes it
        for start in range(0, size, _READ_BYTES):
            copy.write(super().read(self._path, start, min(size, start + _READ_BYTES)).data)
        copy.flush()
        return copy

    def read_all(self, path: str) -> bytes:
        return self.read(path, 0, self.size(path)).tobytes() if path == self._path else super().read_all(path)

    def close(self) -> None:
        super().close()
        if self._copy is not None:
            self._copy.close()
