"""Fragments → the plan of all text shards and the eval set, from the documents' tables alone; the plan → the shards.

Shard boundaries count text bytes and eval membership depends on a document's id, so neither the container of the
input nor the way it was cut into units changes a byte of a shard. Where duplicate paragraphs are dropped, the plan
decides on them first, and then counts without them.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.storage import files, progress
from maskmill.storage.manifest import sum_counts
from maskmill.text.text_shards import (
    DEFAULT_SHARD_SIZE_MB,
    KIND,
    ShardKind,
    TextShard,
    article_md5,
    shard_name,
    write_once,
)
from transforms.grouping import spread, step, together
from transforms.shards.byte_ranges import Ranges, cut_out, ranges_of
from transforms.shards.duplicates import DROPPED, find_duplicates
from transforms.shards.eval_membership import choose_eval
from transforms.shards.fragments import Fragment, in_order, ranges_by_fragment, read_ranges, read_rejected, read_tables
from transforms.shards.options import ExtractionOptions, SplitOptions

Rows = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]
Pieces = tuple[tuple[Fragment, Ranges], ...]  # fragments, each with byte ranges of it, in order

MEGABYTE = 1 << 20
_MOST_SHARDS = 1_000_000

# The option that decides about the documents which the extraction counts under a name.
_OPTIONS_OF_COUNTS = {
    "other_namespaces": "--namespaces",
    "redirects": "--keep_redirects",
    "disambiguation_pages": "--keep_disambiguation",
    "stub_pages": "--drop_stubs",
    "too_short": "--min_characters",
    "few_letters": "--min_letter_share",
    "repeated_lines": "--max_repeated_share",
    "list_pages": "--max_list_share",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShardPlan:
    """What goes into a shard: byte ranges of fragments, in order.

    pieces: fragments, each with its ranges [k, 2], start and end; a fragment comes once for each pass of a mix over it.
    size: their bytes.
    """

    name: str
    kind: ShardKind
    number: int
    documents: int
    sentences: int
    size: int
    pieces: Pieces

    @property
    def inputs(self) -> dict[str, str]:
        """The input files that the shard draws from, each with its sha256."""
        return dict(item for fragment, ranges in self.pieces for item in fragment.inputs_of(ranges).items())


def cut_shards(sizes: Sequence[Integers], shard_bytes: float) -> list[Integers]:
    """Gives each document the number of its shard, for even shards of at most about `shard_bytes`.

    A document belongs to the shard in whose share of its own source's text it starts, so that every shard mirrors the
    mix of the sources. Shards in which none starts do not count.

    Args:
      sizes: for each source the bytes of its documents, [documents].
      shard_bytes: how much text a shard takes at most, but for the rest of the last document of each source.

    Returns:
      The numbers for each source, [documents]: over all sources they start at 0 and leave none out, and within a source
      they never fall.

    Raises:
      UnusableInputError: there would be too many shards.
    """
    totals = [int(of_source.sum()) for of_source in sizes]
    shares = max(1, math.ceil(sum(totals) / shard_bytes))
    if shares > _MOST_SHARDS:
        raise UnusableInputError(
            f"--shard_size_mb {shard_bytes / MEGABYTE:g} makes {shares:,} shards of this text, and there can be "
            f"{_MOST_SHARDS:,}; give a larger size."
        )
    # starts * shares stays below 2^63 up to 9 * 10^18 bytes * shards: 9 TB of text in the most shards.
    numbers = [
        (np.cumsum(of_source) - of_source) * shares // max(1, total)
        for of_source, total in zip(sizes, totals, strict=True)
    ]
    without_gaps = np.unique(np.concatenate(numbers), return_inverse=True)[1].astype(np.int64)
    return np.split(without_gaps, np.cumsum([len(of_source) for of_source in numbers])[:-1])


@dataclasses.dataclass(frozen=True)
class Documents:
    """The documents of a source that go into shards, in order.

    fragments: the descriptions. owner: the place of each document's fragment among them, [documents]. extents: the
    documents' rows of TABLE as extracted. table: the same rows, their sizes and sentences without the paragraphs that
    are dropped. dropped: these paragraphs, rows of DROPPED.
    """

    fragments: Sequence[Fragment]
    owner: Integers
    extents: Rows
    table: Rows
    dropped: Rows

    def pieces(self, rows: Integers) -> Pieces:
        """What is left of the documents of these rows: byte ranges of fragments."""
        pieces = []
        for number, ranges in ranges_by_fragment(self.extents, self.owner, rows).items():
            start, end = np.searchsorted(self.dropped["fragment"], [number, number + 1])
            holes = ranges_of(self.dropped[start:end])
            pieces.append((self.fragments[number], cut_out(ranges, holes)))
        return tuple(pieces)


@dataclasses.dataclass(frozen=True)
class Run:
    """What shards take of a source, in order: the rows of its documents, [n], for each pass over them."""

    documents: Documents
    passes: Sequence[Integers]

    @property
    def rows(self) -> Integers:
        """The rows of all passes, one after another."""
        return np.concatenate([np.zeros(0, np.int64), *self.passes])

    def pieces(self, span: slice) -> Pieces:
        """The documents at these places of `rows`: byte ranges of fragments, pass for pass."""
        pieces: list[tuple[Fragment, Ranges]] = []
        start, end = span.start, span.stop
        for rows in self.passes:
            pieces += self.documents.pieces(rows[max(0, start) : max(0, end)])
            start, end = start - len(rows), end - len(rows)
        return tuple(pieces)


def read_documents(
    ordered: Sequence[Fragment], max_documents: int | None, extraction: ExtractionOptions, output: str
) -> Documents:
    """Reads the tables of a source's fragments, which are in order, and decides on duplicate paragraphs."""
    table, owner = read_tables(ordered, output)
    if not extraction.quality.finds_duplicates:
        table = table[:max_documents]
        return Documents(ordered, owner[:max_documents], table, table, np.zeros(0, DROPPED))
    dropped = find_duplicates(ordered, extraction, output)
    document = _documents_of(dropped, ordered, table, owner)
    reduced = table.copy()
    np.subtract.at(reduced["size"], document, dropped["size"])
    np.subtract.at(reduced["sentences"], document, dropped["sentences"])
    dropped_sentences = table["sentences"] - reduced["sentences"]
    is_left = np.ones(len(table), bool)
    # `body` leaves the title out: a title alone is not a document.
    is_left[document] = dropped_sentences[document] < dropped["body"]
    if max_documents is not None:
        is_left[max_documents:] = False
    return Documents(ordered, owner[is_left], table[is_left], reduced[is_left], dropped)


