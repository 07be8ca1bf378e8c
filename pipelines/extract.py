"""extract: a dump or another corpus → text shards, the eval set and manifest.json."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam

from pipelines import environments, runner
from pipelines.stage_options import ExtractOptions, parameters
from transforms.errors import UnusableInputError
from transforms.extraction import template_library
from transforms.extraction.template_library import CollectTemplates
from transforms.grouping import GroupAll
from transforms.inputs import mediawiki
from transforms.inputs.corpus import ReadOptions
from transforms.inputs.formats import detect_format
from transforms.inputs.units import InputFile, UnitBatch, plan_units
from transforms.shards import duplicates, mlperf_shards, text_shards
from transforms.shards import fragments as fragment_step
from transforms.shards.fragments import ExtractDocuments, ExtractionOptions, Fragment
from transforms.shards.mlperf_shards import CleanedFile, CleanRawFiles, GatherParts, MlperfOptions
from transforms.shards.quality import QualityOptions
from transforms.shards.text_shards import AssembleTextShards, PlanTextShards, SplitOptions, TextShard
from transforms.storage import completions, files, manifest

# Held out where neither a number nor a share is given: at the size of the English Wikipedia, 35,000 articles.
DEFAULT_EVAL_FRACTION = 0.005

OUTPUT_PATTERNS = ("part-*-of-*", "eval.txt", "eval-*-of-*.txt")


def mlperf_options(options: ExtractOptions) -> MlperfOptions:
    """The reference chain's parameters."""
    return MlperfOptions(
        num_eval_articles=10000 if options.num_eval_articles is None else options.num_eval_articles,
        shard_size_mb=26.92 if options.shard_size_mb is None else options.shard_size_mb,
        seed=options.random_seed,
        language=options.language,
    )


def split_options(options: ExtractOptions) -> SplitOptions:
    """Shard size and eval membership of the default mode."""
    neither = options.num_eval_articles is None and options.eval_fraction is None
    return SplitOptions(
        shard_size_mb=27.0 if options.shard_size_mb is None else options.shard_size_mb,
        num_eval_articles=options.num_eval_articles,
        eval_fraction=DEFAULT_EVAL_FRACTION if neither else options.eval_fraction,
        max_documents=options.max_documents,
    )


def extraction_options(options: ExtractOptions) -> ExtractionOptions:
    """What decides a document's text."""
    mlperf = options.compat == "mlperf"
    return ExtractionOptions(
        extractor=options.extractor or ("wikiextractor" if mlperf else "maskmill"),
        language=options.language,
        namespaces=options.namespaces,
        keep_redirects=options.keep_redirects,
        keep_disambiguation=options.keep_disambiguation,
        keep_titles=options.keep_titles,
        headings=options.headings,
        lists=options.lists,
        expand_templates=options.expand_templates,
        seed=options.random_seed,
        doc_blocks=mlperf,
        reading=ReadOptions(
            text_documents=options.text_documents, text_column=options.text_column, id_column=options.id_column
        ),
        quality=QualityOptions(
            **{field.name: getattr(options, field.name) for field in dataclasses.fields(QualityOptions)}
        ),
    )


def digest_input(numbered: tuple[int, files.FileInfo], dump_date: str | None) -> tuple[int, InputFile]:
    """Adds an input's checksum and date to its place in the order of the inputs."""
    number, file = numbered
    date = dump_date or mediawiki.dump_date(file.path) or ""
    return number, InputFile(path=file.path, size=file.size, sha256=files.sha256_of(file.path), date=date)


def plan_batches(numbered: Sequence[tuple[int, InputFile]], options: ExtractOptions) -> list[UnitBatch]:
    """Cuts the inputs into units. With --max_documents one batch a file takes them in order until it has enough."""
    batches: list[UnitBatch] = []
    inputs = [file for _, file in sorted(numbered, key=lambda pair: pair[0])]
    for file in inputs:
        units = plan_units(
            [files.FileInfo(path=file.path, size=file.size)],
            input_format=options.input_format,
            reading=extraction_options(options).reading,
        )
        cut = [tuple(units)] if options.max_documents is not None else [(unit,) for unit in units]
        for some in cut:
            batches.append(UnitBatch(number=len(batches), file=file, units=some, limit=options.max_documents))
    size = sum(f.size for f in inputs)
    for kind in (template_library.PIECES, fragment_step.KIND) if options.expand_templates else (fragment_step.KIND,):
        completions.store(options.output, "plan", kind, {"pieces": len(batches), "bytes": size})
    return batches


