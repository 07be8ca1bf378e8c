"""What data were made of: from a checkpoint, a shard or a release back to the files of a dump.

Each step is a manifest: it names the shards of its stage with their sha256, and for each the files that it was made of
with theirs. A checkpoint names the manifest of the examples that it was trained on. So every link can be compared with
what lies there now; if it does not fit, the lineage says so and goes on.
"""

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.inspection import checkpoint_headers
from maskmill.mirrors.dump_names import date_in_name
from maskmill.releases import fingerprints, records
from maskmill.releases.names import RECORD, ReleaseName, find_release, release_path
from maskmill.storage import files, manifest

# From the last stage back to the first: what a stage reads stands behind it.
_BACKWARD = ("eval", "examples", "vocabulary", "extract")
# -p41243p151573 in the names of a dump's parts.
_PAGE_RANGE = re.compile(r"-p(\d+)p(\d+)(?=[.-]|$)")
_TRAINING_DATA = "training_data"  # of a checkpoint's settings: the fingerprint of its samples


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedOn:
    """A checkpoint, and what it says of its data.

    Attributes:
      path: of the checkpoint. step: of its training; None if it says none.
      settings: that the run's result depends on.
      samples: the fingerprint of the samples that the run read; empty if it says none.
      input: the paths of the examples. manifests: directory, stage and sha256 of each manifest of theirs.
      release: the release's path; None if the examples are of none. release_fingerprint: as it was then.
      init_checkpoint: from whose weights the run began; None: from random ones.
    """

    path: str
    step: int | None
    settings: Mapping[str, Any]
    samples: str
    input: tuple[str, ...] = ()
    manifests: tuple[Mapping[str, str], ...] = ()
    release: str | None = None
    release_fingerprint: str | None = None
    init_checkpoint: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleaseFacts:
    """A release: its path, its name, the fingerprint of its data as they lie there, and its record, None without."""

    path: str
    name: str
    fingerprint: str
    record: Mapping[str, Any] | None


@dataclasses.dataclass(frozen=True)
class ShardFacts:
    """A shard: its name below its stage's directory, its split, its size in bytes, its sha256 and its inputs' paths."""

    name: str
    kind: str
    bytes: int
    sha256: str
    inputs: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class StageFacts:
    """A stage on the way.

    Attributes:
      stage: its name. directory: where it lies. manifest_sha256: of its manifest as it lies there.
      parameters, versions, counts: as in the manifest; decided: what was decided for parameters that were left open.
      shards: those that are on the way. all_shards: how many the stage has.
    """

    stage: str
    directory: str
    manifest_sha256: str
    parameters: Mapping[str, Any]
    decided: Mapping[str, Any]
    versions: Mapping[str, Any]
    counts: Mapping[str, Any]
    shards: tuple[ShardFacts, ...]
    all_shards: int


@dataclasses.dataclass(frozen=True)
class SourceFile:
    """A file that no stage made: of a dump, a corpus, or a vocabulary.

    Attributes:
      path: as the manifest has it. bytes: None if it says none. sha256: of its content then.
      stage: the stage that read it.
      date: of the dump; empty without. pages: the range of page ids in its name; None without.
      url: from where it was downloaded; empty if that is not known.
      state: "there", "gone", or "changed": it has another size or sha256 now.
    """

    path: str
    bytes: int | None
    sha256: str
    stage: str
    date: str = ""
    pages: tuple[int, int] | None = None
    url: str = ""
    state: str = "there"


@dataclasses.dataclass(frozen=True)
class Lineage:
    """The chain of something back to its sources.

    Attributes:
      path: what was asked for. kind: "checkpoint", "shard", "stage", "build" or "release".
      checkpoint, release: if there is one.
      stages: on the way, the last one first.
      sources: the files at its beginning.
      problems: links that do not fit, a sentence each. gaps: where the chain cannot be followed.
    """

    path: str
    kind: str
    checkpoint: TrainedOn | None = None
    release: ReleaseFacts | None = None
    stages: tuple[StageFacts, ...] = ()
    sources: tuple[SourceFile, ...] = ()
    problems: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()


