"""A loader's batches as a tf.data.Dataset."""

from collections.abc import Iterator

from maskmill.loaders.frameworks import needed_by
from maskmill.loading.batches import Batch
from maskmill.loading.loader import Loader

with needed_by(__name__, "TensorFlow", "install it with: pip install tensorflow", "tensorflow"):
    import tensorflow as tf


def dataset(loader: Loader, *, endless: bool = False) -> tf.data.Dataset:
    """Return the batches of a loader, from where it stands; the loader is not changed.

    Gives dicts of tensors with the names, shapes and dtypes of `loader.spec`. Each iteration gives what is left of an
    epoch, and the next one gives the next epoch, as Keras' fit(epochs=…) expects. An iteration that is broken off is
    begun again. tf.data asks for batches ahead of use, so the state of a training is `loader.state_after(batches)`,
    with the batches that it had since the loader stood where it stands.

    With tf.distribute, make one for each process, with its rank: loader.with_options(rank=…, ranks=…).

    Args:
      loader: what maskmill.open or maskmill.mix gave.
      endless: whether an iteration goes on with the next epoch, for ever.
    """
    signature = {name: tf.TensorSpec(spec.shape, spec.dtype) for name, spec in loader.spec.items()}
    return tf.data.Dataset.from_generator(_Epochs(loader, endless=endless), output_signature=signature)


class _Epochs:
    """Each call gives the batches of an iteration."""

    def __init__(self, loader: Loader, *, endless: bool) -> None:
        self._next = loader.with_options()
        self._endless = endless

    def __call__(self) -> Iterator[Batch]:
        loader = self._next.with_options()
        yield from loader.endless() if self._endless else loader
        self._next.load_state_dict(loader.state_dict())
