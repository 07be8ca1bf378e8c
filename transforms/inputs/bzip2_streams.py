"""Compares the checksums of all bzip2 streams of a file, while the file's own checksum is computed.

A stream's checksum is made of those of its blocks, each of which stands behind the block's mark. So it is enough to
find the marks of the blocks and of the streams' ends; nothing is unpacked. What is in a block is compared with the
block's checksum by the block's reader (transforms/inputs/bzip2.py).
"""

import dataclasses

import numpy as np

from maskmill.storage import files
from maskmill.text.file_kinds import container_of
from transforms.inputs.bzip2 import CHECKSUM_BITS, END_OF_STREAM_BITS, Bzip2Blocks, combined_checksum
from transforms.inputs.kernels import bzip2 as kernels

_PADDING = bytes(kernels.PADDING)


@dataclasses.dataclass(frozen=True, kw_only=True, order=True)
class Mark:
    """What looks like a mark: its bit in the file, whether it ends a stream, and the 32 bits that follow it."""

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
        """Takes the next part of the file; returns the marks, in order, whose checksum ends in it."""
        data = self._rest + part
        end_bit = len(data) * 8 - END_OF_STREAM_BITS + 1  # a block's mark and checksum have as many bits
        if end_bit <= self._first_bit:
            self._rest = data
            return []
        marks = _find_marks(data, self._first_bit, end_bit, self._rest_start)
        self._first_bit = end_bit % 8
        self._rest = data[end_bit // 8 :]
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
        """Takes the next part of the file; the first one must be long enough to tell the container.

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
                self._checksum = combined_checksum(self._checksum, mark.checksum)
                continue
            if mark.checksum == self._checksum:
                self._head = (mark.bit + END_OF_STREAM_BITS + 7) // 8
            else:
                self._head = _end_of_unpacked_stream(self._path, self._head)
            self._checksum = 0


def _find_marks(data: bytes, first_bit: int, end_bit: int, offset: int) -> list[Mark]:
    """The marks that start at bits [first_bit, end_bit) of `data`, in order; `offset` is that of `data` in the file."""
    padded = np.frombuffer(bytearray().join((data, _PADDING)), np.uint8)
    marks = []
    for magic in (kernels.BLOCK_MAGIC, kernels.END_MAGIC):
        bit = int(kernels.find_mark(padded, first_bit, end_bit, magic))
        while bit >= 0:
            behind = bit + END_OF_STREAM_BITS
            bits = int.from_bytes(data[bit // 8 : (behind + 7) // 8], "big") >> (-behind % 8)
            checksum = bits & ((1 << CHECKSUM_BITS) - 1)
            marks.append(Mark(bit=offset * 8 + bit, is_end=magic == kernels.END_MAGIC, checksum=checksum))
            bit = int(kernels.find_mark(padded, bit + 1, end_bit, magic))
    return sorted(marks)


def _end_of_unpacked_stream(path: str, head: int) -> int:
    """Unpacks the stream whose head is at byte `head`, and empty ones behind it; returns the byte behind them.

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
