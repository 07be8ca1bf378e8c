"""Example shards that a finished stage has made, described from its manifest."""

from collections.abc import Mapping
from typing import Any

from maskmill.records.examples import ExampleFile
from maskmill.storage import files, manifest
from transforms.examples.example_shards import ExampleShard, ExamplesSetup


def find_eval_shards(output: str, setup: ExamplesSetup) -> list[ExampleShard]:
    """The eval shards in a directory of examples, each one TFRecord, in order.

    Args:
      output: the directory.
      setup: what decided the examples.

    Raises:
      UnusableInputError: there is no manifest.
    """
    listed = [entry for entry in manifest.read_manifest(output)["shards"] if entry["kind"] == "eval"]
    return [_shard(number, entry, output, setup) for number, entry in enumerate(listed)]


def _shard(number: int, entry: Mapping[str, Any], output: str, setup: ExamplesSetup) -> ExampleShard:
    made = tuple(
        ExampleFile(
            path=files.join(output, file["name"]),
            size=file["bytes"],
            sha256=file["sha256"],
            examples=file["examples"],
            width=setup.masking.max_seq_length,
        )
        for file in manifest.files_of_shard(entry)
    )
    return ExampleShard(
        files=made,
        kind="eval",
        number=number,
        name=entry["name"],
        counts={"examples": entry["examples"]},
        inputs=entry["inputs"],
        key="",
        setup=setup,
    )
