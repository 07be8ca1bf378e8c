"""What is different between two data sets, figure by figure and option by option."""

from typing import NamedTuple

from maskmill.reporting.facts import Facts
from maskmill.reporting.made_from import Figure

_NONE = "–"


class Change(NamedTuple):
    """What two data sets do not have in common: what it belongs to and what it is, what both have, and the change.

    Attributes:
      group, name: what it is.
      other, this: what both have; "–": it has none.
      change: from the other to this one; empty: it is not a figure of both.
    """

    group: str
    name: str
    other: str
    this: str
    change: str = ""


def compare(facts: Facts, other: Facts) -> tuple[Change, ...]:
    """Return what differs between a data set and another one, which counts as the earlier."""
    ours, theirs = _texts(facts), _texts(other)
    texts = [Change(*key, theirs.get(key, _NONE), ours.get(key, _NONE)) for key in dict.fromkeys([*ours, *theirs])]
    figures, before = _figures(facts), _figures(other)
    changes = [_of_figures(*key, figures.get(key), before.get(key)) for key in dict.fromkeys([*figures, *before])]
    return tuple(change for change in (*texts, *changes) if change.this != change.other or change.change)


def _texts(facts: Facts) -> dict[tuple[str, str], str]:
    """Inputs, options and versions."""
    inputs = {("Input", one.path): one.sha256 for one in facts.inputs}
    options = {(f"Option of {one.stage}", one.name): one.value for one in facts.options}
    return inputs | options | {("Version", name): version for name, version in facts.versions.items()}


def _figures(facts: Facts) -> dict[tuple[str, str], Figure]:
    left_out = () if facts.documents is None else facts.documents.set_aside
    reasons = [Figure("Left out", one.reason, one.count) for one in left_out]
    return {(figure.group, figure.name): figure for figure in (*facts.figures, *reasons)}


def _of_figures(group: str, name: str, ours: Figure | None, theirs: Figure | None) -> Change:
    """Return a figure of both: of a share the change is in percentage points, of anything else in percent of theirs."""
    other, this = (_NONE if figure is None else figure.text for figure in (theirs, ours))
    change = ""
    if ours is not None and theirs is not None and ours.value != theirs.value:
        points, ratio = 100 * (ours.value - theirs.value), ours.value / theirs.value - 1 if theirs.value else 0
        change = f"{points:+.2g} points" if ours.unit == "share" else f"{100 * ratio:+.3g} %" if ratio else "new"
    return Change(group, name, other, this, change.replace("-", "\u2212"))
