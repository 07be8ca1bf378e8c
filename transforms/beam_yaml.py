"""The steps of elements as Beam YAML takes them (deploy/beam_yaml): options are mappings, outputs have names."""

from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PBegin
from apache_beam.typehints.row_type import RowTypeConstraint

from maskmill.errors import UnusableInputError
from maskmill.extraction.options import WikitextOptions
from maskmill.inputs.articles import Article, Document
from maskmill.inputs.options import ReadOptions
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.records.options import FormatOptions
from maskmill.sentences.choice import AUTO
from maskmill.text_shards.options import ExtractionOptions, QualityOptions
from transforms.elements import steps

Options = Mapping[str, Any]


class ReadArticles(beam.PTransform):
    """Read articles, as the step of this name.

    error_handling: `{output: NAME}` gives what is rejected as the output NAME, as Beam YAML's own transforms do.
    Without it rejected pages are only counted.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        input_format: str = "auto",
        dump_date: str | None = None,
        reading: Options | None = None,
        wikitext: Options | None = None,
        error_handling: Mapping[str, str] | None = None,
    ) -> None:
        options = ExtractionOptions(reading=ReadOptions(**reading or {}), wikitext=WikitextOptions(**wikitext or {}))
        self._error_handling = error_handling
        self._read = steps.ReadArticles(patterns, input_format, dump_date, options)

    def expand(self, begin: PBegin) -> dict[str, beam.PCollection]:
        """Give the outputs by name."""
        read = begin | self._read
        made = {"articles": read.articles}
        return made | ({self._error_handling["output"]: read.rejected} if self._error_handling else {})


class _Taking(beam.PTransform):
    """A step that takes rows with the fields of its elements, as MapToFields gives them."""

    def __init__(self, kind: type[Article] | type[Document], step: beam.PTransform) -> None:
        self._kind, self._step = kind, step

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        """Make elements of the rows.

        Raises:
          UnusableInputError: they lack a field.
        """
        element = RowTypeConstraint.from_user_type(rows.element_type) or rows.element_type
        known = [name for name, _ in element._fields] if isinstance(element, RowTypeConstraint) else []
        missing = [name for name in self._kind._fields if name not in known]
        if missing:
            raise UnusableInputError(
                f"{type(self._step).__name__} takes rows with the fields {', '.join(self._kind._fields)}; these lack "
                f"{', '.join(missing)}: give MapToFields append: true."
            )
        kind: Any = self._kind
        elements = beam.Map(lambda row: kind(*(getattr(row, name) for name in kind._fields)))
        return rows | "Elements" >> elements.with_output_types(kind) | self._step


def split_sentences(language: str = AUTO) -> beam.PTransform:
    """Split the text of articles into sentences."""
    return _Taking(Article, steps.SplitSentences(language))


def filter_quality(**options: Any) -> beam.PTransform:
    """Drop articles by the options of QualityOptions."""
    return _Taking(Article, steps.FilterQuality(QualityOptions(**options)))


def write_text(output: str, num_shards: int) -> beam.PTransform:
    """Write documents as text shards."""
    return _Taking(Document, steps.WriteText(output, num_shards))


def write_examples(
    output: str,
    vocab_file: str,
    num_shards: int,
    masking: Options | None = None,
    objective: Options | None = None,
    format: Options | None = None,
) -> beam.PTransform:
    """Write documents as a data set of masked examples."""
    options = MaskingOptions(**masking or {}), ObjectiveOptions(**objective or {}), FormatOptions(**format or {})
    return _Taking(Document, steps.WriteExamples(output, vocab_file, num_shards, *options))
