"""A vocabulary as a person looks at it: its pieces with their ids."""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.inspection.kinds import plain
from maskmill.reading.remote import open_ranges
from maskmill.storage import files
from maskmill.tokenization.tokenizer_json import token_ids
from maskmill.tokenization.vocabulary import vocabulary_lines

_PLACES = ("", "tokenizer.json", "vocab.txt", "vocabulary/tokenizer.json", "vocabulary/vocab.txt")


class Piece(NamedTuple):
    """A piece of a vocabulary."""

    id: int
    piece: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyFile:
    """A vocab.txt or a tokenizer.json.

    Attributes:
      path: of the file.
      kind: "WordPiece (vocab.txt)", "BPE (tokenizer.json)" …
      size, sha256: of the file.
      pieces: by their ids; of a vocab.txt its lines, numbered from 0, of which the last of equal ones counts.
    """

    path: str
    kind: str
    size: int
    sha256: str
    pieces: Sequence[Piece]

    @property
    def count(self) -> int:
        """How many pieces it has."""
        return len(self.pieces)

    def all(self, first: int = 0) -> Iterator[Piece]:
        """The pieces. first: how many of them are left out before."""
        return itertools.islice(self.pieces, first, None)

    def search(self, words: str) -> Iterator[Piece]:
        """The pieces that have some characters in them, in capitals or not."""
        return (piece for piece in self.pieces if words.casefold() in piece.piece.casefold())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: the file is closed."""


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
        places = [files.join(named, place) if place else named for place in _PLACES]
        is_directory = files.is_local(named) and os.path.isdir(named)
        file = next((place for place in places[is_directory:] if ranges.exists(place)), None)
        if file is None:
            raise UnusableInputError(f"{named}: there is no vocabulary here (vocab.txt, tokenizer.json).")
        content = ranges.read_all(file)
    if content.lstrip()[:1] == b"{":
        try:
            saved = json.loads(content)
            kind = f"{saved['model'].get('type') or 'a model'} (tokenizer.json)"
            pieces = sorted(Piece(int(id), str(piece)) for piece, id in token_ids(saved).items())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UnusableInputError(
                f"{file}: this is not a tokenizer.json, or it is damaged; save it again."
            ) from None
    else:
        kind, pieces = "WordPiece (vocab.txt)", list(map(Piece._make, enumerate(vocabulary_lines(file, content))))
    digest = hashlib.sha256(content).hexdigest()
    return VocabularyFile(path=file, kind=kind, size=len(content), sha256=digest, pieces=pieces)
