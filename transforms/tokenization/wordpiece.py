"""Text files to pieces of a vocabulary, as tokenization.py of the reference splits them (kernels/tokenizer.py)."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from transforms.errors import UnusableInputError
from transforms.storage import files
from transforms.tokenization import unicode_tables
from transforms.tokenization.kernels import wordpiece as kernels
from transforms.tokenization.vocabulary import Vocabulary

_BLOCK_BYTES = 1 << 20
_MOST_PIECE_BYTES = (1 << 24) - 2  # a node of the trie and a byte make a 32-bit key


@dataclasses.dataclass(frozen=True)
class TokenizedText:
    """Documents of segments of pieces; a segment is a line that has any.

    ids: int32[tokens]; segment_ends: int64[segments], where each ends in `ids`; document_ends: int64[documents],
    where each ends in `segment_ends`; unknown: how many words have no pieces; bytes: of the text read.
    """

    ids: np.ndarray
    segment_ends: np.ndarray
    document_ends: np.ndarray
    unknown: int
    bytes: int


class Tokenizer:
    """Splits text into pieces. One tokenizer serves one thread at a time: its word cache is written to."""

    def __init__(self, vocabulary: Vocabulary, *, do_lower_case: bool = True, unicode: str = "11.0.0") -> None:
        """Makes the tables.

        Raises:
          UnusableInputError: there are no tables for this Unicode version, or the vocabulary is too large.
        """
        self.vocabulary = vocabulary
        self.code_points = unicode_tables.load(unicode, do_lower_case)
        self.unknown_id = vocabulary.id_of("[UNK]")
        pieces = [piece.encode() for piece in vocabulary.pieces]
        joined = np.frombuffer(bytearray(b"".join(pieces) + b"\0"), np.uint8)
        starts = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=starts[1:])
        if starts[-1] > _MOST_PIECE_BYTES or vocabulary.size > kernels.MAX_ID:
            raise UnusableInputError(
                f"{vocabulary.path}: the pieces of this vocabulary have {starts[-1]:,} bytes; "
                f"the tokenizer takes up to {_MOST_PIECE_BYTES:,}."
            )
        most_nodes = int(starts[-1]) + 2
        self._slots = np.zeros(1 << (2 * most_nodes).bit_length(), np.uint64)
        self._node_ids = np.empty(most_nodes, np.int32)
        kernels.build_trie(joined, starts, vocabulary.ids, self._slots, self._node_ids)
        self._ascii_ids = np.full(128, self.unknown_id, np.int32)
        known = dict(zip(vocabulary.pieces, vocabulary.ids.tolist(), strict=True))
        for byte in range(128):
            self._ascii_ids[byte] = known.get(chr(byte), self.unknown_id)
        self._words = np.zeros((1 << kernels.WORD_BITS) * 4, np.uint64)
        self._scratch = np.empty(kernels.SCRATCH, np.uint8)

    def tokenize_file(self, path: str) -> TokenizedText:
        """Tokenizes one file; see `tokenize_files`."""
        return self.tokenize_files([path])

    def tokenize_files(self, paths: Sequence[str]) -> TokenizedText:
        """Tokenizes text files that are read as one: one segment a line, blank lines between documents.

        No document ends where a file ends. They are read as TensorFlow's readline reads them: every carriage return
        is dropped and only a newline ends a line. Memory: the pieces, and twice a file's longest line.

        Raises:
          UnusableInputError: a file is missing or not UTF-8.
        """
        return self._tokenize(block for path in paths for block in _blocks(path))

    def tokenize_bytes(self, text: bytes, name: str = "text") -> TokenizedText:
        """Tokenizes text in memory; see `tokenize_files`. `name` is what an error calls it."""
        text = text.replace(b"\r", b"")
        return self._tokenize([(name, 0, text)] if text else [])

    def _tokenize(self, blocks: Iterable[tuple[str, int, bytes | bytearray]]) -> TokenizedText:
        state = np.zeros(kernels.STATE, np.int64)
        room = line_room = -1
        ids: list[np.ndarray] = []
        segment_ends: list[np.ndarray] = []
        document_ends: list[np.ndarray] = []
        tokens = segments = read = 0
        table = self.code_points
        for path, lines_before, block in blocks:
            size = len(block)
            whole = size + (block[-1] != 10)  # a last line without its newline is a line
            if whole > room:
                room = max(whole, _BLOCK_BYTES)
                text = np.empty(room + kernels.PADDING, np.uint8)
                block_ids = np.empty(room + 8, np.int32)
            # A larger block is one long line with few others before it, or was given whole.
            lines = whole if whole <= _BLOCK_BYTES else block.count(b"\n") + 1
            if lines > line_room:
                line_room = max(lines, _BLOCK_BYTES)
                block_ends = np.empty(line_room + 1, np.int64)
                block_documents = np.empty(line_room + 1, np.int64)
            text[:size] = np.frombuffer(block, np.uint8)
            text[size : whole + kernels.PADDING] = 10
            kernels.tokenize_block(
                text, whole, table.do_lower_case, table.pages, table.blocks, table.pool, self._slots, self._node_ids,
                self._ascii_ids, self.unknown_id, self._words, self._scratch, block_ids, block_ends,
                block_documents, state,
            )  # fmt: skip
            if state[kernels.BAD_BYTE] >= 0:
                raise _not_utf8(path, lines_before, bytes(block), int(state[kernels.BAD_BYTE]))
            ids.append(block_ids[: state[kernels.IDS]].copy())
            segment_ends.append(block_ends[: state[kernels.SEGMENTS]] + tokens)
            document_ends.append(block_documents[: state[kernels.DOCUMENTS]] + segments)
            tokens += int(state[kernels.IDS])
            segments += int(state[kernels.SEGMENTS])
            read += size
        if state[kernels.OPEN_SEGMENTS]:
            document_ends.append(np.array([segments], np.int64))
        return TokenizedText(
            _joined(ids, np.int32),
            _joined(segment_ends, np.int64),
            _joined(document_ends, np.int64),
            int(state[kernels.UNKNOWN]),
            read,
        )


def _joined(parts: list[np.ndarray], kind: type) -> np.ndarray:
    joined = np.concatenate(parts) if parts else np.empty(0, kind)
    parts.clear()
    return joined


def _blocks(path: str) -> Iterator[tuple[str, int, bytearray]]:
    """Yields runs of whole lines of a file, without carriage returns, and the number of lines before each."""
    lines = 0
    pending = bytearray()
    with files.open_input(path) as file:
        while block := file.read(_BLOCK_BYTES):
            if b"\r" in block:
                block = block.replace(b"\r", b"")
            end = block.rfind(b"\n") + 1
            if end:
                pending += block[:end]
                yield path, lines, pending
                lines += pending.count(b"\n")
                pending = bytearray(block[end:])
            else:
                pending += block
    if pending:
        yield path, lines, pending


def _not_utf8(path: str, lines_before: int, block: bytes, bad: int) -> UnusableInputError:
    line = lines_before + block.count(b"\n", 0, bad) + 1
    column = bad - (block.rfind(b"\n", 0, bad) + 1)
    return UnusableInputError(
        f"{path}, line {line}: this text is not UTF-8 (byte 0x{block[bad]:02X} after {column} bytes of the line, "
        "carriage returns not counted); convert the file or leave it out."
    )
