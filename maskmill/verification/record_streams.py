"""Records of data sets one after another, each with a hash: rows of examples, or documents of text shards.

Two records of one kind are the same if their hashes are (but for one chance in 2^64), whatever format they are in.
"""

import abc
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.reading.block_reader import Block, Rows
from maskmill.reading.byte_ranges import ByteRanges, open_range_file
from maskmill.reading.data_set import DataSet, ReadColumn
from maskmill.reading.kernels.row_hashes import add_column
from maskmill.reading.opening import reader_of
from maskmill.records.tfrecord import unpacked

_READ_BYTES = 1 << 22
_BLANK_LINE = b"\n\n"


class Batch(abc.ABC):
    """Neighbouring records.

    Attributes:
      first: the number of the first one in the stream, from 0.
      hashes: uint64[records].
      file: where they are.
    """

    first: int
    hashes: npt.NDArray[np.uint64]
    file: str

    @abc.abstractmethod
    def place(self, record: int) -> int:
        """Where record `record` of the batch, from 0, is in its file: as people count, from 1."""

    @abc.abstractmethod
    def text_hashes(self, start: int, stop: int) -> npt.NDArray[np.uint64]:
        """Of records [start, stop) of the batch the hashes of their text alone, masks undone."""


@dataclasses.dataclass(kw_only=True, eq=False)
class RowBatch(Batch):
    """Rows of a block. shared: the columns that are compared, by feature with their widths in the comparison."""

    first: int
    hashes: npt.NDArray[np.uint64]
    file: str
    block: Block
    rows: Rows
    columns: Mapping[str, ReadColumn]
    shared: Mapping[str, int]

    def place(self, record: int) -> int:
        return self.block.first + record + 1

    def text_hashes(self, start: int, stop: int) -> npt.NDArray[np.uint64]:
        hashes = np.zeros(stop - start, np.uint64)
        for feature in ("input_ids", "segment_ids", "next_sentence_labels"):
            if feature in self.shared:
                if feature == "input_ids":
                    values = self.rows.original_pieces(slice(start, stop))
                else:
                    values = _integers(self.rows.arrays[feature][start:stop])
                _add(hashes, values, self.columns[feature], self.shared[feature])
        return hashes

    def values(self, record: int, feature: str) -> npt.NDArray[Any]:
        """The values of a record's column, filled up to the width in the comparison."""
        column, values = self.columns[feature], self.rows.arrays[feature][record]
        fill: Any = values[-1] if column.fill is None and len(values) else column.fill or 0
        return np.concatenate([values, np.full(self.shared[feature] - len(values), fill, values.dtype)])


def _integers(values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Values as int32[rows, width]; floats keep their bits."""
    if values.dtype == np.float32:
        values = (values + np.float32(0)).view(np.int32)  # -0.0 becomes 0.0
    return np.array(values, np.int32)


def _add(
    hashes: npt.NDArray[np.uint64], values: npt.NDArray[np.int32], column: ReadColumn, width: int
) -> npt.NDArray[np.uint64]:
    add_column(hashes, values, width, column.fill or 0, column.fill is None)
    return hashes


def rows_of(data_set: DataSet, ranges: ByteRanges, shared: Mapping[str, int], start: int = 0) -> Iterator[RowBatch]:
    """The rows of a data set, in order, a block at a time.

    Args:
      data_set: the data set.
      ranges: reads it.
      shared: which columns count, by feature, and how wide they are taken to be: as wide as in either data set.
      start: the batch that has this row comes first.

    Raises:
      DamagedBlockError: a record is damaged.
      RunFailedError: a file cannot be read.
    """
    columns = {column.feature: column for column in data_set.columns}
    reader, first = reader_of(data_set, ranges), 0
    try:
        for number, file in enumerate(data_set.files):
            for at in range(0, file.samples, reader.block_samples):
                block = Block(number, at, min(reader.block_samples, file.samples - at))
                if first + block.count > start:
                    rows, every = Rows(data_set.columns, block.count), np.arange(block.count)
                    reader.decode(reader.fetch(block), block, every, every, rows)
                    hashes = np.zeros(block.count, np.uint64)
                    for feature, width in shared.items():
                        _add(hashes, _integers(rows.arrays[feature]), columns[feature], width)
                    yield RowBatch(
                        first=first,
                        hashes=hashes,
                        file=file.path,
                        block=block,
                        rows=rows,
                        columns=columns,
                        shared=shared,
                    )
                first += block.count
    finally:
        reader.close()


@dataclasses.dataclass(kw_only=True, eq=False)
class DocumentBatch(Batch):
    """Documents of a text shard. documents: without the blank line behind each. line: where the first begins."""

    first: int
    hashes: npt.NDArray[np.uint64]
    file: str
    documents: Sequence[bytes]
    line: int

    def place(self, record: int) -> int:
        return self.line + sum(len(_lines(document)) + 1 for document in self.documents[:record])

    def text_hashes(self, start: int, stop: int) -> npt.NDArray[np.uint64]:
        return self.hashes[start:stop]


def _lines(document: bytes) -> list[bytes]:
    return document.split(b"\n") if document else []


def documents_of(paths: Sequence[str], ranges: ByteRanges, start: int = 0) -> Iterator[DocumentBatch]:
    """The documents of text shards, gzipped or not, in order, a few megabytes at a time.

    A blank line ends a document; a second one is an empty document. start: the batch that has this one comes first.

    Raises:
      UnusableInputError, RunFailedError: a file cannot be read.
    """
    first = 0
    for path in paths:
        line = 1
        for documents in _documents_of_file(path, ranges):
            if first + len(documents) > start:
                digests = b"".join(hashlib.blake2b(document, digest_size=8).digest() for document in documents)
                hashes = np.frombuffer(digests, np.uint64)
                yield DocumentBatch(first=first, hashes=hashes, file=path, documents=documents, line=line)
            first += len(documents)
            line += sum(document.count(b"\n") + bool(document) + 1 for document in documents)


def _documents_of_file(path: str, ranges: ByteRanges) -> Iterator[list[bytes]]:
    content = unpacked(open_range_file(path, ranges), path)
    waiting: list[bytes] = []
    while block := content.read(_READ_BYTES):
        waiting.append(block)
        if _BLANK_LINE in (waiting[-2][-1:] + block if len(waiting) > 1 else block):
            *whole, rest = b"".join(waiting).split(_BLANK_LINE)
            waiting = [rest] if rest else []
            yield [document for piece in whole for document in _split_piece(piece)]
    rest = b"".join(waiting)
    if rest:
        text = rest.lstrip(b"\n")
        yield [*[b""] * (len(rest) - len(text)), *([text.removesuffix(b"\n")] if text else [])]


def _split_piece(piece: bytes) -> list[bytes]:
    """The documents of what stands before two line feeds: empty ones first."""
    text = piece.lstrip(b"\n")
    line_feeds = len(piece) - len(text)
    return [*[b""] * line_feeds, text] if text else [b""] * (line_feeds + len(_BLANK_LINE))
