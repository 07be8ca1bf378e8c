"""Write, read, verify and index TFRecord files, whatever their records hold.

Files may be gzipped, whatever their name. Source of the format: tensorflow/core/lib/io/record_writer.h.
"""

import dataclasses
import gzip
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.kernels.crc32c import masked_crc32c
from maskmill.records.kernels import frames as kernels
from maskmill.storage import files

_BLOCK_BYTES = 4 << 20
_BLOCK_RECORDS = 1 << 16
_MOST_RECORD_BYTES = 1 << 31  # TensorFlow itself reads no larger protocol buffer
_GZIP_MAGIC = b"\x1f\x8b\x08"
_OTHER_PACKINGS = {b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class WrittenFile:
    """A file that was written; `sha256` is None if no checksum was computed."""

    path: str
    size: int
    sha256: str | None


@dataclasses.dataclass(frozen=True)
class RecordBlock:
    """Records with their frames, one after the other.

    data: the bytes of all. sizes: int64[records], the bytes of each, its frame included.
    """

    data: memoryview
    sizes: npt.NDArray[np.int64]


def write_tfrecord(
    path: str, blocks: Iterable[RecordBlock], *, index: bool, packed: bool, checksum: bool
) -> list[WrittenFile]:
    """Write records to a TFRecord file and, with `index`, their index to `PATH.idx`; see `index_tfrecord`.

    Args:
      path: the file.
      blocks: the records; each block is written before the next one is asked for.
      index: whether to write the index.
      packed: gzip the records, not the index.
      checksum: compute the files' sha256 while they are written.

    Returns:
      The files written.

    Raises:
      RunFailedError: a file cannot be written.
    """
    lines: list[bytes] = []
    offset = 0
    with files.new_file(path, checksum=checksum, packed=packed) as file:
        for block in blocks:
            file.write(block.data)
            if index:
                lines.append(_index_lines(block.sizes, offset))
            offset += len(block.data)
    written = [written_file(file, checksum)]
    if index:
        with files.new_file(f"{path}.idx", checksum=checksum) as file:
            file.write(b"".join(lines))
        written.append(written_file(file, checksum))
    return written


def read_records(path: str) -> Iterator[bytes]:
    """Yield the data of each record of a TFRecord file, gzipped or not.

    Raises:
      UnusableInputError: the file is missing, truncated, damaged or no TFRecord; each checksum is verified.
      RunFailedError: reading fails after the file was opened.
    """
    for run in _runs(path):
        for start, size in zip(run.starts.tolist(), run.sizes.tolist(), strict=True):
            yield run.data[start : start + size].tobytes()


def count_records(path: str) -> int:
    """Return the number of records of a TFRecord file; see `read_records`."""
    return sum(len(run.starts) for run in _runs(path))


def index_tfrecord(path: str, output: str, *, checksum: bool = True) -> WrittenFile:
    """Write a file's index: a line "offset size" for each record, its frame included, as DALI's tfrecord2idx does.

    Raises:
      UnusableInputError: the file is missing, empty, packed, truncated, damaged or no TFRecord; each checksum is
        verified.
      RunFailedError: reading fails after the file was opened, or the index cannot be written.
    """
    check_indexable(path)
    with files.new_file(output, checksum=checksum) as file:
        for run in _runs(path):
            file.write(_index_lines(run.sizes + kernels.FRAME, run.offset))
    return written_file(file, checksum)


def check_indexable(path: str) -> None:
    """Raise UnusableInputError for a file that no index can serve: packed bytes cannot be read from an offset.

    Raises:
      UnusableInputError: the file is missing, empty or packed.
    """
    with files.open_input(path) as raw:
        if not raw.read(1):
            raise UnusableInputError(f"{path}: this file is empty; it has no record to index.")
        raw.seek(0)
        if unpacked(raw, path) is not raw:
            raise UnusableInputError(
                f"{path}: this TFRecord is packed with gzip, and an index is of use only for one that is not; "
                "unpack it first."
            )


def frame(record: bytes) -> bytes:
    """Return a record with its frame: its length, its data, and the checksums of both."""
    length = struct.pack("<Q", len(record))
    checksums = [
        struct.pack("<I", masked_crc32c(np.frombuffer(bytearray(part), np.uint8), 0, len(part)))
        for part in (length, record)
    ]
    return length + checksums[0] + record + checksums[1]


def written_file(file: files.OutputFile, checksum: bool) -> WrittenFile:
    """Return the description of a file that was written; checksum: whether one was computed."""
    return WrittenFile(path=file.path, size=file.size, sha256=file.sha256 if checksum else None)


def _index_lines(sizes: npt.NDArray[np.int64], offset: int) -> bytes:
    """Return the index of records of these sizes, frames included, of which the first starts at `offset`."""
    lines = np.empty(len(sizes) * kernels.INDEX_LINE, np.uint8)
    return lines[: kernels.index_lines(sizes, len(sizes), offset, lines)].tobytes()


@dataclasses.dataclass(frozen=True)
class RecordRun:
    """Consecutive records of a file.

    offset: the start of the first in the file, unpacked. data: uint8. starts, sizes: int64[records]; the data of record
    k, without its frame, is data[starts[k] : starts[k] + sizes[k]].
    """

    offset: int
    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]


