"""Units of the input → fragments: the sentences of their documents, and a table of what they are.

A unit is a byte range of an input file; a fragment is what one batch of units gives. Its text lies in the build's
work directory as a cache: where it is gone, it is made again from the input, with the same bytes. What leaves the
step is the fragment's description.

Layout of a fragment `<key>`: `<key>.text`, the documents one after another (each its sentences, one a line, then a
blank line; or a `<doc>` block where MLPerf's clean-up follows), `<key>.npy`, a row of TABLE for each document, and,
where duplicates are looked for, `<key>.paragraphs`, a row of `signatures.paragraphs_type` for each paragraph. With
`metadata_columns` there is `<key>.documents`, a row for each document (document_tables.py).
"""

import collections
import contextlib
import dataclasses
import io
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from maskmill.errors import MissingFileError
from maskmill.extraction import unknown_templates
from maskmill.extraction.unknown_templates import UnknownTemplate
from maskmill.inputs.items import CutOff, Document, RejectedPage
from maskmill.inputs.mediawiki import Page
from maskmill.inputs.units import InputFile, Unit, UnitBatch, read_unit
from maskmill.storage import completions, files
from maskmill.text_shards import document_tables
from maskmill.text_shards.byte_ranges import Ranges
from maskmill.text_shards.cached_texts import read_cached
from maskmill.text_shards.document_extractor import (
    DocumentExtractor,
    ExtractedDocument,
    document_extractor,
    or_rejected,
    origin_of,
)
from maskmill.text_shards.eval_membership import eval_hash
from maskmill.text_shards.options import ExtractionOptions
from maskmill.text_shards.signatures import paragraphs_type
from maskmill.text_shards.text_profile import TextProfile

Rows = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]
Records = Mapping[str, dict[str, Any]]  # completion records by their keys
# What decides the documents of each source, by its name; the name is empty in a build without sources.
Extractions = Mapping[str, ExtractionOptions]

KIND = "extract"
_TEXT, _PARAGRAPHS, _DOCUMENTS = "text", "paragraphs", "documents"  # the endings of its files

_WRITE_BYTES = 1 << 20
_TITLES, _TITLE_BYTES = 5, 480  # that are kept of the documents counted under a name
_PARAGRAPHS_AT_ONCE = 1 << 14  # rows that are read together

# hash: the document's place in the order of eval membership (0..2^64-1); offset and size: its bytes in the text;
# sentences: lines in it.
TABLE = np.dtype([("hash", "<u8"), ("offset", "<i8"), ("size", "<i8"), ("sentences", "<i8")])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fragment:
    """The description of an extracted batch.

    key: the name of its files. documents, size: how many documents its text holds, and how many bytes. counts: of the
    pages that were read, how many stayed, and how many were left out for which reason. ends: where in the text that of
    each of the batch's files ends. cut_off: the files of which only what stands before their cut was taken. columns: of
    its rows for the shards' tables, each with its type; empty without `metadata_columns`.
    """

    key: str
    batch: UnitBatch
    documents: int
    size: int
    counts: Mapping[str, int]
    ends: tuple[int, ...]
    cut_off: tuple[str, ...] = ()
    columns: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def inputs_of(self, ranges: Ranges) -> dict[str, str]:
        """Return the input files that byte ranges [k, 2] of the text come from, each with its sha256, if it is
        known.
        """
        files_of_batch = self.batch.files
        if len(files_of_batch) == 1:
            return {files_of_batch[0].path: files_of_batch[0].sha256}
        starts = (0, *self.ends)
        return {
            file.path: file.sha256
            for file, start, end in zip(files_of_batch, starts, self.ends, strict=False)
            if ((ranges[:, 0] < end) & (ranges[:, 1] > start)).any()
        }


Pieces = Sequence[tuple[Fragment, Ranges]]  # fragments, each with byte ranges of its text [k, 2], in order


def in_order(fragments: Iterable[Fragment]) -> list[Fragment]:
    """Sort fragments as their batches stand in the input, those of a mix by the name of their source first."""
    return sorted(fragments, key=lambda fragment: (fragment.batch.source, fragment.batch.number))


def fragment_key(options: ExtractionOptions, batch: UnitBatch) -> str:
    """Return what a batch's fragment depends on: the content of its files, its ranges, the options, the code's format.

    In a mix the key holds the name of the source, too, so that no two sources ever write the same file.
    """
    ranges = [(unit.format, unit.start, unit.end) for unit in batch.units]
    contents = [(file.content, file.date, file.sentences) for file in batch.files]
    source = (ranges, batch.limit, batch.templates, *contents)
    of_source = (batch.source,) if batch.source else ()
    return completions.fingerprint(KIND, completions.FORMAT_VERSIONS["extract"], options, source, *of_source)


