"""Mix several data sets into one endless, or finite, sequence of samples, each with a share by its weight.

The only state of a mix is a position. The sources' sizes, weights and caps, a seed and a position g decide the source
at g, and the source's own sample. A source with weight w has samples at the times 1/(2w), 3/(2w), 5/(2w), …; the merge
of the sources' times is cut into parts, and the places of a part are shuffled. A source with a cap on its repetitions
ends at it, and the others take over its share.

The counts are Webster's apportionment: up to any position, the samples of a source without a cap differ from its share
by at most 1/2 + share * sources / 2. Unlike rounded quotas, they never fall as positions grow.

Sources: M. Balinski, H. P. Young, "Fair Representation", 1982 (Webster's method and its monotony); Muennighoff et al.,
"Scaling Data-Constrained Language Models", NeurIPS 2023 (the value of repetitions, and the reason for a cap).
"""

import dataclasses
import functools
import hashlib
import heapq
import itertools
import json
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.kernels.counter_random import seed_of
from maskmill.loading.kernels.shuffling import shuffle
from maskmill.reading.data_set import DataSet

# Positions that are shuffled among each other. Shares are exact at the ends of parts, and random within a part.
PART = 1024


@dataclasses.dataclass(frozen=True, kw_only=True)
class Given:
    """The counts of a source's samples in a mix up to a step.

    Attributes:
      path: of the data set.
      samples: the number of its samples, repeated ones included.
      repetitions: samples over the size of the data set; 0.5: half of it was used.
      share: of all samples of the mix; 0 before the first.
    """

    path: str
    samples: int
    repetitions: float
    share: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mix:
    """The assignment of positions to sources.

    Attributes:
      samples: of each source, 1 or more.
      weights: of each source, above 0; only their proportions count.
      caps: the most positions of each source; None: any number.
      seed: from 0 to 2**64 - 1; decides the order within parts.
      fingerprint: identifies the sources, weights and caps: hexadecimal.
      part: the number of positions that are shuffled among each other.
    """

    samples: tuple[int, ...]
    weights: tuple[Fraction, ...]
    caps: tuple[int | None, ...]
    seed: int
    fingerprint: str
    part: int = PART

    @functools.cached_property
    def length(self) -> int | None:
        """The number of positions of the mix; None: it is endless."""
        return None if None in self.caps else sum(cap or 0 for cap in self.caps)

    def before(self, position: int) -> npt.NDArray[np.int64]:
        """Return int64[sources]: the positions of each source before `position`, the start of a part.

        Within a part, which is shuffled, they are the counts without shuffling.
        """
        half_each = Fraction(len(self.weights), 2)
        time = self._time_of(max(Fraction(0), position - half_each))
        counts = [
            math.floor(time * weight + Fraction(1, 2))
            if cap is None
            else min(cap, math.floor(time * weight + Fraction(1, 2)))
            for weight, cap in zip(self.weights, self.caps, strict=True)
        ]
        coming = [
            ((2 * count + 1) / weight, source)
            for source, (count, weight, cap) in enumerate(zip(counts, self.weights, self.caps, strict=True))
            if count != cap
        ]
        heapq.heapify(coming)
        for _ in range(position - sum(counts)):
            _, source = coming[0]
            counts[source] += 1
            if counts[source] == self.caps[source]:
                heapq.heappop(coming)
            else:
                heapq.heapreplace(coming, ((2 * counts[source] + 1) / self.weights[source], source))
        return np.array(counts, np.int64)

    def _time_of(self, amount: Fraction) -> Fraction:
        """Return the time at which the sources would have `amount` samples together, fractions of samples included."""
        ends = sorted(
            (Fraction(cap) / weight, weight, cap)
            for weight, cap in zip(self.weights, self.caps, strict=True)
            if cap is not None
        )
        rate = sum(self.weights, Fraction(0))
        used = Fraction(0)  # samples of sources that have ended
        for end, weight, cap in ends:
            if used + rate * end >= amount:
                break
            used += cap
            rate -= weight
        return (amount - used) / rate

    def positions(self, start: int, stop: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return int64[n] each: the source of each position of [start, stop), and the source's own position there.

        A source's own positions ascend. Own position p is sample p % samples, in the order of epoch p // samples, of
        the source. Parts are computed as a whole, so ranges of whole parts are cheapest.

        Raises:
          ValueError: `stop` is after the end of the mix.
        """
        if self.length is not None and stop > self.length:
            raise ValueError(f"positions up to {stop}, but the mix has {self.length}")
        first = start - start % self.part
        ends = [*range(first, stop, self.part), stop + -stop % self.part]
        counts = [self.before(end if self.length is None else min(end, self.length)) for end in ends]
        numbers = itertools.count(first // self.part)
        parts = [_part(next(numbers), self.seed, before, after) for before, after in itertools.pairwise(counts)]
        if not parts:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        sources, owns = (np.concatenate(found)[start - first : stop - first] for found in zip(*parts, strict=True))
        return sources, owns

    def given(self, position: int) -> npt.NDArray[np.int64]:
        """Return int64[sources]: the positions of each source before `position`, with shuffling."""
        whole = position - position % self.part
        return self.before(whole) + np.bincount(self.positions(whole, position)[0], minlength=len(self.samples))

    def given_by(self, paths: Sequence[str], position: int) -> tuple[Given, ...]:
        """Return the counts of each source up to a position; paths: of their data sets."""
        counts = zip(paths, self.given(position).tolist(), self.samples, strict=True)
        return tuple(
            Given(path=path, samples=count, repetitions=count / samples, share=count / max(1, position))
            for path, count, samples in counts
        )

    @functools.cached_property
    def leaving(self) -> tuple[tuple[int, int], ...]:
        """The sources that reach their caps before the mix ends, each with the position after its last sample.

        Shuffling moves that sample within its part.
        """
        ends = sorted((self._end_of(source), source) for source, cap in enumerate(self.caps) if cap is not None)
        return tuple((source, position) for position, source in ends if position != self.length)

    def _end_of(self, source: int) -> int:
        """Return the position after the last sample of a source with a cap, without shuffling."""
        time = Fraction(2 * (self.caps[source] or 0) - 1, 2) / self.weights[source]
        position = 0
        for other, (weight, cap) in enumerate(zip(self.weights, self.caps, strict=True)):
            times = time * weight + Fraction(1, 2)
            # Of two samples at one time, that of the first source comes first.
            count = math.ceil(times) - 1 if other > source else math.floor(times)
            position += count if cap is None else min(cap, count)
        return position


def _part(
    number: int, seed: int, before: npt.NDArray[np.int64], after: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the sources and own positions of a part, int64[n] each; before, after: the sources' counts around it."""
    counts = after - before
    sources = np.repeat(np.arange(len(counts)), counts)
    shuffle(sources, seed_of(seed), 0, number)
    owns = np.empty_like(sources)
    starts = np.repeat(before - (np.cumsum(counts) - counts), counts)
    owns[np.argsort(sources, kind="stable")] = starts + np.arange(len(sources))
    return sources, owns


def mix_of(
    data_sets: Sequence[DataSet],
    weights: Sequence[float],
    *,
    max_repetitions: float | Sequence[float | None] | None = None,
    seed: int = 0,
) -> Mix:
    """Return a mix of data sets.

    Args:
      data_sets: one or more.
      weights: the share of each in proportion to the others', in samples; 0.1 is a tenth, not the nearest float.
      max_repetitions: the most uses of each sample: one number for all sources, or one for each. None: no limit. The
        fraction of a number such as 2.5 applies to the samples that come first in the last epoch.
      seed: any integer.

    Raises:
      UnusableInputError: a weight or a number of repetitions is not above 0, or a data set is named twice.
    """
    if len(weights) != len(data_sets) or not data_sets:
        raise ValueError(f"{len(data_sets)} data sets and {len(weights)} weights")
    _refuse_twins(data_sets)
    exact = [_fraction(data_set.path, "weight", weight) for data_set, weight in zip(data_sets, weights, strict=True)]
    caps = [
        None if most is None else max(1, math.floor(_fraction(one.path, "max_repetitions", most) * one.samples))
        for one, most in zip(data_sets, _of_each(max_repetitions, len(data_sets)), strict=True)
    ]
    total = sum(exact)
    shares = tuple(weight / total for weight in exact)
    described = [
        [data_set.fingerprint, str(share), cap] for data_set, share, cap in zip(data_sets, shares, caps, strict=True)
    ]
    return Mix(
        samples=tuple(data_set.samples for data_set in data_sets),
        weights=shares,
        caps=tuple(caps),
        seed=int(seed_of(seed)),
        fingerprint=hashlib.sha256(json.dumps(described).encode()).hexdigest(),
    )


def _refuse_twins(data_sets: Sequence[DataSet]) -> None:
    """Raise UnusableInputError if two data sets are the same: both would have the same samples at the same time."""
    seen: dict[str, str] = {}
    for data_set in data_sets:
        if data_set.fingerprint in seen:
            raise UnusableInputError(
                f"{data_set.path} has the same samples as {seen[data_set.fingerprint]}; name one of them, with the sum "
                "of their weights."
            )
        seen[data_set.fingerprint] = data_set.path


def _of_each(most: float | Sequence[float | None] | None, sources: int) -> Sequence[float | None]:
    """Return the max_repetitions of each source; most: as in `mix_of`."""
    if most is None or isinstance(most, (int, float)):
        return [most] * sources
    if len(most) != sources:
        raise UnusableInputError(
            f"max_repetitions has {len(most)} numbers, but the mix has {sources} data sets; give one for each, or one "
            "for all."
        )
    return most


def _fraction(path: str, name: str, value: float) -> Fraction:
    """Return a number as the fraction that a user wrote; raise UnusableInputError if it is not above 0."""
    if not (math.isfinite(value) and value > 0):
        raise UnusableInputError(f"{path}: {name} of this data set is {value}, but it must be a number above 0.")
    return Fraction(str(value))
