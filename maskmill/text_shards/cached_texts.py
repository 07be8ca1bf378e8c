"""Texts in the work directory that are caches: byte ranges of them are read, and what is gone is made again."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from maskmill.errors import MissingFileError
from maskmill.storage import completions, files
from maskmill.storage.read_ahead import LOOK_BYTES, PART_BYTES, in_order
from maskmill.text_shards.byte_ranges import Ranges, near_ranges

T = TypeVar("T")


def read_cached(
    output: str, wanted: Iterable[tuple[T, Ranges]], path_of: Callable[[T], str], make: Callable[[T], object]
) -> Iterator[bytes]:
    """Yield byte ranges of texts, in order; those of more than 8 MiB in parts.

    A store is asked at once for ranges that lie near each other, and for many at a time.

    Args:
      output: the directory of the build.
      wanted: what has a text each, with its byte ranges [k, 2], which are in order.
      path_of: gives the path of its text.
      make: makes the text again.

    Raises:
      RunFailedError: a text is shorter than it was.
    """
    gap = 0 if files.is_local(output) else LOOK_BYTES
    reads = [
        ((owner, group), group[-1][1] - group[0][0])
        for owner, ranges in wanted
        for group in near_ranges(ranges, gap, PART_BYTES)
    ]

    def read(part: tuple[T, list[tuple[int, int]]]) -> bytes | None:
        owner, group = part
        with contextlib.suppress(MissingFileError):
            return files.read_range(path_of(owner), group[0][0], group[-1][1])
        return None

    made = set()
    for (owner, group), content in in_order(output, read, reads):
        if content is None:
            if path_of(owner) not in made:
                make(owner)
                made.add(path_of(owner))
            content = files.read_range(path_of(owner), group[0][0], group[-1][1])
        if len(content) != group[-1][1] - group[0][0]:
            raise completions.lost_meanwhile(path_of(owner))
        for start, end in group:
            yield content[start - group[0][0] : end - group[0][0]]
