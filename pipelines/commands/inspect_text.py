"""The output of `maskmill inspect` for people: the same lines everywhere, on a terminal in colours."""

import dataclasses
import itertools
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskmill.inspection.decoding import DecodedExample, DecodedPiece, PieceRole, running_text
from maskmill.inspection.manifest_summaries import Bytes, Rows, Share, Value
from maskmill.inspection.opened_texts import TextDocument
from maskmill.inspection.shown_text import columns_of, shown
from maskmill.inspection.summaries import Summary
from pipelines.terminal.console import Coloured, bytes_text
from pipelines.terminal.data_warnings import percent

Item = DecodedExample | TextDocument
Documents = Sequence[Sequence[TextDocument]]

_COLUMNS = 80
_MOST_ROWS = 12  # of a table
_MOST_CHARACTERS = 300  # of a value in a table
_MOST_LINE = 2_000  # characters of a line of text
_MOST_LINES = 200  # of a document
_MOST_DOCUMENTS = 3  # that have the same pieces
_LEGEND = "[MASK=word]: to predict, seen as [MASK]; [other=word]: seen as another piece; [=word]: unchanged"
# Of pieces by what they are, and of parts and sequences by their number: never the only sign.
_STYLES: Mapping[PieceRole, str] = {
    "special": "dim", "masked": "bold red", "kept": "bold green", "random": "bold magenta", "padding": "dim",
}  # fmt: skip
_OF_PARTS = ("", "cyan", "yellow", "bright_blue")

_Span = tuple[str, str]  # a run of text that is safe to print, and its style


def is_terminal() -> bool:
    """Return whether a person looks at standard output."""
    return sys.stdout.isatty()


def print_summary(summary: Summary) -> None:
    """Print a summary: its figures, its tables and its notes."""
    _print([(shown(f"{summary.kind}: {summary.path}"), "bold")])
    for title, part in summary.parts.items():
        if not part:
            continue
        print()
        _print([(title, "bold")])
        rows = [[name, _value(value)] for name, value in part.items()] if isinstance(part, dict) else _table(part)
        numbers = isinstance(part, list) and [_is_number(row[column] for row in part) for column in part[0]]
        _print_table(rows, numbers or [False, False])
        if isinstance(part, list) and len(part) > _MOST_ROWS:
            print(f"  … and {len(part) - _MOST_ROWS:,} more")
    for note in summary.notes:
        _print([(shown(note), "")], wraps=True)


def as_values(item: Item, documents: Documents) -> dict[str, Any]:
    """Return an example or a document for programs."""
    values = dataclasses.asdict(item)
    if not isinstance(item, DecodedExample):
        return values
    of_parts = [[{"file": d.file, "document": d.document, **d.metadata} for d in of_part] for of_part in documents]
    return {**values, "text": running_text(item.pieces)} | ({"documents": of_parts} if documents else {})


def print_item(item: Item, documents: Documents, *, is_first: bool, found: re.Pattern[str] | None = None) -> None:
    """Print an example or a document.

    documents: those that each part of an example between its special pieces is of. found: what is marked on a
    terminal, because it was searched for.
    """
    if not is_first:
        print()
    if isinstance(item, TextDocument):
        _print_document(item, found)
    else:
        _print_example(item, found, documents, with_legend=is_first)


def _print_document(document: TextDocument, found: re.Pattern[str] | None) -> None:
    count = len(document.lines)
    title = f"document {document.document:,} of {document.file}, from line {document.line:,} on, {count:,} sentences"
    _print([(shown(title), "bold")])
    if document.metadata:
        _print([(_known_of(document), "dim")])
    width = len(f"{document.line + count:,}")
    for number, line in enumerate(document.lines[:_MOST_LINES], document.line):
        _print([(f"{number:>{width},}  ", "dim"), (shown(line, _MOST_LINE), "")], found)
    if count > _MOST_LINES:
        print(f"… and {count - _MOST_LINES:,} more lines")


def _known_of(document: TextDocument) -> str:
    """Return what the table of a text shard has of a document."""
    known = (f"{name}: {value}" for name, value in document.metadata.items() if value not in (None, ""))
    return shown(", ".join(known), _MOST_CHARACTERS)


