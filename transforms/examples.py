"""The steps that make shards of training examples, and pick eval examples of them (maskmill/examples)."""

import dataclasses

import apache_beam as beam

from maskmill.example_shards.example_shards import (
    ExampleShard,
    ExamplesSetup,
    PickedExamples,
    pick_eval,
    write_example_shard,
)
from maskmill.text.shards import TextShard
from transforms.metrics import Counted
from transforms.to_list import ToList


def counts_of(shard: ExampleShard) -> dict[str, int]:
    """Return the examples, tokens, masked positions … and the bytes of an example shard."""
    return {**shard.counts, "bytes": shard.size}


@dataclasses.dataclass(eq=False)
class MaskShards(beam.PTransform):
    """Make training examples of text shards and write them.

    Input: TextShard (a description: path, kind, number, checksum). Output: ExampleShard, the description of the files
    written; by default a TFRecord, its records in the order of the reference's create_pretraining_data.py for the
    shard's seed.
    """

    setup: ExamplesSetup
    output: str

    def expand(self, shards: beam.PCollection[TextShard]) -> beam.PCollection[ExampleShard]:
        """Write each shard on any worker."""
        write = beam.ParDo(Counted(write_example_shard, counts_of, self.setup, self.output))
        return shards | beam.Reshuffle() | "MaskAndWrite" >> write.with_output_types(ExampleShard)


@dataclasses.dataclass(eq=False)
class PickExamples(beam.PTransform):
    """Pick the eval examples once all eval shards are written.

    Input: ExampleShard, all of a build. Output: PickedExamples, or None where there are no eval examples.
    """

    wanted: int
    strict: bool
    output: str

    def expand(self, shards: beam.PCollection[ExampleShard]) -> beam.PCollection[PickedExamples | None]:
        """Pick from all shards at once."""
        return shards | ToList() | "Pick" >> beam.Map(pick_eval, self.wanted, self.strict, self.output)
