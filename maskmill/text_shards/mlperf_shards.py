"""MLPerf's chain over WikiExtractor files: clean each file, draw its eval articles, pack by raw size, gather.

The plain functions are in `mlperf_cleanup`; here each runs as a step on one file or one shard. A raw file is a
`wiki_nn` on disk, or the run of `<doc>` blocks in fragments that WikiExtractor would have put into one.
Reference: mlcommons/training, retired_benchmarks/bert/cleanup_scripts/process_wiki.sh.

Raw files are cleaned in batches of neighbours, because each batch costs some files in the work directory. Layout of a
cleaned batch `<key>`: `<key>.train`, the training text of its files one after another, and `<key>.eval`, their eval
articles. Both are caches: where they are gone, they are made again from the raw files.
"""

import dataclasses
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from maskmill.compat import mlperf_cleanup
from maskmill.compat.wikiextractor import pack_files
from maskmill.errors import UnusableInputError
from maskmill.inputs.units import InputFile
from maskmill.sentences.choice import named_choice
from maskmill.storage import completions, files, progress
from maskmill.storage.found_files import check_unchanged
from maskmill.text.shards import KIND as TEXT
from maskmill.text.shards import ShardKind, TextShard, article_md5, shard_name, write_once
from maskmill.text_shards.byte_ranges import Ranges, merge_ranges, ranges_of
from maskmill.text_shards.cached_texts import read_cached
from maskmill.text_shards.fragments import Fragment, Pieces, in_order, read_ranges, read_tables
from maskmill.text_shards.options import ExtractionOptions, SplitOptions

KIND = "clean"

_KINDS: tuple[ShardKind, ...] = ("train", "eval")
# Of cleaned batches: how many there are of a large input, and their bytes of raw text.
_BATCHES = 64
_SMALLEST_BATCH = 4 << 20
_LARGEST_BATCH = 16 << 20

# The reference names its shards as if there were 500, however many there are.
_SHARDS_IN_NAME = 500


@dataclasses.dataclass(frozen=True, kw_only=True)
class RawFile:
    """A WikiExtractor file: on disk where `file` is given, else byte ranges of fragments.

    number: its place among all `num_files`, from 0. size: in bytes. pieces: fragments, each with its ranges [k, 2],
    start and end.
    """

    number: int
    num_files: int
    size: int
    file: InputFile | None = None
    pieces: Pieces = ()

    @property
    def name(self) -> str:
        """Return its name in messages."""
        return self.file.path if self.file is not None else f"WikiExtractor file {self.number} of this input"

    @property
    def inputs(self) -> dict[str, str]:
        """The input files, each with its sha256, if it is known."""
        if self.file is not None:
            return {self.file.path: self.file.sha256}
        return dict(item for fragment, ranges in self.pieces for item in fragment.inputs_of(ranges).items())


RawBatch = tuple[RawFile, ...]  # neighbours


@dataclasses.dataclass(frozen=True, kw_only=True)
class CleanedFile:
    """The result of cleaning a raw file.

    documents: in it. eval_articles: how many of them are. train, eval: the bytes of its training text and of its eval
    articles.
    """

    documents: int
    eval_articles: int
    train: int
    eval: int

    def size(self, kind: ShardKind) -> int:
        """Return the bytes of its text of a kind."""
        return self.train if kind == "train" else self.eval


