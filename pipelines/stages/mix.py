"""extract with sources: several dumps or corpora → one mix of text shards, the eval set and manifest.json."""

import dataclasses
import operator
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import apache_beam as beam

from maskmill.storage.files import FileInfo
from pipelines.settings.source_options import MixOptions, SourceOptions
from pipelines.stages import kernels
from pipelines.stages.extract import extract_documents, find_inputs, has_text, progress_of
from pipelines.stages.stage import Stage
from pipelines.terminal.progress import ProgressLine
from transforms.shards import close_text
from transforms.shards.assembling import AssembleTextShards
from transforms.shards.mixing import PlanMix


@dataclasses.dataclass(kw_only=True, eq=False)
class ExtractSource(beam.PTransform):
    """Extracts a source of a mix by its own options.

    Input: one mapping, from each source's name to its inputs. Output: Fragment.
    """

    source: SourceOptions
    output: str

    def expand(self, found: beam.PCollection) -> beam.PCollection:
        of_source = found | "Inputs" >> beam.Map(operator.itemgetter(self.source.name))  # sequence of FileInfo
        inputs = find_inputs(of_source, self.source.extract)  # list of InputFile
        return extract_documents(inputs, self.source.extract, self.output, self.source.name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixStage(Stage[MixOptions]):
    """Input: one mapping, from each source's name to its inputs. Output: TextShard, the description of each shard.

    For each source by its name: inputs, those that the checks have found; reads_pages, whether one of them is a dump.
    """

    name: ClassVar[str] = "extract"
    inputs: Mapping[str, Sequence[FileInfo]]
    reads_pages: Mapping[str, bool]

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of the mix and, under `sources.NAME.OPTION`, those of each source."""
        return {**self.options.parameters, **self.contents}

    @property
    def defaults(self) -> dict[str, Any]:
        """Those of `parameters` that have one."""
        return {**self.options.defaults, **self.contents}

    @property
    def kernels(self) -> Sequence[str]:
        """Those of all sources."""
        of_sources = [kernels.of_extract(s.extract, reads_pages=self.reads_pages[s.name]) for s in self.options.sources]
        return list(dict.fromkeys(kernel for of_source in of_sources for kernel in of_source))

    @property
    def decided(self) -> dict[str, Any]:
        """The eval set, the size of the shards, and the extractor of each source."""
        given = self.options.parameters
        return {name: value for name, value in self.options.decided.parameters.items() if value != given[name]}

    def source(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """The inputs of each source."""
        return pipeline | "Inputs" >> beam.Create([self.inputs])

    def expand(self, elements: beam.PCollection) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
        """Adds a branch for each source, then one plan of all of them."""
        output, sources = self.output, [source.source for source in self.options.sources]
        fragments = [
            elements | f"Extract_{source.name}" >> ExtractSource(source=source, output=output)
            for source in self.options.sources
        ] | "AllSources" >> beam.Flatten()
        shards = (
            fragments
            | "PlanMix" >> PlanMix(split=self.options.split.decided, sources=sources, output=output)
            | "AssembleTextShards"
            >> AssembleTextShards(extractions={s.name: s.extraction for s in sources}, output=output)
        )
        return shards | "HasText" >> beam.Filter(has_text), [shards, fragments]

    def close(self, elements: Sequence[Any]) -> None:
        """Writes eval.md5 and the manifest, and sweeps."""
        close_text.close_text_shards(
            elements,
            [source.source for source in self.options.sources],
            parameters=self.parameters,
            decided=self.decided,
            output=self.output,
        )

    def progress(self) -> list[ProgressLine]:
        """The steps that take long, of all sources together."""
        return progress_of(self.output)
