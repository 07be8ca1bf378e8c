"""A summary on a terminal: the counts of training and eval data side by side, the rest as rows. It imports rich."""

import re
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from maskmill.inspection.text import shown
from pipelines.terminal.console import Coloured
from pipelines.terminal.summary import TRAIN_AND_EVAL, Summary

_NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*(?!\w)")
_WIDEST = 100  # a line that is longer is hard to read
_INDENT = (0, 0, 0, 2)


def show(summary: Summary) -> None:
    """Prints a summary to standard output."""
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


def _listed(rows: Iterable[tuple[str, Sequence[str]]]) -> Table:
    """A label and phrases in each row."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for label, phrases in rows:
        text = Text(shown(", ".join(phrases)))
        text.highlight_regex(_NUMBER, "bold")
        table.add_row(label, text)
    return table


def _side_by_side(summary: Summary, steps: Sequence[str]) -> Table:
    """A column for each step, a row for each of their figures."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="cyan")
    table.add_column()
    for step in steps:
        table.add_column(step, justify="right")
    values = {step: {figure.name: figure.value for figure in summary.figures[step]} for step in steps}
    for name in dict.fromkeys(name for step in steps for name in values[step]):
        table.add_row(name, *(values[step].get(name, "") for step in steps))
    return table
