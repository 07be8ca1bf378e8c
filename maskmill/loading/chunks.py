"""The sequence of samples that batches are cut from, and what one reader of it has to do.

It is walked in chunks: a window, or some thousand positions of a mix. A reader (a worker of a rank) makes some of the
batches, or rows of them. From the sequence alone it knows which samples it needs, and in which blocks they are.
"""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.loading.mixing import Mix
from maskmill.loading.opened_sources import Source
from maskmill.loading.options import LoaderOptions
from maskmill.loading.order import Read, SampleOrder
from maskmill.loading.schedule import PADDING, Segment
from maskmill.reading.block_reader import Rows
from maskmill.reading.fetching import MOST_BYTES, BlockFetcher

NO_SAMPLE = -1


@dataclasses.dataclass(frozen=True)
class Samples:
    """Some positions of the sequence: int64[n] each.

    source: which data set each is of. epochs: that data set's epoch. samples: its number in the data set; NO_SAMPLE:
    a row of padding. widths: of the files they are in; 0 for padding.
    """

    source: npt.NDArray[np.int64]
    epochs: npt.NDArray[np.int64]
    samples: npt.NDArray[np.int64]
    widths: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, places: slice | npt.NDArray[np.int64]) -> "Samples":
        return Samples(self.source[places], self.epochs[places], self.samples[places], self.widths[places])


def joined(parts: Sequence[Samples]) -> Samples:
    """Return parts of the sequence, one after the other."""
    return Samples(
        *(np.concatenate([getattr(part, field.name) for part in parts]) for field in dataclasses.fields(Samples))
    )


NONE = Samples(*(np.zeros(0, np.int64) for _ in dataclasses.fields(Samples)))


