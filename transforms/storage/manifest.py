"""manifest.json: the content of an output directory, and the inputs and parameters that it was made from.

It has no time, host or attempt in it, so the same build gives the same manifest wherever it runs.
"""

import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from transforms.errors import UnusableInputError
from transforms.storage import completions, files

MANIFEST = "manifest.json"
REJECTED = "rejected.jsonl"
_PARAMETERS = "parameters.json"
_PACKAGES = ("maskmill", "apache-beam", "numba", "numpy", "nltk")


def prepare_output(output: str, stage: str, parameters: Mapping[str, Any]) -> None:
    """Claims an output directory for a stage with these parameters, unless an earlier run has.

    Raises:
      UnusableInputError: the directory cannot be written, has other files in it, or belongs to another stage or other
        parameters.
    """
    if files.is_local(output) and os.path.isdir(output) and not os.access(output, os.W_OK | os.X_OK):
        raise UnusableInputError(f"{output}: this directory is not writable.")
    wanted = json.loads(completions.canonical_json({"stage": stage, "parameters": dict(parameters)}))
    claim = files.join(files.join(output, completions.WORK_DIRECTORY), _PARAMETERS)
    if not files.exists(claim):
        other_files = [f for f in files.list_directory(output) if not f.endswith(files.TEMPORARY_SUFFIX)]
        if other_files:
            raise UnusableInputError(
                f"{output}: this directory holds other files ({files.base_name(other_files[0])}, …); "
                "name an empty or a new one."
            )
        files.make_directory(output)
        files.write_bytes(claim, completions.canonical_json(wanted, indent=1).encode())
    claimed = json.loads(files.read_bytes(claim))
    if claimed.get("stage") != stage:
        raise UnusableInputError(f"{output}: this directory belongs to {claimed.get('stage')!r}; name another one.")
    before, now = claimed["parameters"], wanted["parameters"]
    for name in [*now, *before]:
        if before.get(name) != now.get(name):
            raise UnusableInputError(
                f"{output}: this directory was made with other parameters ({name}={before.get(name)!r}, now "
                f"{now.get(name)!r}); name another directory or delete this one."
            )


def versions() -> dict[str, Any]:
    """The versions of the software that makes the data: of packages, of Python, and of each step's output."""
    installed = {}
    for package in _PACKAGES:
        try:
            installed[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            installed[package] = "not installed"
    return installed | {"python": platform.python_version(), "formats": dict(completions.FORMAT_VERSIONS)}


def write_manifest(
    output: str,
    *,
    stage: str,
    parameters: Mapping[str, Any],
    decided: Mapping[str, Any] = MappingProxyType({}),
    inputs: Sequence[Mapping[str, Any]],
    shards: Sequence[Any],
    counts: Mapping[str, Mapping[str, int]],
    rejected: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Writes manifest.json and, if any document was rejected, rejected.jsonl; returns the manifest.

    Args:
      output: the directory of the shards.
      stage: the stage's name.
      parameters: all options that shaped the data, as they were given or default.
      decided: the values that were decided where `parameters` leave it open.
      inputs: the path, bytes and sha256 of each input.
      shards: the name, bytes, sha256, counts and inputs of each shard, in order; dataclasses or mappings.
      counts: the counts in and out of each step.
      rejected: where each rejected document stands, and the reason.
    """
    rejected_lines = [completions.canonical_json(document) for document in rejected]
    manifest = {
        "stage": stage,
        "parameters": dict(parameters),
        "decided": dict(decided),
        "versions": versions(),
        "inputs": list(inputs),
        "counts": {step: dict(values) for step, values in counts.items()},
        "shards": list(shards),
    }
    path = files.join(output, REJECTED)
    if rejected_lines:
        files.write_bytes(path, ("\n".join(rejected_lines) + "\n").encode())
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
    """Deletes what earlier builds have left in an output directory; call it once the manifest is written.

    Args:
      output: the directory.
      keep: the names of the files that belong to the data set.
      patterns: globs of names that only this stage gives. Other files that match one are of an older build with another
        number of shards.
      records: for each kind of completion record, the keys that this build uses. Other files of that kind are deleted.
    """
    kept = set(keep)
    stale = [
        path
        for pattern in patterns
        for path in files.list_directory(output, pattern)
        if files.base_name(path) not in kept
    ]
    folders = {kind: completions.work_path(output, kind, "").rstrip("/") for kind in records}
    for kind, keys in records.items():
        used = set(keys)
        stale += [p for p in files.list_directory(folders[kind]) if files.base_name(p).split(".")[0] not in used]
    files.delete(sorted({p for p in stale if not p.endswith(files.TEMPORARY_SUFFIX)}))
    # Attempts that died may have left temporary files in any of the folders.
    for folder in (output, *folders.values()):
        files.delete_abandoned(folder)
