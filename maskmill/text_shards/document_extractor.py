"""Pages and documents of the input → documents of sentences, or the reason why one is left out.

What a reader yields goes in one at a time: wikitext becomes text, the quality filters look at the text, and its
sentences are split. Nothing here knows of files or of Beam, except for the library of a dump's templates and the
parameters of Punkt that were trained.
"""

import contextlib
import dataclasses
import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from maskmill.compat.wikiextractor import WikiExtractorCompat, format_document
from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.extraction import holes
from maskmill.extraction.template_definitions import TEMPLATE_NAMESPACE
from maskmill.extraction.template_library import TemplateLibrary
from maskmill.extraction.wikitext import WikitextExtractor
from maskmill.inputs.articles import Article, marked, unmarked, wiki_of
from maskmill.inputs.items import Document, RejectedPage
from maskmill.inputs.mediawiki import Page, site_base
from maskmill.inputs.plain_text import CARRIAGE_RETURNS
from maskmill.inputs.site import Site
from maskmill.inputs.units import InputFile
from maskmill.sentences.choice import AUTO, SentenceChoice, choice_of_document
from maskmill.sentences.detection import detect_language, is_plainly_in
from maskmill.sentences.punkt import SentenceSplitter
from maskmill.text_shards import own_steps
from maskmill.text_shards.options import ExtractionOptions
from maskmill.text_shards.quality import QualityFilter
from maskmill.text_shards.signatures import ParagraphSigner, paragraphs_type
from maskmill.text_shards.time_limits import PageTimeError, time_limit

T = TypeVar("T")

# What is counted of sentences that are dropped because of a hole.
HOLE_COUNTS = ("hole_documents", "hole_sentences", "hole_words")

# What clock words in a page give where the input has no date: the day on which Wikipedia began.
_DATE_OF_NO_DUMP = "2001-01-15"

# Extractors and splitters that a process keeps: building one takes 0.1 s. Inputs of one wiki share theirs, and batches
# come by file, so a few are enough.
_KEPT_IN_PROCESS = 4
_KEPT_LANGUAGES = 128
_TELLING_BYTES = 512  # of a document, which show its language


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlainDocument:
    """A document whose wikitext has become text, not filtered nor split yet.

    identity: as in ExtractedDocument. title, text: UTF-8; a line of the text is a paragraph. wikitext: of its page.
    language: as in Document. metadata: as in Article.
    holes: offsets of the text where something is missing.
    """

    identity: str
    title: bytes
    text: bytes
    wikitext: bytes = b""
    language: str | None = None
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    holes: Sequence[int] = ()


@dataclasses.dataclass(frozen=True)
class ExtractedDocument:
    """A document that stays.

    identity: what eval membership hashes: the page's id, or the text's checksum where the input has no ids.
    text: its sentences, UTF-8, one a line, and a blank line; or a `<doc>` block where MLPerf's clean-up follows.
    paragraphs: rows of `signatures.paragraphs_type`, their offsets within `text`, where duplicates are looked for.
    language: of a record, by which its sentences were split; empty where that of its file was taken. None: no record.
    broken: the sentences that were dropped because of a hole. kept: its row of the shard's table; empty without one.
    """

    identity: str
    text: bytes
    paragraphs: npt.NDArray[Any] | None = None
    language: str | None = None
    broken: Sequence[bytes] = ()
    kept: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Origin:
    """The facts that the sentences of an input's pages depend on, besides the pages.

    date, header: of the dump; both are empty for other inputs. sentences: the JSON of the SentenceChoice; empty:
    Punkt's English parameters.
    """

    date: str
    header: bytes
    sentences: str = ""


def origin_of(file: InputFile) -> Origin:
    """Return the origin of an input file."""
    return Origin(date=file.date, header=file.header if file.date else b"", sentences=file.sentences)


