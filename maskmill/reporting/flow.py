"""The way of documents from the input to the text, as a drawing from top to bottom."""

import dataclasses
from collections.abc import Sequence

from maskmill.reporting.documents import Documents

_MOST_BRANCHES = 7
_LEAST_THICKNESS = 0.012


@dataclasses.dataclass(frozen=True, kw_only=True)
class Branch:
    """What leaves the stream, or comes out at its end.

    Attributes:
      label: what it is.
      count: documents.
      start, end: its place across the stream, as shares of all documents.
      is_kept: whether it is in the text.
    """

    label: str
    count: int
    start: float
    end: float
    is_kept: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flow:
    """A stream of documents: `read` at its beginning; what is left out branches off, and what is kept comes out."""

    read: int
    kept: int
    branches: tuple[Branch, ...]


def flow_of(documents: Documents) -> Flow | None:
    """The flow of documents; None where nothing is known of what was read."""
    lost = [(entry.reason, entry.count) for entry in documents.set_aside]
    kept = documents.read - documents.lost
    if not documents.read or kept < 0:
        return None
    lost.sort(key=lambda entry: -entry[1])
    shown, others = lost[:_MOST_BRANCHES], lost[_MOST_BRANCHES:]
    if others:
        shown.append((f"{len(others)} other reasons", sum(count for _, count in others)))
    held_out = min(kept, documents.eval)
    ends = [("training text", kept - held_out), ("eval set", held_out)]
    streams = [(label, count, True) for label, count in ends if count] + [(label, n, False) for label, n in shown]
    return Flow(read=documents.read, kept=kept, branches=tuple(_placed(streams, documents.read)))


def _placed(streams: Sequence[tuple[str, int, bool]], total: int) -> list[Branch]:
    """Streams beside each other; none so thin that it cannot be seen."""
    sizes = [max(_LEAST_THICKNESS, count / total) for _, count, _ in streams]
    scale, at, placed = 1 / sum(sizes), 0.0, []
    for (label, count, is_kept), size in zip(streams, sizes, strict=True):
        placed.append(Branch(label=label, count=count, start=at, end=at + size * scale, is_kept=is_kept))
        at += size * scale
    return placed
