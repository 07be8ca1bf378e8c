"""Pages and documents of the input → documents of sentences, or the reason why one is left out.

What a reader yields goes in one at a time: wikitext becomes text, the quality filters look at the text, and its
sentences are split. Nothing here knows of files or of Beam, except for the library of a dump's templates.
"""

import dataclasses
import functools
import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from transforms.errors import UnusableInputError
from transforms.extraction.template_library import TemplateLibrary
from transforms.extraction.wikiextractor import WikiExtractorCompat, format_document
from transforms.extraction.wikitext import WikitextExtractor
from transforms.inputs.documents import Document, RejectedPage
from transforms.inputs.mediawiki import Page, read_header, site_base
from transforms.inputs.site import Site
from transforms.inputs.units import InputFile
from transforms.sentences.punkt import SentenceSplitter
from transforms.shards.options import ExtractionOptions
from transforms.shards.quality import QualityFilter
from transforms.shards.signatures import ParagraphSigner, paragraphs_type

# What clock words in a page give where the input has no date: the day on which Wikipedia began.
_DATE_OF_NO_DUMP = "2001-01-15"

# Extractors and splitters that a process keeps: building one takes 0.1 s. Inputs of one wiki share theirs, and batches
# come by file, so a few are enough.
_KEPT_IN_PROCESS = 4


@dataclasses.dataclass(frozen=True)
class ExtractedDocument:
    """A document that stays.

    identity: what eval membership hashes: the page's id, or the text's checksum where the input has no ids.
    text: its sentences, UTF-8, one a line, and a blank line; or a `<doc>` block where MLPerf's clean-up follows.
    paragraphs: rows of `signatures.paragraphs_type`, their offsets within `text`, where duplicates are looked for.
    """

    identity: str
    text: bytes
    paragraphs: npt.NDArray[Any] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RejectedDocument:
    """A document that cannot be processed, with the reason."""

    title: str
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Origin:
    """What the text of an input's pages depends on, besides the pages: the dump's date and its header.

    Both are empty for an input that is no dump.
    """

    date: str
    header: bytes


def origin_of(file: InputFile) -> Origin:
    """The origin of an input file; reads its header."""
    return Origin(date=file.date, header=read_header(file.path) if file.date else b"")


