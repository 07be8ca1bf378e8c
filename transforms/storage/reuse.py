"""What a build may take from the release before it, and what it took.

Both are kept in the work directory of a stage, beside the data: the same data come of a build that took nothing.
"""

import dataclasses

from transforms.storage import completions

_RUN, _REUSE, _REUSED = "run", "reuse", "reused"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reuse:
    """What a stage's workers may take instead of making it.

    Attributes:
      previous: the same stage's directory in the release before; empty: there is none.
      keeps_pages: whether the stage writes a page store (transforms/shards/page_store.py) for the release after it.
    """

    previous: str = ""
    keeps_pages: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reused:
    """What a stage took from the release before.

    Attributes:
      previous: that release's directory of the stage; empty: none was there.
      pages: how many pages were extracted or taken. reused_pages: how many of them were taken.
      shards: how many shards the stage has. reused_shards: how many of them were taken.
    """

    previous: str = ""
    pages: int = 0
    reused_pages: int = 0
    shards: int = 0
    reused_shards: int = 0


def write_reuse(output: str, reuse: Reuse) -> None:
    """Tells the workers of the stage that writes to `output` what they may take."""
    completions.store(output, _RUN, _REUSE, dataclasses.asdict(reuse))


def read_reuse(output: str) -> Reuse:
    """What the workers of a stage may take; nothing where nobody has said."""
    record = completions.load(output, _RUN, _REUSE)
    return Reuse() if record is None else Reuse(**record)


def write_reused(output: str, reused: Reused) -> None:
    """Keeps what a stage took."""
    completions.store(output, _RUN, _REUSED, dataclasses.asdict(reused))


def read_reused(output: str) -> Reused | None:
    """What the stage in a directory took; None where its build kept no account."""
    record = completions.load(output, _RUN, _REUSED)
    return None if record is None else Reused(**record)
