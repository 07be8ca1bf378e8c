"""A loader's batches as a tf.data.Dataset."""

from collections.abc import Iterator

from maskmill.loaders.frameworks import needed_by
from maskmill.loading.batches import Batch
from maskmill.loading.loader import Loader

with needed_by(__name__, "TensorFlow", "install it with: pip install tensorflow", "tensorflow"):
    import tensorflow as tf


def dataset(loader: Loader, *, endless: bool = False) -> tf.data.Dataset:
    """Return the batches of a loader from its position; the loader is not changed.

    Elements are dicts of tensors with the names, shapes and dtypes of `loader.spec`. Each iteration covers the rest of
    an epoch, and the next one the next epoch, as Keras' fit(epochs=…) expects. An interrupted iteration starts again.
    tf.data requests batches ahead of use, so the state of a training is `loader.state_after(batches)`, with the number
    of batches used since the loader's position.

    With tf.distribute, make one for each process, with its rank: loader.with_options(rank=…, ranks=…).

    Args:
      loader: from maskmill.open or maskmill.mix.
      endless: whether iterations continue with the next epochs, without end.
    """
    signature = {name: tf.TensorSpec(spec.shape, spec.dtype) for name, spec in loader.spec.items()}
    return tf.data.Dataset.from_generator(_Epochs(loader, endless=endless), output_signature=signature)


class _Epochs:
    """Yields the batches of the next iteration at each call."""

    def __init__(self, loader: Loader, *, endless: bool) -> None:
        self._next = loader.with_options()
        self._endless = endless

    def __call__(self) -> Iterator[Batch]:
        loader = self._next.with_options()
        yield from loader.endless() if self._endless else loader
        self._next.load_state_dict(loader.state_dict())
