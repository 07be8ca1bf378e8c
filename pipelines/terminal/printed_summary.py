"""Prints the summary of a stage: lines of 80 columns, or on a terminal tables and colours, with rich."""

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maskmill.inspection.shown_text import shown
from pipelines.terminal import data_warnings
from pipelines.terminal.console import Coloured
from pipelines.terminal.summary import TRAIN_AND_EVAL, Summary, summary_of

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = 80
_NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*(?!\w)")
_WIDEST = 100  # a line that is longer is hard to read
_INDENT = (0, 0, 0, 2)


def report(output: str, manifest: Mapping[str, Any]) -> None:
    """Prints the counts of a stage, and on stderr what its data gives reason to warn of.

    output: the stage's directory. manifest: the stage's manifest; empty if the job was only described.
    """
    if not manifest:
        print(f"{output}: nothing was run, the job was only described.")
        return
    summary = summary_of(output, manifest)
    if sys.stdout.isatty():
        show_table(summary)
    else:
        for line in _plain_lines(summary):
            print(line)
    data_warnings.warn(manifest["stage"], data_warnings.warnings_of(manifest))


def _plain_lines(summary: Summary) -> Iterator[str]:
    yield f"{summary.stage}: {summary.output}"
    for step, figures in summary.figures.items():
        yield _in_columns(f"  {step:<{summary.width}} ", [str(figure) for figure in figures])
    for label, phrases in summary.rows:
        yield _in_columns(f"  {label:<{summary.width}} ", phrases)
    yield from summary.notes


def _in_columns(head: str, phrases: Sequence[str]) -> str:
    """Phrases behind a head, broken between them into lines of 80 columns at most."""
    joined = ", ".join(phrase.replace(" ", "\0") for phrase in phrases)
    lines = textwrap.fill(
        joined,
        _COLUMNS,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace("\0", " ")


def show_table(summary: Summary) -> None:
    """Prints a summary to a terminal: the counts of training and eval data side by side, the rest as rows."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(file=Coloured(), highlight=False)  # type: ignore[arg-type]
    console.width = min(console.width, _WIDEST)
    console.print(Text.assemble((summary.stage, "bold"), " ", (shown(summary.output), "dim")), soft_wrap=True)
    beside = [step for step in TRAIN_AND_EVAL if step in summary.figures]
    rows = [(step, list(map(str, figures))) for step, figures in summary.figures.items() if step not in beside]
    if len(beside) < 2:
        rows += [(step, list(map(str, summary.figures[step]))) for step in beside]
    if rows or summary.rows:
        console.print(Padding(_listed([*rows, *summary.rows]), _INDENT))
    if len(beside) > 1:
        console.print(Padding(_side_by_side(summary, beside), _INDENT, expand=False))
    for note in summary.notes:
        console.print(Text(shown(note)), soft_wrap=True)
    console.print()


def _listed(rows: Iterable[tuple[str, Sequence[str]]]) -> "Table":
    """A label and phrases in each row."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for label, phrases in rows:
        text = Text(shown(", ".join(phrases)))
        text.highlight_regex(_NUMBER, "bold")
        table.add_row(label, text)
    return table


def _side_by_side(summary: Summary, steps: Sequence[str]) -> "Table":
    """A column for each step, a row for each of their figures."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="cyan")
    table.add_column()
    for step in steps:
        table.add_column(step, justify="right")
    values = {step: {figure.name: figure.value for figure in summary.figures[step]} for step in steps}
    for name in dict.fromkeys(name for step in steps for name in values[step]):
        table.add_row(name, *(values[step].get(name, "") for step in steps))
    return table