class SampleSequence:
    """The samples of a data set, or of a mix of several, epoch by epoch.

    Attributes:
      samples: positions of an epoch; None: there is one epoch, without an end.
    """

    def __init__(self, orders: Sequence[SampleOrder], mix: Mix | None, window: int) -> None:
        """orders: of each data set; without a mix there is one. window: most samples of a chunk of a mix."""
        self.samples = orders[0].samples if mix is None else mix.length
        self._orders = orders
        self._mix = mix
        self._window = window

    def chunks(self, segment: Segment) -> Iterator[Samples]:
        """Yield a segment, a piece at a time."""
        if segment.epoch == PADDING:
            count = segment.stop - segment.start
            yield Samples(*(np.full(count, value, np.int64) for value in (0, 0, NO_SAMPLE, 0)))
        elif self._mix is None:
            yield from _windows(self._orders[0], segment.epoch, segment.start, segment.stop)
        else:
            start = segment.start
            while start < segment.stop:
                stop = min(segment.stop, (start // self._window + 1) * self._window)
                yield self._mixed(self._mix, start, stop)
                start = stop

    def _mixed(self, mix: Mix, start: int, stop: int) -> Samples:
        """Position [start, stop) of a mix."""
        source, own = mix.positions(start, stop)
        mixed = Samples(source, *(np.empty(stop - start, np.int64) for _ in range(3)))
        for number in np.unique(source):
            of_source = np.flatnonzero(source == number)
            places = own[of_source]
            first = int(places.min())
            found = self._of_source(self._orders[number], first, int(places.max()) + 1)[places - first]
            mixed.epochs[of_source], mixed.samples[of_source] = found.epochs, found.samples
            mixed.widths[of_source] = found.widths
        return mixed

    def _of_source(self, order: SampleOrder, start: int, stop: int) -> Samples:
        """Position [start, stop) of a data set that is read epoch after epoch. `source` is 0."""
        parts: list[Samples] = []
        while start < stop:
            epoch, place = divmod(start, order.samples)
            end = min(order.samples, place + stop - start)
            parts += _windows(order, epoch, place, end)
            start += end - place
        return joined(parts)


def _windows(order: SampleOrder, epoch: int, start: int, stop: int) -> Iterator[Samples]:
    """Position [start, stop) of an epoch of a data set, a window at a time. `source` is 0."""
    for window in order.windows_from(epoch, start, stop):
        constant = (np.full(len(window.samples), value, np.int64) for value in (0, epoch, window.width))
        source, epochs, widths = constant
        yield Samples(source, epochs, window.samples, widths)


@dataclasses.dataclass(frozen=True)
class Cut:
    """Rows [start, stop) of a plan that are a batch, or this rank's part of it. width: of the whole batch's rows."""

    start: int
    stop: int
    width: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a reader does for a chunk.

    carried: how many rows are in no batch of the last plan and stand first in this one. rows: the samples of all rows,
    those first. reads: which blocks are read for the others, each with the data set it is of. cuts: the batches.
    """

    carried: int
    rows: Samples
    reads: list[tuple[int, Read]]
    cuts: list[Cut]


def plans(chunks: Iterable[Samples], options: LoaderOptions, orders: Sequence[SampleOrder]) -> Iterator[Plan]:
    """Yield what a reader does for each chunk of a sequence that starts with the first sample of a batch.

    Args:
      chunks: parts of the sequence, one after the other.
      options: batch_size, and which reader it is.
      orders: of each data set.
    """
    size = options.batch_size
    first, behind = 0, 0
    left, open_width = NONE, 0
    for chunk in chunks:
        first, behind = behind, behind + len(chunk)
        own = _own_places(first, behind, options)
        rows = joined([left, chunk[own]])
        cuts: list[Cut] = []
        for batch in range(first // size, behind // size):
            open_width = max(open_width, _widest(chunk, batch * size - first, (batch + 1) * size - first))
            if batch % options.workers == options.worker:
                start = cuts[-1].stop if cuts else 0
                cuts.append(Cut(start, start + size // options.ranks, open_width))
            open_width = 0
        open_width = max(open_width, _widest(chunk, behind // size * size - first, len(chunk)))
        yield Plan(len(left), rows, reads(rows, len(left), orders), cuts)
        left = rows[cuts[-1].stop if cuts else 0 :]


def ramped(chunks: Iterable[Samples], first: int) -> Iterator[Samples]:
    """Yield the same parts of a sequence, cut into at most `first` samples, then twice as many, …: the start comes
    soon.
    """
    for chunk in chunks:
        while len(chunk) > first:
            yield chunk[:first]
            chunk = chunk[first:]
            first *= 2
        yield chunk


def _own_places(first: int, behind: int, options: LoaderOptions) -> npt.NDArray[np.int64]:
    """Return which positions of a chunk [first, after) are the reader's own, counted from `first`, ascending."""
    size = options.batch_size
    of_rank = size // options.ranks
    start = options.rank * of_rank
    # Batches of this worker, from the one that holds `first` on.
    batches = np.arange(first // size, -(-behind // size))
    batches = batches[batches % options.workers == options.worker]
    places = (batches[:, None] * size + start + np.arange(of_rank)).reshape(-1) - first
    own: npt.NDArray[np.int64] = places[(places >= 0) & (places < behind - first)]
    return own


def _widest(chunk: Samples, start: int, stop: int) -> int:
    return int(chunk.widths[max(0, start) : stop].max(initial=0))


def reads(rows: Samples, carried: int, orders: Sequence[SampleOrder]) -> list[tuple[int, Read]]:
    """Return which blocks are read for rows, but for the first `carried` and for padding; each with the data set it is
    of.

    A block is read once for each epoch that its samples are of.
    """
    found: list[tuple[int, Read]] = []
    numbers = np.arange(len(rows), dtype=np.int64)
    new = numbers[carried:][rows.samples[carried:] != NO_SAMPLE]
    for source, order in enumerate(orders):
        of_source = new if len(orders) == 1 else new[rows.source[new] == source]
        if not len(of_source):
            continue
        epochs = rows.epochs[of_source]
        for epoch in range(int(epochs.min()), int(epochs.max()) + 1):
            chosen = of_source[epochs == epoch]
            found += [(source, read) for read in order.reads(rows.samples[chosen], chosen)]
    return found


class PlannedReads:
    """Reads the blocks of plans in their order. For one thread."""

    def __init__(self, sources: Sequence[Source]) -> None:
        """sources: the data sets that reads are of, by number."""
        self._ahead = max(source.ranges.parallel_reads for source in sources)
        # They share what one data set would have.
        most_bytes = MOST_BYTES // len(sources)
        self._fetchers = [
            BlockFetcher(source.data_set, source.reader, -(-source.ranges.parallel_reads // len(sources)), most_bytes)
            for source in sources
        ]

    def planned(self, plans: Iterable[Plan]) -> Iterator[Plan]:
        """Yield the plans, once what they read is asked for; and so much of those after that no thread stands idle."""
        asked: collections.deque[Plan] = collections.deque()
        behind = 0  # blocks asked for by plans after the first
        for plan in plans:
            self.ask(plan.reads)
            behind += len(plan.reads) if asked else 0
            asked.append(plan)
            while asked and behind >= self._ahead:
                yield asked.popleft()
                behind -= len(asked[0].reads) if asked else 0
        yield from asked

    def ask(self, reads: Sequence[tuple[int, Read]]) -> None:
        """Have blocks fetched, each of a data set."""
        for number, fetcher in enumerate(self._fetchers):
            fetcher.ask([read.block for source, read in reads if source == number])

    def read(self, reads: Sequence[tuple[int, Read]], rows: Rows) -> None:
        """Read to rows what was asked for first.

        Raises:
          UnusableInputError: a block is damaged.
          RunFailedError: a file cannot be read.
        """
        for source, read in reads:
            self._fetchers[source].decode(read.wanted, read.rows, rows)

    def close(self) -> None:
        """End what is under way."""
        for fetcher in self._fetchers:
            fetcher.close()
