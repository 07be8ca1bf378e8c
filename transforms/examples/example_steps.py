"""The steps that make shards of training examples, and pick eval examples of them (maskmill/examples)."""

from maskmill.examples.example_shards import ExamplesSetup, pick_eval, write_example_shard
from transforms.collection import Collection


def WriteExamples(shards: Collection, *, setup: ExamplesSetup, output: str) -> Collection:
    """Makes training examples of text shards and writes them.

    Input: TextShard (a description: path, kind, number, checksum). Output: ExampleShard, the description of the files
    written; by default a TFRecord, its records in the order of the reference's create_pretraining_data.py for the
    shard's seed.
    """
    return shards.spread("MaskAndWrite", write_example_shard, setup, output)  # ExampleShard


def PickEvalExamples(shards: Collection, *, wanted: int, strict: bool, output: str) -> Collection:
    """Picks the eval examples once all eval shards are written.

    Input: ExampleShard, all of a build. Output: PickedExamples, or None where there are no eval examples.
    """
    return shards.together().map("Pick", pick_eval, wanted, strict, output)  # PickedExamples | None
