"""A vocabulary is learnt from how often each word occurs (kernels/merges.py)."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from transforms.errors import UnusableInputError
from transforms.tokenization.byte_level import byte_characters
from transforms.vocabularies.alphabets import bytes_alphabet, characters_alphabet
from transforms.vocabularies.kernels import merges as kernels
from transforms.vocabularies.learned import LearnedVocabulary
from transforms.vocabularies.options import VocabularyKind, VocabularyOptions
from transforms.vocabularies.word_counts import WordCounts

KERNELS = ("vocabularies.kernels.characters", "vocabularies.kernels.merges")
_INSIDE = "##"


def learn_vocabulary(words: WordCounts, options: VocabularyOptions) -> LearnedVocabulary:
    """Learns a vocabulary. The same words and options give the same one on any machine.

    The pieces of one character come first (`Alphabet`). Then the most frequent pair of neighbouring pieces becomes a
    piece, again and again; of equally frequent pairs the one with the smaller left id is first, then the one with the
    smaller right id. It stops when there are `options.size` pieces, or when no pair occurs `options.min_frequency`
    times. With bpe, merges and ids are those of the trainer of `tokenizers` for the same words.

    Raises:
      UnusableInputError: there are no words, or the alphabet alone is larger than the vocabulary may be.
    """
    options = options.decided
    assert options.size is not None
    if not len(words):
        raise UnusableInputError("the input has no words to learn a vocabulary from; name another --input.")
    words = WordCounts(_writable(words.text), _writable(words.ends), _writable(words.counts))
    alphabet = (bytes_alphabet if options.kind == "bpe" else characters_alphabet)(words, options)
    special, first = len(options.first_tokens), len(alphabet.pieces)
    inside = [options.kind == "wordpiece" and piece.startswith(_INSIDE) for piece in alphabet.pieces]
    spelt = [_spelt(piece, options.kind) for piece in alphabet.pieces]
    merges, spelling, ends, all_inside = kernels.merge_words(
        alphabet.symbols,
        words.ends,
        alphabet.weights,
        np.frombuffer(bytearray(b"".join(spelt)), np.uint8),
        np.cumsum([len(piece) for piece in spelt], dtype=np.int64),
        np.array(inside, np.uint8),
        options.size,
        options.min_frequency,
    )
    learnt = _pieces(spelling.tobytes(), ends[first - 1 :].tolist(), all_inside[first:].tolist(), options.kind)
    return LearnedVocabulary(
        kind=options.kind,
        pieces=(*alphabet.pieces, *learnt),
        special=special,
        alphabet=first - special,
        merges=_last_of_each(merges[:, :2]),
    )


def _writable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, or a copy where it is read-only, for which the kernels would be compiled again."""
    return np.require(array, requirements=["C", "W"])


def _spelt(piece: str, kind: VocabularyKind) -> bytes:
    """The bytes of a piece in a word; none where it is no piece of any."""
    if kind == "wordpiece":
        return piece.removeprefix(_INSIDE).encode()
    byte_of = {character: byte for byte, character in enumerate(byte_characters())}
    return bytes(byte_of[character] for character in piece) if set(piece) <= byte_of.keys() else b""


def _pieces(spelling: bytes, ends: Sequence[int], inside: Sequence[int], kind: VocabularyKind) -> list[str]:
    """The pieces as a tokenizer's file has them; `ends` has the end of the piece before, too."""
    characters = byte_characters()
    spelt = (spelling[start:end] for start, end in itertools.pairwise(ends))
    if kind == "bpe":
        return ["".join([characters[byte] for byte in piece]) for piece in spelt]
    return [_INSIDE * goes_on + piece.decode() for piece, goes_on in zip(spelt, inside, strict=True)]


def _last_of_each(merges: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The merges, each where it was made last: `tokenizers` keeps that rank of a pair which is merged again."""
    _, from_behind = np.unique(merges[::-1], axis=0, return_index=True)
    return merges[np.sort(len(merges) - 1 - from_behind)]
