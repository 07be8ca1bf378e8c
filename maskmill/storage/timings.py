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
      pieces: how many this run made.
      bytes: of input of the pieces made.
      seconds: of wall time.
    """

    label: str
    pieces: int
    bytes: int
    seconds: float


def write(output: str, timings: Sequence[Timing]) -> None:
    """Keep the timings of a run in its output directory.

    Args:
      output: the directory of a stage.
      timings: of steps that are done. What is known of others, and of one that made nothing, stays.
    """
    known = {timing.label: timing for timing in read(output)}
    known |= {timing.label: timing for timing in timings if timing.pieces}
    completions.store(output, _RUN, _TIMINGS, {"steps": [dataclasses.asdict(timing) for timing in known.values()]})


def read(output: str) -> tuple[Timing, ...]:
    """Return the timings of the last runs in an output directory, in the order of the steps; empty where none are
    kept.
    """
    steps = (completions.load(output, _RUN, _TIMINGS) or {}).get("steps", ())
    # Those of older versions have more entries.
    names = [field.name for field in dataclasses.fields(Timing)]
    return tuple(Timing(**{name: step[name] for name in names}) for step in steps)
