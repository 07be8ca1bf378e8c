"""Runs checked stages as one graph."""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maskmill.storage import completions, files, finished, manifest, outcomes
from pipelines.running import runner
from pipelines.stages import kernels
from pipelines.stages.stage import GraphStage
from pipelines.terminal.progress_steps import ProgressLine
from transforms.collection import Collection, Graph

_FINISHED = "stages"


def RunStage(elements: Collection, *, stage: GraphStage[Any]) -> Collection:
    """A stage's steps, and its closing step behind all of them.

    Input: what the stage reads. Output: what the next one reads.
    """
    made, (first, *others) = stage.expand(elements)
    first.joined("Finished", *others).together("AllFinished").map("Close", stage.close)
    return made


def run_stages(
    stages: Sequence[GraphStage[Any]],
    beam_arguments: Sequence[str] = (),
    later_kernels: Sequence[str] = (),
    meanwhile: Callable[[], object] | None = None,
) -> Mapping[str, outcomes.Result]:
    """Runs checked stages as one graph, each on what the one before it gives.

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
    before: dict[str, outcomes.Before] = {}
    claims: list[manifest.Claim] = []
    is_real = not chosen.is_dry_run
    there = [stage.there or files.Listing(stage.output) for stage in stages] if is_real else []
    stages = [dataclasses.replace(stage, there=None) for stage in stages]
    if is_real and chosen.is_local and _are_finished(stages, there):
        results = files.each(first.output, _found_finished, outputs, there)
        return dict(zip(names, results, strict=True))
    if is_real:
        before = dict(zip(outputs, files.each(first.output, outcomes.look, outputs, there), strict=True))
        # Where one directory is refused, none is claimed.
        claims = files.each(first.output, lambda stage, found: stage.claim(found), stages, there)

    with contextlib.ExitStack() as held:
        files.each(first.output, lambda claim: held.enter_context(claim.held()), claims)
        return _run_claimed(stages, chosen, later_kernels, before, meanwhile)


def _found_finished(output: str, there: files.Listing) -> outcomes.Result:
    """What became of a stage that was found finished; there: what lies in its directory."""
    return outcomes.Result(
        made=manifest.read_manifest(output, there),
        outcome=outcomes.find_all_made(output),
    )


def _are_finished(stages: Sequence[GraphStage[Any]], there: Sequence[files.Listing]) -> bool:
    """Whether a run before has finished these stages, and neither their inputs nor what they made have changed.

    there: what lies in the directory of each.
    """
    place = stages[0].output
    if not stages[0].read_files or any(files.is_local(stage.output) for stage in stages):
        return False
    return finished.may_be_so(place, _FINISHED, there[0]) and finished.is_so(
        place, _FINISHED, lambda: _key_of(stages, {}), there
    )


def _key_of(stages: Sequence[GraphStage[Any]], digests: Mapping[str, str]) -> str:
    """A fingerprint of all that stages depend on; digests: the sha256 of local inputs that have just been read."""
    read = [
        (file.path, file.size, file.checksum or digests.get(file.path) or files.sha256_of(file.path))
        for file in stages[0].read_files
    ]
    described = [(stage.name, stage.output, stage.parameters) for stage in stages]
    return completions.fingerprint(described, read, manifest.versions())


def _run_claimed(
    stages: Sequence[GraphStage[Any]],
    chosen: runner.Runner,
    later_kernels: Sequence[str],
    before: Mapping[str, outcomes.Before],
    meanwhile: Callable[[], object] | None,
) -> Mapping[str, outcomes.Result]:
    """Runs stages whose directories are claimed; `before`: what these held, empty if no run is asked for."""
    if isinstance(chosen, runner.LocalRunner):
        of_stages = [name for stage in stages for name in stage.kernels]
        kernels.prepare([*of_stages, *later_kernels])
        if chosen.processes:
            kernels.load(of_stages)

    def build_graph(graph: Graph) -> None:
        elements = stages[0].source(graph)
        for stage in stages:
            elements = elements.step(RunStage, stage.name.capitalize(), stage=stage)

    lines = [
        ProgressLine(label=label, output=stage.output, kind=kind)
        for stage in stages
        for label, kind in stage.progress().items()
    ]
    if not runner.run(build_graph, chosen, lines, meanwhile):
        return {}

    place, outputs = stages[0].output, [stage.output for stage in stages]
    there = files.each(place, files.Listing, outputs)

    def conclude(output: str, found: files.Listing) -> outcomes.Result:
        made = manifest.read_manifest(output, found)
        outcome = outcomes.conclude(output, before[output], made, found)
        return outcomes.Result(made=made, outcome=outcome)

    results = files.each(place, conclude, outputs, there)
    if not any(map(files.is_local, outputs)):
        read = {entry["path"]: entry["sha256"] for entry in results[0].made["inputs"]}
        finished.store(place, _FINISHED, _key_of(stages, read), there)
    return {stage.name: result for stage, result in zip(stages, results, strict=True)}