def _documents_of(dropped: Rows, ordered: Sequence[Fragment], table: Rows, owner: Integers) -> Integers:
    """The row of the document in which each dropped paragraph lies, [dropped]."""
    # Offsets are counted through the texts of all fragments, as if these were one.
    fragment_starts = np.cumsum([0, *(fragment.size for fragment in ordered)])
    document_starts = fragment_starts[owner] + table["offset"]
    paragraph_starts = fragment_starts[dropped["fragment"]] + dropped["offset"]
    rows: Integers = np.searchsorted(document_starts, paragraph_starts, side="right") - 1
    return rows


def plan_text_shards(
    fragments: Iterable[Fragment], options: SplitOptions, extraction: ExtractionOptions, output: str
) -> list[ShardPlan]:
    """Plans all shards from the fragments' tables, in whatever order the fragments come: training text, then eval.

    Raises:
      UnusableInputError: no document is left for training, or fewer than the eval set needs.
    """
    ordered = in_order(fragments)
    documents = read_documents(ordered, options.max_documents, extraction, output)
    table = documents.table
    if not len(table):
        raise no_article(ordered, output)
    is_eval = choose_eval(table["hash"], options)
    if is_eval.all():
        raise UnusableInputError(
            f"All {len(table)} articles fall into the eval set; hold out fewer (--num_eval_articles 0 for none)."
        )
    train, held_out = (Run(documents, (np.flatnonzero(rows),)) for rows in (~is_eval, is_eval))
    return plan_runs([train], [held_out], options, output)


