"""Units: how input files of every kind are cut into pieces of work, and read piece by piece.

A unit is a byte range of an input file. A page (document, line) belongs to the unit in which it starts; its reader
goes on behind the unit's end to finish it. So the sequence of pages over all units of a file does not depend on
where the file was cut, nor on what it is packed with, and no index is needed.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from transforms.inputs import corpus, mediawiki
from transforms.inputs.corpus import Document, RejectedPage
from transforms.inputs.formats import detect
from transforms.inputs.mediawiki import Page
from transforms.inputs.options import ReadOptions
from transforms.inputs.sources import Source, is_splittable
from transforms.storage import files

# Of packed data; 4 MB of bz2 are about 14 MB of XML. Small files have some units for each worker all the same; in
# large ones fewer blocks are unpacked twice, to finish the last page of a unit.
_UNITS_A_FILE = 64
_SMALLEST_UNIT = 4 << 20
_LARGEST_UNIT = 16 << 20


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
    """An input with its checksum, and the date that clock words in its pages give (ISO; empty where it has none)."""

    path: str
    size: int
    sha256: str
    date: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnitBatch:
    """Units that one call extracts, in order; `limit` ends it early once so many documents are kept.

    templates: the key of the library of templates that its pages are expanded with; empty where they are not.
    """

    number: int
    file: InputFile
    units: tuple[Unit, ...]
    limit: int | None = None
    templates: str = ""


def plan_units(
    inputs: Sequence[files.FileInfo],
    *,
    input_format: str = "auto",
    reading: ReadOptions | None = None,
    unit_bytes: int | None = None,
) -> list[Unit]:
    """Cuts files into units, in order. Nothing is read but the head and, where that can be done, the tail of each.

    Args:
      input_format: "auto" or the format of all files.
      reading: where it is given, a Parquet file's columns are held against it.
      unit_bytes: size of a unit of bz2; of plain bytes it takes four times as many. None: 4 to 16 MB, by the file's
        size. It changes no page that is read.

    Raises:
      UnusableInputError: a file is empty, damaged, cut off, or of the wrong format.
    """
    units = []
    for file in inputs:
        found, container = detect(file.path, input_format)
        aim = unit_bytes or min(max(file.size // _UNITS_A_FILE, _SMALLEST_UNIT), _LARGEST_UNIT)
        if found == "parquet":
            bounds = corpus.parquet_bounds(file.path, file.size, reading, aim)
        elif is_splittable(container):
            if found == "mediawiki":
                mediawiki.check_closed(file.path, container, file.size)
            count = -(-file.size // (aim if container == "bz2" else 4 * aim))
            bounds = [k * file.size // count for k in range(count + 1)]
        else:
            bounds = [0, file.size]
        units += [
            Unit(path=file.path, start=start, end=end, format=found, container=container)
            for start, end in itertools.pairwise(bounds)
        ]
    return units


def read_unit(unit: Unit, reading: ReadOptions) -> Iterator[Page | Document | RejectedPage]:
    """The pages or documents that start in a unit, in order; a bad one is rejected, never left out.

    Memory is bounded by the largest page without its old revisions (and by `reading.largest_page`), whatever the size
    of the unit or file.

    Raises:
      RunFailedError: the file is damaged or cut off; the message names the byte.
      UnusableInputError: the file does not exist, or lacks a column.
    """
    if unit.format == "parquet":
        yield from corpus.read_parquet(unit.path, unit.start, unit.end, reading)
        return
    with Source(unit.path, unit.container, unit.start, unit.end) as source:
        if unit.format == "mediawiki":
            yield from mediawiki.read_pages(source, unit.path, unit.start == 0, reading)
        else:
            yield from corpus.read_documents(source, unit.format, unit.path, unit.start == 0, reading)
