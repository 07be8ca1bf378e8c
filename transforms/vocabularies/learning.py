"""A vocabulary is learnt from how often each word occurs (kernels/merges.py)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from transforms.errors import UnusableInputError
from transforms.vocabularies.alphabets import bytes_alphabet, characters_alphabet
from transforms.vocabularies.kernels import merges as kernels
from transforms.vocabularies.learned import LearnedVocabulary
from transforms.vocabularies.options import VocabularyKind, VocabularyOptions
from transforms.vocabularies.word_counts import WordCounts

KERNELS = ("vocabularies.kernels.characters", "vocabularies.kernels.merges")
_INSIDE = "##"
_FEWEST_WORDS = 2


def learn_vocabulary(words: WordCounts, options: VocabularyOptions) -> LearnedVocabulary:
    """Learns a vocabulary. The same words and options give the same one on any machine.

    The pieces of one character come first (`Alphabet`). Then the most frequent pair of neighbouring pieces becomes a
    piece, again and again; of equally frequent pairs the one with the smaller left id is first, then the one with the
    smaller right id. It stops when there are `options.size` pieces, or when no pair occurs `options.min_frequency`
    times. With bpe, merges and ids are those of the trainer of `tokenizers` for the same words.

    Raises:
      UnusableInputError: there are fewer than two words, none of their characters is frequent enough, the alphabet
        alone is larger than the vocabulary may be, or a special token is also a piece of the text.
    """
    options = options.decided
    assert options.size is not None
    if len(words) < _FEWEST_WORDS:
        only = f"only {len(words)} word" if len(words) else "no words"
        raise UnusableInputError(f"the input has {only} to learn a vocabulary from; name more text with --input.")
    words = WordCounts(_writable(words.text), _writable(words.ends), _writable(words.counts))
    alphabet = (bytes_alphabet if options.kind == "bpe" else characters_alphabet)(words, options)
    pieces = list(alphabet.pieces)
    first = len(pieces)
    lengths = np.ones(options.size, np.int32)
    lengths[:first] = [_bytes_of(piece, options.kind) for piece in pieces]
    merges = kernels.merge_words(alphabet.symbols, words.ends, alphabet.weights, lengths, first, options.min_frequency)
    prefix = _INSIDE if options.kind == "wordpiece" else ""
    for left, right in merges.tolist():
        pieces.append(pieces[left] + pieces[right].removeprefix(prefix))
    special = len(options.first_tokens)
    for piece in set(options.first_tokens).intersection(pieces[special:]):
        raise UnusableInputError(f"--special_tokens: {piece} is a piece of this text, too; put it in brackets.")
    return LearnedVocabulary(
        kind=options.kind, pieces=tuple(pieces), special=special, alphabet=first - special, merges=merges
    )


def _writable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, or a copy where it is read-only, for which the kernels would be compiled again."""
    return np.require(array, requirements=["C", "W"])


def _bytes_of(piece: str, kind: VocabularyKind) -> int:
    """How many bytes of a word a piece of the alphabet is."""
    return len(piece.removeprefix(_INSIDE).encode()) if kind == "wordpiece" else 1
