"""Load the tokenizer of examples: of a WordPiece vocabulary, or of a tokenizer.json."""

import functools
from collections.abc import Mapping

from maskmill.masking.options import MaskingOptions
from maskmill.storage import files
from maskmill.tokenization.tokenized_text import LoadedTokenizer
from maskmill.tokenization.vocabulary import Vocabulary, is_tokenizer, load_vocabulary, parse_vocabulary
from maskmill.tokenization.wordpiece import Tokenizer

WORDPIECE_KERNELS = ("tokenization.kernels.wordpiece",)


def load_tokenization(path: str, masking: MaskingOptions, *, is_tokenizer: bool) -> LoadedTokenizer:
    """Load a vocabulary with its tokenizer.

    Args:
      path: of a vocab.txt, or of a tokenizer.json.
      masking: decides how a vocab.txt is read and splits text; a tokenizer.json has these rules in itself.
      is_tokenizer: whether it is a tokenizer.json.

    Raises:
      UnusableInputError: the file is missing or of another kind, or lacks a piece that masking needs.
    """
    if not is_tokenizer:
        return wordpiece(load_vocabulary(path, masking.duplicate_pieces), masking)
    # The library is imported only where it is needed: it takes a moment.
    from maskmill.tokenization.tokenizers import load_tokenizer

    return load_tokenizer(path, files.read_bytes(path))


def tokenization_in(
    path: str, content: bytes, masking: MaskingOptions, special_ids: Mapping[str, int | None], *, by_version_2: bool
) -> LoadedTokenizer:
    """Return the vocabulary in the content of a file, with its tokenizer; see `load_tokenization`.

    Args:
      path: of the file, for messages.
      content, masking: of the file, and as in `load_tokenization`.
      special_ids: of a tokenizer.json; the files beside it are not read for them.
      by_version_2: read text as version 2 of examples did (storage/completions.py): drop every carriage return, and
        tokenize each line alone.
    """
    if not is_tokenizer(content):
        vocabulary = parse_vocabulary(path, content, masking.duplicate_pieces)
        return wordpiece(vocabulary, masking, by_version_2=by_version_2)
    from maskmill.tokenization.tokenizers import load_tokenizer

    return load_tokenizer(path, content, special_ids, by_version_2=by_version_2)


def wordpiece(vocabulary: Vocabulary, masking: MaskingOptions, *, by_version_2: bool = False) -> LoadedTokenizer:
    """Return a WordPiece vocabulary with its tokenizer; by_version_2: see `tokenization_in`.

    Raises:
      ValueError: the vocabulary was loaded with another rule for duplicate pieces than the options say.
    """
    if vocabulary.duplicates != masking.duplicate_pieces:
        raise ValueError("the vocabulary was loaded with another rule for duplicate pieces than the options say")
    make = functools.partial(
        Tokenizer,
        vocabulary,
        do_lower_case=masking.do_lower_case,
        unicode=masking.unicode,
        drops_returns=masking.follows_reference or by_version_2,
    )
    return LoadedTokenizer(vocabulary=vocabulary, tokenizer=make, kernels=WORDPIECE_KERNELS)
