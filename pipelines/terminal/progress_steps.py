"""The steps of a command, and how far each of them is."""

import dataclasses
import time

from maskmill.storage import progress

# A file system may round the times of files down.
_CLOCK_SLACK_SECONDS = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class State:
    """How far a step is.

    Attributes:
      pieces: of the step. made: how many this run has made. found: how many were there.
      bytes: of input of the pieces made.
      seconds: since the step has announced its work; if all is done, until the last piece was made.
    """

    pieces: int
    made: int
    found: int
    bytes: int
    seconds: float

    @property
    def done(self) -> int:
        """The pieces that are there."""
        return min(self.made + self.found, self.pieces)

    @property
    def is_done(self) -> bool:
        """Whether all pieces are there."""
        return self.done == self.pieces

    @property
    def rate(self) -> float | None:
        """Bytes a second of the pieces that this run has made: those that it has found took no time."""
        return self.bytes / self.seconds if self.made and self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """None if nothing can be said yet, or nothing is left."""
        if self.is_done or not self.made or self.seconds <= 0:
            return None
        return self.seconds / self.made * (self.pieces - self.done)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgressLine:
    """A step of a stage: the finished pieces of a kind below an output directory."""

    label: str
    output: str
    kind: str

    def look(self, began: float) -> State | None:
        """How far the step is, by what it has announced and by its completion records; None before there is work.

        began: when the run began, in seconds of the epoch.
        """
        announced = progress.announced(self.output, self.kind)
        if announced is None or not announced.pieces or announced.time < began - _CLOCK_SLACK_SECONDS:
            return None  # no work, or that of an earlier run
        return state_of(announced, progress.finished_since(self.output, self.kind, began), time.time())


def state_of(announced: progress.Announced, finished: progress.Finished, now: float) -> State:
    """How far a step is at a time in seconds of the epoch."""
    is_done = finished.made + finished.found >= announced.pieces
    return State(
        pieces=announced.pieces,
        made=finished.made,
        found=finished.found,
        bytes=announced.bytes * min(finished.made, announced.pieces) // announced.pieces,
        seconds=max(0.0, (finished.last if is_done and finished.made else now) - announced.time),
    )


class Counter:
    """A step that is told how far it is, by this process. It has no work before it knows how many pieces there are."""

    def __init__(self, label: str, *, pieces: int = 0) -> None:
        self.label = label
        self._pieces, self._made, self._bytes = pieces, 0, 0
        self._began, self._last = time.time(), 0.0

    def count(self, size: int) -> None:
        """One more piece is done, which has read `size` bytes."""
        self.tell(self._made + 1, self._pieces, self._bytes + size)

    def tell(self, made: int, pieces: int, size: int) -> None:
        """So many pieces of so many are done, which have read `size` bytes."""
        self._made, self._pieces, self._bytes, self._last = made, pieces, size, time.time()

    def look(self, began: float) -> State | None:
        """How far the step is."""
        if not self._pieces:
            return None
        now = self._last if self._made == self._pieces else time.time()
        return State(pieces=self._pieces, made=self._made, found=0, bytes=self._bytes, seconds=now - self._began)


Step = ProgressLine | Counter  # what the display follows
