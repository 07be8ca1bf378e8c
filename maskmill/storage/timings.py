"""Keep the times of a stage's steps beside the data, not in the manifest, which is the same for every run."""

import dataclasses
from collections.abc import Sequence

from maskmill.storage import completions

_RUN, _TIMINGS = "run", "timings"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Timing:
    """A step of the last run that made something.

    Attributes:
      label: in the progress display: "extract", "text", "examples".
      pieces: the number of work items that this run made.
      bytes: of the inputs of these items.
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
      timings: of finished steps. Earlier timings of other steps, and of steps that made nothing now, are kept.
    """
    known = {timing.label: timing for timing in read(output)}
    known |= {timing.label: timing for timing in timings if timing.pieces}
    completions.store(output, _RUN, _TIMINGS, {"steps": [dataclasses.asdict(timing) for timing in known.values()]})


def read(output: str) -> tuple[Timing, ...]:
    """Return the timings of the last runs in an output directory, in the order of the steps; () if there are none."""
    steps = (completions.load(output, _RUN, _TIMINGS) or {}).get("steps", ())
    # Those of older versions have more entries.
    names = [field.name for field in dataclasses.fields(Timing)]
    return tuple(Timing(**{name: step[name] for name in names}) for step in steps)
