"""Text shards that are already on disk: the files that patterns match, and their descriptions."""

import contextlib
import re
from collections.abc import Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.storage import completions, files, manifest
from maskmill.storage.found_files import refuse_repeated
from maskmill.text.shards import ShardKind, TextShard

_NUMBERED = re.compile(r"(?:part|eval)-(?P<number>\d+)-of-\d+")
# Files that maskmill writes beside text shards, or a user into the same directory.
_BESIDE_SHARDS = re.compile(
    r"manifest\.json|eval\.md5|rejected\.jsonl|unknown_templates\.tsv|.*\.(?:tfrecord|tfrecord\.gz|idx)"
)
_TEXT = "text"  # below a build's directory


def find_texts(patterns: Sequence[str], *, may_be_missing: bool = False) -> list[files.FileInfo]:
    """Find the text shards that patterns name.

    Args:
      patterns: globs of files, or directories that extract wrote, which stand for their shards that are not empty.
        Files that a glob matches and whose names are not those of text shards are skipped (`beside_texts`).
      may_be_missing: whether the patterns may match nothing.

    Raises:
      UnusableInputError: no file matches, or the patterns name one file twice.
    """
    expanded: list[str] = []
    for pattern in patterns:
        shards = _shards_of_directory(pattern)
        expanded += [pattern] if shards is None else [files.join(pattern, name) for name in shards]
    passed_over = set(beside_texts(patterns, may_be_missing=may_be_missing))
    matched = files.match(expanded, may_be_missing=may_be_missing) if expanded or not may_be_missing else []
    texts = [text for text in matched if text.path not in passed_over]
    if not texts and not may_be_missing:
        raise UnusableInputError(
            f"{patterns[0]}: this input matches no text shard, only {sorted(passed_over)[0]} and such."
        )
    refuse_repeated({"": texts})
    return texts


def refuse_equal_names(texts: Sequence[files.FileInfo]) -> None:
    """Raise UnusableInputError if two texts have the same name, because their shards of examples would, too."""
    paths: dict[str, str] = {}
    for text in texts:
        other = paths.setdefault(files.base_name(text.path), text.path)
        if other != text.path:
            raise UnusableInputError(
                f"{text.path} and {other} would become one shard; rename one, or write to two outputs."
            )


def beside_texts(patterns: Sequence[str], *, may_be_missing: bool = False) -> list[str]:
    """Return the files that globs match besides text shards: manifests, checksums, examples and their indexes."""
    globs = [pattern for pattern in patterns if files.is_glob(pattern)]
    return [
        file.path
        for file in (files.match(globs, may_be_missing=may_be_missing) if globs else [])
        if _BESIDE_SHARDS.fullmatch(files.base_name(file.path))
    ]


def _shards_of_directory(pattern: str) -> list[str] | None:
    """Return the names of the non-empty shards in a directory that extract wrote; None for any other pattern.

    Raises:
      UnusableInputError: it is the directory of another stage, of a whole build, or of an unfinished build.
    """
    if files.is_glob(pattern):
        return None
    if (listed := _listed_shards(pattern)) is not None:
        return [shard["name"] for shard in listed if shard["bytes"]]
    if files.exists(files.join(pattern, manifest.MANIFEST)):
        listing = manifest.read_manifest(pattern)
        if "stage" in listing:
            raise UnusableInputError(
                f"{pattern}: this directory was made by {listing['stage']}; name the one of extract."
            )
    elif files.is_local(pattern):
        if files.exists(files.join(pattern, completions.WORK_DIRECTORY)):
            raise UnusableInputError(f"{pattern}: the run into this directory is not finished; run it again first.")
        text = files.join(pattern, _TEXT)
        if files.exists(files.join(text, manifest.MANIFEST)):
            raise UnusableInputError(f"{pattern}: this is the directory of a build; name its text, {text}.")
    return None


