"""Split text files into pieces by byte-level BPE, as RoBERTa's and GPT-2's tokenizers do (kernels/byte_level.py)."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.tokenization import line_joints, pre_token_classes
from maskmill.tokenization.kernels import byte_level as kernels
from maskmill.tokenization.library_tokenizer import LibraryTokenizer
from maskmill.tokenization.text_blocks import BlockMemory, TextBlock, not_utf8
from maskmill.tokenization.tokenized_text import LineParts, TextTokenizer, TokenizedText

_BYTES = 256
_FIRST_ROOM = 1 << 12  # the longest pre-token, in bytes, that fits the first arrays; longer ones enlarge them
# Settings that change how words are split; all are off in plain byte-level BPE.
_EXTRAS = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges")
# A spare byte before the text of a block, because the first line may have to begin with a space.
_FRONT = 1


def byte_characters() -> tuple[str, ...]:
    """Return GPT-2's character for each byte: itself if it is printable, else the next one from U+0100 on.

    Source: bytes_to_unicode in src/encoder.py of openai/gpt-2.
    """
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(_BYTES, 2 * _BYTES))
    return tuple(chr(byte if byte in printable else next(others)) for byte in range(_BYTES))


@dataclasses.dataclass(frozen=True, kw_only=True)
class BytePairs:
    """The content of a tokenizer.json of plain byte-level BPE.

    Attributes:
      byte_ids: int32[256], the piece of each byte.
      merges: int64[merges, 3], the ids of the left part, the right part and the result, in the order of ranks.
      added_tokens: tokens that are searched in the text before it is split.
      prefix_space: whether a text is read as if it began with a space.
    """

    byte_ids: npt.NDArray[np.int32]
    merges: npt.NDArray[np.int64]
    added_tokens: tuple[bytes, ...]
    prefix_space: bool


def plain_byte_pairs(saved: Mapping[str, Any]) -> BytePairs | None:
    """Return the content of a tokenizer, or None if it is not plain byte-level BPE.

    Plain is a BPE model with a piece for each byte, without dropout, affixes and the like, without a normalizer, over a
    ByteLevel that splits words. It must not have more pieces and merges than the kernels take.

    Args:
      saved: the JSON of `tokenizers.Tokenizer.to_str`, in which merges are pairs of strings, in order.
    """
    model, splitter = saved["model"], saved["pre_tokenizer"]
    ids = model.get("vocab")
    contents = [token["content"] for token in saved["added_tokens"]]
    # A line has neither newlines nor carriage returns.
    added = tuple(content.encode() for content in contents if not {"\n", "\r"} & set(content))
    plain = (
        model.get("type") == "BPE"
        and not any(model.get(name) for name in _EXTRAS)
        and saved["normalizer"] is None
        and splitter is not None
        and splitter["type"] == "ByteLevel"
        and splitter["use_regex"]
        and all(character in ids for character in byte_characters())
        and len(set(ids.values())) == len(ids)
        and max(ids.values()) < kernels.MAX_ID
        and len(model["merges"]) < kernels.MAX_RANK
        and sum(len(token) for token in added) < kernels.MAX_ID
    )
    if not plain:
        return None
    merges = np.array([(ids[a], ids[b], ids[a + b]) for a, b in model["merges"]], np.int64).reshape(-1, 3)
    return BytePairs(
        byte_ids=np.array([ids[character] for character in byte_characters()], np.int32),
        merges=merges,
        added_tokens=added,
        prefix_space=splitter["add_prefix_space"],
    )


class ByteLevelTokenizer(TextTokenizer):
    """Split text as LibraryTokenizer does, line by line.

    The library itself splits lines with an added token. A line of white space is blank. One tokenizer serves one thread
    at a time, because it writes to its word cache. Memory: the pieces, some 10 times a file's longest line, and 13
    times its longest word.
    """

    def __init__(self, pairs: BytePairs, library: LibraryTokenizer) -> None:
        """Make the tables; library: splits lines with added tokens, and decides whether lines are joined."""
        self._library = library
        self.drops_returns = library.drops_returns
        left, right, results = np.ascontiguousarray(pairs.merges.T)
        table = _pair_table(left, right, np.arange(len(results)))
        byte_ranks = np.empty(_BYTES * _BYTES, np.uint32)
        kernels.put_byte_ranks(table, pairs.byte_ids, byte_ranks)
        self._arrays = kernels.BytePairArrays(
            classes=pre_token_classes.load(),
            joints=line_joints.load(),
            pairs=table,
            byte_ids=pairs.byte_ids,
            byte_ranks=byte_ranks,
            results=results.astype(np.int32),
            words=np.zeros(kernels.CACHED_WORD << kernels.WORD_BITS, np.uint64),
            links=np.empty(2 * _FIRST_ROOM, np.int32),
            ranks=np.empty(kernels.rank_room(_FIRST_ROOM), np.uint32),
            levels=np.empty(kernels.LEVELS, np.int64),
            prefix_space=pairs.prefix_space,
            joins_lines=library.joins_lines,
        )
        self._first_nodes, self._trie = _trie_of(pairs.added_tokens)
        self._has_added = bool(pairs.added_tokens)
        self._memory = _BlockMemory()

    def _tokenize(self, blocks: Iterable[TextBlock]) -> TokenizedText:
        parts = LineParts()
        memory = self._memory
        for block in blocks:
            size = memory.load(block.content)
            self._tokenize_block(block, memory, size, parts)
            parts.bytes += len(block.content)
        return parts.joined()

    def _tokenize_block(self, block: TextBlock, memory: "_BlockMemory", size: int, parts: LineParts) -> None:
        """Tokenize the lines of a block, memory.text[_FRONT:size]."""
        start = _FRONT
        while start < size:
            found = -1
            if self._has_added:
                found = kernels.find_added_token(memory.text, start, size, self._first_nodes, self._trie)
            if found < 0:
                self._tokenize_lines(block, memory, start, size, parts)
                return
            line = block.content.rfind(b"\n", 0, found - _FRONT) + 1
            end = block.content.find(b"\n", found - _FRONT)
            end = len(block.content) if end < 0 else end
            self._tokenize_lines(block, memory, start, line + _FRONT, parts)
            self._library.add_line(parts, block, line, bytes(block.content[line:end]))
            start = end + 1 + _FRONT

    def _tokenize_lines(self, block: TextBlock, memory: "_BlockMemory", start: int, end: int, parts: LineParts) -> None:
        """Tokenize the lines of memory.text[start:end], which have no added token."""
        while start < end:
            state = np.zeros(kernels.STATE, np.int64)
            state[[kernels.OPEN_SEGMENTS, kernels.BEFORE]] = parts.open_segments, parts.before
            kernels.tokenize_lines(memory.text, start, end, self._arrays, memory.lines(state))
            if state[kernels.BAD_BYTE] >= 0:
                raise not_utf8(block, int(state[kernels.BAD_BYTE]) - _FRONT)
            tokens, segments = int(state[kernels.IDS]), int(state[kernels.SEGMENTS])
            parts.add(
                memory.ids[:tokens].copy(),
                memory.segment_ends[:segments],
                memory.document_ends[: state[kernels.DOCUMENTS]],
                memory.segment_lines[:segments],
                memory.continues[:tokens].copy(),
                lines=int(state[kernels.LINES]),
            )
            parts.open_segments = int(state[kernels.OPEN_SEGMENTS])
            parts.before = int(state[kernels.BEFORE])
            parts.words += int(state[kernels.WORDS])
            needed = int(state[kernels.NEEDED])
            if not needed:
                return
            self._arrays = self._arrays._replace(
                links=np.empty(2 * needed, np.int32), ranks=np.empty(kernels.rank_room(needed), np.uint32)
            )
            start = int(state[kernels.READ])


class _BlockMemory(BlockMemory):
    """The memory of a block, with `continues`, uint8, beside the ids."""

    def __init__(self) -> None:
        super().__init__(kernels.SPARE_IDS, _FRONT)
        self.continues = np.empty(0, np.uint8)

    def load(self, content: bytes | bytearray) -> int:
        """Copy in the text of a block; return where it ends."""
        end = super().load(content)
        if len(self.continues) < len(self.ids):
            self.continues = np.empty(len(self.ids), np.uint8)
        return end

    def lines(self, state: npt.NDArray[np.int64]) -> kernels.TokenizedLines:
        """Return the arrays that the kernel writes to."""
        return kernels.TokenizedLines(
            self.ids, self.continues, self.segment_ends, self.document_ends, self.segment_lines, state
        )


def _pair_table(
    left: npt.NDArray[np.int64], right: npt.NDArray[np.int64], values: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Return the hash table `pairs` of kernels/byte_level.py."""
    pairs = np.zeros(1 << (2 * len(left) + 1).bit_length(), np.uint64)
    kernels.put_pairs(pairs, left, right, values)
    return pairs


def _trie_of(tokens: Iterable[bytes]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """Return the trie of added tokens, as `find_added_token` of kernels/byte_level.py takes it."""
    nodes: dict[tuple[int, int], int] = {}
    ends: set[int] = set()
    for token in tokens:
        node = 0
        for byte in token:
            node = nodes.setdefault((node, byte), len(nodes) + 1)
        ends.add(node)
    first_nodes = np.full(_BYTES, kernels.NO_RANK, np.uint32)
    rows = []
    for (node, byte), result in nodes.items():
        value = kernels.TOKEN if result in ends else result
        if node == 0:
            first_nodes[byte] = value
        else:
            rows.append((node, byte, value))
    left, right, values = np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 3).T)
    return first_nodes, _pair_table(left, right, values)
