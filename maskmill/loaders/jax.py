"""A loader's batches as global arrays of JAX.

    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    for batch in maskmill.loaders.jax.Batches(maskmill.open("demo", batch_size=256), sharding): ...

Each process reads the rows that its devices hold according to the sharding.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.loaders.frameworks import needed_by
from maskmill.loading.loader import Loader
from maskmill.loading.states import State

with needed_by(__name__, "JAX", "install it with: pip install jax", "jax"):
    import jax

Batch = dict[str, jax.Array]


class Batches:
    """Iterates over a loader's batches as dicts of global arrays.

    Each iteration continues where the last one ended or was interrupted, to the end of the epoch. All processes must
    iterate alike. Without jax_enable_x64, JAX turns int64 arrays (`samples`, features="huggingface") into int32.
    """

    def __init__(self, loader: Loader, sharding: jax.sharding.Sharding, *, endless: bool = False) -> None:
        """Start at the loader's position, which is not changed.

        Args:
          loader: from maskmill.open or maskmill.mix, with the batch size of all processes together. Its rank is
            ignored.
          sharding: how the arrays of a batch are laid out; axis 0 is the batch. Axis 1 of a NamedSharding applies to
            arrays with a value for each token, not to those with one for each masked position, or one in all.
          endless: whether iterations continue with the next epochs, without end.

        Raises:
          UnusableInputError: the batch cannot be split evenly among the devices, or no device of this process has a
            part.
        """
        batch_size = loader.options.batch_size
        first, last = _rows_here(sharding, batch_size)
        # The smallest of equal parts that has all rows of this process: its own rows if devices are in order.
        ranks = max(
            ranks
            for ranks in range(1, batch_size + 1)
            if batch_size % ranks == 0 and first * ranks // batch_size == last * ranks // batch_size
        )
        self._sharding = sharding
        self._endless = endless
        self._loader = loader.with_options(rank=first * ranks // batch_size, ranks=ranks)
        self._start = self._loader.options.rank * (batch_size // ranks)

    def __iter__(self) -> Iterator[Batch]:
        """Yield the remaining batches of the epoch."""
        for batch in self._loader.endless() if self._endless else self._loader:
            of_pieces = next(iter(batch.values())).shape
            yield {name: self._global(array, 2 if array.shape == of_pieces else 1) for name, array in batch.items()}

    def state_dict(self) -> State:
        """Return the state of the whole run after the last batch returned here: the same in every process."""
        return self._loader.state_dict()

    def load_state_dict(self, state: State) -> None:
        """Start the next iteration at the state of a loader, whatever the number of processes that saved it.

        Raises:
          UnusableInputError: the state belongs to other data, or to another seed.
        """
        self._loader.load_state_dict(state)

    def _global(self, array: npt.NDArray[np.generic], axes: int) -> jax.Array:
        """Return the global array whose local rows are in `array`, with its first `axes` axes laid out."""
        shape = (self._loader.options.batch_size, *array.shape[1:])

        def part(index: tuple[slice, ...]) -> npt.NDArray[np.generic]:
            start, stop, _ = index[0].indices(shape[0])
            return array[(slice(start - self._start, stop - self._start), *index[1:])]

        return jax.make_array_from_callback(shape, _of_axes(self._sharding, axes), part)


def _rows_here(sharding: jax.sharding.Sharding, batch_size: int) -> tuple[int, int]:
    """Return the first and the last row of a batch on devices of this process.

    Raises:
      UnusableInputError: the batch cannot be split evenly, or no device of this process has a part.
    """
    try:
        indices = _of_axes(sharding, 1).addressable_devices_indices_map((batch_size,))
    except ValueError as error:
        raise UnusableInputError(
            f"A batch of {batch_size} samples cannot be shared evenly by the {sharding.num_devices} devices of this "
            "sharding; choose a multiple for batch_size."
        ) from error
    rows = [index[0].indices(batch_size) for index in indices.values() if index is not None]
    if not rows:
        raise UnusableInputError("No device of this process is in the sharding; give one over all processes.")
    return min(start for start, _, _ in rows), max(stop for _, stop, _ in rows) - 1


def _of_axes(sharding: jax.sharding.Sharding, axes: int) -> Any:
    """Return the sharding of the first axes; the others are replicated."""
    if isinstance(sharding, jax.sharding.NamedSharding) and len(sharding.spec) > axes:
        spec = jax.sharding.PartitionSpec(*sharding.spec[:axes])
        return jax.sharding.NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)
    return sharding
