"""Units of the input → fragments: the sentences of their documents, and a table of what they are.

A unit is a byte range of an input file; a fragment is what one batch of units gives. Its text lies in the build's
work directory as a cache: where it is gone, it is made again from the input, with the same bytes. What leaves the
step is the fragment's description.

Layout of a fragment `<key>`: `<key>.text`, the documents one after another (each its sentences, one a line, then a
blank line; or a `<doc>` block where MLPerf's clean-up follows), `<key>.npy`, a row of TABLE for each document, and,
where duplicates are looked for, `<key>.paragraphs`, a row of `duplicates.paragraphs_type` for each paragraph.
"""

import collections
import contextlib
import dataclasses
import functools
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from transforms.errors import UnusableInputError
from transforms.extraction.template_library import TemplateLibrary
from transforms.extraction.wikiextractor import WikiExtractorCompat, format_document
from transforms.extraction.wikitext import WikitextExtractor
from transforms.inputs.documents import Document, RejectedPage
from transforms.inputs.mediawiki import Page, read_header, site_base
from transforms.inputs.options import ReadOptions
from transforms.inputs.site import Site
from transforms.inputs.units import InputFile, UnitBatch, read_unit
from transforms.sentences.punkt import SentenceSplitter
from transforms.shards import duplicates
from transforms.shards.options import ExtractionOptions
from transforms.shards.quality import QualityFilter
from transforms.storage import completions, files

KIND = "extract"
_WRITE_BYTES = 1 << 20
_PARAGRAPHS_AT_ONCE = 1 << 14

# hash: the document's place in the order of eval membership (0..2^64-1); offset and size: its bytes in the text;
# sentences: lines in it.
TABLE = np.dtype([("hash", "<u8"), ("offset", "<i8"), ("size", "<i8"), ("sentences", "<i8")])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fragment:
    """The description of an extracted batch."""

    key: str
    batch: UnitBatch
    documents: int
    size: int
    counts: Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class Extracted:
    """A document that stays: its identity, its bytes, and its paragraphs where duplicates are looked for."""

    identity: str
    text: bytes
    paragraphs: npt.NDArray[Any] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RejectedDocument:
    """A document that was set aside, with its reason."""

    title: str
    reason: str


def eval_hash(seed: int, identity: str) -> int:
    """A document's place in the order of eval membership: uniform in 0..2^64-1, from the seed and its id alone."""
    return int.from_bytes(hashlib.sha256(f"{seed}:eval:{identity}".encode()).digest()[:8], "big")


class DocumentExtractor:
    """Turns what a reader yields into documents of sentences, for one input file.

    library: the templates of the dump, where they are expanded.
    """

    def __init__(self, options: ExtractionOptions, file: InputFile, library: TemplateLibrary | None = None) -> None:
        self._options = options
        self._splitter = _splitter(options.language)
        header = read_header(file.path) if file.date else b""
        self._site = Site.parse(header)
        self._base = site_base(header)
        self._wikitext = WikitextExtractor(
            self._site,
            dataclasses.replace(options.wikitext, date=file.date or "2001-01-15", expand_templates=library is not None),
            functools.partial(library.find, self._base) if library is not None else None,
        )
        with_compat = options.extractor == "wikiextractor" and file.date
        self._compat = WikiExtractorCompat(file.date) if with_compat else None
        quality = options.quality
        self._filter = QualityFilter(quality, self._site.language) if quality.filters_documents else None
        self._signer = duplicates.ParagraphSigner(quality) if quality.finds_duplicates else None

    @property
    def partly_expanded_pages(self) -> int:
        """Pages of which not all templates were expanded, because of a limit."""
        return self._wikitext.limited_pages

    def extract(self, item: Page | Document) -> Extracted | str:
        """Returns a document, or the name of the count it goes to."""
        if isinstance(item, Page):
            return self._extract_page(item)
        if self._options.doc_blocks:
            raise UnusableInputError("MLPerf's clean-up takes a dump or WikiExtractor's files, not other documents.")
        return self._finish(item.document_id or hashlib.sha256(item.text).hexdigest(), item.title, item.text)

    def _extract_page(self, page: Page) -> Extracted | str:
        options = self._options
        if page.namespace not in options.namespaces:
            return "other_namespaces"
        # WikiExtractor knows redirects by the dump's <redirect/> alone; schemas before 0.4 have none.
        told_by_text = not options.doc_blocks and self._wikitext.is_redirect(page.text)
        if not options.keep_redirects and (page.is_redirect or told_by_text):
            return "redirects"
        if self._compat is not None:
            text = self._compat.extract(page.title, page.text)
            if options.doc_blocks:
                return Extracted(str(page.page_id), format_document(page.page_id, self._base, page.title, text))
        else:
            if page.model != b"wikitext":
                return "other_content_models"
            if not options.keep_disambiguation and self._wikitext.is_disambiguation(page.title, page.text):
                return "disambiguation_pages"
            text = self._wikitext.extract(page.title, page.text)
        return self._finish(str(page.page_id), page.title, text, page.text)

    def _finish(self, identity: str, title: bytes, text: bytes, wikitext: bytes = b"") -> Extracted | str:
        """A document of the sentences of a text whose paragraphs are its lines."""
        if self._filter is not None and text.strip():
            reason = self._filter.reject(title, text, wikitext)
            if reason is not None:
                return reason
        head = title + b"\n" if self._options.keep_titles and title else b""
        paragraphs = None
        if self._signer is None:
            body = self._splitter.split_lines(text)
        else:
            body, paragraphs = self._split_and_sign(self._signer, text, len(head))
        if not body.strip():
            return "empty"
        if not body.endswith(b"\n"):
            body += b"\n"
        return Extracted(identity, head + body + b"\n", paragraphs)

    def _split_and_sign(
        self, signer: duplicates.ParagraphSigner, text: bytes, offset: int
    ) -> tuple[bytes, npt.NDArray[Any]]:
        """The sentences of a text and the rows of its paragraphs, which begin at `offset` of the document."""
        lines = text.split(b"\n")
        rows = np.zeros(len(lines), duplicates.paragraphs_type(self._options.quality))
        parts = []
        count = 0
        for line in lines:
            part = self._splitter.split_lines(line + b"\n")
            if signer.sign(rows[count : count + 1], line):
                rows[count]["offset"], rows[count]["size"] = offset, len(part)
                rows[count]["sentences"] = part.count(b"\n")
                count += 1
            parts.append(part)
            offset += len(part)
        body = b"".join(parts)
        rows = rows[:count]
        rows["body"] = body.count(b"\n")
        return body, rows


