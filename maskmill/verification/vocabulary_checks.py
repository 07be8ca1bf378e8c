"""Finds the vocabulary of a data set, and checks that it is the one that its manifest means."""

import contextlib
import dataclasses
import functools
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.read_vocabulary import vocabulary_in
from maskmill.reading.remote import open_ranges
from maskmill.storage import files, manifest
from maskmill.tokenization.vocabulary import Vocabulary, is_tokenizer, vocabulary_lines
from maskmill.verification.findings import Checked, Finding, finding, joined, looked, skipped, told
from maskmill.verification.listed_shards import is_below
from maskmill.verification.row_rules import KnownPieces, parameters_of

_CHECK = "vocabulary"
_MOST_NAMED = 5  # of duplicate pieces
_DO = "put back the vocabulary that the examples were made with, or make them again"
_SHOWN = 200


def find_vocabulary(
    made: Mapping[str, Any], directory: str, named: str | None, ranges: ByteRanges
) -> tuple[KnownPieces, Checked]:
    """The vocabulary of examples with a manifest: the copy beside them, the file that the user names, or the one that
    they were made with; and what is wrong with it.

    Args:
      made: the manifest.
      directory: of the examples.
      named: the file that the user names; None: none.
      ranges: reads the directory's files.

    Raises:
      UnusableInputError: the file that the user names cannot be read, or is another one.
    """
    options, path = parameters_of(made), files.join(directory, manifest.MANIFEST)
    option = "tokenizer_file" if options.get("tokenizer_file") is not None else "vocab_file"
    said, size, ids = options.get(f"{option}_sha256"), made.get("vocabulary_size"), made.get("special_ids")
    known = KnownPieces(
        size=size if _is_number(size) and size else None,
        special_ids=ids if isinstance(ids, dict) and all(i is None or _is_number(i) for i in ids.values()) else {},
        is_tokenizer=option == "tokenizer_file",
    )
    found, content, findings = _read_copy(made.get("vocabulary"), directory, ranges)
    if None not in (content, said) and hashlib.sha256(content or b"").hexdigest() != said:
        what = f"the examples were made with another vocabulary (parameters of the manifest); {_DO}"
        findings.append(finding(_CHECK, found, str(said), "another sha256", what))
    if content is None or findings:
        found, content = _read_elsewhere(directory, named, options.get(option), said)
    if content is None:
        missing = skipped("the vocabulary is not there; name it with --vocab_file", _CHECK)
        return known, Checked(findings=findings) if findings else missing
    duplicates = "last" if options.get("duplicate_pieces") == "last" else "first"
    vocabulary, more = _parsed(found, content, duplicates, tuple(known.special_ids.items()))
    others = [] if vocabulary is None else [("vocabulary_size", size, vocabulary.size)]
    others += [] if vocabulary is None else [("special_ids", ids, vocabulary.special_ids)]  # type: ignore[list-item]
    for name, is_said, is_so in others:
        if is_said != is_so:
            what = f"{name} must be {is_so}, as the vocabulary has it, not {repr(is_said)[:_SHOWN]}; {_DO}"
            findings.append(finding(_CHECK, path, str(is_so), repr(is_said)[:_SHOWN], what))
    return _known(vocabulary, found, content, known), joined([looked(_CHECK, *findings), more])


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _read_copy(copied: Any, directory: str, ranges: ByteRanges) -> tuple[str, bytes | None, list[Finding]]:
    """The path and the content of the copy of the vocabulary that a manifest lists, and what is wrong with it."""
    name = copied.get("name") if isinstance(copied, dict) else None
    if copied is None:
        return "", None, []
    if not is_below(name):
        path, found = files.join(directory, manifest.MANIFEST), repr(copied)[:_SHOWN]
        what = (
            f"vocabulary must have the name, the bytes and the sha256 of a file, not {found}; make the examples again"
        )
        return "", None, [finding("manifest", path, "name, bytes and sha256 of a file", found, what)]
    path = files.join(directory, str(name))
    try:
        content = ranges.read_all(path)
    except MissingFileError:
        what = f"this copy of the vocabulary is in the manifest, but not there; fetch it, or {_DO}"
        return path, None, [finding("missing", path, "a file", "nothing", what)]
    except (UnusableInputError, RunFailedError) as error:
        return path, None, [told("missing", path, "a file that can be read", str(error), str(error))]
    wanted, digest = (copied.get("bytes"), copied.get("sha256")), hashlib.sha256(content).hexdigest()
    if wanted == (len(content), digest):
        return path, content, []
    what = f"this is not the vocabulary of the manifest (another size or sha256); {_DO}"
    return path, content, [finding(_CHECK, path, f"{wanted[0]} bytes", f"{len(content):,} bytes", what)]


