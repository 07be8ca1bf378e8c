"""Text as pieces of a vocabulary, and what makes it: the tokenizer that belongs to a vocabulary."""

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
    """Documents of segments of pieces; a segment is a line that has any.

    Attributes:
      ids: int32[tokens].
      segment_ends: int64[segments], where each ends in `ids`.
      document_ends: int64[documents], where each ends in `segment_ends`.
      segment_lines: int64[segments], the line of each, from 0; lines without pieces count, too.
      words: how many words there are, as the tokenizer splits text into them. WordPiece's: a punctuation character or
        an ideograph is a word of its own.
      unknown: how many of them have no pieces and became [UNK].
      bytes: of the text read, carriage returns not counted.
      continues: uint8[tokens], 1 if a piece goes on the word before it, 0 if a word starts, as at the start of
        each segment; None if the pieces tell it by themselves (Vocabulary.marks_words).
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
      open_segments: how many segments the document has that has not ended yet.
      before: how the line before the next one ends (line_joints.py); NO_LINE for tokenizers that join no lines.
      lines: how many were read.
      words, unknown, bytes: as in TokenizedText.
    """

    def __init__(self, *, tells_words: bool = True) -> None:
        """Take no lines yet; tells_words: whether it is told which pieces go on a word."""
        self._tells_words = tells_words
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
        """Add so many lines, laid out as in TokenizedText and counted from their start; ids and continue are kept.

        A document that ends in these lines may have started in earlier ones.
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
        """Add a line as `tokenizers` encodes it: its pieces, and the number of the word that each belongs to."""
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
        """Return all lines; a document that is still open ends. The parts are given up."""
        self._end_document()
        return TokenizedText(
            ids=_joined(self._ids, np.int32),
            segment_ends=_joined(self._segment_ends, np.int64),
            document_ends=_joined(self._document_ends, np.int64),
            segment_lines=_joined(self._segment_lines, np.int64),
            words=self.words,
            unknown=self.unknown,
            bytes=self.bytes,
            continues=_joined(self._continues, np.uint8) if self._tells_words else None,
        )


def _joined(parts: list[npt.NDArray[Any]], kind: type[np.generic]) -> npt.NDArray[Any]:
    """Join arrays of a kind; `parts` is emptied."""
    joined = np.concatenate(parts) if parts else np.empty(0, kind)
    parts.clear()  # so that no more than one array is there twice
    return joined


class TextTokenizer(abc.ABC):
    """Splits text into pieces. One tokenizer serves one thread at a time.

    drops_returns: as `without_returns` takes it.
    """

    drops_returns = False

    def tokenize_files(self, paths: Sequence[str]) -> TokenizedText:
        """Tokenize text files that are read as one: one segment a line, blank lines between documents.

        No document ends where a file ends. Lines are read as `read_blocks` does.

        Raises:
          UnusableInputError: a file is missing or not UTF-8, or a line cannot be split.
        """
        drops_returns = self.drops_returns
        return self._tokenize(block for path in paths for block in read_blocks(path, drops_returns=drops_returns))

    def tokenize_bytes(self, text: bytes, name: str = "text") -> TokenizedText:
        """Tokenize text in memory; see `tokenize_files`. `name` is what an error calls it."""
        content = without_returns(text, drops_returns=self.drops_returns)
        return self._tokenize([TextBlock(name, 0, content)] if content else [])

    @abc.abstractmethod
    def _tokenize(self, blocks: Iterable[TextBlock]) -> TokenizedText:
        """Tokenize the blocks of a text, in order."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadedTokenizer:
    """A vocabulary, and what makes tokenizers for it.

    Attributes:
      vocabulary: the pieces and the ids of the special ones.
      tokenizer: makes a tokenizer.
      kernels: the compiled code that tokenizers need, as maskmill.kernels.compiler.chosen_modules names it.
    """

    vocabulary: Vocabulary
    tokenizer: Callable[[], TextTokenizer]
    kernels: tuple[str, ...]
