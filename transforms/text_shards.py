"""Fragments → text shards and the eval set: the plan from the documents' tables alone, then each shard on its own.

Shard boundaries count text bytes and eval membership depends on a document's id, so neither the container of the
input nor the way it was cut into units changes a byte of a shard.
"""

import dataclasses
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from transforms import completions, files
from transforms.errors import UnusableInputError
from transforms.extraction import ExtractionOptions, Fragment, merge_ranges, read_ranges, read_table

KIND = "text"
MEGABYTE = 1 << 20

ShardKind = Literal["train", "eval"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitOptions:
    """How documents become shards. With neither count nor fraction no document is held out."""

    shard_size_mb: float = 27.0
    num_eval_articles: int | None = None
    eval_fraction: float | None = None

    def __post_init__(self) -> None:
        if self.shard_size_mb <= 0:
            raise UnusableInputError(f"--shard_size_mb must be positive, not {self.shard_size_mb}.")
        if self.num_eval_articles is not None and self.eval_fraction is not None:
            raise UnusableInputError("--num_eval_articles and --eval_fraction exclude each other; give one of them.")
        if self.num_eval_articles is not None and self.num_eval_articles < 0:
            raise UnusableInputError(f"--num_eval_articles must be 0 or more, not {self.num_eval_articles}.")
        if self.eval_fraction is not None and not 0 <= self.eval_fraction < 1:
            raise UnusableInputError(f"--eval_fraction must be at least 0 and below 1, not {self.eval_fraction}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShardPlan:
    """What goes into a shard: byte ranges of fragments, in order."""

    name: str
    kind: ShardKind
    number: int
    documents: int
    sentences: int
    size: int
    pieces: tuple[tuple[Fragment, npt.NDArray[np.int64]], ...]  # ranges: [k, 2], start and end

    @property
    def inputs(self) -> dict[str, str]:
        """The input files the shard draws from, each with its sha256."""
        return {f.batch.file.path: f.batch.file.sha256 for f, _ in self.pieces}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextShard:
    """The description of a text shard: one sentence a line, a blank line after each document."""

    path: str
    kind: ShardKind
    number: int
    size: int
    sha256: str
    documents: int
    sentences: int
    inputs: Mapping[str, str]
    key: str


def choose_eval(hashes: npt.NDArray[np.uint64], options: SplitOptions) -> npt.NDArray[np.bool_]:
    """Marks the documents of the eval set, [documents].

    With a fraction a document is in when its hash is below the threshold, whatever else the corpus holds, so
    membership never changes when the data is rebuilt. With a count the smallest hashes are in.

    Raises:
      UnusableInputError: the count is more than there are documents.
    """
    chosen = np.zeros(len(hashes), bool)
    if options.eval_fraction is not None:
        return hashes < np.uint64(min(int(options.eval_fraction * 2**64), 2**64 - 1))
    wanted = options.num_eval_articles or 0
    if wanted > len(hashes):
        raise UnusableInputError(
            f"--num_eval_articles {wanted} is more than the {len(hashes)} articles there are; ask for fewer."
        )
    chosen[np.argsort(hashes, kind="stable")[:wanted]] = True
    return chosen


def cut_shards(sizes: npt.NDArray[np.int64], shard_bytes: float) -> npt.NDArray[np.int64]:
    """Gives each document the number of its shard, [documents], for even shards of at most about `shard_bytes`.

    A document belongs to the shard in whose share of the text it starts; shards in which none starts do not count.
    """
    if not len(sizes):
        return np.zeros(0, np.int64)
    total = int(sizes.sum())
    wanted = max(1, math.ceil(total / shard_bytes))
    starts = np.cumsum(sizes) - sizes
    # starts · wanted stays below 2^63 for 9·10^18 bytes · shards: 16 TB of text in 500,000 shards.
    numbers = (starts * wanted) // max(1, total)
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def plan_text_shards(fragments: Iterable[Fragment], options: SplitOptions, output: str) -> list[ShardPlan]:
    """Plans all shards from the fragments' tables.

    Raises:
      UnusableInputError: no document is left for training, or fewer than the eval set needs.
    """
    ordered = sorted(fragments, key=lambda f: f.batch.number)
    tables = [read_table(output, f) for f in ordered]
    table = np.concatenate(tables)
    owner = np.repeat(np.arange(len(ordered)), [len(t) for t in tables])
    if not len(table):
        raise UnusableInputError(
            f"No article is left of {_inputs_text(ordered)} after the filters ({_counts_text(ordered)}); check the "
            "input and --namespaces."
        )
    held_out = choose_eval(table["hash"], options)
    if held_out.all():
        raise UnusableInputError(f"All {len(table)} articles fall into the eval set; hold out fewer.")
    plans = [
        *_plan_kind("train", table, owner, np.flatnonzero(~held_out), ordered, options),
        *_plan_kind("eval", table, owner, np.flatnonzero(held_out), ordered, options),
    ]
    completions.store(output, "plan", KIND, {"pieces": len(plans), "bytes": int(table["size"].sum())})
    return plans


def _plan_kind(
    kind: ShardKind,
    table: npt.NDArray[Any],
    owner: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    fragments: Sequence[Fragment],
    options: SplitOptions,
) -> list[ShardPlan]:
    numbers = cut_shards(table["size"][rows].astype(np.int64), options.shard_size_mb * MEGABYTE)
    count = max(1, int(numbers.max()) + 1 if len(numbers) else 0)
    bounds = np.searchsorted(numbers, np.arange(count + 1))
    plans = []
    for number in range(count):
        mine = rows[bounds[number] : bounds[number + 1]]
        pieces = []
        for fragment in np.unique(owner[mine]).tolist():
            pieces.append((fragments[fragment], merge_ranges(table[mine[owner[mine] == fragment]])))
        plans.append(
            ShardPlan(
                name=shard_name(kind, number, count),
                kind=kind,
                number=number,
                documents=len(mine),
                sentences=int(table["sentences"][mine].sum()),
                size=int(table["size"][mine].sum()),
                pieces=tuple(pieces),
            )
        )
    return plans


def shard_name(kind: ShardKind, number: int, count: int) -> str:
    """`part-00003-of-00010` for training text; `eval.txt`, or its shards' names where it is cut."""
    if kind == "train":
        return f"part-{number:05d}-of-{count:05d}"
    return "eval.txt" if count == 1 else f"eval-{number:05d}-of-{count:05d}.txt"


def _inputs_text(fragments: Sequence[Fragment]) -> str:
    paths = sorted({f.batch.file.path for f in fragments})
    return paths[0] if len(paths) == 1 else f"{len(paths)} files"


def _counts_text(fragments: Sequence[Fragment]) -> str:
    return ", ".join(f"{n.replace('_', ' ')} {v}" for n, v in sum_counts(f.counts for f in fragments).items())


def sum_counts(all_counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Adds up counts by name, names sorted."""
    total: dict[str, int] = {}
    for counts in all_counts:
        for name, value in counts.items():
            total[name] = total.get(name, 0) + value
    return dict(sorted(total.items()))


def assemble_text_shard(plan: ShardPlan, extraction: ExtractionOptions, output: str) -> TextShard:
    """Writes a shard from its fragments, unless it is there already with the same content."""
    path = files.join(output, plan.name)
    pieces = [(f.key, ranges) for f, ranges in plan.pieces]
    key = completions.fingerprint(KIND, completions.FORMAT_VERSIONS["text"], plan.name, pieces)
    record = completions.once(
        output,
        KIND,
        key,
        lambda: _write_shard(path, plan, extraction, output),
        lambda record: [(plan.name, record["size"], record["sha256"])],
    )
    return TextShard(
        path=path,
        kind=plan.kind,
        number=plan.number,
        size=record["size"],
        sha256=record["sha256"],
        documents=plan.documents,
        sentences=plan.sentences,
        inputs=plan.inputs,
        key=key,
    )


def _write_shard(path: str, plan: ShardPlan, extraction: ExtractionOptions, output: str) -> dict[str, Any]:
    hashes: list[str] = []
    with files.new_file(path) as file:
        for fragment, ranges in plan.pieces:
            for block in read_ranges(fragment, ranges, extraction, output):
                file.write(block)
                if plan.kind == "eval":
                    hashes += (article_md5(a) for a in block.split(b"\n\n") if a)
    return {"size": file.size, "sha256": file.sha256, "md5": hashes}


def article_md5(article: bytes) -> str:
    """The hash of an article in eval.md5: of its text without the white space at its end, as MLPerf's split does."""
    return hashlib.md5(article.decode().rstrip().encode()).hexdigest()


def write_eval_md5(shards: Iterable[TextShard], output: str) -> None:
    """Writes eval.md5, one hash an article in the order of the eval text."""
    lines: list[str] = []
    for shard in sorted((s for s in shards if s.kind == "eval"), key=lambda s: s.number):
        record = completions.load(output, KIND, shard.key)
        if record is None:
            raise FileNotFoundError(f"the completion record of {shard.path}")
        lines += record["md5"]
    files.write_bytes(files.join(output, "eval.md5"), "".join(f"{h}\n" for h in lines).encode())


@dataclasses.dataclass(kw_only=True, eq=False)
class PlanTextShards(beam.PTransform):
    """Plans the shards once all fragments are known.

    Input: Fragment. Output: ShardPlan.
    """

    split: SplitOptions
    output: str

    def expand(self, fragments: beam.PCollection) -> beam.PCollection:
        return (
            fragments
            | "Together" >> GroupAll()
            | "Plan" >> beam.FlatMap(plan_text_shards, self.split, self.output)  # ShardPlan
        )


@dataclasses.dataclass(kw_only=True, eq=False)
class AssembleTextShards(beam.PTransform):
    """Writes planned shards.

    Input: ShardPlan. Output: TextShard, the description of the file written.
    """

    extraction: ExtractionOptions
    output: str

    def expand(self, plans: beam.PCollection) -> beam.PCollection:
        return (
            plans
            | "Spread" >> beam.Reshuffle()
            | "Assemble" >> beam.Map(assemble_text_shard, self.extraction, self.output)  # TextShard
        )


class GroupAll(beam.PTransform):
    """Brings all descriptions of a collection together as one list (order not given): they are small and few."""

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        return (
            elements
            | "OneKey" >> beam.Map(lambda element: (0, element))
            | "Group" >> beam.GroupByKey()
            | "List" >> beam.Map(lambda keyed: list(keyed[1]))
        )
