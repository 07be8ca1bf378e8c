"""Units: how input files of every format are cut into pieces of work, and read piece by piece.

A unit is a byte range of an input file. A page (document, line) belongs to the unit in which it starts; the unit's
reader reads on after the unit's end to finish it. So the sequence of pages over all units of a file depends neither
on where the file is cut nor on how it is packed, and no index is needed.
"""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from maskmill.inputs import mediawiki, parquet, text_formats
from maskmill.inputs.formats import EmptyInputError, detect
from maskmill.inputs.items import CutOff, Document, RejectedPage
from maskmill.inputs.mediawiki import Page
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.sources import Source, check_end, is_splittable
from maskmill.storage import files
from maskmill.storage.found_files import unchanged
from maskmill.text.file_kinds import InputFormat

# Sizes of units of packed data; 4 MB of bz2 are about 14 MB of XML. Even a small file gives every worker some units. A
# large file has larger units, because each unit unpacks some blocks of the next one, to finish its last page.
_UNITS_A_FILE = 64
_SMALLEST_UNIT = 4 << 20
_LARGEST_UNIT = 16 << 20
PLAIN_BYTES_A_PACKED_BYTE = 4
EMPTY = "empty"  # the format of a file without content, which may lie among many others

# A reader takes the plain bytes of a range, the file's path (for messages, and for a dump's header), whether the range
# is the file's first, and the options; that of dumps the header, too.
_Reader = Callable[..., Iterator[Page | Document | RejectedPage | CutOff]]
_READERS: Mapping[str, _Reader] = {
    "mediawiki": mediawiki.read_pages,
    "wikiextractor": text_formats.read_doc_elements,
    "text": text_formats.read_texts,
    "jsonl": text_formats.read_json_lines,
}


@dataclasses.dataclass(frozen=True, kw_only=True, order=True)
class Unit:
    """Bytes [start, end) of a file of a format ("mediawiki", …) in a container ("plain", "bz2", "gz", "xz")."""

    path: str
    start: int
    end: int
    format: str
    container: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputFile:
    """An input with its size in bytes, its checksum, its date, and how its sentences are split.

    sha256: empty if its store has a checksum of it; then `Digest` has it once the run has read the file.
    changed, stored: as in FileInfo. header: of a dump, as `mediawiki.read_header` gives it.
    date: the ISO date that {{CURRENTDAY}} and the like give in the file's pages; empty where the file has none.
    sentences: the JSON of a SentenceChoice (maskmill/sentences/choice.py); empty until one is made.
    language, language_sure: the language that its words say, and how sure that is (maskmill/sentences/detection.py);
    empty where the file or an option names it.
    """

    path: str
    size: int
    sha256: str
    stored: str = ""
    date: str = ""
    sentences: str = ""
    changed: int = dataclasses.field(default=0, compare=False)
    header: bytes = dataclasses.field(default=b"", compare=False, repr=False)
    language: str = dataclasses.field(default="", compare=False)
    language_sure: float = dataclasses.field(default=0.0, compare=False)

    @property
    def content(self) -> str:
        """Return the checksum that identifies its content: keys of finished work hold it."""
        return self.sha256 or self.stored


@dataclasses.dataclass(frozen=True)
class Digest:
    """The sha256 of an input that is known by its store's checksum until then."""

    path: str
    sha256: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnitBatch:
    """Units that one call extracts, in order: some of one file, or all of some small files.

    files: in order. limit: the batch takes so many documents of each file at most. templates: the key of the library
    that expands the templates of its pages; empty if none does. source: the name of the source, in a build that mixes
    several.
    """

    number: int
    files: tuple[InputFile, ...]
    units: tuple[Unit, ...]
    limit: int | None = None
    templates: str = ""
    source: str = ""

    def unchanged(self) -> contextlib.AbstractContextManager[None]:
        """Within the block, the files are read as they were found; see `found_files.unchanged`."""
        return unchanged(self.files)

    @property
    def parts(self) -> list[tuple[InputFile, list[Unit]]]:
        """The files, each with its units."""
        units: dict[str, list[Unit]] = {file.path: [] for file in self.files}
        for unit in self.units:
            units[unit.path].append(unit)
        return [(file, units[file.path]) for file in self.files]


