"""examples: text shards → shards of masked training examples, each with its index, and manifest.json."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam

from pipelines import environments, runner
from pipelines.masking import masking_options
from pipelines.stage_options import ExamplesOptions, parameters
from transforms.errors import UnusableInputError
from transforms.grouping import GroupAll
from transforms.records import example_shards
from transforms.records.example_shards import ExampleShard, ExamplesSetup, WriteExamples, describe_text_shard
from transforms.shards import text_shards
from transforms.storage import completions, files, manifest
from transforms.tokenization.vocabulary import load_vocabulary


def examples_setup(options: ExamplesOptions) -> ExamplesSetup:
    """What decides the shards' examples; reads the vocabulary to check it."""
    masking = masking_options(options, options.compat)
    load_vocabulary(options.vocab_file, masking.duplicate_pieces)
    return ExamplesSetup(
        vocab_file=options.vocab_file,
        vocab_sha256=files.sha256_of(options.vocab_file),
        masking=masking,
        one_seed=options.compat != "none",
        packed=options.packed,
    )


@dataclasses.dataclass(kw_only=True, eq=False)
class MakeExamples(beam.PTransform):
    """The whole stage.

    Input: TextShard. Output: ExampleShard.
    """

    options: ExamplesOptions
    setup: ExamplesSetup

    def expand(self, texts: beam.PCollection) -> beam.PCollection:
        shards = texts | "WriteExamples" >> WriteExamples(setup=self.setup, output=self.options.output)
        _ = shards | "AllShards" >> GroupAll() | "Close" >> beam.Map(close_examples, self.options, self.setup)
        return shards


def close_examples(shards: Sequence[ExampleShard], options: ExamplesOptions, setup: ExamplesSetup) -> None:
    """Writes the manifest once all shards are there, and sweeps what is left over."""
    ordered = sorted(shards, key=lambda s: (s.kind != "train", s.number, s.path))
    counts = {}
    for kind in ("train", "eval"):
        mine = [s for s in ordered if s.kind == kind]
        if mine:
            totals = text_shards.sum_counts(s.counts for s in mine)
            counts[kind] = {"shards": len(mine)} | totals | {"bytes": sum(s.size for s in mine)}
    texts = {path: sha256 for s in ordered for path, sha256 in s.inputs.items()}
    inputs = [{"path": path, "bytes": files.size(path), "sha256": sha256} for path, sha256 in texts.items()]
    inputs.append({"path": setup.vocab_file, "bytes": files.size(setup.vocab_file), "sha256": setup.vocab_sha256})
    manifest.write_manifest(
        options.output,
        stage="examples",
        parameters=parameters(options) | {"unicode": setup.masking.unicode},
        inputs=inputs,
        shards=[_entry(s, setup) for s in ordered],
        counts=counts,
    )
    names = [p for s in ordered for p in (s.path, s.index_path) if p]
    manifest.sweep(
        options.output,
        keep=[files.base_name(p) for p in names],
        patterns=("*.tfrecord", "*.tfrecord.idx", "*.tfrecord.gz"),
        records={example_shards.KIND: [s.key for s in ordered]},
    )


def _entry(shard: ExampleShard, setup: ExamplesSetup) -> dict[str, Any]:
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


def find_texts(patterns: Sequence[str]) -> list[files.FileInfo]:
    """The text shards that patterns name; a directory made by extract stands for its shards."""
    expanded: list[str] = []
    for pattern in patterns:
        if files.exists(files.join(pattern, manifest.MANIFEST)):
            shards = manifest.read_manifest(pattern)["shards"]
            expanded += [files.join(pattern, s["name"]) for s in shards if s["bytes"]]
        else:
            expanded.append(pattern)
    found = files.match(expanded)
    paths: dict[str, str] = {}
    for file in found:
        other = paths.setdefault(files.base_name(file.path), file.path)
        if other != file.path:
            raise UnusableInputError(
                f"{file.path} and {other} would become one shard; rename one, or take two outputs."
            )
    return found


def claim(options: ExamplesOptions) -> None:
    """Claims the output for these options.

    Raises:
      UnusableInputError: it belongs to something else, or cannot be written.
    """
    manifest.prepare_output(options.output, "examples", parameters(options))


def plan_examples(texts: Sequence[files.FileInfo], output: str) -> None:
    """Notes for the progress display how much there is to do."""
    size = sum(t.size for t in texts)
    completions.store(output, "plan", example_shards.KIND, {"pieces": len(texts), "bytes": size})


def stages(output: str) -> list[runner.Stage]:
    """What the progress display follows."""
    return [runner.Stage(label="examples", output=output, kind=example_shards.KIND)]


def run(options: ExamplesOptions, beam_arguments: Sequence[str] = ()) -> Mapping[str, Any]:
    """Runs the stage to its end and returns its manifest (empty where Beam's flags ask only for a description)."""
    texts = find_texts(options.input)
    setup = examples_setup(options)
    # A shard grows about 18-fold at dupe 10: count it as that much work.
    size = 10 * sum(t.size for t in texts)
    paths = (*options.input, options.vocab_file, options.output)
    beam_options = runner.pipeline_options(beam_arguments, input_bytes=size, pieces=len(texts), paths=paths)
    if not environments.is_dry_run(beam_options):
        claim(options)
        plan_examples(texts, options.output)
    done = runner.run(
        lambda p: (
            p
            | "Patterns" >> beam.Create([options.input])
            | "Find" >> beam.FlatMap(lambda patterns: enumerate(t.path for t in find_texts(patterns)))
            | "SpreadInputs" >> beam.Reshuffle()
            | "Describe" >> beam.Map(describe_text_shard)  # TextShard
            | "Examples" >> MakeExamples(options=options, setup=setup)
        ),
        beam_options,
        stages(options.output),
    )
    return manifest.read_manifest(options.output) if done else {}
