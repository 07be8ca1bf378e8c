"""The pieces that a vocabulary begins with, before anything is learnt."""

import dataclasses
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from transforms.errors import UnusableInputError
from transforms.tokenization.byte_level import byte_characters
from transforms.vocabularies.kernels import characters as kernels
from transforms.vocabularies.options import VocabularyOptions
from transforms.vocabularies.word_counts import WordCounts

_INSIDE = "##"
_LIMIT = 1000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Alphabet:
    """The first pieces of a vocabulary, and the words as such pieces.

    Attributes:
      pieces: the special and the reserved tokens, and the alphabet behind them.
      symbols: int32[bytes of the words], the id of the piece at the byte where it begins; other bytes say nothing.
      weights: int64[words], how often each word counts; 0 for one with characters that the alphabet lacks, because
        a tokenizer gives [UNK] for the whole of it.
    """

    pieces: tuple[str, ...]
    symbols: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int64]


def bytes_alphabet(words: WordCounts, options: VocabularyOptions) -> Alphabet:
    """All 256 bytes, in the order of their characters, as `tokenizers` has them."""
    characters = byte_characters()
    ids = _with(options.first_tokens, sorted(characters))
    byte_ids = np.array([ids[character] for character in characters], np.int32)
    return Alphabet(pieces=tuple(ids), symbols=byte_ids[words.text], weights=words.counts)


def characters_alphabet(words: WordCounts, options: VocabularyOptions) -> Alphabet:
    """The characters of the words: those that begin words, then those that go on words, each by code point.

    Raises:
      UnusableInputError: the vocabulary has no room for them.
    """
    counts = kernels.count_characters(words.text, words.ends, words.counts)
    kept = _most_frequent(counts.sum(axis=0), _LIMIT if options.limit_alphabet is None else options.limit_alphabet)
    chosen = [[chr(character) for character in kept if counts[row, character]] for row in range(2)]
    ids = _with(options.first_tokens, (*chosen[0], *(_INSIDE + character for character in chosen[1])))
    size = options.decided.size
    assert size is not None
    if len(ids) > size:
        raise UnusableInputError(
            f"--size {size} is less than the {len(ids)} special tokens, reserved tokens and characters of this "
            f"text; give {len(ids)} or more, or a smaller --limit_alphabet."
        )
    del counts
    table = np.full((2, kernels.CODE_POINTS), kernels.MISSING, np.int32)
    for row, prefix in ((kernels.BEGINNING, ""), (kernels.INSIDE, _INSIDE)):
        for character in chosen[row]:
            table[row, ord(character)] = ids[prefix + character]
    symbols = np.empty(len(words.text), np.int32)
    weights = words.counts.copy()
    kernels.words_as_characters(words.text, words.ends, table, symbols, weights)
    return Alphabet(pieces=tuple(ids), symbols=symbols, weights=weights)


def _most_frequent(counts: npt.NDArray[np.int64], limit: int) -> list[int]:
    """The characters that occur most often, by code point; of equally frequent ones, the lower code points."""
    occurring = np.flatnonzero(counts)
    order = np.argsort(-counts[occurring], kind="stable")
    return sorted(occurring[order[:limit]].tolist())


def _with(first: Iterable[str], alphabet: Iterable[str]) -> dict[str, int]:
    """The pieces with their ids. A special token may be a character, which is then no piece of its own."""
    ids: dict[str, int] = {}
    for piece in (*first, *alphabet):
        ids.setdefault(piece, len(ids))
    return ids
