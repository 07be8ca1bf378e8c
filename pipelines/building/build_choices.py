"""What a call of `maskmill build` chooses beside the build itself: a release, some stages, a look without work."""

import dataclasses
from typing import ClassVar, Literal

from maskmill.errors import UnusableInputError
from maskmill.options import option

# The names in pipelines/stages/registry.py, which this does not import: they are choices of a flag.
StageName = Literal["extract", "vocabulary", "examples", "eval", "train"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildChoices:
    """The flags of `maskmill build` that no section of its file has.

    Raises:
      UnusableInputError: they do not go together.
    """

    release: bool = option(False, help="build a release: a directory of its own below output/releases, never changed")
    keep: int | None = option(None, help="with --release: how many complete releases stay, instead of release.keep")
    dump: str | None = option(None, help="date of the downloaded dump to build, as 2026-11-01 (default: the newest)")
    from_: StageName | None = option(None, help="the first stage to run; those before it must be finished")
    until: StageName | None = option(None, help="the last stage to run")
    dry_run: bool = option(False, help="say what would run and what is there, and stop; writes nothing")
    json: bool = option(False, help="with --dry_run: say it as JSON")
    owner: str | None = option(
        None, help="who builds, as a scheduler names its run; the same owner takes over a lock that it has left behind"
    )

    GROUPS: ClassVar[dict[str, str]] = {"release": "releases and stages"}

    def __post_init__(self) -> None:
        if self.keep is not None and not self.release:
            raise UnusableInputError("--keep goes with --release; a plain build keeps what it has made.")
        if self.keep is not None and self.keep < 1:
            raise UnusableInputError(f"--keep must be 1 or more, not {self.keep}.")
        if self.owner is not None and not self.release:
            raise UnusableInputError("--owner goes with --release, whose lock it names.")
        if self.json and not self.dry_run:
            raise UnusableInputError("--json goes with --dry_run.")
