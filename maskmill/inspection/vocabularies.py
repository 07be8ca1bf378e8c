"""A vocabulary as a person looks at it: its pieces by kind and script."""

import collections
import contextlib
import dataclasses
import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence

from maskmill.arguments import checked
from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.inspection.kinds import plain
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.storage import files
from maskmill.tokenization.byte_level import byte_characters
from maskmill.tokenization.special_tokens import roles_of
from maskmill.tokenization.tokenizer_json import token_ids
from maskmill.tokenization.vocabulary import vocabulary_lines

_FILES = ("tokenizer.json", "vocab.txt")
_FOLDERS = ("", "vocabulary")
_RESERVED = re.compile(r"\[.*\]|<[^<>]*>", re.DOTALL)
_WORDPIECE, _BYTES, _SENTENCEPIECE = "##", "Ġ", "▁"
_OTHER_SCRIPT = "digits, marks and others"


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyFile:
    """A vocab.txt or a tokenizer.json.

    Attributes:
      named: the path that the user named. path: of the file.
      kind: "WordPiece (vocab.txt)", "BPE (tokenizer.json)" …
      size, sha256: of the file.
      pieces: of a vocab.txt its lines, numbered from 0, of which the last of equal ones counts; of a tokenizer.json
        those that have an id, by their ids.
      ids: one more than the largest id.
      counts: how many pieces are special or reserved, have one character, start a word, go on one, have a capital
        letter, or repeat an earlier one, and the characters of the longest. Special ones count for none of the others.
      roles: the special pieces and their ids by what they are.
      scripts: pieces by their script, the most frequent first.
    """

    named: str
    path: str
    kind: str
    size: int
    sha256: str
    pieces: Sequence[tuple[int, str]]
    ids: int
    counts: Mapping[str, int]
    roles: Mapping[str, tuple[str, int]]
    scripts: Sequence[tuple[str, int]]


@checked
def open_vocabulary(path: str | os.PathLike[str]) -> VocabularyFile:
    """Reads a vocabulary.

    Args:
      path: a vocab.txt, a tokenizer.json, or a directory with one. Local, gs:// or http(s)://.

    Raises:
      UnusableInputError: it is not a vocabulary.
      RunFailedError: it cannot be read.
    """
    named = plain(path)
    with contextlib.closing(open_ranges(named)) as ranges:
        file = _find(named, ranges)
        content = ranges.read_all(file)
    if content.lstrip()[:1] == b"{":
        kind, pieces = _of_tokenizer(file, content)
    else:
        kind, pieces = "WordPiece (vocab.txt)", list(enumerate(vocabulary_lines(file, content)))
    texts = [piece for _, piece in pieces]
    ids = {piece: id for id, piece in pieces}
    words = [piece for piece in texts if not _RESERVED.fullmatch(piece)]
    mark = _mark(texts)
    bare = [piece.removeprefix(mark) if mark and len(piece) > len(mark) else piece for piece in words]
    continuing = sum(piece.startswith(mark) != (mark in (_BYTES, _SENTENCEPIECE)) for piece in words) if mark else 0
    return VocabularyFile(
        named=named,
        path=file,
        kind=kind,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        pieces=pieces,
        ids=max((id for id, _ in pieces), default=-1) + 1,
        counts={
            "special or reserved": len(texts) - len(words),
            "of one character": sum(len(piece) == 1 for piece in bare),
            "that start a word": len(words) - continuing,
            "that go on a word": continuing,
            "with a capital letter": sum(piece != piece.lower() for piece in bare),
            "that stand there twice": len(texts) - len(ids),
            "longest, in characters": max(map(len, bare), default=0),
        },
        roles={role: (piece, ids[piece]) for role, piece in roles_of(ids).items()},
        scripts=collections.Counter(_script(piece) for piece in bare).most_common(),
    )


def _find(path: str, ranges: ByteRanges) -> str:
    if not _is_directory(path, ranges):
        return path
    for folder in _FOLDERS:
        for name in _FILES:
            file = files.join(files.join(path, folder) if folder else path, name)
            try:
                ranges.size(file)
            except MissingFileError:
                continue
            return file
    raise UnusableInputError(f"{path}: there is no vocabulary in this directory (vocab.txt, tokenizer.json).")


def _is_directory(path: str, ranges: ByteRanges) -> bool:
    if files.is_local(path):
        return os.path.isdir(path)
    try:
        ranges.size(path)
    except MissingFileError:
        return True
    return False


def _of_tokenizer(file: str, content: bytes) -> tuple[str, list[tuple[int, str]]]:
    """The kind and the pieces of a tokenizer.json."""
    try:
        saved = json.loads(content)
        kind = f"{saved['model'].get('type') or 'a model'} (tokenizer.json)"
        ids = token_ids(saved)
        return kind, sorted((int(id), str(piece)) for piece, id in ids.items())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnusableInputError(f"{file}: this is not a tokenizer.json, or it is damaged; save it again.") from None


def _mark(pieces: Sequence[str]) -> str:
    """What tells in these pieces whether they start a word: "##", "Ġ", "▁", or nothing."""
    known = set(pieces)
    if known.issuperset(byte_characters()):
        return _BYTES
    for mark in (_WORDPIECE, _SENTENCEPIECE):
        if any(piece.startswith(mark) and piece != mark for piece in pieces):
            return mark
    return ""


def _script(piece: str) -> str:
    """The script of the first letter of a piece, by the first word of its name in Unicode."""
    for character in piece:
        if character.isalpha():
            return unicodedata.name(character, _OTHER_SCRIPT).split(" ")[0].split("-")[0].capitalize()
    return _OTHER_SCRIPT
