"""A loader's batches as PyTorch's tensors.

    import maskmill
    import maskmill.loaders.torch

    data = maskmill.open("demo", batch_size=256)
    loader = maskmill.loaders.torch.DataLoader(data, num_workers=2)
    for batch in loader: ...
    state = loader.state_dict()

`DataLoader` is torch.utils.data.DataLoader whose state says how many samples the training loop has had. The state does
not depend on ranks or workers: it can be taken up with any number of either. `Dataset` is what it reads; it also goes
into a DataLoader of your own, or into torchdata's StatefulDataLoader.
"""

import os
import pickle
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from transforms.errors import UnusableInputError
from transforms.loading.loader import Loader

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "maskmill.loaders.torch needs PyTorch, which is not installed; install it with: pip install torch", name="torch"
    ) from None

Batch = dict[str, torch.Tensor]

EPOCH, SAMPLE = 0, 1  # what of a loader's state changes with progress


class Dataset(torch.utils.data.IterableDataset):
    """The batches of a loader, for DataLoader(dataset, batch_size=None, num_workers=…).

    Gives dicts of tensors, with the names, shapes and dtypes of `loader.spec`. Each of DataLoader's workers makes a
    part of the batches; DataLoader gives them in the order of the loader.

    Each iteration gives what is left of an epoch; the next one gives the next epoch, in worker processes, too. An
    iteration that is broken off is begun again, because a dataset does not know how many of the batches that workers
    made have been used: `DataLoader` below and StatefulDataLoader know.
    """

    # Whether the end of an iteration makes the dataset go on to the next epoch.
    _goes_on = True

    def __init__(
        self, loader: Loader, *, rank: int | None = None, ranks: int | None = None, endless: bool = False
    ) -> None:
        """Starts where the loader stands.

        Args:
          loader: what maskmill.open or maskmill.mix gave. It is not changed.
          rank, ranks: which part of each batch is read here. Given neither, what the loader was opened with counts; if
            that is one rank, and torch.distributed is initialized, its rank and world size. Where some ranks need the
            same samples (tensor parallelism), give the rank among those with samples of their own.
          endless: whether an iteration goes on with the next epoch, for ever.
        """
        super().__init__()
        self.loader = loader.with_options(**_ranks(loader, rank, ranks))
        self.endless = endless
        state = loader.state_dict()
        # In shared memory: at the end of an epoch a worker process tells the others, and those of the next epoch.
        self._place = torch.tensor([state["epoch"], state["sample"]], dtype=torch.int64).share_memory_()
        self._process = os.getpid()

    def __iter__(self) -> "_Batches":
        return _Batches(self)

    def __len__(self) -> int:
        """Batches of an epoch.

        Raises:
          TypeError: the dataset goes on for ever.
        """
        steps = None if self.endless else self.loader.steps_per_epoch
        if steps is None:
            raise TypeError("A dataset without end has no length.")
        return steps

    def state_dict(self) -> dict[str, Any]:
        """The loader's state at which the next iteration starts."""
        state: dict[str, Any] = self.loader.state_dict()
        return state | {"epoch": int(self._place[EPOCH]), "sample": int(self._place[SAMPLE])}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Lets the next iteration start at the state of a loader.

        Raises:
          UnusableInputError: the state belongs to other data, or to another seed.
        """
        self.loader.load_state_dict(state)
        self._place[EPOCH], self._place[SAMPLE] = state["epoch"], state["sample"]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_process": None}

    def part(self, worker: int, workers: int, start: dict[str, Any]) -> Loader:
        """The loader of one of DataLoader's workers, at a state."""
        loader = self.loader
        if self._process not in (None, os.getpid()):
            # A forked process has copies of its parent's locks, which nobody unlocks.
            loader = pickle.loads(pickle.dumps(loader))
        loader = loader.with_options(worker=worker, workers=workers)
        loader.load_state_dict(start)
        return loader

    def ended(self, state: dict[str, Any]) -> None:
        """Takes note that an iteration came to its end."""
        if self._goes_on:
            self._place[EPOCH], self._place[SAMPLE] = state["epoch"], state["sample"]


