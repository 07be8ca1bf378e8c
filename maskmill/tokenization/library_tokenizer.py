"""Text files to pieces by the library `tokenizers`: every tokenizer.json that has no compiled path."""

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


# What stands before a line that goes on a document while it is encoded; the first that has pieces of its own.
_BEFORE_SPACE = (". ", "a ", "1 ")
_BEFORE_UNSPACED = ("。", "一", "の", "、", "ก")


class _Front(NamedTuple):
    """Text that is encoded before a line, and its pieces without the line."""

    text: str
    ids: list[int]


def is_library_error(error: BaseException) -> bool:
    """Return whether the library gave up: it raises Exception, or panics, and a panic is no Exception."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


class LibraryTokenizer(TextTokenizer):
    """Splits text as `Tokenizer.encode(text, add_special_tokens=False)` does, line by line, on one thread.

    A line is blank if it has white space only. The first line of a document is encoded as it is. With `joins_lines`
    each line after it is encoded as in running text, with a space or nothing before it (line_joints.py): after a
    character that is taken away again, so that what the tokenizer does to the start of a text is not done to the line.
    Where the tokenizer has no such character, because it does not know any or joins it with the line, the line is
    encoded as it is.
    """

    def __init__(
        self, tokenizer: tokenizers.Tokenizer, unknown_id: int | None, *, joins_lines: bool, drops_returns: bool
    ) -> None:
        """Take a tokenizer that neither truncates nor pads; unknown_id: the piece that stands for unknown text."""
        self.joins_lines = joins_lines
        self.drops_returns = drops_returns
        self._tokenizer = tokenizer
        self._unknown_id = unknown_id
        self._before_space, self._before_unspaced = map(self._fronts, (_BEFORE_SPACE, _BEFORE_UNSPACED))

    def _fronts(self, texts: Sequence[str]) -> list[_Front]:
        """Return those of some texts that the tokenizer knows; none if it does not join lines."""
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
                # What follows the last newline of a block is not a line, unless the file ends there.
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
        """Return the pieces of a line that is not blank, and the number of the word that each belongs to."""
        if parts.before != NO_LINE:
            has_space = parts.before != UNSPACED or kind_of(text) != UNSPACED
            for front, of_front in self._before_space if has_space else self._before_unspaced:
                encoding = self._tokenizer.encode(front + text, add_special_tokens=False)
                if encoding.ids[: len(of_front)] == of_front:
                    return encoding.ids[len(of_front) :], encoding.word_ids[len(of_front) :]
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return encoding.ids, encoding.word_ids
