"""Finds the vocabulary of a data set, and checks that it is the one that its manifest means."""

import contextlib
import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.read_vocabulary import vocabulary_in
from maskmill.storage import files, manifest
from maskmill.tokenization.vocabulary import Vocabulary, is_tokenizer, vocabulary_lines
from maskmill.verification.findings import Checked, Finding, finding, joined, looked, skipped, told
from maskmill.verification.listed_shards import is_below
from maskmill.verification.row_rules import KnownPieces, parameters_of

_CHECK = "vocabulary"
_MOST_NAMED = 5  # of duplicate pieces
_OF_MANIFEST = "make the directory again, or put back the manifest that was written with it"
_DO = "put back the vocabulary that the examples were made with, or make them again"


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
    """
    options = parameters_of(made)
    option = "tokenizer_file" if options.get("tokenizer_file") is not None else "vocab_file"
    said = options.get(f"{option}_sha256")
    said = said if isinstance(said, str) else None
    path, content, findings = _read_any(made, directory, named, options.get(option), said, ranges)
    said_size, said_ids = made.get("vocabulary_size"), made.get("special_ids")
    known = KnownPieces(
        size=said_size if isinstance(said_size, int) and not isinstance(said_size, bool) and said_size > 0 else None,
        special_ids=_plain_ids(said_ids),
        is_tokenizer=options.get("tokenizer_file") is not None,
    )
    if path is None or content is None:
        missing = skipped("the vocabulary is not there; name it with --vocab_file", _CHECK)
        return known, Checked(findings=findings) if findings else missing
    is_last = options.get("duplicate_pieces") == "last"
    vocabulary, more = _parsed(path, content, "last" if is_last else "first", tuple(known.special_ids.items()))
    if vocabulary is not None:
        more = joined([more, _compare(vocabulary, said_size, said_ids, files.join(directory, manifest.MANIFEST))])
    return _known(vocabulary, path, content, known), joined([looked(_CHECK, *findings), more])


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


def check_lines(path: str, content: bytes) -> Checked:
    """Names the pieces that a vocab.txt has twice: the reference's tokenizers give them other ids."""
    if is_tokenizer(content):
        return Checked()
    pieces_of_lines = vocabulary_lines(path, content)
    if len(set(pieces_of_lines)) == len(pieces_of_lines):
        return Checked()
    lines: dict[str, list[int]] = {}
    for number, piece in enumerate(pieces_of_lines):
        lines.setdefault(piece, []).append(number)
    twice = {piece: numbers for piece, numbers in lines.items() if len(numbers) > 1}
    named = [f"{piece!r} (ids {', '.join(map(str, numbers))})" for piece, numbers in twice.items()]
    more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
    pieces = ", ".join(named[:_MOST_NAMED]) + more
    first = next(iter(twice.values()))
    what = (
        f"this vocabulary has pieces on more than one line, {pieces}; programs disagree on the ids of these and of the "
        "pieces behind them, so use the one that made the examples"
    )
    at = ("", first[1] + 1)
    return Checked(findings=[finding(_CHECK, path, "each piece once", pieces, what, "note", at=at, count=len(twice))])


def _read_any(
    made: Mapping[str, Any], directory: str, named: str | None, used: Any, said: str | None, ranges: ByteRanges
) -> tuple[str | None, bytes | None, list[Finding]]:
    """The path and the content of the vocabulary, and what is wrong with where it should be."""
    findings: list[Finding] = []
    copied = made.get("vocabulary")
    if copied is not None:
        name = copied.get("name") if isinstance(copied, dict) else None
        if not isinstance(name, str) or not is_below(name):
            path, expected = files.join(directory, manifest.MANIFEST), "name, bytes and sha256 of a file"
            found = repr(copied)[:60]
            what = f"vocabulary must be {expected}, not {found}; {_OF_MANIFEST}"
            findings.append(finding("manifest", path, expected, found, what))
        else:
            path = files.join(directory, name)
            content, problem = _read_copy(path, ranges)
            findings += problem
            if content is not None:
                findings += _compare_copy(path, content, copied, said)
                if not any(finding.severity == "error" for finding in findings):
                    return path, content, findings
    for other in (named, used):
        if not isinstance(other, str):
            continue
        is_named = other == named
        try:
            content = _read_named(other)
        except (UnusableInputError, RunFailedError, ValueError):
            if is_named:
                raise
            continue
        if said is not None and hashlib.sha256(content).hexdigest() != said:
            if is_named:
                raise UnusableInputError(
                    f"{other}: the examples of {directory} were made with another vocabulary, whose sha256 is {said}; "
                    "name that one."
                )
            continue
        return other, content, findings
    return None, None, findings


def _read_copy(path: str, ranges: ByteRanges) -> tuple[bytes | None, list[Finding]]:
    try:
        return ranges.read_all(path), []
    except MissingFileError:
        what = f"this copy of the vocabulary is in the manifest, but not there; fetch it, or {_DO}"
        return None, [finding("missing", path, "a file", "nothing", what)]
    except (UnusableInputError, RunFailedError) as error:
        return None, [told("missing", path, "a file that can be read", str(error), str(error))]


def _compare_copy(path: str, content: bytes, copied: Mapping[str, Any], said: str | None) -> Iterable[Finding]:
    size, digest = copied.get("bytes"), hashlib.sha256(content).hexdigest()
    if size != len(content):
        what = f"this vocabulary has {len(content):,} bytes, but the manifest says {size}; {_DO}"
        yield finding(_CHECK, path, str(size), f"{len(content):,}", what)
    elif digest not in (copied.get("sha256"), said) or digest != copied.get("sha256"):
        what = f"this is not the vocabulary of the manifest (another sha256); {_DO}"
        yield finding(_CHECK, path, str(copied.get("sha256"))[:64], digest, what)
    elif said is not None and digest != said:
        what = f"the examples were made with another vocabulary (parameters of the manifest); {_DO}"
        yield finding(_CHECK, path, said, digest, what)


def _read_named(path: str) -> bytes:
    from maskmill.reading.remote import open_ranges

    with contextlib.closing(open_ranges(path, cache_bytes=0)) as ranges:
        return ranges.read_all(path)


@functools.lru_cache(maxsize=4)  # parts of a build have copies of one
def _parsed(
    path: str, content: bytes, duplicates: str, special_ids: tuple[tuple[str, int | None], ...]
) -> tuple[Vocabulary | None, Checked]:
    try:
        return vocabulary_in(path, content, duplicates, dict(special_ids)), check_lines(path, content)
    except UnusableInputError as error:
        return None, Checked(findings=[told(_CHECK, path, "a vocabulary", "none", str(error))])


def _compare(vocabulary: Vocabulary, size: Any, special_ids: Any, path: str) -> Checked:
    """Compares what a manifest says of a vocabulary with the vocabulary; older ones say nothing."""
    findings = []
    for name, said, is_so in (
        ("vocabulary_size", size, vocabulary.size),
        ("special_ids", special_ids, vocabulary.special_ids),
    ):
        if said is not None and said != is_so:
            what = f"{name} must be {is_so}, as the vocabulary has it, not {repr(said)[:200]}; {_DO}"
            findings.append(finding(_CHECK, path, str(is_so), repr(said)[:200], what))
    return Checked(findings=findings)


def _plain_ids(said: Any) -> dict[str, int | None]:
    if not isinstance(said, dict):
        return {}
    if not all(value is None or (isinstance(value, int) and not isinstance(value, bool)) for value in said.values()):
        return {}
    return dict(said)
