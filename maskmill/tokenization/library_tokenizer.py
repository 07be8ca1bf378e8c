"""Split text files into pieces with the library `tokenizers`, for each tokenizer.json without a compiled path."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import tokenizers

from maskmill.errors import UnusableInputError
from maskmill.tokenization import pre_token_classes
from maskmill.tokenization.line_joints import NO_LINE, UNSPACED, kind_of
from maskmill.tokenization.text_blocks import TextBlock, not_utf8
from maskmill.tokenization.tokenized_text import LineParts, TextTokenizer, TokenizedText

_WHITE = "".join(map(chr, np.flatnonzero(pre_token_classes.load() == pre_token_classes.WHITE).tolist()))


# Texts that are put before a line within a document to encode it; the first whose pieces stay apart is used.
_BEFORE_SPACE = (". ", "a ", "1 ")
_BEFORE_UNSPACED = ("。", "一", "の", "、", "ก")


class _Front(NamedTuple):
    """Text that is encoded before a line, and its pieces without the line."""

    text: str
    ids: list[int]


def is_library_error(error: BaseException) -> bool:
    """Return whether the library raised an error: an Exception, or a panic, which is not an Exception."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


class LibraryTokenizer(TextTokenizer):
    """Split text as `Tokenizer.encode(text, add_special_tokens=False)` does, line by line, on one thread.

    A line of white space is blank. The first line of a document is encoded as it is. With `joins_lines` each line after
    it is encoded as in running text, with a space or nothing before it (line_joints.py): a character is put before the
    line, and its pieces are removed, so that the tokenizer does not treat the line as the start of a text. If the
    tokenizer knows none of the characters, or merges them with the line, the line is encoded as it is.
    """

    def __init__(
        self, tokenizer: tokenizers.Tokenizer, unknown_id: int | None, *, joins_lines: bool, drops_returns: bool
    ) -> None:
        """Take a tokenizer that neither truncates nor pads; unknown_id: the id of the piece for unknown text."""
        self.joins_lines = joins_lines
        self.drops_returns = drops_returns
        self._tokenizer = tokenizer
        self._unknown_id = unknown_id
        self._before_space, self._before_unspaced = map(self._fronts, (_BEFORE_SPACE, _BEFORE_UNSPACED))

    def _fronts(self, texts: Sequence[str]) -> list[_Front]:
        """Return the texts that the tokenizer knows, with their pieces; none if it does not join lines."""
        fronts = []
        for text in texts if self.joins_lines else ():
            ids = self._tokenizer.encode(text.strip(), add_special_tokens=False).ids
            if ids and self._unknown_id not in ids:
                fronts.append(_Front(text, ids))
        return fronts

    def _tokenize(self, blocks: Iterable[TextBlock]) -> TokenizedText:
        parts = LineParts()
        for block in blocks:
            start = 0
            for line in block.content.split(b"\n") if block.content else ():
                # The rest after the last newline of a block is a line only if it is not empty.
                if line or start < len(block.content):
                    self.add_line(parts, block, start, bytes(line))
                start += len(line) + 1
            parts.bytes += len(block.content)
        return parts.joined()

    def add_line(self, parts: LineParts, block: TextBlock, start: int, line: bytes) -> None:
        """Add the pieces of the line that starts at `start` in a block.

        Raises:
          UnusableInputError: it is not UTF-8, or the library cannot split it.
        """
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise not_utf8(block, start + error.start) from None
        if not text.strip(_WHITE):
            parts.add_blank_line()
            return
        try:
            ids, words = self._encode(text, parts)
        except BaseException as error:
            if not is_library_error(error):
                raise
            number = block.lines_before + block.content.count(b"\n", 0, start) + 1
            raise UnusableInputError(
                f"{block.path}, line {number}: the library tokenizers cannot split this line ({error}); change the "
                "tokenizer, or leave the line out."
            ) from None
        parts.add_line(ids, words, self._unknown_id)
        parts.before = kind_of(reversed(text)) if self.joins_lines else NO_LINE

    def _encode(self, text: str, parts: LineParts) -> tuple[list[int], list[int | None]]:
        """Return the pieces of a line that is not blank, and for each the number of its word."""
        if parts.before != NO_LINE:
            has_space = parts.before != UNSPACED or kind_of(text) != UNSPACED
            for front, of_front in self._before_space if has_space else self._before_unspaced:
                encoding = self._tokenizer.encode(front + text, add_special_tokens=False)
                if encoding.ids[: len(of_front)] == of_front:
                    return encoding.ids[len(of_front) :], encoding.word_ids[len(of_front) :]
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return encoding.ids, encoding.word_ids
