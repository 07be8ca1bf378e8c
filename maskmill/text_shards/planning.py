"""Fragments → the plan of all text shards and the eval set, from the documents' tables alone; the plan → the shards.

Shard boundaries count text bytes and eval membership depends on a document's id, so neither the container of the
input nor the way it was cut into units changes a byte of a shard. Where duplicate paragraphs are dropped, the plan
decides on them first, and then counts without them.
"""

import collections
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.storage import files, progress
from maskmill.storage.manifest import sum_counts
from maskmill.text.shards import (
    DEFAULT_SHARD_SIZE_MB,
    KIND,
    ShardKind,
    TextShard,
    article_md5,
    shard_name,
    table_name,
    write_once,
)
from maskmill.text_shards import document_tables
from maskmill.text_shards.byte_ranges import Ranges, cut_out, merge_ranges, ranges_of
from maskmill.text_shards.duplicate_search import DROPPED
from maskmill.text_shards.duplicates import find_duplicates
from maskmill.text_shards.eval_membership import choose_eval
from maskmill.text_shards.fragments import (
    Extractions,
    Fragment,
    Pieces,
    in_order,
    read_ranges,
    read_rejected,
    read_tables,
    rows_in,
)
from maskmill.text_shards.options import ExtractionOptions, SplitOptions

Rows = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

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
    "hole_documents": "--holes",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShardPlan:
    """The contents of a shard: byte ranges of fragments, in order.

    pieces: fragments, each with its ranges [k, 2], start and end; a fragment comes once for each pass of a mix over it.
    size: their bytes. columns: of its table, each with its type; empty: it has none.
    """

    name: str
    kind: ShardKind
    number: int
    documents: int
    sentences: int
    size: int
    pieces: Pieces
    columns: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def inputs(self) -> dict[str, str]:
        """The input files that the shard draws from, each with its sha256, if it is known."""
        return dict(item for fragment, ranges in self.pieces for item in fragment.inputs_of(ranges).items())


def count_shares(size: int, shard_bytes: float) -> int:
    """Into how many shares text of `size` bytes is cut, for even shards of at most about `shard_bytes`.

    Raises:
      UnusableInputError: they would be too many.
    """
    shares = max(1, math.ceil(size / shard_bytes))
    if shares > _MOST_SHARDS:
        raise UnusableInputError(
            f"--shard_size_mb {shard_bytes / MEGABYTE:g} makes {shares:,} shards of this text, and there can be "
            f"{_MOST_SHARDS:,}; give a larger size."
        )
    return shares


def shares_of(sizes: Iterable[Integers], total: int, shares: int) -> Iterator[Integers]:
    """Give each document of a source the number of the share of its source's text in which it starts.

    So every shard mirrors the mix of the sources, and takes no more than its share but for the rest of the last
    document of each source.

    Args:
      sizes: bytes of the documents in order, in pieces, [n]. total: their sum.
      shares: how many there are.

    Yields:
      The numbers for each piece, [n]. They never fall; in some shares no document may start.
    """
    before = 0
    for of_piece in sizes:
        ends = before + np.cumsum(of_piece, dtype=np.int64)
        # starts * shares stays below 2^63 up to 9 * 10^18 bytes * shards: 9 TB of text in the most shards.
        yield (ends - of_piece) * shares // max(1, total)
        before = int(ends[-1]) if len(ends) else before


@dataclasses.dataclass(frozen=True)
class Documents:
    """The documents of a source that go into shards, in order.

    fragments: the descriptions. table, starts: as `read_tables` gives them, of the documents of which something is
    left: `size` and `sentences` without the paragraphs that are dropped, and `extent` with them if there can be any.
    dropped: these paragraphs, rows of DROPPED.
    """

    fragments: Sequence[Fragment]
    table: Rows
    starts: Integers
    dropped: Rows

    def left_of(self, number: int, rows: Rows) -> tuple[Fragment, Ranges]:
        """Return what is left of documents of a fragment, given by its place: byte ranges, [k, 2]."""
        holes = ranges_of(_of_fragment(self.dropped, number))
        extent = "extent" if "extent" in (rows.dtype.names or ()) else "size"
        return self.fragments[number], cut_out(merge_ranges(ranges_of(rows, extent)), holes)


