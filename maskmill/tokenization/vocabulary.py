"""Vocabularies, as masking needs them: the pieces, and the ids of the special ones.

A WordPiece vocabulary is a text file with one piece a line, as BERT's vocab.txt. The vocabulary of any other tokenizer
is read from its tokenizer.json, and the roles of its special tokens from the files that transformers saves beside it.
Without these files, tokens with the names of BERT's and RoBERTa's special tokens have their roles.
"""

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from maskmill.characters.utf8 import is_utf8
from maskmill.errors import UnusableInputError
from maskmill.storage import files
from maskmill.tokenization.special_tokens import ROLES, named_roles

DuplicatePieces = Literal["first", "last"]

SPECIAL_PIECES = ("[MASK]", "[CLS]", "[SEP]", "[UNK]")
_SPECIAL = re.compile(r"(?:\[.*\])?", re.DOTALL)  # [PAD] and [unused0] too, and a blank line, a piece of no word
_MOST_UNUSED = 2_000_000  # ids below the largest that no token has
_PADDING = 0  # the reference pads with this id, whatever its piece is

# transformers reads the first of these files that has a name for the token.
_BESIDE = ("tokenizer_config.json", "special_tokens_map.json")
# The roles of Vocabulary.special_ids. All but the last are needed.
_ROLE_OF = {
    "cls_id": "cls_token", "sep_id": "sep_token", "mask_id": "mask_token", "pad_id": "pad_token",
    "unknown_id": "unk_token",
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """A vocabulary that is fit for masking.

    Attributes:
      path: of its file.
      sha256: of the file, in hexadecimal.
      duplicates: the id of a piece that is on several lines. "last": an id is the number of a line, and the last line
        of a piece counts, as in google-research/bert and Hugging Face's libraries; "first": lines are
        numbered without repetitions, as in MLPerf's tokenization.py. A tokenizer.json has no piece twice.
      pieces: the distinct pieces: of a vocab.txt in the order of their first lines, of a tokenizer.json in that of
        their ids.
      ids: int32[len(pieces)], the id of each. Random pieces are drawn from `pieces`, so an id that "last" leaves
        unused is never drawn.
      cls_id, sep_id, mask_id: the ids of [CLS], [SEP] and [MASK], whatever these pieces are called.
      pad_id: the id after the last piece of a row.
      unknown_id: the id for text without pieces; None if all text has pieces, or text without them is left out.
      marks_words: whether "##" at the start of a piece marks that it continues a word. Else only the tokenizer knows
        (TokenizedText.continues).
    """

    path: str
    sha256: str
    duplicates: DuplicatePieces
    pieces: tuple[str, ...]
    ids: np.ndarray = dataclasses.field(compare=False)
    cls_id: int
    sep_id: int
    mask_id: int
    pad_id: int
    unknown_id: int | None
    marks_words: bool

    @property
    def size(self) -> int:
        """One more than the largest id."""
        return int(self.ids.max()) + 1

    @property
    def special_ids(self) -> dict[str, int | None]:
        """The ids of the special pieces and of padding, by the names of their attributes."""
        names = ("cls_id", "sep_id", "mask_id", "pad_id", "unknown_id")
        return {name: getattr(self, name) for name in names}

    @property
    def capital_share(self) -> float:
        """The share of the pieces that have a capital letter, 0 to 1; special pieces are not counted."""
        pieces = [piece for piece in self.pieces if not _SPECIAL.fullmatch(piece)]
        return sum(piece != piece.lower() for piece in pieces) / max(1, len(pieces))

    def id_of(self, piece: str) -> int:
        """Return the id of a piece of the vocabulary."""
        return int(self.ids[self.pieces.index(piece)])


def load_vocabulary(path: str, duplicates: DuplicatePieces = "last") -> Vocabulary:
    """Read a vocabulary; see `parse_vocabulary`.

    Raises:
      UnusableInputError: the file is missing, or cannot be used.
    """
    return parse_vocabulary(path, files.read_bytes(path), duplicates)


def vocabulary_lines(path: str, content: bytes) -> list[str]:
    """Return the pieces of a vocab.txt line by line, blank and repeated ones included; path: of the file, for messages.

    As in the references, every carriage return is dropped, and white space around a piece.

    Raises:
      UnusableInputError: it is not UTF-8.
    """
    lines = content.replace(b"\r", b"").split(b"\n")
    if not lines[-1]:
        lines.pop()
    try:
        return [line.decode().strip() for line in lines]
    except UnicodeDecodeError:
        bad = next(number for number, line in enumerate(lines, 1) if not is_utf8(line))
        raise UnusableInputError(f"{path}, line {bad}: this vocabulary is not UTF-8; is it a vocab.txt?") from None


def is_tokenizer(content: bytes) -> bool:
    """Return whether a vocabulary's file is a tokenizer.json."""
    # A vocab.txt may have a piece "{", but not on its first line.
    return content.lstrip().startswith(b"{")


@functools.lru_cache(maxsize=2)  # verify rebuilds many shards with one vocabulary
def parse_vocabulary(path: str, content: bytes, duplicates: DuplicatePieces = "last") -> Vocabulary:
    """Return the vocabulary of a vocab.txt; see `vocabulary_lines`.

    Args:
      path: of the file, for messages.
      content: of the file.
      duplicates: as in Vocabulary.

    Raises:
      UnusableInputError: it is not UTF-8, lacks [MASK], [CLS], [SEP] or [UNK], or has special pieces only.
    """
    lines = vocabulary_lines(path, content)
    ids = {piece: number for number, piece in enumerate(lines if duplicates == "last" else dict.fromkeys(lines))}
    missing = [piece for piece in SPECIAL_PIECES if piece not in ids]
    if missing and content.lstrip().startswith(b"{"):
        raise UnusableInputError(
            f"{path}: this vocabulary is JSON and no vocab.txt; if it is a tokenizer.json, give it as --tokenizer_file."
        )
    if missing:
        raise UnusableInputError(
            f"{path}: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing from this vocabulary; "
            "masking needs them, each on a line of its own."
        )
    if all(_SPECIAL.fullmatch(piece) for piece in ids):
        raise UnusableInputError(
            f"{path}: this vocabulary has special pieces only, such as [MASK], so every word would become [UNK]; name "
            "a vocabulary with the words of the text's language."
        )
    return wordpiece_vocabulary(path, hashlib.sha256(content).hexdigest(), duplicates, ids)


def wordpiece_vocabulary(path: str, sha256: str, duplicates: DuplicatePieces, ids: Mapping[str, int]) -> Vocabulary:
    """Return a WordPiece vocabulary; ids: of its pieces, with [CLS], [SEP] and [MASK]; others as in Vocabulary."""
    return Vocabulary(
        path=path,
        sha256=sha256,
        duplicates=duplicates,
        pieces=tuple(ids),
        ids=np.fromiter(ids.values(), np.int32, len(ids)),  # numbers of lines, all different
        cls_id=ids["[CLS]"],
        sep_id=ids["[SEP]"],
        mask_id=ids["[MASK]"],
        pad_id=_PADDING,
        unknown_id=ids.get("[UNK]"),
        marks_words=True,
    )


def tokenizer_vocabulary(path: str, content: bytes, ids: Mapping[str, int]) -> Vocabulary:
    """Return the vocabulary of a tokenizer.json.

    Args:
      path: of the tokenizer.json. tokenizer_config.json beside it names the special tokens, then
        special_tokens_map.json, then the known names (ROLES).
      content: of the file.
      ids: the id of each token, added tokens included.

    Raises:
      UnusableInputError: there is no token for [CLS], [SEP], [MASK] or [PAD], which masking needs; or a file beside
        `path` is not JSON, or names a token that `ids` does not have.
    """
    named = _named_beside(path)
    found: dict[str, int | None] = {}
    for role, names in ROLES.items():
        if role in named:
            name, source = named[role]
            if name not in ids:
                raise UnusableInputError(
                    f"{source}: its {role} is {name!r}, which {path} does not have; name one of its tokens."
                )
            found[role] = ids[name]
        else:
            found[role] = next((ids[name] for name in names if name in ids), None)
    missing = [role for role in _ROLE_OF.values() if found[role] is None and role != "unk_token"]
    if missing:
        by_name = ", ".join(f"{role} ({' or '.join(ROLES[role])})" for role in missing)
        raise UnusableInputError(
            f"{path}: this tokenizer has no {by_name}, which masking needs; name a token for each in "
            f"{_BESIDE[0]} beside it, or take another tokenizer."
        )
    return vocabulary_of_ids(path, content, ids, {name: found[role] for name, role in _ROLE_OF.items()})


def vocabulary_of_ids(path: str, content: bytes, ids: Mapping[str, int], special_ids: Mapping[str, Any]) -> Vocabulary:
    """Return the vocabulary of a tokenizer.json, given Vocabulary.special_ids and the id of each token."""
    ids = dict(sorted(ids.items(), key=lambda token: (token[1], token[0])))
    return Vocabulary(
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        duplicates="first",
        pieces=tuple(ids),
        ids=_checked_ids(path, ids),
        marks_words=False,
        **special_ids,
    )


def _checked_ids(path: str, ids: Mapping[str, int]) -> np.ndarray:
    """Return int32[len(ids)]: the ids of a vocabulary's tokens, in their order.

    Raises:
      UnusableInputError: two tokens have one id, or more than _MOST_UNUSED ids have no token: memory grows with the
        largest id.
    """
    tokens: dict[int, str] = {}
    for token, number in ids.items():
        if tokens.setdefault(number, token) != token:
            raise UnusableInputError(
                f"{path}: the tokens {tokens[number]!r} and {token!r} have the same id, {number:,}; "
                "give each token its own."
            )
    largest = max(tokens)
    if largest - len(tokens) >= _MOST_UNUSED:
        raise UnusableInputError(
            f"{path}: the token {tokens[largest]!r} has the id {largest:,}, but there are only {len(tokens):,} tokens; "
            "give them ids without large gaps."
        )
    return np.fromiter(tokens, np.int32, len(tokens))


def _named_beside(path: str) -> dict[str, tuple[str, str]]:
    """Return for each role that a file beside a tokenizer.json names the token and the file."""
    named: dict[str, tuple[str, str]] = {}
    for name in _BESIDE:
        beside = files.join(files.parent(path), name)
        if not files.exists(beside):
            continue
        for role, token in named_roles(_json_object(beside)).items():
            named.setdefault(role, (token, beside))
    return named


def _json_object(path: str) -> dict[str, Any]:
    try:
        content = json.loads(files.read_bytes(path))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise UnusableInputError(
            f"{path}: this is no JSON object, and it should name the special tokens of the tokenizer.json beside it; "
            "repair or remove it."
        )
    return content
