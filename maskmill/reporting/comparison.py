"""The differences between two data sets, figure by figure and option by option."""

from typing import NamedTuple

from maskmill.reporting.facts import Facts
from maskmill.reporting.made_from import Figure

_NONE = "–"


class Change(NamedTuple):
    """A difference between two data sets: its group and name, the value in each, and the change.

    Attributes:
      group, name: what differs.
      other, this: the value in each; "–" if it has none.
      change: from the other to this one; empty unless both have the figure.
    """

    group: str
    name: str
    other: str
    this: str
    change: str = ""


def compare(facts: Facts, other: Facts) -> tuple[Change, ...]:
    """Return the differences between a data set and an earlier one (`other`)."""
    ours, theirs = _texts(facts), _texts(other)
    texts = [Change(*key, theirs.get(key, _NONE), ours.get(key, _NONE)) for key in dict.fromkeys([*ours, *theirs])]
    figures, before = _figures(facts), _figures(other)
    changes = [_of_figures(*key, figures.get(key), before.get(key)) for key in dict.fromkeys([*figures, *before])]
    return tuple(change for change in (*texts, *changes) if change.this != change.other or change.change)


def _texts(facts: Facts) -> dict[tuple[str, str], str]:
    """Return inputs, options and versions, by group and name."""
    inputs = {("Input", one.path): one.sha256 for one in facts.inputs}
    options = {(f"Option of {one.stage}", one.name): one.value for one in facts.options}
    return inputs | options | {("Version", name): version for name, version in facts.versions.items()}


def _figures(facts: Facts) -> dict[tuple[str, str], Figure]:
    left_out = () if facts.documents is None else facts.documents.set_aside
    reasons = [Figure("Left out", one.reason, one.count) for one in left_out]
    return {(figure.group, figure.name): figure for figure in (*facts.figures, *reasons)}


def _of_figures(group: str, name: str, ours: Figure | None, theirs: Figure | None) -> Change:
    """Return the change of a figure: of a share in percentage points, of any other in percent of the earlier value."""
    other, this = (_NONE if figure is None else figure.text for figure in (theirs, ours))
    change = ""
    if ours is not None and theirs is not None and ours.value != theirs.value:
        points, ratio = 100 * (ours.value - theirs.value), ours.value / theirs.value - 1 if theirs.value else 0
        change = f"{points:+.2g} points" if ours.unit == "share" else f"{100 * ratio:+.3g} %" if ratio else "new"
    return Change(group, name, other, this, change.replace("-", "\u2212"))
