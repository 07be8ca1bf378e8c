"""What a path is: a build, one stage of it, examples, text shards, a manifest, a vocabulary or a checkpoint."""

import os
import re
import struct
from typing import Literal

from maskmill.errors import UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.made_examples import manifest_in
from maskmill.records.tfrecord import begins_record
from maskmill.storage import files

PathKind = Literal["build", "text", "vocabulary", "examples", "checkpoint", "manifest"]

STAGE_FOLDERS = ("text", "vocabulary", "examples", "eval")  # of a build
_OF_STAGE: dict[str, PathKind] = {
    "extract": "text", "vocabulary": "vocabulary", "examples": "examples", "eval": "examples",
}  # fmt: skip
_BY_NAME: tuple[tuple[re.Pattern[str], PathKind], ...] = (
    (re.compile(r"manifest\.json"), "manifest"),
    (re.compile(r".*\.(safetensors|safetensors\.index\.json|ckpt|bin|pt|pth)"), "checkpoint"),
    (re.compile(r".*\.ckpt-\d+(\.index|\.meta|\.data-\d+-of-\d+)?"), "checkpoint"),
    (re.compile(r".*\.(tfrecord|tfrecords|tfrecord\.gz|parquet|mds)"), "examples"),
    (re.compile(r"(.*[-_.])?vocab\.txt|(.*[-_.])?tokenizer\.json"), "vocabulary"),
)
# What a directory without a manifest is, by the first of these that matches one of its files.
_IN_DIRECTORY: tuple[tuple[str, PathKind], ...] = (
    ("step-*.safetensors", "checkpoint"),
    ("*.safetensors", "checkpoint"),
    ("pytorch_model*.bin", "checkpoint"),
    ("*.index", "checkpoint"),
    ("tokenizer.json", "vocabulary"),
    ("vocab.txt", "vocabulary"),
    ("*.tfrecord*", "examples"),
    ("*.parquet", "examples"),
    ("*.mds", "examples"),
    ("part-*", "text"),
    ("eval.txt", "text"),
)
_MAGIC_OF_EXAMPLES = (b"PAR1", b"\x1f\x8b\x08", b"spans-")  # Parquet, gzip, spans
_SNIFFED = 1 << 16
_SAFETENSORS_HEAD = 8
_MOST_HEADER = 100 << 20  # bytes of a safetensors header; the library's own limit


def plain(path: str | os.PathLike[str]) -> str:
    """A path as it was named, without `~` and without a slash at its end."""
    path = os.path.expanduser(os.fspath(path))
    return path.rstrip("/") or path


def kind_of(path: str, ranges: ByteRanges) -> PathKind:
    """What a path is.

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
    if _exists(f"{path}.index", ranges):
        return "checkpoint"
    first = path if _exists(path, ranges) else _first_match(path, ranges)
    if first.endswith(".idx"):
        raise UnusableInputError(f"{first}: this is the index of {first[:-4]}; name that file.")
    for pattern, kind in _BY_NAME:
        if pattern.fullmatch(files.base_name(first)):
            return kind
    if _exists(f"{first.removesuffix('.index')}.index", ranges):
        return "checkpoint"
    return _sniffed(first, ranges)


def _stage_of(directory: str, ranges: ByteRanges) -> str | None:
    """The stage of a directory's manifest; None if there is none."""
    made = None if files.is_glob(directory) else manifest_in(directory, ranges)
    return None if made is None else str(made["stage"])


def _exists(path: str, ranges: ByteRanges) -> bool:
    try:
        return ranges.exists(path)
    except UnusableInputError:
        return False


def _first_match(path: str, ranges: ByteRanges) -> str:
    for pattern in (part.strip() for part in path.split(",")):
        if pattern and (found := ranges.glob(pattern)):
            return found[0]
    raise UnusableInputError(f"{path}: there is no such file or directory; check the path.")


def _kind_of_directory(path: str, ranges: ByteRanges) -> PathKind:
    """What a directory without a manifest of ours is, by what is in it."""
    for pattern, kind in _IN_DIRECTORY:
        if ranges.glob(files.join(path, pattern)):
            return kind
    if _stage_of(files.parent(path), ranges) is not None:
        return "examples"  # a folder of one: MDS has one for each split
    raise UnusableInputError(
        f"{path}: there is nothing in this directory that maskmill knows (a manifest, shards, a vocabulary, a "
        "checkpoint); name the directory of a build or of a stage, or a file."
    )


def _sniffed(path: str, ranges: ByteRanges) -> PathKind:
    """What a file is by its first bytes."""
    size = ranges.size(path)
    head = ranges.read(path, 0, min(size, _SNIFFED)).tobytes()
    if head.startswith(_MAGIC_OF_EXAMPLES) or begins_record(head):
        return "examples"
    if _is_safetensors(head, size) or head.startswith(b"PK\x03\x04"):
        return "checkpoint"
    if head.lstrip()[:1] == b"{" and b'"model"' in head:
        return "vocabulary"
    lines = head.split(b"\n")
    if any(line.strip() == b"[MASK]" for line in lines) and any(line.strip() == b"[SEP]" for line in lines):
        return "vocabulary"
    if b"\0" in head:
        raise UnusableInputError(
            f"{path}: this is not a file that maskmill knows (a text shard, examples, a manifest, a vocabulary, a "
            "checkpoint); name another one."
        )
    return "text"


def _is_safetensors(head: bytes, size: int) -> bool:
    if len(head) <= _SAFETENSORS_HEAD:
        return False
    (length,) = struct.unpack_from("<Q", head)
    return length <= min(size, _MOST_HEADER) and head[_SAFETENSORS_HEAD : _SAFETENSORS_HEAD + 1] == b"{"