@checked
def lineage_of(path: str | os.PathLike[str], *, checksums: bool = False) -> Lineage | None:
    """The lineage of a checkpoint, a shard, a stage, a build or a release: from it back to its sources.

    Args:
      path: local or gs://.
      checksums: whether every file on the way is read whole and its sha256 compared. Without, their sizes are
        compared, and of a single shard that was asked for the sha256.

    Returns:
      None if the path is not one of these: it may be a file of a dump, see `made_of_source`.

    Raises:
      UnusableInputError, RunFailedError: what is there cannot be read.
    """
    path = absolute(os.fspath(path))
    chain = _Chain(checksums=checksums)
    if files.base_name(path) in (manifest.MANIFEST, RECORD, "report.html"):
        path = files.parent(path)
    if manifest.find_manifest(path) is not None:
        chain.want(path, None)
        return chain.followed(path, "stage")
    digests = fingerprints.manifest_digests(path)
    if digests:
        for stage in digests:
            chain.want(files.join(path, fingerprints.DATA_STAGES[stage]), None)
        return chain.followed(path, "build" if find_release(path) is None else "release")
    if (found := _shard_at(path)) is not None:
        directory, name = found
        chain.want(directory, {name})
        chain.check_file(path, directory, name)
        return chain.followed(path, "shard")
    if _is_checkpoint(path):
        chain.begin_at(trained_on(path))
        return chain.followed(path, "checkpoint")
    return None


def absolute(path: str) -> str:
    """A path that says the same in any directory; of a remote one without a slash at its end."""
    return os.path.abspath(os.path.expanduser(path)) if files.is_local(path) else path.rstrip("/")


def trained_on(path: str) -> TrainedOn:
    """What a checkpoint says of its data.

    Args:
      path: of a checkpoint, or of a directory whose newest counts.

    Raises:
      UnusableInputError: it cannot be read.
    """
    header = checkpoint_headers.read_checkpoint_header(path)
    metadata = header.metadata
    # Copies of a checkpoint's weights, in other formats, say it under other names.
    said = metadata.get("data") or metadata.get("maskmill_data", "")
    settings, data = checkpoint_headers.settings_of(header), _json_object(said)
    manifests = [made for made in data.get("manifests", ()) if isinstance(made, dict)]
    step = metadata.get("step") or metadata.get("maskmill_step", "")
    return TrainedOn(
        path=header.path,
        step=int(step) if step.isdecimal() else None,
        settings=settings,
        samples=str(settings.get(_TRAINING_DATA, "")),
        input=tuple(map(str, data.get("input", ()))),
        manifests=tuple({name: str(value) for name, value in made.items()} for made in manifests),
        release=data.get("release"),
        release_fingerprint=data.get("release_fingerprint"),
        init_checkpoint=settings.get("init_checkpoint"),
    )


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _is_checkpoint(path: str) -> bool:
    if path.endswith(".safetensors"):
        return files.exists(path)
    return bool(files.list_directory(path, "*.safetensors")) or files.exists(f"{path}.index")


def _shard_at(path: str) -> tuple[str, str] | None:
    """The stage's directory and the shard's name, of the path of one of a shard's files; None if it is not one."""
    directory, names = path, list[str]()
    for _ in range(2):  # MDS has a folder for each split
        names.insert(0, files.base_name(directory))
        directory = files.parent(directory)
        made = manifest.find_manifest(directory)
        if made is None:
            continue
        name = "/".join(names)
        for entry in made["shards"]:
            if name in _names_of(entry):
                return directory, entry["name"]
    return None


def _names_of(entry: Mapping[str, Any]) -> set[str]:
    """The names of a shard's files, and of their indexes."""
    listed = [entry, *manifest.files_of_shard(entry)]
    return {str(file[key]) for file in listed for key in ("name", "index") if isinstance(file.get(key), str)}


def page_range(path: str) -> tuple[int, int] | None:
    """The range of page ids in the name of a part of a dump: of …-p41243p151573.bz2 (41243, 151573)."""
    found = _PAGE_RANGE.findall(files.base_name(path))
    return (int(found[-1][0]), int(found[-1][1])) if found else None


