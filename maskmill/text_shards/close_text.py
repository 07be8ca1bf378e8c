"""The last work once all text shards are there: eval.md5, the counts, the manifest, and the sweep."""

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.extraction import template_library, unknown_templates
from maskmill.extraction.template_rules import has_rules
from maskmill.inputs.batches import refuse_equal
from maskmill.inputs.site import Site, other_project
from maskmill.inputs.units import Digest, InputFile
from maskmill.storage import files, manifest
from maskmill.storage.manifest import sum_counts
from maskmill.text.shards import KIND, TextShard, table_name, write_eval_md5
from maskmill.text_shards import document_tables, duplicate_search, duplicates, mixing, mlperf_shards, sentence_choice
from maskmill.text_shards import fragments as fragment_step
from maskmill.text_shards.document_extractor import HOLE_COUNTS
from maskmill.text_shards.fragments import Fragment
from maskmill.text_shards.mlperf_shards import CleanedBatch
from maskmill.text_shards.options import Source
from maskmill.text_shards.sentence_choice import describe_sentences

# The names that the text shards of any build have; files that fit and are not of this build are swept.
OUTPUT_PATTERNS = ("part-*-of-*", "eval.txt", "eval-*-of-*.txt", unknown_templates.REPORT)

# Counts of fragments that are of templates, not of pages.
_TEMPLATE_COUNTS = ("definitions", *unknown_templates.COUNTS, unknown_templates.GIVEN_UP)

Counts = dict[str, dict[str, int]]
Records = dict[str, list[str]]
OfSource = tuple[Source, list[Fragment]]


def close_text_shards(
    elements: Sequence[TextShard | Fragment | CleanedBatch | Digest],
    sources: Sequence[Source],
    *,
    parameters: Mapping[str, Any],
    decided: Mapping[str, Any],
    output: str,
) -> None:
    """Write eval.md5 and the manifest, then delete the texts of fragments and what older builds left over.

    Args:
      elements: everything that the steps gave, in any order.
      sources: what decided the documents: the sources of a mix, in order, or the one source of a build without a mix.
      parameters, decided: all options, and what was decided where they leave it open, for the manifest.
    """
    shards = sorted(
        (element for element in elements if isinstance(element, TextShard)),
        key=lambda shard: (shard.kind != "train", shard.number),
    )
    fragments = fragment_step.in_order(element for element in elements if isinstance(element, Fragment))
    cleaned = sorted(
        (element for element in elements if isinstance(element, CleanedBatch)), key=lambda batch: batch.raw[0].number
    )
    of_fragments = fragment_step.read_records(fragments, output)
    write_eval_md5(shards, output)
    counts: Counts = {"extract": sum_counts(fragment.counts for fragment in fragments)}
    records: Records = {
        fragment_step.KIND: [fragment.key for fragment in fragments],
        mlperf_shards.KIND: [batch.key for batch in cleaned],
        KIND: [shard.key for shard in shards],
    }
    _move_counts(counts)
    if cut_off := {path for fragment in fragments for path in fragment.cut_off}:
        counts["extract"]["cut_off_files"] = len(cut_off)
    _add_templates(fragments, counts, records, output)
    of_sources = [(source, [f for f in fragments if f.batch.source == source.name]) for source in sources]
    over = sum(f.documents for f in fragments) - sum(_within_limit(*of_source) for of_source in of_sources)
    if over:
        counts["extract"]["over_max_documents"] = over
    mix = _describe_mix(of_sources, output)
    taken = sum(entry["documents"] for entry in mix.values()) or sum(shard.documents for shard in shards)
    _add_duplicates(of_sources, taken, counts, records, output)
    counts["clean"] = sum_counts(batch.counts for batch in cleaned)
    for kind in ("train", "eval"):
        counts[kind] = _kind_counts([shard for shard in shards if shard.kind == kind])
    digests = {element.path: element.sha256 for element in elements if isinstance(element, Digest)}
    inputs = [
        dataclasses.replace(file, sha256=digests.get(file.path, file.sha256)) for file in _inputs(fragments, cleaned)
    ]
    refuse_equal(inputs)  # now that the checksums of objects are known
    without_rules = _languages_without_rules(of_sources)
    sentences = _sentences(of_sources, of_fragments)
    records[sentence_choice.KIND] = sentence_choice.sweep_trainings(sentences, output)
    manifest.write_manifest(
        output,
        stage="extract",
        parameters=parameters,
        decided=dict(decided)
        | _dump_date(inputs)
        | without_rules
        | _other_projects(fragments)
        | {"sentences": sentences}
        | _columns(fragments)
        | ({"sources": mix} if mix else {}),
        inputs=_input_entries(inputs, fragments),
        shards=[_shard_entry(shard, digests) for shard in shards],
        counts={step: values for step, values in counts.items() if values},
        rejected=[row for fragment in fragments for row in of_fragments[fragment.key]["rejected"]],
    )
    keep = [files.base_name(shard.path) for shard in shards] + _write_template_report(of_sources, of_fragments, output)
    patterns: tuple[str, ...] = OUTPUT_PATTERNS
    if tables := [shard.index["index"] for shard in shards if shard.index]:
        keep, patterns = keep + tables, (*patterns, table_name("*"))
    manifest.sweep(output, keep=keep, patterns=patterns, records=records)
    fragment_step.write_titles(fragments, of_fragments, output)
    fragment_step.drop_texts(fragments, output)
    mlperf_shards.drop_texts(cleaned, output)


