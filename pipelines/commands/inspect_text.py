"""What `maskmill inspect` prints for people: the same lines everywhere, on a terminal in colours."""

import dataclasses
import itertools
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from maskmill.inspection.decoding import DecodedExample, DecodedPiece, PieceRole, running_text
from maskmill.inspection.opened_texts import TextDocument
from maskmill.inspection.shown_text import columns_of, shown
from maskmill.inspection.summaries import Section, Summary, Table, Unit, Value
from pipelines.terminal.console import Coloured, bytes_text
from pipelines.terminal.data_warnings import percent

_COLUMNS = 80
_MOST_CHARACTERS = 300  # of a value in a table
_MOST_LINE = 2_000  # characters of a line of text
_MOST_LINES = 200  # of a document
_BEGINNING = 60  # characters of a document that tell which it is
_INDENT = "  "
_LEGEND = "[MASK=word]: to predict, seen as [MASK]; [other=word]: seen as another piece; [=word]: unchanged"
# Of pieces by what they are, and of parts and sequences by their number: never the only sign.
_STYLES: dict[PieceRole, str] = {
    "text": "",
    "special": "dim",
    "masked": "bold red",
    "kept": "bold green",
    "random": "bold magenta",
    "padding": "dim",
}
_OF_PARTS = ("", "cyan", "yellow", "bright_blue")


@dataclasses.dataclass(frozen=True)
class _Span:
    """A run of text in one style; the text is safe to print."""

    text: str
    style: str = ""


def is_terminal() -> bool:
    """Whether a person looks at standard output."""
    return sys.stdout.isatty()


def warn(sentence: str) -> None:
    """Says a sentence on standard error."""
    print(f"maskmill inspect: {shown(sentence)}", file=sys.stderr)


