"""The part of an iteration that one process makes; the loaders for PyTorch and grain share it."""

from collections.abc import Iterator, Mapping

from maskmill.errors import UnusableInputError
from maskmill.loading.batches import Batch
from maskmill.loading.loader import Loader
from maskmill.loading.states import State, is_count

_MOST_BATCHES = 1 << 48  # upper limit for the batches in a state


class Part(Iterator[Batch]):
    """One worker's batches of the rest of an epoch.

    Frameworks save a state for each worker. It must hold the start of the iteration of all workers, because a worker
    counts its batches from there, and because a worker may have made its last batch of the epoch before others have.

    Attributes:
      end: the state at which the next iteration starts; None for an endless iteration.
      is_done: whether the loaded state is after the worker's last batch.
    """

    def __init__(self, loader: Loader, *, endless: bool = False) -> None:
        """Take a loader over at its position; its options `worker` and `workers` choose the part."""
        self._loader = loader
        self._endless = endless
        self._go_to(loader.state_dict(), batches_made=0)

    def __next__(self) -> Batch:
        batch = next(self._batches)
        self._batches_made += 1
        return batch

    def state_dict(self) -> State:
        """Return the start of the iteration, and the number of this worker's batches since, in values JSON can hold."""
        options = self._loader.options
        return {
            "start": self._start,
            "made": self._batches_made,
            "workers": options.workers,
            "batch_size": options.batch_size,
        }

    def load_state_dict(self, state: State) -> None:
        """Continue from the state of a part with the same number.

        Raises:
          UnusableInputError: the number of workers or the batch size differs, or the loader read other data.
        """
        if not isinstance(state, Mapping) or not {"start", "made", "workers", "batch_size"} <= set(state):
            raise UnusableInputError("This is not a state of a worker's part; give what its state_dict() returned.")
        if not is_count(state["made"], _MOST_BATCHES):
            raise UnusableInputError(f"This state is damaged: {state['made']!r} batches were made since it started.")
        for name in ("workers", "batch_size"):
            now = getattr(self._loader.options, name)
            if state[name] != now:
                raise UnusableInputError(
                    f"This state was saved with {name}={state[name]}, so it cannot be taken up with {name}={now}; use "
                    "the same, or the state of the loader, which fits any."
                )
        self._go_to(state["start"], state["made"])

    def _go_to(self, start: State, batches_made: int) -> None:
        loader = self._loader
        loader.load_state_dict(start)
        left = None if self._endless else loader.steps_left
        self.end = None if left is None else loader.state_after(left)
        self._start, self._batches_made = start, batches_made
        steps = batches_made * loader.options.workers
        self.is_done = left is not None and steps + loader.options.worker >= left
        self._batches: Iterator[Batch] = iter(())
        if not self.is_done:
            loader.load_state_dict(loader.state_after(steps))
            self._batches = loader.endless() if self._endless else iter(loader)
