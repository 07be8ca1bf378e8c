"""Find the data sets under the user's paths: builds, directories of one stage, or files without a manifest."""

import contextlib
import dataclasses
import os
import posixpath
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.records.file_names import INDEX_SUFFIX, lies_beside
from maskmill.records.shard_formats import suffixes
from maskmill.storage import completions, files, manifest
from maskmill.storage.paths import is_web
from maskmill.verification.findings import Checked, finding, ran
from maskmill.verification.listed_shards import ListedShard, read_listed
from maskmill.verification.options import VerifyOptions
from maskmill.verification.vocabulary_checks import KnownPieces
from maskmill.verification.work_items import WorkItem

TargetKind = Literal["text", "vocabulary", "examples", "eval"]

# The folders of a build, in order, and the stages that write them.
_FOLDERS: Sequence[TargetKind] = typing.get_args(TargetKind)
_STAGES: Mapping[str, TargetKind] = {("extract" if name == "text" else name): name for name in _FOLDERS}
_BESIDE_TEXT = ("eval.md5", "rejected.jsonl", "unknown_templates.tsv", "vocab.txt", "report.html", "README.md")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """One data set of a verification: the output of a stage, or files without a manifest.

    Attributes:
      path: the path that the user named.
      directory: of its files; of files without a manifest, that of the first.
      kind: of its content.
      build: the directory of its build, or None.
      made: its manifest; None if it is missing or cannot be used.
      shards: those in its manifest; empty without one.
      named: the paths of its files that the user named; empty: all.
      is_whole: whether files without a manifest are all of the data set.
      items: its work items, set by `verify_plan.plan`.
      checked: the result of the checks of its manifest and directory.
      known: its vocabulary's properties, without the vocabulary itself.
    """

    path: str
    directory: str
    kind: TargetKind
    build: str | None = None
    made: Mapping[str, Any] | None = None
    shards: tuple[ListedShard, ...] = ()
    named: tuple[str, ...] = ()
    is_whole: bool = True
    items: tuple[WorkItem, ...] = ()
    checked: Checked = Checked()
    known: KnownPieces = KnownPieces()

    @property
    def manifest_path(self) -> str:
        """The path of its manifest, whether it exists or not."""
        return files.join(self.directory, manifest.MANIFEST)

    def file(self, name: str) -> str:
        """Return the path of a file; name: in the manifest."""
        return files.join(self.directory, name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VerifyPlan:
    """The targets and options of a verification, and a directory of this run that all workers can use."""

    targets: tuple[Target, ...]
    options: VerifyOptions
    scratch: str

    @property
    def items(self) -> list[WorkItem]:
        """The work items of all targets, in order."""
        return [item for target in self.targets for item in target.items]


def find_targets(paths: Sequence[str]) -> tuple[Target, ...]:
    """Return the data sets under paths, each once, in order.

    Raises:
      UnusableInputError: a path does not exist, or has nothing that can be verified.
    """
    # A shell that expands part-* names the indexes of the files, too.
    data = [path for path in paths if not path.endswith(INDEX_SUFFIX)] or paths
    found: dict[tuple[str, str, bool], Target] = {}
    for path in data:
        for target in _targets_of(path):
            key = (target.directory, target.kind, bool(target.named))
            before = found.setdefault(key, target)
            if before is not target:
                found[key] = dataclasses.replace(before, named=tuple(dict.fromkeys((*before.named, *target.named))))
    return tuple(found.values())


def _targets_of(path: str) -> list[Target]:
    path = os.path.expanduser(path)
    path = path.rstrip("/") or path
    if not path:
        raise UnusableInputError("No data set was named: give the directory of a build or a stage, or files.")
    with contextlib.closing(open_ranges(path, cache_bytes=0)) as ranges:
        own = _of_directory(path, path, None, ranges)
        if own is not None:
            return [own]
        folders = {kind: _of_directory(path, files.join(path, kind), path, ranges) for kind in _FOLDERS}
        if not any(folders.values()):
            return _of_files(path, ranges)
        return [found for kind, target in folders.items() if (found := target or _unfinished(path, kind)) is not None]


def _of_directory(path: str, directory: str, build: str | None, ranges: ByteRanges) -> Target | None:
    """Return the data set of a directory with a manifest, even a damaged one; None without a manifest."""
    file = files.join(directory, manifest.MANIFEST)
    try:
        content = ranges.read_all(file)
    except UnusableInputError:
        return None
    try:
        made = manifest.parse_manifest(file, content)
        if made["stage"] not in _STAGES:
            raise UnusableInputError(f"the stage {made['stage']!r} is none of maskmill's")
        kind, shards = _STAGES[made["stage"]], read_listed(made)
        checked = ran("manifest")
        return Target(path=path, directory=directory, kind=kind, build=build, made=made, shards=shards, checked=checked)
    except UnusableInputError as error:
        problem = f"{str(error).rstrip('.')}; put back the manifest that was written with the data"
    data, name = _data_files(directory), files.base_name(directory)
    of_name = next((kind for kind in _FOLDERS if kind == name), None)
    kind = of_name or (_kind_of_file(data[0], ranges) if data else "examples")
    checked = ran("manifest", finding("manifest", file, problem))
    return Target(path=path, directory=directory, kind=kind, build=build, checked=checked)


def _unfinished(path: str, kind: TargetKind) -> Target | None:
    """Return the folder of a build that has files but no manifest."""
    directory = files.join(path, kind)
    if not _data_files(directory):
        return None
    return Target(path=path, directory=directory, kind=kind, build=path, checked=_no_manifest(directory))


def _no_manifest(directory: str) -> Checked:
    what = "there is no manifest; the build into this directory is not finished, so run it again"
    return ran("manifest", finding("manifest", files.join(directory, manifest.MANIFEST), what))


def _data_files(directory: str) -> list[str]:
    """Return the files of a directory that may have text or examples."""
    return [] if is_web(directory) else [path for path in files.list_directory(directory) if may_be_data(path)]


def may_be_data(path: str) -> bool:
    """Return whether a file may have text or examples, by its name."""
    name = files.base_name(path)
    hidden = name.startswith(".") or name.endswith(files.TEMPORARY_SUFFIX)
    return not (hidden or name in _BESIDE_TEXT or lies_beside(path))


def _of_files(path: str, ranges: ByteRanges) -> list[Target]:
    """Return the data sets of the files of a directory, of a glob, or of one file."""
    is_directory = bool(named := _data_files(path))
    if is_web(path):
        ranges.size(path)
        named = [path]
    elif not named:
        if files.is_local(path) and os.path.isdir(path):
            raise UnusableInputError(
                f"{path}: there is no data set in this directory (no manifest.json, no text shards, no examples); "
                "name the directory of a build or a stage."
            )
        named = [file.path for file in files.match([path]) if may_be_data(file.path)]
        if not named:
            raise UnusableInputError(f"{path}: this is no file of text or examples; name a data set.")
    targets = [] if is_directory else list(_by_manifest(path, named, ranges))
    listed = {name for target in targets for name in target.named}
    kinds: dict[TargetKind, list[str]] = {"text": [], "examples": []}
    for name in named:
        if name not in listed:
            kinds[_kind_of_file(name, ranges)].append(name)
    is_unfinished = is_directory and os.path.isdir(files.join(path, completions.WORK_DIRECTORY))
    for kind, of_kind in kinds.items():
        if of_kind:
            targets.append(
                Target(
                    path=path,
                    directory=path if is_directory else files.parent(of_kind[0]),
                    kind=kind,
                    named=tuple(of_kind),
                    is_whole=is_directory or files.is_glob(path),
                    checked=_no_manifest(path) if is_unfinished else Checked(),
                )
            )
    return targets


def _by_manifest(path: str, named: Sequence[str], ranges: ByteRanges) -> Iterator[Target]:
    """Yield data sets of the named files that a manifest in their directory lists."""
    for folder in dict.fromkeys(map(files.parent, named)):
        target = _of_directory(path, folder, None, ranges)
        if target is None or target.made is None or target.kind == "vocabulary":
            continue
        listed = {posixpath.normpath(target.file(file.name)) for shard in target.shards for file in shard.files}
        of_target = tuple(name for name in named if posixpath.normpath(name) in listed)
        if of_target:
            yield dataclasses.replace(target, named=of_target)


def _kind_of_file(path: str, ranges: ByteRanges) -> Literal["text", "examples"]:
    """Return whether a file has text or examples, by its name or its first bytes."""
    from maskmill.records.kernels.frames import HEAD

    if path.endswith((*suffixes(), ".tfrecord.gz", ".tfrecords")):
        return "examples"
    try:
        start = ranges.read(path, 0, min(ranges.size(path), HEAD)).tobytes()
    except (UnusableInputError, RunFailedError):
        return "text"
    # A TFRecord begins with the length of its first record in 8 bytes; no text has a NUL among its first bytes.
    return "examples" if b"\0" in start or start.startswith(b"\x1f\x8b") else "text"
