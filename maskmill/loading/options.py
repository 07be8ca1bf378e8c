"""What a user can choose when a data set is read."""

import dataclasses
from typing import Literal

from maskmill.arguments import check_fields
from maskmill.errors import UnusableInputError

Tail = Literal["drop", "pad", "repeat", "carry"]
Features = Literal["google", "v2", "huggingface"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoaderOptions:
    """How samples become batches.

    Attributes:
      batch_size: samples of a batch of all ranks together; a multiple of `ranks`.
      seed: any integer; gives the order and the masks.
      shuffle: whether samples are shuffled; otherwise they come in the order of the files.
      window: most samples that are shuffled among each other at a time. Less if a row is large.
      rank, ranks: which part of each batch is read here: rows [rank, rank + 1) * batch_size / ranks.
      worker, workers: of the rank's batches, which are read here: those whose number modulo `workers` is `worker`.
      tail: the last batch of an epoch, if samples do not fill it. "drop": left out. "pad": filled up with rows of
        padding, and `sample_weights` (float32[batch]) tells them by 0. "repeat": filled up with the epoch's first
        samples. "carry": filled up with the first samples of the next epoch, which starts behind them.
      features: what arrays are called: "google" as in BERT, "v2" as in TensorFlow Models, or "huggingface", which has
        labels for every piece (-100: none) and int64, as a model of transformers takes.
      with_samples: whether batches have `samples` (int64[batch]), the numbers of their samples, -1 for padding.
      prefetch: how many batches are made ahead of use.
    """

    batch_size: int
    seed: int = 0
    shuffle: bool = True
    window: int = 16384
    rank: int = 0
    ranks: int = 1
    worker: int = 0
    workers: int = 1
    tail: Tail = "drop"
    features: Features = "google"
    with_samples: bool = False
    prefetch: int = 4

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("batch_size", "window", "ranks", "workers", "prefetch"):
            if getattr(self, name) < 1:
                raise UnusableInputError(f"{name} is {getattr(self, name)}, but it must be 1 or more.")
        for name, count in (("rank", "ranks"), ("worker", "workers")):
            if not 0 <= getattr(self, name) < getattr(self, count):
                raise UnusableInputError(
                    f"{name} is {getattr(self, name)}, but it must be from 0 to {getattr(self, count) - 1}: "
                    f"{count} is {getattr(self, count)}."
                )
        if self.batch_size % self.ranks:
            raise UnusableInputError(
                f"A batch of {self.batch_size} samples cannot be shared evenly by {self.ranks} ranks; choose a "
                "multiple for batch_size, which counts the samples of all ranks together."
            )
