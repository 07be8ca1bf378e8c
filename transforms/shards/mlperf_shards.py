"""MLPerf's chain over WikiExtractor files: clean each file, draw its eval articles, pack by raw size, gather.

The plain functions are in `mlperf_cleanup`; here each runs as a step on one file or one shard. A raw file is a
`wiki_nn` on disk, or the run of `<doc>` blocks in fragments that WikiExtractor would have put into one.
Reference: mlcommons/training, retired_benchmarks/bert/cleanup_scripts/process_wiki.sh.

Layout of a cleaned file `<key>` in the work directory: `<key>.train`, its training text, and `<key>.eval`, its eval
articles. Both are caches: where they are gone, they are made again from the raw file.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.storage import completions, files, progress
from maskmill.storage.found_files import check_unchanged
from maskmill.text.text_shards import KIND as TEXT
from maskmill.text.text_shards import ShardKind, TextShard, article_md5, shard_name, write_once
from transforms.collection import Collection
from transforms.compat import mlperf_cleanup
from transforms.compat.wikiextractor import pack_files
from transforms.inputs.units import InputFile
from transforms.sentences.choice import named_choice
from transforms.shards.byte_ranges import Ranges, merge_ranges, ranges_of
from transforms.shards.fragments import Fragment, in_order, read_ranges, read_tables
from transforms.shards.options import ExtractionOptions, SplitOptions

KIND = "clean"

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
    pieces: tuple[tuple[Fragment, npt.NDArray[np.int64]], ...] = ()

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.file.path if self.file is not None else f"WikiExtractor file {self.number} of this input"

    @property
    def inputs(self) -> dict[str, str]:
        """The input files, each with its sha256."""
        if self.file is not None:
            return {self.file.path: self.file.sha256}
        return dict(item for fragment, ranges in self.pieces for item in fragment.inputs_of(ranges).items())


@dataclasses.dataclass(frozen=True, kw_only=True)
class CleanedFile:
    """The description of a cleaned file.

    key: the name of its files. counts: `documents` in the raw file, and how many of them are `eval_articles`.
    """

    raw: RawFile
    key: str
    counts: Mapping[str, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartPlan:
    """What goes into a shard: the training text of cleaned files, or their eval articles, in order."""

    name: str
    kind: ShardKind
    number: int
    cleaned: tuple[CleanedFile, ...]


def raw_files_of_inputs(inputs: Sequence[InputFile]) -> list[RawFile]:
    """WikiExtractor files on disk, in sorted order of their paths as the reference takes them."""
    ordered = sorted(inputs, key=lambda file: file.path)
    return [
        RawFile(number=number, num_files=len(ordered), size=file.size, file=file) for number, file in enumerate(ordered)
    ]


def raw_files_of_fragments(fragments: Iterable[Fragment], output: str) -> list[RawFile]:
    """Packs the `<doc>` blocks of fragments into files as WikiExtractor packs its documents.

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


def clean_raw_file(raw: RawFile, split: SplitOptions, extraction: ExtractionOptions, output: str) -> CleanedFile:
    """Cleans a raw file, splits its sentences and draws its eval articles, unless that is done already.

    Raises:
      UnusableInputError: the file is not UTF-8, or holds fewer articles than must be drawn from it.
    """
    source: Any = raw.file.sha256 if raw.file else [(fragment.key, ranges) for fragment, ranges in raw.pieces]
    place = (raw.number, raw.num_files)
    parameters = (split.num_eval_articles, extraction.random_seed, extraction.language)
    key = completions.fingerprint(KIND, completions.FORMAT_VERSIONS["clean"], source, place, parameters)
    record = completions.once(
        output,
        KIND,
        key,
        lambda: _write_cleaned(raw, split, extraction, output, key),
        lambda record: completions.PieceFiles(cached=[tuple(cache) for cache in record["caches"]]),
        name=raw.name,
    )
    return CleanedFile(raw=raw, key=key, counts=record["counts"])


def _write_cleaned(
    raw: RawFile, split: SplitOptions, extraction: ExtractionOptions, output: str, key: str
) -> dict[str, Any]:
    """Writes the files of a cleaned file, and returns its completion record."""
    content = _read_raw(raw, extraction, output)
    text = mlperf_cleanup.clean_markup(mlperf_cleanup.remove_doc_tags(content, raw.name))
    text = mlperf_cleanup.split_sentences(
        text, named_choice(extraction.language).by_punkt_alone.splitter(rules="nltk-3.4")
    )
    separated = mlperf_cleanup.separate_eval(
        text,
        file_number=raw.number,
        num_files=raw.num_files,
        num_eval_articles=split.num_eval_articles or 0,
        seed=extraction.random_seed,
    )
    caches = []
    for path, text in (
        (_path(output, key, "train"), separated.train),
        (_path(output, key, "eval"), mlperf_cleanup.join_articles(separated.eval_articles)),
    ):
        with files.new_file(path) as file:
            file.write(text)
        caches.append((completions.work_name(KIND, files.base_name(path)), file.size, file.sha256))
    counts = {"eval_articles": len(separated.eval_articles), "documents": content.count(b"<doc ")}
    hashes = [article_md5(article) for article in separated.eval_articles]
    return {"counts": counts, "md5": hashes, "caches": caches}


