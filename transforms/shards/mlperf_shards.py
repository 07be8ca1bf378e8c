"""MLPerf's chain over WikiExtractor files: clean each file, draw its eval articles, pack by raw size, gather.

The plain functions are in `mlperf_cleanup`; here each runs as a step on one file or one shard. A raw file is a
`wiki_nn` on disk, or the run of `<doc>` blocks in fragments that WikiExtractor would have put into one.
Reference: mlcommons/training, retired_benchmarks/bert/cleanup_scripts/process_wiki.sh.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from transforms.errors import UnusableInputError
from transforms.extraction.wikiextractor import pack_files
from transforms.grouping import GroupAll
from transforms.inputs.units import InputFile
from transforms.sentences.punkt import SentenceSplitter
from transforms.shards import mlperf_cleanup
from transforms.shards.fragments import Fragment, read_ranges, read_table
from transforms.shards.options import ExtractionOptions, MlperfOptions
from transforms.shards.text_shards import KIND as TEXT
from transforms.shards.text_shards import ShardKind, TextShard, article_md5
from transforms.storage import completions, files, progress

KIND = "clean"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RawFile:
    """A WikiExtractor file: on disk where `pieces` is empty, else byte ranges of fragments."""

    number: int
    num_files: int
    size: int
    file: InputFile | None = None
    pieces: tuple[tuple[Fragment, npt.NDArray[np.int64]], ...] = ()

    @property
    def inputs(self) -> dict[str, str]:
        """The input files, each with its sha256."""
        if self.file is not None:
            return {self.file.path: self.file.sha256}
        return {f.batch.file.path: f.batch.file.sha256 for f, _ in self.pieces}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CleanedFile:
    """The description of a cleaned file: its training text lies in the work directory."""

    raw: RawFile
    key: str
    counts: Mapping[str, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartPlan:
    """What goes into a shard: cleaned files, in order."""

    name: str
    kind: ShardKind
    number: int
    cleaned: tuple[CleanedFile, ...]


def raw_files_of_inputs(inputs: Sequence[InputFile]) -> list[RawFile]:
    """WikiExtractor files on disk, in sorted order of their paths as the reference takes them."""
    ordered = sorted(inputs, key=lambda f: f.path)
    return [RawFile(number=i, num_files=len(ordered), size=f.size, file=f) for i, f in enumerate(ordered)]


def raw_files_of_fragments(fragments: Iterable[Fragment], output: str) -> list[RawFile]:
    """Packs the `<doc>` blocks of fragments into files as WikiExtractor packs its documents."""
    ordered = sorted(fragments, key=lambda f: f.batch.number)
    tables = [read_table(output, f) for f in ordered]
    table = np.concatenate(tables)
    owner = np.repeat(np.arange(len(ordered)), [len(t) for t in tables])
    if not len(table):
        raise UnusableInputError("No article is left of the input after the filters; check the input.")
    packed = pack_files(table["size"].tolist())
    raw_files = []
    for number, rows in enumerate(packed):
        pieces = []
        for fragment in np.unique(owner[rows]).tolist():
            mine = table[[r for r in rows if owner[r] == fragment]]
            # A file takes neighbouring documents, so each fragment gives it one range.
            pieces.append((ordered[fragment], np.array([[mine["offset"][0], mine["offset"][-1] + mine["size"][-1]]])))
        size = int(table["size"][rows].sum())
        raw_files.append(RawFile(number=number, num_files=len(packed), size=size, pieces=tuple(pieces)))
    return raw_files


def clean_raw_file(raw: RawFile, options: MlperfOptions, extraction: ExtractionOptions, output: str) -> CleanedFile:
    """Cleans a raw file, splits its sentences and draws its eval articles, unless that is done already."""
    source: Any = raw.file.sha256 if raw.file else [(f.key, ranges) for f, ranges in raw.pieces]
    place = (raw.number, raw.num_files)
    parameters = (options.num_eval_articles, options.seed, options.language)
    key = completions.fingerprint(KIND, completions.FORMAT_VERSIONS["clean"], source, place, parameters)
    record = completions.once(output, KIND, key, lambda: _write_cleaned(raw, options, extraction, output, key))
    return CleanedFile(raw=raw, key=key, counts=record["counts"])


def _write_cleaned(
    raw: RawFile, options: MlperfOptions, extraction: ExtractionOptions, output: str, key: str
) -> dict[str, Any]:
    if raw.file is not None:
        content = files.read_bytes(raw.file.path)
    else:
        content = b"".join(b for f, ranges in raw.pieces for b in read_ranges(f, ranges, extraction, output))
    text = mlperf_cleanup.clean_markup(mlperf_cleanup.remove_doc_tags(content))
    text = mlperf_cleanup.split_sentences(text, SentenceSplitter(options.language, rules="nltk-3.4"))
    separated = mlperf_cleanup.separate_eval(
        text,
        file_number=raw.number,
        num_files=raw.num_files,
        num_eval_articles=options.num_eval_articles,
        seed=options.seed,
    )
    files.write_bytes(_train_path(output, key), separated.train)
    files.write_bytes(_eval_path(output, key), mlperf_cleanup.eval_set(separated.eval_articles)[0])
    counts = {"eval_articles": len(separated.eval_articles), "documents": content.count(b"<doc ")}
    return {"counts": counts, "md5": [article_md5(a) for a in separated.eval_articles]}


def _train_path(output: str, key: str) -> str:
    return completions.work_path(output, KIND, f"{key}.train")


def _eval_path(output: str, key: str) -> str:
    return completions.work_path(output, KIND, f"{key}.eval")


def plan_parts(cleaned: Iterable[CleanedFile], options: MlperfOptions, output: str) -> list[PartPlan]:
    """Packs the files into shards by their raw sizes; the last plan is the eval set."""
    ordered = tuple(sorted(cleaned, key=lambda c: c.raw.number))
    packed = mlperf_cleanup.pack_shards([c.raw.size for c in ordered], options.shard_size_mb)
    plans = [
        # The reference names its shards of 500 whatever their number is.
        PartPlan(name=f"part-{i:05d}-of-00500", kind="train", number=i, cleaned=tuple(ordered[n] for n in numbers))
        for i, numbers in enumerate(packed)
    ]
    plans.append(PartPlan(name="eval.txt", kind="eval", number=0, cleaned=ordered))
    size = sum(c.raw.size for c in ordered)
    progress.announce(output, TEXT, pieces=len(plans), size=size)
    return plans


def gather_part(plan: PartPlan, options: MlperfOptions, extraction: ExtractionOptions, output: str) -> TextShard:
    """Writes a shard from its cleaned files, unless it is there already with the same content."""
    path = files.join(output, plan.name)
    key = completions.fingerprint(TEXT, completions.FORMAT_VERSIONS["text"], plan.name, [c.key for c in plan.cleaned])
    record = completions.once(
        output,
        TEXT,
        key,
        lambda: _write_part(path, plan, options, extraction, output),
        lambda record: [(plan.name, record["size"], record["sha256"])],
    )
    return TextShard(
        path=path,
        kind=plan.kind,
        number=plan.number,
        size=record["size"],
        sha256=record["sha256"],
        documents=record["documents"],
        sentences=record["sentences"],
        inputs={p: s for c in plan.cleaned for p, s in c.raw.inputs.items()},
        key=key,
    )


def _write_part(
    path: str, plan: PartPlan, options: MlperfOptions, extraction: ExtractionOptions, output: str
) -> dict[str, Any]:
    path_of = _train_path if plan.kind == "train" else _eval_path
    sentences = 0
    with files.new_file(path) as file:
        for cleaned in plan.cleaned:
            piece = path_of(output, cleaned.key)
            if not files.exists(piece):
                _write_cleaned(cleaned.raw, options, extraction, output, cleaned.key)
            content = files.read_bytes(piece)
            if plan.kind == "train":
                content = mlperf_cleanup.gather([content])
            file.write(content)
            sentences += sum(1 for line in content.split(b"\n") if line)
    held_out = sum(c.counts["eval_articles"] for c in plan.cleaned)
    documents = held_out if plan.kind == "eval" else sum(c.counts["documents"] for c in plan.cleaned) - held_out
    md5: list[str] = []
    if plan.kind == "eval":
        for cleaned in plan.cleaned:
            record = completions.load(output, KIND, cleaned.key)
            md5 += record["md5"] if record else []
    return {
        "size": file.size,
        "sha256": file.sha256,
        "documents": documents,
        "sentences": sentences,
        "md5": md5,
    }


def drop_texts(output: str, cleaned: Iterable[CleanedFile]) -> None:
    """Deletes the cleaned files' texts once their shards are written."""
    paths = [p for c in cleaned for p in (_train_path(output, c.key), _eval_path(output, c.key))]
    files.delete([p for p in paths if files.exists(p)])


