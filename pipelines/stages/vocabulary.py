"""vocabulary: text shards → a vocabulary for them, the report on it, and manifest.json."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import apache_beam as beam

from maskmill.storage.files import FileInfo
from maskmill.text.text_shards import TextShard
from pipelines.settings.options import parameters
from pipelines.settings.stage_options import VocabularyStageOptions
from pipelines.stages.stage import Stage
from pipelines.stages.text_source import announce_texts, describe_texts
from pipelines.terminal.progress import ProgressLine
from transforms.grouping import GroupAll
from transforms.vocabularies import close_vocabulary, counting, learning, making, merging
from transforms.vocabularies.counting import CountWords
from transforms.vocabularies.making import MakeVocabulary, ReportVocabulary, VocabularySetup
from transforms.vocabularies.merging import MergeCounts


def is_training_text(shard: TextShard) -> bool:
    """Whether a shard's words are counted: held-out text is what the vocabulary is measured on."""
    return shard.kind == "train"


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyStage(Stage[VocabularyStageOptions]):
    """Input: TextShard. Output: MadeVocabulary.

    texts: the text shards, where they were there before the run.
    """

    name: ClassVar[str] = "vocabulary"
    texts: Sequence[FileInfo] = ()

    @property
    def setup(self) -> VocabularySetup:
        """What decides the vocabulary."""
        return VocabularySetup(options=self.options.vocabulary.decided, transform_fn=self.options.transform_fn)

    @property
    def parameters(self) -> dict[str, Any]:
        """Every option but the places of the outputs."""
        return parameters(self.options, without=("output", "model_dir"))

    @property
    def kernels(self) -> Sequence[str]:
        """Those that count and learn, and the tokenizer's, which the report runs."""
        options = self.setup.options
        return (
            *counting.KERNELS,
            *learning.KERNELS,
            *making.kernels_of(options, self.options.compare),
        )

    @property
    def decided(self) -> dict[str, Any]:
        """The size, the special tokens and the case where they were left open."""
        given = self.parameters
        return {name: value for name, value in parameters(self.setup.options).items() if value != given[name]}

    def source(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """The text shards that `input` names."""
        return describe_texts(pipeline, self.texts, self.options.input)  # TextShard

    def expand(self, elements: beam.PCollection) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
        """Adds the steps from text to the report."""
        options, output = self.setup.options, self.output
        training = elements | "Training" >> beam.Filter(is_training_text)
        _ = training | "AllTexts" >> GroupAll() | "Announce" >> beam.Map(announce_texts, output, counting.KIND)
        counted = training | "CountWords" >> CountWords(options=options, output=output)
        merged = counted | "MergeCounts" >> MergeCounts(output=output)
        made = (
            merged
            | "AllMerged" >> GroupAll()
            | "MakeVocabulary" >> MakeVocabulary(setup=self.setup, texts=self.options.input, output=output)
        )
        report = (
            (made, elements)
            | "WithTexts" >> beam.Flatten()
            | "AllTogether" >> GroupAll()
            | "ReportVocabulary" >> ReportVocabulary(setup=self.setup, compare=self.options.compare, output=output)
        )
        return made, [counted, merged, made, report]

    def close(self, elements: Sequence[Any]) -> None:
        """Writes the model's directory and the manifest, and sweeps."""
        close_vocabulary.close_vocabulary(
            elements,
            parameters=self.parameters,
            decided=self.decided,
            setup=self.setup,
            model_dir=self.options.model_dir,
            output=self.output,
        )

    def progress(self) -> list[ProgressLine]:
        """The steps that take long."""
        return [
            ProgressLine(label="count words", output=self.output, kind=counting.KIND),
            ProgressLine(label="merge counts", output=self.output, kind=merging.KIND),
            ProgressLine(label="learn", output=self.output, kind=making.KIND),
        ]
