"""examples: text shards → TFRecord shards of masked examples, each with its index, and manifest.json."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import apache_beam as beam

from pipelines import data_warnings
from pipelines.runner import ProgressLine, Workload
from pipelines.stage import Stage
from pipelines.stage_options import ExamplesOptions, decided_masking
from transforms.grouping import GroupAll
from transforms.records import closing, example_shards
from transforms.records.example_shards import ExamplesSetup, WriteExamples
from transforms.shards.text_files import describe_text_shard, find_texts
from transforms.shards.text_shards import TextShard
from transforms.storage import files, progress
from transforms.tokenization.vocabulary import load_vocabulary

# A shard grows about 18-fold at dupe 10: count it as that much work.
_WORK_A_BYTE = 10


def announce_texts(shards: Sequence[TextShard], output: str) -> None:
    """Tells the progress display how many shards there are to mask."""
    progress.announce(output, example_shards.KIND, pieces=len(shards), size=sum(s.size for s in shards))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesStage(Stage[ExamplesOptions]):
    """Input: TextShard. Output: ExampleShard.

    setup: what decides a shard's examples, the vocabulary's checksum included.
    """

    name: ClassVar[str] = "examples"
    setup: ExamplesSetup

    @classmethod
    def check(cls, options: ExamplesOptions, *, is_first: bool) -> Self:
        """Checks the vocabulary, and the text shards where they are there already."""
        masking = decided_masking(options.masking, options.compat)
        vocabulary = load_vocabulary(options.vocab_file, masking.duplicate_pieces)
        data_warnings.warn(
            "examples", data_warnings.warnings_of_vocabulary(vocabulary, do_lower_case=masking.do_lower_case)
        )
        setup = ExamplesSetup(
            vocab_file=options.vocab_file,
            vocab_sha256=files.sha256_of(options.vocab_file),
            masking=masking,
            one_seed=options.compat != "none",
            packed=options.packed,
        )
        paths: tuple[str, ...] = (options.vocab_file, options.output)
        workload = Workload(input_bytes=0, pieces=None, paths=paths)
        if is_first:
            texts = find_texts(options.input)
            workload = Workload(
                input_bytes=_WORK_A_BYTE * sum(text.size for text in texts),
                pieces=len(texts),
                paths=(*options.input, *paths),
            )
        return cls(options=options, workload=workload, setup=setup)

    @property
    def kernels(self) -> Sequence[str]:
        """Those of the steps from sentences to records."""
        return ("kernels", "tokenization", "masking", "records")

    @property
    def decided(self) -> dict[str, Any]:
        """What --compat decides."""
        masking = self.setup.masking
        return {
            "unicode": masking.unicode,
            "duplicate_pieces": masking.duplicate_pieces,
            "one_seed": self.setup.one_seed,
        }

    def source(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """The text shards that `input` names. They are listed by a worker: there can be many."""
        return (
            pipeline
            | "Patterns" >> beam.Create([self.options.input])
            | "FindTexts" >> beam.FlatMap(lambda patterns: enumerate(text.path for text in find_texts(patterns)))
            | "SpreadTexts" >> beam.Reshuffle()
            | "Describe" >> beam.Map(describe_text_shard)  # TextShard
        )

    def expand(self, elements: beam.PCollection) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
        """Adds the masking step."""
        _ = elements | "AllTexts" >> GroupAll() | "Announce" >> beam.Map(announce_texts, self.output)
        shards = elements | "WriteExamples" >> WriteExamples(setup=self.setup, output=self.output)
        return shards, [shards]

    def close(self, elements: Sequence[Any]) -> None:
        """Writes the manifest, and sweeps."""
        closing.close_examples(
            elements, self.setup, parameters=self.parameters, decided=self.decided, output=self.output
        )

    def progress(self) -> list[ProgressLine]:
        """Example shards."""
        return [ProgressLine(label="examples", output=self.output, kind=example_shards.KIND)]
