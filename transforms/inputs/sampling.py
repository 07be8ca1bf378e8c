"""Reads small parts of inputs that stand for all of them, and counts every byte that is read.

A part is a run of bytes of a file, unpacked and cut to whole records. Parts lie at even distance over the files of a
kind, so the same inputs and the same share always give the same sample. Of bz2 the smallest part is a block (900 kB
unpacked, about 240 kB packed). A multistream dump whose index lies beside it is sampled by streams
(transforms/inputs/multistream.py). gz and xz can only be read from their beginning.
"""

import dataclasses
import itertools
import os
import re
import tempfile
import time
from collections.abc import Iterable, Sequence

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from maskmill.text.file_kinds import InputFormat, container_of
from transforms.inputs import parquet
from transforms.inputs.bzip2 import MarkFinder
from transforms.inputs.formats import EmptyInputError, detect
from transforms.inputs.options import ReadOptions
from transforms.inputs.sources import Source, is_splittable
from transforms.inputs.text_formats import BLANK_LINE

_MAGIC_BYTES = 16
_HEAD_BYTES = 64 << 10
_PLAIN_PART = 256 << 10
# To find a block of bz2 half a block is read in front of it. What is read to find its end grows up to 32 kB a time.
_BLOCK_PART = 360_000
_FIRST_STEP, _STEP = 1 << 10, 32 << 10
_PARQUET_END = 8  # the size of the table of contents, and PAR1
_PAGE = b"<page>"
_CLOSING = b"</mediawiki>"
_CLOSING_OF_PAGE = b"</text></revision></page>"


