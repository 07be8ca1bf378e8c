"""The results that `maskmill.build` and the functions beside it return."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class StageResult:
    """The result of a stage; shown as the summary that its command prints.

    Attributes:
      stage: its name.
      directory: where it lies; None if the files were named one by one.
      files: the paths of its data: shards, or the files of a vocabulary.
      counts: what went in and came out, by step and name, as in its manifest.
      summary: the summary as text.
    """

    stage: str
    directory: str | None
    files: tuple[str, ...]
    counts: Mapping[str, Mapping[str, int]]
    summary: str

    def __repr__(self) -> str:
        return self.summary


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class BuildResult:
    """The result of a build; shown as the summary that the command prints.

    Attributes:
      directory: of the build.
      stages: the result of each stage by its name, in order; empty if a job was only described.
      report: the path of the page that tells of the build; None if there is none.
      summary: the summary as text.
    """

    directory: str
    stages: Mapping[str, StageResult]
    report: str | None
    summary: str

    def __repr__(self) -> str:
        return self.summary
