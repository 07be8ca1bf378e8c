"""A loader's batches as PyTorch's tensors.

    import maskmill
    import maskmill.loaders.torch

    data = maskmill.open("demo", batch_size=256)
    loader = maskmill.loaders.torch.DataLoader(data, num_workers=2)
    for batch in loader: ...
    state = loader.state_dict()

`DataLoader` is torch.utils.data.DataLoader with a state that says how many samples the training loop has had. The state
does not depend on ranks and workers, so it can be taken up with any number of them. `Dataset` is what it reads; it also
goes into a DataLoader of your own, or into torchdata's StatefulDataLoader.
"""

import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from maskmill.errors import UnusableInputError
from maskmill.loaders.frameworks import needed_by
from maskmill.loaders.parts import Part
from maskmill.loading.loader import Loader
from maskmill.loading.states import State
from maskmill.loading.stats import LoaderStats

with needed_by(__name__, "PyTorch", "install it with: pip install torch", "torch"):
    import torch

Batch = dict[str, torch.Tensor]


class Dataset(torch.utils.data.IterableDataset):
    """The batches of a loader, for DataLoader(dataset, batch_size=None, num_workers=…).

    Gives dicts of tensors, with the names, shapes and dtypes of `loader.spec`. Each of DataLoader's workers makes a
    part of the batches; DataLoader gives them in the order of the loader.

    Each iteration gives what is left of an epoch, and the next one gives the next epoch. An iteration that is broken
    off is begun again, unless its last batches were made already: a dataset does not know which of the batches that
    workers made have been used. `DataLoader` below and StatefulDataLoader know.
    """

    def __init__(
        self,
        loader: Loader,
        *,
        rank: int | None = None,
        ranks: int | None = None,
        endless: bool = False,
        goes_on: bool = True,
    ) -> None:
        """Start where the loader stands, which is not changed.

        Args:
          loader: what maskmill.open or maskmill.mix gave.
          rank, ranks: which part of each batch is read here. Given neither, what the loader was opened with counts; if
            that is one rank, and torch.distributed is initialized, its rank and world size. If some processes need
            the same samples (tensor parallelism), give the rank among those with samples of their own.
          endless: whether an iteration goes on with the next epoch, for ever.
          goes_on: whether the next iteration gives the next epoch; otherwise each starts at the same place.
        """
        super().__init__()
        self._loader = loader.with_options(**_ranks(loader, rank, ranks))
        self._endless = endless
        self._goes_on = goes_on
        state = loader.state_dict()
        # Where the next iteration starts. Worker processes share it, and those of the next epoch are told by it.
        self._place = torch.tensor([state["epoch"], state["sample"]], dtype=torch.int64).share_memory_()

    def __iter__(self) -> "TensorBatches":
        return TensorBatches(self)

    def __len__(self) -> int:
        """Return batches of an epoch.

        Raises:
          TypeError: the dataset goes on for ever.
        """
        steps = None if self._endless else self._loader.steps_per_epoch
        if steps is None:
            raise TypeError("A dataset without end has no length.")
        return steps

    def state_dict(self) -> State:
        """Return the loader's state at which the next iteration starts."""
        epoch, sample = self._place.tolist()
        return self._loader.state_dict() | {"epoch": epoch, "sample": sample}

    def load_state_dict(self, state: State) -> None:
        """Let the next iteration start at the state of a loader.

        Raises:
          UnusableInputError: the state belongs to other data, or to another seed.
        """
        self._loader.load_state_dict(state)
        self._place.copy_(torch.tensor([state["epoch"], state["sample"]]))

    def state_after(self, steps: int) -> State:
        """Return the loader's state after so many batches of the next iteration."""
        self._loader.load_state_dict(self.state_dict())
        return self._loader.state_after(steps)

    def part(self) -> Part:
        """Return what this process makes of the next iteration."""
        info = torch.utils.data.get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        loader = self._loader.with_options(worker=worker, workers=workers)
        loader.load_state_dict(self.state_dict())
        return Part(loader, endless=self._endless)

    def end(self, state: State | None) -> None:
        """End an iteration: the next one starts at `state`."""
        if self._goes_on and state is not None:
            self.load_state_dict(state)