def _write_template_report(of_sources: Sequence[OfSource], records: fragment_step.Records, output: str) -> list[str]:
    """Write the table of unknown templates where a source asks for it; return the names of the files written."""
    reported = [f for source, of_source in of_sources if source.extraction.wikitext.report_templates for f in of_source]
    if not reported:
        return []
    found = unknown_templates.most_frequent(fragment_step.unknown_templates_of(reported, records))
    files.write_bytes(files.join(output, unknown_templates.REPORT), unknown_templates.table_text(found).encode())
    return [unknown_templates.REPORT]


def _inputs(fragments: Sequence[Fragment], cleaned: Sequence[CleanedBatch]) -> list[InputFile]:
    by_path = {file.path: file for fragment in fragments for file in fragment.batch.files}
    by_path |= {raw.file.path: raw.file for batch in cleaned for raw in batch.raw if raw.file is not None}
    return list(by_path.values())


def _input_entries(inputs: Sequence[InputFile], fragments: Sequence[Fragment]) -> list[dict[str, Any]]:
    """Return the inputs for the manifest, each with the name of its source where a build mixes several."""
    sources = {file.path: fragment.batch.source for fragment in fragments for file in fragment.batch.files}
    entries = []
    for file in inputs:
        source = sources.get(file.path)
        entry = {"path": file.path, "bytes": file.size, "sha256": file.sha256}
        entries.append(entry | ({"source": source} if source else {}))
    return entries


def _dump_date(inputs: Sequence[InputFile]) -> dict[str, str]:
    """Return the date of the dump; nothing where the inputs have none, or not all the same."""
    dates = {file.date for file in inputs}
    return {"dump_date": dates.pop()} if len(dates) == 1 and "" not in dates else {}


def _move_counts(counts: Counts) -> None:
    """Put what was counted of templates and of holes beside what was counted of pages."""
    pages = counts["extract"]
    counts["templates"] = {name: pages.pop(name) for name in _TEMPLATE_COUNTS if name in pages}
    counts["holes"] = {name.removeprefix("hole_"): pages.pop(name) for name in HOLE_COUNTS if name in pages}


def _languages_without_rules(of_sources: Sequence[OfSource]) -> dict[str, list[str]]:
    """Return the languages of dumps for whose templates there is no rule file, if maskmill's rules are used."""
    missing: set[str] = set()
    for source, fragments in of_sources:
        extraction = source.extraction
        if extraction.extractor == "wikiextractor" or extraction.wikitext.rules_text:
            continue
        headers = {file.header for file in _inputs(fragments, ()) if file.date}
        languages = {Site.parse(header).language for header in headers}
        missing |= {language for language in languages if not has_rules(language)}
    return {"languages_without_rules": sorted(missing)} if missing else {}


