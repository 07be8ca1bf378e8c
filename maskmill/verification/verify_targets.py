"""What a path that a user names is: a build, the directory of one stage, or files without a manifest."""

import contextlib
import dataclasses
import os
import posixpath
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.records.file_names import INDEX_SUFFIX, lies_beside
from maskmill.records.shard_formats import suffixes
from maskmill.storage import completions, files, manifest
from maskmill.storage.paths import is_web
from maskmill.verification.findings import Checked, finding, looked, told
from maskmill.verification.listed_shards import ListedShard
from maskmill.verification.options import VerifyOptions
from maskmill.verification.pieces import Piece
from maskmill.verification.row_rules import KnownPieces

TargetKind = Literal["text", "vocabulary", "examples", "eval"]

# The folders of a build, in order, and the stages that write them.
_FOLDERS: Mapping[str, TargetKind] = {name: name for name in typing.get_args(TargetKind)}
_STAGES: Mapping[str, TargetKind] = {("extract" if name == "text" else name): name for name in _FOLDERS.values()}
_BESIDE_TEXT = ("eval.md5", "rejected.jsonl", "unknown_templates.tsv", "vocab.txt", "report.html", "README.md")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """One data set of a verification: what a stage has made, or files without a manifest.

    Attributes:
      path: what the user named.
      directory: of its files; of files without a manifest the one of the first.
      kind: what it holds.
      build: the directory of the build that it is part of; None: of none.
      made: its manifest; None: there is none, or it is damaged.
      named: the files that the user named of it, by their paths; empty: all.
      pieces: what is to be looked at, once `verify_plan.plan` has seen it.
      is_whole: whether these are all of the data set.
      checked: what was found of its manifest and its directory.
      shards: what its manifest lists; empty without one.
      known: of its vocabulary, but for the vocabulary itself.
    """

    path: str
    directory: str
    kind: TargetKind
    build: str | None = None
    made: Mapping[str, Any] | None = None
    named: tuple[str, ...] = ()
    pieces: tuple[Piece, ...] = ()
    is_whole: bool = True
    checked: Checked = Checked()
    shards: tuple[ListedShard, ...] = ()
    known: KnownPieces = KnownPieces()

    @property
    def manifest_path(self) -> str:
        """Where its manifest is, or would be."""
        return files.join(self.directory, manifest.MANIFEST)

    @property
    def inputs(self) -> Mapping[str, str]:
        """What its manifest says that it was made of: checksums (sha256) by path."""
        entries = [(entry.get("path"), entry.get("sha256")) for entry in (self.made or {}).get("inputs", ())]
        return {path: digest for path, digest in entries if isinstance(path, str) and isinstance(digest, str)}

    def file(self, name: str) -> str:
        """The path of a file, of which the manifest has the name."""
        return files.join(self.directory, name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VerifyPlan:
    """What is to be verified, and a directory of this run that all workers reach."""

    targets: tuple[Target, ...]
    options: VerifyOptions
    scratch: str

    @property
    def pieces(self) -> list[Piece]:
        """The pieces of all targets, in order."""
        return [piece for target in self.targets for piece in target.pieces]


def find_targets(paths: Sequence[str]) -> tuple[Target, ...]:
    """The data sets that paths name, each once, in order.

    Raises:
      UnusableInputError: there is nothing under a path, or nothing that can be verified.
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
        folders = [
            target
            for folder in _FOLDERS
            if (target := _of_directory(path, files.join(path, folder), path, ranges)) is not None
        ]
        if folders:
            return folders + _unfinished_folders(path, folders)
        return _of_files(path, ranges)


def _of_directory(path: str, directory: str, build: str | None, ranges: ByteRanges) -> Target | None:
    """The data set of a directory that has a manifest, whole or not; None if it has none."""
    file = files.join(directory, manifest.MANIFEST)
    try:
        content = ranges.read_all(file)
    except (MissingFileError, UnusableInputError):
        return None
    try:
        made = manifest.parse_manifest(file, content)
        if made["stage"] in _STAGES:
            return Target(path=path, directory=directory, kind=_STAGES[made["stage"]], build=build, made=made)
        problem = f"{file}: the stage {made['stage']!r} is none of maskmill's; put back the manifest of this directory."
    except UnusableInputError as error:
        problem = str(error)
    checked = looked("manifest", told("manifest", file, "a manifest", "something else", problem))
    kind = _FOLDERS.get(files.base_name(directory))
    if kind is None:
        data = _data_files(directory)
        kind = _kind_of_file(data[0], ranges) if data else "examples"
    return Target(path=path, directory=directory, kind=kind, build=build, checked=checked)


def _unfinished_folders(path: str, found: Sequence[Target]) -> list[Target]:
    """The folders of a build that have files but no manifest."""
    known = {target.directory for target in found}
    targets = []
    for folder, kind in _FOLDERS.items():
        directory = files.join(path, folder)
        if directory in known or is_web(path) or not _data_files(directory):
            continue
        targets.append(Target(path=path, directory=directory, kind=kind, build=path, checked=_unfinished(directory)))
    return targets


def _data_files(directory: str) -> list[str]:
    """The files of a directory that may hold text or examples."""
    if is_web(directory):
        return []
    return [path for path in files.list_directory(directory) if may_be_data(path)]


def may_be_data(path: str) -> bool:
    """Whether a file may hold text or examples, by its name."""
    name = files.base_name(path)
    hidden = name.startswith(".") or name.endswith(files.TEMPORARY_SUFFIX)
    return not (hidden or name in _BESIDE_TEXT or lies_beside(path))


def _of_files(path: str, ranges: ByteRanges) -> list[Target]:
    """Files without a manifest of their own: of a directory, of a glob, or one."""
    if is_web(path):
        named, is_directory = [path], False
        ranges.size(path)
    else:
        named = _data_files(path)
        is_directory = bool(named)
        if not named:
            if files.is_local(path) and os.path.isdir(path):
                raise UnusableInputError(
                    f"{path}: there is no data set in this directory (no manifest.json, no text shards, no examples); "
                    "name the directory of a build or a stage."
                )
            named = [file.path for file in files.match([path]) if may_be_data(file.path)]
            if not named:
                raise UnusableInputError(f"{path}: this is no file of text or examples; name a data set.")
    has_work = files.is_local(path) and is_directory and os.path.isdir(files.join(path, completions.WORK_DIRECTORY))
    checked = _unfinished(path) if has_work else Checked()
    targets = list(_by_manifest(path, named, ranges)) if not is_directory else []
    listed = {name for target in targets for name in target.named}
    rest = [name for name in named if name not in listed]
    kinds: tuple[TargetKind, ...] = ("text", "examples")
    for kind in kinds:
        named_so = tuple(name for name in rest if _kind_of_file(name, ranges) == kind)
        if named_so:
            directory, is_whole = (
                path if is_directory else files.parent(named_so[0]),
                is_directory or files.is_glob(path),
            )
            targets.append(
                Target(path=path, directory=directory, kind=kind, named=named_so, is_whole=is_whole, checked=checked)
            )
            checked = Checked()
    return targets


def _unfinished(directory: str) -> Checked:
    what = "there is no manifest; the build into this directory is not finished, so run it again"
    return looked("manifest", finding("manifest", files.join(directory, manifest.MANIFEST), "a file", "nothing", what))


def _by_manifest(path: str, named: Sequence[str], ranges: ByteRanges) -> Iterator[Target]:
    """Of the files that a user names, those that a manifest beside them lists."""
    folders: dict[str, list[str]] = {}
    for name in named:
        folders.setdefault(files.parent(name), []).append(name)
    for folder, names in folders.items():
        target = _of_directory(path, folder, None, ranges)
        if target is None or target.made is None or target.kind == "vocabulary":
            continue
        listed = {
            posixpath.normpath(files.join(folder, str(file.get("name", ""))))
            for shard in target.made["shards"]
            for file in (shard["files"] if isinstance(shard.get("files"), list) else [shard])
            if isinstance(file, dict)
        }
        of_target = tuple(name for name in names if posixpath.normpath(name) in listed)
        if of_target:
            yield dataclasses.replace(target, named=of_target, is_whole=False)


def _kind_of_file(path: str, ranges: ByteRanges) -> Literal["text", "examples"]:
    """Whether a file holds text or examples: by its first bytes, or its name where they tell nothing."""
    from maskmill.records.kernels.frames import HEAD

    if path.endswith((*suffixes(), ".tfrecord.gz", ".tfrecords")):
        return "examples"
    try:
        start = ranges.read(path, 0, min(ranges.size(path), HEAD)).tobytes()
    except (UnusableInputError, RunFailedError):
        return "text"
    # A TFRecord begins with the length of its first record in 8 bytes; no text has a NUL among its first bytes.
    return "examples" if b"\0" in start or start.startswith(b"\x1f\x8b") else "text"
