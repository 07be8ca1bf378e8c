"""Compute the positions of an epoch that batches have, and the position of a run after some batches."""

import dataclasses
from collections.abc import Iterator

from maskmill.errors import UnusableInputError
from maskmill.loading.options import Tail

PADDING = -1  # the epoch of a segment that is padding
_FOR_EVER = 1 << 62  # positions


@dataclasses.dataclass(frozen=True)
class Place:
    """The position of a run: the epoch, and the position of the next sample in it."""

    epoch: int
    sample: int


@dataclasses.dataclass(frozen=True)
class Segment:
    """Positions [start, stop) of an epoch, or stop - start rows of padding."""

    epoch: int
    start: int
    stop: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schedule:
    """The division of the positions of epochs into batches.

    Attributes:
      samples: the number of positions of an epoch; None: there is one epoch, without an end.
      batch_size: positions of a batch.
      tail: the last batch of an epoch, see LoaderOptions.
      repeats: whether there are epochs after the first; otherwise a run ends at the start of epoch 1.
    """

    samples: int | None
    batch_size: int
    tail: Tail
    repeats: bool = True

    def __post_init__(self) -> None:
        if self.tail == "drop" and self.samples is not None and self.samples < self.batch_size:
            raise UnusableInputError(
                f"There are {self.samples:,} samples, too few for a batch of {self.batch_size:,}; choose a smaller "
                "batch_size, or another tail than drop."
            )

    def steps(self, place: Place) -> int | None:
        """Return the number of remaining batches of the epoch; None: it is endless."""
        if self.samples is None:
            return None
        if place.epoch and not self.repeats:
            return 0
        left = self.samples - place.sample
        return left // self.batch_size if self.tail == "drop" else -(-left // self.batch_size)

    def dropped(self, place: Place) -> int:
        """Return the number of samples from `place` to the end of the epoch that are in no batch."""
        return (self.samples - place.sample) % self.batch_size if self.samples and self.tail == "drop" else 0

    def after(self, place: Place, steps: int) -> Place:
        """Return the place after `steps` more batches; after the last batch of an epoch, that of the next epoch."""
        left = self.steps(place)
        if left is None or self.samples is None:
            return Place(0, place.sample + steps * self.batch_size)
        if self.tail == "carry" and self.repeats:
            epochs, sample = divmod(place.sample + steps * self.batch_size, self.samples)
            return Place(place.epoch + epochs, sample)
        if steps < left:
            return Place(place.epoch, place.sample + steps * self.batch_size)
        if not self.repeats:
            return Place(1, 0)
        in_epoch = self.steps(Place(place.epoch + 1, 0)) or 1
        epochs, steps = divmod(steps - left, in_epoch)
        return Place(place.epoch + 1 + epochs, steps * self.batch_size)

    def segments(self, place: Place, *, endless: bool) -> Iterator[Segment]:
        """Yield the segments of the batches from `place` on, to the end of the epoch or endlessly."""
        if self.samples is None:
            yield Segment(0, place.sample, _FOR_EVER)
        elif self.tail == "carry" and self.repeats:
            yield from self._carried(place, self.samples, endless=endless)
        else:
            yield from self._epoch(place, self.samples)
            while endless and self.repeats:
                place = Place(place.epoch + 1, 0)
                yield from self._epoch(place, self.samples)

    def _carried(self, place: Place, samples: int, *, endless: bool) -> Iterator[Segment]:
        """Yield epochs without a gap, up to the batch that includes the end of the first, or endlessly."""
        left = (self.steps(place) or 0) * self.batch_size
        while endless or left:
            stop = samples if endless else min(samples, place.sample + left)
            yield Segment(place.epoch, place.sample, stop)
            left -= stop - place.sample
            place = Place(place.epoch + 1, 0)

    def _epoch(self, place: Place, samples: int) -> Iterator[Segment]:
        """Yield an epoch from a place on; its last batch is filled up or dropped."""
        left = (self.steps(place) or 0) * self.batch_size
        stop = min(samples, place.sample + left)
        if place.sample < stop:
            yield Segment(place.epoch, place.sample, stop)
        left -= stop - place.sample
        if left and self.tail == "pad":
            yield Segment(PADDING, 0, left)
            return
        while left:
            yield Segment(place.epoch, 0, min(samples, left))
            left -= min(samples, left)
