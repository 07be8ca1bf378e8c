"""A dump's own template definitions, collected before its pages are extracted (`--expand_templates`).

Each batch of units gives a piece `<key>`: `<key>.text`, its templates' pages one after another, and `<key>.npy`, a row
of PIECE for each. A library is the index of all pieces: INDEX, sorted by hash. The definitions stay in the pieces'
files; a worker holds the index and reads a definition when a page asks for it.
"""

import dataclasses
import hashlib
from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import numpy as np

from transforms.grouping import GroupAll
from transforms.inputs.mediawiki import Page, read_header, site_base
from transforms.inputs.options import ReadOptions
from transforms.inputs.units import UnitBatch, read_unit
from transforms.storage import completions, files

PIECES = "templates"
LIBRARY = "template-library"
NAMESPACE = 10

# hash: of the wiki and the template's name; offset, size: its page's bytes in the piece's text.
PIECE = np.dtype([("hash", "<u8"), ("offset", "<i8"), ("size", "<i8")])
# piece: the number of the piece that holds it.
INDEX = np.dtype([*PIECE.descr, ("piece", "<i8")])


def name_hash(wiki: str, name: bytes) -> int:
    """64 bits for a template's name, without its namespace, on a wiki (site_base)."""
    return int.from_bytes(hashlib.sha256(wiki.encode() + b"\0" + name).digest()[:8], "little")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """The description of a batch's templates."""

    batch: UnitBatch
    key: str


def collect_templates(batch: UnitBatch, reading: ReadOptions, output: str) -> Piece:
    """Writes down the templates among a batch's pages, unless that is done already.

    Raises:
      RunFailedError: the input cannot be read to its end. (Pages that cannot be used are counted by the extraction.)
    """
    ranges = [(u.format, u.start, u.end) for u in batch.units]
    key = completions.fingerprint(PIECES, completions.FORMAT_VERSIONS["templates"], batch.file.sha256, ranges, reading)
    completions.once(
        output,
        PIECES,
        key,
        lambda: _write_piece(batch, reading, output, key),
        lambda record: [
            (f"{completions.WORK_DIRECTORY}/{PIECES}/{key}.text", record["size"], record["sha256"]),
        ],
    )
    return Piece(batch=batch, key=key)


def _text_path(output: str, key: str) -> str:
    return completions.work_path(output, PIECES, f"{key}.text")


def _write_piece(batch: UnitBatch, reading: ReadOptions, output: str, key: str) -> dict[str, Any]:
    wiki = site_base(read_header(batch.file.path))
    rows: list[tuple[int, int, int]] = []
    offset = 0
    with files.new_file(_text_path(output, key)) as file:
        for unit in batch.units:
            for page in read_unit(unit, reading):
                if isinstance(page, Page) and page.namespace == NAMESPACE and page.model == b"wikitext":
                    rows.append((name_hash(wiki, page.title.partition(b":")[2]), offset, len(page.text)))
                    file.write(page.text)
                    offset += len(page.text)
    completions.write_table(output, PIECES, key, np.array(rows, PIECE))
    return {"templates": len(rows), "size": file.size, "sha256": file.sha256}


def bind_library(pieces: Iterable[Piece], output: str) -> list[UnitBatch]:
    """Makes the library of all pieces, and gives the batches back with its key. Of two with a name the first counts."""
    ordered = sorted(pieces, key=lambda p: p.batch.number)
    keys = [p.key for p in ordered]
    library = completions.fingerprint(LIBRARY, completions.FORMAT_VERSIONS["templates"], keys)
    completions.once(output, LIBRARY, library, lambda: _write_library(keys, output, library))
    return [dataclasses.replace(p.batch, templates=library) for p in ordered]


def _write_library(pieces: list[str], output: str, library: str) -> dict[str, Any]:
    parts = []
    for number, key in enumerate(pieces):
        table = completions.read_table(output, PIECES, key)
        parts.append(np.zeros(len(table), INDEX))
        for name in PIECE.names or ():
            parts[-1][name] = table[name]
        parts[-1]["piece"] = number
    index = np.concatenate(parts)
    index = index[np.unique(index["hash"], return_index=True)[1]]
    completions.write_table(output, LIBRARY, library, index)
    return {"templates": len(index), "pieces": pieces}


def read_library(output: str, library: str) -> dict[str, Any]:
    """The record of a library: its number of templates and the keys of its pieces, in order."""
    record = completions.load(output, LIBRARY, library)
    if record is None:
        raise FileNotFoundError(f"the completion record of the template library {library}")
    return record


class TemplateLibrary:
    """Finds definitions by name."""

    def __init__(self, output: str, library: str) -> None:
        self._texts = [_text_path(output, key) for key in read_library(output, library)["pieces"]]
        self._index = completions.read_table(output, LIBRARY, library)

    def find(self, wiki: str, name: bytes) -> bytes | None:
        """The page of a template of a wiki, or None where it has none of that name."""
        wanted = np.uint64(name_hash(wiki, name))
        at = int(np.searchsorted(self._index["hash"], wanted))
        if at == len(self._index) or self._index["hash"][at] != wanted:
            return None
        _, offset, size, piece = self._index[at].tolist()
        return files.read_range(self._texts[piece], offset, offset + size)


@dataclasses.dataclass(kw_only=True, eq=False)
class CollectTemplates(beam.PTransform):
    """Collects the templates of all batches before the first page is extracted.

    Input: UnitBatch. Output: the same, with the key of the library.
    """

    reading: ReadOptions
    output: str

    def expand(self, batches: beam.PCollection) -> beam.PCollection:
        return (
            batches
            | "Spread" >> beam.Reshuffle()
            | "Collect" >> beam.Map(collect_templates, self.reading, self.output)  # Piece
            | "Together" >> GroupAll()
            | "BindLibrary" >> beam.FlatMap(bind_library, self.output)  # UnitBatch
        )
