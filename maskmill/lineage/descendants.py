"""What was made of something: from a file of a dump, or from any data, to shards and checkpoints below a directory."""

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.lineage.origins import TrainedOn, inputs_of, trained_on
from maskmill.releases import fingerprints
from maskmill.releases.names import RELEASES, find_release
from maskmill.storage import files, manifest

_SHA256 = re.compile(r"[0-9a-f]{64}")
_CHECKPOINT = re.compile(r"step-\d{10}\.safetensors$")


@dataclasses.dataclass(frozen=True)
class MadeShards:
    """Shards of a stage that were made of something: their names, of how many, and its manifest's sha256."""

    stage: str
    directory: str
    names: tuple[str, ...]
    all_shards: int
    manifest_sha256: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Descendants:
    """What a build, or a release, made of something.

    Attributes:
      build: its directory. release: its name; empty of a plain build. fingerprint: of its data.
      read: paths of the inputs that are meant, as the build has read them; empty if the data themselves are meant.
      stages: with the shards that were made of it, in the order in which they were.
      checkpoints: of trainings on them, by their paths.
    """

    build: str
    release: str
    fingerprint: str
    read: tuple[str, ...] = ()
    stages: tuple[MadeShards, ...] = ()
    checkpoints: tuple[TrainedOn, ...] = ()


@checked
def made_of_source(root: str | os.PathLike[str], source: str | os.PathLike[str]) -> list[Descendants]:
    """What was made of a file that no stage made.

    Args:
      root: the directory below which it is looked for: of releases, of builds, or a build.
      source: the file's path, its name, or its sha256.

    Raises:
      UnusableInputError, RunFailedError: what is below the directory cannot be read.
    """
    root, source, found = os.fspath(root), os.fspath(source), list[Descendants]()
    trainings = checkpoints_below(root)
    for build in builds_below(root):
        read, digests = _inputs_named(build, source)
        if read:
            found.append(_descendants(build, trainings, read=read, digests=digests))
    return found


def made_of_shards(root: str, directory: str, names: Iterable[str] | None) -> Descendants:
    """What was made of shards of a stage, or of all of them.

    Args:
      root: the directory below which checkpoints are looked for.
      directory: of the stage.
      names: of the shards; None: all.
    """
    made = manifest.read_manifest(directory)
    chosen = [entry for entry in made["shards"] if names is None or entry["name"] in set(names)]
    digests = {str(file["sha256"]) for entry in chosen for file in manifest.files_of_shard(entry)}
    return _descendants(files.parent(directory), checkpoints_below(root), read=(), digests=digests)


def trainings_on(root: str, build: str) -> Descendants:
    """The checkpoints that were trained on a build's examples.

    Args:
      root: the directory below which they are looked for.
      build: the directory of the build.
    """
    return _descendants(build, checkpoints_below(root), read=(), digests=None)


def builds_below(root: str) -> list[str]:
    """The directories of builds: the one that is named, releases and folders in it, and releases in these."""
    found: dict[str, None] = {}
    for place in (root, *_folders(root)):
        for build in (place, *_folders(files.join(place, RELEASES))):
            if fingerprints.manifest_digests(build):
                found.setdefault(build)
    return list(found)


def checkpoints_below(root: str) -> list[TrainedOn]:
    """The checkpoints of trainings below a directory. Those that say nothing, or cannot be read, are left out."""
    return [checkpoint for path in _checkpoint_paths(root) if (checkpoint := _trained_on(path)) is not None]


def _trained_on(path: str) -> TrainedOn | None:
    try:
        found = trained_on(path)
    except UnusableInputError:
        return None  # it is being written, or deleted, by a training that goes on
    return found if found.manifests else None


def _checkpoint_paths(root: str) -> Iterator[str]:
    if not files.is_local(root):
        yield from sorted(path for path in files.list_below(root) if _CHECKPOINT.search(path))
        return
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        yield from (files.join(directory, name) for name in sorted(names) if _CHECKPOINT.search(name))


def _folders(directory: str) -> list[str]:
    """The paths of the folders in a directory; none if it is not one."""
    if not files.is_local(directory):
        return [files.join(directory, name) for name in files.list_folders(directory) if name[:1] != "."]
    if not os.path.isdir(directory):
        return []
    entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    # `latest` is a link to a release that is found by its own name.
    return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name[:1] != "."]


def _inputs_named(build: str, source: str) -> tuple[tuple[str, ...], set[str]]:
    """The inputs of a build's stages that a source is: their paths, and their sha256."""
    read, digests = dict[str, None](), set[str]()
    for folder in fingerprints.DATA_STAGES.values():
        made = manifest.find_manifest(files.join(build, folder))
        for entry in () if made is None else made["inputs"]:
            if _is_meant(str(entry["path"]), str(entry["sha256"]), source):
                read.setdefault(str(entry["path"]))
                digests.add(str(entry["sha256"]))
    return tuple(read), digests


def _is_meant(path: str, sha256: str, source: str) -> bool:
    if _SHA256.fullmatch(source):
        return sha256 == source
    return path == source or files.base_name(path) == files.base_name(source)


def _descendants(
    build: str, trainings: Sequence[TrainedOn], *, read: Sequence[str], digests: set[str] | None
) -> Descendants:
    """What was made in a build of files with these sha256; of all there is without."""
    place, made_digests = find_release(build), fingerprints.manifest_digests(build)
    stages: list[MadeShards] = []
    reached = None if digests is None else set(digests)
    for stage, folder in fingerprints.DATA_STAGES.items():
        directory = files.join(build, folder)
        made = manifest.find_manifest(directory)
        if made is None or reached is None:
            continue
        is_shared = not reached.isdisjoint(inputs_of(made, []).values())  # all shards were made of it
        names = [str(entry["name"]) for entry in made["shards"] if is_shared or _was_made_of(entry, reached)]
        if names:
            stages.append(MadeShards(stage, directory, tuple(names), len(made["shards"]), made_digests[stage]))
            reached |= {
                str(file.get("sha256"))
                for entry in made["shards"]
                if entry["name"] in names
                for file in manifest.files_of_shard(entry)
            }
    wanted = {made_digests.get(one.stage) for one in stages} if reached is not None else set(made_digests.values())
    return Descendants(
        build=build,
        release="" if place is None else str(place[1]),
        fingerprint=fingerprints.fingerprint_of(made_digests) if made_digests else "",
        read=tuple(read),
        stages=tuple(stages),
        checkpoints=tuple(one for one in trainings if any(made.get("sha256") in wanted for made in one.manifests)),
    )


def _was_made_of(entry: Mapping[str, Any], digests: set[str]) -> bool:
    """Whether a shard was made of files with one of these sha256, as its own inputs say."""
    own = entry.get("inputs")
    return isinstance(own, Mapping) and not digests.isdisjoint(own.values())