@dataclasses.dataclass(frozen=True)
class Run:
    """The documents that shards take of a source, in order: for each pass over them which are taken, [documents]."""

    documents: Documents
    passes: Sequence[Flags]

    @property
    def count(self) -> int:
        """Return the number of documents, each counted as often as it is taken."""
        return sum(int(np.count_nonzero(taken)) for taken in self.passes)

    @property
    def size(self) -> int:
        """Their bytes."""
        return sum(int(self.documents.table["size"].sum(where=taken)) for taken in self.passes)

    def parts(self) -> Iterator[tuple[int, Rows]]:
        """Yield the documents in order, fragment for fragment: the place of the fragment, and their rows."""
        bounds = list(itertools.pairwise(self.documents.starts.tolist()))
        for taken in self.passes:
            for number, (start, end) in enumerate(bounds):
                rows = self.documents.table[start:end][taken[start:end]]
                if len(rows):
                    yield number, rows


def read_documents(
    ordered: Sequence[Fragment],
    max_documents: int | None,
    extraction: ExtractionOptions,
    output: str,
) -> Documents:
    """Read the tables of a source's fragments, which are in order, and decide on duplicate paragraphs."""
    drops = extraction.quality.finds_duplicates
    table, starts = read_tables(ordered, output, extents=drops)
    if max_documents is not None:
        table, starts = table[:max_documents], np.minimum(starts, max_documents)
    if not drops:
        return Documents(ordered, table, starts, np.zeros(0, DROPPED))
    dropped = find_duplicates(ordered, extraction, output)
    left = [0]
    for number, (start, end) in enumerate(itertools.pairwise(starts.tolist())):
        rows = _without(table[start:end], _of_fragment(dropped, number))
        left.append(left[-1] + len(rows))
        table[left[-2] : left[-1]] = rows
    return Documents(ordered, table[: left[-1]], np.array(left), dropped)


def _of_fragment(dropped: Rows, number: int) -> Rows:
    """Return the dropped paragraphs of the fragment at a place."""
    start, end = np.searchsorted(dropped["fragment"], [number, number + 1])
    return dropped[start:end]


def _without(table: Rows, dropped: Rows) -> Rows:
    """Return what is left of the documents of a fragment without the paragraphs of it that are dropped."""
    if not len(table):
        return table
    dropped = dropped[dropped["offset"] < table["offset"][-1] + table["extent"][-1]]  # after that is max_documents
    document = np.searchsorted(table["offset"], dropped["offset"], side="right") - 1
    sentences = np.zeros(len(table), np.int64)
    np.add.at(sentences, document, dropped["sentences"])
    np.subtract.at(table["size"], document, dropped["size"])
    table["sentences"] -= sentences.astype(table["sentences"].dtype)
    is_left = np.ones(len(table), bool)
    # `body` leaves the title out: a title alone is not a document.
    is_left[document] = sentences[document] < dropped["body"]
    return table[is_left]


def plan_text_shards(
    fragments: Iterable[Fragment],
    options: SplitOptions,
    extraction: ExtractionOptions,
    output: str,
) -> list[ShardPlan]:
    """Plan all shards from the fragments' tables, in whatever order the fragments come: training text, then eval.

    Raises:
      UnusableInputError: no document is left for training, or fewer than the eval set needs.
    """
    ordered = in_order(fragments)
    refuse_many_rejected(ordered, extraction.max_rejected_share, output)
    documents = read_documents(ordered, options.max_documents, extraction, output)
    table = documents.table
    if not len(table):
        raise no_article(ordered, output)
    is_eval = choose_eval(table["hash"], options)
    if is_eval.all():
        raise UnusableInputError(
            f"All {len(table)} articles fall into the eval set; hold out fewer (--num_eval_articles 0 for none)."
        )
    return plan_runs([Run(documents, [~is_eval])], [Run(documents, [is_eval])], options, output)


def plan_runs(train: Sequence[Run], held_out: Sequence[Run], options: SplitOptions, output: str) -> list[ShardPlan]:
    """Plan the shards of training text, then those of the eval set (a run for each source), and announce them."""
    plans = [*_plan_kind("train", train, options), *_plan_kind("eval", held_out, options)]
    columns = document_tables.joined(*(f.columns for run in (*train, *held_out) for f in run.documents.fragments))
    plans = [dataclasses.replace(plan, columns=columns) for plan in plans]
    progress.announce(output, KIND, pieces=len(plans), size=sum(plan.size for plan in plans))
    return plans


