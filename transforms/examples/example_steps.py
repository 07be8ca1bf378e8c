"""The steps of the graph that make shards of training examples, and pick eval examples of them.

Their work is in example_shards.py, which whoever makes a shard outside of a graph can import without Beam.
"""

import dataclasses

import apache_beam as beam

from transforms.examples.example_shards import ExamplesSetup, pick_eval, write_example_shard
from transforms.grouping import GroupAll, spread


@dataclasses.dataclass(kw_only=True, eq=False)
class WriteExamples(beam.PTransform):
    """Makes training examples of text shards and writes them.

    Input: TextShard (a description: path, kind, number, checksum). Output: ExampleShard, the description of the files
    written; by default a TFRecord, its records in the order of the reference's create_pretraining_data.py for the
    shard's seed.
    """

    setup: ExamplesSetup
    output: str

    def expand(self, shards: beam.PCollection) -> beam.PCollection:
        return spread(shards, "MaskAndWrite", write_example_shard, self.setup, self.output)  # ExampleShard


@dataclasses.dataclass(kw_only=True, eq=False)
class PickEvalExamples(beam.PTransform):
    """Picks the eval examples once all eval shards are written.

    Input: ExampleShard, all of a build. Output: PickedExamples, or None where there are no eval examples.
    """

    wanted: int
    strict: bool
    output: str

    def expand(self, shards: beam.PCollection) -> beam.PCollection:
        return (
            shards
            | "Together" >> GroupAll()  # list[ExampleShard]
            | "Pick" >> beam.Map(pick_eval, self.wanted, self.strict, self.output)  # PickedExamples | None
        )