def _runs(path: str) -> Iterator[RecordRun]:
    """Yield all records of a file; a run is valid until the next one is asked for."""
    with files.open_input(path, 0, files.TO_THE_END) as raw:
        yield from record_runs(unpacked(raw, path), path)


def record_runs(file: BinaryIO, path: str, block_bytes: int | None = None) -> Iterator[RecordRun]:
    """Yield all records of an open file; a run is valid until the next one is asked for.

    Args:
      file: the records, unpacked.
      path: the name of the file in messages.
      block_bytes: the bytes to read at a time; None: some megabytes.

    Raises:
      UnusableInputError: the file is truncated, damaged or no TFRecord; each checksum is verified.
    """
    starts = np.empty(_BLOCK_RECORDS, np.int64)
    sizes = np.empty(_BLOCK_RECORDS, np.int64)
    data = np.empty(block_bytes or _BLOCK_BYTES, np.uint8)
    filled = 0  # bytes of `data`
    offset = 0  # of data[0] in the file
    records = 0
    while True:
        filled = _fill(file, path, data, filled)
        ended = filled < len(data)
        end, count, at, needs = kernels.scan_records(data, filled, starts, sizes)
        if count:
            yield RecordRun(offset, data, starts[:count], sizes[:count])
        records += count
        where = f"{path}: record {records + 1:,} at byte {offset + at:,}"
        _check_record(where, end, needs)
        if end == kernels.INCOMPLETE and ended:
            if at < filled:
                raise UnusableInputError(f"{where} is truncated; make or fetch the file again.")
            return
        rest = data[at:filled].copy()
        if needs > len(data):
            data = np.empty(needs, np.uint8)
        filled = len(rest)
        data[:filled] = rest
        offset += at


def _fill(file: BinaryIO, path: str, data: npt.NDArray[np.uint8], filled: int) -> int:
    """Read until `data` is full or the file ends; return the number of its bytes that are filled."""
    while filled < len(data):
        block = read_part(file, path, len(data) - filled)
        if not block:
            break
        data[filled : filled + len(block)] = np.frombuffer(block, np.uint8)
        filled += len(block)
    return filled


def read_part(file: BinaryIO, path: str, size: int) -> bytes:
    """Return up to `size` bytes of a file that `unpacked` returned; none at its end.

    Raises:
      UnusableInputError: it is gzipped, and truncated or damaged.
    """
    try:
        return file.read(size)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UnusableInputError(
            f"{path}: this gzip file is truncated or damaged ({error}); make or fetch it again."
        ) from error


def _check_record(where: str, end: int, needs: int) -> None:
    """Raise UnusableInputError if the record at which a scan ended is damaged."""
    if end in (kernels.BAD_LENGTH, kernels.BAD_DATA):
        part = "a length" if end == kernels.BAD_LENGTH else "data"
        raise UnusableInputError(
            f"{where} has {part} that does not fit its checksum: the file is damaged, or no TFRecord."
        )
    if needs > _MOST_RECORD_BYTES:
        raise UnusableInputError(f"{where} has {needs:,} bytes; no reader takes so large a record.")


def begins_record(head: bytes) -> bool:
    """Return whether a file that begins with `head` begins as a TFRecord: with a length and its checksum."""
    length, checksum = struct.unpack("<8sI", head[: kernels.HEAD].ljust(kernels.HEAD))
    return bool(checksum == masked_crc32c(np.frombuffer(bytearray(length), np.uint8), 0, len(length)))


def unpacked(raw: BinaryIO, path: str) -> BinaryIO:
    """Return a file's content, unpacked if it begins as gzip does and not as a TFRecord.

    Raises:
      UnusableInputError: the file is packed with something else.
    """
    head = raw.read(kernels.HEAD)
    raw.seek(0)
    packing = next((name for magic, name in _OTHER_PACKINGS.items() if head.startswith(magic)), None)
    if packing is None and not head.startswith(_GZIP_MAGIC):
        return raw
    if begins_record(head):
        return raw
    if packing is not None:
        raise UnusableInputError(
            f"{path}: this file is packed with {packing}; a TFRecord is read plain or gzipped, so unpack it first."
        )
    return cast(BinaryIO, gzip.GzipFile(fileobj=raw, mode="rb"))
