"""What is left to do once all text shards are there: eval.md5, the counts, the manifest, and the sweep."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

from transforms.extraction import template_library
from transforms.inputs.units import InputFile
from transforms.shards import fragments as fragment_step
from transforms.shards import mlperf_shards, text_shards
from transforms.shards.fragments import Fragment
from transforms.shards.mlperf_shards import CleanedFile
from transforms.shards.options import ExtractionOptions
from transforms.shards.text_shards import TextShard
from transforms.storage import files, manifest

# The names that the text shards of any build have; files that fit and are not of this build are swept.
OUTPUT_PATTERNS = ("part-*-of-*", "eval.txt", "eval-*-of-*.txt")

Counts = dict[str, dict[str, int]]
Records = dict[str, list[str]]


def close_text_shards(
    elements: Sequence[TextShard | Fragment | CleanedFile],
    extraction: ExtractionOptions,
    max_documents: int | None,
    parameters: Mapping[str, Any],
    output: str,
) -> None:
    """Writes eval.md5 and the manifest, deletes what older builds left over, and the texts of fragments.

    Args:
      elements: everything that the steps gave, in any order.
      extraction: what decided the documents' text.
      max_documents: how many documents were taken at most, as SplitOptions has it.
      parameters: all options of the stage, for the manifest.
      output: the directory of the shards.
    """
    shards = sorted((e for e in elements if isinstance(e, TextShard)), key=lambda s: (s.kind != "train", s.number))
    fragments = sorted((e for e in elements if isinstance(e, Fragment)), key=lambda f: f.batch.number)
    cleaned = sorted((e for e in elements if isinstance(e, CleanedFile)), key=lambda c: c.raw.number)
    text_shards.write_eval_md5(shards, output)
    counts: Counts = {"extract": text_shards.sum_counts(f.counts for f in fragments)}
    records: Records = {
        fragment_step.KIND: [f.key for f in fragments],
        mlperf_shards.KIND: [c.key for c in cleaned],
        text_shards.KIND: [s.key for s in shards],
    }
    if extraction.wikitext.expand_templates:
        _count_templates(fragments, counts, records, output)
    _count_documents(shards, fragments, extraction, max_documents, counts, records, output)
    counts["clean"] = text_shards.sum_counts(c.counts for c in cleaned)
    for kind in ("train", "eval"):
        counts[kind] = _kind_counts([s for s in shards if s.kind == kind])
    manifest.write_manifest(
        output,
        stage="extract",
        parameters=parameters,
        inputs=[{"path": f.path, "bytes": f.size, "sha256": f.sha256} for f in _inputs(fragments, cleaned)],
        shards=[_shard_entry(s) for s in shards],
        counts={step: values for step, values in counts.items() if values},
        rejected=[r for f in fragments for r in fragment_step.read_rejected(output, f)],
    )
    manifest.sweep(output, keep=[files.base_name(s.path) for s in shards], patterns=OUTPUT_PATTERNS, records=records)
    fragment_step.drop_texts(output, fragments)
    mlperf_shards.drop_texts(output, cleaned)


def _inputs(fragments: Sequence[Fragment], cleaned: Sequence[CleanedFile]) -> list[InputFile]:
    by_path = {f.batch.file.path: f.batch.file for f in fragments}
    by_path |= {c.raw.file.path: c.raw.file for c in cleaned if c.raw.file is not None}
    return list(by_path.values())


def _count_templates(fragments: Sequence[Fragment], counts: Counts, records: Records, output: str) -> None:
    """Counts the definitions that templates were expanded with, and the pages on which a limit was met."""
    key = fragments[0].batch.templates
    library = template_library.read_library(output, key)
    limited = counts["extract"].pop("partly_expanded_pages")
    counts["templates"] = {"definitions": library["templates"], "partly_expanded_pages": limited}
    records |= {template_library.LIBRARY: [key], template_library.PIECES: library["pieces"]}


def _count_documents(
    shards: Sequence[TextShard],
    fragments: Sequence[Fragment],
    extraction: ExtractionOptions,
    max_documents: int | None,
    counts: Counts,
    records: Records,
    output: str,
) -> None:
    """Counts the documents that were extracted and stand in no shard, and why."""
    extracted = sum(f.documents for f in fragments)
    if max_documents is not None and extracted > max_documents:
        counts["extract"]["over_max_documents"] = extracted - max_documents
        extracted = max_documents
    if extraction.quality.finds_duplicates:
        dropped = text_shards.duplicate_counts(fragments, extraction, output)
        emptied = extracted - sum(s.documents for s in shards)
        counts["paragraphs"] = dropped | {"emptied_documents": emptied}
        records[text_shards.DUPLICATES] = [text_shards.duplicates_key(fragments, extraction)]


def _kind_counts(shards: Sequence[TextShard]) -> dict[str, int]:
    totals: collections.Counter[str] = collections.Counter(shards=len(shards), documents=0, sentences=0, bytes=0)
    for shard in shards:
        totals.update(documents=shard.documents, sentences=shard.sentences, bytes=shard.size)
    return dict(totals)


def _shard_entry(shard: TextShard) -> dict[str, Any]:
    return {
        "name": files.base_name(shard.path),
        "kind": shard.kind,
        "bytes": shard.size,
        "sha256": shard.sha256,
        "documents": shard.documents,
        "sentences": shard.sentences,
        "inputs": dict(shard.inputs),
    }
