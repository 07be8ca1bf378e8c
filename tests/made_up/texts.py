"""Texts, vocabularies and settings that are drawn from a seed, with what has gone wrong before in them; for tests.

Vocabularies that were never in a file, too.
"""

import random
import string
from collections.abc import Sequence
from dataclasses import dataclass

from oracles import pretraining as oracle

from maskmill.masking.options import MaskingOptions
from maskmill.tokenization.vocabulary import DuplicatePieces, Vocabulary, wordpiece_vocabulary

WORDS = ["the", "The", "fox", "foxes", "unaffable", "x" * 201, "é", "ΣΑΣ", "漢字", "don't", "3.5", "\u302e\u1b44", "—"]


def text_of(rng: random.Random, lines: int) -> bytes:
    """A text of some documents, with white space, awkward characters and odd line ends in it."""
    output = []
    for _ in range(lines):
        kind = rng.random()
        if kind < 0.2:
            output.append(rng.choice(["", "", " ", "\u2028", "\x85"]))
        elif kind < 0.25:
            output.append(
                "".join(chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)])) for _ in "abcd")
            )
        else:
            words = [rng.choice(WORDS) for _ in range(rng.choice([1, 3, 8, 40]))]
            output.append(rng.choice(["", " "]) + rng.choice([" ", " ", "", "\t"]).join(words))
    ends = [rng.choice(["\n", "\n", "\n", "\r\n", "\n\r"]) for _ in output]
    return (
        "".join(map("".join, zip(output, ends, strict=True))).removesuffix("\n" if rng.random() < 0.3 else "?").encode()
    )


def vocabulary_of(rng: random.Random) -> bytes:
    """Special pieces, single characters, parts of words, pieces on several lines, at random places."""
    pieces = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    # In a fixed order: that of a set of strings differs from process to process.
    characters = sorted({c for word in WORDS for c in word.lower()})
    for char in {c: None for c in characters if rng.random() < 0.9} | dict.fromkeys(string.ascii_lowercase):
        pieces += [char, "##" + char]
    for _ in range(rng.randrange(12)):
        word = rng.choice(WORDS)
        start = rng.randrange(len(word))
        pieces.append(rng.choice(["", "##"]) + word[start : start + rng.randint(1, 4)])
    pieces += rng.choices(["", "##", "the", " fox", "##s"], k=rng.randrange(4))
    pieces += [f"filler{n}" for n in range(rng.choice([0, 0, 200, 20_000]) if rng.random() < 0.1 else 0)]
    rng.shuffle(pieces)
    return "\n".join(pieces).encode()


def settings_of(rng: random.Random) -> oracle.Settings:
    """Any options, small lengths more often than large ones."""
    length = rng.choice([5, 6, 7, 8, 11, 16, 20, 33, 64, 128, 200, rng.randint(5, 300)])
    return oracle.Settings(
        max_seq_length=length,
        max_predictions_per_seq=rng.choice([1, 2, 5, 20, 300]),
        masked_lm_prob=rng.choice([0.15, 0.15, 0.01, 0.5, 1.0, rng.random() or 1.0]),
        short_seq_prob=rng.choice([0.1, 0.0, 1.0, 0.5]),
        dupe_factor=rng.choice([1, 2, 3]),
        random_seed=rng.choice([12345, 0, -1, 2**40, -(2**70), rng.randrange(2**64)]),
        do_lower_case=rng.random() < 0.8,
        do_whole_word_mask=rng.random() < 0.4,
        unicode=rng.choice(["11.0.0", "15.1.0"]),
        duplicate_pieces=rng.choice(["first", "last"]),
    )


@dataclass(frozen=True)
class Case:
    """All that decides what is written: texts, a vocabulary, options, and the number of files."""

    inputs: list[bytes]
    vocabulary: bytes
    settings: oracle.Settings
    outputs: int = 1


def case_of(seed: int) -> Case:
    """Any case."""
    rng = random.Random(seed)
    settings = settings_of(rng)
    inputs = [text_of(rng, rng.choice([0, 1, 2, 5, 20, 40])) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    return Case(inputs, vocabulary_of(rng), settings, rng.choice([1, 1, 1, 2, 3]))


def options_of(settings: oracle.Settings) -> MaskingOptions:
    """The options that the oracle's settings stand for."""
    return MaskingOptions(**vars(settings))


def vocabulary_from(content: bytes, duplicates: DuplicatePieces = "first") -> Vocabulary:
    """A vocabulary from what its file would hold, read by the oracle."""
    ids = oracle.load_vocabulary(content, duplicates)
    return wordpiece_vocabulary("made up", "", duplicates, ids)


def vocabulary_of_pieces(pieces: Sequence[str]) -> Vocabulary:
    """A vocabulary of distinct pieces of any characters; a piece's id is its place."""
    return wordpiece_vocabulary("made up", "", "first", {piece: place for place, piece in enumerate(pieces)})
