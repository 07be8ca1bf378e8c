"""Holds a file against what its manifest says: that it is there, its size, its checksum, its index."""

import numpy as np
import numpy.typing as npt

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges, open_range_file
from maskmill.reading.record_indexes import find_records, read_index
from maskmill.records.tfrecord import unpacked
from maskmill.verification.findings import Checked, Finding
from maskmill.verification.pieces import Piece

_DO = "fetch or make it again"


def check_file(piece: Piece, ranges: ByteRanges) -> tuple[Checked, int | None, str | None]:
    """Checks that a file is there, and has the size and the checksum of the manifest.

    Returns:
      What was found; the file's size in bytes, and its sha256 in hexadecimal; None where it cannot be read.
    """
    path, expected = piece.path, piece.expected
    try:
        size = ranges.size(path)
        digest = ranges.sha256_of(path)
    except MissingFileError:
        why = "is in the manifest" if expected.size is not None or expected.sha256 is not None else "was named"
        message = f"{path}: this file {why}, but it is not there; {_DO}."
        return (
            _one(Finding(check="missing", file=path, expected="a file", found="nothing", message=message)),
            None,
            None,
        )
    except (UnusableInputError, RunFailedError) as error:
        found = Finding(
            check="missing", file=path, expected="a file that can be read", found="an error", message=str(error)
        )
        return _one(found), None, None
    findings = []
    if expected.size is not None and size != expected.size:
        what = "is cut off" if size < expected.size else "goes on behind its end"
        findings.append(
            Finding(
                check="size",
                file=path,
                expected=f"{expected.size:,}",
                found=f"{size:,}",
                message=f"{path}: this file has {size:,} bytes, but the manifest says {expected.size:,}: it {what}, "
                f"or is another one; {_DO}.",
            )
        )
    elif expected.sha256 is not None and digest != expected.sha256:
        findings.append(
            Finding(
                check="sha256",
                file=path,
                expected=expected.sha256,
                found=digest,
                message=f"{path}: the content of this file is not what was written (another sha256 than in the "
                f"manifest); {_DO}.",
            )
        )
    looked_at = {"missing": 1}
    if expected.size is not None:
        looked_at["size"] = 1
    skipped = {}
    if expected.sha256 is not None and expected.size in (None, size):
        looked_at["sha256"] = 1
    elif expected.sha256 is not None:
        skipped["sha256"] = "files of another size have another content"
    return Checked(findings=tuple(findings), looked_at=looked_at, skipped=skipped), size, digest


def check_index(piece: Piece, ranges: ByteRanges, starts: npt.NDArray[np.int64] | None = None) -> Checked:
    """Checks that the index of TFRecords is that of the manifest, and names the places of the records.

    starts: where the records start, and where the last one ends; None: the file is read to find them.
    """
    index = piece.expected.index
    if index is None or piece.format != "tfrecord":
        return Checked()
    path = piece.path
    try:
        digest = ranges.sha256_of(index)
        told = read_index(index, ranges, 1)
    except MissingFileError:
        message = f"{index}: this index is in the manifest, but it is not there; run `maskmill index {path}`."
        return _one(Finding(check="missing", file=index, expected="a file", found="nothing", message=message))
    except (UnusableInputError, RunFailedError) as error:
        found = Finding(check="index", file=index, expected="an index", found="an error", message=str(error))
        return _one(found)
    findings = []
    wanted = piece.expected.index_sha256
    do = f"run `maskmill index {path}`"
    if wanted is not None and digest != wanted:
        message = f"{index}: this index is not the one of the manifest (another sha256); {do}."
        findings.append(Finding(check="index", file=index, expected=wanted, found=digest, message=message))
    try:
        if starts is None:
            starts = find_records(unpacked(open_range_file(path, ranges), path), path, 1).starts
    except (UnusableInputError, RunFailedError):
        return Checked(findings=tuple(findings), looked_at={"index": 1}, skipped={"index": "a file is damaged"})
    if told is None:
        message = f"{index}: this is no index (lines of two numbers, where a record starts and its bytes); {do}."
        findings.append(
            Finding(check="index", file=index, expected="lines of two numbers", found="others", message=message)
        )
    elif not np.array_equal(told.starts, starts):
        count = min(len(told.starts), len(starts))
        differs = np.flatnonzero(told.starts[:count] != starts[:count])
        place = int(differs[0]) if len(differs) else count
        is_said, is_so = (
            f"{int(found[place]):,}" if place < len(found) else "the end" for found in (told.starts, starts)
        )
        message = (
            f"{index}, line {max(1, place):,}: record {place + 1:,} of {path} starts at byte {is_so}, and the index "
            f"says {is_said}; {do}."
        )
        findings.append(
            Finding(check="index", file=index, record=max(1, place), expected=is_so, found=is_said, message=message)
        )
    return Checked(findings=tuple(findings), looked_at={"index": 1})


def _one(finding: Finding) -> Checked:
    return Checked(findings=(finding,), looked_at={finding.check: 1})
