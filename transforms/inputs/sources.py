"""The plain bytes of a byte range of an input file, however the file is packed.

A source gives the bytes that its range owns and then, as long as its reader asks, those behind them, so that the reader
can finish the last record of the range. Plain and bzip2 files can be entered anywhere; gzip and xz files cannot, so
they have only one range.
"""

import lzma
import zlib
from collections.abc import Iterator

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from transforms.inputs.bzip2 import Bzip2Blocks
from transforms.inputs.cuts import OR_KEEP, CutOffError, cut_off

_GZIP_START = b"\x1f"
_XZ_START = b"\xfd"
_XZ_END = b"YZ"  # the last bytes of a stream; zeros may follow
_XZ_PADDING = 64 << 10  # bytes looked at behind them
_CHUNK = 1 << 20
_GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS  # zlib's way to ask for gzip's header
_XZ_MEMORY = 1 << 30  # a hostile file could ask for a dictionary of 4 GB


def is_splittable(container: str) -> bool:
    """Whether a file in a container can be entered at any byte."""
    return container in ("plain", "bz2")


class _Raw:
    """A raw file that knows how far it has been read."""

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
      keep_truncated: whether a file that is cut off ends at its cut, instead of raising an error.

    Attributes:
      container, end: of the file, and of the byte range.
      own: how many of the plain bytes belong to the range; None as long as that is unknown, when all bytes that were
        read so far belong to it.
      is_truncated: whether the reader has come upon the cut of a file that is cut off.

    Raises:
      UnusableInputError: the file is damaged or cut off; the message names the byte.
      RunFailedError: the machine cannot read it on.
    """

    def __init__(self, path: str, container: str, start: int, end: int, *, keep_truncated: bool = False) -> None:
        self.container = container
        self.end = end
        self.own: int | None = None
        self.is_truncated = False
        self._keep_truncated = keep_truncated
        self._bytes_read = 0
        self._raw = _Raw(path)
        self._blocks: Bzip2Blocks | None = None
        try:
            self._raw.seek(start)
            if container == "plain":
                self.own = end - start
                self._chunks = _plain_chunks(self._raw)
            elif container == "bz2":
                self._blocks = Bzip2Blocks(
                    self._raw, lambda: files.open_input(path), path, start, end, keep_truncated=keep_truncated
                )
                self._chunks = iter(self._blocks.read, b"")
            elif container == "gz":
                self._chunks = _gzip_chunks(self._raw, path)
            else:
                self._chunks = _xz_chunks(self._raw, path)
        except BaseException:
            self._raw.close()
            raise
        self._note_end_of_range()

    def read(self) -> bytes:
        """The next plain bytes, at least one and (but for a bomb) at most some MB; b"" at the end of the file."""
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
        """Closes the file."""
        self._raw.close()

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _plain_chunks(raw: _Raw) -> Iterator[bytes]:
    while chunk := raw.read(_CHUNK):
        yield chunk


def check_end(path: str, container: str, size: int) -> None:
    """Checks the last bytes of a file of `size` bytes, where they tell a file that is cut off before it is read.

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


def _damaged(path: str, raw: _Raw, packing: str, problem: Exception | str) -> UnusableInputError:
    return UnusableInputError(
        f"{path}: the {packing} data is damaged in front of byte {raw.position} ({problem}); "
        "fetch the file again, or compare its checksum with the publisher's."
    )


def _gzip_chunks(raw: _Raw, path: str) -> Iterator[bytes]:
    packed = raw.read(_CHUNK)
    while packed:
        member = zlib.decompressobj(wbits=_GZIP_WINDOW_BITS)
        while not member.eof:
            if not packed:
                raise cut_off(path, raw.position, "gzip")
            try:
                chunk = member.decompress(packed, _CHUNK)
            except zlib.error as error:
                raise _damaged(path, raw, "gzip", error) from error
            if chunk:
                yield chunk
            packed = member.unconsumed_tail
            if not packed and not member.eof:
                packed = raw.read(_CHUNK)
        packed = _skip_zeros(raw, member.unused_data)
        if packed and packed[:1] != _GZIP_START:
            raise _damaged(path, raw, "gzip", "something else follows its last member")


def _xz_chunks(raw: _Raw, path: str) -> Iterator[bytes]:
    packed = raw.read(_CHUNK)
    while packed:
        stream = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        while not stream.eof:
            if stream.needs_input and not packed:
                packed = raw.read(_CHUNK)
                if not packed:
                    raise cut_off(path, raw.position, "xz")
            try:
                chunk = stream.decompress(packed, _CHUNK)
            except lzma.LZMAError as error:
                raise _damaged(path, raw, "xz", error) from error
            packed = b""
            if chunk:
                yield chunk
        packed = _skip_zeros(raw, stream.unused_data)
        if packed and packed[:1] != _XZ_START:
            raise _damaged(path, raw, "xz", "something else follows its last stream")


def _skip_zeros(raw: _Raw, packed: bytes) -> bytes:
    """Skips the zeros that may fill up a file behind a gzip member or an xz stream; b"" at the end of the file."""
    while not packed.strip(b"\0"):
        packed = raw.read(_CHUNK)
        if not packed:
            return b""
    return packed.lstrip(b"\0")