def _print_example(
    example: DecodedExample, found: re.Pattern[str] | None, documents: Documents, *, with_legend: bool
) -> None:
    """Print a row as words, each part of a pair and each sequence of a packed row on lines of its own."""
    _print([(shown(f"example {example.record:,} of {example.file}"), "bold")])
    for line in _figures(example, with_legend=with_legend):
        _print([(line, "dim")], wraps=True)
    for of_part, _ in itertools.groupby(documents):
        names = [f"document {d.document:,} of {shown(d.file)} ({_known_of(d)})" for d in of_part[:_MOST_DOCUMENTS]]
        _print([(f"from {', or '.join(names)}{' …' * (len(of_part) > _MOST_DOCUMENTS)}", "dim")], wraps=True)
    for place, (title, pieces) in enumerate(example.parts):
        if title:
            print()
            _print([(title, "bold")])
        _print(list(_spans(pieces, _OF_PARTS[place % len(_OF_PARTS)])), found, wraps=True)


def _figures(example: DecodedExample, *, with_legend: bool) -> Iterator[str]:
    """Yield how many pieces a row has, what is predicted, and its label."""
    roles = [piece.role for piece in example.pieces]
    predicted = [piece.role for piece in example.pieces if piece.label is not None]
    yield (
        f"sample {example.sample:,} of the split (counted from 0); {len(roles):,} of {example.width:,} places are not "
        "padding"
    )
    if predicted:
        drawn = "" if example.epoch is None else f" (drawn by the reader in epoch {example.epoch:,}, from 0)"
        yield (
            f"{len(predicted):,} to predict: {predicted.count('masked'):,} seen as [MASK], "
            f"{predicted.count('random'):,} as another piece, {predicted.count('kept'):,} unchanged{drawn}"
        )
    if example.label is not None:
        yield f"label: {example.label}"
    if predicted and with_legend:
        yield _LEGEND


def _spans(pieces: Sequence[DecodedPiece], style: str) -> Iterator[_Span]:
    """Yield the text of pieces; one that is predicted stands in its word as [MASK=word]."""
    for place, piece in enumerate(pieces):
        yield "" if piece.goes_on or not place else " ", style
        surface, seen = shown(piece.surface, _MOST_CHARACTERS), shown(piece.text, _MOST_CHARACTERS)
        if piece.label is not None:
            yield f"[{ {'masked': 'MASK', 'kept': ''}.get(piece.role, seen) }={surface}]", _STYLES[piece.role]
        elif piece.role in _STYLES:
            yield seen, _STYLES[piece.role]
        else:
            yield surface.strip() and surface, style


def _print(spans: Sequence[_Span], found: re.Pattern[str] | None = None, *, wraps: bool = False) -> None:
    """Print a line; where no terminal breaks it, and if it `wraps`, in lines of 80 columns."""
    text = "".join(text for text, _ in spans)
    if not is_terminal():
        print(textwrap.fill(text, _COLUMNS, break_long_words=False, break_on_hyphens=False) if wraps else text)
        return
    import rich.console
    import rich.text

    # Texts are taken as they are: no markup, no emoji codes, no highlighting of numbers.
    console = rich.console.Console(file=Coloured(), markup=False, emoji=False, highlight=False)  # type: ignore[arg-type]
    styled = rich.text.Text.assemble(*spans)
    if found is not None:
        styled.highlight_regex(found, "reverse")
    console.print(styled, soft_wrap=True)


def _value(value: Value) -> str:
    """Return a figure as it is printed."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Share):
        return percent(value)
    if isinstance(value, Bytes):
        return bytes_text(value)
    if isinstance(value, int):
        return f"{value:,}"
    # Of a manifest that somebody has changed it may be anything.
    return f"{value:,.6g}" if isinstance(value, float) else shown(str(value), _MOST_CHARACTERS)


def _table(rows: Rows) -> list[list[str]]:
    """Return the texts of rows, and of the names of their columns above them."""
    return [list(rows[0]), *([_value(value) for value in row.values()] for row in rows[:_MOST_ROWS])]


def _is_number(values: Iterator[Value]) -> bool:
    return all(value is None or isinstance(value, (int, float)) for value in values)


def _print_table(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> None:
    """Print texts in columns; right: which of them are aligned at the right."""
    widths = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for text, width, is_right in zip(row, widths, right, strict=True):
            blanks = " " * (width - columns_of(text))
            cells.append(blanks + text if is_right else text + blanks)
        print(f"  {'  '.join(cells)}".rstrip())