class DocumentExtractor:
    """Turns the pages and documents of inputs of one origin into documents of sentences.

    `wikitext` is what makes text of wikitext, and counts templates.

    library: the templates of the dump, if they are expanded. output: the directory of the build, which has the Punkt
    parameters that were trained for it.
    """

    def __init__(
        self, options: ExtractionOptions, origin: Origin, library: TemplateLibrary | None = None, output: str = ""
    ) -> None:
        self.options = options
        self._definitions = 0
        self._holes: Counter[str] = Counter()
        self._sentences = (origin.sentences, output)
        self._origin = origin
        self._site = Site.parse(origin.header)
        self._base = site_base(origin.header)
        self.wikitext = WikitextExtractor(
            self._site,
            dataclasses.replace(
                options.wikitext,
                date=origin.date or _DATE_OF_NO_DUMP,
                expand_templates=options.wikitext.expand_templates if library is not None else False,
            ),
            functools.partial(library.find, self._base) if library is not None else None,
        )
        is_compatible = options.extractor == "wikiextractor" and origin.date
        self._wikiextractor = WikiExtractorCompat(origin.date) if is_compatible else None
        quality = options.quality
        self._filter = QualityFilter(quality, _language(origin, self._site)) if quality.filters_documents else None
        self._signer = ParagraphSigner(quality) if quality.finds_duplicates else None

    @functools.cached_property
    def wiki(self) -> str:
        """The name of the dump's wiki; empty for other inputs."""
        return wiki_of(self._origin.header)

    @functools.cached_property
    def _shared(self) -> dict[str, str]:
        return {"language": self._site.language, "date": self._origin.date}

    @functools.cached_property
    def _splitter(self) -> SentenceSplitter:
        return _splitter(*self._sentences)

    def take_counts(self) -> dict[str, int]:
        """Return what became of templates since this was asked last, and how many pages defined some (`definitions`).

        Also the documents, sentences and words that were dropped because of a hole (HOLE_COUNTS).
        """
        counts = self.wikitext.take_template_counts() | self._holes
        if self._definitions:
            counts["definitions"] = self._definitions
        self._definitions = 0
        self._holes = Counter()
        return counts

    def extract(self, item: Page | Document) -> ExtractedDocument | str:
        """Return the document of a page, or the name under which it is counted where it is left out.

        Raises:
          UnusableInputError: MLPerf's clean-up was asked for, and the item is not the page of a dump.
        """
        document = self.read(item)
        if isinstance(document, str):
            return document
        if self.options.doc_blocks:
            block = format_document(int(document.identity), self._base, document.title, document.text)
            return ExtractedDocument(document.identity, block)
        return self._finish(document)

    def extract_all(self, item: Page | Document) -> list[ExtractedDocument | str]:
        """Return what becomes of a page: as `extract`, after the user's own steps, which may make several of one.

        Raises:
          UnusableInputError: as `extract`.
          OwnStepError: a step failed.
          PageTimeError: steps, or the expansion of templates, took longer than `page_seconds`.
        """
        if not self.options.steps:
            return [self.extract(item)]
        document = self.read(item)
        if isinstance(document, str):
            return [document]
        title, text = document.title.decode(errors="replace"), marked(document.text, document.holes)
        article = Article(self.wiki, document.identity, title, text, document.metadata)
        for name in self.options.steps:
            own_steps.load(name)  # its setup may take its time
        with time_limit(self.options.page_seconds):
            given = list(own_steps.apply(self.options.steps, article))
        return [one if isinstance(one, str) else self._finish(_as_document(one, article, document)) for one in given]

    def read(self, item: Page | Document) -> PlainDocument | str:
        """Return the text of a page as `extract` filters and splits it, or the name under which it is counted.

        Raises:
          UnusableInputError: as `extract`.
        """
        if isinstance(item, Page):
            return self._read_page(item)
        if self.options.doc_blocks:
            raise UnusableInputError("MLPerf's clean-up takes a dump or WikiExtractor's files, not other documents.")
        identity = item.document_id or hashlib.sha256(item.text).hexdigest()
        metadata = {**item.metadata, "language": item.language} if item.language else item.metadata
        return PlainDocument(
            identity=identity, title=item.title, text=item.text, language=item.language, metadata=metadata
        )

    def _read_page(self, page: Page) -> PlainDocument | str:
        options = self.options
        if self._wikiextractor is None and b"\r" in page.text:  # from `&#13;`; all others are line ends in XML
            page = dataclasses.replace(page, text=CARRIAGE_RETURNS.sub(b"\n", page.text))
        self._definitions += page.namespace == TEMPLATE_NAMESPACE
        if page.namespace not in options.namespaces:
            return "other_namespaces"
        if not options.keep_redirects and self._is_redirect(page):
            return "redirects"
        if self._wikiextractor is None and page.model != b"wikitext":
            return "other_content_models"
        places: Sequence[int] = ()
        if self._wikiextractor is not None:
            text = self._wikiextractor.extract(page.title, page.text)
        elif not options.keep_disambiguation and self.wikitext.is_disambiguation(page.title, page.text):
            return "disambiguation_pages"
        else:
            expands = self.options.wikitext.expand_templates
            with time_limit(self.options.page_seconds) if expands else contextlib.nullcontext():
                text, places = self.wikitext.extract_with_holes(page.title, page.text)
        identity = str(page.page_id)
        known = self._shared | {"url": f"{self._base}?curid={identity}"}
        return PlainDocument(
            identity=identity, title=page.title, text=text, wikitext=page.text, metadata=known, holes=places
        )

    def _is_redirect(self, page: Page) -> bool:
        if page.is_redirect:
            return True
        # Dumps with a schema before 0.4 have no <redirect/>. WikiExtractor looks for nothing else, so MLPerf's chain
        # keeps their redirects.
        return not self.options.doc_blocks and self.wikitext.is_redirect(page.text)

    def _finish(self, document: PlainDocument) -> ExtractedDocument | str:
        """Filter a document, and split its sentences."""
        title, text = document.title, document.text
        if self._filter is not None and text.strip():
            reason = self._filter.reject(title, text, document.wikitext)
            if reason is not None:
                return reason
        title_line = title + b"\n" if self.options.keep_titles and title else b""
        paragraphs = None
        language, splitter = self._language_of(document)
        broken: list[bytes] = []
        if self._signer is None:
            body = self._split(splitter, text, document.holes, broken)
        else:
            body, paragraphs = self._split_and_sign(self._signer, splitter, document, len(title_line), broken)
        if broken:
            words = sum(len(sentence.split()) for sentence in broken)
            self._holes.update(dict(zip(HOLE_COUNTS, (1, len(broken), words), strict=True)))
        if not body.strip():
            return "empty"
        if not body.endswith(b"\n"):
            body += b"\n"
        kept = {}
        if columns := self.options.reading.metadata_columns:
            kept = {"id": document.identity, "title": title.decode(errors="replace")}
            kept |= {name: document.metadata.get(name, kept.get(name)) for name in columns}
        return ExtractedDocument(document.identity, title_line + body + b"\n", paragraphs, language, broken, kept)

    def _language_of(self, document: PlainDocument) -> tuple[str | None, SentenceSplitter]:
        """Return the language of a document of its own, and what splits its sentences; both are the file's where it has
        none.

        Its record names it, or its words say it if --language does not.
        """
        if document.language is None:
            return None, self._splitter
        is_asked = self.options.language == AUTO
        of_file = self._splitter.language.language
        if is_asked and not document.language and is_plainly_in(of_file, document.text, _TELLING_BYTES):
            return of_file, self._splitter
        found = _splitter_of_language(document.language)
        if found is None and is_asked:
            detection = detect_language(document.text[:_TELLING_BYTES].decode("utf-8", "ignore").encode())
            found = _splitter_of_language(detection.language) if detection.is_sure else None
        if found is None:
            return "", self._splitter
        language = found.language.language
        return language, self._splitter if language == self._splitter.language.language else found

    @staticmethod
    def _split(splitter: SentenceSplitter, text: bytes, places: Sequence[int], broken: list[bytes]) -> bytes:
        """Return the sentences of a text, one a line; those with one of the holes at these places go to `broken`."""
        body, dropped = holes.drop_broken(text, places, splitter.split_lines(text))
        broken += dropped
        return body

    def _split_and_sign(
        self,
        signer: ParagraphSigner,
        splitter: SentenceSplitter,
        document: PlainDocument,
        offset: int,
        broken: list[bytes],
    ) -> tuple[bytes, npt.NDArray[Any]]:
        """Return the sentences of a document, and the rows of those paragraphs that have words enough.

        The first paragraph begins at `offset` of the document. broken: as in `_split`.
        """
        paragraphs = document.text.split(b"\n")
        rows = np.zeros(len(paragraphs), paragraphs_type(self.options.quality))
        bodies = []
        count = start = 0
        for paragraph in paragraphs:
            places = [hole - start for hole in document.holes if start <= hole <= start + len(paragraph)]
            sentences = self._split(splitter, paragraph + b"\n", places, broken)
            start += len(paragraph) + 1
            if sentences and signer.sign(rows[count : count + 1], paragraph):
                rows[count]["offset"], rows[count]["size"] = offset, len(sentences)
                rows[count]["sentences"] = sentences.count(b"\n")
                count += 1
            bodies.append(sentences)
            offset += len(sentences)
        body = b"".join(bodies)
        rows = rows[:count]
        rows["body"] = body.count(b"\n")
        return body, rows


