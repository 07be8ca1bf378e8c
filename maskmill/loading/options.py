"""The options of loading a data set."""

import dataclasses
from typing import Literal

from maskmill.arguments import check_fields
from maskmill.errors import UnusableInputError

Tail = Literal["drop", "pad", "repeat", "carry"]
Features = Literal["google", "v2", "huggingface"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoaderOptions:
    """The options of batches, which `maskmill.open` describes.

    Raises:
      UnusableInputError: a value is of another type, out of its range, or in conflict with another.
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
