"""Load Hugging Face's tokenizer.json files, each with the fastest tokenizer that gives the same pieces."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import tokenizers

from maskmill.errors import UnusableInputError
from maskmill.tokenization.byte_level import ByteLevelTokenizer, plain_byte_pairs
from maskmill.tokenization.library_tokenizer import LibraryTokenizer, is_library_error
from maskmill.tokenization.tokenized_text import LoadedTokenizer
from maskmill.tokenization.vocabulary import tokenizer_vocabulary, vocabulary_of_ids

_COMPILED = ("tokenization.kernels.byte_level",)
_MARKING_SPACES = ("BPE", "Unigram")  # models whose pieces may include spaces; those of others have none
_SAMPLING = ("dropout", "alpha")  # of BPE and of Unigram; with one of them the model draws the pieces of a word


def load_tokenizer(
    path: str, content: bytes, special_ids: Mapping[str, int | None] | None = None, *, by_version_2: bool = False
) -> LoadedTokenizer:
    """Load a tokenizer.json.

    Plain byte-level BPE (`plain_byte_pairs`) is compiled, every other tokenizer runs in the library. In both, the
    first line of a document has the pieces of `Tokenizer.encode(line, add_special_tokens=False)`, and each line after
    it those that it has in running text (LibraryTokenizer). The file's settings of truncation and padding have no
    effect.

    Args:
      path: of the file, for messages; a file beside it may name its special tokens.
      content: of the file.
      special_ids: Vocabulary.special_ids, if they are known; None: read them from the file and those beside it.
      by_version_2: read text as version 2 of examples did: drop every carriage return, and encode each line alone.

    Raises:
      UnusableInputError: it is not JSON or no tokenizer, draws pieces at random, or lacks a special token that
        masking needs.
    """
    tokenizer = parse_tokenizer(path, content)
    _check_fixed(path, json.loads(content)["model"])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids = tokenizer.get_vocab(with_added_tokens=True)
    _check_added(path, json.loads(content).get("added_tokens") or (), ids)
    if special_ids is None:
        vocabulary = tokenizer_vocabulary(path, content, ids)
    else:
        vocabulary = vocabulary_of_ids(path, content, ids, special_ids)
    saved = json.loads(tokenizer.to_str())
    marks_spaces = saved["model"]["type"] in _MARKING_SPACES
    library = LibraryTokenizer(
        tokenizer, vocabulary.unknown_id, joins_lines=marks_spaces and not by_version_2, drops_returns=by_version_2
    )
    pairs = plain_byte_pairs(saved)
    if pairs is None:
        return LoadedTokenizer(vocabulary=vocabulary, tokenizer=lambda: library, kernels=())
    return LoadedTokenizer(
        vocabulary=vocabulary, tokenizer=lambda: ByteLevelTokenizer(pairs, library), kernels=_COMPILED
    )


def _check_fixed(path: str, model: Mapping[str, Any]) -> None:
    """Raise UnusableInputError if a model draws the pieces of a word at random."""
    for name in _SAMPLING:
        if model.get(name):
            raise UnusableInputError(
                f"{path}: the model has {name} {model[name]!r}, so it draws the pieces of a word at random and no data "
                f'set could be made twice; write "{name}": null into the file.'
            )


def _check_added(path: str, added: Sequence[Mapping[str, Any]], ids: Mapping[str, int]) -> None:
    """Raise UnusableInputError if the library gives an added token another id than the file does.

    The library renumbers added tokens that the model does not have, without gaps.
    """
    for token in added:
        name, number = token["content"], token["id"]
        if ids.get(name, number) != number:
            raise UnusableInputError(
                f"{path}: the added token {name!r} has the id {number:,} in this file, but the library tokenizers "
                f"gives it {ids[name]:,}; correct it, so that every program gives it the same."
            )


def parse_tokenizer(path: str, content: bytes) -> tokenizers.Tokenizer:
    """Return the library's tokenizer of a tokenizer.json.

    Raises:
      UnusableInputError: it is not JSON or no tokenizer.
    """
    try:
        text = content.decode()
        json.loads(text)
    except ValueError:
        raise UnusableInputError(
            f"{path}: this is not JSON; --tokenizer_file wants the tokenizer.json of Hugging Face's tokenizers (for a "
            "vocab.txt there is --vocab_file)."
        ) from None
    try:
        return tokenizers.Tokenizer.from_str(text)
    except BaseException as error:
        if not is_library_error(error):
            raise
        raise UnusableInputError(
            f"{path}: the library tokenizers {tokenizers.__version__} cannot read this as a tokenizer.json ({error}); "
            "save the tokenizer again with it, or name another file."
        ) from None
