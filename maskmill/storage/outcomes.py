"""What a run found finished, what it made, and what it made again and why; and whether a build in a store is finished.

The process that starts a run lists the completion records before and after it, so this works alike on every runner.
Only what was made again is noted by the workers (completions.note_remade), because it is rare. The manifest has none of
this: it is the same for every attempt.

To look at each piece of a finished build in a store takes hundreds of requests; a listing tells of a thousand objects.
So a record says what all of them were, and while that fits, nothing is run.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maskmill.storage import completions, files, manifest

_FINISHED = "finished"  # the kind of the records of what is finished
_OF_RUNS = tuple(f"/{completions.work_name(kind, '')}" for kind in (_FINISHED, completions.RUN, completions.REMADE))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of the pieces of a run over an earlier one.

    reused, made: how many pieces of each kind were there, or were made. remade: those that were there and were made
    again, as "name: what was wrong". changed_inputs: the paths of inputs that have other content than in the build
    before.
    """

    reused: Mapping[str, int]
    made: Mapping[str, int] = dataclasses.field(default_factory=dict)
    remade: tuple[str, ...] = ()
    changed_inputs: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """What became of a stage: its manifest, and what became of its pieces; None after a first run."""

    made: Mapping[str, Any]
    outcome: Outcome | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Before:
    """What an output directory held when the run began.

    keys: of the completion records, by kind. inputs: the sha256 of the inputs of the last build, by path.
    """

    keys: Mapping[str, Sequence[str]]
    inputs: Mapping[str, str]

    def found(self) -> Outcome | None:
        """Return the outcome of a run that finds all of it finished; None where there is no piece."""
        reused = {kind: len(keys) for kind, keys in self.keys.items() if keys}
        return Outcome(reused=reused) if reused else None


def look(output: str) -> Before:
    """Return what an output directory holds now; call it before the run."""
    with files.remembering(output):
        made = manifest.find_manifest(output) or {"inputs": []}
        inputs = {entry["path"]: entry["sha256"] for entry in made["inputs"]}
        return Before(keys=completions.all_keys(output), inputs=inputs)


def conclude(output: str, before: Before) -> Outcome | None:
    """Compare an output directory with what it held before, once the run is over; None where it held no piece.

    The notes of what was made again are deleted.
    """
    with files.remembering(output):
        after, notes = look(output), _take_notes(output)
    if not any(before.keys.values()) and not notes:
        return None
    remade = {(note["kind"], note["key"]) for note in notes}
    reused, made = dict[str, int](), dict[str, int]()
    for kind, keys in after.keys.items():
        found = set(before.keys[kind]) - {key for of, key in remade if of == kind}
        reused[kind] = len(found.intersection(keys))
        made[kind] = len(keys) - reused[kind]
    return Outcome(
        reused={kind: number for kind, number in reused.items() if number},
        made={kind: number for kind, number in made.items() if number},
        remade=tuple(sorted(f"{note['name']}: {note['reason']}" for note in notes)),
        changed_inputs=tuple(
            path for path, sha256 in after.inputs.items() if before.inputs.get(path, sha256) != sha256
        ),
    )


def _take_notes(output: str) -> list[dict[str, Any]]:
    """Return the notes of what was made again, and delete them."""
    notes, keys = [], completions.keys(output, completions.REMADE)
    for key in keys:
        note = completions.load(output, completions.REMADE, key)
        kind, _, piece = key.partition("-")
        # A note can be damaged like any other file; what it is about stands in its name.
        notes.append(note or {"kind": kind, "key": piece, "name": f"{kind} {piece}", "reason": "it was damaged"})
    files.delete([completions.work_path(output, completions.REMADE, f"{key}.json") for key in keys])
    return notes


def store_finished(place: str, name: str, key: str, directories: Sequence[str]) -> None:
    """Remember that what lies below directories of a store is finished.

    Args:
      place: the directory of a stage, in whose work directory the record lies.
      name: of what is finished.
      key: a fingerprint of all that it depends on.
      directories: of what was made.
    """
    if not files.is_local(place) and (listed := _digest(directories)):
        completions.store(place, _FINISHED, name, {"key": key, "objects": listed})


def is_finished(place: str, name: str, key: Callable[[], str], directories: Sequence[str]) -> bool:
    """Return whether the same work is finished, and every object below the directories is as it was then.

    key: gives the fingerprint; called last, because it may read all local inputs.
    """
    if files.is_local(place):
        return False
    record = completions.load(place, _FINISHED, name)
    return record is not None and record["objects"] == _digest(directories) and record["key"] == key()


def _digest(directories: Sequence[str]) -> str:
    """Return a checksum over the paths and checksums of all objects below directories; "" where a store tells none.

    What is said of runs does not count: it is written once the work is done.
    """
    digest = hashlib.sha256()
    for directory in directories:
        for file in files.objects_below(directory):
            if not file.checksum:
                return ""
            if not any(folder in file.path for folder in _OF_RUNS):
                digest.update(f"{file.path}\t{file.size}\t{file.checksum}\n".encode())
    return digest.hexdigest()
