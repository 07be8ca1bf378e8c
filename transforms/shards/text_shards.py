"""Fragments → text shards and the eval set: the plan from the documents' tables alone, then each shard on its own.

Shard boundaries count text bytes and eval membership depends on a document's id, so neither the container of the
input nor the way it was cut into units changes a byte of a shard. Where duplicate paragraphs are dropped, the plan
decides on them first, and then counts without them.
"""

import dataclasses
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from transforms.errors import UnusableInputError
from transforms.grouping import GroupAll
from transforms.shards import duplicates
from transforms.shards.fragments import (
    Fragment,
    cut_out,
    merge_ranges,
    read_paragraphs,
    read_ranges,
    read_table,
)
from transforms.shards.options import DEFAULT_SHARD_SIZE_MB, ExtractionOptions, SplitOptions
from transforms.storage import completions, files, progress

KIND = "text"
DUPLICATES = "duplicates"
MEGABYTE = 1 << 20

ShardKind = Literal["train", "eval"]


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


# A paragraph that is dropped: the number of its fragment in order, and its row's fields of duplicates.PARAGRAPHS.
_DROPPED = np.dtype([("fragment", "<i8"), ("offset", "<i8"), ("size", "<i4"), ("sentences", "<i4"), ("body", "<i4")])


def duplicates_key(fragments: Iterable[Fragment], extraction: ExtractionOptions) -> str:
    """What the decision on duplicate paragraphs depends on: the fragments in order, the options, the code's format."""
    keys = [f.key for f in sorted(fragments, key=lambda f: f.batch.number)]
    version = completions.FORMAT_VERSIONS["duplicates"]
    return completions.fingerprint(DUPLICATES, version, extraction.quality, keys)


def duplicate_counts(fragments: Iterable[Fragment], extraction: ExtractionOptions, output: str) -> dict[str, int]:
    """The paragraphs that were looked at and those that were dropped, by kind, once the plan is made."""
    record = completions.load(output, DUPLICATES, duplicates_key(fragments, extraction))
    if record is None:
        raise FileNotFoundError("the completion record of the duplicate paragraphs")
    return dict(record["counts"])


def _find_duplicates(ordered: Sequence[Fragment], extraction: ExtractionOptions, output: str) -> npt.NDArray[Any]:
    """The paragraphs of a build that are dropped, rows of _DROPPED in order: decided now, unless that is done."""
    key = duplicates_key(ordered, extraction)
    completions.once(output, DUPLICATES, key, lambda: _write_duplicates(ordered, extraction, output, key))
    return completions.read_table(output, DUPLICATES, key)


def _write_duplicates(
    ordered: Sequence[Fragment], extraction: ExtractionOptions, output: str, key: str
) -> dict[str, Any]:
    def numbered_blocks() -> Iterator[tuple[int, npt.NDArray[Any]]]:
        for number, fragment in enumerate(ordered):
            for block in read_paragraphs(fragment, extraction, output):
                yield number, block

    kinds = duplicates.decide(lambda: (block for _, block in numbered_blocks()), extraction.quality)
    dropped = [np.zeros(0, _DROPPED)]
    first = 0
    for number, block in numbered_blocks():
        rows = block[kinds[first : first + len(block)] != duplicates.STAYS]
        dropped.append(np.zeros(len(rows), _DROPPED))
        dropped[-1]["fragment"] = number
        for name in ("offset", "size", "sentences", "body"):
            dropped[-1][name] = rows[name]
        first += len(block)
    completions.write_table(output, DUPLICATES, key, np.concatenate(dropped))
    counts = {
        "exact_duplicates": (kinds == duplicates.EXACT).sum(),
        "near_duplicates": (kinds == duplicates.NEAR).sum(),
    }
    return {"counts": {"read": len(kinds)} | {name: int(count) for name, count in counts.items()}}


@dataclasses.dataclass(frozen=True)
class _Documents:
    """The documents of all fragments, in order.

    fragments: the descriptions. owner: the number of each document's fragment, [documents]. extents: their rows of
    TABLE as extracted. table: the same without the paragraphs that are dropped. dropped: these, rows of _DROPPED.
    """

    fragments: Sequence[Fragment]
    owner: npt.NDArray[np.int64]
    extents: npt.NDArray[Any]
    table: npt.NDArray[Any]
    dropped: npt.NDArray[Any]

    def pieces(self, rows: npt.NDArray[np.int64]) -> tuple[tuple[Fragment, npt.NDArray[np.int64]], ...]:
        """What is left of some documents: byte ranges of fragments."""
        found = []
        for number in np.unique(self.owner[rows]).tolist():
            ranges = merge_ranges(self.extents[rows[self.owner[rows] == number]])
            holes = self.dropped[slice(*np.searchsorted(self.dropped["fragment"], [number, number + 1]))]
            if len(holes):
                ranges = cut_out(ranges, np.stack([holes["offset"], holes["offset"] + holes["size"]], axis=1))
            found.append((self.fragments[number], ranges))
        return tuple(found)


