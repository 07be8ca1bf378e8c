"""The steps from text shards to a vocabulary."""

import dataclasses

import apache_beam as beam

from maskmill.text.shards import TextShard
from maskmill.vocabularies.counting import CountedShard, WordRules, count_shard
from maskmill.vocabularies.making import (
    MadeReport,
    MadeVocabulary,
    VocabularySetup,
    make_vocabulary,
    report_vocabulary,
)
from maskmill.vocabularies.merging import MergedWords, announce_merges, merge_runs
from maskmill.vocabularies.options import VocabularyOptions
from transforms.to_list import ToList


@dataclasses.dataclass(eq=False)
class CountWords(beam.PTransform):
    """Count the words of text shards.

    Output: the description of the runs written.
    """

    options: VocabularyOptions
    output: str

    def expand(self, shards: beam.PCollection[TextShard]) -> beam.PCollection[CountedShard]:
        """Count each shard on any worker."""
        count = beam.Map(count_shard, WordRules.of(self.options), self.output)
        return shards | beam.Reshuffle() | "CountShard" >> count


@dataclasses.dataclass(eq=False)
class MergeCounts(beam.PTransform):
    """Add up the counts of all text shards.

    Output: the descriptions of tables that have no word in common.
    """

    output: str

    def expand(self, shards: beam.PCollection[CountedShard]) -> beam.PCollection[MergedWords]:
        """Merge each range of words on any worker."""
        return (
            shards
            | ToList()
            | "Plan" >> beam.FlatMap(announce_merges, self.output)
            | beam.Reshuffle()
            | "MergeRuns" >> beam.Map(merge_runs, self.output)
        )


@dataclasses.dataclass(eq=False)
class MakeVocabulary(beam.PTransform):
    """Learn a vocabulary and write its files.

    Output: the description of the files.
    """

    setup: VocabularySetup
    texts: tuple[str, ...]
    output: str

    def expand(self, merged: beam.PCollection[MergedWords]) -> beam.PCollection[MadeVocabulary]:
        """Learn from all words at once."""
        learn = beam.Map(make_vocabulary, self.setup, self.texts, self.output)
        return merged | ToList() | "LearnAndWrite" >> learn


@dataclasses.dataclass(eq=False)
class ReportVocabulary(beam.PTransform):
    """Measure a vocabulary on held-out text.

    Input: the vocabulary and all text shards. Output: the description of the report's files.
    """

    setup: VocabularySetup
    compare: tuple[str, ...]
    output: str

    def expand(self, elements: beam.PCollection[MadeVocabulary | TextShard]) -> beam.PCollection[MadeReport]:
        """Measure once."""
        measure = beam.Map(report_vocabulary, self.setup, self.compare, self.output)
        return elements | ToList() | "Measure" >> measure
