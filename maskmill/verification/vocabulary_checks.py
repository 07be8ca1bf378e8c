"""Finds the vocabulary of a data set, and checks that it is the one that its manifest means."""

import contextlib
import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.storage import files
from maskmill.tokenization.vocabulary import Vocabulary, parse_vocabulary
from maskmill.verification.findings import Checked, Finding, finding, joined
from maskmill.verification.known_rules import KnownPieces, parameters_of
from maskmill.verification.listed_shards import is_below

_CHECK = "vocabulary"
_MOST_NAMED = 5  # of duplicate pieces
_DO = "put back the vocabulary that the examples were made with, or make them again"
Duplicates = Literal["first", "last"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FoundVocabulary:
    """The vocabulary of a data set.

    Attributes:
      known: what is known of it.
      path: of the file; None: there is none.
      sha256: of the file, as it is.
      is_tokenizer: whether it is a tokenizer.json.
    """

    known: KnownPieces
    path: str | None = None
    sha256: str | None = None
    is_tokenizer: bool = False


def find_vocabulary(
    made: Mapping[str, Any], directory: str, named: str | None, ranges: ByteRanges
) -> tuple[FoundVocabulary, Checked]:
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
        why = "the vocabulary is not there; name it with --vocab_file"
        skipped = {} if findings else {_CHECK: why}
        return FoundVocabulary(known=known), Checked(findings=tuple(findings), skipped=skipped)
    duplicates: Duplicates = "last" if options.get("duplicate_pieces") == "last" else "first"
    vocabulary, more = _parsed(path, content, duplicates, known.special_ids)
    digest = hashlib.sha256(content).hexdigest()
    if vocabulary is not None:
        manifest_path = files.join(directory, "manifest.json")
        more = joined([more, _compare(vocabulary, said_size, said_ids, manifest_path)])
        known = _known(vocabulary, content)
    found = FoundVocabulary(known=known, path=path, sha256=digest, is_tokenizer=_is_tokenizer(content))
    return found, joined([Checked(findings=tuple(findings), looked_at={_CHECK: 1}), more])


def _known(vocabulary: Vocabulary, content: bytes) -> KnownPieces:
    return KnownPieces(
        vocabulary=vocabulary,
        size=vocabulary.size,
        special_ids=vocabulary.special_ids,
        is_tokenizer=_is_tokenizer(content),
    )


def load_named(path: str) -> tuple[FoundVocabulary, Checked]:
    """The vocabulary that a user names for files without a manifest.

    Raises:
      UnusableInputError: it cannot be read or used.
    """
    content = _read_named(path)
    known = KnownPieces()
    vocabulary, checked = _parsed(path, content, "first", {})
    if vocabulary is None:
        raise UnusableInputError(checked.findings[0].message)
    known = _known(vocabulary, content)
    digest = hashlib.sha256(content).hexdigest()
    found = FoundVocabulary(known=known, path=path, sha256=digest, is_tokenizer=_is_tokenizer(content))
    return found, Checked(findings=checked.findings, looked_at={_CHECK: 1})


def check_lines(path: str, content: bytes) -> Checked:
    """Names the pieces that a vocab.txt has twice: the reference's tokenizers give them other ids."""
    if _is_tokenizer(content):
        return Checked()
    lines: dict[str, list[int]] = {}
    for number, line in enumerate(content.replace(b"\r", b"").decode(errors="replace").removesuffix("\n").split("\n")):
        lines.setdefault(line.strip(), []).append(number)
    twice = {piece: numbers for piece, numbers in lines.items() if len(numbers) > 1}
    if not twice:
        return Checked()
    named = [f"{piece!r} (ids {', '.join(map(str, numbers))})" for piece, numbers in twice.items()]
    more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
    pieces = ", ".join(named[:_MOST_NAMED]) + more
    first = next(iter(twice.values()))
    note = finding(
        _CHECK,
        path,
        "each piece once",
        pieces,
        f"{path}: this vocabulary has pieces on more than one line, {pieces}; programs disagree on the ids of these "
        "and of the pieces behind them, so use the one that made the examples.",
        severity="note",
        record=first[1] + 1,
    )
    return Checked(findings=(dataclasses.replace(note, count=len(twice)),))


def _read_any(
    made: Mapping[str, Any], directory: str, named: str | None, used: Any, said: str | None, ranges: ByteRanges
) -> tuple[str | None, bytes | None, list[Finding]]:
    """The path and the content of the vocabulary, and what is wrong with where it should be."""
    findings: list[Finding] = []
    copied = made.get("vocabulary")
    if copied is not None:
        name = copied.get("name") if isinstance(copied, dict) else None
        if not isinstance(name, str) or not is_below(name):
            path = files.join(directory, "manifest.json")
            findings.append(
                Finding(
                    check="manifest",
                    file=path,
                    expected="name, bytes and sha256 of a file",
                    found=repr(copied)[:60],
                    message=f"{path}: vocabulary must be name, bytes and sha256 of a file, not {repr(copied)[:60]}; "
                    "make the directory again, or put back the manifest that was written with it.",
                )
            )
        else:
            path = files.join(directory, name)
            content, problem = _read_copy(path, ranges)
            findings += problem
            if content is not None:
                findings += _compare_copy(path, content, copied, said)
                if not any(finding.severity == "error" for finding in findings):
                    return path, content, findings
    for other in (named, used if isinstance(used, str) else None):
        if other is None:
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
        message = f"{path}: this copy of the vocabulary is in the manifest, but not there; fetch it, or {_DO}."
        return None, [finding("missing", path, "a file", "nothing", message)]
    except (UnusableInputError, RunFailedError) as error:
        return None, [finding("missing", path, "a file that can be read", str(error), str(error))]


def _compare_copy(path: str, content: bytes, copied: Mapping[str, Any], said: str | None) -> Iterable[Finding]:
    size, digest = copied.get("bytes"), hashlib.sha256(content).hexdigest()
    if size != len(content):
        message = f"{path}: this vocabulary has {len(content):,} bytes, but the manifest says {size}; {_DO}."
        yield finding(_CHECK, path, str(size), f"{len(content):,}", message)
    elif digest not in (copied.get("sha256"), said) or digest != copied.get("sha256"):
        message = f"{path}: this is not the vocabulary of the manifest (another sha256); {_DO}."
        yield finding(_CHECK, path, str(copied.get("sha256"))[:64], digest, message)
    elif said is not None and digest != said:
        message = f"{path}: the examples were made with another vocabulary (parameters of the manifest); {_DO}."
        yield finding(_CHECK, path, said, digest, message)


def _read_named(path: str) -> bytes:
    from maskmill.reading.remote import open_ranges

    with contextlib.closing(open_ranges(path, cache_bytes=0)) as ranges:
        return ranges.read_all(path)


def _parsed(
    path: str, content: bytes, duplicates: Duplicates, special_ids: Mapping[str, int | None]
) -> tuple[Vocabulary | None, Checked]:
    return _parsed_once(path, content, duplicates, tuple(special_ids.items()))


@functools.lru_cache(maxsize=4)  # parts of a build have copies of one
def _parsed_once(
    path: str, content: bytes, duplicates: Duplicates, special_ids: tuple[tuple[str, int | None], ...]
) -> tuple[Vocabulary | None, Checked]:
    try:
        if _is_tokenizer(content):
            from maskmill.tokenization.tokenizers import parse_tokenizer
            from maskmill.tokenization.vocabulary import tokenizer_vocabulary, vocabulary_of_ids

            ids = parse_tokenizer(path, content).get_vocab(with_added_tokens=True)
            if special_ids:
                return vocabulary_of_ids(path, content, ids, dict(special_ids)), Checked()
            return tokenizer_vocabulary(path, content, ids), Checked()
        return parse_vocabulary(path, content, duplicates), check_lines(path, content)
    except UnusableInputError as error:
        return None, Checked(findings=(finding(_CHECK, path, "a vocabulary", "none", str(error)),))


def _compare(vocabulary: Vocabulary, size: Any, special_ids: Any, path: str) -> Checked:
    """Holds what a manifest says of a vocabulary against the vocabulary; older ones say nothing."""
    findings = []
    for name, said, is_so in (
        ("vocabulary_size", size, vocabulary.size),
        ("special_ids", special_ids, vocabulary.special_ids),
    ):
        if said is not None and said != is_so:
            message = f"{path}: {name} must be {is_so}, as the vocabulary has it, not {repr(said)[:200]}; {_DO}."
            findings.append(finding(_CHECK, path, str(is_so), repr(said)[:200], message))
    return Checked(findings=tuple(findings))


def _plain_ids(said: Any) -> dict[str, int | None]:
    if not isinstance(said, dict):
        return {}
    if not all(value is None or (isinstance(value, int) and not isinstance(value, bool)) for value in said.values()):
        return {}
    return dict(said)


def _is_tokenizer(content: bytes) -> bool:
    return content.lstrip().startswith(b"{")
