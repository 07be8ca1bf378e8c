"""Count the work items that a run found finished, made, or made again, and mark builds in stores as finished.

The process that starts a run lists the completion records before and after it, so this works alike on every runner.
Workers note only the items that they make again (completions.note_remade), which are rare. The manifest has none of
this: it is the same for every attempt.

To check each item of a finished build in a store takes hundreds of requests, but a listing has a thousand objects. So a
record keeps a checksum of the listing, and while that is the same, nothing is run.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maskmill.storage import completions, files, manifest

_FINISHED = "finished"  # the kind of the records of finished builds
_OF_RUNS = tuple(f"/{completions.work_name(kind, '')}" for kind in (_FINISHED, completions.RUN, completions.REMADE))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a run in the directory of an earlier one.

    reused, made: the numbers of work items that were found or made, by kind. remade: the items that were found damaged
    and made again, as "name: reason". changed_inputs: the paths of inputs whose content differs from the earlier
    build's.
    """

    reused: Mapping[str, int]
    made: Mapping[str, int] = dataclasses.field(default_factory=dict)
    remade: tuple[str, ...] = ()
    changed_inputs: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a stage: its manifest, and the outcome of its work items; None after a first run."""

    made: Mapping[str, Any]
    outcome: Outcome | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Before:
    """The content of an output directory before a run.

    keys: of the completion records, by kind. inputs: the sha256 of the inputs of the last build, by path.
    """

    keys: Mapping[str, Sequence[str]]
    inputs: Mapping[str, str]

    def found(self) -> Outcome | None:
        """Return the outcome of a run that finds all items finished; None if there are none."""
        reused = {kind: len(keys) for kind, keys in self.keys.items() if keys}
        return Outcome(reused=reused) if reused else None


def look(output: str) -> Before:
    """Return the content of an output directory; call it before the run."""
    with files.remembering(output):
        made = manifest.find_manifest(output) or {"inputs": []}
        inputs = {entry["path"]: entry["sha256"] for entry in made["inputs"]}
        return Before(keys=completions.all_keys(output), inputs=inputs)


def conclude(output: str, before: Before) -> Outcome | None:
    """Return the outcome of a run that has ended; None if there was no item before it.

    The notes of items that were made again are deleted.
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
    """Return the notes of items that were made again, and delete them."""
    notes, keys = [], completions.keys(output, completions.REMADE)
    for key in keys:
        note = completions.load(output, completions.REMADE, key)
        kind, _, item = key.partition("-")
        # A note can be damaged like any other file; its name has the kind and the key.
        notes.append(note or {"kind": kind, "key": item, "name": f"{kind} {item}", "reason": "it was damaged"})
    files.delete([completions.work_path(output, completions.REMADE, f"{key}.json") for key in keys])
    return notes


def store_finished(place: str, name: str, key: str, directories: Sequence[str]) -> None:
    """Record that a build in a store is finished.

    Args:
      place: the directory of a stage, whose work directory gets the record.
      name: of the build.
      key: a fingerprint of all that it depends on.
      directories: of its output.
    """
    if not files.is_local(place) and (listed := _digest(directories)):
        completions.store(place, _FINISHED, name, {"key": key, "objects": listed})


def is_finished(place: str, name: str, key: Callable[[], str], directories: Sequence[str]) -> bool:
    """Return whether the same build is finished, and no object below the directories has changed since.

    key: returns the fingerprint; called last, because it may read all local inputs.
    """
    if files.is_local(place):
        return False
    record = completions.load(place, _FINISHED, name)
    return record is not None and record["objects"] == _digest(directories) and record["key"] == key()


def _digest(directories: Sequence[str]) -> str:
    """Return a checksum over the paths and checksums of all objects below directories; "" if the store has none.

    Records of runs are excluded: they are written after the work is done.
    """
    digest = hashlib.sha256()
    for directory in directories:
        for file in files.objects_below(directory):
            if not file.checksum:
                return ""
            if not any(folder in file.path for folder in _OF_RUNS):
                digest.update(f"{file.path}\t{file.size}\t{file.checksum}\n".encode())
    return digest.hexdigest()
