"""The plan of a text shard → the shard: byte ranges of fragments, copied one after another."""

from collections.abc import Mapping
from typing import Any

import apache_beam as beam

from maskmill.storage import files
from maskmill.text.text_shards import TextShard, article_md5, write_once
from transforms.grouping import spread, step
from transforms.shards.fragments import read_ranges
from transforms.shards.options import ExtractionOptions
from transforms.shards.planning import ShardPlan

# What decides the documents of each source, by its name; the name is empty in a build without sources.
Extractions = Mapping[str, ExtractionOptions]


def assemble_text_shard(plan: ShardPlan, extractions: Extractions, output: str) -> TextShard:
    """Writes a shard from its fragments, unless it is there already with the same content."""
    pieces = [(fragment.key, ranges) for fragment, ranges in plan.pieces]
    key, record = write_once(plan.name, pieces, output, lambda path: _write_shard(path, plan, extractions, output))
    return TextShard(
        path=files.join(output, plan.name),
        kind=plan.kind,
        number=plan.number,
        size=record["size"],
        sha256=record["sha256"],
        documents=plan.documents,
        sentences=plan.sentences,
        inputs=plan.inputs,
        key=key,
    )


def _write_shard(path: str, plan: ShardPlan, extractions: Extractions, output: str) -> dict[str, Any]:
    """Writes the file of a shard, and returns its completion record."""
    eval_blocks: list[bytes] = []
    with files.new_file(path) as file:
        for fragment, ranges in plan.pieces:
            for block in read_ranges(fragment, ranges, extractions[fragment.batch.source], output):
                file.write(block)
                if plan.kind == "eval":
                    eval_blocks.append(block)
    articles = [article for article in b"".join(eval_blocks).split(b"\n\n") if article]
    return {"size": file.size, "sha256": file.sha256, "md5": [article_md5(article) for article in articles]}


@step
def AssembleTextShards(plans: beam.PCollection, *, extractions: Extractions, output: str) -> beam.PCollection:
    """Writes planned shards.

    Input: ShardPlan. Output: TextShard, the description of the file written.
    """
    return spread(plans, "Assemble", assemble_text_shard, extractions, output)  # TextShard
