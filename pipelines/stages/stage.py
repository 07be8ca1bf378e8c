"""What a stage is: the one contract that a build, a command and the progress display hold every stage to."""

import abc
import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import apache_beam as beam

from maskmill.storage import manifest, outcomes
from pipelines.running import environments, runner
from pipelines.running.workload import Workload
from pipelines.settings import beam_flags
from pipelines.settings.options import option_defaults, parameters
from pipelines.stages import kernels
from pipelines.stages.checks import Checked
from pipelines.terminal.progress import ProgressLine
from transforms.grouping import GroupAll

Options = TypeVar("Options")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage(abc.ABC, Generic[Options]):
    """A stage with checked options, ready to run. It is pickled with the graph.

    A run goes through these in order: the checks of every stage, which registry.py names and which need no Beam,
    `claim` for every stage, `source` of the first, `expand` of each on what the one before it gave, `close` of each on
    the workers. What the checks found are further fields of a stage.

    Attributes:
      name: as in registry.py; the manifest bears it.
      options: the stage's options; `options.output` is its directory.
      workload: how much the stage has to do, as far as the checks can tell.
      contents: the sha256 of what an option X names, as `X_sha256`: the content shapes the data, and the name does not.
      unclaimed: the options, and those of `contents`, with which the output directory may be run again at other values.
    """

    name: ClassVar[str]
    options: Options
    workload: Workload
    contents: Mapping[str, str] = dataclasses.field(default_factory=dict)
    unclaimed: Sequence[str] = ()

    @classmethod
    def of(cls, checked: Checked) -> Self:
        """The stage of what its checks found."""
        return cls(
            options=checked.options,
            workload=checked.workload,
            contents=checked.contents,
            unclaimed=checked.unclaimed,
            **checked.found,
        )

    @property
    def output(self) -> str:
        """The directory that the stage writes."""
        directory: str = self.options.output  # type: ignore[attr-defined]
        return directory

    @property
    def parameters(self) -> dict[str, Any]:
        """What shapes the data, for the manifest: every option but the place of the output, and `contents`."""
        return {**parameters(self.options), **self.contents}

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters of options that are left out: a directory whose claim lacks an option was made with these.

        One whose claim does not know a checksum of `contents` is taken to have been made with the same content.
        """
        return {**option_defaults(type(self.options)), **self.contents}

    @property
    def kernels(self) -> Sequence[str]:
        """Whose kernels the stage runs, as `maskmill.kernels.compiler.chosen_modules` names them."""
        return ()

    @property
    def decided(self) -> dict[str, Any]:
        """The values that were decided for options that were left open, by name, for the manifest."""
        return {}

    @property
    def label(self) -> str:
        """The stage's label in the runner's graph."""
        return self.name.capitalize()

    @property
    def folders(self) -> Sequence[str]:
        """The folders below the output that the stage writes to, beside the output itself."""
        return ()

    def claim(self) -> manifest.Claim:
        """Checks that the output directory can be claimed for these options; the claim returned is yet to be written.

        Raises:
          UnusableInputError: it belongs to something else, or cannot be written.
        """
        parameters, defaults = (
            {name: value for name, value in values.items() if name not in self.unclaimed}
            for values in (self.parameters, self.defaults)
        )
        return manifest.check_output(self.output, self.name, parameters, defaults, self.folders)

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


def run_stages(
    stages: Sequence[Stage[Any]], beam_arguments: Sequence[str] = (), later_kernels: Sequence[str] = ()
) -> Mapping[str, Any]:
    """Runs checked stages as one graph, each on what the one before it gives.

    Args:
      stages: in order; the first was checked with is_first.
      beam_arguments: flags for Beam.
      later_kernels: what else the command will run, see kernels.prepare.

    Returns:
      The manifest of each stage by its name; empty where Beam's flags ask only for a description of the job.

    Raises:
      UnusableInputError, RunFailedError: as the stages and the runner say.
    """
    paths = tuple(dict.fromkeys(path for stage in stages for path in stage.workload.paths))
    workload = dataclasses.replace(stages[0].workload, paths=paths)
    with beam_flags.one_sentence():
        beam_options = runner.pipeline_options(beam_arguments, workload)
        beam_options.get_all_options()  # Beam reads most flags only when they are asked for
    before: dict[str, outcomes.Before] = {}
    claims: list[manifest.Claim] = []
    if not environments.is_dry_run(beam_options):
        before = {stage.output: outcomes.look(stage.output) for stage in stages}
        # Where one directory is refused, none is claimed.
        claims = [stage.claim() for stage in stages]

    with contextlib.ExitStack() as held:
        for claim in claims:
            held.enter_context(claim.held())
        return _run_claimed(stages, beam_options, later_kernels, before)


def _run_claimed(
    stages: Sequence[Stage[Any]],
    beam_options: Any,
    later_kernels: Sequence[str],
    before: Mapping[str, outcomes.Before],
) -> Mapping[str, Any]:
    """Runs stages whose directories are claimed; `before`: what these held, empty where no run is asked for."""
    if runner.is_local(beam_options):
        kernels.prepare([*(name for stage in stages for name in stage.kernels), *later_kernels])

    def build_graph(pipeline: beam.Pipeline) -> None:
        elements = stages[0].source(pipeline)
        for stage in stages:
            elements = elements | stage.label >> RunStage(stage=stage)

    if not runner.run(build_graph, beam_options, [line for stage in stages for line in stage.progress()]):
        return {}
    for output, found in before.items():
        outcomes.conclude(output, found)
    return {stage.name: manifest.read_manifest(stage.output) for stage in stages}
