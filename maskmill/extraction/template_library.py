"""A dump's own templates and modules, collected before its pages are extracted (`--expand_templates`).

Each batch of units gives a part with the files `<key>.text`, the pages of the batch's templates and modules one after
another, and `<key>.npy`, a row of TABLE for each of them, templates first. A library has the same files, made from all
parts, each name once, with its rows sorted by hash. A worker holds the rows, and maps the text; it copies the text of a
library in a store once.
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
from maskmill.extraction.template_definitions import MODULE_MARK, MODULE_NAMESPACE, TEMPLATE_NAMESPACE
from maskmill.inputs.mediawiki import Page, site_base
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.units import UnitBatch, read_unit
from maskmill.storage import completions, files, read_ahead

PIECES = "templates"
LIBRARY = "template-library"

# The content models of the pages that calls may need, by namespace.
_MODELS = {TEMPLATE_NAMESPACE: (b"wikitext",), MODULE_NAMESPACE: (b"Scribunto", b"json")}
_HASH_BYTES = 8
_COPY_BYTES = 4 << 20
_MARK = MODULE_MARK.encode()
# hash: of the wiki and the template's name, or a module's after MODULE_MARK (name_hash); offset, size: the bytes of its
# page in the text.
TABLE = np.dtype([("hash", "<u8"), ("offset", "<i8"), ("size", "<i8")])


def name_hash(wiki: str, name: bytes) -> int:
    """Return the hash, 64 bits, of a template's name without its namespace, on the wiki of an address (site_base)."""
    return int.from_bytes(hashlib.sha256(wiki.encode() + b"\0" + name).digest()[:_HASH_BYTES], "little")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CollectedTemplates:
    """The description of a batch's templates: the batch, and the key of the files."""

    batch: UnitBatch
    key: str


def collect_templates(batch: UnitBatch, reading: ReadOptions, output: str) -> CollectedTemplates:
    """Write the templates among a batch's pages to files, unless an earlier run did.

    Pages that cannot be read are skipped; extraction counts them.

    Raises:
      RunFailedError: the end of the input cannot be reached.
    """
    ranges = [(u.format, u.start, u.end) for u in batch.units]
    first, *others = (file.content for file in batch.files)
    source = (first, ranges, reading, *others)
    key = completions.fingerprint(PIECES, completions.FORMAT_VERSIONS["templates"], *source)
    text = completions.work_name(PIECES, f"{key}.text")
    completions.once(
        output,
        PIECES,
        key,
        lambda: _write_templates(batch, reading, output, key),
        lambda record: completions.ItemFiles(written=[(text, record["size"], record["sha256"])], has_table=True),
        name=f"templates of unit {batch.number} ({files.base_name(batch.files[0].path)})",
    )
    return CollectedTemplates(batch=batch, key=key)


def _text_path(output: str, kind: str, key: str) -> str:
    return completions.work_path(output, kind, f"{key}.text")


def _write_templates(batch: UnitBatch, reading: ReadOptions, output: str, key: str) -> dict[str, Any]:
    rows: dict[int, list[tuple[int, int, int]]] = {namespace: [] for namespace in _MODELS}
    offset = 0
    modules = hashlib.sha256()
    with batch.unchanged(), files.new_file(_text_path(output, PIECES, key)) as file:
        for source, units in batch.parts:
            wiki = site_base(source.header)
            for page in itertools.chain.from_iterable(read_unit(unit, reading, source.header) for unit in units):
                if not isinstance(page, Page) or page.model not in _MODELS.get(page.namespace, ()):
                    continue
                name = page.title.partition(b":")[2]
                if page.namespace == MODULE_NAMESPACE:
                    name = _MARK + name
                    modules.update(b"%d %d " % (len(name), len(page.text)) + name + page.text)
                rows[page.namespace].append((name_hash(wiki, name), offset, len(page.text)))
                file.write(page.text)
                offset += len(page.text)
    templates, of_modules = rows[TEMPLATE_NAMESPACE], rows[MODULE_NAMESPACE]
    completions.write_table(output, PIECES, key, np.array([*templates, *of_modules], TABLE))
    return {
        "templates": len(templates),
        "modules": len(of_modules),
        "modules_sha256": modules.hexdigest(),
        "size": file.size,
        "sha256": file.sha256,
    }


