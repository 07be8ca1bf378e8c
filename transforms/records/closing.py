"""What is left to do once all example shards, or the picked eval examples, are there: the manifest and the sweep."""

from collections.abc import Mapping, Sequence
from typing import Any

from transforms.records import example_shards
from transforms.records.example_shards import ExampleShard, ExamplesSetup, PickedExamples
from transforms.shards.counts import sum_counts
from transforms.storage import files, manifest

# The names that the example shards of any build have; files that fit and are not of this build are swept.
OUTPUT_PATTERNS = ("*.tfrecord", "*.tfrecord.idx", "*.tfrecord.gz")


def close_examples(
    shards: Sequence[ExampleShard],
    setup: ExamplesSetup,
    *,
    parameters: Mapping[str, Any],
    decided: Mapping[str, Any],
    output: str,
) -> None:
    """Writes the manifest of example shards, and deletes what older builds left over.

    Args:
      shards: all shards, in any order.
      setup: what decided their examples.
      parameters: all options of the stage, for the manifest.
      decided: what was decided where they leave it open, for the manifest.
      output: the directory of the shards.
    """
    ordered = sorted(shards, key=lambda s: (s.kind != "train", s.number, s.path))
    counts = {}
    for kind in ("train", "eval"):
        of_kind = [s for s in ordered if s.kind == kind]
        if of_kind:
            totals = sum_counts(s.counts for s in of_kind)
            counts[kind] = {"shards": len(of_kind)} | totals | {"bytes": sum(s.size for s in of_kind)}
    texts = {path: sha256 for s in ordered for path, sha256 in s.inputs.items()}
    inputs = [{"path": path, "bytes": files.size(path), "sha256": sha256} for path, sha256 in texts.items()]
    inputs.append({"path": setup.vocab_file, "bytes": files.size(setup.vocab_file), "sha256": setup.vocab_sha256})
    manifest.write_manifest(
        output,
        stage="examples",
        parameters=dict(parameters) | {"unicode": setup.masking.unicode},
        decided=decided,
        inputs=inputs,
        shards=[_shard_entry(s, setup) for s in ordered],
        counts=counts,
    )
    names = [path for s in ordered for path in (s.path, s.index_path) if path]
    manifest.sweep(
        output,
        keep=[files.base_name(path) for path in names],
        patterns=OUTPUT_PATTERNS,
        records={example_shards.KIND: [s.key for s in ordered]},
    )


def _shard_entry(shard: ExampleShard, setup: ExamplesSetup) -> dict[str, Any]:
    seed = setup.masking.random_seed
    if not setup.one_seed:
        seed = example_shards.shard_seed(seed, shard.kind, shard.number)
    entry = {
        "name": files.base_name(shard.path),
        "kind": shard.kind,
        "bytes": shard.size,
        "sha256": shard.sha256,
        "random_seed": seed,
        "inputs": dict(shard.inputs),
    }
    if shard.index_path:
        entry |= {"index": files.base_name(shard.index_path), "index_sha256": shard.index_sha256}
    return entry | dict(shard.counts)


def close_picked(picked: PickedExamples | None, parameters: Mapping[str, Any], output: str) -> None:
    """Writes the manifest of the picked eval examples, of which there may be none; sweeps what is left over."""
    counts = {"available": 0, "picked": 0, "bytes": 0}
    inputs: list[dict[str, Any]] = []
    shards: list[dict[str, Any]] = []
    if picked is not None:
        counts = {"available": picked.available, "picked": picked.picked, "bytes": picked.size}
        inputs = [{"path": path, "sha256": sha256} for path, sha256 in picked.inputs.items()]
        shards = [
            {
                "name": files.base_name(picked.path),
                "kind": "eval",
                "bytes": picked.size,
                "sha256": picked.sha256,
                "examples": picked.picked,
            }
        ]
    manifest.write_manifest(
        output, stage="eval", parameters=parameters, inputs=inputs, shards=shards, counts={"eval": counts}
    )
    manifest.sweep(output, keep=[s["name"] for s in shards], patterns=("*.tfrecord",), records={})