def extract_batch(batch: UnitBatch, options: ExtractionOptions, output: str) -> Fragment:
    """Extract a batch into its fragment, unless that is done already.

    Documents that cannot be processed are counted, and listed with the reason (`read_rejected`).

    Raises:
      UnusableInputError, RunFailedError: the input cannot be read to its end.
    """
    key = fragment_key(options, batch)
    record = completions.once(
        output,
        KIND,
        key,
        lambda: _write_fragment(batch, options, output, key),
        _files_of,
        name=f"unit {batch.number} ({files.base_name(batch.files[0].path)})",
    )
    return Fragment(
        key=key,
        batch=batch,
        documents=record["documents"],
        size=record["size"],
        counts=record["counts"],
        ends=tuple(record["ends"]),
        cut_off=tuple(record["cut_off"]),
        columns=record.get("columns", {}),
    )


class _FragmentWriter:
    """Writes documents to the files of a fragment, one after another.

    rows: their table. size: their bytes. ends, profiles: of each of the batch's files where its text ends, and what it
    looks like, if it is sentences; `languages`: how many of its records are of which language, "" for the file's.
    columns: as in Fragment.
    """

    def __init__(self, opened: Mapping[str, files.OutputFile], options: ExtractionOptions) -> None:
        """Take the opened files, by the endings of their names."""
        self.rows: list[tuple[int, int, int, int]] = []
        self.size = 0
        self._text = opened[_TEXT]
        self._paragraphs = opened.get(_PARAGRAPHS)
        self._documents = opened.get(_DOCUMENTS)
        self.columns: dict[str, str] = {}
        self._seed = options.random_seed
        self._splits_sentences = not options.doc_blocks
        self._pending = io.BytesIO()
        self.ends: list[int] = []
        self.profiles: list[dict[str, Any]] = []
        self._profile = TextProfile()
        self._languages: collections.Counter[str] = collections.Counter()

    def add(self, document: ExtractedDocument) -> None:
        """Add a document; its text is held back until there is a block of it, or until `flush`."""
        text = document.text
        sentences = text.count(b"\n") - 1 if self._splits_sentences else 0  # its last line is blank
        self.rows.append((eval_hash(self._seed, document.identity), self.size, len(text), sentences))
        if self._paragraphs is not None and document.paragraphs is not None:
            document.paragraphs["offset"] += self.size
            self._paragraphs.write(document.paragraphs.tobytes())
        if self._documents is not None:
            self._documents.write(document_tables.packed(document.kept))
            self.columns = document_tables.joined(self.columns, document_tables.types_of(document.kept))
        if document.language is not None:
            self._languages[document.language] += 1
        self.size += len(text)
        self._pending.write(text)
        if self._pending.tell() >= _WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the text that is held back."""
        block = self._pending.getvalue()
        self._text.write(block)
        if self._splits_sentences:
            self._profile.add(block)
        self._pending = io.BytesIO()

    def end_file(self) -> None:
        """End the text of one of the batch's files."""
        self.flush()
        self.ends.append(self.size)
        self.profiles.append(self._profile.record | {"languages": dict(self._languages)})
        self._profile = TextProfile()
        self._languages.clear()


@dataclasses.dataclass
class _Findings:
    """Facts that the documents of a fragment bring beside their text.

    counts: of documents and templates. titles: of the first documents that are left out, by the name under which
    they are counted. rejected: as `read_rejected` gives them. unknown: the templates without a rule,
    a list for each of the batch's files. cut_off: the paths of files that end in the middle.
    """

    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    titles: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    rejected: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    unknown: list[list[UnknownTemplate]] = dataclasses.field(default_factory=list)
    cut_off: set[str] = dataclasses.field(default_factory=set)

    def note(self, name: str, item: Page | Document | RejectedPage) -> None:
        """Keep the title of one of the first documents that are counted under a name, for the report."""
        if isinstance(item, RejectedPage) or not item.title or len(self.titles.get(name, ())) == _TITLES:
            return
        self.titles.setdefault(name, []).append(item.title[:_TITLE_BYTES].decode(errors="ignore"))