def bind_library(collected: Iterable[CollectedTemplates], output: str) -> list[UnitBatch]:
    """Make the library from the parts of all batches, in any order; return the batches, in order, with its key.

    If a dump defines a name twice, the first definition counts.
    """
    from maskmill.extraction.lua_process import libraries_version  # most runs expand nothing

    ordered = sorted(collected, key=lambda p: p.batch.number)
    keys = [p.key for p in ordered]
    version = libraries_version()
    library = completions.fingerprint(LIBRARY, completions.FORMAT_VERSIONS["templates"], keys, version)
    completions.once(
        output,
        LIBRARY,
        library,
        lambda: _write_library(keys, output, library, version),
        lambda record: completions.ItemFiles(
            written=[(completions.work_name(LIBRARY, f"{library}.text"), record["size"], record["sha256"])],
            has_table=True,
        ),
        name="the library of templates",
    )
    return [dataclasses.replace(p.batch, templates=library) for p in ordered]


def _write_library(pieces: Sequence[str], output: str, library: str, version: str) -> dict[str, Any]:
    tables = files.each(output, lambda key: completions.read_table(output, PIECES, key), pieces)
    records = completions.all_finished(output, PIECES, pieces)
    rows = np.concatenate(tables)
    _, first_of_each = np.unique(rows["hash"], return_index=True)
    is_first = np.zeros(len(rows), bool)
    is_first[first_of_each] = True
    masks = np.split(is_first, np.cumsum([len(table) for table in tables])[:-1])
    of_modules = "".join([version, *(record["modules_sha256"] for record in records)])
    templates = sum(int(kept[: record["templates"]].sum()) for record, kept in zip(records, masks, strict=True))
    parts = [
        ((key, table[kept]), int(table["size"].sum())) for key, table, kept in zip(pieces, tables, masks, strict=True)
    ]

    def read(part: tuple[str, npt.NDArray[Any]]) -> bytes:
        return files.read_bytes(_text_path(output, PIECES, part[0])) if len(part[1]) else b""

    with files.new_file(_text_path(output, LIBRARY, library)) as file:
        for (_, kept), text in read_ahead.in_order(output, read, parts):
            file.write(b"".join(text[start : start + size] for _, start, size in kept.tolist()))
    index = rows[is_first]
    index["offset"] = np.cumsum(index["size"]) - index["size"]
    completions.write_table(output, LIBRARY, library, np.sort(index, order="hash"))
    return {
        "templates": templates,
        "modules": len(index) - templates,
        "modules_sha256": hashlib.sha256(of_modules.encode()).hexdigest(),
        "pieces": pieces,
        "size": file.size,
        "sha256": file.sha256,
    }


def read_library(output: str, library: str) -> dict[str, Any]:
    """Return the record of a library: the numbers of `templates` and `modules`, and `pieces`, its parts' keys in order.

    Raise RunFailedError if there is no such library.
    """
    return completions.finished(output, LIBRARY, library)


class TemplateLibrary:
    """Finds definitions by name. Holds the rows in memory, 24 bytes for each definition."""

    def __init__(self, output: str, library: str) -> None:
        """Map the text of a library, or a copy if the library is in a store.

        Raises:
          RunFailedError: there is no such library, or it is damaged.
        """
        record = read_library(output, library)
        self._index = completions.read_table(output, LIBRARY, library)
        self._modules = record["modules_sha256"].encode() if record["modules"] else None
        path = _text_path(output, LIBRARY, library)
        self._text = _mapped(path)
        if len(self._text) != record["size"]:
            raise completions.lost_meanwhile(path)

    def find(self, wiki: str, name: bytes) -> bytes | None:
        """Return the page (UTF-8) of a wiki's template, or after MODULE_MARK its module; None if the wiki has none.

        MODULE_MARK alone returns a digest of all modules and of the packages that run them, or None without modules.
        """
        if name == _MARK:
            return self._modules
        key = np.uint64(name_hash(wiki, name))
        row = int(np.searchsorted(self._index["hash"], key))
        if row == len(self._index) or self._index["hash"][row] != key:
            return None
        _, offset, size = self._index[row].tolist()
        return self._text[offset : offset + size]


def _mapped(path: str) -> "mmap.mmap | bytes":
    """Return the content of a file, mapped; b"" if it is empty or missing."""
    with contextlib.suppress(MissingFileError), contextlib.ExitStack() as stack:
        source = stack.enter_context(files.open_input(path, 0, files.TO_THE_END))
        if not files.is_local(path):
            # The copy has no name, so it disappears with the process.
            copy = stack.enter_context(tempfile.TemporaryFile(prefix=files.scratch_prefix()))
            shutil.copyfileobj(source, copy, _COPY_BYTES)
            copy.flush()
            source = copy
        if os.fstat(source.fileno()).st_size:
            return mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
    return b""
