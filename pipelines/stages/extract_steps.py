"""The steps from inputs to text shards: of extract, of the reference's chain, and of a mix of sources."""

import operator
from collections.abc import Iterator, Mapping, Sequence

from maskmill.storage import files
from maskmill.text.text_shards import TextShard
from pipelines.settings.source_options import MixOptions, SourceOptions
from pipelines.settings.stage_options import ExtractOptions
from transforms.collection import Collection
from transforms.extraction import template_library
from transforms.extraction.template_library import CollectTemplates
from transforms.inputs.batches import CutIntoBatches, DigestObjects, FindInputs
from transforms.shards import fragments as fragment_step
from transforms.shards.duplicates import DecideOnDuplicates
from transforms.shards.fragments import ExtractDocuments
from transforms.shards.mixing import PlanMix
from transforms.shards.mlperf_shards import CleanRawFiles, GatherParts, PackRawFiles, TakeRawFiles
from transforms.shards.options import ExtractionOptions
from transforms.shards.planning import AssembleTextShards, PlanTextShards
from transforms.shards.sentence_choice import ChooseSentences


def with_text(shard: TextShard) -> Iterator[TextShard]:
    """The shard, if it holds anything: the eval text of a small corpus can be empty."""
    if shard.size > 0:
        yield shard


def find_inputs(found: Collection, options: ExtractOptions) -> Collection:
    """Adds the step that looks at the inputs which the checks have found; gives one list of InputFile."""
    return found.step(
        FindInputs, patterns=options.input, dump_date=options.dump_date, input_format=options.input_format
    )


def digests_of(inputs: Collection, options: ExtractOptions) -> Sequence[Collection]:
    """Adds the step that gives the checksums which the list of InputFile may lack, if some lie in a store: a Digest."""
    return [] if all(map(files.is_local, options.input)) else [inputs.step(DigestObjects)]


def extract_documents(inputs: Collection, options: ExtractOptions, output: str, source: str = "") -> Collection:
    """Adds the steps from one list of InputFile to Fragment; `source` names the source of a mix."""
    extraction = options.decided_extraction
    expands = extraction.wikitext.expand_templates
    if not extraction.doc_blocks:
        inputs = inputs.step(
            ChooseSentences,
            extraction=extraction,
            input_format=options.input_format,
            output=output,
            source=source,
        )
    batches = inputs.step(
        CutIntoBatches,
        input_format=options.input_format,
        reading=extraction.reading,
        limit=options.split.max_documents,
        output=output,
        kinds=(template_library.PIECES, fragment_step.KIND) if expands else (fragment_step.KIND,),
        source=source,
    )
    if expands:
        batches = batches.step(CollectTemplates, reading=extraction.reading, output=output)
    fragments = batches.step(ExtractDocuments, options=extraction, output=output)
    if extraction.quality.finds_duplicates:
        fragments = fragments.step(DecideOnDuplicates, extraction=extraction, output=output)
    return fragments  # Fragment


def ExtractSource(found: Collection, *, source: SourceOptions, output: str) -> Collection:
    """Extracts a source of a mix by its own options.

    Input: one mapping, from each source's name to its inputs. Output: Fragment, and Digest as `digests_of` gives it.
    """
    of_source = found.map("Inputs", operator.itemgetter(source.name))  # sequence of FileInfo
    inputs = find_inputs(of_source, source.extract)  # list of InputFile
    digests = digests_of(inputs, source.extract)
    fragments = extract_documents(inputs, source.extract, output, source.name)
    return fragments.joined("Known", *digests) if digests else fragments


def _assembled(
    plans: Collection,
    fragments: Collection,
    extractions: Mapping[str, ExtractionOptions],
    output: str,
) -> tuple[Collection, Sequence[Collection]]:
    """Adds the step from ShardPlan to TextShard."""
    shards = plans.step(AssembleTextShards, extractions=extractions, output=output)
    return shards.flat_map("HasText", with_text), [shards, fragments]


def expand_extract(found: Collection, options: ExtractOptions, output: str) -> tuple[Collection, Sequence[Collection]]:
    """Adds the steps of the default mode, from the inputs that the checks have found; returns as Stage.expand."""
    extraction = options.decided_extraction
    inputs = find_inputs(found, options)
    digests = digests_of(inputs, options)
    fragments = extract_documents(inputs, options, output)
    plans = fragments.step(PlanTextShards, split=options.split.decided, extraction=extraction, output=output)
    made, finished = _assembled(plans, fragments, {"": extraction}, output)
    return made, [*finished, *digests]


def expand_mlperf(
    found: Collection, options: ExtractOptions, output: str, *, from_doc_files: bool
) -> tuple[Collection, Sequence[Collection]]:
    """Adds the steps of the reference's chain, from the inputs that the checks have found; returns as Stage.expand."""
    inputs, split, extraction = find_inputs(found, options), options.decided.split, options.decided_extraction
    finished = [*digests_of(inputs, options)]
    if from_doc_files:
        raw_files = inputs.step(TakeRawFiles)  # RawBatch
    else:
        fragments = extract_documents(inputs, options, output)
        finished.append(fragments)
        raw_files = fragments.step(PackRawFiles, output=output)
    cleaned = raw_files.step(CleanRawFiles, split=split, extraction=extraction, output=output)
    shards = cleaned.step(GatherParts, split=split, extraction=extraction, output=output)
    return shards.flat_map("HasText", with_text), [*finished, cleaned, shards]


def expand_mix(found: Collection, options: MixOptions, output: str) -> tuple[Collection, Sequence[Collection]]:
    """Adds a branch for each source of a mix, then one plan of all of them; returns as Stage.expand."""
    sources = [source.source for source in options.sources]
    first, *others = [
        found.step(ExtractSource, f"Extract_{source.name}", source=source, output=output) for source in options.sources
    ]
    fragments = first.joined("AllSources", *others)
    plans = fragments.step(PlanMix, split=options.split.decided, sources=sources, output=output)
    return _assembled(plans, fragments, {s.name: s.extraction for s in sources}, output)
