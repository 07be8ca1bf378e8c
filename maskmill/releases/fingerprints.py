"""What tells the data of a release, or of any build, apart from all others: the checksums of its stages' manifests.

A manifest names each shard with its sha256, and has no time in it: a build that is made again has the same fingerprint,
and so has a copy of it. It names the paths of inputs as well, so the same options give another fingerprint in another
directory. The training reads the data, so it is no part of this.
"""

import hashlib
from collections.abc import Callable, Mapping

from maskmill.storage import completions, files, manifest

# The directories of a build by the stages that make data in them.
DATA_STAGES = {"extract": "text", "vocabulary": "vocabulary", "examples": "examples", "eval": "eval"}


def manifest_digests(directory: str, read: Callable[[str], bytes | None] = files.read_if_there) -> dict[str, str]:
    """Return the sha256 of the manifests of a build's finished stages, by the stages' names.

    Args:
      directory: of the build.
      read: gives the content of a path, None where there is no file.

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
    """Return the fingerprint of data whose stages' manifests have these sha256; other stages do not count."""
    counted = {name: digest for name, digest in digests.items() if name in DATA_STAGES}
    return hashlib.sha256(completions.canonical_json(counted).encode()).hexdigest()
