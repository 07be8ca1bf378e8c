"""What a run found finished, what it made, and what it made again and why: for the summary that a user reads.

The process that starts a run lists the completion records before and after it. So this works alike on every runner and
file system, needs nothing of the workers, and counts a piece once however often a runner tries it; metrics of Beam do
neither everywhere. Only what was made again is noted by the workers (completions.note_remade), because it is rare. The
manifest has none of this: it is the same for every attempt.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from maskmill.storage import completions, files, manifest

_LAST_RUN, _OUTCOME = "run", "last"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Before:
    """What an output directory held when the run began.

    keys: of the completion records, by kind. inputs: the sha256 of the inputs of the last build, by path.
    """

    keys: Mapping[str, frozenset[str]]
    inputs: Mapping[str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of the pieces of a run.

    is_first: whether the directory held no piece before. reused, made: how many pieces of each kind were there, or were
    made. remade: those that were there and were made again, as "name: what was wrong". changed_inputs: the paths of
    inputs that have other content than in the build before.
    """

    is_first: bool
    reused: Mapping[str, int]
    made: Mapping[str, int]
    remade: tuple[str, ...]
    changed_inputs: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """What became of a stage.

    made: its manifest. outcome: what became of its pieces; None if unknown.
    """

    made: Mapping[str, Any]
    outcome: Outcome | None = None


def look(output: str) -> Before:
    """What an output directory holds now; call it before the run."""
    with files.remembering(output):
        return Before(keys=_keys(output), inputs=_inputs(manifest.find_manifest(output)))


def conclude(output: str, before: Before) -> Outcome:
    """Compares an output directory with what it held before; call it once the run is over.

    The outcome is kept for `last_outcome`; the notes of what was made again are deleted.
    """
    with files.remembering(output):
        inputs, after, notes = _inputs(manifest.find_manifest(output)), _keys(output), _take_notes(output)
    remade = {(note["kind"], note["key"]) for note in notes}
    reused = {kind: sum((kind, key) not in remade for key in keys & before.keys[kind]) for kind, keys in after.items()}
    made = {kind: len(keys) - reused[kind] for kind, keys in after.items()}
    outcome = Outcome(
        is_first=not any(before.keys.values()),
        reused={kind: number for kind, number in reused.items() if number},
        made={kind: number for kind, number in made.items() if number},
        remade=tuple(sorted(f"{note['name']}: {note['reason']}" for note in notes)),
        changed_inputs=tuple(path for path, sha256 in inputs.items() if before.inputs.get(path, sha256) != sha256),
    )
    completions.store(output, _LAST_RUN, _OUTCOME, dataclasses.asdict(outcome))
    return outcome


def find_all_made(output: str) -> Outcome | None:
    """The outcome where all pieces of the last run were found finished, without a run; None where there was none."""
    last = last_outcome(output)
    if last is None:
        return None
    found = manifest.sum_counts((last.reused, last.made))
    return Outcome(is_first=False, reused=found, made={}, remade=(), changed_inputs=())


def last_outcome(output: str) -> Outcome | None:
    """What became of the pieces of the last run that was finished; None where there was none."""
    record = completions.load(output, _LAST_RUN, _OUTCOME)
    if record is None:
        return None
    return Outcome(
        is_first=record["is_first"],
        reused=record["reused"],
        made=record["made"],
        remade=tuple(record["remade"]),
        changed_inputs=tuple(record["changed_inputs"]),
    )


def _keys(output: str) -> dict[str, frozenset[str]]:
    """The keys of the records of each kind of piece."""
    return {kind: frozenset(keys) for kind, keys in completions.all_keys(output).items()}


def _inputs(made: Mapping[str, Any] | None) -> dict[str, str]:
    return {} if made is None else {entry["path"]: entry["sha256"] for entry in made["inputs"]}


def _take_notes(output: str) -> list[dict[str, Any]]:
    """The notes of what was made again, which are deleted."""
    notes = []
    for key in completions.keys(output, completions.REMADE):
        note = completions.load(output, completions.REMADE, key)
        kind, _, piece = key.partition("-")
        # A note can be damaged like any other file; what it is about stands in its name.
        notes.append(note or {"kind": kind, "key": piece, "name": f"{kind} {piece}", "reason": "it was damaged"})
    folder = completions.work_path(output, completions.REMADE, "").rstrip("/")
    files.delete(files.list_directory(folder, "*.json"))
    return notes