def _read_documents(
    ordered: Sequence[Fragment], options: SplitOptions, extraction: ExtractionOptions, output: str
) -> _Documents:
    tables = [read_table(output, f) for f in ordered]
    table = np.concatenate(tables)
    owner = np.repeat(np.arange(len(ordered)), [len(t) for t in tables])
    if not extraction.quality.finds_duplicates:
        table = table[: options.max_documents]
        return _Documents(ordered, owner[: options.max_documents], table, table, np.zeros(0, _DROPPED))
    dropped = _find_duplicates(ordered, extraction, output)
    # Places in the text of all fragments, one after another.
    before = np.cumsum([0, *(f.size for f in ordered)])
    places = before[dropped["fragment"]] + dropped["offset"]
    document = np.searchsorted(before[owner] + table["offset"], places, side="right") - 1
    kept = table.copy()
    np.subtract.at(kept["size"], document, dropped["size"])
    np.subtract.at(kept["sentences"], document, dropped["sentences"])
    lost = table["sentences"] - kept["sentences"]
    is_left = np.ones(len(table), bool)
    # A title alone is no document.
    is_left[document] = lost[document] < dropped["body"]
    if options.max_documents is not None:
        is_left[options.max_documents :] = False
    return _Documents(ordered, owner[is_left], table[is_left], kept[is_left], dropped)


def plan_text_shards(
    fragments: Iterable[Fragment], options: SplitOptions, extraction: ExtractionOptions, output: str
) -> list[ShardPlan]:
    """Plans all shards from the fragments' tables.

    Raises:
      UnusableInputError: no document is left for training, or fewer than the eval set needs.
    """
    ordered = sorted(fragments, key=lambda f: f.batch.number)
    documents = _read_documents(ordered, options, extraction, output)
    table = documents.table
    if not len(table):
        raise UnusableInputError(
            f"No article is left of {_inputs_text(ordered)} after the filters ({_counts_text(ordered)}); check the "
            "input and --namespaces."
        )
    held_out = choose_eval(table["hash"], options)
    if held_out.all():
        raise UnusableInputError(f"All {len(table)} articles fall into the eval set; hold out fewer.")
    plans = [
        *_plan_kind("train", documents, np.flatnonzero(~held_out), options),
        *_plan_kind("eval", documents, np.flatnonzero(held_out), options),
    ]
    progress.announce(output, KIND, pieces=len(plans), size=int(table["size"].sum()))
    return plans


def _shard_bytes(options: SplitOptions) -> float:
    return (options.shard_size_mb or DEFAULT_SHARD_SIZE_MB) * MEGABYTE


def _plan_kind(
    kind: ShardKind, documents: _Documents, rows: npt.NDArray[np.int64], options: SplitOptions
) -> list[ShardPlan]:
    table = documents.table
    numbers = cut_shards(table["size"][rows].astype(np.int64), _shard_bytes(options))
    count = max(1, int(numbers.max()) + 1 if len(numbers) else 0)
    bounds = np.searchsorted(numbers, np.arange(count + 1))
    plans = []
    for number in range(count):
        mine = rows[bounds[number] : bounds[number + 1]]
        plans.append(
            ShardPlan(
                name=shard_name(kind, number, count),
                kind=kind,
                number=number,
                documents=len(mine),
                sentences=int(table["sentences"][mine].sum()),
                size=int(table["size"][mine].sum()),
                pieces=documents.pieces(mine),
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
    eval_text: list[bytes] = []
    with files.new_file(path) as file:
        for fragment, ranges in plan.pieces:
            for block in read_ranges(fragment, ranges, extraction, output):
                file.write(block)
                if plan.kind == "eval":
                    eval_text.append(block)
    hashes = [article_md5(a) for a in b"".join(eval_text).split(b"\n\n") if a]
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
    extraction: ExtractionOptions
    output: str

    def expand(self, fragments: beam.PCollection) -> beam.PCollection:
        return (
            fragments
            | "Together" >> GroupAll()
            | "Plan" >> beam.FlatMap(plan_text_shards, self.split, self.extraction, self.output)  # ShardPlan
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
