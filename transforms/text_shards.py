"""The steps from batches of units to text shards."""

import dataclasses
from collections.abc import Sequence

import apache_beam as beam

from maskmill.inputs.units import Digest, InputFile, UnitBatch
from maskmill.text.shards import TextShard
from maskmill.text_shards import duplicate_search, duplicates, mlperf_shards
from maskmill.text_shards.duplicate_search import Part, Share
from maskmill.text_shards.fragments import Extractions, Fragment, extract_batch
from maskmill.text_shards.mixing import plan_mix
from maskmill.text_shards.mlperf_shards import CleanedBatch, RawBatch
from maskmill.text_shards.options import ExtractionOptions, Source, SplitOptions
from maskmill.text_shards.planning import ShardPlan, assemble_text_shard, plan_text_shards
from maskmill.text_shards.sentence_choice import choose_sentences
from transforms.metrics import Counted
from transforms.to_list import ToList


def counts_of_fragment(fragment: Fragment) -> dict[str, int]:
    """Return the pages that were read, left out by reason and rejected; documents, holes, templates, bytes."""
    return {**fragment.counts, "bytes": fragment.size}


def counts_of_text(shard: TextShard) -> dict[str, int]:
    """Return the documents, sentences and bytes of a text shard."""
    return {"documents": shard.documents, "sentences": shard.sentences, "bytes": shard.size}


@dataclasses.dataclass(eq=False)
class ChooseSentences(beam.PTransform):
    """Decide how the sentences of each input are split, before the first page is extracted.

    Input: one list of InputFile. Output: the same list, with `sentences`.
    """

    extraction: ExtractionOptions
    input_format: str
    output: str
    source: str = ""

    def expand(self, inputs: beam.PCollection[list[InputFile]]) -> beam.PCollection[list[InputFile]]:
        """Look at all inputs at once."""
        return inputs | "Choose" >> beam.Map(
            choose_sentences, self.extraction, self.input_format, self.output, self.source
        )


@dataclasses.dataclass(eq=False)
class ExtractDocuments(beam.PTransform):
    """Extract batches of units.

    Output: the description of the text written.
    """

    options: ExtractionOptions
    output: str

    def expand(self, batches: beam.PCollection[UnitBatch]) -> beam.PCollection[Fragment]:
        """Extract each batch on any worker."""
        extract = beam.ParDo(Counted(extract_batch, counts_of_fragment, self.options, self.output))
        return batches | beam.Reshuffle() | "ExtractBatch" >> extract.with_output_types(Fragment)


@dataclasses.dataclass(eq=False)
class DecideOnDuplicates(beam.PTransform):
    """Decide which paragraphs are dropped, once all fragments are known, on as many workers as there are.

    Output: the same fragments.
    """

    extraction: ExtractionOptions
    output: str

    def expand(self, fragments: beam.PCollection[Fragment]) -> beam.PCollection[Fragment]:
        """Search in parts of the fragments and in shares of all hashes."""
        search = duplicate_search
        hashed: beam.PCollection[Part] = (
            fragments
            | "AllFragments" >> ToList()
            | "Begin" >> beam.FlatMap(duplicates.begin, self.extraction, self.output)
            | "SpreadParts" >> beam.Reshuffle()
            | "HashParagraphs" >> beam.Map(duplicates.alone, search.hash_paragraphs).with_output_types(Part)
        )
        linked: beam.PCollection[Share] = (
            hashed
            | "AllHashes" >> ToList()
            | "ShareHashes" >> beam.FlatMap(search.shares_of)
            | "SpreadShares" >> beam.Reshuffle()
            | "FindLinks" >> beam.Map(duplicates.alone, search.find_links).with_output_types(Share)
        )
        picked: beam.PCollection[Part] = (
            (hashed, linked)
            | "HashedAndLinked" >> beam.Flatten().with_output_types(Part | Share)
            | "AllLinks" >> ToList()
            | "Unite" >> beam.FlatMap(search.unite)
            | "SpreadUnited" >> beam.Reshuffle()
            | "PickCandidates" >> beam.Map(duplicates.alone, search.pick_candidates).with_output_types(Part)
        )
        dropped: beam.PCollection[Share] = (
            picked
            | "AllCandidates" >> ToList()
            | "ShareGroups" >> beam.FlatMap(search.shares_of)
            | "SpreadGroups" >> beam.Reshuffle()
            | "DropNear" >> beam.Map(duplicates.alone, search.drop_near).with_output_types(Share)
        )
        return (
            (fragments, picked, dropped)
            | "Ended" >> beam.Flatten().with_output_types(Fragment | Part | Share)
            | "AllDropped" >> ToList()
            | "Conclude" >> beam.FlatMap(duplicates.conclude, self.extraction, self.output)
        )


