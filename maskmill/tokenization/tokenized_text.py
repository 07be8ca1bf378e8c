"""Text as pieces of a vocabulary, and what makes it: the tokenizer that belongs to a vocabulary."""

import abc
import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.tokenization.text_blocks import TextBlock, read_blocks
from maskmill.tokenization.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizedText:
    """Documents of segments of pieces; a segment is a line that has any.

    Attributes:
      ids: int32[tokens].
      segment_ends: int64[segments], where each ends in `ids`.
      document_ends: int64[documents], where each ends in `segment_ends`.
      words: how many words there are, as the tokenizer splits text into them. WordPiece's: a punctuation character or
        an ideograph is a word of its own.
      unknown: how many of them have no pieces and became [UNK].
      bytes: of the text read, carriage returns not counted.
      continues: uint8[tokens], 1 where a piece goes on the word before it, 0 where a word starts, as at the start of
        each segment; None where the pieces tell it by themselves (Vocabulary.marks_words).
    """

    ids: npt.NDArray[np.int32]
    segment_ends: npt.NDArray[np.int64]
    document_ends: npt.NDArray[np.int64]
    words: int
    unknown: int
    bytes: int
    continues: npt.NDArray[np.uint8] | None = None


class TextTokenizer(abc.ABC):
    """Splits text into pieces. One tokenizer serves one thread at a time."""

    def tokenize_files(self, paths: Sequence[str]) -> TokenizedText:
        """Tokenizes text files that are read as one: one segment a line, blank lines between documents.

        No document ends where a file ends. Every carriage return is dropped, and only a newline ends a line, as
        TensorFlow's readline reads text.

        Raises:
          UnusableInputError: a file is missing or not UTF-8, or a line cannot be split.
        """
        return self._tokenize(block for path in paths for block in read_blocks(path))

    def tokenize_bytes(self, text: bytes, name: str = "text") -> TokenizedText:
        """Tokenizes text in memory; see `tokenize_files`. `name` is what an error calls it."""
        text = text.replace(b"\r", b"")
        return self._tokenize([TextBlock(name, 0, text)] if text else [])

    @abc.abstractmethod
    def _tokenize(self, blocks: Iterable[TextBlock]) -> TokenizedText:
        """Tokenizes the blocks of a text, in order."""


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
