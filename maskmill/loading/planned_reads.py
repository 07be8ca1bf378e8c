"""Reads what plans ask for, from several data sets, ahead of use if blocks come over a network."""

import collections
from collections.abc import Iterable, Iterator, Sequence

from maskmill.loading.chunks import Plan
from maskmill.loading.opened_sources import Source
from maskmill.loading.order import Read
from maskmill.reading.block_reader import Rows
from maskmill.reading.fetching import MOST_BYTES, BlockFetcher


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
        """The plans, once what they read is asked for; and so much of those behind that no thread stands idle."""
        asked: collections.deque[Plan] = collections.deque()
        behind = 0  # blocks asked for by plans behind the first
        for plan in plans:
            self.ask(plan.reads)
            behind += len(plan.reads) if asked else 0
            asked.append(plan)
            while asked and behind >= self._ahead:
                yield asked.popleft()
                behind -= len(asked[0].reads) if asked else 0
        yield from asked

    def ask(self, reads: Sequence[tuple[int, Read]]) -> None:
        """Has blocks fetched, each of a data set."""
        for number, fetcher in enumerate(self._fetchers):
            fetcher.ask([read.block for source, read in reads if source == number])

    def read(self, reads: Sequence[tuple[int, Read]], rows: Rows) -> None:
        """Reads to rows what was asked for first.

        Raises:
          UnusableInputError: a block is damaged.
          RunFailedError: a file cannot be read.
        """
        for source, read in reads:
            self._fetchers[source].decode(read.wanted, read.rows, rows)

    def close(self) -> None:
        """Ends what is under way."""
        for fetcher in self._fetchers:
            fetcher.close()
