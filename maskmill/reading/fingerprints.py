"""What tells the content of data sets apart, wherever it lies and whatever its files are called."""

import hashlib
import json
from collections.abc import Sequence

import numpy as np

from maskmill.masking.kernels.row_masks import RowMaskRules
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.data_set import DataFile, ReadColumn

_DIGITS = 32
_END_BYTES = 1 << 16


def digest_of_sha256(sha256: str) -> str:
    """DataFile.digest of a file whose checksum is known."""
    return sha256[:_DIGITS]


def digest_of_ends(path: str, size: int, samples: int, ranges: ByteRanges) -> str:
    """DataFile.digest of a file whose checksum is not known: its size, its number of samples, its first and last bytes.

    Reading it whole would take as long as an epoch.
    """
    ends = [(0, min(size, _END_BYTES)), (max(0, size - _END_BYTES), size)]
    parts = [f"{size}:{samples}:".encode(), *(ranges.read(path, start, end).tobytes() for start, end in ends)]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:_DIGITS]


def fingerprint(
    files: Sequence[DataFile], columns: Sequence[ReadColumn], width: int, mask_rules: RowMaskRules | None
) -> str:
    """DataSet.fingerprint: of all that decides the samples that are read, and the masks that are drawn for them."""
    content = {
        "files": [[file.digest, file.samples, file.width] for file in files],
        "columns": [[column.feature, column.width] for column in columns],
        "width": width,
        "masks": None if mask_rules is None else [_plain(value) for value in mask_rules],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def _plain(value: object) -> object:
    """A number, or the checksum of an array."""
    if isinstance(value, np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return value