@dataclasses.dataclass(kw_only=True, eq=False)
class TakeRawFiles(beam.PTransform):
    """Takes WikiExtractor files that are the input.

    Input: one list of InputFile. Output: RawFile.
    """

    def expand(self, inputs: beam.PCollection) -> beam.PCollection:
        return inputs | "Take" >> beam.FlatMap(raw_files_of_inputs)  # RawFile


@dataclasses.dataclass(kw_only=True, eq=False)
class PackRawFiles(beam.PTransform):
    """Packs the documents of fragments as WikiExtractor packs its files, once all fragments are known.

    Input: Fragment. Output: RawFile.
    """

    output: str

    def expand(self, fragments: beam.PCollection) -> beam.PCollection:
        return (
            fragments
            | "Together" >> GroupAll()
            | "Pack" >> beam.FlatMap(raw_files_of_fragments, self.output)  # RawFile
        )


@dataclasses.dataclass(kw_only=True, eq=False)
class CleanRawFiles(beam.PTransform):
    """Cleans raw files.

    Input: RawFile. Output: CleanedFile.
    """

    options: MlperfOptions
    extraction: ExtractionOptions
    output: str

    def expand(self, raw_files: beam.PCollection) -> beam.PCollection:
        return (
            raw_files
            | "Spread" >> beam.Reshuffle()
            | "Clean" >> beam.Map(clean_raw_file, self.options, self.extraction, self.output)  # CleanedFile
        )


@dataclasses.dataclass(kw_only=True, eq=False)
class GatherParts(beam.PTransform):
    """Packs cleaned files into shards and writes them.

    Input: CleanedFile. Output: TextShard.
    """

    options: MlperfOptions
    extraction: ExtractionOptions
    output: str

    def expand(self, cleaned: beam.PCollection) -> beam.PCollection:
        return (
            cleaned
            | "Together" >> GroupAll()
            | "Plan" >> beam.FlatMap(plan_parts, self.options, self.output)  # PartPlan
            | "Spread" >> beam.Reshuffle()
            | "Gather" >> beam.Map(gather_part, self.options, self.extraction, self.output)  # TextShard
        )
