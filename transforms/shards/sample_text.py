"""The text of a sample of inputs, made as a build makes it, and what it says about the text of all inputs."""

import dataclasses
import os
import re
import tempfile
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from maskmill.mirrors.dump_names import date_in_name
from maskmill.storage import files
from transforms.inputs.items import CutOff, Document, RejectedPage
from transforms.inputs.mediawiki import Page
from transforms.inputs.sampling import Part, Sample
from transforms.inputs.site import Site
from transforms.inputs.units import Unit, read_unit
from transforms.sentences.choice import AUTO, SentenceChoice, choice_of_input, named_choice
from transforms.shards.document_extractor import (
    DocumentExtractor,
    ExtractedDocument,
    Origin,
    PlainDocument,
    or_rejected,
)
from transforms.shards.options import ExtractionOptions

_GROUPS = 10  # of neighbouring pages, whose differences tell the standard error
# Pages that stand together are alike, so blocks of 900 kB differ by more than groups of pages say: by this factor, the
# mean of the dumps of docs/estimate.md.
_ALIKE = 1.4
# What other dumps say of the share of articles' titles that are not redirects: their mean, and the number of titles at
# which a dump's own share counts for as much. From the seven dumps of docs/estimate.md and enwik8, whose shares have a
# standard deviation of 0.10, and those of 50 neighbouring titles of a dump one of 0.03 to 0.15.
_NO_REDIRECTS, _PRIOR_TITLES = 0.87, 50
_PAGE_XML = 400  # bytes of XML around the text of a page
_TIMESTAMP = re.compile(rb"<timestamp>(\d{4}-\d\d-\d\d)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleText:
    """The text of a sample, and what follows for all of its inputs.

    documents: the sentences of each document, as a text shard holds them. scale: how many times as much text all inputs
    have. document_scale: how many times as many documents. error, document_error: the standard errors of the text and
    of the documents of all inputs, as a share of them. seconds: of CPU that the extraction of the sample takes.
    is_untrained: whether a build would train Punkt, which a sample is too small for.
    """

    documents: tuple[bytes, ...]
    scale: float
    document_scale: float
    error: float
    document_error: float
    seconds: float
    is_untrained: bool


def extract_sample(sample: Sample, options: ExtractionOptions, dump_date: str | None) -> SampleText:
    """Extracts the documents of a sample with the options of a build; templates are not expanded.

    Raises:
      UnusableInputError: a record cannot be used with these options.
    """
    options = dataclasses.replace(
        options,
        doc_blocks=False,
        reading=dataclasses.replace(options.reading, keep_truncated=True),
        wikitext=dataclasses.replace(options.wikitext, expand_templates=False),
    )
    header = sample.kind.header
    stamps = [max(_TIMESTAMP.findall(part.content), default=b"") for part in sample.parts]
    date = dump_date or date_in_name(sample.kind.files[0].path) or max(stamps, default=b"").decode()
    items = [list(_records(part, sample, options)) for part in sample.parts]
    choice = _choice(sample, options, items)
    is_untrained = choice.needs_training
    if is_untrained:
        choice = choice.after_training(None, 0)
    origin = Origin(date=date if header else "", header=header, sentences=choice.to_json())
    extractor = DocumentExtractor(options, origin)
    documents: list[bytes] = []
    sizes: list[tuple[int, int]] = []
    redirects = 0
    for of_part in items:
        for item in of_part:
            done = or_rejected(extractor.extract, item)
            text = done.text if isinstance(done, ExtractedDocument) else b""
            sizes.append((_size(item), len(text)))
            redirects += done == "redirects"
            if text:
                documents.append(text)
    started = time.process_time()  # once more, now that what is loaded once has been loaded
    for part in sample.parts:
        for item in _records(part, sample, options):
            or_rejected(extractor.extract, item)
    seconds = time.process_time() - started
    measure = sum(part.text_measure for part in sample.parts)
    left = np.sqrt(1 - min(1.0, measure / max(1e-9, sample.text_total)))
    of_records = np.array(sizes, np.float64).reshape(-1, 2)
    # Where an index counts the pages, their number is known, and only the share of those that stay is not.
    a_document = np.stack([np.ones(len(sizes)) if sample.counts_pages else of_records[:, 0], of_records[:, 1] > 0], 1)
    return SampleText(
        documents=tuple(documents),
        scale=sample.text_total / max(1e-9, measure),
        document_scale=_document_scale(sample, redirects, is_guessed=not options.keep_redirects),
        error=float(np.hypot(_ALIKE * ratio_error(of_records) * left, sample.error / max(1e-9, sample.text_total))),
        document_error=float(_ALIKE * ratio_error(a_document) * left),
        seconds=seconds,
        is_untrained=is_untrained,
    )


def _document_scale(sample: Sample, redirects: int, *, is_guessed: bool) -> float:
    """How many times as many documents all inputs have as the sample.

    An index counts titles. Redirects stand in clusters, so one or two streams say little about how many there are in
    all; what other dumps have is weighed in (`_NO_REDIRECTS`), unless redirects become documents, too.
    """
    read = sum(part.document_measure for part in sample.parts)
    if not (sample.counts_pages and is_guessed and read > redirects):
        return sample.document_total / max(1e-9, read)
    pages = read - redirects
    share = (pages + _PRIOR_TITLES * _NO_REDIRECTS) / (read + _PRIOR_TITLES)
    return 1 + (sample.document_total - read) * share / pages


def _records(part: Part, sample: Sample, options: ExtractionOptions) -> Iterator[Page | Document | RejectedPage]:
    """The pages or documents of a part, by the reader of their format."""
    with tempfile.TemporaryDirectory() as folder:
        if part.unit is not None:
            path, start, end = part.unit
        else:
            closing = b"</mediawiki>\n" if sample.kind.format == "mediawiki" else b""
            path, start = os.path.join(folder, "part.xml"), 0
            files.write_bytes(path, sample.kind.header + part.content + closing)
            end = files.size(path)
        unit = Unit(path=path, start=start, end=end, format=sample.kind.format, container="plain")
        for item in read_unit(unit, options.reading):
            if not isinstance(item, CutOff):
                yield item


def _choice(
    sample: Sample, options: ExtractionOptions, items: list[list[Page | Document | RejectedPage]]
) -> SentenceChoice:
    """How the sentences are split, decided as `sentence_choice.choose_sentences` does."""
    if options.language != AUTO:
        return named_choice(options.language)
    extractor = DocumentExtractor(options, Origin(date="", header=sample.kind.header))
    found = (or_rejected(extractor.read, item) for of_part in items for item in of_part)
    texts = (document.text for document in found if isinstance(document, PlainDocument))
    language = Site.parse(sample.kind.header).language if sample.kind.format == "mediawiki" else ""
    return choice_of_input(language, texts)


def _size(item: Page | Document | RejectedPage) -> int:
    if isinstance(item, RejectedPage):
        return _PAGE_XML
    return len(item.text) + (_PAGE_XML if isinstance(item, Page) else 0)


def ratio_error(sizes: npt.NDArray[np.float64]) -> float:
    """The standard error of the text a byte of input, as a share of it, from groups of neighbouring records.

    Args:
      sizes: of each record its bytes in the input and the bytes of its text, [records, 2].
    """
    total, text = sizes.sum(0) if len(sizes) else (0.0, 0.0)
    if not text or len(sizes) < 2:
        return 1.0
    groups = min(_GROUPS, len(sizes))
    place = np.minimum((np.cumsum(sizes[:, 0]) - sizes[:, 0] / 2) / total * groups, groups - 1).astype(int)
    of_groups = np.stack([np.bincount(place, column, groups) for column in sizes.T], 1)
    differences = of_groups[:, 1] - text / total * of_groups[:, 0]
    return float(np.sqrt((differences**2).sum() * groups / (groups - 1)) / text)
