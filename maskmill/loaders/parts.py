"""The part of an iteration that one process makes: what the loaders for PyTorch and grain share."""

from collections.abc import Iterator, Mapping

from maskmill.errors import UnusableInputError
from maskmill.loading.batches import Batch
from maskmill.loading.loader import Loader
from maskmill.loading.states import State, is_count

_MOST_BATCHES = 1 << 48  # that a state may be after


class Part(Iterator[Batch]):
    """The batches of one worker, of what is left of an epoch.

    Frameworks save a state for each worker. It must say where the iteration of all workers started, because a worker
    counts its batches from there, and it may have made its last batch of the epoch when others have not.

    Attributes:
      end: the state at which the next iteration starts; None: this one goes on for ever.
      is_done: whether a state was taken up after the worker's last batch.
    """

    def __init__(self, loader: Loader, *, endless: bool = False) -> None:
        """Start where the loader stands, and take it over. Its options `worker` and `workers` say which part."""
        self._loader = loader
        self._endless = endless
        self._go_to(loader.state_dict(), made=0)

    def __next__(self) -> Batch:
        batch = next(self._batches)
        self._made += 1
        return batch

    def state_dict(self) -> State:
        """Return where the iteration started, and how many batches this worker has made since: what JSON can hold."""
        options = self._loader.options
        return {
            "start": self._start,
            "made": self._made,
            "workers": options.workers,
            "batch_size": options.batch_size,
        }

    def load_state_dict(self, state: State) -> None:
        """Go to where a part with the same number stood.

        Raises:
          UnusableInputError: workers or batches were others, or the loader read something else.
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

    def _go_to(self, start: State, made: int) -> None:
        loader = self._loader
        loader.load_state_dict(start)
        left = None if self._endless else loader.steps_left
        self.end = None if left is None else loader.state_after(left)
        self._start, self._made = start, made
        steps = made * loader.options.workers
        self.is_done = left is not None and steps + loader.options.worker >= left
        self._batches: Iterator[Batch] = iter(())
        if not self.is_done:
            loader.load_state_dict(loader.state_after(steps))
            self._batches = loader.endless() if self._endless else iter(loader)