@dataclasses.dataclass(frozen=True, kw_only=True)
class CleanedBatch:
    """The description of a cleaned batch.

    key: the name of its files. raw, cleaned: its raw files, in order, and what became of each. md5: the hashes of all
    their eval articles, in order.
    """

    key: str
    raw: RawBatch
    cleaned: tuple[CleanedFile, ...]
    md5: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Return how many `documents` its raw files have, and how many of them are `eval_articles`."""
        names = ("documents", "eval_articles")
        return {name: sum(getattr(file, name) for file in self.cleaned) for name in names}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartPlan:
    """The contents of a shard: the training text of cleaned files, or their eval articles, in order.

    pieces: cleaned batches, each with the numbers of its first file and the one after its last.
    """

    name: str
    kind: ShardKind
    number: int
    pieces: tuple[tuple[CleanedBatch, int, int], ...]


def batches_of(raw_files: Sequence[RawFile]) -> list[RawBatch]:
    """Return raw files in batches of neighbours."""
    most = min(max(sum(raw.size for raw in raw_files) // _BATCHES, _SMALLEST_BATCH), _LARGEST_BATCH)
    batches: list[list[RawFile]] = []
    room = 0
    for raw in raw_files:
        if not batches or raw.size > room:
            batches.append([])
            room = most
        batches[-1].append(raw)
        room -= raw.size
    return [tuple(batch) for batch in batches]


def raw_files_of_inputs(inputs: Sequence[InputFile]) -> list[RawFile]:
    """WikiExtractor files on disk, in sorted order of their paths as the reference takes them."""
    ordered = sorted(inputs, key=lambda file: file.path)
    return [
        RawFile(number=number, num_files=len(ordered), size=file.size, file=file) for number, file in enumerate(ordered)
    ]


def raw_files_of_fragments(fragments: Iterable[Fragment], output: str) -> list[RawFile]:
    """Pack the `<doc>` blocks of fragments into files as WikiExtractor packs its documents.

    Raises:
      UnusableInputError: the fragments hold no document.
    """
    ordered = in_order(fragments)
    table, starts = read_tables(ordered, output)
    if not len(table):
        raise UnusableInputError("No article is left of the input after the filters; check the input.")
    packed = pack_files(size for block in np.split(table["size"], starts[1:-1]) for size in block.tolist())
    # Files and fragments are runs of the same documents: the longest runs that lie in one of each are their pieces.
    file_ends = np.cumsum(packed)
    bounds = np.unique(np.concatenate([starts, file_ends]))
    pieces: list[list[tuple[Fragment, Ranges]]] = [[] for _ in packed]
    for start, end in itertools.pairwise(bounds.tolist()):
        fragment, file = np.searchsorted(starts, start, "right") - 1, np.searchsorted(file_ends, start, "right")
        pieces[file].append((ordered[fragment], merge_ranges(ranges_of(table[start:end]))))
    return [
        RawFile(
            number=number,
            num_files=len(packed),
            size=sum(int((ranges[:, 1] - ranges[:, 0]).sum()) for _, ranges in of_file),
            pieces=tuple(of_file),
        )
        for number, of_file in enumerate(pieces)
    ]


def clean_batch(batch: RawBatch, split: SplitOptions, extraction: ExtractionOptions, output: str) -> CleanedBatch:
    """Clean raw files, split their sentences and draw their eval articles, unless that is done already.

    Raises:
      UnusableInputError: a file is not UTF-8, or holds fewer articles than must be drawn from it.
    """
    sources: list[Any] = [
        raw.file.content if raw.file else [(fragment.key, ranges) for fragment, ranges in raw.pieces] for raw in batch
    ]
    place = (batch[0].number, batch[0].num_files)
    parameters = (split.num_eval_articles, extraction.random_seed, extraction.language)
    key = completions.fingerprint(KIND, completions.FORMAT_VERSIONS["clean"], sources, place, parameters)
    record = completions.once(
        output,
        KIND,
        key,
        lambda: _write_cleaned(batch, split, extraction, output, key),
        lambda record: completions.ItemFiles(cached=[tuple(cache) for cache in record["caches"]]),
        name=batch[0].name,
    )
    cleaned = tuple(CleanedFile(**file) for file in record["cleaned"])
    return CleanedBatch(key=key, raw=batch, cleaned=cleaned, md5=tuple(record["md5"]))


def _write_cleaned(
    batch: RawBatch, split: SplitOptions, extraction: ExtractionOptions, output: str, key: str
) -> dict[str, Any]:
    """Write the files of a cleaned batch, and return its completion record."""
    splitter = named_choice(extraction.language).by_punkt_alone.splitter(rules="nltk-3.4")
    paths = [_path(output, key, kind) for kind in _KINDS]
    cleaned, hashes = [], []
    with files.new_file(paths[0]) as train, files.new_file(paths[1]) as evaluation:
        for raw, content in zip(batch, _read_batch(batch, extraction, output), strict=True):
            text = mlperf_cleanup.clean_markup(mlperf_cleanup.remove_doc_tags(content, raw.name))
            separated = mlperf_cleanup.separate_eval(
                mlperf_cleanup.split_sentences(text, splitter),
                file_number=raw.number,
                num_files=raw.num_files,
                num_eval_articles=split.num_eval_articles or 0,
                seed=extraction.random_seed,
            )
            articles = mlperf_cleanup.join_articles(separated.eval_articles)
            train.write(separated.train)
            evaluation.write(articles)
            hashes += [article_md5(article) for article in separated.eval_articles]
            cleaned.append(
                {
                    "documents": content.count(b"<doc "),
                    "eval_articles": len(separated.eval_articles),
                    "train": len(separated.train),
                    "eval": len(articles),
                }
            )
    caches = [
        (completions.work_name(KIND, files.base_name(file.path)), file.size, file.sha256)
        for file in (train, evaluation)
    ]
    return {"cleaned": cleaned, "md5": hashes, "caches": caches}


def _read_batch(batch: RawBatch, extraction: ExtractionOptions, output: str) -> Iterator[bytes]:
    """Yield the content of each raw file."""
    of_fragments: dict[str, tuple[Fragment, list[Ranges]]] = {}
    for raw in batch:
        for fragment, ranges in raw.pieces:
            of_fragments.setdefault(fragment.key, (fragment, []))[1].append(ranges)
    pieces = [(fragment, np.concatenate(ranges)) for fragment, ranges in of_fragments.values()]
    packed = _texts(read_ranges(pieces, {"": extraction}, output), [raw.size for raw in batch if raw.file is None])
    for raw in batch:
        if raw.file is None:
            yield next(packed)
            continue
        content = files.read_bytes(raw.file.path)
        check_unchanged(raw.file)
        yield content


def _texts(blocks: Iterator[bytes], sizes: Iterable[int]) -> Iterator[bytes]:
    """Yield texts of these sizes, of which the blocks consist."""
    pending = bytearray()
    for size in sizes:
        while len(pending) < size:
            pending += next(blocks)
        yield bytes(pending[:size])
        del pending[:size]


def _path(output: str, key: str, kind: ShardKind) -> str:
    return completions.work_path(output, KIND, f"{key}.{kind}")


def plan_parts(cleaned: Iterable[CleanedBatch], split: SplitOptions, output: str) -> list[PartPlan]:
    """Pack the files into shards by their raw sizes; the last plan is the eval set.

    Raises:
      UnusableInputError: the first file is larger than a shard.
    """
    batches = sorted(cleaned, key=lambda batch: batch.raw[0].number)
    places = [(number, file) for number, batch in enumerate(batches) for file in range(len(batch.raw))]
    sizes = [raw.size for batch in batches for raw in batch.raw]

    def pieces(members: Iterable[int]) -> tuple[tuple[CleanedBatch, int, int], ...]:
        """Return neighbouring files, by their places among all."""
        in_batches = itertools.groupby((places[member] for member in members), key=operator.itemgetter(0))
        of_batches = [(batches[number], [file for _, file in some]) for number, some in in_batches]
        return tuple((batch, numbers[0], numbers[-1] + 1) for batch, numbers in of_batches)

    packed = mlperf_cleanup.pack_shards(sizes, split.shard_size_mb or 0)
    plans = [
        PartPlan(name=shard_name("train", number, _SHARDS_IN_NAME), kind="train", number=number, pieces=pieces(members))
        for number, members in enumerate(packed)
    ]
    plans.append(PartPlan(name=shard_name("eval", 0, 1), kind="eval", number=0, pieces=pieces(range(len(sizes)))))
    progress.announce(output, TEXT, pieces=len(plans), size=sum(sizes))
    return plans


def gather_part(plan: PartPlan, split: SplitOptions, extraction: ExtractionOptions, output: str) -> TextShard:
    """Write a shard from its cleaned files, unless it is there already with the same content.

    Raises:
      UnusableInputError: a file has no article left for training.
    """
    return write_planned(plan, output, lambda path: _write_part(path, plan, split, extraction, output))


def write_planned(plan: PartPlan, output: str, write: Callable[[str], dict[str, Any]]) -> TextShard:
    """As `gather_part`; write: writes the shard to a path, and returns its completion record."""
    sources = [(batch.key, first, last) for batch, first, last in plan.pieces]
    key, record = write_once(plan.name, sources, output, write)
    return TextShard(
        path=files.join(output, plan.name),
        kind=plan.kind,
        number=plan.number,
        size=record["size"],
        sha256=record["sha256"],
        documents=record["documents"],
        sentences=record["sentences"],
        inputs={
            path: sha256
            for batch, first, last in plan.pieces
            for raw in batch.raw[first:last]
            for path, sha256 in raw.inputs.items()
        },
        key=key,
    )


def _write_part(
    path: str, plan: PartPlan, split: SplitOptions, extraction: ExtractionOptions, output: str
) -> dict[str, Any]:
    """Write the file of a shard, and return its completion record."""
    blocks = read_cached(
        output,
        [(batch, _range_of(batch, first, last, plan.kind)) for batch, first, last in plan.pieces],
        lambda batch: _path(output, batch.key, plan.kind),
        lambda batch: _write_cleaned(batch.raw, split, extraction, output, batch.key),
    )
    gathered = [
        (raw.name, file)
        for batch, first, last in plan.pieces
        for raw, file in zip(batch.raw[first:last], batch.cleaned[first:last], strict=True)
    ]
    sentences = 0
    texts = _texts(blocks, [file.size(plan.kind) for _, file in gathered])
    with files.new_file(path) as shard:
        for (name, _), text in zip(gathered, texts, strict=True):
            if plan.kind == "train":
                text = mlperf_cleanup.gather(text, name)
            shard.write(text)
            sentences += sum(1 for line in text.split(b"\n") if line)
    eval_articles = sum(file.eval_articles for _, file in gathered)
    documents = sum(file.documents for _, file in gathered)
    return {
        "size": shard.size,
        "sha256": shard.sha256,
        "documents": eval_articles if plan.kind == "eval" else documents - eval_articles,
        "sentences": sentences,
        "md5": [md5 for batch, *_ in plan.pieces for md5 in batch.md5] if plan.kind == "eval" else [],
    }


def _range_of(batch: CleanedBatch, first: int, last: int, kind: ShardKind) -> Ranges:
    """Return the bytes of neighbouring files in the text of a batch, [1, 2]."""
    start = sum(file.size(kind) for file in batch.cleaned[:first])
    return np.array([[start, start + sum(file.size(kind) for file in batch.cleaned[first:last])]], np.int64)


def drop_texts(cleaned: Iterable[CleanedBatch], output: str) -> None:
    """Delete the cleaned texts once their shards are written."""
    paths = [_path(output, batch.key, kind) for batch in cleaned for kind in _KINDS]
    files.delete([path for path in paths if files.exists(path)])
