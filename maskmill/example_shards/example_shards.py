"""Text shards → shards of training examples → picked eval examples.

A shard's random decisions come from (seed, kind, number) and nothing else, so it does not matter which worker makes
it, or how often.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, cast

from maskmill.errors import UnusableInputError
from maskmill.masking.kernels.pairs import SPECIAL_PIECES
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.masking.seeds import shard_seed
from maskmill.records.eval_picking import pick_examples
from maskmill.records.examples import ExampleFile, write_example_files
from maskmill.records.options import FormatOptions
from maskmill.records.plan import ExamplesPlan
from maskmill.records.tfrecord import WrittenFile
from maskmill.records.tokenizing import load_tokenization
from maskmill.storage import completions, files, manifest
from maskmill.text.shards import ShardKind, TextShard
from maskmill.tokenization.tokenized_text import LoadedTokenizer
from maskmill.tokenization.vocabulary import Vocabulary

KIND = "examples"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesSetup:
    """Options that decide a shard's examples, apart from its text.

    Attributes:
      vocab_file, vocab_sha256: the vocabulary and its checksum, in hexadecimal.
      is_tokenizer: whether the vocabulary is a tokenizer.json, and no vocab.txt.
      masking, objective: how examples are made.
      format: what files they become.
      one_seed: whether all shards have the seed of `masking`, as in the reference; else each has its own, `shard_seed`.
      packed: whether to gzip the TFRecords; a packed shard has no index.
    """

    vocab_file: str
    vocab_sha256: str
    masking: MaskingOptions
    objective: ObjectiveOptions = ObjectiveOptions()
    format: FormatOptions = FormatOptions()
    one_seed: bool
    packed: bool
    is_tokenizer: bool = False

    @property
    def plan(self) -> ExamplesPlan:
        """The plan of all shards, but for the seeds that they have of their own."""
        return ExamplesPlan(masking=self.masking, objective=self.objective, format=self.format)

    def plan_of(self, kind: ShardKind, number: int) -> ExamplesPlan:
        """Return the plan of a shard, with its seed."""
        if self.one_seed:
            return self.plan
        seed = shard_seed(self.masking.random_seed, kind, number)
        return dataclasses.replace(self.plan, masking=dataclasses.replace(self.masking, random_seed=seed))

    def loaded(self) -> LoadedTokenizer:
        """Return the vocabulary and its tokenizer, loaded once in a process."""
        return _loaded(self.vocab_file, self.vocab_sha256, self.masking, self.is_tokenizer)

    def vocabulary(self) -> Vocabulary:
        """Return the vocabulary."""
        return self.loaded().vocabulary


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExampleShard:
    """The description of the examples of a text shard.

    Attributes:
      files: one, or one for each bin with examples, or MDS shards of limited size; none if there is no example.
      kind, number, name: those of the text shard.
      counts: the fields of ExampleCounts that apply.
      inputs: the text shard's path, and its sha256. text_bytes: its size.
      key: of the completion record.
      setup: what decided the examples.
    """

    files: tuple[ExampleFile, ...]
    kind: ShardKind
    number: int
    name: str
    counts: Mapping[str, int]
    inputs: Mapping[str, str]
    key: str
    setup: ExamplesSetup = dataclasses.field(compare=False)
    text_bytes: int = 0

    @property
    def size(self) -> int:
        """Bytes of all files, indexes aside."""
        return sum(file.size for file in self.files)


@functools.lru_cache(maxsize=2)  # a worker makes many shards with one vocabulary
def _loaded(path: str, sha256: str, masking: MaskingOptions, is_tokenizer: bool) -> LoadedTokenizer:
    return load_tokenization(path, masking, is_tokenizer=is_tokenizer)


def write_example_shard(shard: TextShard, setup: ExamplesSetup, output: str) -> ExampleShard:
    """Make the examples of a text shard and write them to the directory `output`.

    Files of an earlier run are kept where they were made from the same text, vocabulary and options and still have
    the content that they were written with.

    Raises:
      UnusableInputError: the text or the vocabulary cannot be used.
      RunFailedError: a file cannot be written.
    """
    plan = setup.plan_of(shard.kind, shard.number)
    name = files.base_name(shard.path)
    key = _key(shard, setup, plan, name)
    record = completions.once(
        output,
        KIND,
        key,
        lambda: _write(shard, setup, plan, output),
        lambda record: completions.ItemFiles(written=[tuple(file) for file in record["files"]]),
        name=name + _tfrecord_suffix(setup) if plan.format.format == "tfrecord" else name,
    )
    return ExampleShard(
        files=tuple(_files_of(record, plan, output)),
        kind=shard.kind,
        number=shard.number,
        name=name,
        counts=_counts_of(record, plan),
        inputs={shard.path: shard.sha256},
        key=key,
        setup=setup,
        text_bytes=shard.size,
    )


def _tfrecord_suffix(setup: ExamplesSetup) -> str:
    return ".tfrecord.gz" if setup.packed else ".tfrecord"


def _key(shard: TextShard, setup: ExamplesSetup, plan: ExamplesPlan, name: str) -> str:
    """Return the key of a shard's completion record."""
    source: tuple[Any, ...] = (shard.sha256, setup.vocab_sha256)
    if setup.is_tokenizer:
        source += (setup.vocabulary().special_ids,)  # files beside the tokenizer.json may name them
    version = completions.FORMAT_VERSIONS["examples"]
    if _is_reference(plan):
        # The key of versions that knew nothing else: what they made need not be made again.
        return completions.fingerprint(KIND, version, source, plan.exact_masking, name + _tfrecord_suffix(setup))
    # FORMAT_VERSIONS counts what changes in the reference's TFRecords.
    return completions.fingerprint(
        KIND, (version, plan.shard_format.version), source, plan, setup.packed, shard.kind, name
    )


