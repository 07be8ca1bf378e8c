"""The mix of several sources in plain Python, as an oracle for the tests of maskmill/text_shards/mixing.py.

A document is a tuple of its name, its eval hash and its size in bytes.
"""

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction

from oracles.row_masks import mix as splitmix

Document = tuple[str, int, int]


@dataclasses.dataclass(frozen=True)
class MixedSource:
    """A source with its part in the mix and its documents, in order."""

    name: str
    weight: float | None
    max_epochs: float
    documents: Sequence[Document]
    tenths: int | None = None  # of the temperature


def root_of(power: int, tenths: int, digits: int = 18) -> Fraction:
    """power ** (tenths / 10), rounded down to so many digits after the point: a whole root, found by halving."""
    wanted, low, high = power**tenths * 10 ** (10 * digits), 0, (power + 1) * 10**digits
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**10 <= wanted else (low, middle)
    return Fraction(low, 10**digits)


def hold_out(sources: Sequence[MixedSource], count: int) -> set[str]:
    """The names of the documents of the smallest hashes, the earlier one where two are equal."""
    everything = [document for source in sources for document in source.documents]
    return {name for name, _, _ in sorted(everything, key=lambda document: document[1])[:count]}


def bytes_wanted(sources: Sequence[MixedSource], sizes: Sequence[int]) -> list[Fraction]:
    """How many bytes the mix takes of each source, as a number that need not be whole."""
    tenths = sources[0].tenths
    weights = [Fraction(source.weight or 0) for source in sources]
    if tenths is not None:
        own = [1 if source.weight is None else Fraction(source.weight) for source in sources]
        weights = [weight * root_of(size, tenths) for weight, size in zip(own, sizes, strict=True)]
    elif sources[0].weight is None:
        return [Fraction(source.max_epochs) * size for source, size in zip(sources, sizes, strict=True)]
    shares = [weight / sum(weights) for weight in weights]
    largest = min(
        Fraction(source.max_epochs) * size / share
        for source, size, share in zip(sources, sizes, shares, strict=True)
        if share
    )
    return [share * largest for share in shares]


def take(documents: Sequence[Document], wanted: Fraction, seed: int) -> list[Document]:
    """The documents of a source in the order in which its training text has them."""
    size = sum(size for _, _, size in documents)
    whole = int(wanted // size) if wanted else 0
    rest = wanted - whole * size
    salt = int.from_bytes(hashlib.sha256(f"{seed}:mix".encode()).digest()[:8], "big")
    by_hash = sorted(documents, key=lambda document: (splitmix(document[1] ^ salt), document[2]))
    sums = [sum(size for _, _, size in by_hash[:count]) for count in range(len(by_hash) + 1)]
    count = min(range(len(sums)), key=lambda count: abs(sums[count] - float(rest)))
    chosen = [document for document in documents if document in by_hash[:count]]
    if chosen and chosen == [documents[-1]]:
        return [*chosen, *list(documents) * whole]
    return [*list(documents) * whole, *chosen]


def cut(runs: Sequence[Sequence[Document]], shard_bytes: float) -> list[list[Document]]:
    """The shards: each has the documents that start in its share of their own source's text, source after source."""
    totals = [sum(size for _, _, size in run) for run in runs]
    count = max(1, math.ceil(sum(totals) / shard_bytes))
    shards: list[list[Document]] = [[] for _ in range(count)]
    for run, total in zip(runs, totals, strict=True):
        start = 0
        for document in run:
            shards[start * count // max(1, total)].append(document)
            start += document[2]
    return [shard for shard in shards if shard] or [[]]


def mix(
    sources: Sequence[MixedSource], *, held_out: int, shard_bytes: float, seed: int
) -> tuple[list[list[Document]], list[list[Document]]]:
    """The documents of the training shards, and those of the shards of the eval set."""
    ordered = sorted(sources, key=lambda source: source.name)
    out = hold_out(ordered, held_out)
    left = [[document for document in source.documents if document[0] not in out] for source in ordered]
    wanted = bytes_wanted(ordered, [sum(size for _, _, size in documents) for documents in left])
    train = [take(documents, part, seed) if documents else [] for documents, part in zip(left, wanted, strict=True)]
    evaluation = [[document for document in source.documents if document[0] in out] for source in ordered]
    return cut(train, shard_bytes), cut(evaluation, shard_bytes)
