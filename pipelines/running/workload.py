"""How much there is to do; it decides how a graph runs."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """How much there is to do, and where.

    Attributes:
      input_bytes: how much there is to read; small jobs stay in this process.
      pieces: of how many pieces the work is, where that is known: more local processes than those are of no use.
      paths: every input and output: not every runner's workers see this machine's files.
    """

    input_bytes: int
    pieces: int | None
    paths: tuple[str, ...]
