"""A loader's batches as PyTorch's tensors.

    import maskmill
    import maskmill.loaders.torch

    data = maskmill.open("demo", batch_size=256)
    loader = maskmill.loaders.torch.DataLoader(data, num_workers=2)
    for batch in loader: ...
    state = loader.state_dict()

`DataLoader` is torch.utils.data.DataLoader with a state that holds the number of samples that the training loop has
used. The state does not depend on ranks and workers, so it can be loaded with any number of them. `Dataset` is its data
set; you can also pass it to a DataLoader of your own, or to torchdata's StatefulDataLoader.
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

    Elements are dicts of tensors with the names, shapes and dtypes of `loader.spec`. Each of DataLoader's workers makes
    a part of the batches; DataLoader returns them in the loader's order.

    Each iteration covers the rest of an epoch, and the next one the next epoch. An interrupted iteration starts again,
    unless its last batches were already made: a dataset does not know how many of its workers' batches have been used.
    `DataLoader` below and StatefulDataLoader do.
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
        """Start at the loader's position, which is not changed.

        Args:
          loader: from maskmill.open or maskmill.mix.
          rank, ranks: the part of each batch that is read here. By default the loader's own; if that is one rank, and
            torch.distributed is initialized, its rank and world size. If several processes need the same samples
            (tensor parallelism), give the rank among those with samples of their own.
          endless: whether iterations continue with the next epochs, without end.
          goes_on: whether the next iteration covers the next epoch; otherwise each starts at the same position.
        """
        super().__init__()
        self._loader = loader.with_options(**_ranks(loader, rank, ranks))
        self._endless = endless
        self._goes_on = goes_on
        state = loader.state_dict()
        # The start of the next iteration. Worker processes share it, so that those of the next epoch see a change.
        self._place = torch.tensor([state["epoch"], state["sample"]], dtype=torch.int64).share_memory_()

    def __iter__(self) -> "TensorBatches":
        return TensorBatches(self)

    def __len__(self) -> int:
        """Return the number of batches of an epoch.

        Raises:
          TypeError: the dataset is endless.
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
        """Start the next iteration at the state of a loader.

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
        """Return this process's part of the next iteration."""
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
        """Return the start of the iteration, and the number of batches made here since."""
        return self._part.state_dict()

    def load_state_dict(self, state: State) -> None:
        """Continue from the state of the worker with this number, among as many workers."""
        self._part.load_state_dict(state)
        if self._part.is_done:
            # If all workers are done, StatefulDataLoader requests the next iteration without a call here.
            self._dataset.end(self._part.end)


class JoinedBatch(NamedTuple):
    """The tensors of a batch in one tensor, because each tensor costs a worker process some 0.3 ms to hand over.

    Attributes:
      data: uint8, the bytes of all tensors.
      layout: the name, dtype and shape of each tensor, and the offset of its bytes.
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

    Each iteration continues where the last one ended or was interrupted, to the end of the epoch.
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
        """Start at the loader's position, which is not changed.

        Args:
          loader, rank, ranks, endless: as for `Dataset`.
          num_workers: worker processes; 0: a thread of this process makes the batches.
          options: further arguments of torch's DataLoader: pin_memory, prefetch_factor, persistent_workers,
            multiprocessing_context, …

        Raises:
          UnusableInputError: in_order=False, which would lose the order.
        """
        if not options.get("in_order", True):
            raise UnusableInputError("in_order=False returns batches in an undefined order; leave it out.")
        self._source = Dataset(loader, rank=rank, ranks=ranks, endless=endless, goes_on=False)
        self._are_joined = num_workers > 0 and "collate_fn" not in options
        if self._are_joined:
            options["collate_fn"] = join
        super().__init__(self._source, batch_size=None, num_workers=num_workers, **options)
        self._returned = 0
        self._iteration = 0
        self._stats = LoaderStats()

    def __iter__(self) -> Iterator[Batch]:
        """Yield the remaining batches of the epoch.

        Raises:
          RuntimeError: the iteration is used after a later one has started.
        """
        self._iteration += 1
        iteration = self._iteration
        self.load_state_dict(self.state_dict())
        asked = time.perf_counter()
        for batch in super().__iter__():
            waited = time.perf_counter() - asked
            if iteration != self._iteration:
                raise RuntimeError("This iteration cannot continue, because a later one of this DataLoader started.")
            self._returned += 1
            yield apart(batch) if self._are_joined else batch
            now = time.perf_counter()
            self._stats = self._stats.plus(batches=1, seconds=now - asked, waited=waited)
            asked = now

    def state_dict(self) -> State:
        """Return the state of the whole run after the last batch returned here: the same on every rank."""
        return self._source.state_after(self._returned)

    def load_state_dict(self, state: State) -> None:
        """Start the next iteration at the state of a loader, whatever the ranks and workers that saved it.

        Raises:
          UnusableInputError: the state belongs to other data, or to another seed.
        """
        self._source.load_state_dict(state)
        self._returned = 0

    def stats(self) -> LoaderStats:
        """Return `batches`, `seconds` and `waited` of this process's training loop; workers count what they read."""
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
