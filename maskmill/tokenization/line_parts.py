"""What tokenizers make of lines, part by part, until it is one TokenizedText."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.tokenization.tokenized_text import TokenizedText


class LineParts:
    """The pieces of the lines that were read, in order.

    Attributes:
      open_segments: how many segments the document has that has not ended yet.
      words, unknown, bytes: as in TokenizedText.
    """

    def __init__(self, *, tells_words: bool = True) -> None:
        """Takes no lines yet; tells_words: whether it is told which pieces go on a word."""
        self._tells_words = tells_words
        self.open_segments = self.words = self.unknown = self.bytes = 0
        self._ids: list[npt.NDArray[np.int32]] = []
        self._continues: list[npt.NDArray[np.uint8]] = []
        self._segment_ends: list[npt.NDArray[np.int64]] = []
        self._document_ends: list[npt.NDArray[np.int64]] = []
        self._tokens = self._segments = 0

    def add(
        self,
        ids: npt.NDArray[np.int32],
        segment_ends: npt.NDArray[np.int64],
        document_ends: npt.NDArray[np.int64],
        continues: npt.NDArray[np.uint8] | None = None,
    ) -> None:
        """Adds lines, laid out as in TokenizedText and counted from their start; ids and continues are kept.

        A document that ends in these lines may have started in earlier ones.
        """
        self._ids.append(ids)
        if continues is not None:
            self._continues.append(continues)
        self._segment_ends.append(segment_ends + self._tokens)
        self._document_ends.append(document_ends + self._segments)
        self._tokens += len(ids)
        self._segments += len(segment_ends)

    def add_line(self, ids: Sequence[int], words: Sequence[int | None], unknown_id: int | None) -> None:
        """Adds a line as `tokenizers` encodes it: its pieces, and the number of the word that each belongs to."""
        if not ids:
            return
        pieces = np.array(ids, np.int32)
        same = [before is not None and before == word for before, word in itertools.pairwise(words)]
        continues = np.array([False, *same], np.uint8)
        self.add(pieces, np.array([len(pieces)]), np.empty(0, np.int64), continues)
        self.open_segments += 1
        word = np.cumsum(continues == 0)
        self.words += int(word[-1])
        self.unknown += 0 if unknown_id is None else len(np.unique(word[pieces == unknown_id]))

    def end_document(self) -> None:
        """Ends the document, if it has any segment."""
        if self.open_segments:
            self._document_ends.append(np.array([self._segments], np.int64))
            self.open_segments = 0

    def joined(self) -> TokenizedText:
        """All lines; a document that is still open ends. The parts are given up."""
        self.end_document()
        return TokenizedText(
            ids=_joined(self._ids, np.int32),
            segment_ends=_joined(self._segment_ends, np.int64),
            document_ends=_joined(self._document_ends, np.int64),
            words=self.words,
            unknown=self.unknown,
            bytes=self.bytes,
            continues=_joined(self._continues, np.uint8) if self._tells_words else None,
        )


def _joined(parts: list[npt.NDArray[Any]], kind: type[np.generic]) -> npt.NDArray[Any]:
    """Joins arrays of a kind; `parts` is emptied."""
    joined = np.concatenate(parts) if parts else np.empty(0, kind)
    parts.clear()  # so that no more than one array is there twice
    return joined