class _Chain:
    """Follows manifests backward: shards of stages are wanted, and looked at from the last stage to the first."""

    def __init__(self, *, checksums: bool) -> None:
        self._checksums = checksums
        self._wanted: dict[str, set[str] | None] = {}  # shards by the directory of their stage; None: all
        self._manifests: dict[str, tuple[Mapping[str, Any], str] | None] = {}
        self._listed: dict[str, dict[str, Mapping[str, Any]]] = {}  # shards by directory and name
        self._sizes: dict[str, dict[str, int]] = {}
        self._checkpoint: TrainedOn | None = None
        self._stages: list[StageFacts] = []
        self._sources: dict[str, SourceFile] = {}
        self._problems: dict[str, None] = {}  # in their order, each once
        self._gaps: dict[str, None] = {}

    def want(self, directory: str, names: set[str] | None) -> None:
        """Adds shards of a stage to those that are looked at; None: all."""
        before = self._wanted.get(directory, set())
        self._wanted[directory] = None if names is None or before is None else before | names

    def begin_at(self, checkpoint: TrainedOn) -> None:
        """Begins at a checkpoint."""
        self._checkpoint = checkpoint
        if not checkpoint.manifests:
            said = f", only that they are {', '.join(checkpoint.input)}" if checkpoint.input else ""
            self._gaps.setdefault(
                f"{checkpoint.path}: this checkpoint does not say which manifest its examples have{said}."
            )
        for made in checkpoint.manifests:
            directory = made.get("directory", "")
            found = self._read(directory)
            if found is None:
                self._gaps.setdefault(f"{directory}: the examples of the checkpoint are not there any more.")
                continue
            if found[1] != made.get("sha256"):
                self._problems.setdefault(
                    f"{directory}: the checkpoint was trained on examples whose manifest has the sha256 "
                    f"{made.get('sha256')}, but the one that lies there has {found[1]}."
                )
            self.want(directory, None)

    def followed(self, path: str, kind: str) -> Lineage:
        """Follows all that is wanted to its sources."""
        for stage in _BACKWARD:
            for directory in list(self._wanted):
                made = self._read(directory)
                if made is not None and made[0]["stage"] == stage:
                    self._follow(directory, self._wanted[directory], *made)
        release = self._release()
        found = (tuple(self._stages), tuple(_with_urls(self._sources.values(), release)))
        return Lineage(path, kind, self._checkpoint, release, *found, tuple(self._problems), tuple(self._gaps))

    def check_file(self, path: str, directory: str, name: str) -> None:
        """Compares a file that was asked for with its manifest, by its content."""
        found = self._read(directory)
        entries = [] if found is None else [entry for entry in found[0]["shards"] if entry["name"] == name]
        for file in (file for entry in entries for file in manifest.files_of_shard(entry)):
            if path.endswith(str(file["name"])) and files.exists(path):
                self._check_content(path, str(file.get("sha256", "")), files.join(directory, manifest.MANIFEST))

    def _read(self, directory: str) -> tuple[Mapping[str, Any], str] | None:
        """The manifest of a directory, and its sha256."""
        if directory not in self._manifests:
            content = files.read_if_there(files.join(directory, manifest.MANIFEST)) if directory else None
            self._manifests[directory] = None
            if content is not None:
                made = manifest.parse_manifest(files.join(directory, manifest.MANIFEST), content)
                self._manifests[directory] = made, hashlib.sha256(content).hexdigest()
        return self._manifests[directory]

    def _follow(self, directory: str, names: set[str] | None, made: Mapping[str, Any], digest: str) -> None:
        """Looks at shards of a stage, and wants what they were made of."""
        entries = [entry for entry in made["shards"] if names is None or entry["name"] in names]
        for entry in entries:
            self._check_files(directory, entry)
        inputs = inputs_of(made, entries)
        for path, sha256 in inputs.items():
            self._go_back(directory, str(made["stage"]), path, sha256, made)
        said = (made["parameters"], made.get("decided", {}), made.get("versions", {}), made["counts"])
        shards = tuple(_shard_facts(entry, inputs) for entry in entries)
        self._stages.append(StageFacts(str(made["stage"]), directory, digest, *said, shards, len(made["shards"])))

    def _go_back(self, directory: str, stage: str, path: str, sha256: str, made: Mapping[str, Any]) -> None:
        """Wants the shard that a stage has read, or notes the file as a source."""
        before = self._holder_of(path, directory)
        if before is None:
            # A folder of ours that is gone leaves its shards as the end of what can be followed.
            if path not in self._sources:
                self._sources[path] = self._source(path, directory, sha256, stage, made)
            return
        holder, entry = before
        self.want(holder, {entry["name"]})
        listed = {str(file.get("sha256")) for file in (entry, *manifest.files_of_shard(entry))}
        if sha256 not in listed:
            self._problems.setdefault(
                f"{files.join(holder, files.base_name(path))}: {directory} was made of this file when its sha256 was "
                f"{sha256}, but its manifest now says {entry.get('sha256')}."
            )

    def _holder_of(self, path: str, directory: str) -> tuple[str, Mapping[str, Any]] | None:
        """The directory of the stage that made a file, and the shard that it is of; None if it is a source.

        A build that was copied or moved has its stages beside one another, wherever they were made.
        """
        recorded, build = files.parent(path), files.parent(directory)
        beside = (
            files.join(build, files.base_name(recorded)),
            files.join(build, files.base_name(files.parent(recorded))),
        )
        name = files.base_name(path)
        for folder in dict.fromkeys((*beside, recorded, files.parent(recorded))):
            listed = {} if folder == directory else self._entries(folder)
            # MDS has a folder for each split.
            entry = listed.get(name) or listed.get(f"{files.base_name(recorded)}/{name}")
            if entry is not None:
                return folder, entry
        return None

    def _entries(self, directory: str) -> Mapping[str, Mapping[str, Any]]:
        """The shards of a directory by the names of their files; none if there is no manifest."""
        if directory not in self._listed:
            found = self._read(directory)
            entries = [] if found is None else found[0]["shards"]
            self._listed[directory] = {name: entry for entry in entries for name in _names_of(entry)}
        return self._listed[directory]

    def _check_files(self, directory: str, entry: Mapping[str, Any]) -> None:
        """Compares the files of a shard with its manifest: their sizes, and their content if asked for."""
        for file in manifest.files_of_shard(entry):
            path, expected = files.join(directory, str(file["name"])), file.get("bytes")
            size = self._size(path)
            if size is None:
                self._problems.setdefault(f"{path}: this shard is not there any more, and its manifest lists it.")
            elif expected is not None and size != expected:
                self._problems.setdefault(f"{path}: this shard has {size:,} bytes, but its manifest says {expected:,}.")
            elif self._checksums:
                self._check_content(path, str(file.get("sha256", "")), files.join(directory, manifest.MANIFEST))

    def _check_content(self, path: str, expected: str, by: str) -> bool:
        """Reads a file and compares its sha256; returns whether it fits."""
        sha256 = files.sha256_of(path) if expected else ""
        if sha256 != expected:
            self._problems.setdefault(f"{path}: the sha256 of this file is {sha256}, but {by} says {expected}.")
        return sha256 == expected

    def _size(self, path: str) -> int | None:
        """The size of a file; None if there is none. A directory in a bucket is listed once."""
        if files.is_local(path):
            return os.path.getsize(path) if os.path.isfile(path) else None
        folder = files.parent(path)
        if folder not in self._sizes:
            found = files.match([files.join(folder, "*")]) if files.list_directory(folder) else []
            self._sizes[folder] = {file.path: file.size for file in found}
        return self._sizes[folder].get(path)

    def _found(self, path: str, directory: str, size: int | None) -> str:
        """Where a file lies whose path is relative to the directory in which its build ran, which no manifest says."""
        above = files.parent(directory)
        # Nearly every build ran in a directory above its output; only a file of the right size is taken for the one.
        while files.is_local(path) and not os.path.isabs(path) and size is not None and self._size(path) != size:
            if self._size(files.join(above, path)) == size:
                return files.join(above, path)
            if above == files.parent(above):
                break
            above = files.parent(above)
        return path

    def _source(self, path: str, directory: str, sha256: str, stage: str, made: Mapping[str, Any]) -> SourceFile:
        """A file that no stage made, as it lies there now."""
        sizes = [entry.get("bytes") for entry in made["inputs"] if str(entry["path"]) == path]
        size = sizes[0] if sizes else None
        path = self._found(path, directory, size)
        there, state = self._size(path), "there"
        if there is None:
            state = "gone"
        elif size is not None and there != size:
            self._problems.setdefault(f"{path}: this file has {there:,} bytes, but it had {size:,} when it was read.")
            state = "changed"
        elif self._checksums and not self._check_content(path, sha256, "what was made of it"):
            state = "changed"
        decided = str(made.get("decided", {}).get("dump_date") or "") if stage == "extract" else ""
        return SourceFile(path, size, sha256, stage, date_in_name(path) or decided, page_range(path), state=state)

    def _release(self) -> ReleaseFacts | None:
        """The release on the way, compared with its record and with what the checkpoint says of it."""
        places = [find_release(directory) for directory in self._wanted]
        named = [] if self._checkpoint is None or self._checkpoint.release is None else [self._checkpoint.release]
        paths = [*(release_path(*place) for place in places if place is not None), *named]
        if not paths:
            return None
        path = paths[0]
        digests, record = fingerprints.manifest_digests(path), _record_in(path)
        fingerprint = fingerprints.fingerprint_of(digests) if digests else ""
        if not digests:
            self._gaps.setdefault(f"{path}: this release is not there any more.")
        for stage, facts in {} if record is None else dict(record.get("stages", {})).items():
            said = facts.get("manifest_sha256")
            if said and digests.get(stage) != said:
                self._problems.setdefault(
                    f"{path}: {RECORD} says that the manifest of {stage} has the sha256 {said}, but it is "
                    f"{digests.get(stage) or 'not there'}."
                )
        listed = [] if record is None else [entry for entry in record.get("inputs", ()) if isinstance(entry, Mapping)]
        for problem in records.check_inputs(path, listed, digests) if listed else ():
            self._problems.setdefault(f"{problem} ({files.join(path, RECORD)}).")
        checkpoint = self._checkpoint
        if digests and checkpoint is not None and checkpoint.release_fingerprint not in (None, fingerprint):
            self._problems.setdefault(
                f"{path}: the checkpoint was trained on the release with the fingerprint "
                f"{checkpoint.release_fingerprint}, but the one that lies there has {fingerprint}."
            )
        return ReleaseFacts(path=path, name=files.base_name(path), fingerprint=fingerprint, record=record)