@dataclasses.dataclass(kw_only=True, eq=False)
class ExtractCorpus(beam.PTransform):
    """The whole stage.

    Input: one tuple, the patterns of the inputs. Output: TextShard, the description of each shard written.
    """

    options: ExtractOptions
    from_doc_files: bool

    def expand(self, patterns: beam.PCollection) -> beam.PCollection:
        options = self.options
        decisive = extraction_options(options)
        inputs = (
            patterns
            | "Match" >> beam.FlatMap(lambda found: enumerate(files.match(found)))
            | "SpreadInputs" >> beam.Reshuffle()
            | "Digest" >> beam.Map(digest_input, options.dump_date)  # (number, InputFile)
            | "AllInputs" >> GroupAll()
        )
        if options.compat == "mlperf":
            shards, finished = self._mlperf(inputs)
        else:
            fragments = self._fragments(inputs)
            shards = (
                fragments
                | "PlanTextShards"
                >> PlanTextShards(split=split_options(options), extraction=decisive, output=options.output)
                | "AssembleTextShards" >> AssembleTextShards(extraction=decisive, output=options.output)
            )
            finished = [shards, fragments]
        _ = finished | beam.Flatten() | "AllFinished" >> GroupAll() | "Close" >> beam.Map(close_extract, options)
        return shards

    def _fragments(self, inputs: beam.PCollection) -> beam.PCollection:
        output, decisive = self.options.output, extraction_options(self.options)
        batches = inputs | "PlanBatches" >> beam.FlatMap(plan_batches, self.options)  # UnitBatch
        if decisive.expand_templates:
            batches = batches | "CollectTemplates" >> CollectTemplates(reading=decisive.reading, output=output)
        return batches | "ExtractDocuments" >> ExtractDocuments(options=decisive, output=output)  # Fragment

    def _mlperf(self, inputs: beam.PCollection) -> tuple[beam.PCollection, list[beam.PCollection]]:
        options = self.options
        finished = []
        if self.from_doc_files:
            raw_files = inputs | "RawFiles" >> beam.FlatMap(
                lambda numbered: mlperf_shards.raw_files_of_inputs([file for _, file in numbered])
            )
        else:
            fragments = self._fragments(inputs)
            finished.append(fragments)
            raw_files = (
                fragments
                | "AllFragments" >> GroupAll()
                | "PackRawFiles" >> beam.FlatMap(mlperf_shards.raw_files_of_fragments, options.output)
            )
        cleaned = raw_files | "CleanRawFiles" >> CleanRawFiles(
            options=mlperf_options(options), extraction=extraction_options(options), output=options.output
        )
        shards = cleaned | "GatherParts" >> GatherParts(
            options=mlperf_options(options), extraction=extraction_options(options), output=options.output
        )
        return shards, [*finished, cleaned, shards]


