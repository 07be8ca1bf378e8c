"""The last work once all example shards, or the picked eval examples, are there: the manifest and the sweep."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import RunFailedError
from maskmill.example_shards import example_shards
from maskmill.example_shards.example_shards import ExampleShard, ExamplesSetup, PickedExamples, name_below
from maskmill.records.examples import ExampleFile
from maskmill.records.file_names import TOKENIZER_FILE, VOCAB_FILE
from maskmill.records.shard_formats import ListedFile, all_formats
from maskmill.storage import files, manifest
from maskmill.storage.manifest import sum_counts
from maskmill.storage.paths import path_from
from maskmill.text.shards import ShardKind

_KINDS: tuple[ShardKind, ...] = ("train", "eval")


def close_examples(
    shards: Sequence[ExampleShard],
    setup: ExamplesSetup,
    *,
    parameters: Mapping[str, Any],
    decided: Mapping[str, Any],
    output: str,
) -> None:
    """Write the manifest of example shards, the indexes of MDS and a copy of the vocabulary.

    Deletes what older builds left over.

    shards: all, in any order. parameters, decided: all options, and what was decided where they leave it open, for the
    manifest.

    Raises:
      RunFailedError: there is no example, or the vocabulary has changed since the examples were made.
    """
    ordered = sorted(shards, key=lambda s: (s.kind != "train", s.number, s.name))
    counts: dict[str, dict[str, int]] = {}
    for kind in _KINDS:
        of_kind = [s for s in ordered if s.kind == kind]
        if of_kind:
            totals = sum_counts(s.counts for s in of_kind)
            counts[kind] = {"shards": len(of_kind)} | totals | {"bytes": sum(s.size for s in of_kind)}
    _refuse_nothing(next(iter(counts.values())), setup, output)
    data = _for_readers(setup, output)
    texts = {path: (s.text_bytes, sha256) for s in ordered for path, sha256 in s.inputs.items()}
    texts[setup.vocab_file] = data["vocabulary"]["bytes"], setup.vocab_sha256
    manifest.write_manifest(
        output,
        stage="examples",
        parameters=dict(parameters) | {"unicode": setup.masking.unicode},
        decided=decided,
        inputs=[{"path": path, "bytes": size, "sha256": sha256} for path, (size, sha256) in texts.items()],
        shards=[_shard_entry(s, setup, output) for s in ordered],
        counts=counts,
        data=data,
    )
    vocabulary = setup.vocabulary()
    listed = [ListedFile(s.kind, name_below(output, file.path), file) for s in ordered for file in s.files]
    listings = setup.plan.shard_format.listings(listed, lambda width: setup.plan.columns(vocabulary, width))
    for name, content in listings.items():
        files.write_bytes(files.join(output, name), content)
    written = [part for s in ordered for file in s.files for part in (file, file.index) if part is not None]
    names = [name_below(output, part.path) for part in written] + list(listings)
    # The names that the example shards of any build have; files that fit and are not of this build are swept.
    in_output = [pattern for format in all_formats() if not format.in_folders for pattern in format.patterns]
    in_folders = [f"{folder}/{name}" for folder in setup.plan.folders for name in setup.plan.shard_format.patterns]
    manifest.sweep(
        output,
        keep=names,
        patterns=(*in_output, *in_folders),
        records={example_shards.KIND: [s.key for s in ordered]},
    )


def _refuse_nothing(counts: Mapping[str, int], setup: ExamplesSetup, output: str) -> None:
    """Raise RunFailedError if the text of a split, whose counts these are, has given no example."""
    if counts["examples"]:
        return
    length = setup.masking.max_seq_length
    why = "a pair takes two tokens of a document; take a text with longer documents"
    if counts.get("dropped_tokens"):
        why = (
            f"with --block_remainder drop, what does not fill a row of {length:,} is left out; take more text, a "
            "smaller --max_seq_length, or --block_remainder carry"
        )
    raise RunFailedError(f"{output}: no example was made of the text, which has {counts['tokens']:,} tokens: {why}.")


def _for_readers(setup: ExamplesSetup, output: str) -> dict[str, Any]:
    """Return what a manifest tells readers of examples: their format, their columns, their vocabulary, which it
    copies.
    """
    vocabulary = setup.vocabulary()
    schema = setup.plan.schema(vocabulary.size, marks_words=vocabulary.marks_words)
    return {"format": setup.format.format, "schema": schema} | _copy_vocabulary(setup, output)


def _copy_vocabulary(setup: ExamplesSetup, output: str) -> dict[str, Any]:
    """Copy the vocabulary's file to the examples; return what a manifest tells readers of the vocabulary."""
    content = files.read_bytes(setup.vocab_file)
    if hashlib.sha256(content).hexdigest() != setup.vocab_sha256:
        raise RunFailedError(
            f"{setup.vocab_file}: this vocabulary has changed since the examples were made with it; put the old one "
            "back, and run the same command again."
        )
    name = TOKENIZER_FILE if setup.is_tokenizer else VOCAB_FILE
    path = files.join(output, name)
    if files.read_if_there(path) != content:
        files.write_bytes(path, content)
    vocabulary = setup.vocabulary()
    return {
        "special_ids": vocabulary.special_ids,
        "vocabulary_size": vocabulary.size,
        "vocabulary": {"name": name, "bytes": len(content), "sha256": setup.vocab_sha256},
    }