def _listed_shards(directory: str) -> list[dict[str, Any]] | None:
    """Return the shards in the manifest that extract wrote into a directory; None if there is no such manifest."""
    if files.is_glob(directory) or not files.exists(files.join(directory, manifest.MANIFEST)):
        return None
    listing = manifest.read_manifest(directory)
    return list(listing["shards"]) if listing.get("stage") == "extract" else None


def listed_shards(patterns: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the manifests' descriptions of the shards in directories that extract wrote, by the shards' paths.

    Files that are named, rather than their directory, have no entry.
    """
    return {
        files.join(pattern, shard["name"]): shard for pattern in patterns for shard in _listed_shards(pattern) or ()
    }


def refuse_unlisted(path: str, found: str, listed: str) -> None:
    """Raise UnusableInputError if a shard has another size or checksum than the manifest beside it says."""
    if found != listed:
        raise UnusableInputError(
            f"{path}: this shard is not the one that was extracted: it has {found}, and the manifest beside it says "
            f"{listed}; extract or copy the text again, or name its files, as in {files.parent(path)}/*, if it was "
            "changed on purpose."
        )


def check_texts(texts: Sequence[files.FileInfo], patterns: Sequence[str]) -> None:
    """Check the size and the beginning of each file, so that no other file is taken for a text shard.

    Not read: files of the size that the manifest beside them lists, and files on object stores whose names are those of
    extract, where each read takes a request.

    Args:
      texts: the files that `find_texts` found.
      patterns: the patterns that they were found by.

    Raises:
      UnusableInputError: a file is packed, or looks like a dump, a table, examples and so on; or its size is not the
        one in the manifest of its directory.
    """
    from maskmill.text.lookalikes import no_text_shard

    listed = listed_shards(patterns) if texts else {}
    sizes: dict[tuple[str, str], Any] = {}
    for folder in sorted({files.parent(text.path) for text in texts if files.is_local(text.path)}):
        with contextlib.suppress(UnusableInputError):  # a user's own manifest.json says nothing of shards
            sizes |= {(folder, shard["name"]): shard["bytes"] for shard in _listed_shards(folder) or ()}
    for text in texts:
        if text.path in listed:
            refuse_unlisted(text.path, f"{text.size:,} bytes", f"{listed[text.path]['bytes']:,} bytes")
        if text.path.endswith(files.TEMPORARY_SUFFIX):
            raise UnusableInputError(f"{text.path}: a run still writes this file; wait until it has ended.")
        if sizes.get((files.parent(text.path), files.base_name(text.path))) == text.size:
            continue
        if text.size and (files.is_local(text.path) or not _NUMBERED.search(files.base_name(text.path))):
            problem = no_text_shard(text.path)
            if problem is not None:
                raise UnusableInputError(
                    f"{text.path}: this looks like {problem}, not like a text shard (one sentence a line, a blank line "
                    "after each document); `maskmill extract` makes text shards."
                )


"""Return whether a text file is training text or held out, by its name."""


def kind_of_text(path: str) -> ShardKind:
    """Return whether a text file is training text or held out, by its name."""
    return "eval" if files.base_name(path).startswith("eval") else "train"


def describe_text_shard(numbered: tuple[int, str]) -> TextShard:
    """Describe a text file on disk as a text shard, reading it for its checksum.

    Args:
      numbered: the file's place among all, and its path. A name that the extract stage gives holds the shard's kind and
        number; a file of another name is a train shard whose number is its place.
    """
    place, path = numbered
    name = files.base_name(path)
    kind = kind_of_text(path)
    in_name = _NUMBERED.search(name)
    if in_name:
        number = int(in_name["number"])
    else:
        number = 0 if kind == "eval" else place
    return TextShard(
        path=path,
        kind=kind,
        number=number,
        size=files.size(path),
        sha256=files.sha256_of(path),
        documents=0,
        sentences=0,
        inputs={},
        key="",
    )
