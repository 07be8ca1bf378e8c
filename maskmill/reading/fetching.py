"""Blocks are fetched ahead of use, and once more where they arrived damaged."""

import collections
import threading
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.reading.block_reader import Block, BlockReader, DamagedBlockError, Rows
from maskmill.reading.data_set import DataSet

MOST_BYTES = 24 << 20
_UNKNOWN_BYTES = 1 << 20  # of a block, where the size of its file is not known


class _Task:
    """A block that was asked for: its bytes, or why there are none."""

    def __init__(self, block: Block, size: int) -> None:
        self.block = block
        self.size = size
        self.begun = False
        self.done = threading.Event()
        self.fetched: Any = None
        self.error: BaseException | None = None


class BlockFetcher:
    """Fetches blocks in threads, in the order in which they were asked for, and decodes them in that order.

    Its methods are for one thread.
    """

    def __init__(self, data_set: DataSet, reader: BlockReader, threads: int, most_bytes: int = MOST_BYTES) -> None:
        """Starts no thread before the first block is asked for.

        Args:
          data_set: what the reader reads.
          reader: fetches and decodes.
          threads: how many blocks are fetched at a time (ByteRanges.parallel_reads); 0: each when it is decoded.
          most_bytes: of blocks that are fetched and not yet decoded; one block may have more.
        """
        self._data_set = data_set
        self._reader = reader
        self._threads = threads
        self._most_bytes = most_bytes
        self._asked: collections.deque[_Task] = collections.deque()  # not yet decoded
        self._changed = threading.Condition()
        self._waiting: collections.deque[_Task] = collections.deque()  # not yet begun
        self._bytes = 0  # of those begun and not yet decoded
        self._running = 0
        self._closed = False
        self._blocks = self._refetched = 0
        self._waited = 0.0

    def ask(self, blocks: Iterable[Block]) -> None:
        """Asks for blocks; those asked for before come before them."""
        tasks = [_Task(block, self._size(block)) for block in blocks]
        self._asked.extend(tasks)
        if not self._threads:
            return
        with self._changed:
            self._waiting.extend(tasks)
            self._changed.notify_all()
        while self._running < min(self._threads, len(self._asked)):
            self._running += 1
            # A thread that waits for a server must not keep the process from ending.
            threading.Thread(target=self._work, name=f"fetch-{self._running}", daemon=True).start()

    def decode(self, wanted: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows) -> Block:
        """Decodes the block that was asked for first, as BlockReader.decode does, and returns which it was.

        Raises:
          DamagedBlockError: it is damaged, and was when it was fetched anew, if that could help.
          IndexError: no block was asked for.
          UnusableInputError, RunFailedError: it cannot be fetched.
        """
        task = self._asked.popleft()
        try:
            try:
                self._reader.decode(self._fetched(task), task.block, wanted, rows, into)
            except DamagedBlockError:
                if not self._reader.forget(task.block):
                    raise
                self._refetched += 1
                self._reader.decode(self._reader.fetch(task.block), task.block, wanted, rows, into)
        finally:
            self._free(task)
        self._blocks += 1
        return task.block

    def drop(self) -> None:
        """Forgets what was asked for and is not decoded."""
        with self._changed:
            self._waiting.clear()
        while self._asked:
            self._free(self._asked.popleft())

    def close(self) -> None:
        """Ends the threads; those that wait for a server end when it answers."""
        self.drop()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def stats(self) -> dict[str, float]:
        """Blocks decoded, those of them that were fetched once more, and for how many seconds `decode` waited."""
        return {"blocks": self._blocks, "blocks_refetched": self._refetched, "block_wait_seconds": self._waited}

    def _fetched(self, task: _Task) -> Any:
        if not self._threads:
            return self._reader.fetch(task.block)
        if not task.done.is_set():
            start = time.monotonic()
            task.done.wait()
            self._waited += time.monotonic() - start
        if task.error is not None:
            raise task.error
        return task.fetched

    def _free(self, task: _Task) -> None:
        task.fetched = None
        with self._changed:
            if task.begun:
                self._bytes -= task.size
            self._changed.notify_all()

    def _work(self) -> None:
        """Fetches blocks while there is room for them: the body of a thread."""
        while True:
            with self._changed:
                while not self._closed and not self._may_begin():
                    self._changed.wait()
                if self._closed:
                    return
                task = self._waiting.popleft()
                task.begun = True
                self._bytes += task.size
            try:
                task.fetched = self._reader.fetch(task.block)
            except BaseException as error:  # noqa: BLE001 - `decode` raises it
                task.error = error
            task.done.set()

    def _may_begin(self) -> bool:
        if not self._waiting:
            return False
        return not self._bytes or self._bytes + self._waiting[0].size <= self._most_bytes

    def _size(self, block: Block) -> int:
        file = self._data_set.files[block.file]
        return _UNKNOWN_BYTES if file.size is None else file.size * block.count // max(1, file.samples)