class DocumentExtractor:
    """Turns the pages and documents of inputs of one origin into documents of sentences.

    Args:
      options: which documents stay, and what decides their text.
      origin: the dump's date and header.
      library: the templates of the dump, where they are expanded.
    """

    def __init__(self, options: ExtractionOptions, origin: Origin, library: TemplateLibrary | None = None) -> None:
        self._options = options
        self._splitter = _splitter(options.language)
        self._site = Site.parse(origin.header)
        self._base = site_base(origin.header)
        self._wikitext = WikitextExtractor(
            self._site,
            dataclasses.replace(
                options.wikitext, date=origin.date or _DATE_OF_NO_DUMP, expand_templates=library is not None
            ),
            functools.partial(library.find, self._base) if library is not None else None,
        )
        is_compatible = options.extractor == "wikiextractor" and origin.date
        self._wikiextractor = WikiExtractorCompat(origin.date) if is_compatible else None
        quality = options.quality
        self._filter = QualityFilter(quality, self._site.language) if quality.filters_documents else None
        self._signer = ParagraphSigner(quality) if quality.finds_duplicates else None

    @property
    def partly_expanded_pages(self) -> int:
        """How many pages so far have templates that were not expanded, because of a limit."""
        return self._wikitext.limited_pages

    def extract(self, item: Page | Document) -> ExtractedDocument | str:
        """Returns the document of a page, or the name under which it is counted where it is left out.

        Raises:
          UnusableInputError: MLPerf's clean-up was asked for, and the item is not the page of a dump.
        """
        if isinstance(item, Page):
            return self._extract_page(item)
        if self._options.doc_blocks:
            raise UnusableInputError("MLPerf's clean-up takes a dump or WikiExtractor's files, not other documents.")
        return self._finish(item.document_id or hashlib.sha256(item.text).hexdigest(), item.title, item.text)

    def _extract_page(self, page: Page) -> ExtractedDocument | str:
        options = self._options
        if page.namespace not in options.namespaces:
            return "other_namespaces"
        if not options.keep_redirects and self._is_redirect(page):
            return "redirects"
        if self._wikiextractor is not None:
            text = self._wikiextractor.extract(page.title, page.text)
            if options.doc_blocks:
                block = format_document(page.page_id, self._base, page.title, text)
                return ExtractedDocument(str(page.page_id), block)
        else:
            if page.model != b"wikitext":
                return "other_content_models"
            if not options.keep_disambiguation and self._wikitext.is_disambiguation(page.title, page.text):
                return "disambiguation_pages"
            text = self._wikitext.extract(page.title, page.text)
        return self._finish(str(page.page_id), page.title, text, page.text)

    def _is_redirect(self, page: Page) -> bool:
        if page.is_redirect:
            return True
        # Dumps with a schema before 0.4 have no <redirect/>. WikiExtractor looks for nothing else, so MLPerf's chain
        # keeps their redirects.
        return not self._options.doc_blocks and self._wikitext.is_redirect(page.text)

    def _finish(self, identity: str, title: bytes, text: bytes, wikitext: bytes = b"") -> ExtractedDocument | str:
        """Filters a text whose lines are its paragraphs, and splits its sentences."""
        if self._filter is not None and text.strip():
            reason = self._filter.reject(title, text, wikitext)
            if reason is not None:
                return reason
        title_line = title + b"\n" if self._options.keep_titles and title else b""
        paragraphs = None
        if self._signer is None:
            body = self._splitter.split_lines(text)
        else:
            body, paragraphs = self._split_and_sign(self._signer, text, len(title_line))
        if not body.strip():
            return "empty"
        if not body.endswith(b"\n"):
            body += b"\n"
        return ExtractedDocument(identity, title_line + body + b"\n", paragraphs)

    def _split_and_sign(self, signer: ParagraphSigner, text: bytes, offset: int) -> tuple[bytes, npt.NDArray[Any]]:
        """The sentences of a text, and the rows of those paragraphs that have words enough.

        The first paragraph begins at `offset` of the document.
        """
        paragraphs = text.split(b"\n")
        rows = np.zeros(len(paragraphs), paragraphs_type(self._options.quality))
        bodies = []
        count = 0
        for paragraph in paragraphs:
            sentences = self._splitter.split_lines(paragraph + b"\n")
            if signer.sign(rows[count : count + 1], paragraph):
                rows[count]["offset"], rows[count]["size"] = offset, len(sentences)
                rows[count]["sentences"] = sentences.count(b"\n")
                count += 1
            bodies.append(sentences)
            offset += len(sentences)
        body = b"".join(bodies)
        rows = rows[:count]
        rows["body"] = body.count(b"\n")
        return body, rows


def extract_or_reject(
    extractor: DocumentExtractor, item: Page | Document | RejectedPage
) -> ExtractedDocument | str | RejectedDocument:
    """Extracts what a reader yields; one bad page never ends a run, but is rejected with the reason.

    Raises:
      UnusableInputError, MemoryError: the run cannot go on.
    """
    if isinstance(item, RejectedPage):
        return RejectedDocument(title=item.title, reason=item.reason)
    try:
        return extractor.extract(item)
    except (UnusableInputError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - it is counted and written to rejected.jsonl
        title = item.title.decode(errors="replace")
        return RejectedDocument(title=title, reason=f"extraction failed: {type(error).__name__}: {error}")


@functools.lru_cache(maxsize=_KEPT_IN_PROCESS)
def _splitter(language: str) -> SentenceSplitter:
    return SentenceSplitter(language)


@functools.lru_cache(maxsize=_KEPT_IN_PROCESS)
def document_extractor(options: ExtractionOptions, origin: Origin, templates: str, output: str) -> DocumentExtractor:
    """The extractor of inputs of an origin; the process keeps those that it used last.

    Args:
      options, origin: as for DocumentExtractor.
      templates: the key of the library of templates, empty where they are not expanded.
      output: the directory of the build that has this library, empty where there is none.
    """
    return DocumentExtractor(options, origin, TemplateLibrary(output, templates) if templates else None)
