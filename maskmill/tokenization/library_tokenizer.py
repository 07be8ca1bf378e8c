"""Text files to pieces by the library `tokenizers`: every tokenizer.json that has no compiled path."""

from collections.abc import Iterable

import numpy as np
import tokenizers

from maskmill.errors import UnusableInputError
from maskmill.tokenization import pre_token_classes
from maskmill.tokenization.text_blocks import TextBlock, not_utf8
from maskmill.tokenization.tokenized_text import LineParts, TextTokenizer, TokenizedText

_WHITE = "".join(map(chr, np.flatnonzero(pre_token_classes.load() == pre_token_classes.WHITE).tolist()))


def is_library_error(error: BaseException) -> bool:
    """Whether the library gave up: it raises Exception, or panics, and a panic is no Exception."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


class LibraryTokenizer(TextTokenizer):
    """Splits text as `Tokenizer.encode(line, add_special_tokens=False)` does, line by line, on one thread.

    A line is blank if it has white space only.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer, unknown_id: int | None) -> None:
        """Takes a tokenizer that neither truncates nor pads; unknown_id: the piece that stands for unknown text."""
        self._tokenizer = tokenizer
        self._unknown_id = unknown_id

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
        """Adds the pieces of the line that starts at `start` in a block.

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
            encoding = self._tokenizer.encode(text, add_special_tokens=False)
        except BaseException as error:
            if not is_library_error(error):
                raise
            number = block.lines_before + block.content.count(b"\n", 0, start) + 1
            raise UnusableInputError(
                f"{block.path}, line {number}: the library tokenizers cannot split this line ({error}); change the "
                "tokenizer, or leave the line out."
            ) from None
        parts.add_line(encoding.ids, encoding.word_ids, self._unknown_id)
