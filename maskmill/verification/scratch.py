"""Tables of hashes in the scratch directory: a worker writes one for a file; all are merged in bounded memory.

Layout of a table's file, in little-endian uint64: the number of columns; where each of the 256 buckets starts, and
where the last one ends, in rows; then the rows in the order of their first column, whose highest byte is the bucket.
"""

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.storage import files
from maskmill.verification.pieces import Piece

_BUCKETS = 256
_BUCKET_SHIFT = np.uint64(56)
_HEAD = 1 + _BUCKETS + 1  # words
_WORD = 8  # bytes
_TYPE = np.dtype("<u8")

# The last column of each table.
_WAYS_BITS, _LENGTH_BITS = 6, 10
_WAYS_STEP = 4
_MOST_WAYS = (1 << _WAYS_BITS) - 1
MOST_LENGTH = (1 << _LENGTH_BITS) - 1
NUMBER_SHIFT = _WAYS_BITS + _LENGTH_BITS

Table = npt.NDArray[np.uint64]


def write_table(piece: Piece, what: str, table: Table) -> str | None:
    """Sorts the rows of a table by the hashes in its first column, and writes them to the scratch directory.

    Args:
      piece: of which the table is.
      what: "rows" or "documents".
      table: uint64[rows, columns].

    Returns:
      The path of the file; None if there is no scratch directory.
    """
    if piece.scratch is None:
        return None
    name = hashlib.sha256(f"{piece.directory}\0{piece.path}".encode()).hexdigest()[:32]
    path = files.join(piece.scratch, f"{name}.{what}")
    write_rows(path, table)
    return path


def write_rows(path: str, table: Table) -> None:
    """Writes the rows of a table, uint64[rows, columns], to a file."""
    ordered = table[np.argsort(table[:, 0], kind="stable")]
    bounds = np.searchsorted(ordered[:, 0] >> _BUCKET_SHIFT, np.arange(_BUCKETS + 1, dtype=np.uint64))
    head = np.concatenate([[table.shape[1]], bounds]).astype(_TYPE)
    files.write_bytes(path, head.tobytes() + ordered.astype(_TYPE).tobytes())


def pack_row(numbers: Table, lengths: npt.NDArray[np.int64], bits: npt.NDArray[np.int64]) -> Table:
    """uint64[rows]: the last column of each table.

    Args:
      numbers: uint64[rows], the records' numbers in their file, from 1.
      lengths: int64[rows], pieces of text, or words of a document; more than MOST_LENGTH count as that.
      bits: int64[rows], the logarithm (base 2) of how many ways there are to mask the row, else 0.
    """
    length = np.minimum(lengths, MOST_LENGTH).astype(np.uint64) << np.uint64(_WAYS_BITS)
    packed = (
        numbers.astype(np.uint64) << np.uint64(NUMBER_SHIFT)
        | length
        | np.minimum(bits // _WAYS_STEP, _MOST_WAYS).astype(np.uint64)
    )
    return packed.astype(np.uint64)


def unpack_row(packed: Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """What `pack_row` packed: numbers, lengths, and bits in steps of four."""
    numbers = (packed >> np.uint64(NUMBER_SHIFT)).astype(np.int64)
    lengths = (packed >> np.uint64(_WAYS_BITS) & np.uint64(MOST_LENGTH)).astype(np.int64)
    return numbers, lengths, (packed & np.uint64(_MOST_WAYS)).astype(np.int64) * _WAYS_STEP


@dataclasses.dataclass(frozen=True, kw_only=True)
class Merged:
    """Rows of several tables, in the order of their hashes; rows of equal hashes are always in one of these.

    table: uint64[rows, columns]. owner: int64[rows], the place of each row's table.
    """

    table: Table
    owner: npt.NDArray[np.int64]


def merge_tables(paths: Sequence[str], most_rows: int = 1 << 22) -> Iterator[Merged]:
    """Yields the rows of tables in the order of their hashes, about `most_rows` at a time."""
    heads = [np.frombuffer(files.read_range(path, 0, _HEAD * _WORD), _TYPE).astype(np.int64) for path in paths]
    if not heads:
        return
    sizes = np.sum([np.diff(head[1:]) for head in heads], axis=0)
    first = 0
    while first < _BUCKETS:
        last = first + 1
        while last < _BUCKETS and sizes[first : last + 1].sum() <= most_rows:
            last += 1
        parts = [_read_rows(path, head, first, last) for path, head in zip(paths, heads, strict=True)]
        first = last
        table = np.concatenate(parts)
        if len(table):
            owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
            order = np.argsort(table[:, 0], kind="stable")
            yield Merged(table=table[order], owner=owner[order])


def _read_rows(path: str, head: npt.NDArray[np.int64], first: int, last: int) -> Table:
    """The rows of buckets [first, last) of a table's file."""
    columns = int(head[0])
    start, end = int(head[1 + first]), int(head[1 + last])
    content = files.read_range(path, (_HEAD + start * columns) * _WORD, (_HEAD + end * columns) * _WORD)
    return np.frombuffer(content, _TYPE).astype(np.uint64).reshape(end - start, columns)


def runs_of(hashes: Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where runs of equal hashes start in an ascending array, and how many each has."""
    if not len(hashes):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    starts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    return starts, np.diff(np.append(starts, len(hashes)))
