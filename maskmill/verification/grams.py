"""Grams of text, each 13 words in a row, by which text is found again whatever its case, lines and punctuation."""

import numpy as np
import numpy.typing as npt

from maskmill.tokenization.text_blocks import PaddedText
from maskmill.verification.kernels import word_grams as kernels

Hashes = npt.NDArray[np.uint64]

_BLOOM_BITS = 24
_BLOOM_SHIFT = np.uint64(64 - _BLOOM_BITS)


class GramIndex:
    """Finds the hashes of grams; hashes: ascending, each once, at least one."""

    def __init__(self, hashes: Hashes) -> None:
        self._hashes = hashes
        self._bloom = np.zeros(1 << _BLOOM_BITS, np.bool_)  # whether any gram has these highest bits
        self._bloom[hashes >> _BLOOM_SHIFT] = True

    def find(self, hashes: Hashes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Which of some hashes are of grams, ascending, and of which."""
        candidates = np.flatnonzero(self._bloom[hashes >> _BLOOM_SHIFT])
        places = np.minimum(np.searchsorted(self._hashes, hashes[candidates]), len(self._hashes) - 1)
        is_found = self._hashes[places] == hashes[candidates]
        return candidates[is_found], places[is_found]


class GramHasher:
    """Hashes the grams of text, block by block. Memory: some 20 bytes for each byte of the largest block."""

    def __init__(self) -> None:
        self._arrays = kernels.lower_case_arrays()
        self._padded = PaddedText()
        self._hashes = np.zeros(0, np.uint64)
        self._places = np.zeros(0, np.int64)

    def hash_text(self, text: bytes) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """The hashes of the grams of a text, in order, and where each starts; valid until the next call."""
        if not text:
            return self._hashes[:0], self._places[:0]
        self._padded.load(text)
        return self.hash_padded(self._padded.text, len(text))

    def hash_padded(self, text: npt.NDArray[np.uint8], size: int) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """The same of text[:size], whole lines with PADDING newlines behind them."""
        if size > len(self._hashes):
            self._hashes, self._places = np.empty(size, np.uint64), np.empty(size, np.int64)
        count = kernels.hash_grams(text, size, self._arrays, self._hashes, self._places)
        return self._hashes[:count], self._places[:count]