def _write_fragment(batch: UnitBatch, options: ExtractionOptions, output: str, key: str) -> dict[str, Any]:
    """Write the files of a fragment, and return its completion record."""
    findings = _Findings()
    with contextlib.ExitStack() as stack:
        stack.enter_context(batch.unchanged())  # what other content gives must not bear this key
        endings = [_TEXT] + [_PARAGRAPHS] * options.quality.finds_duplicates
        endings += [_DOCUMENTS] * bool(options.reading.metadata_columns)
        opened = {ending: stack.enter_context(files.new_file(_path(output, key, ending))) for ending in endings}
        writer = _FragmentWriter(opened, options)
        for file, units in batch.parts:
            extractor = document_extractor(options, origin_of(file), batch.templates, output)
            _extract_file(batch, file, units, extractor, writer, findings)
            writer.end_file()
    completions.write_table(output, KIND, key, np.array(writer.rows, TABLE))
    findings.counts["documents"] = len(writer.rows)
    caches = [
        (completions.work_name(KIND, files.base_name(file.path)), file.size, file.sha256) for file in opened.values()
    ]
    return {
        **({"columns": writer.columns} if writer.columns else {}),
        "ends": writer.ends,
        "documents": len(writer.rows),
        "size": writer.size,
        "counts": dict(findings.counts),
        "titles": findings.titles,
        "rejected": findings.rejected,
        "unknown_templates": [dataclasses.asdict(template) for template in unknown_templates.merge(findings.unknown)],
        "cut_off": sorted(findings.cut_off),
        "profiles": writer.profiles,
        "caches": caches,
    }


def _extract_file(
    batch: UnitBatch,
    file: InputFile,
    units: Sequence[Unit],
    extractor: DocumentExtractor,
    writer: _FragmentWriter,
    findings: _Findings,
) -> None:
    """Extract the units of one of a batch's files, and add what becomes of its documents to the findings."""
    counts, rejected = findings.counts, findings.rejected
    partly_expanded_before = extractor.wikitext.limited_pages
    # What the extractor counted before is not of this file.
    extractor.take_counts()
    extractor.wikitext.take_unknown_templates()
    most_rows = None if batch.limit is None else len(writer.rows) + batch.limit
    for item in itertools.chain.from_iterable(
        read_unit(unit, extractor.options.reading, file.header) for unit in units
    ):
        if isinstance(item, CutOff):
            findings.cut_off.add(file.path)
            if item.title is not None:
                counts["cut_off_pages"] += 1
                rejected.append({"input": file.path, "title": item.title, "reason": "the file is cut off in it"})
            continue
        counts["read"] += 1
        documents = or_rejected(extractor.extract_all, item)
        if isinstance(documents, RejectedPage):
            counts["rejected"] += 1
            rejected.append({"input": file.path, "title": documents.title, "reason": documents.reason})
            continue
        for document in documents:
            if isinstance(document, str):
                counts[document] += 1
                findings.note(document, item)
            elif len(writer.rows) != most_rows:
                writer.add(document)
        if len(writer.rows) == most_rows:
            break
    counts.update(extractor.take_counts())
    findings.unknown.append(extractor.wikitext.take_unknown_templates())
    if batch.templates:
        counts["partly_expanded_pages"] += extractor.wikitext.limited_pages - partly_expanded_before


def _files_of(record: dict[str, Any]) -> completions.ItemFiles:
    return completions.ItemFiles(cached=[tuple(cache) for cache in record["caches"]], has_table=True)


def _path(output: str, key: str, content: str) -> str:
    return completions.work_path(output, KIND, f"{key}.{content}")


def _open_cached(fragment: Fragment, content: str, options: ExtractionOptions, output: str) -> BinaryIO:
    """Open a file of a fragment, which is extracted again if it is gone."""
    path = _path(output, fragment.key, content)
    try:
        return files.open_input(path)
    except MissingFileError:
        _write_fragment(fragment.batch, options, output, fragment.key)
        return files.open_input(path)


