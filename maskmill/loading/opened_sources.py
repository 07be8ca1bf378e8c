"""Open the data sets that a loader reads, also in other processes."""

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any, Literal

from maskmill.reading.block_reader import BlockReader
from maskmill.reading.byte_ranges import ByteRanges, LocalRanges, Stamp
from maskmill.reading.data_set import DataSet
from maskmill.reading.opening import open_data_set, reader_of
from maskmill.storage import files

Split = Literal["train", "eval"]


@dataclasses.dataclass(frozen=True)
class Source:
    """An open data set.

    Attributes:
      data_set: its description.
      reader: reads its files.
      ranges: reads the bytes of its files.
      reopen: opens the same data set in another process; picklable. None: the source itself is picklable.
    """

    data_set: DataSet
    reader: BlockReader
    ranges: ByteRanges
    reopen: "Callable[[], Source] | None" = None

    def reopened(self) -> "Source":
        """Return the same data set, with new files and connections."""
        return self if self.reopen is None else self.reopen()

    def __reduce__(self) -> Any:
        if self.reopen is not None:
            return self.reopen, ()
        return Source, (self.data_set, self.reader, self.ranges)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpeningOptions:
    """The options of opening a data set, which `maskmill.open` describes."""

    split: Split = "train"
    vocab_file: str | None = None
    vocabulary_size: int | None = None
    max_seq_length: int | None = None
    checksums: bool = False
    cache_dir: str | None = None
    cache_bytes: int | None = None
    text: str | None = None

    def ranges(self, path: str, stamps: dict[str, Stamp] | None = None) -> ByteRanges:
        """Return a reader of the files under a path; stamps: see LocalRanges."""
        if files.is_local(path):
            return LocalRanges(stamps)
        from maskmill.reading.remote import CACHE_BYTES, open_ranges

        return open_ranges(path, self.cache_dir, CACHE_BYTES if self.cache_bytes is None else self.cache_bytes)

    def data_set(self, path: str | os.PathLike[str], ranges: ByteRanges) -> DataSet:
        """Return the data set under a path, checked."""
        return open_data_set(
            path,
            split=self.split,
            ranges=ranges,
            vocab_file=self.vocab_file,
            vocabulary_size=self.vocabulary_size,
            max_seq_length=self.max_seq_length,
            checksums=self.checksums,
            text=self.text,
        )


def source_of(
    data_set: DataSet,
    options: OpeningOptions,
    ranges: ByteRanges | None = None,
    stamps: dict[str, Stamp] | None = None,
) -> Source:
    """Return an open data set, which other processes can open again.

    ranges: reads its files; None: open them, with these stamps (LocalRanges).
    """
    if ranges is None:
        ranges = options.ranges(data_set.path, stamps)
    seen = ranges.stamps if isinstance(ranges, LocalRanges) else None
    reopen = functools.partial(source_of, data_set, options, stamps=seen)
    return Source(data_set, reader_of(data_set, ranges), ranges, reopen)