def _as_document(article: Article, before: Article, document: PlainDocument) -> PlainDocument:
    """Return the document of an article that steps have made of another."""
    text, places = unmarked(article.text)
    said = article.metadata.get("language")
    is_new = said != before.metadata.get("language")
    return dataclasses.replace(
        document,
        identity=article.page_id,
        title=article.title.encode(errors="replace"),
        text=text,
        holes=places,
        language=said if is_new else document.language,
        metadata=article.metadata,
    )


def or_rejected(take: Callable[[Page | Document], T], item: Page | Document | RejectedPage) -> T | RejectedPage:
    """Give what a reader yields to `take`; one bad page never ends a run, but is rejected with the reason.

    take: DocumentExtractor.extract or DocumentExtractor.read.

    Raises:
      UnusableInputError, RunFailedError, MemoryError: the run cannot go on.
    """
    if isinstance(item, RejectedPage):
        return item
    try:
        return take(item)
    except (UnusableInputError, RunFailedError, MemoryError):
        raise
    except (OSError, ImportError) as error:
        # No document is the reason: too few files may be open, or a disk failed. The next run may take it.
        raise RunFailedError(
            f"The machine failed while a document was extracted ({error}); mend that, and run the same command again."
        ) from error
    except PageTimeError:
        reason = "its steps, or the expansion of its templates, took longer than --page_seconds"
        return RejectedPage(title=item.title.decode(errors="replace"), reason=reason)
    except Exception as error:  # noqa: BLE001 - it is counted and written to rejected.jsonl
        title = item.title.decode(errors="replace")
        if isinstance(error, own_steps.OwnStepError):
            return RejectedPage(title=title, reason=str(error))
        return RejectedPage(title=title, reason=f"extraction failed: {type(error).__name__}: {error}")


def _language(origin: Origin, site: Site) -> str:
    """Return the code of the language whose words the quality filters know: the dump's, or the one that was named."""
    if origin.header or not origin.sentences:
        return site.language
    return SentenceChoice.from_json(origin.sentences).rules.language or site.language


@functools.lru_cache(maxsize=_KEPT_LANGUAGES)
def _splitter_of_language(language: str) -> SentenceSplitter | None:
    """Return what splits a document in a language; None if that is not known."""
    choice = choice_of_document(language)
    return choice.splitter() if choice is not None else None


@functools.lru_cache(maxsize=_KEPT_IN_PROCESS)
def _splitter(sentences: str, output: str) -> SentenceSplitter:
    return SentenceChoice.from_json(sentences).splitter(output)


@functools.lru_cache(maxsize=_KEPT_IN_PROCESS)
def document_extractor(options: ExtractionOptions, origin: Origin, templates: str, output: str) -> DocumentExtractor:
    """Return the extractor of inputs of an origin; the process keeps those that it used last.

    templates: the key of the library of templates in the build's `output`; empty if they are not expanded.
    """
    library = TemplateLibrary(output, templates) if templates else None
    return DocumentExtractor(options, origin, library, output)
