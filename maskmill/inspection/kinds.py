"""The kind of a path: a build, one stage of it, examples, text shards, a manifest, a vocabulary or a checkpoint."""

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

from maskmill.errors import UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.made_examples import manifest_in
from maskmill.records.tfrecord import begins_record
from maskmill.storage import files

PathKind = Literal["build", "text", "vocabulary", "examples", "checkpoint", "manifest"]

STAGE_FOLDERS = ("text", "vocabulary", "examples", "eval")  # of a build
_OF_STAGE: Mapping[str, PathKind] = {
    "extract": "text", "vocabulary": "vocabulary", "examples": "examples", "eval": "examples",
}  # fmt: skip
# What a file is by its name, and a directory without a manifest by the first pattern that one of its files has.
_BY_NAME: Mapping[str, PathKind] = {
    "manifest.json": "manifest",
    **dict.fromkeys(("*.safetensors", "*.index", "*.data-?????-of-?????", "*.meta"), "checkpoint"),
    **dict.fromkeys(("*.tfrecord", "*.tfrecords", "*.tfrecord.gz", "*.parquet", "*.mds", "*.spans"), "examples"),
    **dict.fromkeys(("*vocab.txt", "*tokenizer.json"), "vocabulary"),
}
_TEXTS = ("part-*", "eval*.txt")
_MAGIC_OF_EXAMPLES = (b"PAR1", b"\x1f\x8b\x08", b"spans-")  # Parquet, gzip, spans
_SNIFFED = 1 << 16
_WHAT_ELSE = "a build, a stage, text shards, examples, a manifest, a vocabulary or a checkpoint; name another path"


def plain(path: str | os.PathLike[str]) -> str:
    """Return a path as it was named, without `~` and without a slash at its end."""
    path = os.path.expanduser(os.fspath(path))
    return path.rstrip("/") or path


def kind_of(path: str, ranges: ByteRanges) -> PathKind:
    """Return what a path is.

    Args:
      path: a directory, a file, a glob, a comma list, or the prefix of a TensorFlow checkpoint.
      ranges: reads it.

    Raises:
      UnusableInputError: there is nothing there, or nothing that is known.
    """
    stage = _stage_of(path, ranges)
    if stage is not None:
        return _OF_STAGE.get(stage, "manifest")
    if any(_stage_of(files.join(path, folder), ranges) is not None for folder in STAGE_FOLDERS):
        return "build"
    if files.is_local(path) and os.path.isdir(path):
        return _kind_of_directory(path, ranges)
    if ranges.exists(f"{path}.index"):
        return "checkpoint"
    found = [path] if ranges.exists(path) else [name for part in path.split(",") for name in ranges.glob(part.strip())]
    if not found:
        raise UnusableInputError(f"{path}: there is no such file or directory; check the path.")
    return _kind_of_file(found[0], ranges)


def _stage_of(directory: str, ranges: ByteRanges) -> str | None:
    """Return the stage of a directory's manifest; None if there is none."""
    made = None if files.is_glob(directory) else manifest_in(directory, ranges)
    return None if made is None else str(made["stage"])


def _kind_of_directory(path: str, ranges: ByteRanges) -> PathKind:
    """Return what a directory without a manifest of ours is, by what is in it."""
    for pattern, kind in _BY_NAME.items():
        if ranges.glob(files.join(path, pattern)):
            return kind
    for pattern in _TEXTS:
        if found := ranges.glob(files.join(path, pattern)):
            return _kind_of_file(found[0], ranges)
    if _stage_of(files.parent(path), ranges) is not None:
        return "examples"  # a folder of one: MDS has one for each split
    raise UnusableInputError(f"{path}: this directory is none that maskmill knows ({_WHAT_ELSE}).")


def _kind_of_file(path: str, ranges: ByteRanges) -> PathKind:
    """Tell the kind of a file by its name, or by its first bytes."""
    if path.endswith(".idx"):
        raise UnusableInputError(f"{path}: this is the index of {path[:-4]}; name that file.")
    for pattern, kind in _BY_NAME.items():
        if fnmatchcase(files.base_name(path), pattern):
            return kind
    size = ranges.size(path)
    head = ranges.read(path, 0, min(size, _SNIFFED)).tobytes()
    if head.startswith(_MAGIC_OF_EXAMPLES) or begins_record(head):
        return "examples"
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < size:  # safetensors
        return "checkpoint"
    lines = {line.strip() for line in head.split(b"\n")}
    if (head.lstrip()[:1] == b"{" and b'"model"' in head) or lines >= {b"[MASK]", b"[SEP]"}:
        return "vocabulary"
    if b"\0" in head:
        raise UnusableInputError(f"{path}: this file is none that maskmill knows ({_WHAT_ELSE}).")
    return "text"
