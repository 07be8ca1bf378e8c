"""What a stage is: the one contract that a build, a command and the progress display hold every stage to."""

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import apache_beam as beam

from pipelines import environments, runner
from pipelines.options import parameters
from pipelines.runner import ProgressLine, Workload
from transforms.grouping import GroupAll
from transforms.kernels import compiler
from transforms.storage import manifest

Options = TypeVar("Options")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage(abc.ABC, Generic[Options]):
    """A stage with checked options, ready to run. It is pickled with the graph.

    A run goes through these in order: `check` for every stage, `claim` for every stage, `source` of the first,
    `expand` of each on what the one before it gave, `close` of each on the workers.

    Attributes:
      name: as in pipelines/stages.py; the manifest bears it.
      options: the stage's options; `options.output` is its directory.
      workload: how much the stage has to do, as far as `check` can tell.
    """

    name: ClassVar[str]
    options: Options
    workload: Workload

    @classmethod
    @abc.abstractmethod
    def check(cls, options: Options, *, is_first: bool) -> Self:
        """Looks at everything that can be looked at before any work: inputs, vocabularies, extras that are needed.

        Args:
          options: the stage's options.
          is_first: whether the stage reads its own input; otherwise the stage before it makes that.

        Raises:
          UnusableInputError: with these options or inputs it cannot run.
        """

    @property
    def output(self) -> str:
        """The directory that the stage writes."""
        directory: str = self.options.output  # type: ignore[attr-defined]
        return directory

    @property
    def parameters(self) -> dict[str, Any]:
        """What shapes the data, for the manifest: every option but the place of the output."""
        return parameters(self.options)

    @property
    def kernels(self) -> Sequence[str]:
        """Whose kernels the stage runs, as `transforms.kernels.compiler.warm` names them."""
        return ()

    @property
    def decided(self) -> dict[str, Any]:
        """The values that were decided for options that were left open, by name, for the manifest."""
        return {}

    @property
    def label(self) -> str:
        """The stage's label in the runner's graph."""
        return self.name.capitalize()

    def claim(self) -> None:
        """Claims the output directory for these options.

        Raises:
          UnusableInputError: it belongs to something else, or cannot be written.
        """
        manifest.prepare_output(self.output, self.name, self.parameters)

    def source(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """What the stage reads where it is the first."""
        raise TypeError(f"{self.name} reads what another stage makes")

    @abc.abstractmethod
    def expand(self, elements: beam.PCollection) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
        """Adds the stage's steps to the graph.

        Returns:
          What the next stage reads, and every collection whose elements `close` gets.
        """

    @abc.abstractmethod
    def close(self, elements: Sequence[Any]) -> None:
        """Writes the manifest once all is there, and deletes what older builds left over. Runs on a worker.

        Args:
          elements: of the collections that `expand` named, in no order.
        """

    @abc.abstractmethod
    def progress(self) -> list[ProgressLine]:
        """What the progress display follows."""


@dataclasses.dataclass(kw_only=True, eq=False)
class RunStage(beam.PTransform):
    """A stage's steps, and its closing step behind all of them.

    Input: what the stage reads. Output: what the next one reads.
    """

    stage: Stage[Any]

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        made, finished = self.stage.expand(elements)
        _ = finished | beam.Flatten() | "AllFinished" >> GroupAll() | "Close" >> beam.Map(self.stage.close)
        return made


def run_stages(stages: Sequence[Stage[Any]], beam_arguments: Sequence[str] = ()) -> Mapping[str, Any]:
    """Runs checked stages as one graph, each on what the one before it gives.

    Args:
      stages: in order; the first was checked with is_first.
      beam_arguments: flags for Beam.

    Returns:
      The manifest of each stage by its name; empty where Beam's flags ask only for a description of the job.

    Raises:
      UnusableInputError, RunFailedError: as the stages and the runner say.
    """
    paths = tuple(dict.fromkeys(path for stage in stages for path in stage.workload.paths))
    workload = dataclasses.replace(stages[0].workload, paths=paths)
    beam_options = runner.pipeline_options(beam_arguments, workload)
    if not environments.is_dry_run(beam_options):
        for stage in stages:
            stage.claim()

    if runner.is_local(beam_options):
        compiler.prepare([name for stage in stages for name in stage.kernels])

    def build_graph(pipeline: beam.Pipeline) -> None:
        elements = stages[0].source(pipeline)
        for stage in stages:
            elements = elements | stage.label >> RunStage(stage=stage)

    if not runner.run(build_graph, beam_options, [line for stage in stages for line in stage.progress()]):
        return {}
    return {stage.name: manifest.read_manifest(stage.output) for stage in stages}
