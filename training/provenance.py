"""The data of a run: the release with its fingerprint, and the manifests of the examples.

The run writes this into its log and its checkpoints, where `maskmill lineage` reads it. It is not a setting of the run:
the same data may be at another place when the run is resumed. This imports neither TensorFlow nor Keras.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.releases import fingerprints
from maskmill.releases.names import find_release, release_path
from maskmill.storage import files, manifest
from maskmill.storage.paths import is_web
from training.options import TrainOptions

# The most folders between a manifest and its files of examples: MDS has a folder for each split.
_MOST_FOLDERS = 2


def provenance(options: TrainOptions, read: Callable[[str], bytes | None]) -> dict[str, Any]:
    """Return the data of a run.

    Args:
      options: of the run.
      read: returns the content of a path, or None if there is no file.

    Returns:
      `input`: the paths, on this machine absolute; `manifests`: the directory, the stage and the sha256 of each
      manifest of the examples; `release` and `release_fingerprint`: None if the examples are not of a release.

    Raises:
      UnusableInputError: the release is not the requested one, or the examples are not of it.
    """
    paths, manifests = inputs_of(options.input_file, read)
    release = options.release or next(filter(None, (_release_of(made["directory"]) for made in manifests)), None)
    fingerprint = options.release_fingerprint
    if release is not None:
        digests = fingerprints.manifest_digests(release, read)
        if digests:
            _check_release(release, digests, manifests, fingerprint)
            fingerprint = fingerprints.fingerprint_of(digests)
    return {"input": paths, "manifests": manifests, "release": release, "release_fingerprint": fingerprint}


def inputs_of(given: Sequence[str], read: Callable[[str], bytes | None]) -> tuple[list[str], list[dict[str, str]]]:
    """Return the paths in options, on this machine absolute, and the manifests of their examples."""
    parts = [part.strip() for path in given for part in path.split(",") if part.strip()]
    paths = list(map(absolute, parts))
    return paths, list(_manifests(paths, read))


def absolute(path: str) -> str:
    """Return a path that is the same from any directory."""
    return os.path.abspath(path) if files.is_local(path) else path


def described(found: dict[str, Any]) -> str:
    """Return the line about a run's data for its log; empty if nothing is known."""
    if found["release"] is not None:
        return f"data: {found['release']}, fingerprint {found['release_fingerprint'] or 'not known'}"
    return "; ".join(f"data: {made['directory']}, manifest sha256 {made['sha256']}" for made in found["manifests"])


def _manifests(paths: Sequence[str], read: Callable[[str], bytes | None]) -> Iterator[dict[str, str]]:
    """Yield the manifests of the directories of examples, each once."""
    seen = set()
    for path in paths:
        if is_web(path):
            continue  # they are read with retries, which only maskmill/reading does
        directory = path.rstrip("/")
        for _ in range(_MOST_FOLDERS + 1):
            if not directory or directory in seen:
                break
            content = read(files.join(directory, manifest.MANIFEST))
            stage = None if content is None else _stage_of(content)
            if content is not None and stage is not None:
                seen.add(directory)
                yield {"directory": directory, "stage": stage, "sha256": hashlib.sha256(content).hexdigest()}
                break
            directory = files.parent(directory)


def _stage_of(content: bytes) -> str | None:
    """Return the stage in a manifest; None for another file of the same name."""
    try:
        made = json.loads(content)
    except ValueError:
        return None
    stage = made.get("stage") if isinstance(made, dict) else None
    return stage if isinstance(stage, str) else None


def _release_of(directory: str) -> str | None:
    found = find_release(directory)
    return None if found is None else release_path(*found)


def _check_release(
    release: str, digests: dict[str, str], manifests: list[dict[str, str]], expected: str | None
) -> None:
    """Raise UnusableInputError if a release is not the requested one, or the examples are not of it."""
    found = fingerprints.fingerprint_of(digests)
    if expected is not None and expected != found:
        raise UnusableInputError(
            f"{release}: this release has the fingerprint {found}, not {expected}; name the release that is meant, or "
            "give its --release_fingerprint."
        )
    for made in manifests:
        if made["sha256"] not in digests.values():
            raise UnusableInputError(
                f"{made['directory']}: these examples are none of the release {release}; name its own, or leave "
                "--release out."
            )
