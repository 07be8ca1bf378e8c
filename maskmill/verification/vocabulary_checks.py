"""Find the vocabulary of a data set, and check that it is the one of its manifest."""

import contextlib
import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from typing import Any

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.read_vocabulary import vocabulary_in
from maskmill.reading.remote import open_ranges
from maskmill.storage import files, manifest
from maskmill.tokenization.vocabulary import Vocabulary, is_tokenizer
from maskmill.verification.findings import Checked, Finding, finding, ran, skipped
from maskmill.verification.listed_shards import options_of

_CHECK = "vocabulary"
_DO = "put back the vocabulary that the examples were made with, or make them again"


@dataclasses.dataclass(frozen=True, kw_only=True)
class KnownPieces:
    """A vocabulary, or what the manifest has of it.

    Attributes:
      vocabulary: the vocabulary itself; None: it was not found.
      size, special_ids: of the vocabulary, or else in the manifest; None and empty: not known.
      is_tokenizer: whether it is a tokenizer.json, which also finds special tokens in text.
      path: of its file; None: it was not found.
    """

    vocabulary: Vocabulary | None = None
    size: int | None = None
    special_ids: Mapping[str, int | None] = dataclasses.field(default_factory=dict)
    is_tokenizer: bool = False
    path: str | None = None


def find_vocabulary(
    made: Mapping[str, Any], directory: str, named: str | None, ranges: ByteRanges
) -> tuple[KnownPieces, Checked]:
    """Return the vocabulary of examples with a manifest, and the result of its checks.

    It is the copy beside the examples, or the user's file.

    Args:
      made: the manifest.
      directory: of the examples.
      named: the user's file, or None.
      ranges: reads the directory's files.

    Raises:
      UnusableInputError: the file that the user names cannot be read, or is another one.
    """
    options = options_of(made)
    option = "tokenizer_file" if options.get("tokenizer_file") is not None else "vocab_file"
    sha256, size, ids = options.get(f"{option}_sha256"), made.get("vocabulary_size"), made.get("special_ids") or {}
    known = KnownPieces(size=size or None, special_ids=ids, is_tokenizer=option == "tokenizer_file")
    path, content, findings = _read_copy(made.get("vocabulary"), directory, ranges, sha256)
    if content is None and named is not None:
        path, content = named, _read_named(named)
        if sha256 not in (None, hashlib.sha256(content).hexdigest()):
            raise UnusableInputError(
                f"{named}: the examples of {directory} were made with another vocabulary, whose sha256 is {sha256}; "
                "name that one."
            )
    if content is None:
        missing = skipped("the vocabulary is not there; name it with --vocab_file", _CHECK)
        return known, Checked(findings=findings) if findings else missing
    duplicates = "last" if options.get("duplicate_pieces") == "last" else "first"
    try:
        vocabulary = vocabulary_in(path, content, duplicates, ids)
    except UnusableInputError as error:
        findings.append(finding(_CHECK, path, str(error)))
        return dataclasses.replace(known, path=path), ran(_CHECK, *findings)
    pairs = ("vocabulary_size", size, vocabulary.size), ("special_ids", ids, dict(vocabulary.special_ids))
    for name, listed, actual in pairs:
        if name in made and listed != actual:
            what = f"{name} must be {actual}, as the vocabulary has it, not {listed}; {_DO}"
            findings.append(finding(_CHECK, files.join(directory, manifest.MANIFEST), what))
    return _known(vocabulary, path, content), ran(_CHECK, *findings)


def _read_copy(copied: Any, directory: str, ranges: ByteRanges, sha256: Any) -> tuple[str, bytes | None, list[Finding]]:
    """Return the path and the content of the copy that a manifest lists, or the findings about it."""
    if copied is None:
        return "", None, []
    path = files.join(directory, str(copied["name"]))
    try:
        content = ranges.read_all(path)
    except MissingFileError:
        what = f"this copy of the vocabulary is in the manifest, but not there; fetch it, or {_DO}"
        return path, None, [finding("missing", path, what)]
    except (UnusableInputError, RunFailedError) as error:
        return path, None, [finding("missing", path, str(error))]
    digest = hashlib.sha256(content).hexdigest()
    if digest == copied["sha256"] and sha256 in (None, digest):
        return path, content, []
    where = "the manifest" if digest != copied["sha256"] else "its options"
    return path, None, [finding(_CHECK, path, f"this is not the vocabulary of {where} (another sha256); {_DO}")]


def _read_named(path: str) -> bytes:
    with contextlib.closing(open_ranges(path, cache_bytes=0)) as ranges:
        return ranges.read_all(path)


def _known(vocabulary: Vocabulary, path: str, content: bytes) -> KnownPieces:
    return KnownPieces(
        vocabulary=vocabulary,
        size=vocabulary.size,
        special_ids=vocabulary.special_ids,
        is_tokenizer=is_tokenizer(content),
        path=path,
    )


@functools.lru_cache(maxsize=1)
def load_named(path: str) -> KnownPieces:
    """Return the vocabulary that a user names for files without a manifest.

    Raises:
      UnusableInputError: it cannot be read or used.
    """
    content = _read_named(path)
    return _known(vocabulary_in(path, content, "last", {}), path, content)
