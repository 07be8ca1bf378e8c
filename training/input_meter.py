"""How long devices have nothing to do for want of a batch."""

import time
from collections.abc import Callable

from training.inputs import Arrays
from training.training_input import TrainingBatches

# The share of the time that devices may wait for batches before it is worth a warning, and how long it is measured.
_MOST_WAITED = 0.1
_MEASURED_SECONDS = 10.0


class InputMeter:
    """Measures for how long devices wait for batches.

    Args:
      clock: seconds, from any point in time.

    Attributes:
      waited: seconds so far.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.waited = 0.0
        self._clock = clock
        self._window_seconds = self._window_waited = 0.0
        self._has_told = False

    def take(self, batches: TrainingBatches, finish: Callable[[], None]) -> Arrays:
        """The next batch.

        Args:
          batches: gives it.
          finish: waits until the devices have done what they were given. It is called if the batch is not there yet: as
            long as they compute, they do not miss it.
        """
        if batches.is_ready:
            return next(batches)
        finish()
        start = self._clock()
        batch = next(batches)
        self.waited += self._clock() - start
        return batch

    def told(self, seconds: float, waited: float) -> float | None:
        """Takes how many seconds went by, and for how many of them devices waited.

        Returns:
          the share of the time that they waited, the first time that it was above a tenth for ten seconds; else None.
        """
        self._window_seconds += seconds
        self._window_waited += waited
        if self._window_seconds < _MEASURED_SECONDS:
            return None
        share = self._window_waited / self._window_seconds
        self._window_seconds = self._window_waited = 0.0
        if share <= _MOST_WAITED or self._has_told:
            return None
        self._has_told = True
        return share
