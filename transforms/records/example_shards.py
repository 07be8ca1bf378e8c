"""Text shards → shards of masked training examples → picked eval examples.

A shard's random decisions come from (seed, kind, number) and nothing else, so it does not matter which worker makes
it, or how often.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam

from transforms.errors import UnusableInputError
from transforms.grouping import GroupAll
from transforms.masking.options import MaskingOptions
from transforms.records.eval_picking import pick_examples
from transforms.records.examples import write_examples
from transforms.shards.text_shards import ShardKind, TextShard
from transforms.storage import completions, files
from transforms.tokenization.vocabulary import DuplicatePieces, Vocabulary, load_vocabulary

KIND = "examples"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesSetup:
    """What decides a shard's examples, apart from its text.

    Attributes:
      vocab_file, vocab_sha256: the vocabulary and its checksum, in hexadecimal.
      masking: how examples are made.
      one_seed: whether all shards have the seed of `masking`, as in the reference; else each has its own, `shard_seed`.
      packed: whether to gzip the TFRecords; a packed shard has no index.
    """

    vocab_file: str
    vocab_sha256: str
    masking: MaskingOptions
    one_seed: bool
    packed: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExampleShard:
    """The description of a TFRecord shard, and of its index where it has one.

    Attributes:
      path, size, sha256: of the TFRecord file; size in bytes.
      kind, number: those of the text shard.
      index_path, index_sha256: of the index.
      counts: the fields of ExampleCounts.
      inputs: the text shard's path, and its sha256.
      key: of the completion record.
    """

    path: str
    kind: ShardKind
    number: int
    size: int
    sha256: str
    index_path: str | None
    index_sha256: str | None
    counts: Mapping[str, int]
    inputs: Mapping[str, str]
    key: str


def shard_seed(seed: int, kind: ShardKind, number: int) -> int:
    """The seed of a shard: the first 8 bytes of sha256 of `seed:kind:number`."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{kind}:{number}".encode()).digest()[:8], "big")


@functools.lru_cache(maxsize=2)  # a worker makes many shards with one vocabulary
def _vocabulary(path: str, sha256: str, duplicate_pieces: DuplicatePieces) -> Vocabulary:
    return load_vocabulary(path, duplicate_pieces)


def write_example_shard(shard: TextShard, setup: ExamplesSetup, output: str) -> ExampleShard:
    """Masks a text shard and writes its examples to the directory `output`.

    Files of an earlier run are kept where they were made from the same text, vocabulary and options and still have
    the content that they were written with.

    Raises:
      UnusableInputError: the text or the vocabulary cannot be used.
      RunFailedError: a file cannot be written.
    """
    masking = setup.masking
    if not setup.one_seed:
        seed = shard_seed(masking.random_seed, shard.kind, shard.number)
        masking = dataclasses.replace(masking, random_seed=seed)
    suffix = ".tfrecord.gz" if setup.packed else ".tfrecord"
    name = files.base_name(shard.path) + suffix
    path = files.join(output, name)
    source = (shard.sha256, setup.vocab_sha256)
    key = completions.fingerprint(KIND, completions.FORMAT_VERSIONS["examples"], source, masking, name)
    record = completions.once(
        output, KIND, key, lambda: _write(shard, setup, masking, path), lambda record: record["files"]
    )
    (_, size, sha256), *others = record["files"]
    index_name, _, index_sha256 = others[0] if others else (None, 0, None)
    return ExampleShard(
        path=path,
        kind=shard.kind,
        number=shard.number,
        size=size,
        sha256=sha256,
        index_path=files.join(output, index_name) if index_name else None,
        index_sha256=index_sha256,
        counts=record["counts"],
        inputs={shard.path: shard.sha256},
        key=key,
    )


def _write(shard: TextShard, setup: ExamplesSetup, masking: MaskingOptions, path: str) -> dict[str, Any]:
    """Writes a shard's examples; returns the completion record."""
    vocabulary = _vocabulary(setup.vocab_file, setup.vocab_sha256, masking.duplicate_pieces)
    written, counts = write_examples(
        [shard.path], [path], vocabulary, masking, indexes=not setup.packed, packed=setup.packed, checksum=True
    )
    return {
        "files": [[files.base_name(f.path), f.size, f.sha256] for f in written],
        "counts": dataclasses.asdict(counts),
    }


@dataclasses.dataclass(kw_only=True, eq=False)
class WriteExamples(beam.PTransform):
    """Masks text shards and writes them as training examples.

    Input: TextShard (a description: path, kind, number, checksum). Output: ExampleShard, the description of the
    TFRecord file written, its records in the order of the reference's create_pretraining_data.py for the shard's seed.
    """

    setup: ExamplesSetup
    output: str

    def expand(self, shards: beam.PCollection) -> beam.PCollection:
        return (
            shards
            | "Spread" >> beam.Reshuffle()
            | "MaskAndWrite" >> beam.Map(write_example_shard, self.setup, self.output)  # ExampleShard
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PickedExamples:
    """The description of the picked eval examples.

    Attributes:
      path, size, sha256: of the TFRecord file; size in bytes.
      picked, available: how many examples were picked, of how many.
      inputs: the path of each shard that was read, and its sha256.
    """

    path: str
    size: int
    sha256: str
    picked: int
    available: int
    inputs: Mapping[str, str]


def pick_eval(shards: Sequence[ExampleShard], wanted: int, strict: bool, output: str) -> PickedExamples | None:
    """Picks eval examples at even distance over the eval shards in order (MLPerf's pick_eval_samples.py).

    The eval set of a small corpus can be empty: then there is nothing to pick, and None is returned.

    Args:
      shards: all example shards; those of the eval set are read.
      wanted: how many to pick.
      strict: whether it is an error if there are fewer than `wanted`; otherwise all are taken.
      output: path of the TFRecord.

    Raises:
      UnusableInputError: there are fewer examples than `wanted`, and `strict`; or a shard is missing or damaged.
    """
    ordered = sorted((s for s in shards if s.kind == "eval"), key=lambda s: s.number)
    available = sum(s.counts["examples"] for s in ordered)
    if strict and wanted and not available:
        raise UnusableInputError(
            f"The eval set is empty, so {wanted:,} eval examples cannot be picked; hold out articles with "
            "num_eval_articles."
        )
    picked = wanted if strict else min(wanted, available)
    if not picked:
        return None
    written = pick_examples([s.path for s in ordered], output, picked)
    if written.sha256 is None:
        raise ValueError(f"{output} was written without a checksum")
    return PickedExamples(
        path=output,
        size=written.size,
        sha256=written.sha256,
        picked=picked,
        available=available,
        inputs={s.path: s.sha256 for s in ordered},
    )


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
