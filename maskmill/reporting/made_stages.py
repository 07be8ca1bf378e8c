"""The stages of a build or of a single directory, described by their manifests."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.storage import files, manifest

# The folders of a build, and what is in them.
FOLDERS = ("text", "vocabulary", "examples", "eval")
TITLES: Mapping[str, str] = {
    "extract": "Text",
    "vocabulary": "Vocabulary",
    "examples": "Examples",
    "eval": "Picked eval examples",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class MadeStage:
    """A directory that a stage has written.

    Attributes:
      name: of the stage: "extract", "vocabulary", "examples" or "eval".
      directory: its path.
      manifest: the content of its manifest.
    """

    name: str
    directory: str
    manifest: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The stage's output, as a heading."""
        return TITLES.get(self.name, self.name)

    @property
    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Its counts, by what they count, by step or split."""
        counts: Mapping[str, Mapping[str, int]] = self.manifest["counts"]
        return counts

    def counted(self, step: str, name: str) -> int:
        """Return a count; 0 if it is missing."""
        return int(self.counts.get(step, {}).get(name) or 0)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The options that it ran with."""
        parameters: Mapping[str, Any] = self.manifest["parameters"]
        return parameters

    def parameter(self, name: str) -> Any:
        """Return the value of an option; if the user left it open, the value that was decided."""
        decided = self.manifest.get("decided", {}).get(name)
        return self.parameters.get(name) if decided is None else decided

    @property
    def shards(self) -> Sequence[Mapping[str, Any]]:
        """The manifest's descriptions of the shards."""
        shards: Sequence[Mapping[str, Any]] = self.manifest["shards"]
        return shards

    @property
    def input_bytes(self) -> int:
        """The size of its inputs in bytes, as far as the manifest says."""
        return sum(int(entry.get("bytes") or 0) for entry in self.manifest["inputs"])

    def bytes_of(self, kind: str | None = None) -> int:
        """Return the size of its shards in bytes: of one kind, or of all."""
        chosen = [shard for shard in self.shards if kind is None or shard.get("kind") == kind]
        return sum(int(file.get("bytes") or 0) for shard in chosen for file in manifest.files_of_shard(shard))


def find_stages(path: str) -> tuple[MadeStage, ...]:
    """Return the stages below a build's directory, or the one with this directory, in the order in which they run.

    Raises:
      UnusableInputError: there is no stage.
    """
    found = stages_of(path)
    if not found:
        raise UnusableInputError(
            f"{path}: there is no {manifest.MANIFEST} here, nor in {', '.join(FOLDERS)} below it, to report on; name "
            "the directory of a build or of one of its stages."
        )
    return found


def stages_of(path: str) -> tuple[MadeStage, ...]:
    """Return the stages like `find_stages`, but none if there is nothing to report on (a build of other stages)."""
    directories = [path, *(files.join(path, folder) for folder in FOLDERS)]
    manifests = files.each(path, lambda directory: manifest.find_manifest(directory), directories)
    found = [(content, place) for content, place in zip(manifests, directories, strict=True) if content is not None]
    found = [one for one in found if one[1] == path] or found
    stages = [MadeStage(name=content["stage"], directory=directory, manifest=content) for content, directory in found]
    return tuple(sorted(stages, key=lambda stage: [*TITLES, stage.name].index(stage.name)))
