"""A vocabulary is learnt from how often each word occurs (kernels/merges.py)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
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

    The pieces of one character come first (alphabets.py). Then the most frequent pair of neighbouring pieces becomes a
    piece, again and again; of equally frequent pairs the one with the smaller left id is first, then the one with the
    smaller right id. It stops when there are `options.decided_size` pieces, or when no pair occurs
    `options.min_frequency` times. With bpe, merges and ids are those of the trainer of `tokenizers` for the same words.

    WordPiece's merges go by frequency, too, as in `tokenizers`, not by likelihood (Schuster and Nakajima 2012). With
    the same alphabet, 8,000 pieces learnt from 5 MB of English give on held-out text 1.260 pieces a word by frequency,
    1.288 by the true gain of the unigram likelihood, 1.275 by n(ab) log(N n(ab) / (n(a) n(b))), and 3.568 by
    n(ab) / (n(a) n(b)), which first joins rare characters that never stand apart.

    Memory: 16 bytes and more for each byte of the words, 32 for each pair of neighbouring pieces. 10 million words (81
    MB) take 1.3 GB.

    Raises:
      UnusableInputError: there are fewer than two words, none of their characters is frequent enough, the alphabet
        alone is larger than the vocabulary may be, or a special token is also a piece of the text.
    """
    if len(words) < _FEWEST_WORDS:
        only = f"only {len(words)} word" if len(words) else "no words"
        raise UnusableInputError(f"the input has {only} to learn a vocabulary from; name more text with --input.")
    words = WordCounts(_writable(words.text), _writable(words.ends), _writable(words.counts))
    alphabet = (bytes_alphabet if options.kind == "bpe" else characters_alphabet)(words, options)
    pieces = list(alphabet.pieces)
    first = len(pieces)
    lengths = np.ones(options.decided_size, np.int32)
    lengths[:first] = [_bytes_of(piece, options.kind) for piece in pieces]
    merges = kernels.merge_words(alphabet.symbols, words.ends, alphabet.weights, lengths, first, options.min_frequency)
    prefix = _INSIDE if options.kind == "wordpiece" else ""
    for left, right in merges.tolist():
        pieces.append(pieces[left] + pieces[right].removeprefix(prefix))
    special = len(options.first_tokens)
    learnt = set(pieces[special:])
    for piece in filter(learnt.__contains__, options.first_tokens):
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
