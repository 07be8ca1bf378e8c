"""`maskmill build --dry_run`: what would run, and why. Beam is not imported, and nothing is written."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.releases import locks, pointer
from pipelines.building import downloads, stage_states
from pipelines.building.build_options import BuildChoices, BuildOptions
from pipelines.building.stage_states import StageState
from pipelines.releasing import release_inputs
from pipelines.releasing.release_inputs import InputFile
from pipelines.releasing.release_plan import make_plan

_WOULD = {"run": "would run", "resume": "would go on", "reuse": "would be reused", "refuse": "would be refused"}


def report(options: BuildOptions, choices: BuildChoices) -> None:
    """Print what a build would do.

    Raises:
      UnusableInputError: the inputs are missing, or an unfinished stage is left out of the run.
    """
    build = _of_release(options, choices) if choices.release else _of_build(options, choices)
    print(json.dumps(build, indent=1, ensure_ascii=False) if choices.json else "\n".join(_lines(build)))


def _of_build(options: BuildOptions, choices: BuildChoices) -> dict[str, Any]:
    options, dump = downloads.with_input(options, choices.dump)
    inputs = release_inputs.find_inputs(options, dump)
    return {
        "release": None,
        "directory": options.output,
        "dump": downloads.described(dump),
        "inputs": [file.path for file in inputs],
        "stages": _stages(options, choices, inputs),
    }


def _of_release(options: BuildOptions, choices: BuildChoices) -> dict[str, Any]:
    plan, latest = make_plan(options, choices.dump), pointer.read_latest(options.output)
    holder = locks.holder_of(plan.root, plan.name)
    return {
        "release": str(plan.name),
        "directory": plan.directory,
        "complete": plan.record is not None,
        "latest": None if latest is None else str(latest.name),
        "becomes_latest": latest is None or latest.name.date <= plan.name.date,
        "locked": None if holder is None else str(holder),
        "dump": downloads.described(plan.dump) if plan.record is None else plan.record.dump,
        "inputs": [file["path"] for file in plan.record.inputs] if plan.record else [file.path for file in plan.inputs],
        "stages": _stages(plan.options, choices, plan.inputs, is_complete=plan.record is not None),
    }


def _stages(
    options: BuildOptions,
    choices: BuildChoices,
    inputs: Sequence[InputFile],
    *,
    is_complete: bool = False,
) -> list[dict[str, Any]]:
    """Return the state of each stage, and what would be done for it."""
    names = stage_states.selected(options, choices.from_, choices.until)
    if is_complete:
        states = [
            StageState(
                name=name,
                directory=stage_states.directory_of(options, name),
                action="reuse",
                reason="the release is complete",
            )
            for name in names
        ]
    else:
        stage_states.check_finished(options, names)
        # Manifests hold sha256 only, not other checksums of a store.
        sha256 = {file.path: file.checksum for file in inputs if file.algorithm == "sha256"}
        states = stage_states.states_of(options, names, inputs=sha256)
    return list(map(dataclasses.asdict, states))


def _lines(build: Mapping[str, Any]) -> list[str]:
    """Return the report as lines of text."""
    lines = [f"build:   {build['directory']}"]
    if build["release"] is not None:
        state = (
            "complete" if build["complete"] else f"locked by {build['locked']}" if build["locked"] else "not complete"
        )
        lines = [f"release: {build['directory']} ({state})", f"latest:  {build['latest'] or 'none yet'}"]
        if not build["complete"]:
            lines.append(f"         it would {'' if build['becomes_latest'] else 'not '}become the latest")
    first, *others = build["inputs"] or ["none"]
    lines.append(f"inputs:  {first}" + (f" and {len(others)} more" if others else ""))
    width = max(len(stage["name"]) for stage in build["stages"])
    for stage in build["stages"]:
        lines.append(f"  {stage['name']:<{width}}  {_WOULD[stage['action']]}: {stage['reason']}")
    return [*lines, "nothing was run or written."]
