"""How long the steps of a stage took: kept beside the data, never in the manifest, which is the same at every run."""

import dataclasses


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
