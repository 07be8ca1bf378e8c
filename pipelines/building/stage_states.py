"""The state of a stage's directory, found without Beam and without a change: is it finished, and does it fit?"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from maskmill.errors import UnusableInputError
from maskmill.storage import completions, files, manifest
from pipelines.settings import options as option_tools
from pipelines.stages.stage import Build, GraphStage
from pipelines.stages.train_stage import TrainStage

Action = Literal["run", "resume", "reuse", "refuse"]

# Of options that name a file, the content counts and not the name.
_DIGEST = "_sha256"
_MOST_NAMED = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class StageState:
    """The action that a run would take for a stage.

    Attributes:
      name: of the stage. directory: its output.
      action: run it; resume it, if a part is there; reuse what is there; refuse, because the directory holds data of
        other options, which a run never replaces.
      reason: a clause that says why.
    """

    name: str
    directory: str
    action: Action
    reason: str


def graph_names(options: Build) -> list[str]:
    """Return the names of the stages that are of the graph and write a manifest, in order: all but the training."""
    return [stage.name for stage in options.stages if issubclass(stage, GraphStage)]


def directory_of(options: Build, name: str) -> str:
    """Return the directory of a stage."""
    stage = options.named(name)
    return stage.output_of(options[stage])


def selected(options: Build, first: str | None, last: str | None) -> list[str]:
    """Return the names of the stages from one to another, both included; None: from the beginning, to the end.

    Raises:
      UnusableInputError: the build does not have such a stage, or the last one comes before the first.
    """
    names = options.names
    for flag, name in (("from", first), ("until", last)):
        if name is not None and name not in names:
            raise UnusableInputError(f"--{flag}: this build has no stage {name}; it has {', '.join(names)}.")
    start = 0 if first is None else names.index(first)
    end = len(names) if last is None else names.index(last) + 1
    if start >= end:
        raise UnusableInputError(f"--from {first} comes after --until {last}; the stages are {', '.join(names)}.")
    return names[start:end]


def check_finished(options: Build, names: Sequence[str]) -> None:
    """Check that the stages before those of a run are finished, with these options.

    Raises:
      UnusableInputError: one is not.
    """
    for name in options.names[: options.names.index(names[0])]:
        directory = directory_of(options, name)
        made = manifest.find_manifest(directory)
        if made is None:
            raise UnusableInputError(
                f"{directory}: the stage {name} is not finished here; leave --from out, or begin with --from {name}."
            )
        differing = differences(made, name, options)
        if differing:
            raise UnusableInputError(
                f"{directory}: the stage {name} was made with other parameters ({_listed(differing)}); name another "
                "output, or delete this directory."
            )
        if name != "extract" and (changed := _unfit_inputs(options, name, made)):
            raise UnusableInputError(f"{directory}: {changed}; begin with --from {name}.")
        if problem := _damaged(directory, made):
            raise UnusableInputError(f"{directory}: {problem}; begin with --from {name}, which makes them again.")


def states_of(options: Build, names: Sequence[str], *, inputs: Mapping[str, str] | None = None) -> list[StageState]:
    """Return what a run of stages would do about each.

    names: of the stages that would run, in order. inputs: the sha256 of the build's inputs by path, if they are known.
    """
    states: list[StageState] = []
    for name in names:
        runs_before = next((s.name for s in states if s.action in ("run", "resume")), "")
        states.append(_state_of(options, name, inputs or {}, runs_before))
    return states


def _state_of(options: Build, name: str, inputs: Mapping[str, str], runs_before: str) -> StageState:
    directory = directory_of(options, name)

    def state(action: Action, reason: str) -> StageState:
        return StageState(name=name, directory=directory, action=action, reason=reason)

    if name == TrainStage.name:
        is_begun = bool(files.list_directory(directory))
        return state("resume", "goes on from its last checkpoint") if is_begun else state("run", "has not begun")
    made = manifest.find_manifest(directory)
    if made is None:
        pieces = sum(map(len, completions.all_keys(directory).values()))
        if pieces:
            return state("resume", f"no manifest; {pieces:,} pieces are finished")
        return state("run", "no manifest")
    if made["stage"] != name:
        return state("refuse", f"the directory belongs to {made['stage']}")
    if differing := differences(made, name, options):
        return state("refuse", f"parameters differ: {_listed(differing)}")
    if runs_before:
        return state("run", f"{runs_before} runs before it")
    if changed := _changed_inputs(made, inputs):
        return state("run", f"inputs changed: {changed}")
    if name != "extract" and (problem := _unfit_inputs(options, name, made)):
        return state("run", f"inputs changed: {problem}")
    if problem := _damaged(directory, made):
        return state("resume", problem)
    return state("reuse", "complete")


def differences(made: Mapping[str, Any], name: str, options: Build) -> list[str]:
    """Return how the parameters of a finished stage differ from those of a build: `NAME OLD, now NEW` each."""
    own = options[options.named(name)]
    wanted = json.loads(completions.canonical_json(option_tools.parameters(own)))
    unclaimed = getattr(own, "ADDITIONS", ())
    before = made["parameters"]
    found = []
    for key, value in wanted.items():
        if key in unclaimed or key not in before or before[key] == value:
            continue
        old = before.get(f"{key}{_DIGEST}")
        if old is None or _digest_of(value) != old:
            found.append(f"{key} {option_tools.shown(before[key])}, now {option_tools.shown(value)}")
        # A path that is the same may have other content.
    return found + [f"{key}: its content changed" for key, value in wanted.items() if _has_changed(key, value, before)]


def _has_changed(key: str, value: Any, before: Mapping[str, Any]) -> bool:
    digest = before.get(f"{key}{_DIGEST}")
    return digest is not None and before.get(key) == value and _digest_of(value) not in (None, digest)


def _digest_of(path: Any) -> str | None:
    """Return the sha256 of the file that an option names; None if it names none."""
    if not isinstance(path, str) or files.is_glob(path):
        return None
    try:
        return hashlib.sha256(files.read_bytes(path)).hexdigest()
    except UnusableInputError:
        return None


def _changed_inputs(made: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """Return which inputs of a finished stage are others now; empty if none is known to be."""
    if made["stage"] != "extract" or not inputs:
        return ""
    before = {entry["path"]: entry["sha256"] for entry in made["inputs"]}
    changed = [path for path, sha256 in inputs.items() if before.get(path) != sha256]
    changed += [path for path in before if path not in inputs]
    return _listed(sorted(changed))


def _unfit_inputs(options: Build, name: str, made: Mapping[str, Any]) -> str:
    """Return which files of the stages before a finished one are not those that it was made of: a clause; empty without
    any.

    What those stages made is looked up in their manifests, so nothing is read.
    """
    known: dict[str, str] = {}
    for other in options.names:
        if other == name:
            break
        directory = directory_of(options, other)
        for entry in (manifest.find_manifest(directory) or {"shards": []})["shards"]:
            for file in manifest.files_of_shard(entry):
                known[files.join(directory, file["name"])] = file.get("sha256", "")
    changed = [
        entry["path"] for entry in made["inputs"] if known.get(entry["path"], entry["sha256"]) != entry["sha256"]
    ]
    return f"{_listed(changed)} changed since it was made" if changed else ""


def _damaged(directory: str, made: Mapping[str, Any]) -> str:
    """Return how many files of a finished stage are missing or have another size: a clause; empty without any."""
    listed = [file for entry in made["shards"] for file in manifest.files_of_shard(entry)]
    folders = {files.parent(files.join(directory, file["name"])) for file in listed}
    sizes = {path: size for folder in sorted(folders) for path, size in files.sizes_in(folder).items()}
    found = [(file, sizes.get(files.join(directory, file["name"]))) for file in listed]
    bad = [file for file, size in found if size is None or size != file.get("bytes", size)]
    return f"{len(bad):,} of {len(listed):,} files are missing or changed" if bad else ""


def _listed(found: Sequence[str]) -> str:
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return ", ".join(found[:_MOST_NAMED]) + more