def plan_units(
    inputs: Sequence[files.FileInfo],
    *,
    input_format: str = "auto",
    reading: ReadOptions | None = None,
    unit_bytes: int | None = None,
    allow_empty: bool = False,
) -> list[Unit]:
    """Cut files into units, in order. It reads only the head of each file and, where it can, the tail.

    Args:
      input_format: "auto" or the format of all files.
      reading: names the columns that JSON lines and Parquet files must have; None: they are not checked.
      unit_bytes: the size of a unit of bz2; a unit of plain bytes has four times as many. None: 4 to 16 MB, depending
        on the file's size. The size changes no page that is read.
      allow_empty: whether a file without content is taken: as a unit that rejects it.

    Raises:
      UnusableInputError: a file is empty, damaged, cut off, or of the wrong format.
    """

    def units_of(file: files.FileInfo) -> list[Unit]:
        try:
            found_format, container = detect(
                file.path, input_format, keep_truncated=reading is not None and reading.keep_truncated
            )
        except EmptyInputError:
            if not allow_empty:
                raise
            return [Unit(path=file.path, start=0, end=file.size, format=EMPTY, container="plain")]
        takes_html = input_format != "auto"
        bounds = _bounds(file, found_format, container, reading, unit_bytes, takes_html=takes_html)
        return [
            Unit(path=file.path, start=start, end=end, format=found_format, container=container)
            for start, end in itertools.pairwise(bounds)
        ]

    planned = files.each(inputs[0].path if inputs else "", units_of, inputs)
    return [unit for units in planned for unit in units]


def _bounds(
    file: files.FileInfo,
    found_format: InputFormat,
    container: str,
    reading: ReadOptions | None,
    unit_bytes: int | None,
    *,
    takes_html: bool,
) -> list[int]:
    """Return the byte offsets at which a file is cut: 0, …, its size."""
    packed_bytes = unit_bytes or min(max(file.size // _UNITS_A_FILE, _SMALLEST_UNIT), _LARGEST_UNIT)
    if found_format == "jsonl" and reading is not None:
        text_formats.check_columns(file.path, container, file.size, reading, takes_html=takes_html)
    if found_format == "parquet":
        return parquet.unit_bounds(file.path, file.size, reading, packed_bytes, takes_html=takes_html)
    keep_truncated = reading is not None and reading.keep_truncated
    if not keep_truncated:
        check_end(file.path, container, file.size)
    if not is_splittable(container):
        return [0, file.size]
    if found_format == "mediawiki" and not keep_truncated:
        mediawiki.check_closed(file.path, container, file.size)
    aim = packed_bytes if container == "bz2" else packed_bytes * PLAIN_BYTES_A_PACKED_BYTE
    count = -(-file.size // aim)
    return [k * file.size // count for k in range(count + 1)]


def read_unit(
    unit: Unit, reading: ReadOptions, header: bytes = b""
) -> Iterator[Page | Document | RejectedPage | CutOff]:
    """Yield the pages or documents that start in a unit, in order; one that cannot be used is rejected, never left out.

    header: as in InputFile, if it is known.

    With `reading.keep_truncated` the last item is a CutOff where the reader has come upon the cut of a file.

    The largest page without its old revisions, and `reading.largest_page`, bound the memory, not the size of the unit
    or of the file.

    Raises:
      UnusableInputError: the file does not exist, is damaged or cut off (the message names the byte), or lacks a
        column.
      RunFailedError: the machine cannot read it on.
    """
    if unit.format == EMPTY:
        yield RejectedPage(title=files.base_name(unit.path), reason="the file is empty")
        return
    if unit.format == "parquet":
        yield from parquet.read_documents(unit.path, unit.start, unit.end, reading)
        return
    keep = reading.keep_truncated
    with Source(unit.path, unit.container, unit.start, unit.end, keep_truncated=keep) as source:
        item: Page | Document | RejectedPage | CutOff | None = None
        more = {"header": header} if unit.format == "mediawiki" else {}
        for item in _READERS[unit.format](source, unit.path, unit.start == 0, reading, **more):
            yield item
        if source.is_truncated and not isinstance(item, CutOff):
            yield CutOff(title=None)
