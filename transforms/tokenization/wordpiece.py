"""Text files to pieces of a vocabulary, as tokenization.py of the reference splits them (kernels/wordpiece.py)."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from transforms.errors import UnusableInputError
from transforms.tokenization import unicode_tables
from transforms.tokenization.kernels import wordpiece as kernels
from transforms.tokenization.line_parts import joined_arrays
from transforms.tokenization.text_blocks import BLOCK_BYTES, PaddedText, TextBlock, not_utf8
from transforms.tokenization.tokenized_text import TextTokenizer, TokenizedText
from transforms.tokenization.vocabulary import Vocabulary

_MOST_PIECE_BYTES = (1 << 24) - 2  # a node of the trie and a byte make a 32-bit key
_ASCII = 128


class Tokenizer(TextTokenizer):
    """Splits text into pieces. One tokenizer serves one thread at a time: its word cache is written to.

    Memory: the pieces, and twice a file's longest line.
    """

    def __init__(self, vocabulary: Vocabulary, *, do_lower_case: bool = True, unicode: str = "11.0.0") -> None:
        """Makes the tables.

        Raises:
          UnusableInputError: there are no tables for this Unicode version, or the vocabulary is too large.
        """
        table = unicode_tables.load(unicode, do_lower_case)
        slots, node_ids = _trie_of(vocabulary)
        unknown_id = vocabulary.id_of("[UNK]")
        known = dict(zip(vocabulary.pieces, vocabulary.ids.tolist(), strict=True))
        self._arrays = kernels.TokenizerArrays(
            pages=table.pages,
            blocks=table.blocks,
            pool=table.pool,
            slots=slots,
            node_ids=node_ids,
            ascii_ids=np.array([known.get(chr(byte), unknown_id) for byte in range(_ASCII)], np.int32),
            words=np.zeros(kernels.CACHED_WORD << kernels.WORD_BITS, np.uint64),
            scratch=np.empty(kernels.SCRATCH, np.uint8),
            unknown_id=unknown_id,
            do_lower_case=do_lower_case,
        )

    def tokenize_file(self, path: str) -> TokenizedText:
        """Tokenizes one file; see `tokenize_files`."""
        return self.tokenize_files([path])

    def _tokenize(self, blocks: Iterable[TextBlock]) -> TokenizedText:
        memory = _BlockMemory()
        state = np.zeros(kernels.STATE, np.int64)
        ids: list[npt.NDArray[np.int32]] = []
        segment_ends: list[npt.NDArray[np.int64]] = []
        document_ends: list[npt.NDArray[np.int64]] = []
        tokens = segments = read = 0
        for block in blocks:
            size = memory.load(block.content)
            tokenized = kernels.TokenizedBlock(memory.ids, memory.segment_ends, memory.document_ends, state)
            kernels.tokenize_block(memory.text, size, self._arrays, tokenized)
            if state[kernels.BAD_BYTE] >= 0:
                raise not_utf8(block, int(state[kernels.BAD_BYTE]))
            ids.append(memory.ids[: state[kernels.IDS]].copy())
            segment_ends.append(memory.segment_ends[: state[kernels.SEGMENTS]] + tokens)
            document_ends.append(memory.document_ends[: state[kernels.DOCUMENTS]] + segments)
            tokens += int(state[kernels.IDS])
            segments += int(state[kernels.SEGMENTS])
            read += len(block.content)
        if state[kernels.OPEN_SEGMENTS]:
            document_ends.append(np.array([segments], np.int64))
        return TokenizedText(
            ids=joined_arrays(ids, np.int32),
            segment_ends=joined_arrays(segment_ends, np.int64),
            document_ends=joined_arrays(document_ends, np.int64),
            words=int(state[kernels.WORDS]),
            unknown=int(state[kernels.UNKNOWN]),
            bytes=read,
        )


class _BlockMemory:
    """Arrays that hold a block and what it becomes; they are used for one block after the other, and grow."""

    def __init__(self) -> None:
        self._text = PaddedText()
        self._bytes = self._lines = -1

    @property
    def text(self) -> npt.NDArray[np.uint8]:
        """The block, padded."""
        return self._text.text

    def load(self, content: bytes | bytearray) -> int:
        """Takes in the text of a block; returns its size, that of a newline at its end included."""
        size = self._text.load(content)
        if size > self._bytes:
            self._bytes = max(size, BLOCK_BYTES)
            self.ids = np.empty(self._bytes + kernels.SPARE_IDS, np.int32)
        # A block that is larger than most is one long line with few others before it, or was given as a whole.
        lines = size if size <= BLOCK_BYTES else content.count(b"\n") + 1
        if lines > self._lines:
            self._lines = max(lines, BLOCK_BYTES)
            self.segment_ends = np.empty(self._lines + 1, np.int64)
            self.document_ends = np.empty(self._lines + 1, np.int64)
        return size


def _trie_of(vocabulary: Vocabulary) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    """The arrays `slots` and `node_ids` of kernels/wordpiece.py."""
    pieces = [piece.encode() for piece in vocabulary.pieces]
    joined = np.frombuffer(bytearray(b"".join(pieces) + b"\0"), np.uint8)
    starts = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum([len(piece) for piece in pieces], out=starts[1:])
    if starts[-1] > _MOST_PIECE_BYTES or vocabulary.size > kernels.MAX_ID:
        raise UnusableInputError(
            f"{vocabulary.path}: the pieces of this vocabulary have {starts[-1]:,} bytes; "
            f"the tokenizer takes up to {_MOST_PIECE_BYTES:,}."
        )
    most_nodes = int(starts[-1]) + kernels.FIRST_FREE_NODE
    slots = np.zeros(1 << (2 * most_nodes).bit_length(), np.uint64)
    node_ids = np.empty(most_nodes, np.int32)
    kernels.build_trie(joined, starts, vocabulary.ids, slots, node_ids)
    return slots, node_ids
