"""Reads bzip2 files from any byte on, block by block, whether single-stream, multistream or pbzip2's.

A block belongs to the byte range in which its mark starts. Wherever a file is cut into ranges, exactly one reader
decodes each block, and no block is missed unnoticed: a reader checks the bits after each of its blocks, which must be
the mark of another block (which the next range's reader finds) or the end of a stream.

Each block is compared with its checksum. A stream has one more, of its blocks' checksums: a reader compares it where it
has read the stream from its head to its end. A stream that ranges cut is read by several readers, which do not compare
it. `Bzip2Streams` compares the checksums of all streams of a file while the file's own is computed: a block's checksum
stands after its mark, so that it is enough to find the marks, and nothing is unpacked.
"""

import dataclasses
from collections.abc import Callable
from typing import BinaryIO, TypeVar

import numpy as np

from maskmill.errors import UnusableInputError
from maskmill.inputs.items import CutOffError, cut_off
from maskmill.inputs.kernels import bzip2 as kernels
from maskmill.storage import files
from maskmill.text.file_kinds import container_of

# A block of ordinary text takes about 300 kB, the largest possible one 2.3 MB.
_READ_BYTES = 512 << 10
_USUAL_BLOCK = 500 << 10  # so that the first block, after a dump's header, is in what is read at first
_LARGEST_BLOCK = 2_400_000
_MARK_BITS = 48
_END_OF_STREAM_BITS = _MARK_BITS + 32  # the end mark and the stream's checksum; padding to a whole byte follows
_HEAD_BYTES = 4  # "BZh" and a digit
_MARK_BYTES = _MARK_BITS // 8
_CHECKSUM_BITS = 32
_LEVEL_BYTES = 100_000  # of a block, for each level of compression
_EMPTY_STREAM_BYTES = _HEAD_BYTES + _END_OF_STREAM_BITS // 8
# End mark, checksum, padding, "BZh9" and the next mark.
_BETWEEN_BLOCKS = _END_OF_STREAM_BITS // 8 + 1 + _HEAD_BYTES + _MARK_BYTES

_Step = TypeVar("_Step")


