"""Articles and documents one at a time: read, filtered and split into sentences by the functions of `extract`."""

import itertools
from collections.abc import Callable, Iterator, Sequence

from maskmill.extraction import holes
from maskmill.inputs.articles import Article, Document, Rejected, check_fields, marked, unmarked
from maskmill.inputs.batches import plan_batches
from maskmill.inputs.found_inputs import find_inputs
from maskmill.inputs.items import CutOff, RejectedPage
from maskmill.inputs.units import InputFile, UnitBatch, read_unit
from maskmill.sentences.choice import AUTO, SentenceChoice, choice_of_document, choice_of_input, named_choice
from maskmill.sentences.punkt import SentenceSplitter
from maskmill.storage import files
from maskmill.text_shards.document_extractor import DocumentExtractor, Origin, or_rejected, origin_of
from maskmill.text_shards.options import ExtractionOptions
from maskmill.text_shards.quality import QualityFilter

# ---- files become articles


def found_files(patterns: Sequence[str], input_format: str) -> Sequence[files.FileInfo]:
    """Return the inputs that patterns name; raises UnusableInputError if there are none."""
    return find_inputs(files.match(patterns), input_format).files


def batches_of(inputs: list[InputFile], input_format: str, options: ExtractionOptions) -> list[UnitBatch]:
    """Cut inputs into batches of byte ranges, so that several workers read one file."""
    return plan_batches(inputs, input_format=input_format, reading=options.reading, limit=None)


def read_articles(
    batch: UnitBatch, options: ExtractionOptions, extractor_of: Callable[[Origin], DocumentExtractor]
) -> Iterator[Article | Rejected | str]:
    """Yield what becomes of each page of a batch: a page that is left out gives the name under which it is counted.

    Raises:
      UnusableInputError, RunFailedError: a file cannot be read on, or has changed.
    """
    with batch.unchanged():
        for file, units in batch.parts:
            extractor = extractor_of(origin_of(file))
            for item in itertools.chain.from_iterable(read_unit(u, options.reading, file.header) for u in units):
                if isinstance(item, CutOff):
                    if item.title is not None:
                        yield Rejected(file.path, item.title, "the file is cut off in it")
                    continue
                made = or_rejected(extractor.read, item)
                if isinstance(made, RejectedPage):
                    yield Rejected(file.path, made.title, made.reason)
                elif isinstance(made, str):
                    yield made
                elif not made.text.strip():
                    yield "empty"
                else:
                    title, metadata = made.title.decode(errors="replace"), {**made.metadata, "input": file.path}
                    yield Article(extractor.wiki, made.identity, title, marked(made.text, made.holes), metadata)


# ---- articles stay or go, and become documents


def reason_to_drop(article: Article, filter_of: Callable[[str], QualityFilter]) -> str | None:
    """Return the name of the filter that drops an article; None if it stays. filter_of: takes a language's code."""
    text, _ = unmarked(article.text)
    if not text.strip():
        return None
    return filter_of(str(article.metadata.get("language") or "en")).reject(article.title.encode(errors="replace"), text)


def choice_of(article: Article, language: str) -> SentenceChoice:
    """Return how the sentences of an article are split.

    language: as --language takes it. With "auto" the article's own language decides, if that is known, else the words
    of its text, else their script. Punkt is never trained: a language without parameters is split by its rules alone.

    Raises:
      UnusableInputError: nobody knows the language, or its parameters cannot be read.
    """
    if language == AUTO:
        known = choice_of_document(str(article.metadata.get("language") or ""))
        choice = known or choice_of_input("", [unmarked(article.text)[0]])
    else:
        choice = named_choice(language)
    return choice.after_training(None, 0) if choice.needs_training else choice


def split_article(article: Article, splitter: SentenceSplitter) -> Document:
    """Split the text of an article; sentences with a hole in them are dropped.

    Raises:
      UnusableInputError: the article has a field that must be text and is not.
    """
    check_fields(article)
    text, places = unmarked(article.text)
    whole, _ = holes.drop_broken(text, places, splitter.split_lines(text))
    sentences = [line for line in whole.decode().split("\n") if line]
    return Document(article.wiki, article.page_id, article.title, sentences, article.metadata)
