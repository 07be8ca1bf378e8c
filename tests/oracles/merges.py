"""Merges in plain Python: all pairs are counted anew for each."""

import collections
import itertools
from collections.abc import Mapping, Sequence

Pair = tuple[int, int]


def merges(words: Mapping[bytes, int], alphabet: Sequence[str], kind: str, size: int, least: int) -> list[Pair]:
    """The merges of a vocabulary that begins with `alphabet`; words of other characters are left out."""
    known = {piece: number for number, piece in enumerate(alphabet)}
    counted = {_symbols(word, kind): count for word, count in words.items()}
    left = [
        ([known[symbol] for symbol in symbols], count)
        for symbols, count in counted.items()
        if known.keys() >= {*symbols}
    ]
    made: list[Pair] = []
    while len(alphabet) + len(made) < size:
        pairs: collections.Counter[Pair] = collections.Counter()
        for symbols, count in left:
            for pair in itertools.pairwise(symbols):
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)
        if best is None or pairs[best] < least:
            break
        left = [(_merged(symbols, best, len(alphabet) + len(made)), count) for symbols, count in left]
        made.append(best)
    return made


def _symbols(word: bytes, kind: str) -> tuple[str, ...]:
    if kind == "bpe":
        return tuple(map(chr, word))
    first, *others = word.decode()
    return (first, *("##" + character for character in others))


def _merged(symbols: Sequence[int], pair: Pair, whole: int) -> list[int]:
    merged = []
    at = 0
    while at < len(symbols):
        found = tuple(symbols[at : at + 2]) == pair
        merged.append(whole if found else symbols[at])
        at += 1 + found
    return merged
