"""The pieces that a vocabulary begins with, before anything is learnt."""

import dataclasses

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.tokenization.byte_level import byte_characters
from transforms.vocabularies.kernels import characters as kernels
from transforms.vocabularies.options import VocabularyOptions
from transforms.vocabularies.word_counts import WordCounts

_PREFIXES = {kernels.BEGINNING: "", kernels.INSIDE: "##"}
_LEFT_OUT = 10_000  # without --limit_alphabet, one of so many characters of the text may be left out


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
    first = len(options.first_tokens)
    ids = np.empty(len(characters), np.int32)
    ids[sorted(range(len(characters)), key=characters.__getitem__)] = np.arange(first, first + len(characters))
    pieces = (*options.first_tokens, *sorted(characters))
    return Alphabet(pieces=pieces, symbols=ids[words.text], weights=words.counts)


def characters_alphabet(words: WordCounts, options: VocabularyOptions) -> Alphabet:
    """The characters of the words as beginnings of words, then those that go on words, each by code point.

    What only goes on words here may begin one in other text. So it is a beginning, too, as `tokenizers` has it.

    Raises:
      UnusableInputError: the vocabulary has no room for them.
    """
    counts = kernels.count_characters(words.text, words.ends, words.counts)
    kept = _most_frequent(counts.sum(axis=0), options.limit_alphabet, options.min_frequency)
    characters = [
        (row, character) for row in range(2) for character in kept if row == kernels.BEGINNING or counts[row, character]
    ]
    if not characters:
        raise UnusableInputError(
            f"no character of the input occurs {options.min_frequency} times; name more text with --input, or give a "
            "smaller --min_frequency."
        )
    del counts
    first = len(options.first_tokens)
    size = options.decided_size
    if first + len(characters) > size:
        raise UnusableInputError(
            f"--size {size} is less than the {first} special and reserved tokens and the {len(characters)} characters "
            f"of this text; give {first + len(characters)} or more, or a smaller --limit_alphabet."
        )
    ids = np.full((2, kernels.CODE_POINTS), kernels.MISSING, np.int32)
    for number, place in enumerate(characters, first):
        ids[place] = number
    symbols = np.empty(len(words.text), np.int32)
    weights = words.counts.copy()
    kernels.words_as_characters(words.text, words.ends, ids, symbols, weights)
    pieces = (*options.first_tokens, *(_PREFIXES[row] + chr(character) for row, character in characters))
    return Alphabet(pieces=pieces, symbols=symbols, weights=weights)


def _most_frequent(counts: npt.NDArray[np.int64], limit: int | None, least: int) -> list[int]:
    """The characters of an alphabet, by code point: the most frequent ones, and of equally frequent ones the first.

    They are as many as `limit` says. Without it they are those that make up all but one of 10,000 characters of the
    text, without those that occur less than `least` times.
    """
    occurring = np.flatnonzero(counts)
    order = occurring[np.argsort(-counts[occurring], kind="stable")]
    if limit is None:
        sums = np.cumsum(counts[order])
        limit = 1 + int(np.searchsorted(sums, sums[-1] - sums[-1] // _LEFT_OUT))
        limit = min(limit, int(np.count_nonzero(counts >= least)))
    return sorted(order[:limit].tolist())
