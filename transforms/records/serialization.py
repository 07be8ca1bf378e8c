"""Instances to serialised records, in memory: tf.train.Examples in the frame of a TFRecord (kernels/serialize.py)."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from transforms.masking.instances import Instances
from transforms.masking.options import MaskingOptions
from transforms.records.kernels import serialize as kernels
from transforms.records.tfrecord import RecordBlock
from transforms.tokenization.vocabulary import Vocabulary
from transforms.tokenization.wordpiece import TokenizedText

_BUFFER_BYTES = 4 << 20


class Serializer:
    """Serialises instances. One serializer serves one thread at a time: its buffer is used again and again."""

    def __init__(self, vocabulary: Vocabulary, options: MaskingOptions) -> None:
        """Makes the tables.

        Args:
          vocabulary: gives the ids of the special pieces.
          options: as the instances were made with; they give the lengths of the features.
        """
        length, predictions = options.max_seq_length, options.max_predictions_per_seq
        self._layout = kernels.Layout(
            varints=np.empty(max(vocabulary.size, length), np.uint64),
            heads=np.empty(kernels.HEADS, np.uint8),
            pieces=np.empty(length, np.int32),
            cls_id=vocabulary.id_of("[CLS]"),
            sep_id=vocabulary.id_of("[SEP]"),
            mask_id=vocabulary.id_of("[MASK]"),
            max_seq_length=length,
            max_predictions_per_seq=predictions,
        )
        kernels.make_varints(self._layout.varints)
        kernels.make_heads(length, predictions, self._layout.heads)
        most = kernels.most_record_bytes(length, predictions)
        self._records = max(1, _BUFFER_BYTES // most)
        self._buffer = np.empty(self._records * most, np.uint8)
        self._sizes = np.empty(self._records, np.int64)

    def blocks(self, text: TokenizedText, instances: Instances, order: npt.NDArray[np.int64]) -> Iterator[RecordBlock]:
        """Yields the records of the instances that `order` names, in this order, as runs of some megabytes.

        A block is valid until the next one is asked for.
        """
        for first in range(0, len(order), self._records):
            selection = np.ascontiguousarray(order[first : first + self._records])
            start = kernels.serialize_records(
                self._layout, text.ids, instances.arrays, selection, self._buffer, self._sizes
            )
            yield RecordBlock(self._buffer.data[start:], self._sizes[: len(selection)])
