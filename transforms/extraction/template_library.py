"""A dump's own template definitions, collected before its pages are extracted (`--expand_templates`).

Each batch of units gives a piece with the files `<key>.text`, the pages of the batch's templates one after another, and
`<key>.npy`, a row of PIECE for each of them. A library is the index of all pieces, rows of INDEX sorted by hash. The
definitions stay in the pieces' files: a worker holds the index, and reads a definition when a page calls it.
"""

import dataclasses
import hashlib
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from maskmill.storage import completions, files
from transforms.collection import Collection
from transforms.extraction.template_expansion import TEMPLATE_NAMESPACE
from transforms.inputs.mediawiki import Page, read_header, site_base
from transforms.inputs.options import ReadOptions
from transforms.inputs.units import UnitBatch, read_unit

PIECES = "templates"
LIBRARY = "template-library"

_HASH_BYTES = 8
# hash: of the wiki and the template's name (name_hash); offset, size: the bytes of its page in the piece's text.
PIECE = np.dtype([("hash", "<u8"), ("offset", "<i8"), ("size", "<i8")])
# piece: the number of the piece, from 0, that holds the page.
INDEX = np.dtype([*PIECE.descr, ("piece", "<i8")])


def name_hash(wiki: str, name: bytes) -> int:
    """The hash, 64 bits, of a template's name without its namespace, on the wiki of an address (site_base)."""
    return int.from_bytes(hashlib.sha256(wiki.encode() + b"\0" + name).digest()[:_HASH_BYTES], "little")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """The description of a batch's templates: the batch, and the key of the piece's files."""

    batch: UnitBatch
    key: str


def collect_templates(batch: UnitBatch, reading: ReadOptions, output: str) -> Piece:
    """Writes the templates among a batch's pages to a piece, unless an earlier run did.

    Pages that cannot be read are passed over: extraction counts them.

    Raises:
      RunFailedError: the input cannot be read to its end.
    """
    ranges = [(u.format, u.start, u.end) for u in batch.units]
    first, *others = (file.sha256 for file in batch.files)
    source = (first, ranges, reading, *others)
    key = completions.fingerprint(PIECES, completions.FORMAT_VERSIONS["templates"], *source)
    text = completions.work_name(PIECES, f"{key}.text")
    completions.once(
        output,
        PIECES,
        key,
        lambda: _write_piece(batch, reading, output, key),
        lambda record: completions.PieceFiles(written=[(text, record["size"], record["sha256"])], has_table=True),
        name=f"templates of unit {batch.number} ({files.base_name(batch.files[0].path)})",
    )
    return Piece(batch=batch, key=key)


def _text_path(output: str, key: str) -> str:
    return completions.work_path(output, PIECES, f"{key}.text")


def _write_piece(batch: UnitBatch, reading: ReadOptions, output: str, key: str) -> dict[str, Any]:
    rows: list[tuple[int, int, int]] = []
    offset = 0
    with files.new_file(_text_path(output, key)) as file:
        for source, units in batch.parts:
            wiki = site_base(read_header(source.path))
            for page in itertools.chain.from_iterable(read_unit(unit, reading) for unit in units):
                if isinstance(page, Page) and page.namespace == TEMPLATE_NAMESPACE and page.model == b"wikitext":
                    rows.append((name_hash(wiki, page.title.partition(b":")[2]), offset, len(page.text)))
                    file.write(page.text)
                    offset += len(page.text)
    batch.check_unchanged()
    completions.write_table(output, PIECES, key, np.array(rows, PIECE))
    return {"templates": len(rows), "size": file.size, "sha256": file.sha256}


def bind_library(pieces: Iterable[Piece], output: str) -> list[UnitBatch]:
    """Makes the library of all pieces, in whatever order they come; returns the batches, in order, with its key.

    Where a dump defines a name twice, the first definition counts.
    """
    ordered = sorted(pieces, key=lambda p: p.batch.number)
    keys = [p.key for p in ordered]
    library = completions.fingerprint(LIBRARY, completions.FORMAT_VERSIONS["templates"], keys)
    completions.once(
        output,
        LIBRARY,
        library,
        lambda: _write_library(keys, output, library),
        lambda record: completions.PieceFiles(has_table=True),
        name="the index of templates",
    )
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
    _, first_of_each = np.unique(index["hash"], return_index=True)  # sorted by hash
    index = index[first_of_each]
    completions.write_table(output, LIBRARY, library, index)
    return {"templates": len(index), "pieces": pieces}


def read_library(output: str, library: str) -> dict[str, Any]:
    """The record of a library: `templates`, the number of its definitions, and `pieces`, their keys in order.

    Raises RunFailedError if there is no such library.
    """
    return completions.finished(output, LIBRARY, library)


class TemplateLibrary:
    """Finds definitions by name. Holds the index in memory, 32 bytes for each definition."""

    def __init__(self, output: str, library: str) -> None:
        self._texts = [_text_path(output, key) for key in read_library(output, library)["pieces"]]
        self._index = completions.read_table(output, LIBRARY, library)

    def find(self, wiki: str, name: bytes) -> bytes | None:
        """The page (wikitext, UTF-8) of a wiki's template, or None if the wiki has no template of that name."""
        wanted = np.uint64(name_hash(wiki, name))
        row = int(np.searchsorted(self._index["hash"], wanted))
        if row == len(self._index) or self._index["hash"][row] != wanted:
            return None
        _, offset, size, piece = self._index[row].tolist()
        return files.read_range(self._texts[piece], offset, offset + size)


def CollectTemplates(batches: Collection, *, reading: ReadOptions, output: str) -> Collection:
    """Collects the templates of all batches before the first page is extracted.

    Input: UnitBatch. Output: UnitBatch, the same batches with the key of the library in `templates`.
    """
    pieces = batches.spread("Collect", collect_templates, reading, output)  # Piece
    return pieces.together().flat_map("BindLibrary", bind_library, output)  # UnitBatch