def _shard_entry(shard: ExampleShard, setup: ExamplesSetup, output: str) -> dict[str, Any]:
    seed = setup.plan_of(shard.kind, shard.number).masking.random_seed
    entry: dict[str, Any] = {"kind": shard.kind, "random_seed": seed, "inputs": dict(shard.inputs)}
    entry |= shard.counts
    if setup.plan.shard_format.reads_text:
        entry["text"] = path_from(output, *shard.inputs)
    if len(shard.files) == 1 and shard.files[0].bin is None:
        return entry | _file_entry(shard.files[0], output)
    listed = []
    for file in shard.files:
        described = _file_entry(file, output) | {"examples": file.examples}
        if file.bin is not None:
            described |= {"bin": file.bin, "width": file.width}
        listed.append(described)
    return entry | {"name": shard.name, "bytes": shard.size, "files": listed}


def _file_entry(file: ExampleFile, output: str) -> dict[str, Any]:
    """Return a file as a manifest lists it."""
    entry = {"name": name_below(output, file.path), "bytes": file.size, "sha256": file.sha256}
    if file.index is not None:
        entry |= {"index": name_below(output, file.index.path), "index_sha256": file.index.sha256}
    if file.records_sha256 is not None:
        entry["records_sha256"] = file.records_sha256
    return entry


def close_picked(picked: PickedExamples | None, parameters: Mapping[str, Any], output: str) -> None:
    """Write the manifest of the picked eval examples, of which there may be none, and a copy of the vocabulary.

    Sweeps what is left over. The manifest's `examples` are the options that the examples were made with, because its
    `parameters` are those of the picking.

    Raises:
      RunFailedError: the vocabulary has changed since the examples were made.
    """
    counts = {"available": 0, "picked": 0, "bytes": 0}
    inputs: list[dict[str, Any]] = []
    shards: list[dict[str, Any]] = []
    data: dict[str, Any] = {}
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
        setup = picked.setup
        options = dataclasses.asdict(setup.masking) | dataclasses.asdict(setup.objective)
        columns = {name: getattr(setup.plan.format, name) for name in ("feature_names", "special_tokens_mask")}
        data = {"examples": options | columns}
        data |= _for_readers(setup, output)
    manifest.write_manifest(
        output,
        stage="eval",
        parameters=parameters,
        inputs=inputs,
        shards=shards,
        counts={"eval": counts},
        data=data,
    )
    manifest.sweep(output, keep=[s["name"] for s in shards], patterns=("*.tfrecord",), records={})