def _is_reference(plan: ExamplesPlan) -> bool:
    """Return whether a shard is one TFRecord, as create_pretraining_data.py writes it."""
    return plan.is_exact and plan.format == FormatOptions() and plan.objective.bins is None


def _write(shard: TextShard, setup: ExamplesSetup, plan: ExamplesPlan, output: str) -> dict[str, Any]:
    """Write a shard's examples; return the completion record.

    files: name below `output`, size and checksum of each file, an index after its TFRecord. examples: for each file
    but the indexes its bin, its width and the number of its examples, and its records_sha256 if it has one.
    """
    prefixes = [files.join(output, name) for name in _prefixes(shard, plan)]
    written, counts = write_example_files(
        [shard.path],
        prefixes,
        setup.loaded(),
        plan,
        indexes=plan.format.format == "tfrecord" and not setup.packed,
        packed=setup.packed,
        checksum=True,
    )
    shard.check_unchanged()
    listed = [part for file in written for part in (file, file.index) if part is not None]
    record = {
        "files": [[name_below(output, file.path), file.size, file.sha256] for file in listed],
        "counts": counts.by_name,
    }
    if _is_reference(plan):
        return record
    named = [[] if file.records_sha256 is None else [file.records_sha256] for file in written]
    examples = [[file.bin, file.width, file.examples, *more] for file, more in zip(written, named, strict=True)]
    return record | {"examples": examples}


def _prefixes(shard: TextShard, plan: ExamplesPlan) -> list[str]:
    """Return the names of a shard's files below the directory, without what the format adds: one for each bin."""
    name = files.base_name(shard.path)
    bins = plan.objective.bins
    if folders := plan.folders_of(shard.kind):
        return [f"{folder}/{name}" for folder in folders]
    return [name] if bins is None else [f"{name}.bin-{number}" for number in range(bins)]


def name_below(output: str, path: str) -> str:
    """Return a path below a directory, as a name with folders."""
    return path[len(files.join(output, "")) :]


def _files_of(record: Mapping[str, Any], plan: ExamplesPlan, output: str) -> list[ExampleFile]:
    """Return the files that a completion record tells of."""
    written = [WrittenFile(path=files.join(output, name), size=size, sha256=sha) for name, size, sha in record["files"]]
    indexes = {file.path: file for file in written if file.path.endswith(".idx")}
    parts = record.get("examples", [[None, plan.masking.max_seq_length, record["counts"]["examples"]]])
    return [
        ExampleFile(
            **vars(file),
            examples=examples,
            bin=number,
            width=width,
            index=indexes.get(f"{file.path}.idx"),
            records_sha256=records[0] if records else None,
        )
        for file, (number, width, examples, *records) in zip(
            [f for f in written if f.path not in indexes], parts, strict=True
        )
    ]


def _counts_of(record: Mapping[str, Any], plan: ExamplesPlan) -> dict[str, int]:
    """Return the counts of a completion record; records of older versions lack those that follow from the others."""
    counts = cast(dict[str, int], record["counts"])
    special = SPECIAL_PIECES * counts["examples"]
    places = plan.masking.max_seq_length * counts["examples"]
    older = {"special_tokens": special, "padding_tokens": places - special - counts["example_tokens"]}
    return (older if _is_reference(plan) else {}) | counts


def find_eval_shards(output: str, setup: ExamplesSetup) -> list[ExampleShard]:
    """Return the eval shards in a directory of examples, each one TFRecord, in order.

    Raises:
      UnusableInputError: there is no manifest.
    """
    listed = [entry for entry in manifest.read_manifest(output)["shards"] if entry["kind"] == "eval"]
    return [_made_shard(number, entry, output, setup) for number, entry in enumerate(listed)]


def _made_shard(number: int, entry: Mapping[str, Any], output: str, setup: ExamplesSetup) -> ExampleShard:
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class PickedExamples:
    """The description of the picked eval examples.

    path, size, sha256: of the TFRecord file; size in bytes. picked, available: how many examples were picked, of how
    many. inputs: the path of each shard that was read, and its sha256. setup: what decided the examples.
    """

    path: str
    size: int
    sha256: str
    picked: int
    available: int
    inputs: Mapping[str, str]
    setup: ExamplesSetup = dataclasses.field(compare=False)


def pick_eval(shards: Sequence[ExampleShard], wanted: int, strict: bool, output: str) -> PickedExamples | None:
    """Pick eval examples at even distance over the eval shards in order (MLPerf's pick_eval_samples.py).

    The eval set of a small corpus can be empty: then there is nothing to pick, and None is returned.

    Args:
      shards: all example shards; those of the eval set are read. Each is one TFRecord, or has no examples.
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
    of_eval = [file for shard in ordered for file in shard.files]
    written = pick_examples([file.path for file in of_eval], output, picked, available=available)
    if written.sha256 is None:
        raise ValueError(f"{output} was written without a checksum")
    return PickedExamples(
        path=output,
        size=written.size,
        sha256=written.sha256,
        picked=picked,
        available=available,
        inputs={file.path: str(file.sha256) for file in of_eval},
        setup=ordered[0].setup,
    )
