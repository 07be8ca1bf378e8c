"""The vocabulary of a tokenizer.json: which of its tokens stand for [CLS], [SEP], [MASK], [PAD] and [UNK].

The files that transformers saves beside a tokenizer.json name them. Without these files they are known by the names
that BERT's and RoBERTa's tokenizers have for them.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from maskmill.tokenization.special_tokens import ROLES, named_roles
from maskmill.tokenization.vocabulary import Vocabulary

# transformers reads the first of these files that has a name for the token.
_BESIDE = ("tokenizer_config.json", "special_tokens_map.json")
_NEEDED = ("cls_token", "sep_token", "mask_token", "pad_token")


def tokenizer_vocabulary(path: str, content: bytes, ids: Mapping[str, int]) -> Vocabulary:
    """The vocabulary of a tokenizer.json.

    Args:
      path: of the tokenizer.json. Its special tokens are looked up in tokenizer_config.json, then in
        special_tokens_map.json beside it.
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
    missing = [role for role in _NEEDED if found[role] is None]
    if missing:
        by_name = ", ".join(f"{role} ({' or '.join(ROLES[role])})" for role in missing)
        raise UnusableInputError(
            f"{path}: this tokenizer has no {by_name}, which masking needs; name a token for each in "
            f"{_BESIDE[0]} beside it, or take another tokenizer."
        )
    special_ids = {
        "cls_id": _known(found["cls_token"]),
        "sep_id": _known(found["sep_token"]),
        "mask_id": _known(found["mask_token"]),
        "pad_id": _known(found["pad_token"]),
        "unknown_id": found["unk_token"],
    }
    return vocabulary_of_ids(path, content, ids, special_ids)


def vocabulary_of_ids(path: str, content: bytes, ids: Mapping[str, int], special_ids: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary of a tokenizer.json whose special tokens are known; special_ids: see Vocabulary.special_ids."""
    pieces = sorted(ids, key=ids.__getitem__)
    return Vocabulary(
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        duplicates="first",
        pieces=tuple(pieces),
        ids=np.array([ids[piece] for piece in pieces], np.int32),
        cls_id=special_ids["cls_id"],
        sep_id=special_ids["sep_id"],
        mask_id=special_ids["mask_id"],
        pad_id=special_ids["pad_id"],
        unknown_id=special_ids["unknown_id"],
        marks_words=False,
    )


def _known(token_id: int | None) -> int:
    if token_id is None:
        raise ValueError("a token that masking needs has no id")
    return token_id


def _named_beside(path: str) -> dict[str, tuple[str, str]]:
    """For each role that a file beside a tokenizer.json names, the token and the file."""
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
