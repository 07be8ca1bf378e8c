"""What is fetched from a store ahead of use: several things at a time, which come in the order they were asked for in.

One mechanism for all: blocks of data sets (reading/fetching.py), and files that are read forward (ReadAhead).
"""

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from maskmill.storage import files

K = TypeVar("K")
V = TypeVar("V")

# A request takes some 50 ms, so many small ones would take minutes; larger ones only cost memory.
LOOK_BYTES = 512 << 10  # of a file from which only a little may be wanted
PART_BYTES = 8 << 20  # that are asked for at a time, once a file is read forward; half as much again at its end
_FETCHED_BYTES = 64 << 20  # of many things that are fetched in order, at a time
_PARTS = 4  # under way at a time: with the one that is read they have 48 MiB at most
# Few readers of a file's beginning go on to its end, so parts become larger and more only as they are read.
_FORWARD_BYTES = 64 << 10  # smaller reads behind one another are looks at a header
_GROWTH = 4


class Task(Generic[K, V]):
    """Something that was asked for: what it gave, or why it gave nothing."""

    def __init__(self, wanted: K, size: int) -> None:
        self.wanted = wanted
        self.size = size
        self.begun = False
        self.done = threading.Event()
        self.fetched: V | None = None
        self.error: BaseException | None = None


class Ahead(Generic[K, V]):
    """Fetches in threads, in the order in which it was asked, and gives what it fetched in that order.

    Its methods are for one thread.

    Attributes:
      waited: for how many seconds `result` waited.
    """

    def __init__(self, fetch: Callable[[K], V], threads: int, most_bytes: int) -> None:
        """Starts no thread before something is asked for.

        Args:
          fetch: fetches one thing, in any thread.
          threads: how many are fetched at a time; 0: each when its result is asked for.
          most_bytes: of what is fetched and not yet used; one thing may have more.
        """
        self._fetch = fetch
        self._threads = threads
        self._most_bytes = most_bytes
        self._asked: collections.deque[Task[K, V]] = collections.deque()  # not yet used
        self._changed = threading.Condition()
        self._waiting: collections.deque[Task[K, V]] = collections.deque()  # not yet begun
        self._bytes = 0  # of those begun and not yet used
        self._running = 0
        self._closed = False
        self.waited = 0.0

    def ask(self, wanted: Iterable[tuple[K, int]]) -> None:
        """Asks for things, each with its bytes; those asked for before come before them."""
        tasks = [Task[K, V](thing, size) for thing, size in wanted]
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

    @contextlib.contextmanager
    def first(self) -> Iterator[Task[K, V]]:
        """What was asked for first; it is used when the block ends.

        Raises:
          IndexError: nothing was asked for.
        """
        task = self._asked.popleft()
        try:
            yield task
        finally:
            self._free(task)

    def result(self, task: Task[K, V]) -> V:
        """What was fetched; raises what `fetch` has raised."""
        if not self._threads:
            return self._fetch(task.wanted)
        if not task.done.is_set():
            start = time.monotonic()
            task.done.wait()
            self.waited += time.monotonic() - start
        if task.error is not None:
            raise task.error
        fetched: Any = task.fetched
        return fetched  # type: ignore[no-any-return]

    def drop(self) -> None:
        """Forgets what was asked for and is not used."""
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

    def _free(self, task: Task[K, V]) -> None:
        task.fetched = None
        with self._changed:
            if task.begun:
                self._bytes -= task.size
            self._changed.notify_all()

    def _work(self) -> None:
        """Fetches while there is room: the body of a thread."""
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
                task.fetched = self._fetch(task.wanted)
            except BaseException as error:  # noqa: BLE001 - `result` raises it
                task.error = error
            task.done.set()

    def _may_begin(self) -> bool:
        if not self._waiting:
            return False
        return not self._bytes or self._bytes + self._waiting[0].size <= self._most_bytes


def in_order(place: str, fetch: Callable[[K], V], wanted: Sequence[tuple[K, int]]) -> Iterator[tuple[K, V]]:
    """Each thing and what `fetch` gives of it, in order: one after another, or of a store many ahead of use.

    place: a path, local or not, which tells which. wanted: the things, each with its bytes.
    """
    ahead = Ahead(fetch, 0 if files.is_local(place) else files.MOST_AT_ONCE, _FETCHED_BYTES)
    try:
        ahead.ask(wanted)
        for _ in wanted:
            with ahead.first() as task:
                yield task.wanted, ahead.result(task)
    finally:
        ahead.close()


