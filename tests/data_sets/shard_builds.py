"""What the tests of the shards' steps start from: dumps, batches and fragments made up for them."""

import functools
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from made_up import dump_files

from maskmill.inputs.mediawiki import read_header
from maskmill.inputs.units import InputFile, UnitBatch, plan_units
from maskmill.storage import files
from maskmill.text_shards.fragments import Fragment, extract_batch
from maskmill.text_shards.options import ExtractionOptions

Element = TypeVar("Element")

PLAIN = ExtractionOptions()

# Bytes of a unit: a small dump becomes one unit, or many that cut pages.
ONE_UNIT, MANY_UNITS = 1 << 20, 300

DATE = "2010-01-02"  # of the revisions that dump_files writes


def article(number: int, *paragraphs: str) -> str:
    """A page of the main namespace."""
    return dump_files.page(number, f"Article {number}", "\n\n".join(paragraphs))


def input_file(path: Path, date: str = DATE) -> InputFile:
    """The description of a file."""
    header = read_header(str(path)) if date else b""
    return InputFile(
        path=str(path), size=path.stat().st_size, sha256=files.sha256_of(str(path)), date=date, header=header
    )


def cut_batches(path: Path, unit_bytes: int = MANY_UNITS, date: str = DATE) -> list[UnitBatch]:
    """The batches of a file, a unit each; a unit takes `unit_bytes` of bz2 and four times so many of plain bytes."""
    file = input_file(path, date)
    units = plan_units([files.FileInfo(path=file.path, size=file.size)], unit_bytes=unit_bytes)
    return [UnitBatch(number=number, files=(file,), units=(unit,)) for number, unit in enumerate(units)]


def write_dump(folder: Path, pages: Sequence[str]) -> Path:
    """Writes a dump of these pages."""
    path = folder / "dump.xml"
    path.write_bytes(dump_files.dump(pages))
    return path


def write_wiki_files(folder: Path, count: int) -> list[InputFile]:
    """Writes WikiExtractor files of five articles each, `wiki_00` and so on."""
    for file in range(count):
        blocks = [
            f'<doc id="{i}" url="u" title="T">\nT\n\nTown {i} has [[a|{i} bridges]]. It is old.\n\n</doc>\n'
            for i in range(10 * file, 10 * file + 5)
        ]
        (folder / f"wiki_{file:02}").write_text("".join(blocks))
    return [input_file(path, date="") for path in sorted(folder.glob("wiki_??"))]


def make_fragments(
    path: Path, output: Path, options: ExtractionOptions = PLAIN, unit_bytes: int = MANY_UNITS, date: str = DATE
) -> list[Fragment]:
    """Extracts a file into fragments of a build into `output`."""
    return [extract_batch(batch, options, str(output)) for batch in cut_batches(path, unit_bytes, date)]


def shuffled(elements: Sequence[Element], seed: int = 7) -> list[Element]:
    """The same elements in another order."""
    copy = list(elements)
    random.Random(seed).shuffle(copy)
    assert len(copy) < 2 or copy != list(elements)
    return copy


def check_sorted(expected: Sequence[Any], key: Callable[[Any], Any], outputs: list[Any]) -> None:
    """Asserts that the outputs of a step, sorted by a key, are what is expected."""
    assert sorted(outputs, key=key) == list(expected)


def equal_sorted(expected: Sequence[Any], key: Callable[[Any], Any]) -> Callable[[list[Any]], None]:
    """A check for `run_step`: the outputs, sorted by a key, equal what is expected."""
    return functools.partial(check_sorted, expected, key)
