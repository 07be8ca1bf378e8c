"""Runs checked stages as one graph."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maskmill.storage import completions, files, manifest, outcomes
from pipelines.running import runner
from pipelines.stages import kernels
from pipelines.stages.stage import GraphStage
from pipelines.stages.stage_transform import RunStage
from pipelines.terminal.progress import ProgressLine

if TYPE_CHECKING:
    import apache_beam as beam

_FINISHED = "stages"


def run_stages(
    stages: Sequence[GraphStage[Any]],
    beam_arguments: Sequence[str] = (),
    later_kernels: Sequence[str] = (),
    meanwhile: Callable[[], object] | None = None,
) -> Mapping[str, outcomes.Result]:
    """Run checked stages as one graph, each on what the one before it gives.

    Args:
      stages: in order; the first was checked with is_first.
      later_kernels: what else the command will run, see kernels.prepare.
      meanwhile: as runner.run takes it.

    Returns:
      What became of each stage, by its name; empty if Beam's flags ask only for a description of the job.

    Raises:
      UnusableInputError, RunFailedError: as the stages and the runner say.
    """
    first, outputs = stages[0], [stage.output for stage in stages]
    names = [stage.name for stage in stages]
    paths = dict.fromkeys(path for stage in stages for path in (*stage.paths, stage.output))
    chosen = runner.choose(
        beam_arguments, input_bytes=int(first.work * first.input_bytes), pieces=first.pieces, paths=list(paths)
    )

    def build(pipeline: "beam.Pipeline") -> None:
        elements: Any = pipeline
        for stage in stages:
            elements |= stage.name.capitalize() >> RunStage(stage)

    if chosen.is_dry_run:
        runner.run(build, chosen)
        return {}
    with files.remembering(*outputs):
        before = files.each(first.output, outcomes.look, outputs)
        if chosen.is_local and _are_finished(stages):
            made = files.each(first.output, manifest.read_manifest, outputs)
            return _results(names, made, [one.found() for one in before])
        # Where one directory is refused, none is claimed.
        claims = files.each(first.output, lambda stage: stage.claim(), stages)
    with contextlib.ExitStack() as held:
        files.each(first.output, lambda claim: held.enter_context(claim.held()), claims)
        if isinstance(chosen, runner.LocalRun):
            of_stages = [name for stage in stages for name in stage.kernels]
            kernels.prepare([*of_stages, *later_kernels])
            if chosen.processes:
                kernels.load(of_stages)
        lines = [
            ProgressLine(label=label, output=stage.output, kind=kind)
            for stage in stages
            for label, kind in stage.progress().items()
        ]
        if not runner.run(build, chosen, lines, meanwhile):
            return {}
        with files.remembering(*outputs):
            made = files.each(first.output, manifest.read_manifest, outputs)
            became = files.each(first.output, outcomes.conclude, outputs, before)
            if not any(map(files.is_local, outputs)):
                read = {entry["path"]: entry["sha256"] for entry in made[0]["inputs"]}
                outcomes.store_finished(first.output, _FINISHED, _key_of(stages, read), outputs)
    return _results(names, made, became)


def _results(
    names: Sequence[str], made: Sequence[Mapping[str, Any]], became: Sequence[outcomes.Outcome | None]
) -> dict[str, outcomes.Result]:
    results = [outcomes.Result(made=one, outcome=outcome) for one, outcome in zip(made, became, strict=True)]
    return dict(zip(names, results, strict=True))


def _are_finished(stages: Sequence[GraphStage[Any]]) -> bool:
    """Return whether a run before has finished these stages, and neither their inputs nor what they made have
    changed.
    """
    outputs = [stage.output for stage in stages]
    if not stages[0].read_files or any(map(files.is_local, outputs)):
        return False
    return outcomes.is_finished(outputs[0], _FINISHED, lambda: _key_of(stages, {}), outputs)


def _key_of(stages: Sequence[GraphStage[Any]], digests: Mapping[str, str]) -> str:
    """Return a fingerprint of all that stages depend on; digests: the sha256 of local inputs that have just been
    read.
    """
    read = [
        (file.path, file.size, file.checksum or digests.get(file.path) or files.sha256_of(file.path))
        for file in stages[0].read_files
    ]
    described = [(stage.name, stage.output, stage.parameters) for stage in stages]
    return completions.fingerprint(described, read, manifest.versions())
