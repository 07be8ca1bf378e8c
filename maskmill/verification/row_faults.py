"""Collects what is wrong with the rows of a file: of each kind the first, and how many there are."""

import dataclasses

from maskmill.verification.findings import Finding, Severity

AGAIN = "make the examples again, or fetch the file again"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that is wrong with a record.

    Attributes:
      check: the name of the check.
      kind: findings of one kind are one, with a count.
      record: number of the record, from 0; None: it is about the file.
      expected, found: as in Finding.
      what: what is wrong, as a clause without the place: "its data does not fit its checksum".
      advice: what to do, as a clause.
      severity: as in Finding.
    """

    check: str
    kind: str
    record: int | None
    expected: str
    found: str
    what: str
    advice: str = AGAIN
    severity: Severity = "error"


class Faults:
    """The faults of a file."""

    def __init__(self, path: str) -> None:
        """There are none yet."""
        self._path = path
        self._first: dict[tuple[str, str], Fault] = {}
        self._counts: dict[tuple[str, str], int] = {}

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """The check and the kind of each finding."""
        return tuple(self._first)

    def has(self, check: str, kind: str) -> bool:
        """Whether there is one of this kind."""
        return (check, kind) in self._first

    def add(self, fault: Fault, count: int = 1) -> None:
        """Keeps a fault that so many records have, of which it describes the first."""
        key = fault.check, fault.kind
        first = self._first.setdefault(key, fault)
        if first.record is not None and fault.record is not None and fault.record < first.record:
            self._first[key] = fault
        self._counts[key] = self._counts.get(key, 0) + count

    def count(self, check: str, kind: str) -> None:
        """Counts one more of a kind that is there."""
        self._counts[check, kind] += 1

    def findings(self) -> tuple[Finding, ...]:
        """One for each kind."""
        return tuple(self._finding(fault, self._counts[key]) for key, fault in self._first.items())

    def _finding(self, fault: Fault, count: int) -> Finding:
        where = self._path if fault.record is None else f"{self._path}, record {fault.record + 1:,}"
        return Finding(
            check=fault.check,
            severity=fault.severity,
            file=self._path,
            record=None if fault.record is None else fault.record + 1,
            expected=fault.expected,
            found=fault.found,
            message=f"{where}: {fault.what}; {fault.advice}.",
            count=count,
        )
