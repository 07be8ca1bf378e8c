"""Learns a vocabulary from the counts of words: first its alphabet, then merges (kernels/merges.py)."""

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.tokenization.byte_level import byte_characters
from maskmill.vocabularies.kernels import characters, merges
from maskmill.vocabularies.options import VocabularyKind, VocabularyOptions

KERNELS = ("vocabularies.kernels.characters", "vocabularies.kernels.merges")
_INSIDE = "##"
_LEFT_OUT = 10_000  # without --limit_alphabet, one of so many characters of the text may be left out


@dataclasses.dataclass(frozen=True)
class WordCounts:
    """Distinct words with their counts, sorted by their bytes.

    A word is a unit that a tokenizer splits separately: for WordPiece a normalised word of BERT's basic tokenizer; for
    byte-level BPE a pre-token of RoBERTa's, with its leading space, as bytes of UTF-8.

    Attributes:
      text: uint8[bytes], the words, one after the other.
      ends: int64[words], the end of each in `text`.
      counts: int64[words], 1 or more.
    """

    text: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnedVocabulary:
    """A vocabulary in the order of its ids.

    Attributes:
      kind: wordpiece or bpe.
      pieces: one for each id, as in the tokenizer's file: for wordpiece with "##" before a piece that continues a word;
        for bpe in GPT-2's characters for bytes ("Ġthe"). First the special tokens, then the reserved ones, then the
        alphabet, then a piece for each merge, in their order.
      special: the number of special and reserved tokens at the beginning.
      alphabet: the number of pieces of one character (wordpiece) or byte (bpe) after them.
      merges: int32[merges, 2], the ids of the left and the right part; the first merge was made first, and made the
        first piece after the alphabet.
    """

    kind: VocabularyKind
    pieces: tuple[str, ...]
    special: int
    alphabet: int
    merges: npt.NDArray[np.int32]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Alphabet:
    """The first pieces of a vocabulary, and the words as such pieces.

    Attributes:
      pieces: the special and the reserved tokens, then the alphabet.
      symbols: int32[bytes of the words], a piece's id at its first byte; other bytes are undefined.
      weights: int64[words], the count of each word; 0 for a word with characters that the alphabet lacks, because a
        tokenizer gives [UNK] for all of it.
    """

    pieces: tuple[str, ...]
    symbols: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int64]


def bytes_alphabet(words: WordCounts, options: VocabularyOptions) -> Alphabet:
    """Return all 256 bytes, in the order of their characters, as in `tokenizers`."""
    names = byte_characters()
    first = len(options.first_tokens)
    ids = np.empty(len(names), np.int32)
    ids[sorted(range(len(names)), key=names.__getitem__)] = np.arange(first, first + len(names))
    pieces = (*options.first_tokens, *sorted(names))
    return Alphabet(pieces=pieces, symbols=ids[words.text], weights=words.counts)


def characters_alphabet(words: WordCounts, options: VocabularyOptions) -> Alphabet:
    """Return the characters that begin words, then those that continue words, each by code point.

    A character that only continues words here may begin one in other text. So it also counts as a beginning, as in
    `tokenizers`.

    Raises:
      UnusableInputError: the vocabulary has no room for them.
    """
    counts = characters.count_characters(words.text, words.ends, words.counts)
    kept = _most_frequent(counts.sum(axis=0), options.limit_alphabet, options.min_frequency)
    alphabet = [(row, point) for row in range(2) for point in kept if row == characters.BEGINNING or counts[row, point]]
    if not alphabet:
        raise UnusableInputError(
            f"no character of the input occurs {options.min_frequency} times; name more text with --input, or give a "
            "smaller --min_frequency."
        )
    del counts
    first = len(options.first_tokens)
    size = options.decided_size
    if first + len(alphabet) > size:
        raise UnusableInputError(
            f"--size {size} is less than the {first} special and reserved tokens and the {len(alphabet)} characters "
            f"of this text; give {first + len(alphabet)} or more, or a smaller --limit_alphabet."
        )
    ids = np.full((2, characters.CODE_POINTS), characters.MISSING, np.int32)
    for number, place in enumerate(alphabet, first):
        ids[place] = number
    symbols = np.empty(len(words.text), np.int32)
    weights = words.counts.copy()
    characters.words_as_characters(words.text, words.ends, ids, symbols, weights)
    pieces = (
        *options.first_tokens,
        *((_INSIDE if row == characters.INSIDE else "") + chr(point) for row, point in alphabet),
    )
    return Alphabet(pieces=pieces, symbols=symbols, weights=weights)


