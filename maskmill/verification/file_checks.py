"""Compare a file with its manifest: its existence, its size, its checksum, its index."""

import dataclasses
import hashlib
import tempfile
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges, ForwardRanges
from maskmill.verification.findings import Checked, finding, ran, skipped
from maskmill.verification.work_items import ItemResult, WorkItem

_DO = "fetch or make it again"
_READ_BYTES = 8 << 20


def check_file(item: WorkItem, ranges: ByteRanges) -> ItemResult:
    """Check that a file exists, and has the size and the checksum of the manifest."""
    path, expected = item.path, item.expected
    result = ItemResult(item=item)
    try:
        size, digest = ranges.size(path), ranges.sha256_of(path)
    except MissingFileError:
        why = "is in the manifest" if expected.size is not None or expected.sha256 is not None else "was named"
        return result.plus(ran("missing", finding("missing", path, f"this file {why}, but it is not there; {_DO}")))
    except (UnusableInputError, RunFailedError) as error:
        return result.plus(ran("missing", finding("missing", path, str(error))))
    result = dataclasses.replace(result, size=size, sha256=digest, looked_at={"missing": 1})
    if expected.size not in (None, size):
        what = f"this file has {size:,} bytes, but the manifest says {expected.size:,}: it is cut off or another; {_DO}"
        result = result.plus(ran("size", finding("size", path, what)))
        return result.plus(skipped("files of another size have another content", "sha256"))
    if expected.size is not None:
        result = result.plus(ran("size"))
    if expected.sha256 is None:
        return result
    what = f"the content of this file is not what was written (another sha256 than in the manifest); {_DO}"
    return result.plus(ran("sha256", *([finding("sha256", path, what)] if digest != expected.sha256 else [])))


def check_index(item: WorkItem, ranges: ByteRanges) -> Checked:
    """Check that the index of TFRecords, or the table of a text shard's documents, is that of the manifest."""
    index, expected = item.expected.index, item.expected.index_sha256
    if index is None:
        return Checked()
    do = _DO if item.kind == "text" else f"run `maskmill index {item.path}`"
    try:
        content = ranges.read_all(index)
    except MissingFileError:
        return ran("missing", finding("missing", index, f"this index is in the manifest, but it is not there; {do}"))
    except (UnusableInputError, RunFailedError) as error:
        return ran("index", finding("index", index, str(error)))
    if hashlib.sha256(content).hexdigest() == expected:
        return ran("index")
    return ran("index", finding("index", index, f"this index is not the one of the manifest (another sha256); {do}"))


class CopiedFile(ForwardRanges):
    """Read one remote file from a temporary copy, and all others directly."""

    def __init__(self, path: str, ranges: ByteRanges) -> None:
        """Take the path of the file, which the first read copies, and the ranges, which `close` leaves open."""
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
