"""The counts of a loader's batches, and the time that its consumer waited."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoaderStats:
    """Counts since the loader was opened.

    Attributes:
      batches, samples, tokens: batches that the consumer got from this reader, their samples and their tokens (pieces
        without padding).
      padding: rows of padding, with tail="pad".
      dropped: samples dropped at the ends of epochs, with tail="drop", of all ranks together.
      seconds: from the first request for a batch to the last batch, without pauses between iterations.
      waited: the seconds of these in which the consumer waited for a batch.
      bytes_read, bytes_fetched: bytes of files read, and those of them fetched over the network.
      cache_hits, cache_misses: reads that the local cache of remote files had, or had not.
    """

    batches: int = 0
    samples: int = 0
    tokens: int = 0
    padding: int = 0
    dropped: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    bytes_read: int = 0
    bytes_fetched: int = 0
    cache_hits: int = 0
    cache_misses: int = 0

    @property
    def samples_per_second(self) -> float:
        """Samples a second, by the consumer's pace."""
        return self.samples / self.seconds if self.seconds else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Tokens a second, by the consumer's pace."""
        return self.tokens / self.seconds if self.seconds else 0.0

    @property
    def wait_share(self) -> float:
        """The share of the time in which the consumer waited, 0 to 1."""
        return self.waited / self.seconds if self.seconds else 0.0

    def since(self, earlier: "LoaderStats") -> "LoaderStats":
        """Return these counts less earlier ones of the same loader."""
        return LoaderStats(
            **{
                field.name: getattr(self, field.name) - getattr(earlier, field.name)
                for field in dataclasses.fields(LoaderStats)
            }
        )

    def plus(self, **more: float) -> "LoaderStats":
        """Return these counts with some raised."""
        return dataclasses.replace(self, **{name: getattr(self, name) + count for name, count in more.items()})
