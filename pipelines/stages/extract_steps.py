"""The steps from inputs to text shards: of extract, of the reference's chain, and of a mix of sources."""

import dataclasses
import operator
from collections.abc import Iterator, Mapping, Sequence

import apache_beam as beam

from maskmill.extraction import template_library
from maskmill.inputs.units import Digest, InputFile
from maskmill.storage import files
from maskmill.text.shards import TextShard
from maskmill.text_shards import fragments as fragment_step
from maskmill.text_shards.fragments import Fragment
from maskmill.text_shards.options import ExtractionOptions
from maskmill.text_shards.planning import ShardPlan
from pipelines.settings.source_options import MixOptions, SourceOptions
from pipelines.settings.stage_options import ExtractOptions
from transforms.extraction import CollectTemplates
from transforms.inputs import CutIntoBatches, DigestObjects, FindInputs
from transforms.text_shards import (
    AssembleTextShards,
    ChooseSentences,
    CleanRawFiles,
    DecideOnDuplicates,
    ExtractDocuments,
    GatherParts,
    PackRawFiles,
    PlanMix,
    PlanTextShards,
    TakeRawFiles,
)


def with_text(shard: TextShard) -> Iterator[TextShard]:
    """Yield the shard, if it holds anything: the eval text of a small corpus can be empty."""
    if shard.size > 0:
        yield shard


def find_inputs(options: ExtractOptions) -> FindInputs:
    """Return the step that looks at the inputs which the checks have found; it gives one list of InputFile."""
    return FindInputs(patterns=options.input, dump_date=options.dump_date, input_format=options.input_format)


def digests_of(inputs: beam.PCollection, options: ExtractOptions) -> Sequence[beam.PCollection]:
    """Add the step that gives the checksums which the list of InputFile may lack, if some lie in a store: a Digest."""
    return [] if all(map(files.is_local, options.input)) else [inputs | DigestObjects()]


@dataclasses.dataclass(eq=False)
class ExtractInputs(beam.PTransform):
    """Extract the documents of inputs. source: its name, in a mix of several."""

    options: ExtractOptions
    output: str
    source: str = ""

    def expand(self, inputs: beam.PCollection[list[InputFile]]) -> beam.PCollection[Fragment]:
        """Choose sentences, cut, collect templates, extract, decide on duplicates, as the options say."""
        options, output, source = self.options, self.output, self.source
        extraction = options.decided_extraction
        expands = extraction.wikitext.expand_templates
        if not extraction.doc_blocks:
            inputs |= ChooseSentences(extraction, options.input_format, output, source)
        batches = inputs | CutIntoBatches(
            input_format=options.input_format,
            reading=extraction.reading,
            limit=options.split.max_documents,
            output=output,
            kinds=(template_library.PIECES, fragment_step.KIND) if expands else (fragment_step.KIND,),
            source=source,
        )
        if expands:
            batches |= CollectTemplates(extraction.reading, output)
        fragments = batches | ExtractDocuments(extraction, output)
        if extraction.quality.finds_duplicates:
            fragments |= DecideOnDuplicates(extraction, output)
        return fragments


@dataclasses.dataclass(eq=False)
class ExtractSource(beam.PTransform):
    """Extract a source of a mix by its own options.

    Input: one mapping, from each source's name to its inputs. Output: fragments, and checksums as `digests_of` gives
    them.
    """

    source: SourceOptions
    output: str

    def expand(
        self, found: beam.PCollection[Mapping[str, Sequence[files.FileInfo]]]
    ) -> beam.PCollection[Fragment | Digest]:
        """Take the inputs of the source."""
        options = self.source.extract
        of_source = beam.Map(operator.itemgetter(self.source.name)).with_output_types(Sequence[files.FileInfo])
        inputs = found | "Inputs" >> of_source | find_inputs(options)
        digests = digests_of(inputs, options)
        fragments = inputs | ExtractInputs(options, self.output, self.source.name)
        return (fragments, *digests) | "Known" >> beam.Flatten().with_output_types(Fragment | Digest)


def _assembled(
    plans: beam.PCollection[ShardPlan],
    fragments: beam.PCollection,
    extractions: Mapping[str, ExtractionOptions],
    output: str,
) -> tuple[beam.PCollection[TextShard], Sequence[beam.PCollection]]:
    """Add the step from ShardPlan to TextShard."""
    shards = plans | AssembleTextShards(extractions, output)
    return shards | "HasText" >> beam.FlatMap(with_text), [shards, fragments]


def expand_extract(
    found: beam.PCollection, options: ExtractOptions, output: str
) -> tuple[beam.PCollection[TextShard], Sequence[beam.PCollection]]:
    """Add the steps of the default mode, from the inputs that the checks have found; return as Stage.expand."""
    extraction = options.decided_extraction
    inputs = found | find_inputs(options)
    digests = digests_of(inputs, options)
    fragments = inputs | ExtractInputs(options, output)
    plans = fragments | PlanTextShards(options.split.decided, extraction, output)
    made, finished = _assembled(plans, fragments, {"": extraction}, output)
    return made, [*finished, *digests]


def expand_mlperf(
    found: beam.PCollection, options: ExtractOptions, output: str, *, from_doc_files: bool
) -> tuple[beam.PCollection[TextShard], Sequence[beam.PCollection]]:
    """Add the steps of the reference's chain, from the inputs that the checks have found; return as Stage.expand."""
    split, extraction = options.decided.split, options.decided_extraction
    inputs = found | find_inputs(options)
    finished = [*digests_of(inputs, options)]
    if from_doc_files:
        raw_files = inputs | TakeRawFiles()
    else:
        fragments = inputs | ExtractInputs(options, output)
        finished.append(fragments)
        raw_files = fragments | PackRawFiles(output)
    cleaned = raw_files | CleanRawFiles(split, extraction, output)
    shards = cleaned | GatherParts(split, extraction, output)
    return shards | "HasText" >> beam.FlatMap(with_text), [*finished, cleaned, shards]


def expand_mix(
    found: beam.PCollection, options: MixOptions, output: str
) -> tuple[beam.PCollection[TextShard], Sequence[beam.PCollection]]:
    """Add a branch for each source of a mix, then one plan of all of them; return as Stage.expand."""
    sources = [source.source for source in options.sources]
    branches = [
        found | f"Extract_{source.name}" >> ExtractSource(source=source, output=output) for source in options.sources
    ]
    fragments = branches | "AllSources" >> beam.Flatten().with_output_types(Fragment | Digest)
    plans = fragments | PlanMix(options.split.decided, sources, output)
    return _assembled(plans, fragments, {s.name: s.extraction for s in sources}, output)