@dataclasses.dataclass(eq=False)
class PlanTextShards(beam.PTransform):
    """Plan the shards once all fragments are known."""

    split: SplitOptions
    extraction: ExtractionOptions
    output: str

    def expand(self, fragments: beam.PCollection[Fragment]) -> beam.PCollection[ShardPlan]:
        """Plan all shards at once."""
        plan = beam.FlatMap(plan_text_shards, self.split, self.extraction, self.output)
        return fragments | ToList() | "Plan" >> plan


@dataclasses.dataclass(eq=False)
class PlanMix(beam.PTransform):
    """Plan the shards of a mix once the fragments of all sources are known."""

    split: SplitOptions
    sources: Sequence[Source]
    output: str

    def expand(self, fragments: beam.PCollection[Fragment | Digest]) -> beam.PCollection[ShardPlan]:
        """Plan all shards at once."""
        return fragments | ToList() | "Plan" >> beam.FlatMap(plan_mix, self.split, self.sources, self.output)


@dataclasses.dataclass(eq=False)
class AssembleTextShards(beam.PTransform):
    """Write planned shards.

    Output: the description of the file written.
    """

    extractions: Extractions
    output: str

    def expand(self, plans: beam.PCollection[ShardPlan]) -> beam.PCollection[TextShard]:
        """Write each shard on any worker."""
        assemble = beam.ParDo(Counted(assemble_text_shard, counts_of_text, self.extractions, self.output))
        return plans | beam.Reshuffle() | "Assemble" >> assemble.with_output_types(TextShard)


class TakeRawFiles(beam.PTransform):
    """Take WikiExtractor files on disk."""

    def expand(self, inputs: beam.PCollection[list[InputFile]]) -> beam.PCollection[RawBatch]:
        """Batch all files at once."""
        taken = inputs | "Take" >> beam.Map(mlperf_shards.raw_files_of_inputs)
        return taken | "Batch" >> beam.FlatMap(mlperf_shards.batches_of)


@dataclasses.dataclass(eq=False)
class PackRawFiles(beam.PTransform):
    """Pack the documents of fragments as WikiExtractor packs its files, once all fragments are known."""

    output: str

    def expand(self, fragments: beam.PCollection[Fragment]) -> beam.PCollection[RawBatch]:
        """Pack all fragments at once."""
        return (
            fragments
            | ToList()
            | "Pack" >> beam.Map(mlperf_shards.raw_files_of_fragments, self.output)
            | "Batch" >> beam.FlatMap(mlperf_shards.batches_of)
        )


@dataclasses.dataclass(eq=False)
class CleanRawFiles(beam.PTransform):
    """Clean raw files."""

    split: SplitOptions
    extraction: ExtractionOptions
    output: str

    def expand(self, batches: beam.PCollection[RawBatch]) -> beam.PCollection[CleanedBatch]:
        """Clean each batch on any worker."""
        clean = beam.Map(mlperf_shards.clean_batch, self.split, self.extraction, self.output)
        return batches | beam.Reshuffle() | "Clean" >> clean


@dataclasses.dataclass(eq=False)
class GatherParts(beam.PTransform):
    """Pack cleaned files into shards and write them.

    Output: the description of the file written.
    """

    split: SplitOptions
    extraction: ExtractionOptions
    output: str

    def expand(self, cleaned: beam.PCollection[CleanedBatch]) -> beam.PCollection[TextShard]:
        """Plan all shards at once; write each on any worker."""
        return (
            cleaned
            | ToList()
            | "Plan" >> beam.FlatMap(mlperf_shards.plan_parts, self.split, self.output)
            | beam.Reshuffle()
            | "Gather" >> beam.Map(mlperf_shards.gather_part, self.split, self.extraction, self.output)
        )
