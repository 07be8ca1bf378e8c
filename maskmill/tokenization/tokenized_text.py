"""Tokenized text, and the interface of the tokenizers that produce it."""

import abc
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.tokenization.line_joints import NO_LINE
from maskmill.tokenization.text_blocks import TextBlock, read_blocks, without_returns
from maskmill.tokenization.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizedText:
    """Documents of segments of pieces; a segment is a line with at least one piece.

    Attributes:
      ids: int32[tokens].
      segment_ends: int64[segments], the end of each in `ids`.
      document_ends: int64[documents], the end of each in `segment_ends`.
      segment_lines: int64[segments], the line of each, from 0; lines without pieces count, too.
      words: the number of words, as the tokenizer splits them. In WordPiece each punctuation character or ideograph is
        a word.
      unknown: the number of words that became [UNK].
      bytes: the bytes of the text read, carriage returns not counted.
      continues: uint8[tokens], 1 if a piece continues the word before it, 0 if it starts one, as the first of each
        segment; None if the pieces themselves show it (Vocabulary.marks_words).
    """

    ids: npt.NDArray[np.int32]
    segment_ends: npt.NDArray[np.int64]
    document_ends: npt.NDArray[np.int64]
    segment_lines: npt.NDArray[np.int64]
    words: int
    unknown: int
    bytes: int
    continues: npt.NDArray[np.uint8] | None = None


class LineParts:
    """The pieces of the lines that were read, in order.

    Attributes:
      open_segments: the number of segments of the last document while it has not ended.
      before: the kind of the end of the last line (line_joints.py); NO_LINE for tokenizers that join no lines.
      lines: the number of lines read.
      words, unknown, bytes: as in TokenizedText.
    """

    def __init__(self, *, marks_continues: bool = True) -> None:
        """Start without lines; marks_continues: whether `add` gets `continues`."""
        self._marks_continues = marks_continues
        self.open_segments = self.lines = self.words = self.unknown = self.bytes = 0
        self.before = NO_LINE
        self._ids: list[npt.NDArray[np.int32]] = []
        self._continues: list[npt.NDArray[np.uint8]] = []
        self._segment_ends: list[npt.NDArray[np.int64]] = []
        self._document_ends: list[npt.NDArray[np.int64]] = []
        self._segment_lines: list[npt.NDArray[np.int64]] = []
        self._tokens = self._segments = 0

    def add(
        self,
        ids: npt.NDArray[np.int32],
        segment_ends: npt.NDArray[np.int64],
        document_ends: npt.NDArray[np.int64],
        segment_lines: npt.NDArray[np.int64],
        continues: npt.NDArray[np.uint8] | None = None,
        *,
        lines: int,
    ) -> None:
        """Add `lines` lines, laid out as in TokenizedText and counted from their start.

        The arrays ids and continues are kept, not copied. A document that ends here may have started in earlier lines.
        """
        self._ids.append(ids)
        if continues is not None:
            self._continues.append(continues)
        self._segment_ends.append(segment_ends + self._tokens)
        self._document_ends.append(document_ends + self._segments)
        self._segment_lines.append(segment_lines + self.lines)
        self.lines += lines
        self._tokens += len(ids)
        self._segments += len(segment_ends)

    def add_line(self, ids: Sequence[int], words: Sequence[int | None], unknown_id: int | None) -> None:
        """Add a line as `tokenizers` encodes it: the ids of its pieces, and for each the number of its word."""
        if not ids:
            self.lines += 1
            return
        pieces = np.array(ids, np.int32)
        same = [before is not None and before == word for before, word in itertools.pairwise(words)]
        continues = np.array([False, *same], np.uint8)
        self.add(pieces, np.array([len(pieces)]), np.empty(0, np.int64), np.zeros(1, np.int64), continues, lines=1)
        self.open_segments += 1
        word = np.cumsum(continues == 0)
        self.words += int(word[-1])
        self.unknown += 0 if unknown_id is None else len(np.unique(word[pieces == unknown_id]))

    def add_blank_line(self) -> None:
        """Add a blank line, which ends the document."""
        self.lines += 1
        self.before = NO_LINE
        self._end_document()

    def _end_document(self) -> None:
        """End the document, if it has any segment."""
        if self.open_segments:
            self._document_ends.append(np.array([self._segments], np.int64))
            self.open_segments = 0

    def joined(self) -> TokenizedText:
        """End the open document and return all lines; the parts are released."""
        self._end_document()
        return TokenizedText(
            ids=_concatenate(self._ids, np.int32),
            segment_ends=_concatenate(self._segment_ends, np.int64),
            document_ends=_concatenate(self._document_ends, np.int64),
            segment_lines=_concatenate(self._segment_lines, np.int64),
            words=self.words,
            unknown=self.unknown,
            bytes=self.bytes,
            continues=_concatenate(self._continues, np.uint8) if self._marks_continues else None,
        )


def _concatenate(parts: list[npt.NDArray[Any]], kind: type[np.generic]) -> npt.NDArray[Any]:
    """Return the concatenation of arrays of a kind, and empty `parts`."""
    whole = np.concatenate(parts) if parts else np.empty(0, kind)
    parts.clear()  # so that at most one array is in memory twice
    return whole


class TextTokenizer(abc.ABC):
    """Split text into pieces. One tokenizer serves one thread at a time.

    drops_returns: see `without_returns`.
    """

    drops_returns = False

    def tokenize_files(self, paths: Sequence[str]) -> TokenizedText:
        """Tokenize text files that are read as one: one segment a line, blank lines between documents.

        A document may go on in the next file. Lines are read as `read_blocks` does.

        Raises:
          UnusableInputError: a file is missing or not UTF-8, or a line cannot be split.
        """
        drops_returns = self.drops_returns
        return self._tokenize(block for path in paths for block in read_blocks(path, drops_returns=drops_returns))

    def tokenize_bytes(self, text: bytes, name: str = "text") -> TokenizedText:
        """Tokenize text in memory; see `tokenize_files`; name: of the text, for messages."""
        content = without_returns(text, drops_returns=self.drops_returns)
        return self._tokenize([TextBlock(name, 0, content)] if content else [])

    @abc.abstractmethod
    def _tokenize(self, blocks: Iterable[TextBlock]) -> TokenizedText:
        """Tokenize the blocks of a text, in order."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadedTokenizer:
    """A vocabulary, and a factory of tokenizers for it.

    Attributes:
      vocabulary: the pieces and the ids of the special ones.
      tokenizer: returns a tokenizer.
      kernels: the compiled code that tokenizers need, as maskmill.kernels.compiler.chosen_modules names it.
    """

    vocabulary: Vocabulary
    tokenizer: Callable[[], TextTokenizer]
    kernels: tuple[str, ...]
