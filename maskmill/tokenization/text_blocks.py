"""Text files as blocks of whole lines, which tokenizers read one after the other."""

import dataclasses
import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.storage import files

BLOCK_BYTES = 1 << 20  # bytes that are read of a file at once
PADDING = 32  # newlines after a block, so that kernels can read several bytes at once
_NEWLINE = 10
_RETURNS_AT_LINE_END = re.compile(rb"\r+(?=\n|\Z)")


@dataclasses.dataclass(frozen=True)
class TextBlock:
    """A run of whole lines of a file, without carriage returns; only the last line of a file may lack its newline."""

    path: str
    lines_before: int
    content: bytes | bytearray


def without_returns(text: bytes | bytearray, *, drops_returns: bool) -> bytes | bytearray:
    """Return whole lines without carriage returns: those at the end of a line are dropped, others become spaces.

    drops_returns: drop all of them, which joins the words on both sides, as TensorFlow's readline does, with which the
    references read.
    """
    if b"\r" not in text:
        return text
    return text.replace(b"\r", b"") if drops_returns else _RETURNS_AT_LINE_END.sub(b"", text).replace(b"\r", b" ")


def read_blocks(path: str, *, drops_returns: bool = False) -> Iterator[TextBlock]:
    """Yield the blocks of a text file.

    Only a newline ends a line; `without_returns` removes carriage returns. Memory: a block, and twice the
    file's longest line.

    Raises:
      UnusableInputError: the file is missing or cannot be read.
    """
    lines = 0
    pending = bytearray()
    with files.open_input(path, 0, files.TO_THE_END) as file:
        while content := file.read(BLOCK_BYTES):
            end = content.rfind(b"\n") + 1
            if end:
                pending += content[:end]
                yield TextBlock(path, lines, without_returns(pending, drops_returns=drops_returns))
                lines += pending.count(b"\n")
                pending = bytearray(content[end:])
            else:
                pending += content
    if rest := without_returns(pending, drops_returns=drops_returns):
        yield TextBlock(path, lines, rest)


class PaddedText:
    """Memory for a block, reused for the next one; it grows.

    Attributes:
      text: uint8, `lead` newlines, the block, a newline if its last line has none, and PADDING newlines more.
    """

    def __init__(self, lead: int = 0) -> None:
        self.text: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self._lead = lead

    def load(self, content: bytes | bytearray) -> int:
        """Copy in the text of a block, which is not empty; return where it ends, its last newline included."""
        end = self._lead + len(content)
        whole = end + (content[-1] != _NEWLINE)
        if whole + PADDING > len(self.text):
            self.text = np.empty(max(whole, BLOCK_BYTES) + PADDING, np.uint8)
        self.text[: self._lead] = _NEWLINE
        self.text[self._lead : end] = np.frombuffer(content, np.uint8)
        self.text[end : whole + PADDING] = _NEWLINE
        return whole


class BlockMemory:
    """The arrays of a block and of its pieces, reused for the next block; they grow.

    Attributes:
      text: the block, see PaddedText.
      ids: int32, an element for each byte of the text, and `spare_ids` more.
      segment_ends, document_ends, segment_lines: int64, an element for each line, and one more.
    """

    def __init__(self, spare_ids: int, lead: int = 0) -> None:
        """Allocate nothing yet; lead: newlines before the text."""
        self._padded = PaddedText(lead)
        self._spare_ids = spare_ids
        self._bytes = self._lines = -1

    def load(self, content: bytes | bytearray) -> int:
        """Copy in the text of a block; return where it ends, see PaddedText."""
        end = self._padded.load(content)
        self.text = self._padded.text
        if end > self._bytes:
            self._bytes = max(end, BLOCK_BYTES)
            self.ids = np.empty(self._bytes + self._spare_ids, np.int32)
        # A block above BLOCK_BYTES is one long line with few others before it, or a whole text: count its lines.
        lines = end if end <= BLOCK_BYTES else content.count(b"\n") + 1
        if lines > self._lines:
            self._lines = max(lines, BLOCK_BYTES)
            self.segment_ends = np.empty(self._lines + 1, np.int64)
            self.document_ends = np.empty(self._lines + 1, np.int64)
            self.segment_lines = np.empty(self._lines + 1, np.int64)
        return end


def not_utf8(block: TextBlock, bad: int) -> UnusableInputError:
    """Return the error for the byte at `bad` of a block."""
    content = block.content
    line = block.lines_before + content.count(b"\n", 0, bad) + 1
    column = bad - (content.rfind(b"\n", 0, bad) + 1)
    return UnusableInputError(
        f"{block.path}, line {line}: this text is not UTF-8 (byte 0x{content[bad]:02X} after {column} bytes of the "
        "line, carriage returns not counted); convert the file or leave it out."
    )
