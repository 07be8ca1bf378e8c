"""The plain bytes of a byte range of an input file, however the file is packed, and a window that slides over them.

A source gives the bytes that its range owns and then, as long as its reader asks, those after them, so that the reader
can finish the last record of the range. Plain and bzip2 files can be entered anywhere; gzip and xz files cannot, so
they have only one range.
"""

import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

from maskmill.errors import UnusableInputError
from maskmill.inputs.bzip2 import Bzip2Blocks
from maskmill.inputs.items import OR_KEEP, CutOffError, cut_off
from maskmill.storage import files
from maskmill.storage.read_ahead import LOOK_BYTES

_XZ_END = b"YZ"  # the last bytes of a stream; zeros may follow
_XZ_PADDING = 64 << 10  # bytes looked at after them
_CHUNK = 1 << 20
_GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS  # zlib's way to ask for gzip's header
_XZ_MEMORY = 1 << 30  # a hostile file could ask for a dictionary of 4 GB


def is_splittable(container: str) -> bool:
    """Return whether a file in a container can be entered at any byte."""
    return container in ("plain", "bz2")


class Source:
    """The plain bytes of one byte range of a file, and of what follows it.

    Args:
      path: the file, local or not.
      container: one of CONTAINERS.
      start, end: the byte range of the raw file; end: None: all that follows.
      keep_truncated: whether a file that is cut off ends at its cut, instead of raising an error.
      raw: the file, if it is open; it stays open.

    container, size: of the file, in bytes. end: of the byte range. own: how many of the plain bytes belong to the
    range; None as long as that is unknown, when all bytes that were read so far belong to it. is_truncated: whether the
    reader has come upon the cut of a file that is cut off.

    Raises:
      UnusableInputError: the file is damaged or cut off; the message names the byte.
      RunFailedError: the machine cannot read it on.
    """

    def __init__(
        self,
        path: str,
        container: str,
        start: int,
        end: int | None,
        *,
        keep_truncated: bool = False,
        raw: BinaryIO | None = None,
    ) -> None:
        self.container = container
        self.own: int | None = None
        self.is_truncated = False
        self._keep_truncated = keep_truncated
        self._bytes_read = 0
        # What begins in a range, as its last page, ends a little after it.
        behind = None if end is None else end + LOOK_BYTES
        self._raw = files.open_input(path, start, behind) if raw is None else raw
        self._is_own = raw is None
        self._blocks: Bzip2Blocks | None = None
        try:
            self.size = self._raw.seek(0, os.SEEK_END)
            self.end = end = self.size if end is None else end
            self._raw.seek(start)
            if container == "plain":
                self.own = end - start
                self._chunks = iter(lambda: self._raw.read(_CHUNK), b"")
            elif container == "bz2":
                self._blocks = Bzip2Blocks(
                    self._raw, lambda: files.open_input(path), path, start, end, keep_truncated=keep_truncated
                )
                self._chunks = iter(self._blocks.read, b"")
            else:
                self._chunks = _unpacked_chunks(self._raw, path, _PACKINGS[container])
        except BaseException:
            self.close()
            raise
        self._note_end_of_range()

    def read(self) -> bytes:
        """Return the next plain bytes, at least one and (but for a bomb) at most some MB; b"" at the end of the
        file.
        """
        try:
            chunk = next(self._chunks, b"")
        except CutOffError:
            if not self._keep_truncated:
                raise
            self.is_truncated = True
            chunk = b""
        self._bytes_read += len(chunk)
        if chunk:
            self._note_end_of_range()
        elif self.own is None:
            self.own = self._bytes_read
        return chunk

    def _note_end_of_range(self) -> None:
        self.is_truncated |= self._blocks is not None and self._blocks.is_truncated
        if self.own is None and self._blocks is not None and self._blocks.last_is_read:
            self.own = self._bytes_read

    def close(self) -> None:
        """Close the file, unless it was open before."""
        if self._is_own:
            self._raw.close()

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_end(path: str, container: str, size: int) -> None:
    """Check the last bytes of a file of `size` bytes, where they tell a file that is cut off before it is read.

    Raises:
      CutOffError: they are not those of a whole file.
    """
    if container != "xz":
        return
    end = files.read_range(path, max(0, size - _XZ_PADDING), size).rstrip(b"\0")
    if end and not end.endswith(_XZ_END):
        raise CutOffError(
            f"{path}: the file is cut off, or something else follows its last stream: its last bytes are not the end "
            f"of xz data; fetch it again, {OR_KEEP}."
        )


class _Packing(NamedTuple):
    """A container that can only be read from its beginning: streams one after another.

    name, stream: what messages call it, and one of its streams. start: the first byte of a stream. new: makes what
    unpacks one. error: what that raises for damaged data.
    """

    name: str
    stream: str
    start: bytes
    new: Callable[[], Any]
    error: type[Exception]


_PACKINGS = {
    "gz": _Packing("gzip", "member", b"\x1f", lambda: zlib.decompressobj(wbits=_GZIP_WINDOW_BITS), zlib.error),
    "xz": _Packing(
        "xz",
        "stream",
        b"\xfd",
        lambda: lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY),
        lzma.LZMAError,
    ),
}