def plan_runs(train: Sequence[Run], held_out: Sequence[Run], options: SplitOptions, output: str) -> list[ShardPlan]:
    """Plans the shards of training text, then those of the eval set (a run for each source), and announces them."""
    plans = [*_plan_kind("train", train, options), *_plan_kind("eval", held_out, options)]
    progress.announce(output, KIND, pieces=len(plans), size=sum(plan.size for plan in plans))
    return plans


def _plan_kind(kind: ShardKind, runs: Sequence[Run], options: SplitOptions) -> list[ShardPlan]:
    """Plans the shards of a kind from the runs of its sources; there is one shard even if they have no document."""
    shard_bytes = (options.shard_size_mb or DEFAULT_SHARD_SIZE_MB) * MEGABYTE
    rows = [run.rows for run in runs]
    tables = [run.documents.table for run in runs]
    sizes = [table["size"][of_run].astype(np.int64) for table, of_run in zip(tables, rows, strict=True)]
    numbers = cut_shards(sizes, shard_bytes)
    count = max([1, *(int(of_run[-1]) + 1 for of_run in numbers if len(of_run))])
    bounds = [np.searchsorted(of_run, np.arange(count + 1)).tolist() for of_run in numbers]
    plans = []
    for number in range(count):
        spans = [slice(*of_run[number : number + 2]) for of_run in bounds]
        in_shard = [table[of_run[span]] for table, of_run, span in zip(tables, rows, spans, strict=True)]
        plans.append(
            ShardPlan(
                name=shard_name(kind, number, count),
                kind=kind,
                number=number,
                documents=sum(map(len, in_shard)),
                sentences=sum(int(of_run["sentences"].sum()) for of_run in in_shard),
                size=sum(int(of_run["size"].sum()) for of_run in in_shard),
                pieces=tuple(piece for run, span in zip(runs, spans, strict=True) for piece in run.pieces(span)),
            )
        )
    return plans


def _inputs_text(fragments: Sequence[Fragment]) -> str:
    paths = sorted({file.path for fragment in fragments for file in fragment.batch.files})
    return paths[0] if len(paths) == 1 else f"{len(paths)} files"


def no_article(fragments: Sequence[Fragment], output: str) -> UnusableInputError:
    """The error where no document is left for shards: what became of those that were read, and what to check."""
    counts = sum_counts(fragment.counts for fragment in fragments)
    if not counts.get("read"):
        return UnusableInputError(
            f"{_inputs_text(fragments)}: there is no article in it; check that this is the right input, and "
            "--input_format."
        )
    became = ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in counts.items() if number)
    with_rejected = next((fragment for fragment in fragments if fragment.counts.get("rejected")), None)
    if with_rejected is not None:
        reason = read_rejected(with_rejected, output)[0]["reason"]
        became += f"; the first was rejected because {' '.join(reason.split())}"
    check = ["the input", *(option for name, option in _OPTIONS_OF_COUNTS.items() if counts.get(name))]
    return UnusableInputError(
        f"No article is left of {_inputs_text(fragments)} after the filters ({became}); check {' and '.join(check)}."
    )


@step
def PlanTextShards(
    fragments: beam.PCollection, *, split: SplitOptions, extraction: ExtractionOptions, output: str
) -> beam.PCollection:
    """Plans the shards once all fragments are known.

    Input: Fragment. Output: ShardPlan.
    """
    return together(fragments, "Plan", plan_text_shards, split, extraction, output)  # ShardPlan


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