def _record_in(path: str) -> Mapping[str, Any] | None:
    """What a release says of itself; None while it is not complete."""
    content = files.read_if_there(files.join(path, RECORD))
    if content is None:
        return None
    record = _json_object(content.decode(errors="replace"))
    if ReleaseName.parse(str(record.get("release", ""))) is None:
        raise UnusableInputError(f"{files.join(path, RECORD)}: this record is damaged; build the release again.")
    return record


def inputs_of(made: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The sha256 by path of what shards were made of; of all inputs if the manifest does not tell them apart."""
    listed = {str(entry["path"]): str(entry["sha256"]) for entry in made["inputs"]}
    if not all(isinstance(entry.get("inputs"), Mapping) for entry in entries):
        return listed
    of_shards: dict[str, str] = {}
    for entry in entries:
        of_shards |= {str(path): str(sha256) for path, sha256 in entry["inputs"].items()}
    # What no shard names is of all of them, as a vocabulary.
    named = {str(path) for entry in made["shards"] for path in entry.get("inputs") or ()}
    return of_shards | {path: sha256 for path, sha256 in listed.items() if path not in named}


def _shard_facts(entry: Mapping[str, Any], inputs: Iterable[str]) -> ShardFacts:
    own = entry.get("inputs")
    listed = manifest.files_of_shard(entry)
    digests = [str(file.get("sha256", "")) for file in listed]
    size = sum(int(file.get("bytes") or 0) for file in listed)
    sha256 = str(entry.get("sha256") or " ".join(digests))
    named = tuple(map(str, own if isinstance(own, Mapping) else inputs))
    return ShardFacts(str(entry["name"]), str(entry.get("kind", "")), size, sha256, named)


def _with_urls(sources: Iterable[SourceFile], release: ReleaseFacts | None) -> Iterator[SourceFile]:
    """The sources with the addresses from which the release's record says that they came."""
    record = {} if release is None or release.record is None else release.record
    listed = [*record.get("inputs", ()), *(record.get("dump") or {}).get("files", ())]
    urls = {
        files.base_name(str(entry.get("path") or entry.get("name"))): str(entry["url"])
        for entry in listed
        if isinstance(entry, Mapping) and entry.get("url")
    }
    for source in sources:
        yield dataclasses.replace(source, url=urls.get(files.base_name(source.path), ""))
