"""What a build may take from the release before it, and what it took.

Both are kept in the work directory of a stage, beside the data: the same data come of a build that took nothing.
"""

import dataclasses
from collections.abc import Collection

from maskmill.storage import completions, files

_REUSED = "reused"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reuse:
    """What a stage's workers may take instead of making it.

    Attributes:
      previous: the same stage's directory in the release before; empty: there is none.
      keeps_pages: whether the stage writes a page store (transforms/shards/page_store.py) for the release after it.
    """

    previous: str = ""
    keeps_pages: bool = False

    @property
    def exchanges(self) -> bool:
        """Whether texts of pages are taken or kept."""
        return self.keeps_pages or bool(self.previous)


NOTHING = Reuse()


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
    completions.store(output, completions.RUN, completions.REUSE, dataclasses.asdict(reuse))


def read_reuse(output: str, there: files.Listing | None = None) -> Reuse:
    """What the workers of a stage may take; nothing where nobody has said.

    there: what lies below `output`, if that was just listed.
    """
    record = completions.load(output, completions.RUN, completions.REUSE, there)
    return NOTHING if record is None else Reuse(**record)


def write_reused(output: str, reused: Reused) -> None:
    """Keeps what a stage took."""
    completions.store(output, completions.RUN, _REUSED, dataclasses.asdict(reused))


def account(
    output: str,
    kind: str,
    keys: Collection[str],
    there: files.Listing,
    *,
    pages: int = 0,
    reused_pages: int = 0,
) -> None:
    """Keeps what a stage took, once its shards are there; nothing in a build that is no release.

    Args:
      output: the directory of the stage. there: what lies below it.
      kind, keys: of the records of its shards.
      pages, reused_pages: how many pages were extracted or taken, and how many of them were taken.
    """
    reuse = read_reuse(output, there)
    if not reuse.exchanges:
        return
    taken = completions.taken_keys(output, kind, there)
    reused = Reused(
        previous=reuse.previous,
        pages=pages,
        reused_pages=reused_pages,
        shards=len(keys),
        reused_shards=sum(key in taken for key in keys),
    )
    write_reused(output, reused)


def read_reused(output: str, there: files.Listing | None = None) -> Reused | None:
    """What the stage in a directory took; None where its build kept no account. there: as in `read_reuse`."""
    record = completions.load(output, completions.RUN, _REUSED, there)
    return None if record is None else Reused(**record)