@functools.lru_cache(maxsize=4)
def _splitter(language: str) -> SentenceSplitter:
    return SentenceSplitter(language)


@functools.lru_cache(maxsize=4)
def _document_extractor(options: ExtractionOptions, file: InputFile, templates: str, output: str) -> DocumentExtractor:
    return DocumentExtractor(options, file, TemplateLibrary(output, templates) if templates else None)


def fragment_key(options: ExtractionOptions, batch: UnitBatch) -> str:
    """What a batch's fragment depends on: the content of its file, its ranges, the options, the code's format."""
    ranges = [(u.format, u.start, u.end) for u in batch.units]
    source = (batch.file.sha256, batch.file.date, ranges, batch.limit, batch.templates)
    return completions.fingerprint(KIND, completions.FORMAT_VERSIONS["extract"], options, source)


def extract_batch(batch: UnitBatch, options: ExtractionOptions, output: str) -> Fragment:
    """Extracts a batch into its fragment, unless that is done already.

    Raises:
      UnusableInputError, RunFailedError: the input cannot be read to its end; bad documents in it are set aside.
    """
    key = fragment_key(options, batch)
    record = completions.once(output, KIND, key, lambda: _write_fragment(batch, options, output, key))
    return Fragment(key=key, batch=batch, documents=record["documents"], size=record["size"], counts=record["counts"])


def _write_fragment(batch: UnitBatch, options: ExtractionOptions, output: str, key: str) -> dict[str, Any]:
    extractor = _document_extractor(options, batch.file, batch.templates, output if batch.templates else "")
    expanded_before = extractor.partly_expanded_pages
    counts: collections.Counter[str] = collections.Counter()
    rows: list[tuple[int, int, int, int]] = []
    rejected: list[dict[str, Any]] = []
    offset = 0
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(files.new_file(_text_path(output, key), checksum=False))
        paragraphs = None
        if options.quality.finds_duplicates:
            paragraphs = stack.enter_context(files.new_file(_paragraphs_path(output, key), checksum=False))
        pending = io.BytesIO()
        for item in _read(batch, options.reading):
            counts["read"] += 1
            document = _extract_or_reject(extractor, item)
            if isinstance(document, RejectedDocument):
                counts["rejected"] += 1
                rejected.append({"input": batch.file.path, "title": document.title, "reason": document.reason})
            elif isinstance(document, str):
                counts[document] += 1
            else:
                text = document.text
                sentences = 0 if options.doc_blocks else text.count(b"\n") - 1
                rows.append((eval_hash(options.random_seed, document.identity), offset, len(text), sentences))
                if paragraphs is not None and document.paragraphs is not None:
                    document.paragraphs["offset"] += offset
                    paragraphs.write(document.paragraphs.tobytes())
                offset += len(text)
                pending.write(text)
                if pending.tell() >= _WRITE_BYTES:
                    file.write(pending.getbuffer())
                    pending = io.BytesIO()
                if batch.limit is not None and len(rows) >= batch.limit:
                    break
        file.write(pending.getbuffer())
    completions.write_table(output, KIND, key, np.array(rows, TABLE))
    counts["documents"] = len(rows)
    if batch.templates:
        counts["partly_expanded_pages"] = extractor.partly_expanded_pages - expanded_before
    return {"documents": len(rows), "size": offset, "counts": dict(counts), "rejected": rejected}