def _read_raw(raw: RawFile, extraction: ExtractionOptions, output: str) -> bytes:
    if raw.file is not None:
        content = files.read_bytes(raw.file.path)
        check_unchanged(raw.file.path, raw.file.size, raw.file.changed)
        return content
    return b"".join(
        block for fragment, ranges in raw.pieces for block in read_ranges(fragment, ranges, extraction, output)
    )


def _path(output: str, key: str, kind: ShardKind) -> str:
    return completions.work_path(output, KIND, f"{key}.{kind}")


def plan_parts(cleaned: Iterable[CleanedFile], split: SplitOptions, output: str) -> list[PartPlan]:
    """Packs the files into shards by their raw sizes; the last plan is the eval set.

    Raises:
      UnusableInputError: the first file is larger than a shard.
    """
    ordered = tuple(sorted(cleaned, key=lambda file: file.raw.number))
    packed = mlperf_cleanup.pack_shards([file.raw.size for file in ordered], split.shard_size_mb or 0)
    plans = [
        PartPlan(
            name=shard_name("train", number, _SHARDS_IN_NAME),
            kind="train",
            number=number,
            cleaned=tuple(ordered[member] for member in members),
        )
        for number, members in enumerate(packed)
    ]
    plans.append(PartPlan(name=shard_name("eval", 0, 1), kind="eval", number=0, cleaned=ordered))
    progress.announce(output, TEXT, pieces=len(plans), size=sum(file.raw.size for file in ordered))
    return plans


def gather_part(plan: PartPlan, split: SplitOptions, extraction: ExtractionOptions, output: str) -> TextShard:
    """Writes a shard from its cleaned files, unless it is there already with the same content.

    Raises:
      UnusableInputError: a file has no article left for training.
    """
    keys = [cleaned.key for cleaned in plan.cleaned]
    key, record = write_once(plan.name, keys, output, lambda path: _write_part(path, plan, split, extraction, output))
    return TextShard(
        path=files.join(output, plan.name),
        kind=plan.kind,
        number=plan.number,
        size=record["size"],
        sha256=record["sha256"],
        documents=record["documents"],
        sentences=record["sentences"],
        inputs={path: sha256 for file in plan.cleaned for path, sha256 in file.raw.inputs.items()},
        key=key,
    )


def _write_part(
    path: str, plan: PartPlan, split: SplitOptions, extraction: ExtractionOptions, output: str
) -> dict[str, Any]:
    """Writes the file of a shard, and returns its completion record."""
    sentences = 0
    with files.new_file(path) as file:
        for cleaned in plan.cleaned:
            cached = _path(output, cleaned.key, plan.kind)
            if not files.exists(cached):
                _write_cleaned(cleaned.raw, split, extraction, output, cleaned.key)
            text = files.read_bytes(cached)
            if plan.kind == "train":
                text = mlperf_cleanup.gather(text, cleaned.raw.name)
            file.write(text)
            sentences += sum(1 for line in text.split(b"\n") if line)
    eval_articles = sum(cleaned.counts["eval_articles"] for cleaned in plan.cleaned)
    documents = sum(cleaned.counts["documents"] for cleaned in plan.cleaned)
    of_eval = [cleaned.key for cleaned in plan.cleaned] if plan.kind == "eval" else []
    return {
        "size": file.size,
        "sha256": file.sha256,
        "documents": eval_articles if plan.kind == "eval" else documents - eval_articles,
        "sentences": sentences,
        "md5": [md5 for record in completions.all_finished(output, KIND, of_eval) for md5 in record["md5"]],
    }


def drop_texts(cleaned: Iterable[CleanedFile], output: str, there: files.Listing) -> None:
    """Deletes the cleaned files' texts once their shards are written; `there`: what lies below `output`."""
    kinds: tuple[ShardKind, ...] = ("train", "eval")
    paths = [_path(output, file.key, kind) for file in cleaned for kind in kinds]
    files.delete([path for path in paths if there.has(path)])


def PackRawFiles(fragments: Collection, *, output: str) -> Collection:
    """Packs the documents of fragments as WikiExtractor packs its files, once all fragments are known.

    Input: Fragment. Output: RawFile.
    """
    return fragments.together().flat_map("Pack", raw_files_of_fragments, output)  # RawFile


def CleanRawFiles(
    raw_files: Collection, *, split: SplitOptions, extraction: ExtractionOptions, output: str
) -> Collection:
    """Cleans raw files.

    Input: RawFile. Output: CleanedFile.
    """
    return raw_files.spread("Clean", clean_raw_file, split, extraction, output)  # CleanedFile


def GatherParts(cleaned: Collection, *, split: SplitOptions, extraction: ExtractionOptions, output: str) -> Collection:
    """Packs cleaned files into shards and writes them.

    Input: CleanedFile. Output: TextShard, the description of the file written.
    """
    plans = cleaned.together().flat_map("Plan", plan_parts, split, output)  # PartPlan
    return plans.spread("Gather", gather_part, split, extraction, output)  # TextShard
