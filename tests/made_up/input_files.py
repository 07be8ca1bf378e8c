"""Input files for the tests of their readers."""

from pathlib import Path

from made_up.dump_files import dump, page
from maskmill.inputs.formats import detect
from maskmill.inputs.items import Document
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.units import plan_units, read_unit
from maskmill.storage import files

READING = ReadOptions()
# Containers of dump_files.CONTAINERS that can be cut into units anywhere, and those that cannot or need large files.
CUTTABLE = ("plain", "tiny blocks", "many streams")
OTHERS = ("bz2", "gz", "gz members", "xz")

SMALL = dump(
    [
        page(1, "Apple", "An '''apple''' is a fruit.\n\nIt isn't a \"pear\" & not &nbsp; <ref>x</ref>."),
        page(2, "Apfel", "#REDIRECT [[Apple]]", redirect="Apple"),
        page(5, "Talk:Apple", "<page>", namespace=1, older=["first", "second </page> one"]),
        page(6, "Äpfel & Birnen", "Ünïcödé 語 \U0001f600 " * 30),
        page(7, "Empty", ""),
        page(8, "Module:X", "return {}", namespace=828, model="Scribunto"),
        page(9, "Long", "word " * 400),
    ]
)


def write_file(folder: Path, content: bytes, name: str = "x.txt") -> str:
    """Writes a file into a folder; returns its path."""
    path = folder / name
    path.write_bytes(content)
    return str(path)


def read_units(
    path: str, unit_bytes: int = 4 << 20, reading: ReadOptions = READING, input_format: str = "auto"
) -> list[object]:
    """All that the units of a file give, one unit after the other; the units must cover the file."""
    units = plan_units(files.match(path), unit_bytes=unit_bytes, input_format=input_format)
    assert [unit.start for unit in units] == [0, *(unit.end for unit in units[:-1])]
    assert units[-1].end == files.size(path)
    return [item for unit in units for item in read_unit(unit, reading)]


def format_of(path: str, input_format: str = "auto") -> str:
    """The format that is told of a file."""
    return detect(path, input_format)[0]


def document(text: str, title: str = "", document_id: str = "") -> Document:
    """A document as readers give it."""
    return Document(document_id=document_id, title=title.encode(), text=text.encode())


def record(text: str, document_id: str = "", language: str = "") -> Document:
    """The document of a record as readers give it."""
    return Document(document_id=document_id, title=b"", text=text.encode(), language=language)
