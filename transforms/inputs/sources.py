"""Plain bytes of a byte range of an input file, whatever the file is packed with.

A source hands out the bytes that its range owns, and then, for as long as it is asked, those behind them, so that a
reader can finish the record that starts last in its range. Plain and bzip2 files can be entered anywhere; gzip
and xz files cannot, and have one range only.
"""

import lzma
import re
import zlib
from collections.abc import Iterator

from transforms.errors import RunFailedError
from transforms.inputs.bzip2 import Bzip2Blocks
from transforms.storage import files

CONTAINERS = ("plain", "bz2", "gz", "xz")
_MAGIC = {"bz2": rb"BZh[1-9]", "gz": rb"\x1f\x8b", "xz": rb"\xfd7zXZ\x00"}
_CHUNK = 1 << 20
_XZ_MEMORY = 1 << 30  # the dictionary of a hostile file could take 4 GB


def container_of(head: bytes) -> str:
    """What a file is packed with, by its first bytes: one of CONTAINERS."""
    for name, magic in _MAGIC.items():
        if re.match(magic, head):
            return name
    return "plain"


def is_splittable(container: str) -> bool:
    """Whether a file can be entered at any byte."""
    return container in ("plain", "bz2")


class _Raw:
    """A raw file that knows how far it was read."""

    def __init__(self, path: str) -> None:
        self._file = files.open_input(path)
        self.position = 0

    def seek(self, offset: int, /) -> None:
        self._file.seek(offset)
        self.position = offset

    def read(self, count: int, /) -> bytes:
        block = self._file.read(count)
        self.position += len(block)
        return block

    def close(self) -> None:
        self._file.close()


class Source:
    """The plain bytes of one byte range of a file, and of what follows it.

    Args:
      path: the file, local or not.
      container: one of CONTAINERS.
      start, end: the byte range of the raw file.

    Attributes:
      own: how many of the plain bytes belong to the range; None as long as that is not known, and then all that
        were handed out so far do.

    Raises:
      RunFailedError: the file is damaged or cut off; the message names the byte.
    """

    def __init__(self, path: str, container: str, start: int, end: int) -> None:
        self.own: int | None = None
        self._handed_out = 0
        self._raw = _Raw(path)
        self._blocks: Bzip2Blocks | None = None
        try:
            self._raw.seek(start)
            if container == "plain":
                self.own = end - start
                self._chunks = _plain_chunks(self._raw)
            elif container == "bz2":
                self._blocks = Bzip2Blocks(self._raw, lambda: files.open_input(path), path, start, end)
                self._chunks = iter(self._blocks.read, b"")
            elif container == "gz":
                self._chunks = _gzip_chunks(self._raw, path)
            else:
                self._chunks = _xz_chunks(self._raw, path)
        except BaseException:
            self._raw.close()
            raise
        self._note_the_end()

    def read(self) -> bytes:
        """The next plain bytes, at least one and (but for a bomb) at most some MB; b"" at the end of the file."""
        chunk = next(self._chunks, b"")
        self._handed_out += len(chunk)
        if chunk:
            self._note_the_end()
        elif self.own is None:
            self.own = self._handed_out
        return chunk

    def _note_the_end(self) -> None:
        if self.own is None and self._blocks is not None and self._blocks.last_is_read:
            self.own = self._handed_out

    def close(self) -> None:
        """Closes the file."""
        self._raw.close()

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _plain_chunks(raw: _Raw) -> Iterator[bytes]:
    while chunk := raw.read(_CHUNK):
        yield chunk


def _cut_off(path: str, raw: _Raw, what: str) -> RunFailedError:
    return RunFailedError(
        f"{path}: the file is cut off: it ends at byte {raw.position} in the middle of its {what} data; fetch it again."
    )


def _damaged(path: str, raw: _Raw, what: str, error: Exception | str) -> RunFailedError:
    return RunFailedError(
        f"{path}: the {what} data is damaged in front of byte {raw.position} ({error}); "
        "fetch the file again, or compare its checksum with the publisher's."
    )


def _gzip_chunks(raw: _Raw, path: str) -> Iterator[bytes]:
    packed = raw.read(_CHUNK)
    while packed:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            if not packed:
                raise _cut_off(path, raw, "gzip")
            try:
                chunk = member.decompress(packed, _CHUNK)
            except zlib.error as error:
                raise _damaged(path, raw, "gzip", error) from error
            if chunk:
                yield chunk
            packed = member.unconsumed_tail
            if not packed and not member.eof:
                packed = raw.read(_CHUNK)
        packed = member.unused_data
        # Zeros may fill a file up behind its last member.
        while not packed.strip(b"\0"):
            packed = raw.read(_CHUNK)
            if not packed:
                return
        packed = packed.lstrip(b"\0")
        if packed[:1] != b"\x1f":
            raise _damaged(path, raw, "gzip", "something else follows its last member")


def _xz_chunks(raw: _Raw, path: str) -> Iterator[bytes]:
    packed = raw.read(_CHUNK)
    while packed:
        stream = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        while not stream.eof:
            if stream.needs_input and not packed:
                packed = raw.read(_CHUNK)
                if not packed:
                    raise _cut_off(path, raw, "xz")
            try:
                chunk = stream.decompress(packed, _CHUNK)
            except lzma.LZMAError as error:
                raise _damaged(path, raw, "xz", error) from error
            packed = b""
            if chunk:
                yield chunk
        packed = stream.unused_data
        # Streams may be followed by zeros.
        while not packed.strip(b"\0"):
            packed = raw.read(_CHUNK)
            if not packed:
                return
        packed = packed.lstrip(b"\0")
        if packed[:1] != b"\xfd":
            raise _damaged(path, raw, "xz", "something else follows its last stream")


class Window:
    """A sliding window over the plain bytes of a source, in which records are looked for.

    Args:
      source: where the bytes come from.
      before: stands in front of the first byte.

    Attributes:
      data: the bytes held.
    """

    def __init__(self, source: Source, before: bytes = b"") -> None:
        self.data = before
        self._base = -len(before)  # place of data[0] in the source
        self._source = source

    def is_own(self, index: int) -> bool:
        """Whether data[index], were there such a byte, belongs to the source's range."""
        return self._source.own is None or self._base + index < self._source.own

    def slide(self, index: int) -> bool:
        """Drops what stands before data[index] and takes in more; False at the end of the file.

        At least as much is taken in as is kept, so that a record of any length costs linear time.
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
        """Takes data[start:end] out; what stands behind it keeps its place in the source."""
        self.data = self.data[:start] + self.data[end:]
        self._base += end - start
