"""What a summary is: named figures and tables, which a terminal, a page or a program can show."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

Unit = Literal["", "bytes", "share"]
Value = str | int | float | bool | None

DIGEST = 16  # hexadecimal digits of a sha256 that are shown
_MOST_ROWS = 10  # of a table


@dataclasses.dataclass(frozen=True)
class Fact:
    """A figure: its name, its value, and what that is: a plain number or text, bytes, or a share from 0 to 1."""

    name: str
    value: Value
    unit: Unit = ""


@dataclasses.dataclass(frozen=True)
class Section:
    """Figures that belong together."""

    title: str
    facts: Sequence[Fact]


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of values.

    Attributes:
      title: what it lists.
      columns: their names.
      rows: the values, as many as there are columns; numbers are right-aligned.
      units: of the columns; empty: none has one.
      row_units: of the rows, if these have units instead.
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


@dataclasses.dataclass(frozen=True)
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


def known(title: str, facts: Sequence[Fact]) -> Section:
    """A section of those figures that have a value."""
    return Section(title, [fact for fact in facts if fact.value is not None])


def listed(title: str, columns: Sequence[str], rows: Sequence[Sequence[Value]], units: Sequence[Unit] = ()) -> Table:
    """A table of the first rows."""
    return Table(title, columns, rows[:_MOST_ROWS], units, left_out=max(0, len(rows) - _MOST_ROWS))