class Bzip2Blocks:
    """Decodes the blocks whose marks start in bytes [start, end) of a file, and then those after them.

    Args:
      file: the raw file; it is read once, in order, from `start` on.
      open_again: opens the file once more, to read the blocks in front of a damaged one.
      path: the file's name, for messages.
      start, end: the byte range. A range that starts at 0 must start with a stream's head.
      starts_at_head: whether another range starts with a stream's head, too.
      keep_truncated: whether a file that is cut off ends after its last whole block, instead of raising an error.

    is_truncated: whether the reader has come upon the cut of a file that is cut off. stream_end: the byte after the
    last stream whose end has been read; None before.

    Raises:
      UnusableInputError: the file is damaged; the message names the byte.
    """

    def __init__(
        self,
        file: BinaryIO,
        open_again: Callable[[], BinaryIO],
        path: str,
        start: int,
        end: int,
        *,
        starts_at_head: bool = False,
        keep_truncated: bool = False,
    ) -> None:
        self.is_truncated = False
        self._keep_truncated = keep_truncated
        self.stream_end: int | None = None
        self._open_again = open_again
        self._file = file
        self._path = path
        self._end_bit = end * 8
        self._enter(start)
        self._next_bit: int | None = None  # of the next block's mark in the file; None after the last block
        # Whether a block does start at the next mark: the first mark of a range may be one by chance.
        self._is_certain = False
        self._column = np.empty(kernels.MAX_BLOCK + kernels.SLACK, np.uint8)
        self._table = np.empty(kernels.MAX_BLOCK, np.uint32)
        self._lanes = np.empty((kernels.LANES, kernels.MAX_BLOCK), np.uint8)
        self._raw = np.empty(kernels.MAX_BLOCK, np.uint8)
        self._counts_at = np.empty(kernels.MAX_BLOCK // kernels.SMALLEST_RUN + 1, np.int64)
        self._result = np.zeros(4, np.int64)
        if start == 0 or starts_at_head:
            self._next_bit = self._unless_cut(self._behind_stream, start)
            self._is_certain = True
        else:
            self._next_bit = self._find(start * 8)

    def _enter(self, byte: int) -> None:
        """Read the file from this byte on."""
        self._file.seek(byte)
        self._window = np.zeros(kernels.PADDING, np.uint8)
        self._words = kernels.words_of(self._window)
        self._window_start = byte  # offset in the file of the window's first byte
        self._at_end_of_file = False
        # Of the stream that is being read: the checksum of its blocks so far, None if the reader did not see its head;
        # and the most bytes that its level allows for a block.
        self._checksum: int | None = None
        self._largest_raw = kernels.MAX_BLOCK

    @property
    def last_is_read(self) -> bool:
        """True if the range has no further block. True as soon as `read` has returned the last one."""
        return self._next_bit is None or self._next_bit >= self._end_bit

    def read(self) -> bytes:
        """Return the next block, decoded; b"" after the last one of the file.

        Raises:
          UnusableInputError: the file is damaged or cut off; the message names the byte.
        """
        if self._next_bit is None:
            return b""
        block = self._unless_cut(self._decode, self._next_bit)
        if block is None and not self._is_certain and not self.is_truncated:
            self._next_bit = self._unless_cut(self._true_first_mark, self._next_bit)
            self._is_certain = True
            if self._next_bit is None or self.last_is_read:
                return b""
            block = self._unless_cut(self._decode, self._next_bit)
        if self.is_truncated:
            self._next_bit = None
            return b""
        if block is None:
            raise self._damaged(self._next_bit, "its checksum or its coding is wrong")
        self._is_certain = True
        if self._checksum is not None:
            self._checksum = _combined_checksum(self._checksum, int(self._result[kernels.CHECKSUM]))
        self._next_bit = self._unless_cut(self._behind_block, self._block_end())
        return block

    def _unless_cut(self, step: Callable[[int], _Step | None], place: int) -> _Step | None:
        """Return what a step gives; None where it comes upon the cut of a file whose bytes in front of the cut are
        wanted.
        """
        try:
            return step(place)
        except CutOffError:
            if not self._keep_truncated:
                raise
            self.is_truncated = True
            return None

    def _damaged(self, bit: int, problem: str) -> UnusableInputError:
        return UnusableInputError(
            f"{self._path}: the bzip2 data at byte {bit // 8} is damaged ({problem}); "
            "fetch the file again, or compare its checksum with the publisher's."
        )

    def _cut_off(self) -> CutOffError:
        return cut_off(self._path, self._window_start + self._window_size(), "bzip2")

    def _window_size(self) -> int:
        return self._window.size - kernels.PADDING

    def _ensure(self, byte: int, count: int) -> bool:
        """Read on until the window has `count` bytes from `byte` of the file on; return False where the file ends
        before.
        """
        while self._window_start + self._window_size() < byte + count and not self._at_end_of_file:
            more = self._file.read(max(_READ_BYTES, byte + count - self._window_start - self._window_size()))
            if not more:
                self._at_end_of_file = True
                break
            skip = max(0, min(byte - self._window_start, self._window_size()))
            self._window = np.concatenate(
                [
                    self._window[skip : self._window_size()],
                    np.frombuffer(more, np.uint8),
                    np.zeros(kernels.PADDING, np.uint8),
                ]
            )
            self._words = kernels.words_of(self._window)
            self._window_start += skip
        return self._window_start + self._window_size() >= byte + count

    def _find(self, first_bit: int) -> int | None:
        """Return the first mark of a block in the range that starts at or after `first_bit`, or None."""
        byte = first_bit // 8
        while byte * 8 < self._end_bit:
            complete = self._ensure(byte, _READ_BYTES)
            origin = self._window_start * 8
            end = min(self._end_bit, origin + self._window_size() * 8)
            bit = kernels.find_mark(
                self._window,
                max(first_bit, byte * 8) - origin,
                end - origin,
                kernels.BLOCK_MAGIC,
                kernels.BLOCK_MAGIC,
            )
            if bit >= 0:
                return int(bit) + origin
            if not complete:
                return None
            # The window's last bytes may be the beginning of a mark.
            byte = self._window_start + self._window_size() - (_MARK_BYTES + 1)
        return None

    def _block_end(self) -> int:
        return int(self._result[kernels.BLOCK_END]) + self._window_start * 8

    def _decode(self, bit: int) -> bytes | None:
        """Return the block whose mark starts at `bit`, or None where it is damaged."""
        ahead = _USUAL_BLOCK
        while True:
            complete = self._ensure(bit // 8, ahead)
            status = kernels.decode_symbols(
                self._words,
                self._window_size() * 8,
                bit - self._window_start * 8,
                self._column,
                self._table,
                self._result,
            )
            if status != kernels.NEED_MORE:
                break
            if not complete:
                if self._is_certain:
                    raise self._cut_off()
                return None
            if ahead > _LARGEST_BLOCK:
                return None
            ahead *= 2
        if status == kernels.RANDOMISED and self._is_certain:
            raise UnusableInputError(
                f"{self._path}: the block at byte {bit // 8} was written by bzip2 0.9.0 or older, whose randomised "
                "blocks are not read; unpack the file and pack it again with a current bzip2."
            )
        return self._plain_bytes() if status == kernels.OK else None

    def _plain_bytes(self) -> bytes | None:
        """Return the block whose table decode_symbols has filled, or None where it is damaged."""
        raw_size = int(self._result[kernels.SIZE])
        if raw_size > self._largest_raw:
            return None
        kernels.walk(self._table, raw_size, self._result[kernels.ORIGIN], self._lanes, self._raw)
        n_counts = kernels.find_counts(self._raw, raw_size, self._counts_at)
        if n_counts < 0:
            return None
        size = raw_size - n_counts + int(self._raw[self._counts_at[:n_counts]].sum(dtype=np.int64))
        plain = np.empty(-(-size // 8) * 8, np.uint8)
        kernels.expand(self._raw, raw_size, self._counts_at, n_counts, plain)
        checksum = kernels.checksum(plain, size, kernels.CRC_TABLES)
        return plain[:size].tobytes() if checksum == self._result[kernels.CHECKSUM] else None

    def _behind_block(self, bit: int) -> int | None:
        """Return the mark of the block that follows the one that ends at `bit`; None at the end of the file."""
        self._ensure(bit // 8, _BETWEEN_BLOCKS)
        last_bit = (self._window_start + self._window_size()) * 8
        if bit + _MARK_BITS > last_bit:
            raise self._cut_off()
        mark = kernels.bits_at(self._words, bit - self._window_start * 8, _MARK_BITS)
        if mark == kernels.BLOCK_MAGIC:
            return bit
        if mark != kernels.END_MAGIC:
            raise self._damaged(bit, "neither a block nor the end of the stream follows there")
        if bit + _END_OF_STREAM_BITS > last_bit:
            raise self._cut_off()
        self._check_stream(bit + _MARK_BITS)
        return self._behind_stream((bit + _END_OF_STREAM_BITS + 7) // 8)

    def _check_stream(self, bit: int) -> None:
        """Compare the checksum of the stream that ends, which is at `bit`, with that of its blocks, where known."""
        stored = kernels.bits_at(self._words, bit - self._window_start * 8, _CHECKSUM_BITS)
        if self._checksum is not None and stored != self._checksum:
            raise self._damaged(bit, "the checksum of the stream that ends there is wrong")
        self._checksum = None
        self.stream_end = (bit + _CHECKSUM_BITS + 7) // 8

    def _behind_stream(self, byte: int) -> int | None:
        """Return the mark of the first block of the stream whose head is at `byte`; None at the end of the file."""
        while True:
            self._ensure(byte, _BETWEEN_BLOCKS)
            origin = byte - self._window_start
            rest = self._window[origin : self._window_size()].tobytes()[:_BETWEEN_BLOCKS]
            if not rest:
                return None
            if not (rest[:3] == b"BZh"[: len(rest)] and (len(rest) < 4 or rest[3:4] in b"123456789")):
                raise self._damaged(byte * 8, "no further bzip2 stream starts there")
            if len(rest) < _HEAD_BYTES + _MARK_BYTES:
                raise self._cut_off()
            mark = int.from_bytes(rest[_HEAD_BYTES : _HEAD_BYTES + _MARK_BYTES], "big")
            mark_bit = (byte + _HEAD_BYTES) * 8
            self._checksum = 0
            self._largest_raw = int(rest[3:4]) * _LEVEL_BYTES
            if mark == kernels.BLOCK_MAGIC:
                return mark_bit
            if mark != kernels.END_MAGIC:
                raise self._damaged(mark_bit, "the stream starts with neither a block nor its end")
            if len(rest) < _EMPTY_STREAM_BYTES:
                raise self._cut_off()
            self._check_stream(mark_bit + _MARK_BITS)
            byte += _EMPTY_STREAM_BYTES

    def _true_first_mark(self, candidate: int) -> int | None:
        """Return the range's first true mark, where the block at its first candidate cannot be decoded.

        48 bits inside a block can look like a mark by chance. This follows the blocks in front of the range from the
        last one that can be decoded: they lead either to the candidate, which then is a damaged block, or past it, to
        the first true mark.
        """
        first = max(0, candidate // 8 - 2 * _LARGEST_BLOCK)
        file = self._open_again()
        try:
            before = Bzip2Blocks(file, self._open_again, self._path, first, candidate // 8 + 1)
            marks = []
            mark = before._next_bit
            while mark is not None and mark < candidate:
                marks.append(mark)
                mark = before._find(mark + 1)
            for mark in reversed(marks):
                before._enter(mark // 8)
                if before._decode(mark) is not None:
                    return before._behind_block(before._block_end())
        finally:
            file.close()
        return candidate


def _combined_checksum(checksum: int, of_block: int) -> int:
    """Return the checksum of a stream's blocks, from that of the blocks before and that of the next one."""
    return ((checksum << 1) | (checksum >> (_CHECKSUM_BITS - 1))) & 0xFFFFFFFF ^ of_block


@dataclasses.dataclass(frozen=True, kw_only=True, order=True)
class Mark:
    """Bits that look like a mark: their place in the file, whether they end a stream, and the 32 bits that follow."""

    bit: int
    is_end: bool
    checksum: int


class MarkFinder:
    """Finds the marks in a file that is given part by part."""

    def __init__(self) -> None:
        self._rest = b""  # the last bytes so far: a mark may start there, but not all of its checksum has come
        self._rest_start = 0  # offset of these in the file
        self._first_bit = 0  # of these, the first one that has not been looked at

    def add(self, part: bytes) -> list[Mark]:
        """Take the next part of the file; return the marks, in order, whose checksum ends in it."""
        padded = bytearray().join((self._rest, part, bytes(kernels.PADDING)))
        size = len(padded) - kernels.PADDING
        end_bit = size * 8 - _END_OF_STREAM_BITS + 1  # a block's mark and checksum have as many bits
        if end_bit <= self._first_bit:
            self._rest = bytes(padded[:size])
            return []
        marks = _find_marks(padded, self._first_bit, end_bit, self._rest_start)
        self._first_bit = end_bit % 8
        self._rest = bytes(padded[end_bit // 8 : size])
        self._rest_start += end_bit // 8
        return marks


class Bzip2Streams:
    """Compares the checksum of each stream of a file that is given part by part. It takes other files, too.

    48 bits inside a block can look like a mark by chance. So a stream whose checksum seems to be wrong is unpacked, and
    its reader decides.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._finder = MarkFinder()
        self._is_bzip2: bool | None = None  # None as long as no part has come
        self._head = 0  # the byte at which the present stream starts
        self._checksum = 0  # of its blocks so far

    def add(self, part: bytes) -> None:
        """Take the next part of the file; the first one must be long enough to tell the container.

        Raises:
          UnusableInputError: the checksum of a stream is wrong, or the stream is damaged otherwise.
        """
        if self._is_bzip2 is None:
            self._is_bzip2 = container_of(part) == "bz2"
        if not self._is_bzip2:
            return
        for mark in self._finder.add(part):
            if mark.bit < self._head * 8:
                continue  # in a stream that has been unpacked
            if not mark.is_end:
                self._checksum = _combined_checksum(self._checksum, mark.checksum)
                continue
            if mark.checksum == self._checksum:
                self._head = (mark.bit + _END_OF_STREAM_BITS + 7) // 8
            else:
                self._head = _end_of_unpacked_stream(self._path, self._head)
            self._checksum = 0


def _find_marks(padded: bytearray, first_bit: int, end_bit: int, offset: int) -> list[Mark]:
    """Return the marks that start at bits [first_bit, end_bit) of bytes, in order; `offset` is that of the bytes in the
    file.

    padded: the bytes, and kernels.PADDING zeros after them.
    """
    data, magics = np.frombuffer(padded, np.uint8), (kernels.BLOCK_MAGIC, kernels.END_MAGIC)
    marks = []
    bit = int(kernels.find_mark(data, first_bit, end_bit, *magics))
    while bit >= 0:
        behind = bit + _END_OF_STREAM_BITS
        bits = int.from_bytes(padded[bit // 8 : (behind + 7) // 8], "big") >> (-behind % 8)
        magic, checksum = divmod(bits & ((1 << _END_OF_STREAM_BITS) - 1), 1 << _CHECKSUM_BITS)
        marks.append(Mark(bit=offset * 8 + bit, is_end=magic == kernels.END_MAGIC, checksum=checksum))
        bit = int(kernels.find_mark(data, bit + 1, end_bit, *magics))
    return marks


def _end_of_unpacked_stream(path: str, head: int) -> int:
    """Unpack the stream whose head is at byte `head`, and empty ones after it; return the byte after them.

    Raises:
      UnusableInputError: the stream is damaged.
    """
    file = files.open_input(path)
    try:
        blocks = Bzip2Blocks(file, lambda: files.open_input(path), path, head, files.size(path), starts_at_head=True)
        while blocks.stream_end is None:
            blocks.read()
        return blocks.stream_end
    finally:
        file.close()
