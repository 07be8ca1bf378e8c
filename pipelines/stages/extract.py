"""extract: a dump or another corpus → text shards, the eval set and manifest.json."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import apache_beam as beam

from maskmill.storage.files import FileInfo
from maskmill.text import text_shards
from maskmill.text.text_shards import TextShard
from pipelines.settings.options import parameters
from pipelines.settings.stage_options import ExtractOptions
from pipelines.stages import kernels
from pipelines.stages.stage import Stage
from pipelines.terminal.progress import ProgressLine
from transforms.extraction import template_library
from transforms.extraction.template_library import CollectTemplates
from transforms.inputs.batches import CutIntoBatches, FindInputs
from transforms.shards import close_text, sentence_choice
from transforms.shards import fragments as fragment_step
from transforms.shards.assembling import AssembleTextShards
from transforms.shards.fragments import ExtractDocuments
from transforms.shards.mlperf_shards import CleanRawFiles, GatherParts, PackRawFiles, TakeRawFiles
from transforms.shards.options import Source
from transforms.shards.planning import PlanTextShards
from transforms.shards.sentence_choice import ChooseSentences


def has_text(shard: TextShard) -> bool:
    """Whether a shard holds anything: the eval text of a small corpus can be empty."""
    return shard.size > 0


def find_inputs(found: beam.PCollection, options: ExtractOptions) -> beam.PCollection:
    """Adds the step that looks at the inputs which the checks have found; gives one list of InputFile."""
    return found | "FindInputs" >> FindInputs(
        patterns=options.input, dump_date=options.dump_date, input_format=options.input_format
    )


def extract_documents(
    inputs: beam.PCollection, options: ExtractOptions, output: str, source: str = ""
) -> beam.PCollection:
    """Adds the steps from one list of InputFile to Fragment; `source` names the source of a mix."""
    extraction = options.decided_extraction
    expands = extraction.wikitext.expand_templates
    if not extraction.doc_blocks:
        inputs = inputs | "ChooseSentences" >> ChooseSentences(
            extraction=extraction, input_format=options.input_format, output=output, source=source
        )
    batches = inputs | "CutIntoBatches" >> CutIntoBatches(
        input_format=options.input_format,
        reading=extraction.reading,
        limit=options.split.max_documents,
        output=output,
        kinds=(template_library.PIECES, fragment_step.KIND) if expands else (fragment_step.KIND,),
        source=source,
    )
    if expands:
        batches = batches | "CollectTemplates" >> CollectTemplates(reading=extraction.reading, output=output)
    return batches | "ExtractDocuments" >> ExtractDocuments(options=extraction, output=output)  # Fragment


def progress_of(output: str) -> list[ProgressLine]:
    """Languages for which Punkt is trained, templates where they are expanded, units, text shards."""
    return [
        ProgressLine(label="train Punkt", output=output, kind=sentence_choice.KIND),
        ProgressLine(label="templates", output=output, kind=template_library.PIECES),
        ProgressLine(label="extract", output=output, kind=fragment_step.KIND),
        ProgressLine(label="text shards", output=output, kind=text_shards.KIND),
    ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractStage(Stage[ExtractOptions]):
    """Input: one sequence, the inputs. Output: TextShard, the description of each shard with text.

    inputs: as the checks have found them: from then on none may vanish, change or be added.
    from_doc_files: whether the inputs are WikiExtractor's files, which the reference's chain takes as they are.
    reads_pages: whether one of the inputs is a dump.
    """

    name: ClassVar[str] = "extract"
    inputs: Sequence[FileInfo]
    from_doc_files: bool
    reads_pages: bool

    @property
    def kernels(self) -> Sequence[str]:
        """Those of the inputs, as `kernels.of_extract`."""
        return kernels.of_extract(self.options, reads_pages=self.reads_pages)

    @property
    def decided(self) -> dict[str, Any]:
        """The extractor, the share or number of the eval set, the size of the shards."""
        given = self.parameters
        return {name: value for name, value in parameters(self.options.decided).items() if value != given[name]}

    def source(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """The inputs."""
        return pipeline | "Inputs" >> beam.Create([self.inputs])

    def expand(self, elements: beam.PCollection) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
        """Adds the steps of the default mode, or of the reference's chain."""
        inputs = find_inputs(elements, self.options)
        if self.options.compat == "mlperf":
            return self._expand_mlperf(inputs)
        extraction, output = self.options.decided_extraction, self.output
        fragments = extract_documents(inputs, self.options, output)
        shards = (
            fragments
            | "PlanTextShards" >> PlanTextShards(split=self.options.split.decided, extraction=extraction, output=output)
            | "AssembleTextShards" >> AssembleTextShards(extractions={"": extraction}, output=output)
        )
        return shards | "HasText" >> beam.Filter(has_text), [shards, fragments]

    def _expand_mlperf(self, inputs: beam.PCollection) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
        options, extraction, output = self.options.mlperf, self.options.decided_extraction, self.output
        finished = []
        if self.from_doc_files:
            raw_files = inputs | "TakeRawFiles" >> TakeRawFiles()
        else:
            fragments = extract_documents(inputs, self.options, output)
            finished.append(fragments)
            raw_files = fragments | "PackRawFiles" >> PackRawFiles(output=output)
        cleaned = raw_files | "CleanRawFiles" >> CleanRawFiles(options=options, extraction=extraction, output=output)
        shards = cleaned | "GatherParts" >> GatherParts(options=options, extraction=extraction, output=output)
        return shards | "HasText" >> beam.Filter(has_text), [*finished, cleaned, shards]

    def close(self, elements: Sequence[Any]) -> None:
        """Writes eval.md5 and the manifest, and sweeps."""
        close_text.close_text_shards(
            elements,
            [Source(extraction=self.options.decided_extraction, max_documents=self.options.split.max_documents)],
            parameters=self.parameters,
            decided=self.decided,
            output=self.output,
        )

    def progress(self) -> list[ProgressLine]:
        """The steps that take long."""
        return progress_of(self.output)