@dataclasses.dataclass
class _Share:
    """A share that fills with documents: their number, sentences and bytes, and where they lie."""

    documents: int = 0
    sentences: int = 0
    size: int = 0
    pieces: list[tuple[Fragment, Ranges]] = dataclasses.field(default_factory=list)

    def add(self, rows: Rows, piece: tuple[Fragment, Ranges]) -> None:
        """Add documents of a fragment."""
        self.documents += len(rows)
        self.sentences += int(rows["sentences"].sum())
        self.size += int(rows["size"].sum())
        self.pieces.append(piece)


def _plan_kind(kind: ShardKind, runs: Sequence[Run], options: SplitOptions) -> list[ShardPlan]:
    """Plan the shards of a kind from the runs of its sources; there is one shard even if they have no document."""
    shard_bytes = (options.shard_size_mb or DEFAULT_SHARD_SIZE_MB) * MEGABYTE
    totals = [run.size for run in runs]
    count = count_shares(sum(totals), shard_bytes)
    shares: collections.defaultdict[int, _Share] = collections.defaultdict(_Share)
    for run, total in zip(runs, totals, strict=True):
        numbers = shares_of((rows["size"] for _, rows in run.parts()), total, count)
        for (fragment, rows), of_rows in zip(run.parts(), numbers, strict=True):
            for number in np.unique(of_rows).tolist():
                in_share = rows[of_rows == number]
                shares[number].add(in_share, run.documents.left_of(fragment, in_share))
    filled = [share for _, share in sorted(shares.items())] or [_Share()]
    return [
        ShardPlan(
            name=shard_name(kind, number, len(filled)),
            kind=kind,
            number=number,
            documents=share.documents,
            sentences=share.sentences,
            size=share.size,
            pieces=tuple(share.pieces),
        )
        for number, share in enumerate(filled)
    ]


def _inputs_text(fragments: Sequence[Fragment]) -> str:
    paths = sorted({file.path for fragment in fragments for file in fragment.batch.files})
    return paths[0] if len(paths) == 1 else f"{len(paths)} files"


def no_article(fragments: Sequence[Fragment], output: str) -> UnusableInputError:
    """Return the error where no document is left for shards: what became of those that were read, and what to check."""
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


def refuse_many_rejected(fragments: Sequence[Fragment], share: float, output: str) -> None:
    """Raise UnusableInputError if more than a share of the pages that were read was rejected."""
    read, rejected = (sum(fragment.counts.get(name, 0) for fragment in fragments) for name in ("read", "rejected"))
    if rejected > share * read:
        first = next(read_rejected(fragment, output)[0] for fragment in fragments if fragment.counts.get("rejected"))
        raise UnusableInputError(
            f"{rejected:,} of {read:,} pages were rejected, more than --max_rejected_share {share:g}; the first, "
            f"{first['title']!r}, because {' '.join(first['reason'].split())}."
        )


def assemble_text_shard(plan: ShardPlan, extractions: Extractions, output: str) -> TextShard:
    """Write a shard from its fragments, unless it is there already."""
    return write_planned(plan, output, lambda path: _write_shard(path, plan, extractions, output))


def write_planned(plan: ShardPlan, output: str, write: Callable[[str], dict[str, Any]]) -> TextShard:
    """Have `write` write a shard to a path and give its record, unless it is there already."""
    pieces: Any = [(fragment.key, ranges) for fragment, ranges in plan.pieces]
    key, record = write_once(plan.name, (pieces, plan.columns) if plan.columns else pieces, output, write)
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
        index=record.get("index", {}),
    )


def _write_shard(path: str, plan: ShardPlan, extractions: Extractions, output: str) -> dict[str, Any]:
    """Write the file of a shard, and return its completion record."""
    eval_blocks: list[bytes] = []
    with files.new_file(path) as file:
        for block in read_ranges(plan.pieces, extractions, output):
            file.write(block)
            if plan.kind == "eval":
                eval_blocks.append(block)
    articles = [article for article in b"".join(eval_blocks).split(b"\n\n") if article]
    md5 = [article_md5(article) for article in articles]
    record = {"size": file.size, "sha256": file.sha256, "md5": md5}
    if not plan.columns:
        return record
    rows = (row for fragment, ranges in plan.pieces for row in rows_in(fragment, ranges, extractions, output))
    table = document_tables.write_table(files.join(output, table_name(plan.name)), plan.columns, rows)
    index = {"index": table_name(plan.name), "index_bytes": table.size, "index_sha256": table.sha256}
    return {**record, "index": index}