class ReadAhead:
    """A file in a store, read in any places: parts are fetched ahead of a reader that goes forward.

    A read elsewhere fetches just its bytes; one from the file's start on that asks for much, or that goes on where the
    last one ended, begins to go forward. Its methods are for one thread.
    """

    def __init__(self, size: int, fill: Callable[[int, memoryview], object], end: int | None = None) -> None:
        """Fetches nothing yet.

        Args:
          size: of the file in bytes.
          fill: fills a buffer with the bytes from a place on, in any thread; must not keep this object alive.
          end: nothing behind it is fetched ahead; None: the file's end.
        """
        self._size, self._fill = size, fill
        self._end = size if end is None else min(end, size)

        def fetch(part: tuple[int, int]) -> memoryview:
            view = np.empty(part[1] - part[0], np.uint8).data
            fill(part[0], view)
            return view

        self._ahead = Ahead(fetch, _PARTS, (_PARTS + 1) * PART_BYTES)
        self._parts: collections.deque[tuple[int, int]] = collections.deque()  # asked for
        self._at, self._data = 0, memoryview(b"")  # the part that is read, and where it starts
        self._last = -1  # where the last read ended
        self._step = self._most = 0  # the bytes of the next part that is asked for; how many are under way, at most

    def __del__(self) -> None:
        self._ahead.close()

    def keep(self, start: int, data: memoryview) -> None:
        """Takes bytes that were read with the file's size, as if they had been fetched ahead."""
        self._at, self._data = start, data
        self._last = start + len(data)

    def drop(self) -> None:
        """Forgets what was fetched ahead."""
        self._ahead.drop()
        self._parts.clear()
        self._data, self._last = memoryview(b""), -1

    def read(self, start: int, view: memoryview) -> None:
        """Fills a buffer with the bytes from a place on, which the file has; raises what `fill` raises."""
        filled = 0
        try:
            while filled < len(view):
                at, rest = start + filled, view[filled:]
                if not self._has(at) and not self._begin(at, len(rest)):
                    self.drop()
                    self._fill(at, rest)
                    break
                block = self._part_at(at)[: len(rest)]
                rest[: len(block)] = block
                filled += len(block)
                self._last = start + filled
        except BaseException:
            self.drop()
            raise
        self._last = start + len(view)

    def _begin(self, start: int, count: int) -> bool:
        """Begins to fetch ahead if a read goes forward: on from the last one, or into a file of which more is left."""
        is_forward = count >= _FORWARD_BYTES if start == self._last else start == 0 and count >= LOOK_BYTES
        if not is_forward or start + min(count, PART_BYTES) >= self._end:
            return False
        self.drop()
        self._at = start
        self._step = min(PART_BYTES, max(LOOK_BYTES, _GROWTH * count))
        self._most = _PARTS if count >= PART_BYTES else 1
        self._ask(start)
        return True

    def _has(self, at: int) -> bool:
        """Whether a byte is in the part that is read, or was asked for."""
        last = self._parts[-1][1] if self._parts else self._at + len(self._data)
        return self._at <= at < last

    def _part_at(self, at: int) -> memoryview:
        """What of the part that has a byte is from there on; those before are dropped, and others asked for."""
        while at >= self._at + len(self._data):
            self._data = memoryview(b"")
            with self._ahead.first() as task:
                self._at = self._parts.popleft()[0]
                self._data = self._ahead.result(task)
            self._most = min(_PARTS, 2 * self._most)
            self._ask(self._parts[-1][1] if self._parts else self._at + len(self._data))
        return self._data[at - self._at :]

    def _ask(self, at: int) -> None:
        """Asks for parts from a place on, as many as may be under way."""
        while len(self._parts) < self._most and at < self._end:
            end = at + self._step
            self._step = min(PART_BYTES, _GROWTH * self._step)
            end = self._end if end + self._step // 2 >= self._end else end
            self._parts.append((at, end))
            self._ahead.ask([((at, end), end - at)])
            at = end
