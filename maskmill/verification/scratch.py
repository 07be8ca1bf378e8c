"""Write tables of hashes to the scratch directory, one for each file, and merge them in bounded memory.

Layout of a table's file, in little-endian uint64: the number of columns; the start of each of the 256 buckets and the
end of the last one, in rows; then the rows in the order of their first column, whose highest byte is the bucket.
"""

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.storage import files
from maskmill.verification.work_items import ItemResult, WorkItem

_BUCKETS = 256
_BUCKET_SHIFT = np.uint64(56)
_HEAD = 1 + _BUCKETS + 1  # words
_WORD = 8  # bytes
_TYPE = np.dtype("<u8")

Table = npt.NDArray[np.uint64]


def write_table(item: WorkItem, what: str, columns: Sequence[npt.ArrayLike]) -> dict[str, str]:
    """Write a table of a work item to the scratch directory, in the order of the hashes in its first column.

    Args:
      item: the work item.
      what: "rows" or "documents".
      columns: of equal lengths, with values that fit uint64.

    Returns:
      The path of the file by `what`; {} without a scratch directory.
    """
    if item.scratch is None:
        return {}
    name = hashlib.sha256(f"{item.directory}\0{item.path}".encode()).hexdigest()[:32]
    path = files.join(item.scratch, f"{name}.{what}")
    table = np.stack([np.asarray(column).astype(_TYPE) for column in columns], axis=1)
    table = table[np.argsort(table[:, 0], kind="stable")]
    bounds = np.searchsorted(table[:, 0] >> _BUCKET_SHIFT, np.arange(_BUCKETS + 1, dtype=np.uint64))
    files.write_bytes(path, np.concatenate([[table.shape[1]], bounds]).astype(_TYPE).tobytes() + table.tobytes())
    return {what: path}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Merged:
    """Rows of several tables, in the order of their hashes; all rows of a hash are in the same Merged.

    table: uint64[rows, columns]. owner: int64[rows], the number of each row's table. starts, counts: int64[hashes], the
    first row and the number of rows of each hash.
    """

    table: Table
    owner: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def column(self, number: int) -> npt.NDArray[np.int64]:
        """Return int64[rows]: a column."""
        return self.table[:, number].astype(np.int64)


def merge(results: Sequence[ItemResult], what: str, most_rows: int = 1 << 22) -> Iterator[Merged]:
    """Yield the rows of the results' tables in the order of their hashes, about `most_rows` at a time."""
    paths = [result.hashes[what] for result in results]
    heads = [np.frombuffer(files.read_range(path, 0, _HEAD * _WORD), _TYPE).astype(np.int64) for path in paths]
    sizes = np.sum([np.diff(head[1:]) for head in heads], axis=0) if heads else np.zeros(_BUCKETS, np.int64)
    first = 0
    while first < _BUCKETS and heads:
        last = first + 1
        while last < _BUCKETS and sizes[first : last + 1].sum() <= most_rows:
            last += 1
        parts = [_read_rows(path, head, first, last) for path, head in zip(paths, heads, strict=True)]
        first = last
        table = np.concatenate(parts)
        owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        order = np.argsort(table[:, 0], kind="stable")
        starts, counts = runs_of(table[order, 0])
        if len(table):
            yield Merged(table=table[order], owner=owner[order], starts=starts, counts=counts)


def _read_rows(path: str, head: npt.NDArray[np.int64], first: int, last: int) -> Table:
    """Return the rows of buckets [first, last) of a table's file."""
    columns, start, end = (int(head[place]) for place in (0, 1 + first, 1 + last))
    content = files.read_range(path, (_HEAD + start * columns) * _WORD, (_HEAD + end * columns) * _WORD)
    return np.frombuffer(content, _TYPE).reshape(end - start, columns)


def runs_of(hashes: Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return int64[runs] each: the starts and the sizes of the runs of equal hashes in an ascending array."""
    _, starts, counts = np.unique(hashes, return_index=True, return_counts=True)
    return starts, counts
