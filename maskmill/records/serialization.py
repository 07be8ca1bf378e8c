"""Serialise rows in memory as records: tf.train.Examples in the frame of a TFRecord (kernels/serialize.py)."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from maskmill.masking.kernels.rows import RowArrays
from maskmill.records.columns import Column
from maskmill.records.kernels import frames
from maskmill.records.kernels import serialize as kernels
from maskmill.records.tfrecord import RecordBlock
from maskmill.records.varints import varint
from maskmill.tokenization.vocabulary import Vocabulary

_BUFFER_BYTES = 4 << 20
_FLOAT_BYTES = 4


class Serializer:
    """Serialise rows. One serializer serves one thread at a time, because its buffer is reused."""

    def __init__(self, columns: Sequence[Column], vocabulary: Vocabulary, width: int, predictions: int) -> None:
        """Make the tables.

        Args:
          columns: the columns of a record, padded, in the order of their names.
          vocabulary: has the ids of the special pieces.
          width: the number of values of a column of pieces.
          predictions: max_predictions_per_seq, the number of values of a column of masks.
        """
        self._layout = kernels.Layout(
            varints=np.empty(max(vocabulary.size, width + 1), np.uint64),
            columns=np.zeros((len(columns), kernels.COLUMN), np.int64),
            heads=np.zeros((len(columns), kernels.HEAD), np.uint8),
            scratch=np.empty(width, np.int32),
            cls_id=vocabulary.cls_id,
            sep_id=vocabulary.sep_id,
            pad_id=vocabulary.pad_id,
            width=width,
            predictions=predictions,
        )
        kernels.make_varints(self._layout.varints)
        for place, column in enumerate(columns):
            head, is_fixed = _head(column)
            self._layout.columns[place] = kernels.FEATURES.index(column.feature), len(head), is_fixed
            self._layout.heads[place, kernels.HEAD - len(head) :] = np.frombuffer(head, np.uint8)
        most = _most_record_bytes(columns, width)
        self._records = max(1, _BUFFER_BYTES // most)
        self._buffer = np.empty(kernels.HEAD + self._records * most, np.uint8)
        self._sizes = np.empty(self._records, np.int64)

    def blocks(self, blocks: Iterable[tuple[RowArrays, int]]) -> Iterator[RecordBlock]:
        """Yield the records of blocks of rows, in their order, some megabytes at a time.

        A block of records is valid until the next one is asked for.

        Args:
          blocks: rows, and how many of them are in use; each is read before the next one is asked for.
        """
        for rows, count in blocks:
            for first in range(0, count, self._records):
                end = min(count, first + self._records)
                start = kernels.serialize_rows(self._layout, rows, first, end, self._buffer, self._sizes)
                yield RecordBlock(self._buffer.data[start:], self._sizes[: end - first])


def _head(column: Column) -> tuple[bytes, bool]:
    """Return the bytes before a column's values, and whether they include the lengths."""
    name = column.name.encode()
    key = _field(kernels.TAG_1, len(name)) + name
    size = _fixed_size(column)
    if size is None:
        return key + bytes([kernels.TAG_VALUE]), False
    values = _field(kernels.TAG_1, size)
    kind = _field(kernels.TAG_FLOATS if column.largest is None else kernels.TAG_INTS, len(values) + size) + values
    entry = key + _field(kernels.TAG_VALUE, len(kind) + size) + kind
    return _field(kernels.TAG_1, len(entry) + size) + entry, True


def _fixed_size(column: Column) -> int | None:
    """Return the bytes of a column's values in each record; None if they depend on the values."""
    if column.length is None or column.feature not in kernels.OF_ONE_SIZE:
        return None
    return column.length * (_FLOAT_BYTES if column.largest is None else 1)


def _field(tag: int, size: int) -> bytes:
    """Return the tag and the length of a field whose content has `size` bytes."""
    return bytes([tag]) + varint(size)


def _most_record_bytes(columns: Sequence[Column], width: int) -> int:
    """Return an upper bound of a record's bytes."""
    size = frames.FRAME + kernels.HEAD
    for column in columns:
        value = _FLOAT_BYTES if column.largest is None else len(varint(column.largest))
        # A column without a length has a value for each sequence, and one more.
        size += 2 * kernels.HEAD + value * (width + 1 if column.length is None else column.length)
    return size
