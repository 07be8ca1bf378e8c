"""Batches a step ahead of their use, and how long devices had nothing to do for want of one."""

import concurrent.futures
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from training.inputs import Arrays

# The share of the time that devices may wait for batches before it is worth a warning, and how long it is measured.
_MOST_WAITED = 0.1
_MEASURED_SECONDS = 10.0


class ReadAhead:
    """Takes batches in a thread, one ahead of use. Leaving it as a context ends the thread.

    Args:
      batches: has no end.
      clock: seconds, from any point in time.

    Attributes:
      waited: seconds for which devices had nothing to do, because no batch was there.
    """

    def __init__(self, batches: Iterator[Arrays], clock: Callable[[], float] = time.monotonic) -> None:
        self.waited = 0.0
        self._batches = batches
        self._clock = clock
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "read-ahead")
        self._next = self._thread.submit(next, batches)

    def take(self, finish: Callable[[], None]) -> Arrays:
        """The next batch.

        Args:
          finish: waits until the devices have done what they were given. It is called if no batch is there yet: as long
            as they compute, they do not miss it.
        """
        if not self._next.done():
            finish()
            start = self._clock()
            concurrent.futures.wait([self._next])
            self.waited += self._clock() - start
        batch = self._next.result()
        self._next = self._thread.submit(next, self._batches)
        return batch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()


class StarvationMeter:
    """Tells once that devices wait for batches for more than a tenth of the time."""

    def __init__(self) -> None:
        self._seconds = self._waited = 0.0
        self._has_told = False

    def add(self, seconds: float, waited: float) -> float | None:
        """Takes how many seconds went by and for how many of them devices waited.

        Returns:
          the share of the time that they waited, when some ten seconds were too bad for the first time; otherwise None.
        """
        self._seconds += seconds
        self._waited += waited
        if self._seconds < _MEASURED_SECONDS:
            return None
        share = self._waited / self._seconds
        self._seconds = self._waited = 0.0
        if share <= _MOST_WAITED or self._has_told:
            return None
        self._has_told = True
        return share
