"""The steps from files to articles, documents and examples. Each counts what it does in Beam's metrics."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PBegin, TaggedOutput

from maskmill.errors import UnusableInputError
from maskmill.example_shards.example_shards import ExampleShard, ExamplesSetup
from maskmill.inputs.articles import Article, Document, Rejected
from maskmill.inputs.units import UnitBatch
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.records.options import FormatOptions
from maskmill.sentences.choice import AUTO, SentenceChoice, named_choice
from maskmill.storage import files
from maskmill.text.shards import TextShard
from maskmill.text_shards.document_extractor import DocumentExtractor
from maskmill.text_shards.eval_membership import is_held_out
from maskmill.text_shards.options import DEFAULT_EVAL_FRACTION, ExtractionOptions, QualityOptions, SplitOptions
from maskmill.text_shards.quality import QualityFilter
from transforms.elements import articles, groups
from transforms.elements.groups import Placed
from transforms.examples import MaskShards
from transforms.inputs import FindInputs
from transforms.metrics import count
from transforms.to_list import ToList

REJECTED, EVAL = "rejected", "eval"
_KEPT = 32  # splitters and filters that a step keeps: it takes 0.1 s to make one, and each serves one thread

for _element in (Article, Document, Rejected):
    beam.coders.registry.register_coder(_element, beam.coders.RowCoder)


class _ReadArticles(beam.DoFn):
    """Read a batch of units. Counts: pages_read, articles, rejected, and each reason for which a page is left out."""

    def __init__(self, options: ExtractionOptions) -> None:
        self._options = options

    def setup(self) -> None:
        self._extractor_of = functools.lru_cache(4)(functools.partial(DocumentExtractor, self._options))

    def process(self, batch: UnitBatch) -> Iterator[Any]:
        for made in articles.read_articles(batch, self._options, self._extractor_of):
            count("pages_read")
            if isinstance(made, str):
                count(made)
            elif isinstance(made, Rejected):
                count(REJECTED)
                yield TaggedOutput(REJECTED, made)
            else:
                count("articles")
                yield made


@dataclasses.dataclass(eq=False)
class ReadArticles(beam.PTransform):
    """Read articles of dumps, JSON lines, Parquet, text and WikiExtractor's files, as `maskmill extract` reads them.

    Output: `articles`, of Article, and `rejected`, of Rejected: what cannot be used never ends the run.

    patterns: paths, globs, stores' addresses. input_format, dump_date: as extract takes them. options: of these the
    fields reading, wikitext, namespaces, keep_redirects, keep_disambiguation and extractor count.

    Raises:
      UnusableInputError: options need more than a page; in the run: an input is missing, damaged or of a wrong format.
    """

    patterns: str | Sequence[str]
    input_format: str = "auto"
    dump_date: str | None = None
    options: ExtractionOptions = dataclasses.field(default_factory=ExtractionOptions)

    def __post_init__(self) -> None:
        if self.options.wikitext.expand_templates or self.options.doc_blocks or self.options.steps:
            raise UnusableInputError(
                "ReadArticles reads each page alone, and gives it to the next transform; leave out expand_templates, "
                "doc_blocks and steps."
            )
        self.options = dataclasses.replace(
            self.options, reading=dataclasses.replace(self.options.reading, all_columns=True)
        )

    def expand(self, begin: PBegin) -> Any:
        """Cut the files into byte ranges, and read each on any worker."""
        patterns = [self.patterns] if isinstance(self.patterns, str) else list(self.patterns)
        batches: beam.PCollection[UnitBatch] = (
            begin
            | "Patterns" >> beam.Create([patterns]).with_output_types(Sequence[str])
            | "Find" >> beam.Map(articles.found_files, self.input_format)
            | FindInputs(patterns, self.dump_date, self.input_format)
            | "Cut" >> beam.FlatMap(articles.batches_of, self.input_format, self.options)
            | beam.Reshuffle()
        )
        read = beam.ParDo(_ReadArticles(self.options)).with_outputs(REJECTED, main="articles").with_output_types(Any)
        made = batches | "Read" >> read
        # With --runtime_type_check Beam compares every output with the type of the main one.
        made.articles.element_type, made.rejected.element_type = Article, Rejected
        return made


class _FilterQuality(beam.DoFn):
    """Drop articles. Counts each reason."""

    def __init__(self, options: QualityOptions) -> None:
        self._options = options

    def setup(self) -> None:
        self._filter_of = functools.lru_cache(_KEPT)(functools.partial(QualityFilter, self._options))

    def process(self, article: Article) -> Iterator[Article]:
        reason = articles.reason_to_drop(article, self._filter_of)
        if reason is None:
            yield article
        else:
            count(reason)


@dataclasses.dataclass(eq=False)
class FilterQuality(beam.PTransform):
    """Drop articles by extract's filters of quality; each is counted under its reason.

    options: all but drop_stubs and duplicates, for which a text alone is not enough.

    Raises:
      UnusableInputError: one of these is asked for.
    """

    options: QualityOptions

    def __post_init__(self) -> None:
        if self.options.drop_stubs or self.options.finds_duplicates:
            raise UnusableInputError("FilterQuality sees one text; leave out drop_stubs and duplicates.")

    def expand(self, elements: beam.PCollection[Article]) -> beam.PCollection[Article]:
        """Look at each article alone."""
        return elements | "Filter" >> beam.ParDo(_FilterQuality(self.options))


class _SplitSentences(beam.DoFn):
    """Split articles. Counts: documents, sentences, and `empty`, articles that have no sentence."""

    def __init__(self, language: str) -> None:
        self._language = language

    def setup(self) -> None:
        self._splitter_of = functools.lru_cache(_KEPT)(SentenceChoice.splitter)

    def process(self, article: Article) -> Iterator[Document]:
        document = articles.split_article(article, self._splitter_of(articles.choice_of(article, self._language)))
        if document.sentences:
            count("documents")
            count("sentences", len(document.sentences))
            yield document
        else:
            count("empty")


@dataclasses.dataclass(eq=False)
class SplitSentences(beam.PTransform):
    """Split the text of articles into sentences, as `maskmill extract` splits it.

    language: as extract's --language; "auto": `language` in an article's metadata, else the words of its text, else
    their script. Punkt is not trained on the articles.

    Raises:
      UnusableInputError: nobody knows the language.
    """

    language: str = AUTO

    def __post_init__(self) -> None:
        if self.language != AUTO:
            named_choice(self.language)

    def expand(self, elements: beam.PCollection[Article]) -> beam.PCollection[Document]:
        """Split each article alone."""
        return elements | "Split" >> beam.ParDo(_SplitSentences(self.language))


def _place(element: Any, seed: int, eval_fraction: float) -> Any:
    if not is_held_out(seed, element.page_id, eval_fraction):
        return element
    count("held_out")
    return TaggedOutput(EVAL, element)


@dataclasses.dataclass(eq=False)
class PickEval(beam.PTransform):
    """Hold articles or documents out for evaluation: those that `maskmill extract --eval_fraction` holds out.

    Output: `train` and `eval`, of what the input has. Where an element goes depends on its page id, the fraction and
    the seed alone. Counts: held_out.

    Raises:
      UnusableInputError: eval_fraction is not between 0 and 1.
    """

    eval_fraction: float = DEFAULT_EVAL_FRACTION
    random_seed: int = ExtractionOptions.random_seed

    def __post_init__(self) -> None:
        SplitOptions(eval_fraction=self.eval_fraction)

    def expand(self, elements: beam.PCollection) -> Any:
        """Look at each element alone."""
        place = beam.Map(_place, self.random_seed, self.eval_fraction).with_outputs(EVAL, main="train")
        made = elements | "Place" >> place.with_output_types(Any)
        made.train.element_type = made.eval.element_type = elements.element_type
        return made


@dataclasses.dataclass(eq=False)
class _GroupDocuments(beam.PTransform):
    """Put documents into groups by the hash of their wiki and page id."""

    num_shards: int

    def expand(self, documents: beam.PCollection[Document]) -> beam.PCollection[tuple[int, Iterable[Placed]]]:
        """Group all documents."""
        return documents | "GroupOf" >> beam.Map(groups.group_of, self.num_shards) | beam.GroupByKey()


@dataclasses.dataclass(eq=False)
class WriteText(beam.PTransform):
    """Write documents as text shards: a sentence a line, a blank line after each document.

    The bytes depend on the documents and `num_shards` alone. A worker holds one shard in memory; a shard without
    documents is not written.

    Raises:
      UnusableInputError: num_shards is below 1.
    """

    output: str
    num_shards: int

    def __post_init__(self) -> None:
        groups.check_shards(self.num_shards)

    def expand(self, documents: beam.PCollection[Document]) -> beam.PCollection[TextShard]:
        """Write each group on any worker."""
        write = beam.FlatMap(groups.write_text, self.num_shards, self.output)
        return documents | _GroupDocuments(self.num_shards) | "Write" >> write


@dataclasses.dataclass(eq=False)
class WriteExamples(beam.PTransform):
    """Write documents as a data set of masked examples, which `maskmill.open` reads and `maskmill verify` verifies.

    `output` gets the folders text, with the text shards, and examples, with as many shards of records and a manifest.
    The bytes depend on the documents and the options alone; finished shards of an earlier run are kept.

    vocab_file: a vocab.txt or a tokenizer.json, which each worker can read.

    Raises:
      UnusableInputError: the vocabulary is not there, or options do not go together.
    """

    output: str
    vocab_file: str
    num_shards: int
    masking: MaskingOptions = dataclasses.field(default_factory=MaskingOptions)
    objective: ObjectiveOptions = dataclasses.field(default_factory=ObjectiveOptions)
    format: FormatOptions = dataclasses.field(default_factory=FormatOptions)

    def __post_init__(self) -> None:
        groups.check_shards(self.num_shards)
        self._setup = groups.setup_of(self.vocab_file, self.masking, self.objective, self.format)

    def expand(self, documents: beam.PCollection[Document]) -> beam.PCollection[ExampleShard]:
        """Write each shard on any worker, then the manifest."""
        output = files.join(self.output, "examples")
        shards: beam.PCollection[ExampleShard] = (
            documents | WriteText(files.join(self.output, "text"), self.num_shards) | MaskShards(self._setup, output)
        )
        close = beam.Map(groups.close_shards, self._setup, self.num_shards, output).with_output_types(None)
        shards | ToList() | "Close" >> close
        return shards


class _CreateExamples(beam.DoFn):
    """Make the examples of groups. Counts: examples."""

    def __init__(self, setup: ExamplesSetup) -> None:
        self._setup = setup

    def process(self, group: tuple[int, Iterable[Placed]]) -> Iterator[bytes]:
        for example in groups.create_examples(group, self._setup):
            count("examples")
            yield example


@dataclasses.dataclass(eq=False)
class CreateExamples(beam.PTransform):
    """Make masked examples of documents, as serialised tf.train.Examples: what beam.io.WriteToTFRecord takes.

    They are the records of WriteExamples with the same options. It is for small data: each record passes the runner.
    Counts: examples.

    Raises:
      UnusableInputError: the vocabulary is not there, or options do not go together.
    """

    vocab_file: str
    num_shards: int
    masking: MaskingOptions = dataclasses.field(default_factory=MaskingOptions)
    objective: ObjectiveOptions = dataclasses.field(default_factory=ObjectiveOptions)

    def __post_init__(self) -> None:
        groups.check_shards(self.num_shards)
        self._setup = groups.setup_of(self.vocab_file, self.masking, self.objective, FormatOptions())

    def expand(self, documents: beam.PCollection[Document]) -> beam.PCollection[bytes]:
        """Make the examples of each group on any worker."""
        return documents | _GroupDocuments(self.num_shards) | "Create" >> beam.ParDo(_CreateExamples(self._setup))
