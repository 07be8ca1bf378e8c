"""Fetch things from a store ahead of use, in threads: several at a time, in the order of requests."""

import collections
import io
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from typing import Any, Generic, TypeVar

from maskmill.storage import files, turns

K = TypeVar("K")
V = TypeVar("V")

# A request takes some 50 ms, so many small ones would take minutes; larger ones only cost memory.
LOOK_BYTES = 512 << 10  # to fetch first of a file: the reader may need only a little
PART_BYTES = 8 << 20  # to fetch at a time of a file that is read sequentially
_FETCHED_BYTES = 64 << 20  # of all things that `in_order` fetches ahead
_PARTS = 4  # parallel requests for a file


class Ahead(Generic[K, V]):
    """Fetch things in threads, in the order of requests, and return them in that order.

    The methods are for one thread.

    Attributes:
      waited: the seconds that results were waited for.
    """

    def __init__(self, fetch: Callable[[K], V], threads: int, most_bytes: int) -> None:
        """Take a function; threads start with the first request.

        Args:
          fetch: fetches one thing, in any thread.
          threads: the number of things to fetch at a time; 0: each when its result is used.
          most_bytes: of things that are fetched and not yet used; one thing may have more.
        """
        self._fetch, self._most_bytes = fetch, most_bytes
        self._threads = futures.ThreadPoolExecutor(threads, "fetch") if threads else None
        self._waiting: collections.deque[tuple[K, int]] = collections.deque()
        self._begun: collections.deque[tuple[K, int, futures.Future[V] | None]] = collections.deque()
        self._bytes = self._used = 0  # of the requests begun, with the one in use; and of the one in use
        self.waited = 0.0

    def ask(self, things: Iterable[tuple[K, int]]) -> None:
        """Request things, each with its bytes, after those requested before."""
        self._waiting.extend(things)
        self._begin()

    def _begin(self) -> None:
        while self._waiting and (not self._bytes or self._bytes + self._waiting[0][1] <= self._most_bytes):
            thing, size = self._waiting.popleft()
            future = None if self._threads is None else self._threads.submit(self._fetch, thing)
            self._begun.append((thing, size, future))
            self._bytes += size

    def next(self) -> tuple[K, Callable[[], V]]:
        """Return the thing requested first, and a function that waits for the result of `fetch`, or raises its error.

        The thing counts as in use until the next call.

        Raises:
          IndexError: there is no request.
        """
        self._bytes -= self._used
        self._used = 0
        self._begin()
        thing, self._used, future = self._begun.popleft()
        return thing, lambda: self._fetch(thing) if future is None else self._result(future)

    def _result(self, future: futures.Future[V]) -> V:
        start = time.monotonic()
        try:
            with turns.waiting():
                return future.result()
        finally:
            self.waited += time.monotonic() - start

    def drop(self) -> None:
        """Drop all requests that are not yet used."""
        self._waiting.clear()
        while self._begun:
            _, _, future = self._begun.popleft()
            if future is not None:
                future.cancel()
        self._bytes = self._used

    def close(self) -> None:
        """End the threads; those that wait for a server end when it answers."""
        self.drop()
        if self._threads is not None:
            self._threads.shutdown(wait=False)


def in_order(place: str, fetch: Callable[[K], V], things: Sequence[tuple[K, int]]) -> Iterator[tuple[K, V]]:
    """Yield each thing and its result of `fetch`, in order; if `place` is in a store, fetch ahead of use.

    place: a path, local or not. things: each with its bytes.
    """
    ahead = Ahead(fetch, 0 if files.is_local(place) else files.MOST_AT_ONCE, _FETCHED_BYTES)
    try:
        ahead.ask(things)
        for _ in things:
            thing, result = ahead.next()
            yield thing, result()
    finally:
        ahead.close()


class RangeFile(io.RawIOBase):
    """A raw file that can seek, over a function that reads ranges."""

    def __init__(self, size: int, read: Callable[[int, int], Any]) -> None:
        """Take a function, without reading yet.

        Args:
          size: of the file in bytes.
          read: returns bytes [start, end) as a buffer, or fewer of them, but at least one.
        """
        self._size, self._read = size, read
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._read = _nothing  # releases the bytes fetched ahead
        super().close()

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if at < 0:
            raise OSError(f"there is no byte {at}")
        self._at = at
        return at

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        count = min(len(view), self._size - self._at)
        if count <= 0:
            return 0
        block = memoryview(self._read(self._at, self._at + count))
        view[: len(block)] = block
        self._at += len(block)
        return len(block)


def _nothing(start: int, end: int) -> bytes:
    return b""


class ReadAhead:
    """A file in a store, for one thread; for a sequential reader, large parts are fetched ahead of use."""

    def __init__(self, size: int, fetch: Callable[[int, int], Any], start: int = 0, end: int | None = None) -> None:
        """Take a function, without fetching yet.

        Args:
          size: of the file in bytes.
          fetch: returns bytes [start, end), in any thread; must not keep this object alive.
          start, end: the range that will be read for certain, and nothing after it; None: unknown.
        """
        self._size = size
        self._certain = range(0) if end is None else range(start, min(end, size))
        self._ahead: Ahead[tuple[int, int], Any] = Ahead(lambda part: fetch(*part), _PARTS, 1 << 62)
        self._at, self._data = 0, memoryview(b"")  # the part that is read
        self._next = self._stop = 0  # the start of the next part to request, and the end of the last
        self._under_way = 0

    def read(self, start: int, end: int) -> memoryview:
        """Return bytes of the file from `start` on: at least one, and at most those to `end`."""
        if not self._at <= start < self._at + len(self._data):
            self._take(start, end)
        return self._data[start - self._at : end - self._at]

    def _take(self, start: int, end: int) -> None:
        """Wait for the part that begins at `start`; end: of the bytes that the caller needs."""
        goes_on = start == self._at + len(self._data)
        if not (goes_on and self._under_way):
            self._drop()
            self._next, self._stop = start, min(self._size, max(end, start + LOOK_BYTES), start + PART_BYTES)
            if start in self._certain:
                self._stop = self._certain.stop
            elif goes_on and start > 0 and not self._certain:
                self._stop = self._size
            self._ask()
        try:
            (at, _), result = self._ahead.next()
            self._under_way -= 1
            data = memoryview(result())
        except BaseException:
            self._drop()
            raise
        self._at, self._data = at, data
        self._ask()

    def _ask(self) -> None:
        """Request parts, up to _PARTS at a time."""
        while self._under_way < _PARTS and self._next < self._stop:
            end = min(self._next + PART_BYTES, self._stop)
            self._ahead.ask([((self._next, end), end - self._next)])
            self._next, self._under_way = end, self._under_way + 1

    def _drop(self) -> None:
        self._ahead.drop()
        self._under_way = 0
