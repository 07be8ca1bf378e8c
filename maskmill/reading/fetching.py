"""Fetch blocks ahead of use, and once more if they arrived damaged."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from maskmill.reading.block_reader import Block, BlockReader, DamagedBlockError, Rows
from maskmill.reading.data_set import DataSet
from maskmill.storage.read_ahead import Ahead

MOST_BYTES = 24 << 20
_UNKNOWN_BYTES = 1 << 20  # assumed for a block if the size of its file is not known


class BlockFetcher:
    """Fetch blocks in threads, in the order of requests, and decode them in that order.

    The methods are for one thread.
    """

    def __init__(self, data_set: DataSet, reader: BlockReader, threads: int, most_bytes: int = MOST_BYTES) -> None:
        """Take a reader; threads start with the first request.

        Args:
          data_set: that of the reader.
          reader: fetches and decodes.
          threads: the number of blocks to fetch at a time (ByteRanges.parallel_reads); 0: each when it is decoded.
          most_bytes: of blocks that are fetched and not yet decoded; one block may have more.
        """
        self._data_set = data_set
        self._reader = reader
        self._ahead = Ahead(reader.fetch, threads, most_bytes)
        self._blocks = self._refetched = 0

    def ask(self, blocks: Iterable[Block]) -> None:
        """Request blocks, after those requested before."""
        self._ahead.ask((block, self._size(block)) for block in blocks)

    def decode(self, samples: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows) -> Block:
        """Decode the block that was requested first, as BlockReader.decode does, and return it.

        Raises:
          DamagedBlockError: it is damaged, also after fetching it anew if that could help.
          IndexError: no block was requested.
          UnusableInputError, RunFailedError: it cannot be fetched.
        """
        block, fetched = self._ahead.next()
        try:
            self._reader.decode(fetched(), block, samples, rows, into)
        except DamagedBlockError:
            if not self._reader.forget(block):
                raise
            self._refetched += 1
            self._reader.decode(self._reader.fetch(block), block, samples, rows, into)
        self._blocks += 1
        return block

    def drop(self) -> None:
        """Drop all requests that are not yet decoded."""
        self._ahead.drop()

    def close(self) -> None:
        """End the threads; those that wait for a server end when it answers."""
        self._ahead.close()

    def stats(self) -> dict[str, float]:
        """Return the numbers of blocks decoded and of blocks fetched twice, and the seconds that `decode` waited."""
        waited = self._ahead.waited
        return {"blocks": self._blocks, "blocks_refetched": self._refetched, "block_wait_seconds": waited}

    def _size(self, block: Block) -> int:
        file = self._data_set.files[block.file]
        return _UNKNOWN_BYTES if file.size is None else file.size * block.count // max(1, file.samples)
