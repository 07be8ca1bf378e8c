"""A loader's batches, or its samples, for grain.

`Batches` is an IterDataset in the loader's order; its iterators have grain's get_state and set_state. `Samples` is a
source of single samples, for grain's own shuffling, mixing and batching.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from maskmill.errors import UnusableInputError
from maskmill.loaders.frameworks import needed_by
from maskmill.loaders.parts import Part
from maskmill.loading.batches import Batch
from maskmill.loading.loader import Loader

with needed_by(__name__, "grain", "install it with: pip install grain", "grain"):
    import grain


class Batches(grain.IterDataset):
    """The batches of a loader: dicts of arrays, as described by `loader.spec`.

    Each iterator starts at the loader's position at the time of creation: like all of grain's datasets, it is the same
    in every iteration. It ends with the epoch, and `.repeat()` would repeat the same order, so use `endless=True` for
    more than one epoch. `mp_prefetch` works: each of grain's workers makes its part of the batches. grain's state then
    fits only the same number of workers; `loader.state_after(steps)` fits any number.
    """

    def __init__(self, loader: Loader, *, endless: bool = False) -> None:
        """Start at the loader's position, which is not changed. endless: continue with the next epochs, without end."""
        super().__init__()
        self._loader = loader.with_options()
        self._endless = endless

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Keep every n-th batch, n = `sl.step`; grain calls this in its worker processes.

        Raises:
          UnusableInputError: grain requests neighbouring batches for a worker.
        """
        if sequential_slice:
            raise UnusableInputError("sequential_slice=True would change the order of the batches; leave it out.")
        chosen = self._loader.options
        self._loader = self._loader.with_options(
            worker=chosen.worker + sl.start * chosen.workers, workers=chosen.workers * sl.step
        )

    def __iter__(self) -> grain.DatasetIterator:
        return _BatchIterator(Part(self._loader.with_options(), endless=self._endless))


class _BatchIterator(grain.DatasetIterator):
    def __init__(self, part: Part) -> None:
        super().__init__()
        self._part = part

    def __next__(self) -> Batch:
        return next(self._part)

    def get_state(self) -> dict[str, Any]:
        return self._part.state_dict()

    def set_state(self, state: dict[str, Any]) -> None:
        self._part.load_state_dict(state)


class Samples:
    """The samples of a loader's data set by their numbers, for grain.MapDataset.source or grain.DataLoader.

    A sample is a dict of arrays as in `loader.spec`, without the batch axis. Numbers beyond one epoch's samples are
    those of the next epoch, with other masks if masks are drawn. Neighbouring samples are read fastest, in batches: a
    single sample costs the reading of its whole block.
    """

    def __init__(self, loader: Loader, *, epochs: int = 1) -> None:
        """Provide the samples of `epochs` epochs, in the order of the files.

        Raises:
          UnusableInputError: the loader mixes several data sets.
        """
        if len(loader.data_sets) > 1:
            raise UnusableInputError(
                "maskmill.loaders.grain.Samples is for one data set; mix in grain, or use Batches."
            )
        self._loader = loader.with_options(ranks=1, rank=0, workers=1, worker=0)
        self._samples = loader.data_sets[0].samples
        self._epochs = epochs

    def __len__(self) -> int:
        return self._samples * self._epochs

    def __getitem__(self, index: int) -> Batch:
        return self._getitems([int(index)])[0]

    def _getitems(self, indices: Sequence[int]) -> list[Batch]:
        """Return several samples at once; grain requires this name."""
        numbers = np.asarray(indices, np.int64)
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= len(self)):
            raise IndexError(f"index must be from 0 to {len(self) - 1}")
        epochs, samples = np.divmod(numbers, self._samples)
        rows: list[Batch] = [{}] * len(numbers)
        for epoch in np.unique(epochs):
            places = np.flatnonzero(epochs == epoch)
            batch = self._loader.rows_of(samples[places], epoch=int(epoch))
            for row, place in enumerate(places):
                rows[place] = {name: array[row] for name, array in batch.items()}
        return rows

    def __repr__(self) -> str:
        """Describe the content: grain's DataLoader compares it when it resumes."""
        data_set = self._loader.data_sets[0]
        return (
            f"Samples(fingerprint={data_set.fingerprint}, seed={self._loader.options.seed}, samples={self._samples}, "
            f"epochs={self._epochs})"
        )
