"""The vocabulary of a data set: beside its examples, or where the user says; and how masks are drawn with it."""

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.masking.kernels.row_masks import RowMaskRules
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.masking.row_masks import rules_of
from maskmill.options import of_parameters
from maskmill.reading.byte_ranges import ByteRanges, ranges_beside
from maskmill.tokenization.vocabulary import Vocabulary, is_tokenizer, parse_vocabulary


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
    size=None, special_ids={}, sha256=None, copy=None, name=None, is_tokenizer=False, duplicates="last"
)


@dataclasses.dataclass(frozen=True)
class NamedVocabulary:
    """What a user named: the path of a data set, and its vocabulary's file, which may be left out; and what reads them.

    The vocabulary may lie elsewhere: on another machine than the data.
    """

    path: str
    vocab_file: str | None
    ranges: ByteRanges

    def read(self, file: str) -> bytes:
        """Return the content of a vocabulary's file."""
        with ranges_beside(file, self.path, self.ranges) as ranges:
            return ranges.read_all(file)


def load_known(known: KnownVocabulary, named: NamedVocabulary, *, is_needed: bool) -> Vocabulary | None:
    """Load the vocabulary of a data set: the file that the user named, or the copy beside the examples.

    Args:
      known: what the data set says of it.
      named: the data set, and what the user says.
      is_needed: whether masks are drawn; otherwise it is loaded only where the user named it and the data set does not
        say all that it could tell.

    Raises:
      UnusableInputError: it is needed and there is none, or the file is missing, cannot be used or is another one.
    """
    if named.vocab_file is not None:
        content = named.read(named.vocab_file)
        if _is_known(known, content):
            return vocabulary_in(named.vocab_file, content, known.duplicates, known.special_ids)
        # Training may name a file of the other kind with the same pieces; then what the data set says counts.
        is_other_kind = is_tokenizer(content) != known.is_tokenizer
        if not is_other_kind or (is_needed and known.copy is None):
            raise UnusableInputError(
                f"{named.vocab_file}: the examples of {named.path} were made with another vocabulary, whose sha256 is "
                f"{known.sha256}; name that one."
            )
    if not is_needed:
        return None
    if known.copy is None:
        made_with = "" if known.name is None else f" ({known.name})"
        raise UnusableInputError(
            f"{named.path}: masks are drawn with the vocabulary, and this data set of an older version has no copy of "
            f"it; give the file that its examples were made with{made_with} as vocab_file."
        )
    content = named.ranges.read_all(known.copy)
    if not _is_known(known, content):
        raise UnusableInputError(
            f"{known.copy}: this copy of the vocabulary is not what was written (another sha256 than in the manifest); "
            "fetch the file again, or run the command that made it again."
        )
    return vocabulary_in(known.copy, content, known.duplicates, known.special_ids)


def _is_known(known: KnownVocabulary, content: bytes) -> bool:
    """Return whether a file may be the vocabulary that a data set was made with."""
    return known.sha256 is None or hashlib.sha256(content).hexdigest() == known.sha256


def vocabulary_in(file: str, content: bytes, duplicates: Any, special_ids: Mapping[str, int | None]) -> Vocabulary:
    """Return the vocabulary in the content of a file; the data set says which tokens of a tokenizer.json are special.

    Args:
      file: for messages.
      content: of a vocab.txt or a tokenizer.json.
      duplicates: KnownVocabulary.duplicates.
      special_ids: Vocabulary.special_ids; empty: not known.

    Raises:
      UnusableInputError: it cannot be used.
    """
    if not is_tokenizer(content):
        return parse_vocabulary(file, content, "last" if duplicates == "last" else "first")
    # The library is imported only where it is needed: it takes a moment.
    from maskmill.tokenization.tokenizers import parse_tokenizer
    from maskmill.tokenization.vocabulary import tokenizer_vocabulary, vocabulary_of_ids

    ids = parse_tokenizer(file, content).get_vocab(with_added_tokens=True)
    if not special_ids:
        return tokenizer_vocabulary(file, content, ids)
    return vocabulary_of_ids(file, content, ids, dict(special_ids))


def mask_rules(options: Mapping[str, Any], vocabulary: Vocabulary) -> RowMaskRules:
    """Return how the masks of a data set are drawn: as its writer would have drawn them; options: MadeExamples.options.

    Raises:
      UnusableInputError: an option has a value that cannot be meant.
    """
    return rules_of(vocabulary, of_parameters(MaskingOptions, options), of_parameters(ObjectiveOptions, options))
