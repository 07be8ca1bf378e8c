"""The fingerprint of a release's data, or of any build's: a checksum over the manifests of its stages.

A manifest names each shard with its sha256, and holds no time: repeating or copying a build keeps the fingerprint. It
also names the paths of inputs, so the same options give another fingerprint in another directory. The training only
reads the data, so it does not count.
"""

import hashlib
from collections.abc import Callable, Mapping

from maskmill.storage import completions, files, manifest

# The directories of a build, by the stages that write data into them.
DATA_STAGES = {"extract": "text", "vocabulary": "vocabulary", "examples": "examples", "eval": "eval"}


def manifest_digests(directory: str, read: Callable[[str], bytes | None] = files.read_if_there) -> dict[str, str]:
    """Return the sha256 of the manifests of a build's finished stages, by the stages' names.

    Args:
      directory: of the build.
      read: returns the content of a path, or None if there is no file.

    Raises:
      UnusableInputError, RunFailedError: a manifest cannot be read.
    """
    digests = {}
    for name, folder in DATA_STAGES.items():
        content = read(files.join(files.join(directory, folder), manifest.MANIFEST))
        if content is not None:
            digests[name] = hashlib.sha256(content).hexdigest()
    return digests


def fingerprint_of(digests: Mapping[str, str]) -> str:
    """Return the fingerprint of data from the sha256 of its stages' manifests; other stages are ignored."""
    counted = {name: digest for name, digest in digests.items() if name in DATA_STAGES}
    return hashlib.sha256(completions.canonical_json(counted).encode()).hexdigest()
