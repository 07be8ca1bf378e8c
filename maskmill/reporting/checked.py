"""What verify found, as the page lists it."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from maskmill.verification.findings import CHECKS, Finding, Verification

Mark = Literal["passed", "error", "warning", "note", "skipped"]
_MOST_FINDINGS = 50


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


def checked_of(verification: Verification, shards: str = "") -> Checked:
    """What a verification found; `shards` are the numbers of those that were verified, empty: all."""
    return Checked(
        lines=tuple(_line(name, verification) for name in CHECKS if name in verification.outcomes),
        findings=tuple(verification.findings[:_MOST_FINDINGS]),
        all_findings=len(verification.findings),
        read_bytes=verification.read_bytes,
        shards=shards,
        files=len(verification.results),
        is_right=verification.is_right,
    )


def _line(name: str, verification: Verification) -> CheckLine:
    outcome = verification.outcomes[name]
    found = {finding.severity for finding in verification.findings if finding.check == name}
    mark: Mark = "passed" if outcome.looked_at else "skipped"
    for severity in ("note", "warning", "error"):
        if severity in found:
            mark = severity
    return CheckLine(name, CHECKS[name].title, mark, outcome.looked_at, outcome.findings, outcome.skipped or "")
