"""manifest.json: what an output directory holds, and from what it was made.

It carries no clock, no host and no attempt, so the same build gives the same manifest wherever it runs.
"""

import dataclasses
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transforms.errors import UnusableInputError
from transforms.storage import completions, files

MANIFEST = "manifest.json"
REJECTED = "rejected.jsonl"
_PARAMETERS = "parameters.json"


def prepare_output(output: str, stage: str, parameters: Mapping[str, Any]) -> None:
    """Claims an output directory for a stage with these parameters, or finds that it is claimed for the same.

    Raises:
      UnusableInputError: the directory cannot be written, holds something else, or was made with other parameters.
    """
    if files.is_local(output) and os.path.isdir(output) and not os.access(output, os.W_OK | os.X_OK):
        raise UnusableInputError(f"{output}: this directory is not writable.")
    wanted = json.loads(completions.canonical_json({"stage": stage, "parameters": dict(parameters)}))
    claim = files.join(files.join(output, completions.WORK_DIRECTORY), _PARAMETERS)
    if not files.exists(claim):
        foreign = [f for f in files.list_directory(output) if not f.endswith(files.TEMPORARY_SUFFIX)]
        if foreign:
            raise UnusableInputError(
                f"{output}: this directory holds other files ({files.base_name(foreign[0])}, …); "
                "name an empty or a new one."
            )
        files.make_directory(output)
        files.write_bytes(claim, completions.canonical_json(wanted, indent=1).encode())
    found = json.loads(files.read_bytes(claim))
    if found == wanted:
        return
    if found.get("stage") != stage:
        raise UnusableInputError(f"{output}: this directory belongs to {found.get('stage')!r}; name another one.")
    changed = [k for k, v in wanted["parameters"].items() if found["parameters"].get(k) != v]
    changed += [k for k in found["parameters"] if k not in wanted["parameters"]]
    name = changed[0]
    raise UnusableInputError(
        f"{output}: this directory was made with other parameters ({name}={found['parameters'].get(name)!r}, now "
        f"{wanted['parameters'].get(name)!r}); name another directory or delete this one."
    )


def versions() -> dict[str, Any]:
    """The versions of what made the data."""
    packages = ("maskmill", "apache-beam", "numba", "numpy", "nltk")
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found | {"python": platform.python_version(), "formats": dict(completions.FORMAT_VERSIONS)}


def write_manifest(
    output: str,
    *,
    stage: str,
    parameters: Mapping[str, Any],
    inputs: Sequence[Mapping[str, Any]],
    shards: Sequence[Any],
    counts: Mapping[str, Mapping[str, int]],
    rejected: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Writes manifest.json and, where anything was set aside, rejected.jsonl; returns the manifest.

    Args:
      output: the directory of the shards.
      stage: the stage's name.
      parameters: all options that shaped the data.
      inputs: of each input its path, bytes and sha256.
      shards: dataclasses or mappings, one a shard, in order: name, bytes, sha256, counts, inputs.
      counts: of each step its counts in and out.
      rejected: what was set aside, each with where and why.
    """
    set_aside = [completions.canonical_json(r) for r in rejected]
    manifest = {
        "stage": stage,
        "parameters": dict(parameters),
        "versions": versions(),
        "inputs": list(inputs),
        "counts": {step: dict(values) for step, values in counts.items()},
        "shards": list(shards),
    }
    path = files.join(output, REJECTED)
    if set_aside:
        files.write_bytes(path, ("\n".join(set_aside) + "\n").encode())
    elif files.exists(path):
        files.delete([path])
    text = completions.canonical_json(manifest, indent=1)
    files.write_bytes(files.join(output, MANIFEST), text.encode())
    plain: dict[str, Any] = json.loads(text)
    return plain


def read_manifest(output: str) -> dict[str, Any]:
    """The manifest of a finished output directory.

    Raises:
      UnusableInputError: there is none.
    """
    path = files.join(output, MANIFEST)
    if not files.exists(path):
        raise UnusableInputError(f"{path}: there is no manifest; the build into this directory is not finished.")
    manifest: dict[str, Any] = json.loads(files.read_bytes(path))
    return manifest


def sweep(output: str, *, keep: Iterable[str], patterns: Sequence[str], records: Mapping[str, Iterable[str]]) -> None:
    """Deletes what is left over in an output directory once its manifest is written.

    Args:
      output: the directory.
      keep: names of the files that belong to the data set.
      patterns: globs of names that only this stage gives; files that fit one and are not kept are of an older
        build with another number of shards.
      records: for each kind of completion record the keys that still fit. Other files of that kind go.
    """
    kept = set(keep)
    stale = [
        path
        for pattern in patterns
        for path in files.list_directory(output, pattern)
        if files.base_name(path) not in kept
    ]
    for kind, keys in records.items():
        fitting = set(keys)
        directory = completions.work_path(output, kind, "")
        stale += [
            p for p in files.list_directory(directory.rstrip("/")) if files.base_name(p).split(".")[0] not in fitting
        ]
    # The work directory holds folders of their own for each kind; attempts that died leave temporaries in any.
    folders = [output, *(completions.work_path(output, kind, "").rstrip("/") for kind in records)]
    stale = [p for p in stale if not p.endswith(files.TEMPORARY_SUFFIX)]
    files.delete(sorted(set(stale)))
    for folder in folders:
        files.delete_abandoned(folder)


def as_dict(value: Any) -> dict[str, Any]:
    """A dataclass's fields as a plain mapping, one level deep."""
    return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
