"""Masks of rows in plain Python: units by their rules, with lists of words and sets of positions.

The numbers are those of maskmill/kernels/counter_random.py; everything else is written anew.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

MASK_64 = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15


def mix(word: int) -> int:
    """The mix of SplitMix64."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK_64
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK_64
    return word ^ (word >> 31)


class Generator:
    """The numbers of a key."""

    def __init__(self, *key: int) -> None:
        self.state = 0
        for part in key:
            self.state = mix(((self.state ^ part) + GAMMA) & MASK_64)

    def bits(self, count: int) -> int:
        self.state = (self.state + GAMMA) & MASK_64
        return mix(self.state) >> (64 - count)

    def below(self, n: int) -> int:
        while True:
            product = self.bits(32) * n
            if product % 2**32 >= 2**32 % n:
                return product >> 32

    def pick(self, weights: Sequence[float]) -> int:
        """An index, in proportion to the weights."""
        drawn = self.bits(53)
        sums = list(itertools.accumulate(weights))
        last = max(index for index, weight in enumerate(weights) if weight)
        for index, total in enumerate(sums[:last]):
            if drawn < int(total / sums[-1] * 2**53):
                return index
        return last


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rules:
    """Pieces are strings; a piece's id is its place in `pieces`."""

    unit: str
    pieces: Sequence[str]
    masked_lm_prob: float
    max_predictions: int
    mask_share: float = 0.8
    random_share: float = 0.1
    keep_share: float = 0.1
    max_ngram: int = 3
    span_probability: float = 0.2
    max_span: int = 10


@dataclasses.dataclass(frozen=True)
class Masked:
    """A row with its masks. runs: of each n-gram or span the length drawn and that taken, in words."""

    tokens: list[str]
    positions: list[int]
    labels: list[str]
    runs: list[tuple[int, int]]


def words_of(tokens: Sequence[str], unit: str) -> list[range]:
    """The positions of each word."""
    words: list[range] = []
    for at, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        if unit != "piece" and token.startswith("##") and words and words[-1].stop == at:
            words[-1] = range(words[-1].start, at + 1)
        else:
            words.append(range(at, at + 1))
    return words


def drawn_in_turn(items: Sequence[int], generator: Generator) -> Iterator[int]:
    """The items in random order; no number is drawn for those not asked for."""
    left = list(items)
    for start in range(len(left)):
        at = start + generator.below(len(left) - start)
        left[start], left[at] = left[at], left[start]
        yield left[start]


def mask(tokens: Sequence[str], rules: Rules, seed: int, epoch: int, sample: int) -> Masked:
    """Masks a row."""
    generator = Generator(seed & MASK_64, epoch & MASK_64, sample & MASK_64)
    words = words_of(tokens, rules.unit)
    wanted = min(rules.max_predictions, max(1, round(len(tokens) * rules.masked_lm_prob)))
    runs: list[tuple[int, int]] = []
    if rules.unit == "ngram":
        groups = choose_ngrams(words, rules, wanted, generator, runs)
    elif rules.unit == "span":
        groups = choose_spans(words, rules, wanted, generator, runs)
    else:
        groups = choose_words(words, wanted, generator)
    if rules.unit not in ("word", "span"):
        groups = [[at] for group in groups for at in group]
    result, positions = list(tokens), sorted(at for group in groups for at in group)
    for group in sorted(groups):
        kind = generator.pick((rules.mask_share, rules.keep_share, rules.random_share))
        for at in group:
            if kind == 0:
                result[at] = "[MASK]"
            elif kind == 2:
                result[at] = rules.pieces[generator.below(len(rules.pieces))]
    return Masked(result, positions, [tokens[at] for at in positions], runs)


def choose_words(words: list[range], left: int, generator: Generator) -> list[list[int]]:
    """Words while they fit."""
    groups: list[list[int]] = []
    if left:
        for number in drawn_in_turn(range(len(words)), generator):
            if len(words[number]) <= left:
                groups.append(list(words[number]))
                left -= len(words[number])
            if not left:
                break
    return groups


def touching(words: list[range], number: int, most: int) -> list[range]:
    """Up to `most` words from a word on, without a gap between them."""
    run = [words[number]]
    for word in words[number + 1 : number + most]:
        if word.start != run[-1].stop:
            break
        run.append(word)
    return run


def choose_ngrams(
    words: list[range], rules: Rules, left: int, generator: Generator, runs: list[tuple[int, int]]
) -> list[list[int]]:
    """N-grams, the longest that fits of each, unless it overlaps with one before."""
    covered: set[int] = set()
    groups: list[list[int]] = []
    for number in drawn_in_turn(range(len(words)), generator):
        if len(words[number]) <= left and words[number].start not in covered:
            drawn = 1 + generator.pick([1 / n for n in range(1, rules.max_ngram + 1)])
            run = touching(words, number, drawn)
            while sum(map(len, run)) > left:
                run.pop()
            positions = [at for word in run for at in word]
            if covered.isdisjoint(positions):
                covered.update(positions)
                groups.append(positions)
                runs.append((drawn, len(run)))
                left -= len(positions)
        if not left:
            break
    return groups


def choose_spans(
    words: list[range], rules: Rules, left: int, generator: Generator, runs: list[tuple[int, int]]
) -> list[list[int]]:
    """Spans until no word fits; returns the runs of positions they cover."""
    weights = [rules.span_probability]
    while len(weights) < rules.max_span:
        weights.append(weights[-1] * (1 - rules.span_probability))
    covered: set[int] = set()
    anchors = [number for number, word in enumerate(words) for _ in word]
    for number in drawn_in_turn(anchors, generator):
        if len(words[number]) <= left and words[number].start not in covered:
            drawn = 1 + generator.pick(weights)
            masked = 0
            for word in touching(words, number, drawn):
                new = set(word) - covered
                if len(new) > left:
                    break
                covered |= new
                left -= len(new)
                masked += 1
            runs.append((drawn, masked))
        if not left:
            break
    groups: list[list[int]] = []
    for at in sorted(covered):
        if groups and groups[-1][-1] == at - 1:
            groups[-1].append(at)
        else:
            groups.append([at])
    return groups
