"""How often each word of a text occurs: the table that vocabularies are learnt from."""

import dataclasses

import numpy as np
import numpy.typing as npt


@dataclasses.dataclass(frozen=True)
class WordCounts:
    """Distinct words with their counts, sorted by their bytes.

    A word is what a tokenizer splits alone: with WordPiece a normalised word of BERT's basic tokenizer; with byte-level
    BPE what RoBERTa's pre-tokenizer gives, its leading space included, as bytes of UTF-8.

    Attributes:
      text: uint8[bytes], the words, one behind the other.
      ends: int64[words], where each ends in `text`.
      counts: int64[words], 1 or more.
    """

    text: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)
