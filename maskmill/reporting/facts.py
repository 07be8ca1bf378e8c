"""All facts on the page of a data set, as plain values."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from maskmill.reporting import made_from, made_stages
from maskmill.reporting.input_documents import Documents, documents_of
from maskmill.reporting.made_from import Figure, Input, Option
from maskmill.reporting.made_stages import MadeStage
from maskmill.reporting.measured import RowFacts, TextFacts, row_facts_of, text_facts_of
from maskmill.reporting.samples import Samples, samples_of
from maskmill.storage import files, timings
from maskmill.storage.timings import Timing
from maskmill.verification.findings import CHECKS, Verification

Mark = Literal["passed", "error", "warning", "note", "skipped"]


class CheckLine(NamedTuple):
    """A check: its title, its worst result or "skipped", the number of things checked and of findings, and why it was
    skipped, wholly or in part; empty if it was not.
    """

    title: str
    mark: Mark
    looked_at: int
    findings: int
    skipped: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
    """All facts on the page of a data set.

    Attributes:
      name, path: of its directory.
      steps: the result of each step, and in a few words how it was made.
      figures: its numbers.
      inputs, options, versions: what it was made from and with.
      dump_date: such as `1 May 2016`; empty if its input has none.
      documents: the counts of the input's documents; None without a text stage.
      places: the number of positions of all training rows by what they hold; empty if the manifest does not say it.
      rows: statistics of rows by split; empty if no rows were read.
      texts: statistics of text by split; empty if no text was read.
      timings: of the steps, in the last run that made something.
      verification: the results of verify; None if the data was not verified.
      checks: by name, in the order of CHECKS.
      shards: the numbers of the verified shards of each split, such as "0-9"; empty: all.
      samples: texts and examples of the data.
    """

    name: str
    path: str
    steps: tuple[tuple[str, str], ...]
    figures: tuple[Figure, ...]
    inputs: tuple[Input, ...]
    options: tuple[Option, ...]
    versions: Mapping[str, str]
    dump_date: str
    documents: Documents | None
    places: Mapping[str, int]
    rows: Mapping[str, RowFacts]
    texts: Mapping[str, TextFacts]
    timings: tuple[Timing, ...]
    verification: Verification | None
    checks: Mapping[str, CheckLine]
    shards: str
    samples: Samples

    def figure(self, group: str, name: str) -> Figure | None:
        """Return a figure; None if the data set does not have it."""
        return next((f for f in self.figures if (f.group, f.name) == (group, name)), None)

    def marked(self, mark: Mark) -> int:
        """Return the number of checks with a mark."""
        return sum(line.mark == mark for line in self.checks.values())


def collect(
    path: str,
    *,
    verification: Verification | None = None,
    shards: str = "",
    stages: Sequence[MadeStage] | None = None,
) -> Facts:
    """Collect the facts about a data set.

    Args:
      path: the directory of a build, or of one of its stages.
      verification: the results of `verify`; None to make the page from the manifests alone.
      shards: the numbers of the verified shards, in the format of --shards; empty: all.
      stages: the stages at the path, if they have just been read.

    Raises:
      UnusableInputError: there is no manifest, or it is damaged.
    """
    directory = path.rstrip("/") or path
    stages = stages or made_stages.find_stages(directory)
    by_name = {stage.name: stage for stage in stages}
    examples = by_name.get("examples") or by_name.get("eval")
    timed = files.each(directory, timings.read, [stage.directory for stage in stages])
    results = () if verification is None else verification.results
    return Facts(
        name=files.base_name(directory) if directory not in (".", "/") else directory,
        path=directory,
        steps=tuple(step for stage in stages for step in made_from.steps_of(stage)),
        figures=tuple(figure for stage in stages for figure in made_from.figures_of(stage)),
        inputs=made_from.inputs_of(stages),
        options=made_from.options_of(stages),
        versions=made_from.versions_of(stages),
        dump_date=made_from.dump_date(stages),
        documents=documents_of(by_name["extract"]) if "extract" in by_name else None,
        places=made_from.places_of(by_name["examples"]) if "examples" in by_name else {},
        rows=row_facts_of(results, directory=None if examples is None else examples.directory),
        texts=text_facts_of(results),
        timings=tuple(timing for some in timed for timing in some),
        verification=verification,
        checks={} if verification is None else check_lines(verification),
        shards=shards,
        samples=samples_of(stages, directory),
    )


def check_lines(verification: Verification) -> dict[str, CheckLine]:
    """Return a line for each check that has an outcome in a verification."""
    lines = {}
    for name in CHECKS:
        if (outcome := verification.outcomes.get(name)) is not None:
            found = {finding.severity for finding in verification.findings if finding.check == name}
            mark: Mark = "passed" if outcome.looked_at else "skipped"
            for severity in ("note", "warning", "error"):
                mark = severity if severity in found else mark
            skipped = outcome.skipped or ""
            lines[name] = CheckLine(CHECKS[name].title, mark, outcome.looked_at, outcome.findings, skipped)
    return lines