def value_text(value: Value, unit: Unit = "") -> str:
    """A figure as it is printed."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):  # of a manifest that somebody has changed: anything
        return shown(str(value), _MOST_CHARACTERS)
    if unit == "share":
        return percent(value)
    if unit == "bytes":
        return bytes_text(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def print_summary(summary: Summary) -> None:
    """Prints a summary: its figures, its tables and its notes."""
    out = _Printer()
    out.title(f"{summary.kind}: {summary.path}")
    for section in summary.sections:
        if section.facts:
            out.section(section)
    for table in summary.tables:
        if table.rows:
            out.table(table)
    for note in summary.notes:
        out.paragraph([_Span(shown(note))])


def print_pieces(pieces: Sequence[tuple[int, str]]) -> None:
    """Prints pieces with their ids."""
    width = max((len(f"{id:,}") for id, _ in pieces), default=0)
    for id, piece in pieces:
        print(f"{id:>{width},}  {shown(piece, _MOST_LINE)}")


def print_text(document: TextDocument, *, is_first: bool, found: re.Pattern[str] | None = None) -> None:
    """Prints a document of a text shard. found: what was searched for is marked on a terminal."""
    out = _Printer(found)
    if not is_first:
        print()
    out.title(
        f"document {document.document:,} of {document.file}, from line {document.line:,} on, "
        f"{len(document.lines):,} sentences"
    )
    width = len(f"{document.line + len(document.lines):,}")
    for number, line in enumerate(_safe_lines(document.lines, _MOST_LINES), document.line):
        out.line([_Span(f"{number:>{width},}  ", "dim"), _Span(line)])


def example_dict(example: DecodedExample) -> dict[str, Any]:
    """An example for programs: what it says, and its pieces."""
    return {
        "file": example.file,
        "record": example.record,
        "sample": example.sample,
        "label": example.label,
        "width": example.width,
        "epoch": example.epoch,
        "text": running_text(example.pieces),
        "pieces": [dataclasses.asdict(piece) for piece in example.pieces],
    }


def print_example(example: DecodedExample, *, is_first: bool, found: re.Pattern[str] | None = None) -> None:
    """Prints a row as words, each part of a pair and each sequence of a packed row on lines of its own.

    found: what was searched for is marked on a terminal.
    """
    out = _Printer(found)
    if not is_first:
        print()
    out.title(f"example {example.record:,} of {example.file}")
    for line in _figures(example):
        out.paragraph([_Span(line, "dim")])
    if any(piece.label is not None for piece in example.pieces) and is_first:
        out.paragraph([_Span(_LEGEND, "dim")])
    many = len({piece.sequence for piece in example.pieces}) > 1
    for (sequence, segment), pieces in itertools.groupby(
        example.pieces, key=lambda piece: (piece.sequence, piece.segment)
    ):
        part = list(pieces)
        name = f"sequence {sequence + 1}" if many else ""
        if any(piece.segment for piece in example.pieces):
            name += f"{', ' if name else ''}part {'AB'[segment] if segment in (0, 1) else segment}"
        style = _OF_PARTS[(segment + (sequence if many else 0)) % len(_OF_PARTS)]
        out.paragraph(_spans(part, style), name)


def print_source(documents: Sequence[TextDocument], why_none: str) -> None:
    """Prints which documents an example was made of, or why that is not known."""
    out = _Printer()
    for document in documents:
        begins = shown(document.lines[0], _BEGINNING)
        out.title(f"from document {document.document:,} of {document.file}, line {document.line:,}: {begins}", "dim")
    if not documents:
        out.title(f"from which document is not known: {why_none}", "dim")


def _figures(example: DecodedExample) -> Iterator[str]:
    """How many pieces a row has, what is predicted, and its label."""
    roles = [piece.role for piece in example.pieces]
    predicted = [piece.role for piece in example.pieces if piece.label is not None]
    yield (
        f"sample {example.sample:,} of the split (counted from 0); {len(roles):,} of {example.width:,} places are not "
        "padding"
    )
    if predicted:
        yield (
            f"{len(predicted):,} to predict: {predicted.count('masked'):,} seen as [MASK], "
            f"{predicted.count('random'):,} as another piece, {predicted.count('kept'):,} unchanged"
            + ("" if example.epoch is None else f" (drawn by the reader in epoch {example.epoch:,}, from 0)")
        )
    if example.label is not None:
        yield f"label: {example.label}"


def _spans(pieces: Sequence[DecodedPiece], style: str) -> list[_Span]:
    """Pieces as runs of text in one style each."""
    runs = itertools.groupby(_single_spans(pieces, style), key=lambda span: span.style)
    return [_Span("".join(span.text for span in run), run_style) for run_style, run in runs]


def _single_spans(pieces: Sequence[DecodedPiece], style: str) -> Iterator[_Span]:
    """Each piece; one that is predicted stands in its word as [MASK=word]."""
    for place, piece in enumerate(pieces):
        blank = "" if piece.goes_on or not place else " "
        surface = shown(piece.surface, _MOST_CHARACTERS) if piece.surface.strip() else ""
        if piece.label is None:
            surface = shown(piece.text, _MOST_CHARACTERS) if piece.role in ("special", "padding") else surface
            yield _Span(blank + surface, _STYLES[piece.role] or style)
            continue
        there = {"masked": "MASK", "kept": ""}.get(piece.role, shown(piece.text, _MOST_CHARACTERS))
        yield _Span(blank, style)
        yield _Span(f"[{there}={surface}]", _STYLES[piece.role])


class _Printer:
    """Prints plain lines of 80 columns, tables aside, whose lines are not cut; on a terminal with colours.

    found: what is marked in paragraphs on a terminal.
    """

    def __init__(self, found: re.Pattern[str] | None = None) -> None:
        self._found = found

    def title(self, text: str, style: str = "bold") -> None:
        self.line([_Span(shown(text), style)])

    def section(self, section: Section) -> None:
        width = max(columns_of(fact.name) for fact in section.facts)
        self._head(section.title)
        for fact in section.facts:
            print(f"{_INDENT}{_padded(fact.name, width)}  {value_text(fact.value, fact.unit)}")

    def table(self, table: Table) -> None:
        self._head(table.title)
        texts, right = _cells(table)
        widths = [max(map(columns_of, column)) for column in zip(*texts, strict=True)]
        for row in texts:
            cells = [
                _padded(text, width, right=is_right) for text, width, is_right in zip(row, widths, right, strict=True)
            ]
            print(f"{_INDENT}{'  '.join(cells)}".rstrip())
        if table.left_out:
            print(f"{_INDENT}… and {table.left_out:,} more")

    def paragraph(self, spans: Sequence[_Span], name: str = "") -> None:
        if name:
            self._head(name)
        if is_terminal():
            self.line(spans)  # which the terminal breaks
        else:
            text = "".join(span.text for span in spans)
            print(textwrap.fill(text, _COLUMNS, break_long_words=False, break_on_hyphens=False))

    def line(self, spans: Sequence[_Span]) -> None:
        if not is_terminal():
            print("".join(span.text for span in spans))
            return
        import rich.console
        import rich.text

        # Texts are taken as they are: no markup, no emoji codes, no highlighting of numbers.
        console = rich.console.Console(file=Coloured(), markup=False, emoji=False, highlight=False)  # type: ignore[arg-type]
        text = rich.text.Text.assemble(*((span.text, span.style) for span in spans))
        if self._found is not None:
            text.highlight_regex(self._found, "reverse")
        console.print(text, soft_wrap=True)

    def _head(self, title: str) -> None:
        print()
        self.title(title)


def _safe_lines(lines: Sequence[str], most: int) -> Iterator[str]:
    """Lines that are safe to print, and how many are left out."""
    for line in lines[:most]:
        yield shown(line, _MOST_LINE)
    if len(lines) > most:
        yield f"… and {len(lines) - most:,} more lines"


def _cells(table: Table) -> tuple[list[list[str]], list[bool]]:
    """The texts of a table with its head, and which columns are right-aligned."""
    rows = [
        [value_text(value, table.unit_of(row, column)) for column, value in enumerate(values)]
        for row, values in enumerate(table.rows)
    ]
    right = [
        all(value is None or isinstance(value, (int, float)) for value in column)
        for column in zip(*table.rows, strict=True)
    ]
    return [list(table.columns), *rows], right


def _padded(text: str, width: int, *, right: bool = False) -> str:
    blanks = " " * (width - columns_of(text))
    return blanks + text if right else text + blanks
