"""examples: text shards → shards of masked training examples, each with its index, and manifest.json."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import apache_beam as beam

from pipelines import runner
from pipelines.options import option
from transforms import completions, example_shards, files, manifest, text_shards
from transforms.example_shards import ExampleShard, ExamplesSetup, WriteExamples, describe_text_shard
from transforms.pretraining_examples import MaskingOptions
from transforms.text_shards import GroupAll
from transforms.vocabulary import load_vocabulary


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskingFlags:
    """The reference's own options, shared by `examples` and `create-pretraining-data`."""

    vocab_file: str = option(help="WordPiece vocabulary, one piece a line")
    do_lower_case: bool = option(True, help="lower-case the text: True for uncased models")
    do_whole_word_mask: bool = option(False, help="mask all pieces of a word together")
    max_seq_length: int = option(128, help="longest sequence, in tokens")
    max_predictions_per_seq: int = option(20, help="most masked positions of a sequence")
    random_seed: int = option(12345, help="seed of all random decisions")
    dupe_factor: int = option(10, help="how often each document is used, with other masks each time")
    masked_lm_prob: float = option(0.15, help="share of the tokens to predict")
    short_seq_prob: float = option(0.1, help="share of the sequences that are made shorter than the longest")

    def masking(self, compat: str) -> MaskingOptions:
        """The step's options: the Unicode tables and the rule for duplicate vocabulary entries follow `compat`."""
        names = [f.name for f in dataclasses.fields(MaskingFlags) if f.name != "vocab_file"]
        return MaskingOptions(
            **{n: getattr(self, n) for n in names},
            unicode="15.1.0" if compat == "none" else "11.0.0",
            duplicate_pieces="last" if compat == "google" else "first",
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesOptions(MaskingFlags):
    """The options of `maskmill examples`."""

    input: tuple[str, ...] = option(help="text shards: paths, globs, comma lists; or the directory that extract made")
    output: str = option(help="directory of the example shards")
    compat: Literal["none", "mlperf", "google"] = option(
        "none", help="whose records to reproduce; none: a seed of its own for each shard, current Unicode tables"
    )
    packed: bool = option(False, help="gzip the TFRecords (they then have no index)")

    def __post_init__(self) -> None:
        self.masking(self.compat)

    def setup(self) -> ExamplesSetup:
        """What decides the shards' examples; reads the vocabulary to check it."""
        load_vocabulary(self.vocab_file)
        return ExamplesSetup(
            vocab_file=self.vocab_file,
            vocab_sha256=files.sha256_of(self.vocab_file),
            masking=self.masking(self.compat),
            one_seed=self.compat != "none",
            packed=self.packed,
        )

    def parameters(self) -> dict[str, Any]:
        """What shapes the data, for the manifest."""
        values = manifest.as_dict(self)
        del values["output"]
        return values


@dataclasses.dataclass(frozen=True, kw_only=True)
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
    inputs.append(
        {"path": setup.vocab_file, "bytes": files.size(setup.vocab_file), "sha256": setup.vocab_sha256}
    )
    manifest.write_manifest(
        options.output,
        stage="examples",
        parameters=options.parameters() | {"unicode": setup.masking.unicode},
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
    return files.match(expanded)


def prepare(options: ExamplesOptions) -> ExamplesSetup:
    """Checks the vocabulary and claims the output."""
    setup = options.setup()
    manifest.check_writable(options.output)
    manifest.prepare_output(options.output, "examples", options.parameters())
    return setup


def plan_examples(texts: Sequence[files.FileInfo], output: str) -> None:
    """Notes for the progress display how much there is to do."""
    size = sum(t.size for t in texts)
    completions.store(output, "plan", example_shards.KIND, {"pieces": len(texts), "bytes": size})


def stages(output: str) -> list[runner.Stage]:
    """What the progress display follows."""
    return [runner.Stage(label="examples", output=output, kind=example_shards.KIND)]


def run(options: ExamplesOptions, beam_arguments: Sequence[str] = ()) -> Mapping[str, Any]:
    """Runs the stage to its end and returns its manifest."""
    texts = find_texts(options.input)
    setup = prepare(options)
    plan_examples(texts, options.output)
    # A shard grows about 18-fold at dupe 10: count it as that much work.
    beam_options = runner.pipeline_options(beam_arguments, input_bytes=10 * sum(t.size for t in texts))
    runner.run(
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
    return manifest.read_manifest(options.output)