class TensorBatches(Iterator[Batch]):
    """An iteration over a dataset, with the state that StatefulDataLoader keeps for each worker."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._part = dataset.part()

    def __next__(self) -> Batch:
        try:
            batch = next(self._part)
        except StopIteration:
            self._dataset.end(self._part.end)
            raise
        return {name: torch.from_numpy(array) for name, array in batch.items()}

    def state_dict(self) -> State:
        """Return where the iteration started, and how many batches were made here since."""
        return self._part.state_dict()

    def load_state_dict(self, state: State) -> None:
        """Go to where the same one of as many workers stood."""
        self._part.load_state_dict(state)
        if self._part.is_done:
            # If all are done, StatefulDataLoader asks for the next iteration without asking this one again.
            self._dataset.end(self._part.end)


class JoinedBatch(NamedTuple):
    """The tensors of a batch in one, because each that a worker process hands over takes it some 0.3 ms.

    Attributes:
      data: uint8, the bytes of all tensors.
      layout: the name, dtype and shape of each, and where its bytes start.
    """

    data: torch.Tensor
    layout: tuple[tuple[str, torch.dtype, tuple[int, ...], int], ...]


_ALIGNMENT = 64


def join(batch: Batch) -> JoinedBatch:
    """Copy the tensors of a batch into one."""
    layout, end = [], 0
    for name, tensor in batch.items():
        layout.append((name, tensor.dtype, tuple(tensor.shape), end))
        end += -(-tensor.nbytes // _ALIGNMENT) * _ALIGNMENT
    joined = JoinedBatch(torch.empty(end, dtype=torch.uint8), tuple(layout))
    for name, part in apart(joined).items():
        part.copy_(batch[name])
    return joined


def apart(joined: JoinedBatch) -> Batch:
    """Return the tensors of a batch; they share their memory with `joined`."""
    batch = {}
    for name, dtype, shape, start in joined.layout:
        size = math.prod(shape) * dtype.itemsize
        batch[name] = joined.data[start : start + size].view(dtype).view(*shape)
    return batch


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
        """Start where the loader stands, which is not changed.

        Args:
          loader, rank, ranks, endless: as for `Dataset`.
          num_workers: worker processes; 0: a thread of this process makes the batches.
          options: more arguments of torch's DataLoader: pin_memory, prefetch_factor, persistent_workers,
            multiprocessing_context, …

        Raises:
          UnusableInputError: in_order=False, which would lose the order.
        """
        if not options.get("in_order", True):
            raise UnusableInputError("in_order=False gives the batches in no certain order; leave it out.")
        self._source = Dataset(loader, rank=rank, ranks=ranks, endless=endless, goes_on=False)
        self._are_joined = num_workers > 0 and "collate_fn" not in options
        if self._are_joined:
            options["collate_fn"] = join
        super().__init__(self._source, batch_size=None, num_workers=num_workers, **options)
        self._given = 0
        self._iteration = 0
        self._stats = LoaderStats()

    def __iter__(self) -> Iterator[Batch]:
        """Yield what is left of the epoch.

        Raises:
          RuntimeError: an iteration is used on after a later one started.
        """
        self._iteration += 1
        iteration = self._iteration
        self.load_state_dict(self.state_dict())
        asked = time.perf_counter()
        for batch in super().__iter__():
            waited = time.perf_counter() - asked
            if iteration != self._iteration:
                raise RuntimeError("This iteration cannot go on, because a later one of the same DataLoader started.")
            self._given += 1
            yield apart(batch) if self._are_joined else batch
            now = time.perf_counter()
            self._stats = self._stats.plus(batches=1, seconds=now - asked, waited=waited)
            asked = now

    def state_dict(self) -> State:
        """Return the state of the whole run after the last batch that was given here: the same on every rank."""
        return self._source.state_after(self._given)

    def load_state_dict(self, state: State) -> None:
        """Let the next iteration start at the state of a loader, whatever ranks and workers it was saved with.

        Raises:
          UnusableInputError: the state belongs to other data, or to another seed.
        """
        self._source.load_state_dict(state)
        self._given = 0

    def stats(self) -> LoaderStats:
        """Return `batches`, `seconds` and `waited` of the training loop in this process; workers count what they
        read.
        """
        return self._stats


def _ranks(loader: Loader, rank: int | None, ranks: int | None) -> dict[str, int]:
    """Return the options `rank` and `ranks` for the loader of this process."""
    if (rank is None) != (ranks is None):
        raise UnusableInputError("rank and ranks belong together; give both, or neither.")
    if rank is not None and ranks is not None:
        return {"rank": rank, "ranks": ranks}
    distributed = torch.distributed
    if loader.options.ranks == 1 and distributed.is_available() and distributed.is_initialized():
        return {"rank": distributed.get_rank(), "ranks": distributed.get_world_size()}
    return {}
