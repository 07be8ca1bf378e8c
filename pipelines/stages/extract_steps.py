"""The steps from inputs to text shards: of extract, of the reference's chain, and of a mix of sources."""

import operator
from collections.abc import Mapping, Sequence

import apache_beam as beam

from maskmill.text.text_shards import TextShard
from pipelines.settings.source_options import MixOptions, SourceOptions
from pipelines.settings.stage_options import ExtractOptions
from transforms.extraction import template_library
from transforms.extraction.template_library import CollectTemplates
from transforms.grouping import step
from transforms.inputs.batches import CutIntoBatches, FindInputs
from transforms.shards import fragments as fragment_step
from transforms.shards.fragments import ExtractDocuments
from transforms.shards.mixing import PlanMix
from transforms.shards.mlperf_shards import CleanRawFiles, GatherParts, PackRawFiles, raw_files_of_inputs
from transforms.shards.options import ExtractionOptions
from transforms.shards.planning import AssembleTextShards, PlanTextShards
from transforms.shards.sentence_choice import ChooseSentences


def has_text(shard: TextShard) -> bool:
    """Whether a shard holds anything: the eval text of a small corpus can be empty."""
    return shard.size > 0


def find_inputs(found: beam.PCollection, options: ExtractOptions) -> beam.PCollection:
    """Adds the step that looks at the inputs which the checks have found; gives one list of InputFile."""
    return found | "FindInputs" >> FindInputs(
        patterns=options.input, dump_date=options.dump_date, input_format=options.input_format
    )


def extract_documents(
    inputs: beam.PCollection, options: ExtractOptions, output: str, source: str = ""
) -> beam.PCollection:
    """Adds the steps from one list of InputFile to Fragment; `source` names the source of a mix."""
    extraction = options.decided_extraction
    expands = extraction.wikitext.expand_templates
    if not extraction.doc_blocks:
        inputs = inputs | "ChooseSentences" >> ChooseSentences(
            extraction=extraction, input_format=options.input_format, output=output, source=source
        )
    batches = inputs | "CutIntoBatches" >> CutIntoBatches(
        input_format=options.input_format,
        reading=extraction.reading,
        limit=options.split.max_documents,
        output=output,
        kinds=(template_library.PIECES, fragment_step.KIND) if expands else (fragment_step.KIND,),
        source=source,
    )
    if expands:
        batches = batches | "CollectTemplates" >> CollectTemplates(reading=extraction.reading, output=output)
    return batches | "ExtractDocuments" >> ExtractDocuments(options=extraction, output=output)  # Fragment


@step
def ExtractSource(found: beam.PCollection, *, source: SourceOptions, output: str) -> beam.PCollection:
    """Extracts a source of a mix by its own options.

    Input: one mapping, from each source's name to its inputs. Output: Fragment.
    """
    of_source = found | "Inputs" >> beam.Map(operator.itemgetter(source.name))  # sequence of FileInfo
    inputs = find_inputs(of_source, source.extract)  # list of InputFile
    return extract_documents(inputs, source.extract, output, source.name)


def _assembled(
    plans: beam.PCollection, fragments: beam.PCollection, extractions: Mapping[str, ExtractionOptions], output: str
) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
    """Adds the step from ShardPlan to TextShard."""
    shards = plans | "AssembleTextShards" >> AssembleTextShards(extractions=extractions, output=output)
    return shards | "HasText" >> beam.Filter(has_text), [shards, fragments]


def expand_extract(
    found: beam.PCollection, options: ExtractOptions, output: str
) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
    """Adds the steps of the default mode, from the inputs that the checks have found; returns as Stage.expand."""
    extraction = options.decided_extraction
    fragments = extract_documents(find_inputs(found, options), options, output)
    plans = fragments | "PlanTextShards" >> PlanTextShards(
        split=options.split.decided, extraction=extraction, output=output
    )
    return _assembled(plans, fragments, {"": extraction}, output)


def expand_mlperf(
    found: beam.PCollection, options: ExtractOptions, output: str, *, from_doc_files: bool
) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
    """Adds the steps of the reference's chain, from the inputs that the checks have found; returns as Stage.expand."""
    inputs, split, extraction = find_inputs(found, options), options.decided.split, options.decided_extraction
    finished = []
    if from_doc_files:
        raw_files = inputs | "TakeRawFiles" >> beam.FlatMap(raw_files_of_inputs)  # RawFile
    else:
        fragments = extract_documents(inputs, options, output)
        finished.append(fragments)
        raw_files = fragments | "PackRawFiles" >> PackRawFiles(output=output)
    cleaned = raw_files | "CleanRawFiles" >> CleanRawFiles(split=split, extraction=extraction, output=output)
    shards = cleaned | "GatherParts" >> GatherParts(split=split, extraction=extraction, output=output)
    return shards | "HasText" >> beam.Filter(has_text), [*finished, cleaned, shards]


def expand_mix(
    found: beam.PCollection, options: MixOptions, output: str
) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
    """Adds a branch for each source of a mix, then one plan of all of them; returns as Stage.expand."""
    sources = [source.source for source in options.sources]
    fragments = [
        found | f"Extract_{source.name}" >> ExtractSource(source=source, output=output) for source in options.sources
    ] | "AllSources" >> beam.Flatten()
    plans = fragments | "PlanMix" >> PlanMix(split=options.split.decided, sources=sources, output=output)
    return _assembled(plans, fragments, {s.name: s.extraction for s in sources}, output)