def _columns(fragments: Sequence[Fragment]) -> dict[str, dict[str, str]]:
    """Return the columns of the tables of documents, each with its type, if there are tables."""
    columns = document_tables.joined(*(fragment.columns for fragment in fragments))
    return {"columns": columns} if columns else {}


def _other_projects(fragments: Sequence[Fragment]) -> dict[str, list[str]]:
    """Return the projects of dumps that are not of a Wikipedia; its rules are used for them."""
    named = {other_project(file.header) for file in _inputs(fragments, ()) if file.date} - {""}
    return {"other_projects": sorted(named)} if named else {}


def _sentences(of_sources: Sequence[OfSource], records: fragment_step.Records) -> list[dict[str, Any]]:
    """Return how sentences were split, an entry for each choice, which names its source where a build mixes several."""
    entries = []
    for source, fragments in of_sources:
        named = {"source": source.name} if source.name else {}
        entries += [entry | named for entry in describe_sentences(fragments, source.extraction, records)]
    return entries


def _describe_mix(of_sources: Sequence[OfSource], output: str) -> dict[str, dict[str, Any]]:
    """Return what became of each source by its name, with what was read of it; nothing in a build without a mix."""
    if not any(source.name for source, _ in of_sources):
        return {}
    mixed = mixing.mix_counts(output)
    described = {}
    for source, fragments in of_sources:
        counts = sum_counts(fragment.counts for fragment in fragments)
        date = _dump_date(_inputs(fragments, ()))
        described[source.name] = {"read": counts.get("read", 0), **mixed[source.name], "extract": counts, **date}
    return described


def _add_templates(fragments: Sequence[Fragment], counts: Counts, records: Records, output: str) -> None:
    """Add with how many definitions and modules templates were expanded, and on how many pages a limit was met."""
    keys = list(dict.fromkeys(fragment.batch.templates for fragment in fragments if fragment.batch.templates))
    if not keys:
        return
    libraries = [template_library.read_library(output, key) for key in keys]
    limited = counts["extract"].pop("partly_expanded_pages")
    definitions = sum(library["templates"] for library in libraries)
    counts["templates"] |= {"definitions": definitions, "partly_expanded_pages": limited}
    if modules := sum(library["modules"] for library in libraries):
        counts["templates"]["modules"] = modules
    pieces = [piece for library in libraries for piece in library["pieces"]]
    records |= {template_library.LIBRARY: keys, template_library.PIECES: pieces}


def _add_duplicates(of_sources: Sequence[OfSource], taken: int, counts: Counts, records: Records, output: str) -> None:
    """Add what was looked at and dropped of paragraphs; `taken` is the number of documents that were left."""
    filtered = [(source, fragments) for source, fragments in of_sources if source.extraction.quality.finds_duplicates]
    if not filtered:
        return
    dropped = [duplicates.duplicate_counts(fragments, source.extraction, output) for source, fragments in filtered]
    extracted = sum(_within_limit(source, fragments) for source, fragments in of_sources)
    counts["paragraphs"] = sum_counts(dropped) | {"emptied_documents": extracted - taken}
    records[duplicate_search.KIND] = [
        duplicates.decision_key(fragments, source.extraction) for source, fragments in filtered
    ]


def _within_limit(source: Source, fragments: Sequence[Fragment]) -> int:
    """Return how many documents of a source are taken, of those that were extracted."""
    extracted = sum(fragment.documents for fragment in fragments)
    return extracted if source.max_documents is None else min(extracted, source.max_documents)


def _kind_counts(shards: Sequence[TextShard]) -> dict[str, int]:
    totals: collections.Counter[str] = collections.Counter(shards=len(shards), documents=0, sentences=0, bytes=0)
    for shard in shards:
        totals.update(documents=shard.documents, sentences=shard.sentences, bytes=shard.size)
    return dict(totals)


def _shard_entry(shard: TextShard, digests: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": files.base_name(shard.path),
        "kind": shard.kind,
        "bytes": shard.size,
        "sha256": shard.sha256,
        "documents": shard.documents,
        "sentences": shard.sentences,
        "inputs": {path: digests.get(path, sha256) for path, sha256 in shard.inputs.items()},
        **shard.index,
    }
