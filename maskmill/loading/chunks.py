"""Cut the sequence of samples into chunks, and plan the work of one reader for each chunk.

A chunk is a window, or some thousand positions of a mix. A reader (a worker of a rank) makes some of the batches, or
some rows of them. It computes from the sequence alone the samples that it needs, and the blocks that hold them.
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

    source: the number of the data set. epochs: its epoch. samples: the sample's number in it; NO_SAMPLE: a row of
    padding. widths: of the samples' files; 0 for padding.
    """

    source: npt.NDArray[np.int64]
    epochs: npt.NDArray[np.int64]
    samples: npt.NDArray[np.int64]
    widths: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, places: slice | npt.NDArray[np.int64]) -> "Samples":
        return Samples(self.source[places], self.epochs[places], self.samples[places], self.widths[places])


def concat(parts: Sequence[Samples]) -> Samples:
    """Return parts of the sequence as one."""
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
        """Take the order of each data set, only one without a mix; window: most samples of a chunk of a mix."""
        self.samples = orders[0].samples if mix is None else mix.length
        self._orders = orders
        self._mix = mix
        self._window = window

    def chunks(self, segment: Segment) -> Iterator[Samples]:
        """Yield the samples of a segment, chunk by chunk."""
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
        """Return positions [start, stop) of a mix."""
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
        """Return positions [start, stop) of a data set that is read epoch after epoch; `source` is 0."""
        parts: list[Samples] = []
        while start < stop:
            epoch, place = divmod(start, order.samples)
            end = min(order.samples, place + stop - start)
            parts += _windows(order, epoch, place, end)
            start += end - place
        return concat(parts)


def _windows(order: SampleOrder, epoch: int, start: int, stop: int) -> Iterator[Samples]:
    """Yield positions [start, stop) of an epoch of a data set, window by window; `source` is 0."""
    for window in order.windows_from(epoch, start, stop):
        constant = (np.full(len(window.samples), value, np.int64) for value in (0, epoch, window.width))
        source, epochs, widths = constant
        yield Samples(source, epochs, window.samples, widths)


@dataclasses.dataclass(frozen=True)
class Cut:
    """Rows [start, stop) of a plan that form a batch, or this rank's part of it; width: of the whole batch's rows."""

    start: int
    stop: int
    width: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """The work of a reader for a chunk.

    carried: the number of rows that no batch of the last plan took; they are the first rows of this one. rows: the
    samples of all rows. reads: the blocks to read for the other rows, each with its data set's number. cuts: the
    batches.
    """

    carried: int
    rows: Samples
    reads: list[tuple[int, Read]]
    cuts: list[Cut]


def plans(chunks: Iterable[Samples], options: LoaderOptions, orders: Sequence[SampleOrder]) -> Iterator[Plan]:
    """Yield the plan for each chunk of a sequence that starts with the first sample of a batch.

    Args:
      chunks: parts of the sequence, one after the other.
      options: batch_size, and the rank and worker of the reader.
      orders: of each data set.
    """
    size = options.batch_size
    first, end = 0, 0
    left, open_width = NONE, 0
    for chunk in chunks:
        first, end = end, end + len(chunk)
        own = _own_places(first, end, options)
        rows = concat([left, chunk[own]])
        cuts: list[Cut] = []
        for batch in range(first // size, end // size):
            open_width = max(open_width, _widest(chunk, batch * size - first, (batch + 1) * size - first))
            if batch % options.workers == options.worker:
                start = cuts[-1].stop if cuts else 0
                cuts.append(Cut(start, start + size // options.ranks, open_width))
            open_width = 0
        open_width = max(open_width, _widest(chunk, end // size * size - first, len(chunk)))
        yield Plan(len(left), rows, reads(rows, len(left), orders), cuts)
        left = rows[cuts[-1].stop if cuts else 0 :]


def ramped(chunks: Iterable[Samples], first: int) -> Iterator[Samples]:
    """Yield the chunks, the first cut into parts of `first` samples, twice as many, …, so that the first comes soon."""
    for chunk in chunks:
        while len(chunk) > first:
            yield chunk[:first]
            chunk = chunk[first:]
            first *= 2
        yield chunk


def _own_places(first: int, end: int, options: LoaderOptions) -> npt.NDArray[np.int64]:
    """Return int64[n]: the reader's positions of the chunk [first, end), counted from `first`, ascending."""
    size = options.batch_size
    of_rank = size // options.ranks
    start = options.rank * of_rank
    # Batches of this worker, from the one that holds `first` on.
    batches = np.arange(first // size, -(-end // size))
    batches = batches[batches % options.workers == options.worker]
    places = (batches[:, None] * size + start + np.arange(of_rank)).reshape(-1) - first
    own: npt.NDArray[np.int64] = places[(places >= 0) & (places < end - first)]
    return own


def _widest(chunk: Samples, start: int, stop: int) -> int:
    return int(chunk.widths[max(0, start) : stop].max(initial=0))


def reads(rows: Samples, carried: int, orders: Sequence[SampleOrder]) -> list[tuple[int, Read]]:
    """Return the blocks to read for all rows but the first `carried` and padding, each with its data set's number.

    A block is read once for each epoch of its samples.
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
    """Read the blocks of plans in their order. For one thread."""

    def __init__(self, sources: Sequence[Source]) -> None:
        """Take the data sets, by number."""
        self._ahead = max(source.ranges.parallel_reads for source in sources)
        # The data sets share the memory of one.
        most_bytes = MOST_BYTES // len(sources)
        self._fetchers = [
            BlockFetcher(source.data_set, source.reader, -(-source.ranges.parallel_reads // len(sources)), most_bytes)
            for source in sources
        ]

    def planned(self, plans: Iterable[Plan]) -> Iterator[Plan]:
        """Yield each plan after its reads, and enough of later plans' to keep all threads busy, were requested."""
        asked: collections.deque[Plan] = collections.deque()
        later = 0  # blocks requested by plans after the first
        for plan in plans:
            self.ask(plan.reads)
            later += len(plan.reads) if asked else 0
            asked.append(plan)
            while asked and later >= self._ahead:
                yield asked.popleft()
                later -= len(asked[0].reads) if asked else 0
        yield from asked

    def ask(self, reads: Sequence[tuple[int, Read]]) -> None:
        """Request blocks, which are fetched ahead, each with its data set's number."""
        for number, fetcher in enumerate(self._fetchers):
            fetcher.ask([read.block for source, read in reads if source == number])

    def read(self, reads: Sequence[tuple[int, Read]], rows: Rows) -> None:
        """Write the samples of the blocks that were requested first to rows.

        Raises:
          UnusableInputError: a block is damaged.
          RunFailedError: a file cannot be read.
        """
        for source, read in reads:
            self._fetchers[source].decode(read.samples, read.rows, rows)

    def close(self) -> None:
        """End the threads."""
        for fetcher in self._fetchers:
            fetcher.close()
