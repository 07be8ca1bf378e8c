"""The options of a vocabulary that is learnt from text."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Literal

from maskmill.arguments import check_at_least, check_fields
from maskmill.errors import UnusableInputError
from maskmill.options import option
from maskmill.tokenization.special_tokens import ROLES

VocabularyKind = Literal["wordpiece", "bpe"]

# The next multiples of 64 above the sizes of BERT's and RoBERTa's vocabularies.
_SIZES: Mapping[VocabularyKind, int] = {"wordpiece": 30528, "bpe": 50304}
_SPECIAL_TOKENS: Mapping[VocabularyKind, tuple[str, ...]] = {
    "wordpiece": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    "bpe": ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
}
# The alphabet of byte-level BPE.
BYTES = 256


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyOptions:
    """All that determines a vocabulary besides its text; raises UnusableInputError for an impossible value."""

    kind: VocabularyKind = option("wordpiece", help="wordpiece: as BERT's; bpe: byte-level, as RoBERTa's")
    size: int | None = option(
        None, help="pieces of the vocabulary, all kinds of tokens counted; wordpiece: 30,528, bpe: 50,304"
    )
    min_frequency: int = option(2, help="how often a pair must occur to become a piece")
    special_tokens: tuple[str, ...] | None = option(
        None, help="the first pieces; wordpiece: [PAD],[UNK],[CLS],[SEP],[MASK]; bpe: <s>,<pad>,</s>,<unk>,<mask>"
    )
    reserved_tokens: int = option(0, help="how many pieces [unused0], [unused1], … to keep for later use")
    do_lower_case: bool | None = option(None, help="lower-case the text; wordpiece: True, bpe: it cannot")
    limit_alphabet: int | None = option(
        None, help="wordpiece: how many characters to have; default: those of 9,999 of 10,000 in the text"
    )
    add_prefix_space: bool = option(False, help="bpe: treat a text as if a space stood before it")

    GROUPS: ClassVar[Mapping[str, str]] = {"kind": "what the vocabulary is made of"}

    def __post_init__(self) -> None:
        check_fields(self)
        check_at_least(1, self, "size", "min_frequency", "limit_alphabet")
        check_at_least(0, self, "reserved_tokens")
        self._check_kind()
        self._check_special_tokens()
        self._check_size()

    def _check_kind(self) -> None:
        """Check that no option of the other kind is set."""
        if self.kind == "wordpiece":
            if self.add_prefix_space:
                raise UnusableInputError("--add_prefix_space goes with --kind bpe; leave it out.")
            return
        if self.limit_alphabet is not None:
            raise UnusableInputError(
                "--limit_alphabet goes with --kind wordpiece: the alphabet of bpe is the 256 bytes; leave it out."
            )
        if self.do_lower_case:
            raise UnusableInputError(
                "--do_lower_case goes with --kind wordpiece: bpe takes text as it is; leave it out."
            )

    def _check_special_tokens(self) -> None:
        """Check that the special tokens suffice for making examples."""
        for token in self._special_tokens:
            if not token or any(character.isspace() for character in token):
                raise UnusableInputError(f"--special_tokens: {token!r} is empty or has white space; rename it.")
            if self.first_tokens.count(token) > 1:
                by = "" if self._special_tokens.count(token) > 1 else " with the --reserved_tokens"
                raise UnusableInputError(f"--special_tokens: {token} comes twice{by}; leave one out.")
        wordpiece = self.kind == "wordpiece"
        for role, names in ROLES.items():
            known = names[:1] if wordpiece else names  # vocab.txt cannot say what its special tokens are for
            if not set(known) & set(self._special_tokens):
                raise UnusableInputError(
                    f"--special_tokens lacks the {role} ({' or '.join(known)}), which training needs; add it."
                )
        if wordpiece and self._special_tokens[0] != "[PAD]":
            raise UnusableInputError("--special_tokens: with wordpiece, rows are padded with id 0; put [PAD] first.")

    def _check_size(self) -> None:
        """Check that the vocabulary has room for the tokens that every vocabulary has."""
        size = self.decided_size
        first, alphabet = len(self.first_tokens), BYTES if self.kind == "bpe" else 1
        if size < first + alphabet:
            others = f"{BYTES} bytes" if self.kind == "bpe" else "a character"
            raise UnusableInputError(
                f"--size {size} leaves no room for {first} special and reserved tokens and {others}; give "
                f"{first + alphabet} or more."
            )

    @property
    def decided_size(self) -> int:
        """The number of pieces to make."""
        return _SIZES[self.kind] if self.size is None else self.size

    @property
    def first_tokens(self) -> tuple[str, ...]:
        """The special tokens, followed by the reserved ones: ids from 0."""
        return (*self._special_tokens, *(f"[unused{number}]" for number in range(self.reserved_tokens)))

    @property
    def _special_tokens(self) -> tuple[str, ...]:
        return _SPECIAL_TOKENS[self.kind] if self.special_tokens is None else self.special_tokens

    @property
    def decided(self) -> "VocabularyOptions":
        """These options with the decided values in place of open ones."""
        return dataclasses.replace(
            self,
            size=self.decided_size,
            special_tokens=self._special_tokens,
            do_lower_case=self.kind == "wordpiece" if self.do_lower_case is None else self.do_lower_case,
        )