def _read(batch: UnitBatch, reading: ReadOptions) -> Iterator[Page | Document | RejectedPage]:
    for unit in batch.units:
        yield from read_unit(unit, reading)


def _extract_or_reject(
    extractor: DocumentExtractor, item: Page | Document | RejectedPage
) -> Extracted | str | RejectedDocument:
    if isinstance(item, RejectedPage):
        return RejectedDocument(title=item.title, reason=item.reason)
    try:
        return extractor.extract(item)
    except (UnusableInputError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - one bad page never ends the run: it is counted and kept aside
        title = item.title.decode(errors="replace")
        return RejectedDocument(title=title, reason=f"extraction failed: {type(error).__name__}: {error}")


def _text_path(output: str, key: str) -> str:
    return completions.work_path(output, KIND, f"{key}.text")


def _paragraphs_path(output: str, key: str) -> str:
    return completions.work_path(output, KIND, f"{key}.paragraphs")


def read_table(output: str, fragment: Fragment) -> npt.NDArray[Any]:
    """The rows of TABLE of a fragment's documents, [documents]."""
    return completions.read_table(output, KIND, fragment.key)


def read_rejected(output: str, fragment: Fragment) -> list[dict[str, Any]]:
    """What the fragment's extraction set aside."""
    record = completions.load(output, KIND, fragment.key)
    return list(record["rejected"]) if record else []


def read_ranges(
    fragment: Fragment, ranges: npt.NDArray[np.int64], options: ExtractionOptions, output: str
) -> Iterator[bytes]:
    """Yields byte ranges [k, 2] (start, end) of a fragment's text; extracts it again where it is gone."""
    path = _text_path(output, fragment.key)
    if not files.exists(path):
        _write_fragment(fragment.batch, options, output, fragment.key)
    with files.open_input(path) as file:
        for start, end in ranges.tolist():
            file.seek(start)
            yield file.read(end - start)


def read_paragraphs(fragment: Fragment, options: ExtractionOptions, output: str) -> Iterator[npt.NDArray[Any]]:
    """Yields the rows of a fragment's paragraphs in pieces; extracts the fragment again where they are gone."""
    path = _paragraphs_path(output, fragment.key)
    if not files.exists(path):
        _write_fragment(fragment.batch, options, output, fragment.key)
    row_type = duplicates.paragraphs_type(options.quality)
    with files.open_input(path) as file:
        while rows := file.read(_PARAGRAPHS_AT_ONCE * row_type.itemsize):
            yield np.frombuffer(rows, row_type)


def merge_ranges(table: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Byte ranges [k, 2] that hold the documents of these rows, neighbours joined."""
    starts = table["offset"].astype(np.int64)
    ends = starts + table["size"].astype(np.int64)
    first = np.ones(len(table), bool)
    first[1:] = starts[1:] != ends[:-1]
    last = np.roll(first, -1)
    return np.stack([starts[first], ends[last]], axis=1)


def cut_out(ranges: npt.NDArray[np.int64], holes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Byte ranges [k, 2] without the holes [h, 2] that lie in them; both in order and without overlaps."""
    around = np.searchsorted(ranges[:, 0], holes[:, 0], side="right") - 1
    inside = (around >= 0) & (holes[:, 0] < ranges[around, 1])
    starts = np.sort(np.concatenate([ranges[:, 0], holes[inside, 1]]))
    ends = np.sort(np.concatenate([ranges[:, 1], holes[inside, 0]]))
    return np.stack([starts, ends], axis=1)[starts < ends]


def drop_texts(output: str, fragments: Sequence[Fragment]) -> None:
    """Deletes the fragments' texts and paragraphs once their shards are written; their tables stay for the next run."""
    paths = [p for f in fragments for p in (_text_path(output, f.key), _paragraphs_path(output, f.key))]
    files.delete([p for p in paths if files.exists(p)])


@dataclasses.dataclass(kw_only=True, eq=False)
class ExtractDocuments(beam.PTransform):
    """Extracts batches of units.

    Input: UnitBatch. Output: Fragment, the description of the text written.
    """

    options: ExtractionOptions
    output: str

    def expand(self, batches: beam.PCollection) -> beam.PCollection:
        return (
            batches
            | "Spread" >> beam.Reshuffle()
            | "ExtractBatch" >> beam.Map(extract_batch, self.options, self.output)  # Fragment
        )
