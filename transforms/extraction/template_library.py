"""A dump's own template definitions, collected before its pages are extracted (`--expand_templates`).

Each batch of units gives a piece with the files `<key>.text`, the pages of the batch's templates one after another, and
`<key>.npy`, a row of TABLE for each of them. A library has the same files, of all pieces, each name once, and its rows
are sorted by hash. A worker holds the rows, and maps the text; of one in a store it fetches a copy once.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import MissingFileError
from maskmill.storage import completions, files, read_ahead
from transforms.collection import Collection
from transforms.extraction.template_expansion import TEMPLATE_NAMESPACE
from transforms.inputs.mediawiki import Page, site_base
from transforms.inputs.options import ReadOptions
from transforms.inputs.units import UnitBatch, read_unit

PIECES = "templates"
LIBRARY = "template-library"

_HASH_BYTES = 8
_COPY_BYTES = 4 << 20
# hash: of the wiki and the template's name (name_hash); offset, size: the bytes of its page in the text.
TABLE = np.dtype([("hash", "<u8"), ("offset", "<i8"), ("size", "<i8")])


def name_hash(wiki: str, name: bytes) -> int:
    """The hash, 64 bits, of a template's name without its namespace, on the wiki of an address (site_base)."""
    return int.from_bytes(hashlib.sha256(wiki.encode() + b"\0" + name).digest()[:_HASH_BYTES], "little")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """The description of a batch's templates: the batch, and the key of the piece's files."""

    batch: UnitBatch
    key: str


def collect_templates(batch: UnitBatch, reading: ReadOptions, output: str, previous: str = "") -> Piece:
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
        previous=previous,
    )
    return Piece(batch=batch, key=key)


def _text_path(output: str, kind: str, key: str) -> str:
    return completions.work_path(output, kind, f"{key}.text")


def _write_piece(batch: UnitBatch, reading: ReadOptions, output: str, key: str) -> dict[str, Any]:
    rows: list[tuple[int, int, int]] = []
    offset = 0
    with files.new_file(_text_path(output, PIECES, key)) as file:
        for source, units in batch.parts:
            wiki = site_base(source.header)
            for page in itertools.chain.from_iterable(read_unit(unit, reading, source.header) for unit in units):
                if isinstance(page, Page) and page.namespace == TEMPLATE_NAMESPACE and page.model == b"wikitext":
                    rows.append((name_hash(wiki, page.title.partition(b":")[2]), offset, len(page.text)))
                    file.write(page.text)
                    offset += len(page.text)
    batch.check_unchanged()
    completions.write_table(output, PIECES, key, np.array(rows, TABLE))
    kept = completions.stored(output, (file,))
    return {"templates": len(rows), "size": file.size, "sha256": file.sha256, **kept}


def bind_library(pieces: Iterable[Piece], output: str, previous: str = "") -> list[UnitBatch]:
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
        lambda record: completions.PieceFiles(
            written=[(completions.work_name(LIBRARY, f"{library}.text"), record["size"], record["sha256"])],
            has_table=True,
        ),
        name="the library of templates",
        previous=previous,
    )
    return [dataclasses.replace(p.batch, templates=library) for p in ordered]


def _write_library(pieces: Sequence[str], output: str, library: str) -> dict[str, Any]:
    tables = files.each(output, lambda key: completions.read_table(output, PIECES, key), pieces)
    rows = np.concatenate(tables)
    _, first_of_each = np.unique(rows["hash"], return_index=True)
    is_first = np.zeros(len(rows), bool)
    is_first[first_of_each] = True
    of_pieces = np.split(is_first, np.cumsum([len(table) for table in tables])[:-1])
    wanted = [
        ((key, table[kept]), int(table["size"].sum()))
        for key, table, kept in zip(pieces, tables, of_pieces, strict=True)
    ]

    def read(piece: tuple[str, npt.NDArray[Any]]) -> bytes:
        return files.read_bytes(_text_path(output, PIECES, piece[0])) if len(piece[1]) else b""

    with files.new_file(_text_path(output, LIBRARY, library)) as file:
        for (_, kept), text in read_ahead.in_order(output, read, wanted):
            file.write(b"".join(text[start : start + size] for _, start, size in kept.tolist()))
    index = rows[is_first]
    index["offset"] = np.cumsum(index["size"]) - index["size"]
    completions.write_table(output, LIBRARY, library, np.sort(index, order="hash"))
    return {
        "templates": len(index),
        "pieces": pieces,
        "size": file.size,
        "sha256": file.sha256,
        **completions.stored(output, (file,)),
    }


def read_library(output: str, library: str) -> dict[str, Any]:
    """The record of a library: `templates`, the number of its definitions, and `pieces`, their keys in order.

    Raises RunFailedError if there is no such library.
    """
    return completions.finished(output, LIBRARY, library)


class TemplateLibrary:
    """Finds definitions by name. Holds the rows in memory, 24 bytes for each definition."""

    def __init__(self, output: str, library: str) -> None:
        """Maps the text of a library, or a copy of one that lies in a store.

        Raises:
          RunFailedError: there is no such library, or it was damaged.
        """
        record = read_library(output, library)
        self._index = completions.read_table(output, LIBRARY, library)
        path = _text_path(output, LIBRARY, library)
        self._text = _mapped(path)
        if len(self._text) != record["size"]:
            raise completions.lost_meanwhile(path)

    def find(self, wiki: str, name: bytes) -> bytes | None:
        """The page (wikitext, UTF-8) of a wiki's template, or None if the wiki has no template of that name."""
        wanted = np.uint64(name_hash(wiki, name))
        row = int(np.searchsorted(self._index["hash"], wanted))
        if row == len(self._index) or self._index["hash"][row] != wanted:
            return None
        _, offset, size = self._index[row].tolist()
        return self._text[offset : offset + size]


def _mapped(path: str) -> "mmap.mmap | bytes":
    """The content of a file, mapped; b"" where it is empty or gone."""
    with contextlib.suppress(MissingFileError), contextlib.ExitStack() as stack:
        source = stack.enter_context(files.open_input(path, 0, files.TO_THE_END))
        if not files.is_local(path):
            # It has no name, so it goes with the process.
            copy = stack.enter_context(tempfile.TemporaryFile(prefix=files.scratch_prefix()))
            shutil.copyfileobj(source, copy, _COPY_BYTES)
            copy.flush()
            source = copy
        if os.fstat(source.fileno()).st_size:
            return mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
    return b""


def CollectTemplates(batches: Collection, *, reading: ReadOptions, output: str, previous: str = "") -> Collection:
    """Collects the templates of all batches before the first page is extracted.

    Input: UnitBatch. Output: UnitBatch, the same batches with the key of the library in `templates`.
    """
    pieces = batches.spread("Collect", collect_templates, reading, output, previous)  # Piece
    return pieces.together().flat_map("BindLibrary", bind_library, output, previous)  # UnitBatch