def close_extract(elements: Sequence[TextShard | Fragment | CleanedFile], options: ExtractOptions) -> None:
    """Writes eval.md5 and the manifest once all shards are there, and sweeps what is left over."""
    output = options.output
    shards = sorted((e for e in elements if isinstance(e, TextShard)), key=lambda s: (s.kind != "train", s.number))
    fragments = sorted((e for e in elements if isinstance(e, Fragment)), key=lambda f: f.batch.number)
    cleaned = sorted((e for e in elements if isinstance(e, CleanedFile)), key=lambda c: c.raw.number)
    text_shards.write_eval_md5(shards, output)
    inputs = {f.batch.file.path: f.batch.file for f in fragments}
    inputs |= {c.raw.file.path: c.raw.file for c in cleaned if c.raw.file is not None}
    counts = {"extract": text_shards.sum_counts(f.counts for f in fragments)}
    records = {
        fragment_step.KIND: [f.key for f in fragments],
        mlperf_shards.KIND: [c.key for c in cleaned],
        text_shards.KIND: [s.key for s in shards],
    }
    if options.expand_templates:
        library = fragments[0].batch.templates
        found = template_library.read_library(output, library)
        limited = counts["extract"].pop("partly_expanded_pages")
        counts["templates"] = {"definitions": found["templates"], "partly_expanded_pages": limited}
        records |= {template_library.LIBRARY: [library], template_library.PIECES: found["pieces"]}
    decisive = extraction_options(options)
    extracted = sum(f.documents for f in fragments)
    if options.max_documents is not None and extracted > options.max_documents:
        counts["extract"]["over_max_documents"] = extracted - options.max_documents
        extracted = options.max_documents
    if decisive.quality.finds_duplicates:
        emptied = extracted - sum(s.documents for s in shards)
        dropped = text_shards.duplicate_counts(fragments, decisive, output)
        counts["paragraphs"] = dropped | {"emptied_documents": emptied}
        records[text_shards.DUPLICATES] = [text_shards.duplicates_key(fragments, decisive)]
    counts |= {"clean": text_shards.sum_counts(c.counts for c in cleaned)}
    for kind in ("train", "eval"):
        mine = [s for s in shards if s.kind == kind]
        totals = {name: sum(getattr(s, name) for s in mine) for name in ("documents", "sentences", "size")}
        counts[kind] = {"shards": len(mine)} | {("bytes" if n == "size" else n): v for n, v in totals.items()}
    manifest.write_manifest(
        output,
        stage="extract",
        parameters=parameters(options),
        inputs=[{"path": f.path, "bytes": f.size, "sha256": f.sha256} for f in inputs.values()],
        shards=[_shard_entry(s) for s in shards],
        counts={step: values for step, values in counts.items() if values},
        rejected=[r for f in fragments for r in fragment_step.read_rejected(output, f)],
    )
    manifest.sweep(
        output,
        keep=[files.base_name(s.path) for s in shards],
        patterns=OUTPUT_PATTERNS,
        records=records,
    )
    fragment_step.drop_texts(output, fragments)
    mlperf_shards.drop_texts(output, cleaned)


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


def make_stage(options: ExtractOptions) -> tuple[ExtractCorpus, int]:
    """Checks the inputs and returns the stage with the bytes it is to read.

    Raises:
      UnusableInputError: an input is missing or is nothing that can be read.
    """
    if options.compat == "mlperf":
        mlperf_options(options)
    else:
        split_options(options)
    found = files.match(options.input)
    from_doc_files = detect_format(found[0].path, options.input_format) == "wikiextractor"
    if options.compat == "mlperf" and options.max_documents is not None and (from_doc_files or len(found) > 1):
        raise UnusableInputError("--max_documents with --compat mlperf takes one dump, not several files.")
    decisive = extraction_options(options)
    duplicates.check_installed(decisive.quality)
    units = plan_units(found, input_format=options.input_format, reading=decisive.reading)
    for name in ("drop_stubs", "expand_templates"):
        if getattr(options, name) and any(unit.format != "mediawiki" for unit in units):
            raise UnusableInputError(f"--{name} needs the templates of a dump; leave it out for this input.")
    return ExtractCorpus(options=options, from_doc_files=from_doc_files), sum(f.size for f in found)


def claim(options: ExtractOptions) -> None:
    """Claims the output for these options.

    Raises:
      UnusableInputError: it belongs to something else, or cannot be written.
    """
    manifest.prepare_output(options.output, "extract", parameters(options))


def stages(output: str) -> list[runner.Stage]:
    """What the progress display follows."""
    return [
        runner.Stage(label="templates", output=output, kind=template_library.PIECES),
        runner.Stage(label="extract", output=output, kind=fragment_step.KIND),
        runner.Stage(label="text shards", output=output, kind=text_shards.KIND),
    ]


def run(options: ExtractOptions, beam_arguments: Sequence[str] = ()) -> Mapping[str, Any]:
    """Runs the stage to its end and returns its manifest (empty where Beam's flags ask only for a description)."""
    stage, input_bytes = make_stage(options)
    paths = (*options.input, options.output)
    beam_options = runner.pipeline_options(beam_arguments, input_bytes=input_bytes, paths=paths)
    if not environments.is_dry_run(beam_options):
        claim(options)
    done = runner.run(
        lambda p: p | "Patterns" >> beam.Create([options.input]) | "Extract" >> stage,
        beam_options,
        stages(options.output),
    )
    return manifest.read_manifest(options.output) if done else {}