class _Batches(Iterator[Batch]):
    """The part of an iteration's batches that is made in this process.

    Its state is where the iteration started and how many batches were made here since: StatefulDataLoader keeps a state
    for each worker.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        info = torch.utils.data.get_worker_info()
        self._worker, self._workers = (info.id, info.num_workers) if info else (0, 1)
        self.load_state_dict({"start": dataset.state_dict(), "made": 0, "workers": self._workers})

    def __iter__(self) -> "_Batches":
        return self

    def __next__(self) -> Batch:
        if self._batches is None:
            raise StopIteration
        try:
            batch = next(self._batches)
        except StopIteration:
            self._end()
            raise
        self._made += 1
        return {name: torch.from_numpy(array) for name, array in batch.items()}

    def state_dict(self) -> dict[str, Any]:
        return {"start": self._start, "made": self._made, "workers": self._workers}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["workers"] != self._workers:
            raise UnusableInputError(
                f"This state was saved with {state['workers']} workers and cannot be taken up with {self._workers}: "
                "use as many, or maskmill.loaders.torch.DataLoader, whose states fit any number."
            )
        self._start, self._made = state["start"], state["made"]
        loader = self._dataset.part(self._worker, self._workers, self._start)
        left = None if self._dataset.endless else loader.steps_left
        self._last = None if left is None else loader.state_after(left)
        steps = self._made * self._workers
        self._batches: Iterator[dict[str, npt.NDArray[np.generic]]] | None = None
        if left is None or steps < left:
            loader.load_state_dict(loader.state_after(steps))
            self._batches = loader.endless() if self._dataset.endless else iter(loader)
        else:
            self._end()

    def _end(self) -> None:
        self._batches = None
        if self._last is not None:
            self._dataset.ended(self._last)


class _LedDataset(Dataset):
    """A dataset whose DataLoader says where each iteration starts."""

    _goes_on = False


class DataLoader(torch.utils.data.DataLoader):
    """torch's DataLoader over a loader, with a state that fits any number of ranks and workers.

    Each iteration goes on where the last one ended or was broken off, to the end of the epoch.
    """

    def __init__(
        self,
        loader: Loader,
        *,
        num_workers: int = 0,
        rank: int | None = None,
        ranks: int | None = None,
        endless: bool = False,
        **options: Any,
    ) -> None:
        """Starts where the loader stands.

        Args:
          loader, rank, ranks, endless: as of `Dataset`.
          num_workers: worker processes; 0: a thread of this process makes the batches.
          options: more arguments of torch's DataLoader: pin_memory, prefetch_factor, persistent_workers,
            multiprocessing_context, …

        Raises:
          UnusableInputError: in_order=False, which would lose the order.
        """
        if not options.get("in_order", True):
            raise UnusableInputError("in_order=False gives batches in no certain order; leave it out.")
        dataset = _LedDataset(loader, rank=rank, ranks=ranks, endless=endless)
        super().__init__(dataset, batch_size=None, num_workers=num_workers, **options)
        self._led = dataset
        self._given = 0
        self._iteration = 0
        self._steps, self._seconds, self._waited = 0, 0.0, 0.0

    def __iter__(self) -> Iterator[Batch]:  # type: ignore[override]
        self._iteration += 1
        iteration = self._iteration
        self.load_state_dict(self.state_dict())
        batches = super().__iter__()
        asked = time.perf_counter()
        for batch in batches:
            self._given += 1
            self._steps += 1
            self._waited += time.perf_counter() - asked
            yield batch
            if iteration != self._iteration:
                raise RuntimeError("This iteration cannot go on, because a later one of the same DataLoader started.")
            now = time.perf_counter()
            self._seconds += now - asked
            asked = now

    def state_dict(self) -> dict[str, Any]:
        """The state of the whole run after the last batch that was given here: the same on every rank."""
        state: dict[str, Any] = self._led.loader.state_after(self._given)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Lets the next iteration start at the state of a loader, whatever ranks and workers it was saved with.

        Raises:
          UnusableInputError: the state belongs to other data, or to another seed.
        """
        self._led.load_state_dict(state)
        self._given = 0

    def stats(self) -> dict[str, float]:
        """How this process has fared: `steps`, `seconds`, and `wait_share`, the share of them waiting for batches."""
        return {
            "steps": self._steps,
            "seconds": self._seconds,
            "wait_share": self._waited / self._seconds if self._seconds else 0.0,
        }


def _ranks(loader: Loader, rank: int | None, ranks: int | None) -> dict[str, int]:
    """The options `rank` and `ranks` of the loader of this process."""
    if (rank is None) != (ranks is None):
        raise UnusableInputError("rank and ranks must be given together, or neither.")
    if rank is not None and ranks is not None:
        return {"rank": rank, "ranks": ranks}
    distributed = torch.distributed
    if loader.options.ranks == 1 and distributed.is_available() and distributed.is_initialized():
        return {"rank": distributed.get_rank(), "ranks": distributed.get_world_size()}
    return {}
