"""Text shards that are there already, as what a stage reads."""

from collections.abc import Sequence

import apache_beam as beam

from transforms.shards.text_files import describe_text_shard, find_texts
from transforms.shards.text_shards import TextShard
from transforms.storage import progress


def find_text_shards(pipeline: beam.Pipeline, patterns: tuple[str, ...]) -> beam.PCollection:
    """Adds the steps that describe the text shards that patterns name. A worker lists them: there can be many."""
    return (
        pipeline
        | "Patterns" >> beam.Create([patterns])
        | "FindTexts" >> beam.FlatMap(lambda patterns: enumerate(text.path for text in find_texts(patterns)))
        | "SpreadTexts" >> beam.Reshuffle()
        | "Describe" >> beam.Map(describe_text_shard)  # TextShard
    )


def announce_texts(shards: Sequence[TextShard], output: str, kind: str) -> None:
    """Tells the progress display how many shards there are for the step of a kind."""
    progress.announce(output, kind, pieces=len(shards), size=sum(s.size for s in shards))
