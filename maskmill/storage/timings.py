"""How long the steps of a stage took: kept beside the data, never in the manifest, which is the same at every run."""

import dataclasses
from collections.abc import Sequence

from maskmill.storage import completions

_RUN, _TIMINGS = "run", "timings"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Timing:
    """A step of the last run that made something.

    Attributes:
      label: as the progress display calls it: "extract", "text", "examples".
      pieces: how many this run made. found: how many were there.
      bytes: of input of the pieces made.
      seconds: of wall time.
      memory: bytes of the largest process; None: not known.
    """

    label: str
    pieces: int
    found: int
    bytes: int
    seconds: float
    memory: int | None = None


def write(output: str, timings: Sequence[Timing]) -> None:
    """Keeps the timings of a run in its output directory.

    Args:
      output: the directory of a stage.
      timings: of all steps of the run, in their order. Where one made nothing, what is known of it from an earlier run
        stays.
    """
    known = {timing.label: timing for timing in read(output)}
    kept = [timing if timing.pieces else known.get(timing.label) for timing in timings]
    completions.store(output, _RUN, _TIMINGS, {"steps": [dataclasses.asdict(timing) for timing in kept if timing]})


def read(output: str) -> tuple[Timing, ...]:
    """The timings of the last runs in an output directory, in the order of the steps; empty where none are kept."""
    record = completions.load(output, _RUN, _TIMINGS)
    return () if record is None else tuple(Timing(**timing) for timing in record["steps"])
