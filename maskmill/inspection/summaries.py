"""What a summary is: named figures and tables, which a terminal, a page or a program can show; and how two differ."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Literal

Unit = Literal["", "bytes", "share"]
Value = str | int | float | bool | None


@dataclasses.dataclass(frozen=True)
class Fact:
    """A figure: its name, its value, and what that is: a plain number or text, bytes, or a share from 0 to 1."""

    name: str
    value: Value
    unit: Unit = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Section:
    """Figures that belong together."""

    title: str
    facts: Sequence[Fact]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of values.

    Attributes:
      title: what it lists.
      columns: their names.
      rows: the values, as many as there are columns; numbers are right-aligned.
      units: of the columns; empty: none has one.
      row_units: of the rows, where these have units instead.
      left_out: how many more rows there are.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    units: Sequence[Unit] = ()
    row_units: Sequence[Unit] = ()
    left_out: int = 0

    def as_dicts(self) -> list[dict[str, Value]]:
        """The rows as JSON has them."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def unit_of(self, row: int, column: int) -> Unit:
        """The unit of a value."""
        if self.row_units:
            return self.row_units[row] if column else ""
        return self.units[column] if self.units else ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Summary:
    """What is known of a path.

    Attributes:
      path: as the user named it.
      kind: what it is, as a title: "examples", "text shards", "vocabulary" …
      sections, tables: in the order in which they are shown.
      notes: sentences.
    """

    path: str
    kind: str
    sections: Sequence[Section]
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """The summary as JSON has it: figures by section and name, tables as lists of objects."""
        return {
            "path": self.path,
            "kind": self.kind,
            **{section.title: {fact.name: fact.value for fact in section.facts} for section in self.sections},
            **{table.title: table.as_dicts() for table in self.tables},
            "notes": list(self.notes),
        }


def listed(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Value]], units: Sequence[Unit], most: int
) -> Table:
    """A table of at most so many rows."""
    return Table(title=title, columns=columns, rows=rows[:most], units=units, left_out=max(0, len(rows) - most))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """A figure that two summaries have otherwise: its section, its name, and both values; None: it is not there."""

    section: str
    name: str
    before: Value
    after: Value
    unit: Unit = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """What two paths of a kind have otherwise.

    Attributes:
      kind: what both are.
      before, after: the paths.
      differences: figures.
      tables: what else differs: files, pieces.
      notes: sentences.
    """

    kind: str
    before: str
    after: str
    differences: Sequence[Difference]
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """The comparison as JSON has it."""
        return {
            "kind": self.kind,
            "before": self.before,
            "after": self.after,
            "differences": [dataclasses.asdict(difference) for difference in self.differences],
            **{table.title: table.as_dicts() for table in self.tables},
            "notes": list(self.notes),
        }


def differences(before: Summary, after: Summary) -> Iterator[Difference]:
    """The figures that differ, in the order in which the summaries have them."""
    old, new = _by_name(before), _by_name(after)
    for section, name in dict.fromkeys([*old, *new]):
        one, other = old.get((section, name)), new.get((section, name))
        values = (None if one is None else one.value, None if other is None else other.value)
        if values[0] != values[1]:
            known = one or other
            yield Difference(
                section=section,
                name=name,
                before=values[0],
                after=values[1],
                unit=known.unit if known is not None else "",
            )


def _by_name(summary: Summary) -> dict[tuple[str, str], Fact]:
    """The figures of a summary by section and name; those of tables by the first column of their row, too."""
    facts = {(section.title, fact.name): fact for section in summary.sections for fact in section.facts}
    for table in summary.tables:
        for number, row in enumerate(table.rows):
            for column, value in enumerate(row[1:], 1):
                name = f"{row[0]}, {table.columns[column]}"
                facts[table.title, name] = Fact(name, value, table.unit_of(number, column))
    return facts
