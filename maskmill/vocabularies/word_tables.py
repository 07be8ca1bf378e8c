"""A growing hash table of words with their counts, and records of them (kernels/word_counts.py)."""

import numpy as np
import numpy.typing as npt

from maskmill.tokenization.text_blocks import PADDING
from maskmill.vocabularies.kernels import word_counts as kernels
from maskmill.vocabularies.learning import WordCounts

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_FIRST_WORDS = 1 << 15
_FIRST_BYTES = 1 << 19


class WordTable:
    """Words with their counts.

    Attributes:
      arrays: a kernels.WordTable of the present size, which kernels change.
      state: int64[kernels.STATE].
    """

    def __init__(self, most_words: int | None = None, most_bytes: int | None = None) -> None:
        """Make an empty table that grows up to the given numbers of words and of their bytes."""
        self._most_words = most_words
        self._most_bytes = most_bytes
        self.state = np.zeros(kernels.STATE, np.int64)
        self.arrays = kernels.WordTable(
            slots=_slots(_FIRST_WORDS),
            text=np.empty(_FIRST_BYTES + PADDING, np.uint8),
            ends=np.zeros(_FIRST_WORDS + 1, np.int64),
            counts=np.empty(_FIRST_WORDS, np.int64),
        )

    def __len__(self) -> int:
        """Return the number of words."""
        return int(self.state[kernels.WORDS])

    @property
    def counts(self) -> Integers:
        """The counts of the words, int64[words]."""
        counts: Integers = self.arrays.counts[: len(self)]
        return counts

    @property
    def sizes(self) -> Integers:
        """The bytes of the words, int64[words]."""
        sizes: Integers = np.diff(self.arrays.ends[: len(self) + 1])
        return sizes

    def grow(self) -> bool:
        """Make room after a kernel has stopped because the table is full; return False if it may not grow further."""
        slots, text, ends, counts = self.arrays
        words = len(self)
        if words > len(counts) - kernels.SPARE_WORDS:
            if self._most_words is not None and len(counts) >= self._most_words:
                return False
            counts = _doubled(counts, words)
            ends = _doubled(ends, words + 1)
            self.arrays = kernels.WordTable(_slots(len(counts)), text, ends, counts)
            kernels.fill_slots(self.arrays, words)
            return True
        if self._most_bytes is not None and len(text) >= self._most_bytes:
            return False
        self.arrays = kernels.WordTable(slots, _doubled(text, int(ends[words])), ends, counts)
        return True

    def word_counts(self) -> WordCounts:
        """Return the words in the order of their bytes."""
        return sorted_words(self.arrays.text, self.arrays.ends, self.counts)

    def clear(self) -> None:
        """Remove all words; the table keeps its size."""
        self.arrays.slots.fill(0)
        self.state[kernels.WORDS] = 0

    def add(self, records: Bytes, size: int, part: int, parts: int) -> None:
        """Add the counts of records, uint8[size + PADDING], or of one part of them by the hashes of the words."""
        at = 0
        while at < size:
            kernels.add_records(records, size, at, part, parts, self.arrays, self.state)
            at = int(self.state[kernels.AT])
            if at < size:
                self.grow()

    def records(self) -> tuple[Bytes, Integers]:
        """Return the words as records, uint8[bytes], and the buckets' offsets and the end, int64[BUCKETS + 1]."""
        words = len(self)
        order, buckets = _ordered(self.arrays.text, self.arrays.ends, words)
        order = order[np.argsort(buckets[order], kind="stable")]
        most = int(self.arrays.ends[words]) + words * kernels.MAX_RECORD
        records = np.empty(most + PADDING, np.uint8)
        starts = np.zeros(kernels.BUCKETS + 1, np.int64)
        kernels.write_records(self.arrays, order, records, starts)
        return records[: starts[-1]], starts


def sorted_words(text: Bytes, ends: Integers, counts: Integers) -> WordCounts:
    """Put distinct words in the order of their bytes.

    Args:
      text, ends: as in a kernels.WordTable.
      counts: int64[words].
    """
    words = len(counts)
    order, _ = _ordered(text, ends, words)
    sorted_text = np.empty(int(ends[words]) + PADDING, np.uint8)
    sorted_ends = np.empty(words, np.int64)
    kernels.gather(text, ends, order, sorted_text, sorted_ends)
    return WordCounts(sorted_text[:-PADDING], sorted_ends, counts[order])


def _ordered(text: Bytes, ends: Integers, words: int) -> tuple[Integers, Bytes]:
    """Return the numbers of distinct words in the order of their bytes, and the buckets of the words.

    int64[words] and uint8[words]. text, ends: as in a kernels.WordTable. words: their number.
    """
    keys, buckets = np.empty(words, np.uint64), np.empty(words, np.uint8)
    kernels.order_keys(text, ends, keys, buckets)
    order = np.argsort(keys)
    kernels.order_ties(text, ends, keys, order, np.empty(words, np.int64))
    return order, buckets


def _slots(words: int) -> npt.NDArray[np.uint64]:
    return np.zeros(2 * words, np.uint64)


def _doubled(array: npt.NDArray[np.generic], used: int) -> npt.NDArray[np.generic]:
    """Return an array of twice the size that begins with the first `used` elements of this one."""
    larger = np.empty(2 * len(array), array.dtype)
    larger[:used] = array[:used]
    return larger