def read_tables(ordered: Sequence[Fragment], output: str, *, extents: bool = False) -> tuple[Rows, Integers]:
    """Return the documents of fragments, in order, in 20 bytes each unless a fragment has 2 GiB of text.

    extents: whether to give the sizes twice, for one of them to shrink.

    Returns:
      A row for each document, [documents]: the fields of TABLE, and `extent`, the size, if that is asked for; and where
      the rows of each fragment begin, with the end of the last one, [fragments + 1].
    """
    starts = np.cumsum([0, *(fragment.documents for fragment in ordered)])
    integer = "<i4" if max((fragment.size for fragment in ordered), default=0) < 1 << 31 else "<i8"
    fields = [(name, integer) for name in ("offset", "size", "sentences", *(("extent",) if extents else ()))]
    table = np.zeros(starts[-1], np.dtype([("hash", "<u8"), *fields]))

    def read(number: int) -> None:
        rows = completions.read_table(output, KIND, ordered[number].key)
        into = table[starts[number] : starts[number + 1]]
        for name in into.dtype.names or ():
            into[name] = rows["size" if name == "extent" else name]

    files.each(output, read, range(len(ordered)))
    return table, starts


def read_records(fragments: Sequence[Fragment], output: str) -> Records:
    """Return the completion records of fragments, by their keys."""
    keys = [fragment.key for fragment in fragments]
    return dict(zip(keys, completions.all_finished(output, KIND, keys), strict=True))


def read_rejected(fragment: Fragment, output: str) -> list[dict[str, Any]]:
    """Return the documents that could not be processed: of each the `input`, the `title` and the `reason`."""
    return list(completions.finished(output, KIND, fragment.key)["rejected"])


def write_titles(fragments: Sequence[Fragment], records: Records, output: str) -> None:
    """Keep the titles of the first documents that are counted under each name, for the report."""
    titles: dict[str, dict[str, None]] = {}
    for fragment in fragments:
        for name, some in records[fragment.key].get("titles", {}).items():  # earlier versions kept none
            titles.setdefault(name, {}).update(dict.fromkeys(some))
    if titles:
        kept = {name: list(some)[:_TITLES] for name, some in titles.items()}
        completions.store(output, completions.RUN, completions.TITLES, kept)


def profiles_of(fragment: Fragment, records: Records) -> list[tuple[InputFile, dict[str, Any]]]:
    """Return the files of a fragment, each with the profile of its text (text_profile.TextProfile.record)."""
    return list(zip(fragment.batch.files, records[fragment.key]["profiles"], strict=True))


def unknown_templates_of(fragments: Sequence[Fragment], records: Records) -> list[UnknownTemplate]:
    """Return the templates without a rule in all fragments, by name."""
    return unknown_templates.merge(
        [UnknownTemplate(**row) for row in records[fragment.key]["unknown_templates"]]
        for fragment in in_order(fragments)
    )


def read_ranges(pieces: Pieces, extractions: Extractions, output: str) -> Iterator[bytes]:
    """Yield the bytes of pieces, in order, as `read_cached`; extract a fragment again where its text is gone."""
    return read_cached(
        output,
        pieces,
        lambda fragment: _path(output, fragment.key, _TEXT),
        lambda fragment: _write_fragment(fragment.batch, extractions[fragment.batch.source], output, fragment.key),
    )


def read_paragraphs(fragment: Fragment, options: ExtractionOptions, output: str) -> Iterator[Rows]:
    """Yield the rows of a fragment's paragraphs in pieces; extract the fragment again where they are gone."""
    row_type = paragraphs_type(options.quality)
    with _open_cached(fragment, _PARAGRAPHS, options, output) as file:
        while rows := file.read(_PARAGRAPHS_AT_ONCE * row_type.itemsize):
            yield np.frombuffer(rows, row_type)


def rows_in(fragment: Fragment, ranges: Ranges, extractions: Extractions, output: str) -> Iterator[dict[str, Any]]:
    """Yield the rows, for a shard's table, of the documents that have text in byte ranges [k, 2], in order."""
    table = completions.read_table(output, KIND, fragment.key)
    first_end_after = np.searchsorted(ranges[:, 1], table["offset"], side="right")
    starts = np.append(ranges[:, 0], np.iinfo(np.int64).max)[first_end_after]
    numbers = np.flatnonzero(starts < table["offset"] + table["size"])
    if not fragment.columns:  # of a source of a mix that keeps nothing
        yield from ({} for _ in numbers)
        return
    with _open_cached(fragment, _DOCUMENTS, extractions[fragment.batch.source], output) as file:
        yield from document_tables.unpacked(file.read(), numbers)


def drop_texts(fragments: Iterable[Fragment], output: str) -> None:
    """Delete the fragments' texts, paragraphs and rows once their shards are written; their tables stay."""
    endings = (_TEXT, _PARAGRAPHS, _DOCUMENTS)
    paths = [_path(output, fragment.key, content) for fragment in fragments for content in endings]
    files.delete([path for path in paths if files.exists(path)])
