"""Units of the input → fragments: the sentences of their documents, and a table of what they are.

A unit is a byte range of an input file; a fragment is what one batch of units gives. Its text lies in the build's
work directory as a cache: where it is gone, it is made again from the input, with the same bytes. What leaves the
step is the fragment's description.

Layout of a fragment `<key>`: `<key>.text`, the documents one after another (each its sentences, one a line, then a
blank line; or a `<doc>` block where MLPerf's clean-up follows), and `<key>.npy`, a row of TABLE for each document.
"""

import collections
import dataclasses
import functools
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from transforms import completions, dump, files
from transforms.errors import UnusableInputError
from transforms.sentences import SentenceSplitter
from transforms.wikiextractor import WikiExtractorCompat, format_document
from transforms.wikitext import Site, WikitextExtractor, WikitextOptions

KIND = "extract"
_WRITE_BYTES = 1 << 20

# hash: the document's place in the order of eval membership (0..2^64-1); offset and size: its bytes in the text;
# sentences: lines in it.
TABLE = np.dtype([("hash", "<u8"), ("offset", "<i8"), ("size", "<i8"), ("sentences", "<i8")])


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractionOptions:
    """What decides the text of a document."""

    extractor: Literal["maskmill", "wikiextractor"] = "maskmill"
    language: str = "english"
    namespaces: tuple[int, ...] = (0,)
    keep_redirects: bool = False
    keep_disambiguation: bool = False
    keep_titles: bool = False
    headings: Literal["drop", "keep"] = "drop"
    lists: Literal["sentences", "keep", "drop"] = "sentences"
    seed: int = 12345
    doc_blocks: bool = False  # write WikiExtractor's <doc> blocks, unsplit, for MLPerf's clean-up
    reading: dump.ReadOptions = dataclasses.field(default_factory=dump.ReadOptions)


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputFile:
    """An input with its checksum, and the date that clock words in its pages give (ISO; empty where it has none)."""

    path: str
    size: int
    sha256: str
    date: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnitBatch:
    """Units that one call extracts, in order; `limit` ends it early once so many documents are kept."""

    number: int
    file: InputFile
    units: tuple[dump.Unit, ...]
    limit: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fragment:
    """The description of an extracted batch."""

    key: str
    batch: UnitBatch
    documents: int
    size: int
    counts: Mapping[str, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RejectedDocument:
    """A document that was set aside, with its reason."""

    title: str
    reason: str


def eval_hash(seed: int, identity: str) -> int:
    """A document's place in the order of eval membership: uniform in 0..2^64-1, from the seed and its id alone."""
    return int.from_bytes(hashlib.sha256(f"{seed}:eval:{identity}".encode()).digest()[:8], "big")


class DocumentExtractor:
    """Turns what a reader yields into documents of sentences, for one input file."""

    def __init__(self, options: ExtractionOptions, file: InputFile) -> None:
        self._options = options
        self._splitter = _splitter(options.language)
        header = dump.read_header(file.path) if file.date else b""
        self._site = Site.parse(header)
        self._base = dump.site_base(header)
        self._wikitext = WikitextExtractor(
            self._site,
            WikitextOptions(headings=options.headings, lists=options.lists, date=file.date or "2001-01-15"),
        )
        with_compat = options.extractor == "wikiextractor" and file.date
        self._compat = WikiExtractorCompat(file.date) if with_compat else None

    def extract(self, item: dump.Page | dump.Document) -> tuple[str, bytes] | str:
        """Returns a document's identity and its bytes, or the name of the count it goes to."""
        if isinstance(item, dump.Page):
            return self._extract_page(item)
        if self._options.doc_blocks:
            raise UnusableInputError("MLPerf's clean-up takes a dump or WikiExtractor's files, not other documents.")
        text = self._sentences(item.title, item.text)
        identity = item.document_id or hashlib.sha256(item.text).hexdigest()
        return (identity, text) if text else "empty"

    def _extract_page(self, page: dump.Page) -> tuple[str, bytes] | str:
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
                return str(page.page_id), format_document(page.page_id, self._base, page.title, text)
        else:
            if page.model != b"wikitext":
                return "other_content_models"
            if not options.keep_disambiguation and self._wikitext.is_disambiguation(page.title, page.text):
                return "disambiguation_pages"
            text = self._wikitext.extract(page.title, page.text)
        sentences = self._sentences(page.title, text)
        return (str(page.page_id), sentences) if sentences else "empty"

    def _sentences(self, title: bytes, text: bytes) -> bytes:
        body = self._splitter.split_lines(text)
        if not body.strip():
            return b""
        if not body.endswith(b"\n"):
            body += b"\n"
        if self._options.keep_titles and title:
            body = title + b"\n" + body
        return body + b"\n"


@functools.lru_cache(maxsize=4)
def _splitter(language: str) -> SentenceSplitter:
    return SentenceSplitter(language)


@functools.lru_cache(maxsize=4)
def _document_extractor(options: ExtractionOptions, file: InputFile) -> DocumentExtractor:
    return DocumentExtractor(options, file)


def fragment_key(options: ExtractionOptions, batch: UnitBatch) -> str:
    """What a batch's fragment depends on: the content of its file, its ranges, the options, the code's format."""
    ranges = [(u.format, u.start, u.end) for u in batch.units]
    source = (batch.file.sha256, batch.file.date, ranges, batch.limit)
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
    extractor = _document_extractor(options, batch.file)
    counts: collections.Counter[str] = collections.Counter()
    rows: list[tuple[int, int, int, int]] = []
    rejected: list[dict[str, Any]] = []
    offset = 0
    with files.new_file(_text_path(output, key), checksum=False) as file:
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
                identity, text = document
                sentences = 0 if options.doc_blocks else text.count(b"\n") - 1
                rows.append((eval_hash(options.seed, identity), offset, len(text), sentences))
                offset += len(text)
                pending.write(text)
                if pending.tell() >= _WRITE_BYTES:
                    file.write(pending.getbuffer())
                    pending = io.BytesIO()
                if batch.limit is not None and len(rows) >= batch.limit:
                    break
        file.write(pending.getbuffer())
    table = io.BytesIO()
    np.save(table, np.array(rows, TABLE))
    files.write_bytes(completions.work_path(output, KIND, f"{key}.npy"), table.getvalue())
    counts["documents"] = len(rows)
    return {"documents": len(rows), "size": offset, "counts": dict(counts), "rejected": rejected}


def _read(batch: UnitBatch, reading: dump.ReadOptions) -> Iterator[dump.Page | dump.Document | dump.RejectedPage]:
    for unit in batch.units:
        yield from dump.read_unit(unit, reading)


def _extract_or_reject(
    extractor: DocumentExtractor, item: dump.Page | dump.Document | dump.RejectedPage
) -> tuple[str, bytes] | str | RejectedDocument:
    if isinstance(item, dump.RejectedPage):
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


def read_table(output: str, fragment: Fragment) -> npt.NDArray[Any]:
    """The rows of TABLE of a fragment's documents, [documents]."""
    table: npt.NDArray[Any] = np.load(
        io.BytesIO(files.read_bytes(completions.work_path(output, KIND, f"{fragment.key}.npy")))
    )
    return table


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


def merge_ranges(table: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Byte ranges [k, 2] that hold the documents of these rows, neighbours joined."""
    starts = table["offset"].astype(np.int64)
    ends = starts + table["size"].astype(np.int64)
    first = np.ones(len(table), bool)
    first[1:] = starts[1:] != ends[:-1]
    last = np.roll(first, -1)
    return np.stack([starts[first], ends[last]], axis=1)


def drop_texts(output: str, fragments: Sequence[Fragment]) -> None:
    """Deletes the fragments' texts once their shards are written; their tables stay for the next run."""
    files.delete([p for f in fragments if files.exists(p := _text_path(output, f.key))])


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