def _unpacked_chunks(raw: BinaryIO, path: str, packing: _Packing) -> Iterator[bytes]:
    def damaged(problem: Exception | str) -> UnusableInputError:
        return UnusableInputError(
            f"{path}: the {packing.name} data is damaged in front of byte {raw.tell()} ({problem}); "
            "fetch the file again, or compare its checksum with the publisher's."
        )

    packed = raw.read(_CHUNK)
    while packed:
        stream = packing.new()
        while not stream.eof:
            # lzma keeps what it has not unpacked yet, zlib gives it back.
            if not packed and getattr(stream, "needs_input", True):
                packed = raw.read(_CHUNK)
                if not packed:
                    raise cut_off(path, raw.tell(), packing.name)
            try:
                chunk = stream.decompress(packed, _CHUNK)
            except packing.error as error:
                raise damaged(error) from error
            packed = getattr(stream, "unconsumed_tail", b"")
            if chunk:
                yield chunk
        packed = _skip_zeros(raw, stream.unused_data)
        if packed and packed[:1] != packing.start:
            raise damaged(f"something else follows its last {packing.stream}")


def _skip_zeros(raw: BinaryIO, packed: bytes) -> bytes:
    """Skip the zeros that may fill up a file after a gzip member or an xz stream; b"" at the end of the file."""
    while not packed.strip(b"\0"):
        packed = raw.read(_CHUNK)
        if not packed:
            return b""
    return packed.lstrip(b"\0")


# What `Window.find_end` returns instead of an index.
END_OF_FILE = -1
TOO_LARGE = -2


class Marks(NamedTuple):
    """The patterns that divide records.

    start: what stands before a record, which begins with the last byte of this. end: what ends a record. unsure: gives
    the first index from which on data may be the beginning of either, cut off by the end of the data.
    """

    start: re.Pattern[bytes]
    end: re.Pattern[bytes]
    unsure: Callable[[bytes], int]


class Window:
    """A sliding window over the plain bytes of a source.

    Args:
      source: where the bytes come from.
      before: bytes that the window shows in front of the source's first byte.

    data: the bytes that the window shows now.
    """

    def __init__(self, source: Source, before: bytes = b"") -> None:
        self.data = before
        self._base = -len(before)  # place of data[0] in the source
        self._source = source

    @property
    def is_truncated(self) -> bool:
        """True if the end of the data is the cut of a file that is cut off."""
        return self._source.is_truncated

    def is_own(self, index: int) -> bool:
        """Return whether data[index] belongs to the source's range; `index` may lie after the data."""
        return self._source.own is None or self._base + index < self._source.own

    def slide(self, index: int) -> bool:
        """Drop the bytes in front of data[index] and read more; return False at the end of the file.

        It reads at least as much as it keeps, so that a record of any length costs linear time.
        """
        parts = [self.data[index:]]
        wanted = max(1, len(parts[0]))
        while wanted > 0:
            chunk = self._source.read()
            if not chunk:
                break
            parts.append(chunk)
            wanted -= len(chunk)
        self._base += index
        self.data = b"".join(parts)
        return len(parts) > 1

    def cut(self, start: int, end: int) -> None:
        """Remove data[start:end]; the bytes after it keep their place in the source."""
        self.data = self.data[:start] + self.data[end:]
        self._base += end - start

    def find_end(
        self, start: int, mark: re.Pattern[bytes], *, unsure: Callable[[bytes], int], largest: int
    ) -> tuple[int, int]:
        """Look for the mark that ends the record at data[start], and read more where it must.

        Args:
          start: where the record starts; the mark starts after it.
          mark: what ends it.
          unsure: as in Marks.
          largest: the most bytes that a record may have.

        Returns:
          The index of the mark, END_OF_FILE where the file ends before it, or TOO_LARGE; and the index of the record,
          which changes when the window slides.
        """
        match = mark.search(self.data, start + 1)
        while match is None:
            if len(self.data) - start > largest:
                return TOO_LARGE, start
            searched = unsure(self.data) - start
            if not self.slide(start):
                return END_OF_FILE, 0
            start = 0
            match = mark.search(self.data, max(1, searched))
        end = match.start()
        return (end if end - start <= largest else TOO_LARGE), start

    def records(self, marks: Marks, largest: int) -> Iterator[tuple[int, int]]:
        """Yield the records whose mark the source's range owns: the index of each, and what `find_end` says of its
        end.
        """
        at = 0
        while True:
            found = marks.start.search(self.data, at)
            if found is None:
                keep = max(at, marks.unsure(self.data))
                if not self.is_own(keep) or not self.slide(keep):
                    return
                at = 0
                continue
            if not self.is_own(found.start()):
                return
            end, start = self.find_end(found.end() - 1, marks.end, unsure=marks.unsure, largest=largest)
            yield start, end
            at = end if end >= 0 else start + 1 if end == TOO_LARGE else len(self.data)
