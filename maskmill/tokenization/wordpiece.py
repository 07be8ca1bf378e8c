"""Split text files into the pieces of a vocabulary, as the reference's tokenization.py (kernels/wordpiece.py)."""

import functools
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.tokenization import unicode_tables
from maskmill.tokenization.kernels import wordpiece as kernels
from maskmill.tokenization.text_blocks import BlockMemory, TextBlock, not_utf8
from maskmill.tokenization.tokenized_text import LineParts, TextTokenizer, TokenizedText
from maskmill.tokenization.vocabulary import Vocabulary

_MOST_PIECE_BYTES = (1 << 24) - 2  # a node of the trie and a byte make a 32-bit key
_ASCII = 128


class Tokenizer(TextTokenizer):
    """Split text into pieces. One tokenizer serves one thread at a time, because it writes to its word cache.

    Memory: the pieces, and twice a file's longest line.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        do_lower_case: bool = True,
        unicode: str = "11.0.0",
        drops_returns: bool = False,
    ) -> None:
        """Make the tables; drops_returns: see `without_returns`.

        Raises:
          UnusableInputError: there are no tables for this Unicode version, or the vocabulary is too large.
        """
        self.drops_returns = drops_returns
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
        self._memory = BlockMemory(kernels.SPARE_IDS)

    def _tokenize(self, blocks: Iterable[TextBlock]) -> TokenizedText:
        parts = LineParts(marks_continues=False)
        memory = self._memory
        state = np.zeros(kernels.STATE, np.int64)
        for block in blocks:
            size = memory.load(block.content)
            tokenized = kernels.TokenizedBlock(
                memory.ids, memory.segment_ends, memory.document_ends, memory.segment_lines, state
            )
            kernels.tokenize_block(memory.text, size, self._arrays, tokenized)
            if state[kernels.BAD_BYTE] >= 0:
                raise not_utf8(block, int(state[kernels.BAD_BYTE]))
            parts.add(
                memory.ids[: state[kernels.IDS]].copy(),
                memory.segment_ends[: state[kernels.SEGMENTS]],
                memory.document_ends[: state[kernels.DOCUMENTS]],
                memory.segment_lines[: state[kernels.SEGMENTS]],
                lines=int(state[kernels.LINES]),
            )
            parts.bytes += len(block.content)
        parts.open_segments = int(state[kernels.OPEN_SEGMENTS])
        parts.words, parts.unknown = int(state[kernels.WORDS]), int(state[kernels.UNKNOWN])
        return parts.joined()


@functools.lru_cache(maxsize=1)
def _trie_of(vocabulary: Vocabulary) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    """Return the arrays `slots` and `node_ids` of kernels/wordpiece.py."""
    pieces = [piece.encode() for piece in vocabulary.pieces]
    letters = np.frombuffer(bytearray(b"".join(pieces) + b"\0"), np.uint8)
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
    kernels.build_trie(letters, starts, vocabulary.ids, slots, node_ids)
    return slots, node_ids
