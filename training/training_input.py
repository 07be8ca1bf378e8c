"""The batches of a run, for training and for evaluation, the same on any number of hosts.

They are made by maskmill/loading. The order of the training examples is a function of the data, the seed and the step
alone, so a run resumes where it stopped. Masks that are drawn while reading are one, too.
"""

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Mapping

import numpy as np

from maskmill.errors import UnusableInputError
from maskmill.loading.loader import Loader
from maskmill.loading.opened_sources import OpeningOptions, source_of
from maskmill.loading.options import LoaderOptions
from maskmill.reading.data_set import DataSet
from training.inputs import Arrays, Feature

# The seed of the masks of an evaluation set, so that all runs are held against the same.
_EVALUATION_SEED = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingInput:
    """The batches of a training run.

    Args:
      data_set: the examples.
      features: what a batch has of them.
      batch: examples in a batch of all hosts.
      seed: gives the order, and the masks that are drawn while reading.
      shuffle: whether to shuffle at all; otherwise the examples come in file order.
      shuffle_buffer: examples that are shuffled among each other.
      host: the number of this host, from 0.
      hosts: the number of hosts.

    Raises:
      UnusableInputError: the batch is no multiple of the number of hosts.
    """

    data_set: DataSet
    features: Mapping[str, Feature]
    batch: int
    seed: int = 0
    shuffle: bool = True
    shuffle_buffer: int = 16384
    host: int = 0
    hosts: int = 1

    def __post_init__(self) -> None:
        if self.batch % self.hosts:
            raise UnusableInputError(
                f"The batch of {self.batch} examples cannot be shared evenly by {self.hosts} hosts; choose a multiple."
            )

    def __call__(self, step: int) -> "TrainingBatches":
        """This host's batches, from the one that follows `step` batches on, without end.

        A batch at the end of an epoch is filled up with the first examples of the next.
        """
        options = LoaderOptions(
            batch_size=self.batch,
            seed=self.seed,
            shuffle=self.shuffle,
            window=self.shuffle_buffer,
            rank=self.host,
            ranks=self.hosts,
            tail="carry",
        )
        loader = _loader(self.data_set, options)
        loader.load_state_dict(loader.state_after(step))
        return TrainingBatches(loader, self.features)


class TrainingBatches(Iterator[Arrays]):
    """Batches of a training run, arrays [batch / hosts, …], which a thread makes ahead of use."""

    def __init__(self, loader: Loader, features: Mapping[str, Feature]) -> None:
        """Takes the loader's batches from where it stands, and closes it in the end."""
        self._loader = loader
        self._batches = loader.endless()
        self._features = features

    @property
    def is_ready(self) -> bool:
        """Whether the next batch is there, so that nobody has to wait for it."""
        return self._batches.is_ready

    def __next__(self) -> Arrays:
        """The next batch.

        Raises:
          UnusableInputError: an example cannot be read or used.
        """
        return _arrays(next(self._batches), self._features)

    def close(self) -> None:
        """Ends the thread; closes files and connections."""
        self._loader.close()


class EvaluationInput:
    """The batches of an evaluation set, in file order.

    Args:
      data_set: the examples.
      features: what a batch has of them.
      batch: examples in a batch of all hosts.
      max_batches: the largest number of batches.
      host: the number of this host, from 0.
      hosts: the number of hosts.
    """

    def __init__(
        self,
        data_set: DataSet,
        features: Mapping[str, Feature],
        *,
        batch: int,
        max_batches: int | None = None,
        host: int = 0,
        hosts: int = 1,
    ) -> None:
        self._features = features
        self._max_batches = max_batches
        options = LoaderOptions(
            batch_size=batch, seed=_EVALUATION_SEED, shuffle=False, rank=host, ranks=hosts, tail="pad"
        )
        self._loader = _loader(data_set, options)
        self._start = self._loader.state_dict()

    def __call__(self) -> Iterator[Arrays]:
        """This host's share of each batch, from the first one on: arrays [batch / hosts, …].

        The last batch is filled up with zeros. `example_weights` (float32 [batch / hosts]) is 1 for an example and 0
        for what fills up.

        Raises:
          UnusableInputError: an example cannot be read or used.
        """
        self._loader.load_state_dict(self._start)
        with contextlib.closing(iter(self._loader)) as batches:
            for batch in itertools.islice(batches, self._max_batches):
                yield _arrays(batch, self._features) | {"example_weights": batch["sample_weights"]}


def _loader(data_set: DataSet, options: LoaderOptions) -> Loader:
    return Loader([source_of(data_set, OpeningOptions())], options)


def _arrays(batch: Mapping[str, np.ndarray], features: Mapping[str, Feature]) -> Arrays:
    """What a task takes of a loader's batch: arrays [B, …], and [B] for scalar features."""
    arrays = {}
    for name, feature in features.items():
        if name not in batch and feature.optional:
            arrays[name] = np.zeros_like(batch["input_ids"])
        else:
            arrays[name] = batch[name].reshape(-1) if feature.scalar else batch[name]
    return arrays