def _read_elsewhere(directory: str, named: str | None, used: Any, said: Any) -> tuple[str, bytes | None]:
    """The vocabulary that the user names, or the one that the examples were made with, if it is still there."""
    if named is not None:
        content = _read_named(named)
        if hashlib.sha256(content).hexdigest() != (said or hashlib.sha256(content).hexdigest()):
            raise UnusableInputError(
                f"{named}: the examples of {directory} were made with another vocabulary, whose sha256 is {said}; "
                "name that one."
            )
        return named, content
    if isinstance(used, str):
        with contextlib.suppress(UnusableInputError, RunFailedError, ValueError):
            content = _read_named(used)
            if hashlib.sha256(content).hexdigest() == said:
                return used, content
    return "", None


def _read_named(path: str) -> bytes:
    with contextlib.closing(open_ranges(path, cache_bytes=0)) as ranges:
        return ranges.read_all(path)


def _known(vocabulary: Vocabulary | None, path: str, content: bytes, said: KnownPieces) -> KnownPieces:
    """What is known of a vocabulary: what a manifest says of it, if its file cannot be used."""
    known = dataclasses.replace(said, path=path, sha256=hashlib.sha256(content).hexdigest())
    if vocabulary is None:
        return known
    return dataclasses.replace(
        known,
        vocabulary=vocabulary,
        size=vocabulary.size,
        special_ids=vocabulary.special_ids,
        is_tokenizer=is_tokenizer(content),
    )


def load_named(path: str) -> tuple[KnownPieces, Checked]:
    """The vocabulary that a user names for files without a manifest.

    Raises:
      UnusableInputError: it cannot be read or used.
    """
    content = _read_named(path)
    vocabulary, checked = _parsed(path, content, "last", ())
    if vocabulary is None:
        raise UnusableInputError(checked.findings[0].message)
    return _known(vocabulary, path, content, KnownPieces()), looked(_CHECK, *checked.findings)


@functools.lru_cache(maxsize=4)  # parts of a build have copies of one
def _parsed(
    path: str, content: bytes, duplicates: str, special_ids: tuple[tuple[str, int | None], ...]
) -> tuple[Vocabulary | None, Checked]:
    try:
        return vocabulary_in(path, content, duplicates, dict(special_ids)), check_lines(path, content)
    except UnusableInputError as error:
        return None, Checked(findings=[told(_CHECK, path, "a vocabulary", "none", str(error))])


def check_lines(path: str, content: bytes) -> Checked:
    """Names the pieces that a vocab.txt has twice: the reference's tokenizers give them other ids."""
    lines: dict[str, list[int]] = {}
    for number, piece in enumerate(() if is_tokenizer(content) else vocabulary_lines(path, content)):
        lines.setdefault(piece, []).append(number)
    named = list(_twice(lines))
    if not named:
        return Checked()
    more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
    pieces = ", ".join(named[:_MOST_NAMED]) + more
    what = (
        f"this vocabulary has pieces on more than one line, {pieces}; programs disagree on the ids of these and of the "
        "pieces behind them, so use the one that made the examples"
    )
    return Checked(findings=[finding(_CHECK, path, "each piece once", pieces, what, "note", count=len(named))])


def _twice(lines: Mapping[str, list[int]]) -> Iterator[str]:
    for piece, numbers in lines.items():
        if len(numbers) > 1:
            yield f"{piece!r} (ids {', '.join(map(str, numbers))})"
