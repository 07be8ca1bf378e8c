"""extract with sources: several dumps or corpora → one mix of text shards, the eval set and manifest.json."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from maskmill.storage.found_files import refuse_repeated
from maskmill.text_shards.options import Source
from pipelines.settings.source_options import MixOptions
from pipelines.settings.stage_options import ExtractOptions
from pipelines.stages.extract_stage import (
    Extraction,
    ExtractStage,
    TextStage,
    check_extraction,
    check_inputs,
    kernels_of,
)
from pipelines.stages.stage import Build

if TYPE_CHECKING:
    import apache_beam as beam


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixStage(TextStage[MixOptions]):
    """Input: one mapping, from each source's name to its inputs. Output: TextShard, the description of each shard.

    For each source by its name: inputs, those that the checks have found; formats, what they are.
    """

    options_class = MixOptions
    stands_for = ExtractStage

    inputs: Mapping[str, Sequence[files.FileInfo]]
    formats: Mapping[str, Sequence[str]]

    @classmethod
    def check(cls, options: MixOptions, *, is_first: bool) -> Self:
        """Check the inputs of each source, and that no two sources share one; raise as Stage.check."""
        checked: dict[str, Extraction] = {}
        for source in options.sources:
            with _of_source(source.name):
                checked[source.name] = check_extraction(source.extract)
        sources = tuple(dataclasses.replace(s, extract=checked[s.name].options) for s in options.sources)
        options = dataclasses.replace(options, sources=sources)
        contents = {
            f"sources.{name}.{key}": value for name, one in checked.items() for key, value in one.contents.items()
        }
        cls.check_output(options, contents)
        inputs: dict[str, Sequence[files.FileInfo]] = {}
        formats: dict[str, Sequence[str]] = {}
        for source in sources:
            with _of_source(source.name):
                inputs[source.name], formats[source.name] = check_inputs(checked[source.name])
        refuse_repeated(inputs)
        paths = [path for source in sources for path in (*source.extract.input, *checked[source.name].folder)]
        return cls(
            options=options,
            read_files=[file for of_source in inputs.values() for file in of_source],
            paths=tuple(paths),
            contents=contents,
            inputs=inputs,
            formats=formats,
        )

    @classmethod
    def moved(cls, options: MixOptions, build: Build) -> MixOptions:
        """Return the options with another output, which each source has, too."""
        output = cls.decisions(build)["output"]
        sources = [
            dataclasses.replace(s, extract=dataclasses.replace(s.extract, output=output)) for s in options.sources
        ]
        return dataclasses.replace(options, output=output, sources=tuple(sources))

    @classmethod
    def expected_kernels(cls, options: MixOptions) -> Sequence[str]:
        """As if each source has a dump."""
        return [kernel for source in options.sources for kernel in kernels_of(source.extract)]

    @property
    def kernels(self) -> Sequence[str]:
        """Those of all sources."""
        of_sources = [kernels_of(s.extract, self.formats[s.name]) for s in self.options.sources]
        return list(dict.fromkeys(kernel for of_source in of_sources for kernel in of_source))

    @property
    def sources(self) -> Sequence[Source]:
        """Those of the build."""
        return [source.source for source in self.options.sources]

    def source(self, pipeline: "beam.Pipeline") -> "beam.PCollection":
        """Return the inputs of each source."""
        import apache_beam as beam

        of_sources = Mapping[str, Sequence[files.FileInfo]]
        return pipeline | "Inputs" >> beam.Create([self.inputs]).with_output_types(of_sources)

    def expand(self, elements: "beam.PCollection") -> "tuple[beam.PCollection, Sequence[beam.PCollection]]":
        """Add a branch for each source, then one plan of all of them."""
        from pipelines.stages import extract_steps

        return extract_steps.expand_mix(elements, self.options, self.output)


def extracts_of(build: Build) -> dict[str, ExtractOptions]:
    """With which options a build extracts each of its sources, by their names; without a mix there is one, named ""."""
    mix, extract = build.get(MixStage), build.get(ExtractStage)
    if mix is not None:
        return {source.name: source.extract for source in mix.sources}
    return {} if extract is None else {"": extract}


@contextlib.contextmanager
def _of_source(name: str) -> Iterator[None]:
    """Name the source in the errors of its checks."""
    try:
        yield
    except UnusableInputError as error:
        raise UnusableInputError(f"sources.{name}: {error}") from None
