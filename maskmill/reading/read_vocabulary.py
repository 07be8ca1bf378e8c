"""Load the vocabulary of a data set, from its copy or from the user's file, and make the rules of masks with it."""

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
    """The vocabulary of a data set, as far as its manifest describes it.

    Attributes:
      size: ids are below it; None: not known.
      special_ids: Vocabulary.special_ids; empty: not known.
      sha256: of its file; None: not known.
      copy: the path of the copy beside the examples, or None.
      name: of the file that the examples were made with, for messages.
      is_tokenizer: whether it is a tokenizer.json.
      duplicates: Vocabulary.duplicates.
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
    """The path of a data set and of a vocabulary's file, or None, as a user named them, and the ranges of the data set.

    The vocabulary may be on another machine than the data.
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
      known: its description in the data set.
      named: the data set, and the user's file.
      is_needed: whether masks are drawn; otherwise only the user's file is loaded.

    Raises:
      UnusableInputError: it is needed and missing, or the file cannot be used or is another vocabulary's.
    """
    if named.vocab_file is not None:
        content = named.read(named.vocab_file)
        if _is_known(known, content):
            return vocabulary_in(named.vocab_file, content, known.duplicates, known.special_ids)
        # Training may name a file of the other kind with the same pieces; then the data set's description is used.
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
    """Return whether a file may be the vocabulary of a data set, by its sha256."""
    return known.sha256 is None or hashlib.sha256(content).hexdigest() == known.sha256


def vocabulary_in(file: str, content: bytes, duplicates: Any, special_ids: Mapping[str, int | None]) -> Vocabulary:
    """Return the vocabulary in the content of a file.

    Args:
      file: for messages.
      content: of a vocab.txt or a tokenizer.json.
      duplicates: KnownVocabulary.duplicates.
      special_ids: Vocabulary.special_ids of a tokenizer.json; empty: not known.

    Raises:
      UnusableInputError: the file cannot be used.
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
    """Return the rules of a data set's masks, the same as its writer's; options: MadeExamples.options.

    Raises:
      UnusableInputError: an option is out of its range.
    """
    return rules_of(vocabulary, of_parameters(MaskingOptions, options), of_parameters(ObjectiveOptions, options))
