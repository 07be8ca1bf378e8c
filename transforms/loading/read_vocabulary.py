"""The vocabulary of a data set: beside its examples, or where the user says; and how masks are drawn with it."""

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from transforms.errors import UnusableInputError
from transforms.loading.byte_ranges import ByteRanges
from transforms.masking.kernels.row_masks import RowMaskRules
from transforms.masking.objective_options import ObjectiveOptions
from transforms.masking.options import MaskingOptions
from transforms.masking.row_masks import rules_of
from transforms.tokenization.vocabulary import Vocabulary, parse_vocabulary

_Options = TypeVar("_Options", MaskingOptions, ObjectiveOptions)
_SPECIAL = ("cls_id", "sep_id", "mask_id", "pad_id", "unknown_id")


@dataclasses.dataclass(frozen=True, kw_only=True)
class KnownVocabulary:
    """What a data set says of its vocabulary.

    Attributes:
      size: ids are below it; None: not known.
      special_ids: Vocabulary.special_ids; empty: not known.
      sha256: of its file; None: not known.
      copy: the path of the copy beside the examples; None: there is none.
      name: of the file that the examples were made with, for messages.
      is_tokenizer: whether it is a tokenizer.json.
      duplicates: which id a piece has that a vocab.txt has twice.
    """

    size: int | None
    special_ids: dict[str, int | None]
    sha256: str | None
    copy: str | None
    name: str | None
    is_tokenizer: bool
    duplicates: str


UNKNOWN = KnownVocabulary(
    size=None, special_ids={}, sha256=None, copy=None, name=None, is_tokenizer=False, duplicates="first"
)


def load_known(known: KnownVocabulary, path: str, vocab_file: str | None, ranges: ByteRanges) -> Vocabulary:
    """Loads the vocabulary of a data set.

    Args:
      known: what the data set says of it.
      path: of the data set, for messages.
      vocab_file: the vocabulary's file; None: the copy beside the examples.
      ranges: read it.

    Raises:
      UnusableInputError: there is no copy, or the file is missing, cannot be used or is another one.
    """
    file = vocab_file or known.copy
    if file is None:
        named = "" if known.name is None else f" ({known.name})"
        raise UnusableInputError(
            f"{path}: masks are drawn with the vocabulary, and this data set of an older version has no copy of it; "
            f"give the one that its examples were made with{named} as vocab_file."
        )
    content = ranges.read_all(file)
    if known.sha256 is not None and hashlib.sha256(content).hexdigest() != known.sha256:
        raise UnusableInputError(
            f"{file}: this is not the vocabulary that the examples of {path} were made with (another sha256); "
            "name that one."
        )
    is_tokenizer = known.is_tokenizer or (known.sha256 is None and content.lstrip().startswith(b"{"))
    if not is_tokenizer:
        return parse_vocabulary(file, content, "last" if known.duplicates == "last" else "first")
    return _tokenizer_vocabulary(file, content, known)


def _tokenizer_vocabulary(file: str, content: bytes, known: KnownVocabulary) -> Vocabulary:
    """The vocabulary of a tokenizer.json; the data set says which of its tokens are special."""
    # The library is imported only where it is needed: it takes a moment.
    from transforms.tokenization.tokenizer_vocabulary import tokenizer_vocabulary
    from transforms.tokenization.tokenizers import parse_tokenizer

    ids = parse_tokenizer(file, content).get_vocab(with_added_tokens=True)
    if not known.special_ids:
        return tokenizer_vocabulary(file, content, ids)
    pieces = sorted(ids, key=ids.__getitem__)
    special: dict[str, Any] = {name: known.special_ids[name] for name in _SPECIAL}
    return Vocabulary(
        path=file,
        sha256=hashlib.sha256(content).hexdigest(),
        duplicates="first",
        pieces=tuple(pieces),
        ids=np.array([ids[piece] for piece in pieces], np.int32),
        marks_words=False,
        **special,
    )


def mask_rules(options: Mapping[str, Any], vocabulary: Vocabulary) -> RowMaskRules:
    """How the masks of a data set are drawn: as its writer would have drawn them; options: MadeExamples.options.

    Raises:
      UnusableInputError: an option has a value that cannot be meant.
    """
    return rules_of(vocabulary, _options(MaskingOptions, options), _options(ObjectiveOptions, options))


def _options(kind: type[_Options], parameters: Mapping[str, Any]) -> _Options:
    """Options from a manifest's parameters; those that it does not have were declared later, and have their default."""
    names = [field.name for field in dataclasses.fields(kind)]
    return kind(**{name: parameters[name] for name in names if name in parameters})
