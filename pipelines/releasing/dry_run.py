"""`maskmill build --dry_run`: what would run, what is there, and why. Beam is not imported, and nothing is written."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.releases import locks, removing
from maskmill.releases.names import ReleaseName
from pipelines.building import stage_states
from pipelines.building.build_options import BuildChoices, BuildOptions
from pipelines.building.stage_states import StageState
from pipelines.releasing import release_inputs
from pipelines.releasing.release_inputs import InputFile
from pipelines.releasing.release_plan import ReleasePlan, make_plan

_WOULD = {"run": "would run", "resume": "would go on", "reuse": "would be reused", "refuse": "would be refused"}


def report(options: BuildOptions, choices: BuildChoices) -> None:
    """Print what a build would do.

    Raises:
      UnusableInputError: the inputs are missing, or a stage that a run leaves out is not finished.
    """
    told = of_release(options, choices) if choices.release else of_build(options, choices)
    print(json.dumps(told, indent=1, ensure_ascii=False) if choices.json else "\n".join(_lines(told)))


def of_build(options: BuildOptions, choices: BuildChoices) -> dict[str, Any]:
    """Return what a plain build would do, as `--json` prints it."""
    options, dump = release_inputs.with_input(options, choices.dump)
    inputs = release_inputs.find_inputs(options, dump)
    names = stage_states.selected(options, choices.from_, choices.until)
    stage_states.check_finished(options, names)
    states = stage_states.states_of(options, names, inputs=_by_path(inputs))
    return {
        "release": None,
        "directory": options.output,
        "dump": release_inputs.described(dump),
        "inputs": [file.path for file in inputs],
        "stages": list(map(dataclasses.asdict, states)),
    }


def of_release(options: BuildOptions, choices: BuildChoices) -> dict[str, Any]:
    """Return what a build of a release would do, as `--json` prints it."""
    plan = make_plan(options, choices.dump)
    names = stage_states.selected(plan.options, choices.from_, choices.until)
    keep = choices.keep if choices.keep is not None else options.release.keep
    dump = plan.record.dump if plan.record is not None and plan.dump is None else release_inputs.described(plan.dump)
    return {
        "release": str(plan.name),
        "directory": plan.directory,
        "complete": plan.record is not None,
        "latest": _text(plan.latest),
        "becomes_latest": plan.latest is None or plan.latest.date <= plan.name.date,
        "locked": _locked_by(plan),
        "dump": dump,
        "inputs": _paths(plan),
        "stages": list(map(dataclasses.asdict, _states(plan, names))),
        "removes": [str(name) for name in _removed(plan, keep, options.release.keep_days)],
    }


def _paths(plan: ReleasePlan) -> list[str]:
    if plan.record is not None and not plan.inputs:
        return [str(entry["path"]) for entry in plan.record.inputs]
    return [file.path for file in plan.inputs]


def _states(plan: ReleasePlan, names: Sequence[str]) -> list[StageState]:
    if plan.record is not None:
        return [
            StageState(
                name=name,
                directory=stage_states.directory_of(plan.options, name),
                action="reuse",
                reason="the release is complete",
            )
            for name in names
        ]
    stage_states.check_finished(plan.options, names)
    return stage_states.states_of(plan.options, names, inputs=_by_path(plan.inputs))


def _by_path(inputs: Sequence[InputFile]) -> dict[str, str]:
    """Return the sha256 of inputs by path; a store's own checksum is not what manifests hold."""
    return {file.path: file.checksum for file in inputs if file.algorithm == "sha256"}


def _removed(plan: ReleasePlan, keep: int | None, keep_days: float) -> list[ReleaseName]:
    """Return the releases that a clean-up after the new one would remove."""
    if keep is None:
        return []
    return removing.removable(plan.root, keep, keep_days, new=plan.name)


def _locked_by(plan: ReleasePlan) -> str | None:
    """Return who builds the release now, as a clause; None if nobody does."""
    holder = locks.holder_of(plan.root, plan.name)
    return None if holder is None else f"{holder.owner} since {locks.show_time(holder.started)}"


def _text(name: ReleaseName | None) -> str | None:
    return None if name is None else str(name)


def _lines(told: Mapping[str, Any]) -> list[str]:
    """Return the lines that a person reads."""
    lines = []
    if told["release"] is not None:
        state = "complete" if told["complete"] else f"locked by {told['locked']}" if told["locked"] else "not complete"
        lines.append(f"release: {told['directory']} ({state})")
        lines.append(f"latest:  {told['latest'] or 'none yet'}")
        if not told["complete"]:
            lines.append(f"         it would {'' if told['becomes_latest'] else 'not '}become the latest")
    else:
        lines.append(f"build:   {told['directory']}")
    lines.append(f"inputs:  {_shortened(told['inputs'])}")
    width = max(len(stage["name"]) for stage in told["stages"])
    for stage in told["stages"]:
        lines.append(f"  {stage['name']:<{width}}  {_WOULD[stage['action']]}: {stage['reason']}")
    lines += [f"removes: {name}" for name in told.get("removes", ())]
    return [*lines, "nothing was run or written."]


def _shortened(paths: Sequence[str]) -> str:
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more" if paths else "none"
