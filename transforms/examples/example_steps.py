"""The steps of the graph that make shards of training examples, and pick eval examples of them.

Their work is in example_shards.py, which whoever makes a shard outside of a graph can import without Beam.
"""

import apache_beam as beam

from transforms.examples.example_shards import ExamplesSetup, pick_eval, write_example_shard
from transforms.grouping import GroupAll, spread, step


@step
def WriteExamples(shards: beam.PCollection, *, setup: ExamplesSetup, output: str) -> beam.PCollection:
    """Makes training examples of text shards and writes them.

    Input: TextShard (a description: path, kind, number, checksum). Output: ExampleShard, the description of the files
    written; by default a TFRecord, its records in the order of the reference's create_pretraining_data.py for the
    shard's seed.
    """
    return spread(shards, "MaskAndWrite", write_example_shard, setup, output)  # ExampleShard


@step
def PickEvalExamples(shards: beam.PCollection, *, wanted: int, strict: bool, output: str) -> beam.PCollection:
    """Picks the eval examples once all eval shards are written.

    Input: ExampleShard, all of a build. Output: PickedExamples, or None where there are no eval examples.
    """
    return (
        shards
        | "Together" >> GroupAll()  # list[ExampleShard]
        | "Pick" >> beam.Map(pick_eval, wanted, strict, output)  # PickedExamples | None
    )
