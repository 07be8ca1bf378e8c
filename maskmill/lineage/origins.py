"""The way from a checkpoint, a data set or a shard back to a dump's files, and from a page to data sets that hold it.

A manifest names the shards of its stage, and for each the files that it was made from, with their sha256; a checkpoint
names the manifests of its examples. Each link is compared with the manifest that is on disk now.
"""

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from maskmill.arguments import checked
from maskmill.inspection import checkpoint_headers
from maskmill.mirrors.dump_names import date_in_name
from maskmill.releases import fingerprints
from maskmill.releases.names import RECORD, find_release, release_path
from maskmill.storage import files, manifest

_BACKWARD = ("eval", "examples", "vocabulary", "extract")  # each stage after those that read its output
# For example -p41243p151573 in the names of a dump's parts.
_PAGE_RANGE = re.compile(r"-p(\d+)p(\d+)(?=[.-]|$)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedOn:
    """A checkpoint, and what its file says about the data that it was trained on.

    Attributes:
      path: of the checkpoint. step: of its training; None if unknown.
      manifests: directory, stage and sha256 of each manifest of its examples.
      release: the release's path; None if its examples are of no release. release_fingerprint: at the time of training.
      init_checkpoint: the checkpoint that the run started from; None: from random weights.
    """

    path: str
    step: int | None
    manifests: tuple[Mapping[str, str], ...] = ()
    release: str | None = None
    release_fingerprint: str | None = None
    init_checkpoint: str | None = None


@dataclasses.dataclass(frozen=True)
class StageFacts:
    """A stage in a lineage: the names of its shards in it, the number of all its shards, and facts of its manifest."""

    stage: str
    directory: str
    manifest_sha256: str
    shards: tuple[str, ...]
    all_shards: int
    parameters: Mapping[str, Any]
    versions: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class SourceFile:
    """A file that no stage wrote, as described in the manifest of the stage that read it.

    date: of the dump; empty if unknown. pages: the range of page ids in its name; None without one.
    """

    path: str
    bytes: int | None
    sha256: str
    stage: str
    date: str
    pages: tuple[int, int] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lineage:
    """The way from something back to its sources.

    Attributes:
      path: of the call. kind: "checkpoint", "shard", "stage", "build" or "release".
      checkpoint: if there is one. release: the path of the release in the lineage, or None. fingerprint: of its data.
      stages: of the lineage, the last one first. sources: the files that it begins with.
      problems: links that do not match, a sentence each. gaps: places where the lineage cannot be followed.
    """

    path: str
    kind: str
    checkpoint: TrainedOn | None
    release: str | None
    fingerprint: str
    stages: tuple[StageFacts, ...]
    sources: tuple[SourceFile, ...]
    problems: tuple[str, ...]
    gaps: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class HoldingDataSet:
    """The shards of a stage that may hold a page, the number of all its shards, and the source files of the page."""

    stage: str
    directory: str
    shards: tuple[str, ...]
    all_shards: int
    files: tuple[str, ...]


@checked
def lineage_of(path: str | os.PathLike[str]) -> Lineage | None:
    """Return the lineage of a checkpoint, a shard, a stage, a build or a release: from it back to its sources.

    Args:
      path: local or gs://.

    Returns:
      None if the path is something else.

    Raises:
      UnusableInputError, RunFailedError: a file of the lineage cannot be read.
    """
    path = absolute(os.fspath(path))
    if files.base_name(path) in (manifest.MANIFEST, RECORD, "report.html"):
        path = files.parent(path)
    chain = _Chain()
    if chain.manifest_of(path):
        chain.follow(path)
        return chain.lineage(path, "stage")
    if stages := fingerprints.manifest_digests(path):
        for stage in stages:
            chain.follow(files.join(path, fingerprints.DATA_STAGES[stage]))
        return chain.lineage(path, "release" if find_release(path) else "build")
    if (found := chain.holder(path)) is not None:
        chain.follow(found[0], {found[1]})
        return chain.lineage(path, "shard")
    if path.endswith(".safetensors") or files.list_directory(path, "*.safetensors") or files.exists(f"{path}.index"):
        checkpoint = trained_on(path)
        chain.begin_at(checkpoint)
        return chain.lineage(path, "checkpoint", checkpoint)
    return None


@checked
def data_sets_with(root: str | os.PathLike[str], page: int) -> list[HoldingDataSet]:
    """Return the data sets below a directory that may hold a page of a wiki, according to their manifests.

    A file whose name has a range of page ids holds those pages; any other file may hold the page.

    Args:
      root: the directory of releases, of builds, or of one.
      page: the page's id.

    Raises:
      UnusableInputError, RunFailedError: a manifest cannot be read.
    """
    chain, found = _Chain(), []
    for path in files.list_below(absolute(os.fspath(root))):
        directory = files.parent(path)
        if files.base_name(path) != manifest.MANIFEST or chain.manifest_of(directory)["stage"] == "vocabulary":
            continue
        holding = chain.shards_with(directory, page)
        if holding:
            listing = chain.manifest_of(directory)
            read = tuple({source: None for sources in holding.values() for source in sources})
            found.append(HoldingDataSet(listing["stage"], directory, tuple(holding), len(listing["shards"]), read))
    return found


def absolute(path: str) -> str:
    """Return an absolute path; a remote one is returned without a slash at its end."""
    return os.path.abspath(os.path.expanduser(path)) if files.is_local(path) else path.rstrip("/")


def trained_on(path: str) -> TrainedOn:
    """Return a checkpoint's record of its training data.

    Args:
      path: of a checkpoint, or of a directory, whose newest checkpoint is taken.

    Raises:
      UnusableInputError: it cannot be read.
    """
    header = checkpoint_headers.read_checkpoint_header(path)
    metadata = header.metadata
    # Copies of a checkpoint's weights in other formats have these fields under other names.
    data = json.loads(metadata.get("data") or metadata.get("maskmill_data") or "{}")
    step = metadata.get("step") or metadata.get("maskmill_step", "")
    return TrainedOn(
        path=header.path,
        step=int(step) if step.isdecimal() else None,
        manifests=tuple(data.get("manifests", ())),
        release=data.get("release"),
        release_fingerprint=data.get("release_fingerprint"),
        init_checkpoint=header.settings.get("init_checkpoint"),
    )


def page_range(path: str) -> tuple[int, int] | None:
    """Return the range of page ids in the name of a dump's part: (41243, 151573) for …-p41243p151573.bz2."""
    found = _PAGE_RANGE.findall(files.base_name(path))
    return (int(found[-1][0]), int(found[-1][1])) if found else None


class _Chain:
    """Follows manifests from shards back to sources."""

    def __init__(self) -> None:
        self._manifests: dict[str, dict[str, Any]] = {}
        self._followed: dict[str, dict[str, None]] = {}  # the names of shards by their stage's directory
        self._sources: dict[str, SourceFile] = {}
        self._problems: dict[str, None] = {}  # in order, each once
        self._gaps: dict[str, None] = {}
        self._holding: dict[str, dict[str, list[str]]] = {}

    def manifest_of(self, directory: str) -> dict[str, Any]:
        """Return a directory's manifest, with its sha256 and its shards by file name; {} if it has none."""
        if directory not in self._manifests:
            path = files.join(directory, manifest.MANIFEST)
            content = files.read_if_there(path)
            listing = {} if content is None else manifest.parse_manifest(path, content)
            self._manifests[directory] = listing
            if content is not None:
                by_file = {
                    file["name"]: shard
                    for shard in listing["shards"]
                    for file in (shard, *manifest.files_of_shard(shard))
                }
                listing |= {"sha256": hashlib.sha256(content).hexdigest(), "by_file": by_file}
        return self._manifests[directory]

    def holder(self, path: str, reader: str = "") -> tuple[str, str] | None:
        """Return the directory of the stage that wrote a file, and the name of its shard; None if no stage did.

        reader: the directory of the stage that read it. The stages of a build that was moved are still siblings of it.
        """
        folder, name = files.parent(path), files.base_name(path)
        places = [folder, files.parent(folder)]  # MDS has a folder for each split
        if reader:
            places = [*(files.join(files.parent(reader), files.base_name(place)) for place in places), *places]
        for place in places:
            by_file = {} if place == reader else self.manifest_of(place).get("by_file", {})
            entry = by_file.get(name) or by_file.get(f"{files.base_name(folder)}/{name}")
            if entry is not None:
                return place, entry["name"]
        return None

    def begin_at(self, checkpoint: TrainedOn) -> None:
        """Follow the examples of a checkpoint."""
        if not checkpoint.manifests:
            self._gaps[f"{checkpoint.path}: this checkpoint does not name the manifests of its examples."] = None
        for trained in checkpoint.manifests:
            directory = trained["directory"]
            if not self.manifest_of(directory):
                self._gaps[f"{directory}: the examples of the checkpoint are no longer there."] = None
                continue
            if self.manifest_of(directory)["sha256"] != trained["sha256"]:
                self._problems[
                    f"{directory}: the checkpoint was trained on examples whose manifest has the sha256 "
                    f"{trained['sha256']}, but the manifest there now has {self.manifest_of(directory)['sha256']}."
                ] = None
            self.follow(directory)

    def follow(self, directory: str, names: Iterable[str] | None = None) -> None:
        """Follow some shards of a stage, or all of them, back to files that no stage wrote."""
        listing, before = self.manifest_of(directory), self._followed.setdefault(directory, {})
        entries = [entry for entry in listing["shards"] if entry["name"] not in before]
        entries = [entry for entry in entries if names is None or entry["name"] in names]
        before |= dict.fromkeys(entry["name"] for entry in entries)
        read: dict[str, set[str]] = {}
        for path, sha256 in _inputs_of(listing, entries).items():
            found = self.holder(path, directory)
            if found is None:
                self._sources.setdefault(path, _source(path, sha256, listing))
                continue
            read.setdefault(found[0], set()).add(found[1])
            entry = self.manifest_of(found[0])["by_file"][found[1]]
            if sha256 not in {file.get("sha256") for file in (entry, *manifest.files_of_shard(entry))}:
                self._problems[
                    f"{files.join(*found)}: {directory} was made from this file when its sha256 was {sha256}, but "
                    f"its manifest now says {entry.get('sha256')}."
                ] = None
        for holder, shards in read.items():
            self.follow(holder, shards)

    def shards_with(self, directory: str, page: int) -> dict[str, list[str]]:
        """Return the names of a stage's shards that may hold a page, each with the sources that may have it."""
        if directory not in self._holding:
            listing = self.manifest_of(directory)
            self._holding[directory] = {}
            for entry in listing["shards"]:
                sources = []
                for path in entry.get("inputs") or [entry["path"] for entry in listing["inputs"]]:
                    found, pages = self.holder(path, directory), page_range(path)
                    if found is not None:
                        sources += self.shards_with(found[0], page).get(found[1], [])
                    elif pages is None or pages[0] <= page <= pages[1]:
                        sources.append(path)
                if sources:
                    self._holding[directory][entry["name"]] = sources
        return self._holding[directory]

    def lineage(self, path: str, kind: str, checkpoint: TrainedOn | None = None) -> Lineage:
        """Return the lineage that was followed."""
        release = next((release_path(*place) for place in map(find_release, self._followed) if place), None)
        release = release or (None if checkpoint is None else checkpoint.release)
        digests = {} if release is None else fingerprints.manifest_digests(release)
        fingerprint = fingerprints.fingerprint_of(digests) if digests else ""
        if release is not None and not digests:
            self._gaps[f"{release}: this release is no longer there."] = None
        if digests and checkpoint is not None and checkpoint.release_fingerprint not in (None, fingerprint):
            self._problems[
                f"{release}: the checkpoint was trained on the release with the fingerprint "
                f"{checkpoint.release_fingerprint}, but the release there now has {fingerprint}."
            ] = None
        stages = [
            _stage(directory, tuple(names), self.manifest_of(directory)) for directory, names in self._followed.items()
        ]
        return Lineage(
            path=path,
            kind=kind,
            checkpoint=checkpoint,
            release=release,
            fingerprint=fingerprint,
            stages=tuple(sorted(stages, key=lambda stage: _BACKWARD.index(stage.stage))),
            sources=tuple(self._sources.values()),
            problems=tuple(self._problems),
            gaps=tuple(self._gaps),
        )


def _inputs_of(listing: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the sha256 by path of the shards' inputs; of all inputs if the manifest does not list them by shard."""
    listed = {entry["path"]: entry["sha256"] for entry in listing["inputs"]}
    if not all("inputs" in entry for entry in listing["shards"]):
        return listed
    # An input that no shard lists, such as a vocabulary, is an input of all shards.
    shared = listed.keys() - {path for entry in listing["shards"] for path in entry["inputs"]}
    own = {path: sha256 for entry in entries for path, sha256 in entry["inputs"].items()}
    return own | {path: sha256 for path, sha256 in listed.items() if path in shared}


def _source(path: str, sha256: str, listing: Mapping[str, Any]) -> SourceFile:
    size = next((entry.get("bytes") for entry in listing["inputs"] if entry["path"] == path), None)
    decided = listing.get("decided", {}).get("dump_date") if listing["stage"] == "extract" else None
    return SourceFile(path, size, sha256, listing["stage"], date_in_name(path) or decided or "", page_range(path))


def _stage(directory: str, names: tuple[str, ...], listing: Mapping[str, Any]) -> StageFacts:
    shards = (names, len(listing["shards"]))
    return StageFacts(
        listing["stage"], directory, listing["sha256"], *shards, listing["parameters"], listing.get("versions", {})
    )