class CountedReader:
    """Reads ranges of files, and unpacks them.

    seconds: of CPU that unpacking has taken.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._ranges: dict[str, list[tuple[int, int]]] = {}

    @property
    def bytes_read(self) -> int:
        """How many bytes have been read, each counted once."""
        total = 0
        for ranges in self._ranges.values():
            done = 0
            for start, end in sorted(ranges):
                total += max(0, end - max(start, done))
                done = max(done, end)
        return total

    def read(self, path: str, start: int, end: int) -> bytes:
        """Bytes [start, end) of a file, fewer where it ends before."""
        content = files.read_range(path, start, end)
        self.note(path, start, start + len(content))
        return content

    def note(self, path: str, start: int, end: int) -> None:
        """Counts bytes that are read otherwise."""
        self._ranges.setdefault(path, []).append((start, end))

    def unpack(self, path: str, packed: bytes, container: str, *, at_head: bool = True) -> bytes:
        """Unpacks bytes of a file as far as they are whole.

        at_head: whether they begin with the head of a stream; bz2 can begin anywhere.

        Raises:
          UnusableInputError: they are damaged.
        """
        if container == "plain":
            return packed
        with tempfile.TemporaryDirectory() as folder:
            part = os.path.join(folder, "part")
            before = b"" if at_head else b"\0"
            files.write_bytes(part, before + packed)
            started = time.process_time()
            end = len(before) + len(packed)
            try:
                with Source(part, container, len(before), end, keep_truncated=True) as source:
                    content = b"".join(iter(source.read, b""))
            except UnusableInputError:
                raise _damaged(path, container) from None
            self.seconds += time.process_time() - started
        return content


def _damaged(path: str, container: str) -> UnusableInputError:
    return UnusableInputError(
        f"{path}: the {container} data of this input is damaged, or cut off in its first part; fetch it again, or "
        "compare its checksum with the publisher's."
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """A part of an input.

    content: whole records in the input's format, without a dump's header; of a last page that the part cuts, its
    beginning. text_measure: how much of the sample's `text_total` the content stands for. document_measure: how much
    of its `document_total` the records that start in it stand for. unit: for Parquet, the file and the range.
    """

    content: bytes = b""
    text_measure: float
    document_measure: float
    unit: tuple[str, int, int] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputKind:
    """Inputs of one format and container, and the unpacked beginning of the first."""

    files: tuple[files.FileInfo, ...]
    format: InputFormat
    container: str
    head: bytes

    @property
    def size(self) -> int:
        """Their bytes."""
        return sum(file.size for file in self.files)

    @property
    def header(self) -> bytes:
        """The XML in front of the first page of the first file; b"" for inputs that are not a dump."""
        return self.head.partition(_PAGE)[0] if self.format == "mediawiki" else b""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    """Parts that stand for the inputs of a kind.

    text_total, document_total: the measures of all parts that there are. error: the standard error of `text_total`, in
    its unit. beginning_only: whether the parts are the files' beginnings, because no other part can be read.
    counts_pages: whether the document measure is pages that may become documents, whose number is known.
    """

    kind: InputKind
    parts: tuple[Part, ...]
    text_total: float
    document_total: float
    error: float = 0.0
    beginning_only: bool = False
    counts_pages: bool = False


def inputs_by_kind(inputs: Sequence[files.FileInfo], input_format: str, reader: CountedReader) -> list[InputKind]:
    """Groups inputs by container and name, and tells the format of each group by its first file's beginning.

    Raises:
      UnusableInputError: all files are empty, or the first of a group that is not is damaged or of no known format.
    """
    groups: dict[tuple[str, str], list[files.FileInfo]] = {}
    for file in inputs:
        container = container_of(reader.read(file.path, 0, _MAGIC_BYTES))
        groups.setdefault((container, re.sub(r"\d+", "", files.base_name(file.path))), []).append(file)
    kinds = []
    empty: EmptyInputError | None = None
    for (container, _), members in groups.items():
        for first, file in enumerate(members):
            head = _head(file, container, reader)
            if container != "plain" and file.size and not head:
                raise _damaged(file.path, container)
            try:
                found_format = _format_of(file.path, container, head, input_format)
            except EmptyInputError as error:
                empty = empty or error
                continue
            # What stands for the group is read at its beginning: empty files in front of it do not matter.
            rest = tuple(members[first:])
            kinds.append(InputKind(files=rest, format=found_format, container=container, head=head))
            break
    if not kinds and empty is not None:
        raise empty
    return kinds


def _head(file: files.FileInfo, container: str, reader: CountedReader) -> bytes:
    """The unpacked beginning of a file, at least a block of bz2."""
    if container == "bz2":
        content, _ = _read_blocks(file, 0, 1, reader)
        return content
    packed = reader.read(file.path, 0, _HEAD_BYTES)
    return reader.unpack(file.path, packed, container)


def _format_of(path: str, container: str, head: bytes, input_format: str) -> InputFormat:
    """The format of a file by the bytes of its beginning, told as `formats.detect` does."""
    with tempfile.TemporaryDirectory() as folder:
        name = files.base_name(path)
        beginning = os.path.join(folder, name if container == "plain" else name.rpartition(".")[0] or name)
        files.write_bytes(beginning, head)
        try:
            return detect(beginning, input_format, keep_truncated=True)[0]
        except UnusableInputError as error:
            raise type(error)(str(error).replace(beginning, path)) from None


def _read_blocks(file: files.FileInfo, start: int, wanted: int, reader: CountedReader) -> tuple[bytes, int]:
    """Reads the first whole blocks of bz2 behind a byte, as many as `wanted` packed bytes need.

    Returns:
      What they unpack to, b"" where no whole block follows; and their packed bytes.
    """
    finder = MarkFinder()
    packed = b""
    marks: list[int] = []
    step = _FIRST_STEP
    while start + len(packed) < file.size and (len(marks) < 2 or marks[-1] - marks[0] < wanted * 8):
        more = reader.read(file.path, start + len(packed), start + len(packed) + step)
        step = min(2 * step, _STEP)
        packed += more
        marks += [mark.bit for mark in finder.add(more)]
    if len(marks) < 2:
        return b"", 0
    # The last mark ends the last whole block; some bytes behind it show that the block is whole.
    first = 0 if start == 0 else marks[0] // 8
    content = reader.unpack(file.path, packed[first : (marks[-1] + 7) // 8 + _MAGIC_BYTES], "bz2", at_head=start == 0)
    return content, marks[-1] // 8 - first


def sample_kind(kind: InputKind, wanted: int, reading: ReadOptions, reader: CountedReader) -> Sample:
    """Reads parts of inputs of a kind that stand for them: `wanted` bytes at most, and the rest of the last block."""
    if kind.format == "parquet":
        return _sample_parquet(kind, wanted, reading, reader)
    is_whole = wanted >= kind.size
    if is_whole:
        windows = [_read_beginning(file, file.size, kind.container, reader) for file in kind.files]
    elif not is_splittable(kind.container):
        windows = [_read_beginning(kind.files[0], wanted, kind.container, reader)]
    elif kind.container == "bz2":
        windows = _read_block_windows(kind, wanted, reader)
    else:
        windows = _read_plain_windows(kind, wanted, reader)
    is_pages = kind.format == "mediawiki"
    parts = []
    for content, packed, is_start in windows:
        records = whole_records(content, kind.format, reading, is_start=is_start)
        if records and content:
            measure = packed * (1.0 if is_whole else min(1.0, len(records) / len(content)))
            # A region of pages begins with a page and may end anywhere: pages are counted over the whole window.
            parts.append(Part(content=records, text_measure=measure, document_measure=packed if is_pages else measure))
    return Sample(
        kind=kind,
        parts=tuple(parts),
        text_total=kind.size,
        document_total=kind.size,
        beginning_only=wanted < kind.size and not is_splittable(kind.container),
    )


_Window = tuple[bytes, int, bool]  # plain bytes, the packed bytes that they stand for, whether a file begins with them


def _read_beginning(file: files.FileInfo, size: int, container: str, reader: CountedReader) -> _Window:
    packed = reader.read(file.path, 0, size)
    return reader.unpack(file.path, packed, container), len(packed), True


def _places(kind: InputKind, count: int) -> Iterable[tuple[files.FileInfo, int]]:
    """The middles of `count` equal parts of all files, one after another: the file, and the byte in it."""
    ends = list(itertools.accumulate(file.size for file in kind.files))
    for number in range(count):
        place = (2 * number + 1) * kind.size // (2 * count)
        file, end = next((file, end) for file, end in zip(kind.files, ends, strict=True) if place < end)
        yield file, place - (end - file.size)


def _read_plain_windows(kind: InputKind, wanted: int, reader: CountedReader) -> list[_Window]:
    windows = []
    count = max(1, wanted // _PLAIN_PART)
    size = min(_PLAIN_PART, wanted)
    for file, middle in _places(kind, count):
        start = max(0, min(middle - size // 2, file.size - size))
        content = reader.read(file.path, start, start + size)
        windows.append((content, len(content), start == 0))
    return windows


def _read_block_windows(kind: InputKind, wanted: int, reader: CountedReader) -> list[_Window]:
    """Blocks at even distance; the files' first ones if there is no budget for others."""
    before = reader.bytes_read
    windows: list[_Window] = []
    count = max(1, wanted // _BLOCK_PART)
    for file, middle in _places(kind, count):
        rest = wanted - (reader.bytes_read - before)
        if windows and rest < _BLOCK_PART // 2:
            break
        # The middle of what is read is the middle of the file's part; a block is looked for from its beginning on.
        start = max(0, middle - _BLOCK_PART // 2)
        content, packed = _read_blocks(file, start, min(_BLOCK_PART // 3, rest // 2), reader)
        if content:
            windows.append((content, packed, start == 0))
    if not windows:
        content, packed = _read_blocks(kind.files[0], 0, _BLOCK_PART, reader)
        windows.append((content, packed, True))
    return windows


def whole_records(content: bytes, format: InputFormat, reading: ReadOptions, *, is_start: bool) -> bytes:
    """The whole records of a part; of a dump's part, from the first page on, and the last one closed where it is cut.

    is_start: whether a file begins with the part.
    """
    if format == "mediawiki":
        return _pages(content)
    if format == "wikiextractor":
        start, end = content.find(b"<doc "), content.rfind(b"</doc>")
        return content[start : end + len(b"</doc>")] + b"\n" if 0 <= start < end else b""
    if format == "jsonl":
        start = 0 if is_start else content.find(b"\n") + 1
        return content[start : content.rfind(b"\n") + 1] or content
    if reading.text_documents == "file":
        return content
    blanks = list(BLANK_LINE.finditer(content))
    if not blanks:
        return content
    start = 0 if is_start else blanks[0].end()
    return content[start : blanks[-1].end()] or content


def _pages(content: bytes) -> bytes:
    start = content.find(_PAGE)
    if start < 0:
        return b""
    end = content.find(_CLOSING, start)
    pages = content[start : end if end >= 0 else len(content)]
    last = pages.rfind(_PAGE)
    if pages.find(b"</page>", last) >= 0:
        return pages
    # The cut may lie in a character or in a reference (&amp;): the last whole line is the end.
    cut = pages.rfind(b"\n") + 1
    is_in_text = 0 <= pages.find(b"<text", last) < cut and pages.find(b"</text>", last) < 0
    return pages[:cut] + _CLOSING_OF_PAGE if is_in_text else pages[:last]


def _sample_parquet(kind: InputKind, wanted: int, reading: ReadOptions, reader: CountedReader) -> Sample:
    """Row groups at even distance; the table of contents behind them holds no text."""
    ranges = []
    for file in kind.files:
        bounds = parquet.unit_bounds(file.path, file.size, reading, 1)
        length = int.from_bytes(reader.read(file.path, file.size - _PARQUET_END, file.size)[:4], "little")
        contents = max(bounds[-2] + 1, file.size - _PARQUET_END - length)
        reader.note(file.path, contents, file.size)
        ranges += [(file.path, start, end) for start, end in itertools.pairwise([*bounds[:-1], contents])]
    total = sum(end - start for _, start, end in ranges)
    count = min(len(ranges), max(1, wanted * len(ranges) // total))
    parts = []
    for number in range(count):
        path, start, end = ranges[(2 * number + 1) * len(ranges) // (2 * count)]
        reader.note(path, start, end)
        parts.append(Part(text_measure=end - start, document_measure=end - start, unit=(path, start, end)))
    return Sample(kind=kind, parts=tuple(parts), text_total=total, document_total=total)
