"""Everything that the page of a data set tells, as plain values."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from maskmill.reporting import figures, made_from, made_stages
from maskmill.reporting.figures import Figure
from maskmill.reporting.input_documents import Documents, documents_of, titles_of
from maskmill.reporting.made_from import Input, Option, Step
from maskmill.reporting.made_stages import MadeStage
from maskmill.reporting.measured import RowFacts, TextFacts, row_facts_of, text_facts_of
from maskmill.reporting.samples import FrequentPiece, Samples, frequent_pieces, noting, samples_of
from maskmill.storage import files, timings
from maskmill.storage.timings import Timing
from maskmill.verification.findings import CHECKS, Finding, Verification

Mark = Literal["passed", "error", "warning", "note", "skipped"]
_MOST_FINDINGS = 50


class Shard(NamedTuple):
    """A shard, as its manifest has it: its stage's title, its split, its (first) file, the bytes of all its files, and
    its counts of documents, sentences, examples …
    """

    stage: str
    split: str
    name: str
    bytes: int
    counts: Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class Places:
    """What the places of all rows of a split hold.

    Attributes:
      split: "training" or "eval".
      text: pieces of text that are not predicted; if the reader draws the masks, all of them.
      predicted, special, padding: how many are predicted, are [CLS], [SEP] and the like, and hold nothing.
    """

    split: str
    text: int
    predicted: int
    special: int
    padding: int

    @property
    def all(self) -> int:
        """How many places there are."""
        return self.text + self.predicted + self.special + self.padding


class StageTimings(NamedTuple):
    """How long the steps of a stage took at the last run that made something."""

    stage: str
    steps: tuple[Timing, ...]


class CheckLine(NamedTuple):
    """A check: its name and title, the worst that it found or that it was not made, on how many things it was made, how
    many findings it has, and why it was not made, or not on all; empty: it was.
    """

    name: str
    title: str
    mark: Mark
    looked_at: int
    findings: int
    skipped: str


class Checked(NamedTuple):
    """What was verified, and what was found.

    Attributes:
      lines: a line for each check, in the order of CHECKS.
      findings: the worst first, 50 at most.
      all_findings: how many there are.
      read_bytes: how much was read.
      shards: the numbers of the shards of each split that were verified, as "0-9"; empty: all.
      files: how many were read.
      is_right: whether there is nothing but notes.
    """

    lines: tuple[CheckLine, ...]
    findings: tuple[Finding, ...]
    all_findings: int
    read_bytes: int
    shards: str
    files: int
    is_right: bool

    @property
    def marks(self) -> Mapping[str, int]:
        """How many checks have each mark."""
        marks = [line.mark for line in self.lines]
        return {mark: marks.count(mark) for mark in get_args(Mark)}

    def line(self, name: str) -> CheckLine | None:
        """The line of a check; None if it was not heard of."""
        return next((line for line in self.lines if line.name == name), None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
    """What a page tells of a data set.

    Attributes:
      name, path: of its directory.
      steps: how it was made.
      figures: its numbers.
      inputs, options, versions: what it was made from and with.
      dump_date: as `1 May 2016`; empty: its input has none.
      documents: what became of the input's documents; None: there is no text stage.
      shards: of all stages.
      places: by split, what the places of rows hold, as the manifest says.
      rows: by split, what its rows look like; empty if they were not read.
      frequent: the most frequent pieces of the first split.
      texts: by split, what its text looks like; empty if it was not read.
      timings: by stage.
      checked: what verify found; None: the data was not verified.
      samples: how the data looks.
    """

    name: str
    path: str
    steps: tuple[Step, ...]
    figures: tuple[Figure, ...]
    inputs: tuple[Input, ...]
    options: tuple[Option, ...]
    versions: Mapping[str, str]
    dump_date: str
    documents: Documents | None
    shards: tuple[Shard, ...]
    places: tuple[Places, ...]
    rows: Mapping[str, RowFacts]
    frequent: tuple[FrequentPiece, ...]
    texts: Mapping[str, TextFacts]
    timings: tuple[StageTimings, ...]
    checked: Checked | None
    samples: Samples

    def figure(self, group: str, name: str) -> Figure | None:
        """A figure; None if the data set does not have it."""
        return next((f for f in self.figures if (f.group, f.name) == (group, name)), None)


def collect(
    path: str,
    *,
    verification: Verification | None = None,
    shards: str = "",
    with_samples: bool = True,
    stages: Sequence[MadeStage] | None = None,
) -> Facts:
    """Collects what there is to tell of a data set.

    Args:
      path: the directory of a build, or of one of its stages.
      verification: what `verify` found of it; None: the page is made of the manifests alone.
      shards: the numbers of the shards that were verified, as --shards takes them; empty: all.
      with_samples: whether to show how the data looks, for which the beginning of some files is read.
      stages: those at the path, if they were just read.

    Raises:
      UnusableInputError: there is no manifest, or it is damaged.
    """
    directory = path.rstrip("/") or path
    unread: list[str] = []
    frequent: tuple[FrequentPiece, ...] = ()
    stages = stages or made_stages.find_stages(directory)
    by_name = {stage.name: stage for stage in stages}
    examples = by_name.get("examples") or by_name.get("eval")
    text = by_name.get("extract")
    titles = {} if text is None else titles_of(text)
    timed = files.each(directory, timings.read, [stage.directory for stage in stages])
    results = () if verification is None else verification.results
    rows = row_facts_of(results, directory=None if examples is None else examples.directory)
    if examples is not None:
        with noting(unread):
            frequent = tuple(frequent_pieces(rows, examples.directory))
    return Facts(
        name=files.base_name(directory) if directory not in (".", "/") else directory,
        path=directory,
        steps=made_from.steps_of(stages),
        figures=tuple(figure for stage in stages for figure in figures.figures_of(stage)),
        inputs=made_from.inputs_of(stages),
        options=made_from.options_of(stages),
        versions=made_from.versions_of(stages),
        dump_date=made_from.dump_date(stages),
        documents=None if text is None else documents_of(text, titles),
        shards=tuple(_shards(stages)),
        places=tuple(_places(by_name["examples"])) if "examples" in by_name else (),
        rows=rows,
        frequent=frequent,
        texts=text_facts_of(results),
        timings=tuple(StageTimings(stage.title, steps) for stage, steps in zip(stages, timed, strict=True) if steps),
        checked=None if verification is None else _checked(verification, shards),
        samples=samples_of(stages, directory, unread) if with_samples else Samples(unread=tuple(unread)),
    )


def _shards(stages: Sequence[MadeStage]) -> Iterator[Shard]:
    for stage in stages:
        for entry in stage.shards:
            counts = {name: value for name, value in entry.items() if type(value) is int and name != "random_seed"}
            size = made_stages.bytes_of_shard(entry)
            yield Shard(stage.title, str(entry.get("kind", "train")), str(entry["name"]), size, counts)


def _places(stage: MadeStage) -> Iterator[Places]:
    """What the places of rows hold, for each split that says it."""
    for split, name in figures.SPLITS.items():
        counts = stage.counts.get(split, {})
        if counts.get("examples") and counts.get("padding_tokens") is not None:
            predicted = counts.get("masked_positions") or 0
            special, padding = counts["special_tokens"], counts["padding_tokens"]
            yield Places(name, counts["example_tokens"] - predicted, predicted, special, padding)


def _checked(verification: Verification, shards: str = "") -> Checked:
    """What a verification found; `shards` are the numbers of those that were verified, empty: all."""
    return Checked(
        lines=tuple(_check_line(name, verification) for name in CHECKS if name in verification.outcomes),
        findings=tuple(verification.findings[:_MOST_FINDINGS]),
        all_findings=len(verification.findings),
        read_bytes=verification.read_bytes,
        shards=shards,
        files=len(verification.results),
        is_right=verification.is_right,
    )


def _check_line(name: str, verification: Verification) -> CheckLine:
    outcome = verification.outcomes[name]
    found = {finding.severity for finding in verification.findings if finding.check == name}
    mark: Mark = "passed" if outcome.looked_at else "skipped"
    for severity in ("note", "warning", "error"):
        if severity in found:
            mark = severity
    return CheckLine(name, CHECKS[name].title, mark, outcome.looked_at, outcome.findings, outcome.skipped or "")