def _most_frequent(counts: npt.NDArray[np.int64], limit: int | None, least: int) -> list[int]:
    """Return an alphabet's characters, by code point: the most frequent ones, and of equally frequent ones the first.

    `limit` is their number. Without it, they make up all but one of 10,000 characters of the text, except those that
    occur less than `least` times.
    """
    occurring = np.flatnonzero(counts)
    order = occurring[np.argsort(-counts[occurring], kind="stable")]
    if limit is None:
        sums = np.cumsum(counts[order])
        limit = 1 + int(np.searchsorted(sums, sums[-1] - sums[-1] // _LEFT_OUT))
        limit = min(limit, int(np.count_nonzero(counts >= least)))
    return sorted(order[:limit].tolist())


def learn_vocabulary(words: WordCounts, options: VocabularyOptions) -> LearnedVocabulary:
    """Learn a vocabulary from two words or more. The same words and options give the same one on any machine.

    The pieces of one character come first. Then the most frequent pair of neighbouring pieces becomes a piece, again
    and again; of equally frequent pairs the one with the smaller left id is first, then the one with the smaller right
    id. It stops at `options.decided_size` pieces, or when no pair occurs `options.min_frequency` times. For bpe, merges
    and ids are those of the trainer of `tokenizers` for the same words.

    WordPiece's merges are ordered by frequency, too, as in `tokenizers`, not by likelihood (Schuster and Nakajima
    2012). With the same alphabet, 8,000 pieces learnt from 5 MB of English give on held-out text 1.260 pieces a word by
    frequency, 1.288 by the true gain of the unigram likelihood, 1.275 by n(ab) log(N n(ab) / (n(a) n(b))), and 3.568 by
    n(ab) / (n(a) n(b)), which first joins rare characters that always occur together.

    Memory: 16 bytes and more for each byte of the words, 32 for each pair of neighbouring pieces. 10 million words (120
    MB) take 2.0 GB.

    Raises:
      UnusableInputError: no character of the words is frequent enough, the alphabet alone is larger than the vocabulary
        may be, or a special token is also a piece of the text.
    """
    words = WordCounts(_writable(words.text), _writable(words.ends), _writable(words.counts))
    alphabet = (bytes_alphabet if options.kind == "bpe" else characters_alphabet)(words, options)
    pieces = list(alphabet.pieces)
    first = len(pieces)
    lengths = np.ones(options.decided_size, np.int32)
    lengths[:first] = [_bytes_of(piece, options.kind) for piece in pieces]
    pairs = merges.merge_words(alphabet.symbols, words.ends, alphabet.weights, lengths, first, options.min_frequency)
    prefix = _INSIDE if options.kind == "wordpiece" else ""
    for left, right in pairs.tolist():
        pieces.append(pieces[left] + pieces[right].removeprefix(prefix))
    special = len(options.first_tokens)
    learnt = set(pieces[special:])
    for piece in filter(learnt.__contains__, options.first_tokens):
        raise UnusableInputError(f"--special_tokens: {piece} is a piece of this text, too; put it in brackets.")
    return LearnedVocabulary(
        kind=options.kind, pieces=tuple(pieces), special=special, alphabet=first - special, merges=pairs
    )


def _writable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array, or a copy if it is read-only, because a read-only one would make numba compile again."""
    return np.require(array, requirements=["C", "W"])


def _bytes_of(piece: str, kind: VocabularyKind) -> int:
    """Return the number of bytes in a piece of the alphabet."""
    return len(piece.removeprefix(_INSIDE).encode()) if kind == "wordpiece" else 1
